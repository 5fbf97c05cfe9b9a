"""Plans: how launches that are like an earlier one are done, without looking at everything again.

A launch that went the long way gives a `Plan`, if it is of the kinds that plans describe: the
guards that must hold, one check for each argument, and for each parameter of the program what
fills it. A device that has `plans` makes of it a function that takes the arguments of a later
launch. It checks all of them each time; where one is not exactly what the plan says it does
nothing, and the launch takes the long way, which accepts or refuses it. So a plan never refuses,
and no error has a second text.

Plans describe launches whose arrays are aligned, each bound from its own lowest byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.device import Dimensions, Program
from sarek_numba.runtime.storage import Access

# --- guards ---------------------------------------------------------------------------------------

ABSENT = object()


class Place(Enum):
    """Where a guard looks. Of each the container and the key."""

    ITEM = 0  # a dict, a key; the object expected may be ABSENT
    CELL = 1  # a cell of a closure; no key
    CONTEXT = 2  # a ContextVar that has a default; no key
    CALL = 3  # a function without arguments, which gives True; no key


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """That the very object `expected` stands at a place of the program."""

    place: Place
    container: Any
    key: Any
    expected: Any

    def is_like(self, other: Guard) -> bool:
        """Whether it is for the same object at the same place."""
        if self.place is not other.place or self.expected is not other.expected:
            return False
        if self.place is Place.CALL:  # of the same captured value; methods are made anew
            return self.key is other.key
        alike = isinstance(self.key, str | bytes) and bool(self.key == other.key)
        return self.container is other.container and (self.key is other.key or alike)

    def holds(self) -> bool:
        """Whether it does now."""
        match self.place:
            case Place.ITEM:
                found: bool = self.container.get(self.key, ABSENT) is self.expected
                return found
            case Place.CELL:
                try:
                    return self.container.cell_contents is self.expected
                except ValueError:  # an empty cell
                    return False
            case Place.CONTEXT:
                return self.container.get() is self.expected
            case Place.CALL:
                return self.container() is True


# --- checks ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArrayCheck:
    """An array, or a vector of one, whose type and flags are those of an earlier one.

    `most_bytes` is what it may span so that lengths are int32. One that is `contiguous` in neither
    order has strides that are whole numbers of elements.
    """

    vector: bool
    dtype: np.dtype[Any]
    ndim: int
    contiguous: tuple[bool, bool]  # C, F
    writable: bool
    alignment: int
    most_bytes: int
    access: Access | None

    @property
    def strided(self) -> bool:
        return not any(self.contiguous)


@dataclass(frozen=True, slots=True)
class IntCheck:
    """A Python int from `least` to `most`, both within int64."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class FloatCheck:
    """A Python float; if `narrow`, one that float32 has a finite value for, or none at all."""

    narrow: bool


@dataclass(frozen=True, slots=True)
class ScalarCheck:
    """A NumPy scalar of exactly this class."""

    type: type[np.generic]
    scalar: Scalar


@dataclass(frozen=True, slots=True)
class ComplexCheck:
    """A Python complex; if `narrow`, one whose parts are as a narrow `FloatCheck` has them."""

    narrow: bool


@dataclass(frozen=True, slots=True)
class PairCheck:
    """A complex NumPy scalar of exactly this class."""

    type: type[np.generic]
    part: Scalar


@dataclass(frozen=True, slots=True)
class BoolCheck:
    """A Python bool."""


@dataclass(frozen=True, slots=True)
class NoneCheck:
    """None."""


Check = (
    ArrayCheck
    | IntCheck
    | FloatCheck
    | ScalarCheck
    | ComplexCheck
    | PairCheck
    | BoolCheck
    | NoneCheck
)

# --- fills ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of an array, from its lowest byte."""

    argument: int


@dataclass(frozen=True, slots=True)
class Number:
    """A number as a type: the argument is of that type, or a Python number that it holds."""

    argument: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class Part:
    """The real (0) or imaginary (1) part of a complex number as a type."""

    argument: int
    part: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class Offset:
    """The elements before element (0, …, 0) of an array."""

    argument: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class Length:
    """The number of elements of an array."""

    argument: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class Extent:
    """The elements of an array along an axis."""

    argument: int
    axis: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class Stride:
    """The elements from one to the next along an axis; 0 if there is no next."""

    argument: int
    axis: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class Fixed:
    """A number that is the same at each launch."""

    value: int
    type: Scalar


Fill = Memory | Number | Part | Offset | Length | Extent | Stride | Fixed


# --- plans ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """`apart`: no two arrays may share a byte. Else two that do must start at the same one."""

    kernel: str
    program: Program
    grid: Dimensions
    block: Dimensions
    shared_bytes: int
    guards: tuple[Guard, ...]
    checks: tuple[Check, ...]
    fills: tuple[Fill, ...]
    apart: bool

    @property
    def has_plain_vectors(self) -> bool:
        """Whether all arrays are vectors without strides; those of NumPy are bound each time."""
        arrays = [check for check in self.checks if isinstance(check, ArrayCheck)]
        return all(check.vector and not check.strided for check in arrays)

    def is_like(self, other: Plan) -> bool:
        """Whether it serves the same launches, as long as guarded places do not change."""
        return (
            self.program is other.program
            and self.checks == other.checks
            and self.fills == other.fills
            and len(self.guards) == len(other.guards)
            and all(map(Guard.is_like, self.guards, other.guards))
        )


Finish = Callable[[Sequence[Any], Any], None]
Attempt = tuple[Callable[..., Any], Finish | None]
"""A function of the arguments: it gives None after the launch, False where it did nothing, and else
what is left of the launch, to be done by the other function with the arguments."""


class Plans(Protocol):
    """What a driver has that follows plans."""

    def attempt(self, plan: Plan) -> Attempt | None:
        """The functions of a plan of one of its programs; None where there can be none.

        The first one checks and launches as `Plan` says. It is called from any thread.
        """
        ...


@runtime_checkable
class Acceptors(Plans, Protocol):
    """Plans whose checks another device may use for launches of its own."""

    def acceptor(self, plan: Plan, ready: Mapping[Any, Any]) -> Callable[..., Any] | None:
        """A function of the arguments: False, or, if all are as the plan says, bytes.

        Eight for each fill, memory being the host's address, behind them eight for each vector:
        what its storage has `ready` under the key that belongs to its access, or 0; and eight that
        are 0. The locks of the vectors' storages are held then, and the launch is counted.
        """
        ...
