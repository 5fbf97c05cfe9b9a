"""The lattice of uniformity, and what its analysis gives: see `ir.uniformity`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import NamedTuple

from sarek_numba.ir.nodes import (
    Barrier,
    Call,
    Coopmat,
    Coordinate,
    Expr,
    For,
    Kernel,
    Stmt,
    Var,
    Warp,
    WarpBarrier,
    While,
)

Meeting = Barrier | WarpBarrier | Warp | Coopmat  # what all threads of a group must reach together


class Variance(IntEnum):
    """The largest group within which a value is the same."""

    UNIFORM = 0
    BLOCK = 1
    WARP = 2
    THREAD = 3


UNIFORM, BLOCK, WARP, THREAD = Variance


class Way(Enum):
    """How a condition selects threads: where it holds, where it fails, or by counting passes."""

    HOLDS = "holds"
    FAILS = "fails"
    PASSES = "passes"


_OTHERS = {Way.HOLDS: Way.FAILS, Way.FAILS: Way.HOLDS, Way.PASSES: Way.PASSES}


class Control(NamedTuple):
    """How far the threads at a place are together, and the condition that parted them most."""

    level: Variance
    condition: Expr | None = None
    way: Way = Way.HOLDS

    def join(self, other: Control) -> Control:
        return self if self.level >= other.level else other

    def others(self) -> Control:
        """The same for the threads that did not go this way."""
        return Control(self.level, self.condition, _OTHERS[self.way])


TOGETHER = Control(UNIFORM)


COORDINATE_VARIANCE = {
    Coordinate.THREAD_IDX: THREAD,
    Coordinate.BLOCK_IDX: BLOCK,
    Coordinate.BLOCK_DIM: UNIFORM,
    Coordinate.GRID_DIM: UNIFORM,
    Coordinate.GLOBAL_IDX: THREAD,
    Coordinate.GRID_SIZE: UNIFORM,
}


class State(NamedTuple):
    """What is known where control stands.

    `dirty` are the shared arrays stored to since the last barrier, `levels` those of the variables
    that have been assigned, where assignments are followed in their order.
    """

    dirty: frozenset[int] = frozenset()
    levels: Mapping[int, Variance] = MappingProxyType({})

    def assigned(self, var: Var, level: Variance) -> State:
        return State(self.dirty, {**self.levels, var.id: level})


CLEAN: frozenset[int] = frozenset()


def join_states(left: State | None, right: State | None) -> State | None:
    """What is known where two flows meet; None where control does not come."""
    if left is None or right is None:
        return right if left is None else left
    levels = left.levels
    if right.levels is not levels:
        more = {k: v for k, v in right.levels.items() if v > levels.get(k, -1)}
        levels = {**levels, **more} if more else levels
    return State(left.dirty | right.dirty, levels)


@dataclass(slots=True)
class Frame:
    """A branch or a loop around the current place: what it does to values and to control."""

    value: Control
    control: Control


@dataclass(slots=True)
class Loop:
    """A loop around the current place, and how threads have left its body so far."""

    frame: int  # index of its frame
    left: Control = TOGETHER  # gone for the rest of this pass
    broken: Control = TOGETHER
    continued: Control = TOGETHER
    returned: Control = TOGETHER
    next: State | None = None
    after: State | None = None


@dataclass(frozen=True, slots=True)
class Synchronisation:
    """A barrier or collective, or a call of a helper that holds one, with the control around it."""

    stmt: Meeting | Call
    control: Control
    callee: Function | None = None


@dataclass(slots=True)
class Function:
    """What was found for the kernel's body, or for a helper called with certain levels.

    `results` are the levels of the values returned. `synchronisations` and `called` are those of
    this body alone. Dictionaries are keyed by variable id or by the identity of a node.
    """

    levels: dict[int, Variance]
    results: list[Variance] = field(default_factory=list)
    dirty: frozenset[int] | None = None  # at the end, if it is reached
    exprs: dict[int, Variance] = field(default_factory=dict)
    controls: dict[int, Control] = field(default_factory=dict)
    loops: dict[int, Variance] = field(default_factory=dict)
    synchronisations: list[Synchronisation] = field(default_factory=list)
    called: list[tuple[Function, Control]] = field(default_factory=list)

    def meetings(self) -> list[Meeting]:
        """All barriers and collectives that a run may reach, those of its callees included."""
        found: list[Meeting] = []
        for sync in self.synchronisations:
            if not isinstance(sync.stmt, Call):
                found.append(sync.stmt)
            elif sync.callee is not None:
                found += sync.callee.meetings()
        return found


class Uniformity:
    """The result of `analyse`. Nodes are known by identity; a helper's count for all its calls."""

    def __init__(self, kernel: Kernel, main: Function, uncalled: list[Function]) -> None:
        self._kernel = kernel  # keeps the nodes alive, so that their identities stay theirs
        self.main = main
        self._vars: dict[int, Variance] = {}
        self._exprs: dict[int, Variance] = {}
        self._loops: dict[int, Variance] = {}
        self._controls: dict[int, Control] = {}
        self._seen: dict[int, Variance] = {}
        for function in (main, *uncalled):
            self._merge(function, TOGETHER)

    def of_var(self, var: Var) -> Variance:
        """The level of a variable's value; an array variable itself is uniform."""
        return self._vars.get(var.id, UNIFORM)

    def of_expr(self, expr: Expr) -> Variance:
        """The level of an expression that stands in the kernel; KeyError for any other."""
        return self._exprs[id(expr)]

    def of_loop(self, loop: For | While) -> Variance:
        """Whether threads leave, or skip parts of, a loop in different passes."""
        return self._loops[id(loop)]

    def control_of(self, stmt: Stmt) -> Control:
        """The control that a statement of the kernel stands under."""
        return self._controls[id(stmt)]

    def is_divergent(self, stmt: Stmt) -> bool:
        """Whether only some threads of a block may reach a statement."""
        return self._controls[id(stmt)].level > BLOCK

    def _merge(self, function: Function, base: Control) -> None:
        if self._seen.get(id(function), -1) >= base.level:
            return
        self._seen[id(function)] = base.level
        for mine, theirs in (
            (self._vars, function.levels),
            (self._exprs, function.exprs),
            (self._loops, function.loops),
        ):
            for key, level in theirs.items():
                mine[key] = max(level, mine.get(key, UNIFORM))
        for key, control in function.controls.items():
            joined = base.join(control)
            self._controls[key] = self._controls.get(key, TOGETHER).join(joined)
        for callee, control in function.called:
            self._merge(callee, base.join(control))
