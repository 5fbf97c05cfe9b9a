"""What all functions of one kernel share: variable ids, declarations, helpers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sarek_numba.frontend import typed as t
from sarek_numba.frontend.lower.emitter import Ids
from sarek_numba.ir.nodes import ConstDecl, HelperFunction, LocalDecl, SharedDecl, Var
from sarek_numba.ir.types import Scalar


@dataclass(slots=True)
class Hoisted:
    """An array that a helper declares and its callers provide: `param` is its parameter there."""

    param: Var
    owner: SharedDecl | ConstDecl


@dataclass(slots=True)
class Helper:
    """A lowered device function: its name, the types of its results, what callers must add."""

    name: str
    results: tuple[Scalar, ...]
    hoisted: list[Hoisted] = field(default_factory=list)
    needs_dynamic_length: bool = False


@dataclass(slots=True)
class Scope:
    """The declarations of one function.

    `provide` gives the variable that stands for an array declared for the whole kernel: itself in
    the kernel, a parameter in a helper. `dynamic_length` is the length of the dynamic region.
    """

    locals: list[LocalDecl] = field(default_factory=list)
    hoisted: list[Hoisted] = field(default_factory=list)
    is_kernel: bool = True
    dynamic_length: Var | None = None


# Lowers a callee; the flags say which array parameters get an offset whatever their layout.
LowerHelper = Callable[["Program", t.Typed, tuple[bool, ...]], Helper]


@dataclass(slots=True)
class Program:
    """One kernel as it grows: `declared` are its shared and constant arrays."""

    index: Scalar
    lower_helper: LowerHelper
    ids: Ids = field(default_factory=Ids)
    declared: list[SharedDecl | ConstDecl] = field(default_factory=list)
    functions: list[HelperFunction] = field(default_factory=list)
    helpers: dict[object, Helper] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    fragments: set[str] = field(default_factory=set)
    loop_hints: dict[int, tuple[str, ...]] = field(default_factory=dict)  # by the loop's variable

    def unique(self, name: str) -> str:
        """A name that no helper has yet."""
        return _unique(name, self.names)

    def unique_fragment(self, name: str) -> str:
        """A name that no fragment has yet."""
        return _unique(name, self.fragments)


def _unique(name: str, taken: set[str]) -> str:
    chosen, count = name, 1
    while chosen in taken:
        count += 1
        chosen = f"{name}_{count}"
    taken.add(chosen)
    return chosen
