"""Structured control flow over Numba IR: what `frontend.structure` gives to lowering. Data only.

A `Structured` is a graph of nodes (straight-line code, phis apart) and a tree of regions that
says in which order they run. Its control flow is what Sarek IR has: a choice, an endless loop,
leaving the innermost loop, starting its next pass, returning. What cannot be said so is said
with flags.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from numba.core import ir

# --- nodes ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a `Choose`: pure assignments to temporaries, then the value."""

    statements: tuple[Statement, ...]
    value: ir.Var | bool


@dataclass(frozen=True, slots=True, eq=False)
class Choose:
    """`target = then if condition else orelse`, only the chosen side evaluated.

    It is what `and`, `or`, a chained comparison or a conditional expression was. The condition is a
    bool variable. An arm whose value is a bool stands for that constant. The target is new, of the
    type of `like`, or a bool where that is None.
    """

    target: ir.Var
    condition: ir.Var
    then: Arm
    orelse: Arm
    loc: ir.Loc
    like: ir.Var | None


Statement: TypeAlias = ir.Stmt | Choose


@dataclass(slots=True)
class Phi:
    """A variable that takes the value of another one on each edge; None where that is unbound."""

    target: ir.Var
    incoming: dict[int, ir.Var | None]
    loc: ir.Loc


@dataclass(slots=True)
class Node:
    """A basic block: phis, then statements, then its terminator."""

    label: int
    phis: list[Phi]
    statements: list[Statement]
    terminator: ir.Stmt


# --- regions --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Straight:
    """The statements of a node."""

    label: int


@dataclass(slots=True)
class Copies:
    """The phis of `target` take their values for the edge from `source`, all at once."""

    source: int
    target: int


@dataclass(slots=True)
class Decide:
    """A branch on the condition of a node's terminator."""

    label: int
    then: Regions
    orelse: Regions


@dataclass(slots=True)
class Loop:
    """An endless loop; `label` is its header, whose statements its body starts with."""

    label: int
    body: Regions


@dataclass(slots=True)
class Leave:
    """Leave the innermost loop."""


@dataclass(slots=True)
class Again:
    """Start the next pass of the innermost loop."""


@dataclass(slots=True)
class Finish:
    """Return as the terminator of a node says."""

    label: int


@dataclass(slots=True)
class Fail:
    """The assertion that a node's terminator raises."""

    label: int


@dataclass(slots=True)
class SetFlag:
    """Give a flag a value."""

    flag: int
    value: bool


@dataclass(slots=True)
class TestFlag:
    """Run `body` if the flag has the value."""

    flag: int
    value: bool
    body: Regions


Region = Straight | Copies | Decide | Loop | Leave | Again | Finish | Fail | SetFlag | TestFlag
Regions = list[Region]


@dataclass(slots=True)
class Structured:
    """The nodes by label, and the tree over them. `flags` maps each flag to a word for its name."""

    nodes: dict[int, Node]
    regions: Regions
    flags: dict[int, str] = field(default_factory=dict)
