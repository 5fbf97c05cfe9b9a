"""Steps: what a graph does with memory, checked before, and which step is behind which.

What a step uses lives as long as the graph does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sarek_numba.runtime.arguments import Arguments
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.launch import Analysed
from sarek_numba.runtime.memory import address, extent
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.vector import Vector

Concrete: TypeAlias = Vector | npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class LaunchStep:
    """A launch of a compiled kernel."""

    device: Device
    analysed: Analysed
    arguments: Arguments
    grid: Dimensions
    block: Dimensions
    shared_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class CopyStep:
    """Copy elements to as many others of their type; `device` is where they are wanted."""

    device: Device
    destination: Concrete
    source: Concrete


@dataclass(frozen=True, slots=True, eq=False)
class FillStep:
    """Make all elements a number."""

    device: Device
    destination: Concrete
    value: Any


Step = LaunchStep | CopyStep | FillStep


# --- dependencies ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Use:
    """Bytes that a step uses, by host addresses, which are of one vector alone."""

    first: int
    last: int
    written: bool


def uses_of(step: Step) -> tuple[Use, ...]:
    """The bytes that a step reads and writes."""
    match step:
        case LaunchStep(analysed=analysed, arguments=arguments):
            read = arguments.among(analysed.reads, analysed.read_columns)
            written = arguments.among(analysed.writes, analysed.written_columns)
            return tuple(
                _use(arguments.values[position], place in written)
                for place, position in enumerate(arguments.arrays)
                if place in read or place in written
            )
        case CopyStep(destination=destination, source=source):
            return _use(array_of(source), False), _use(array_of(destination), True)
        case FillStep(destination=destination):
            return (_use(array_of(destination), True),)


def array_of(concrete: Concrete) -> npt.NDArray[Any]:
    """The elements as an array, of a vector without looking at them."""
    return concrete._array if isinstance(concrete, Vector) else np.asarray(concrete)


def _use(array: npt.NDArray[Any], written: bool) -> Use:
    return Use(*extent(array, address(array)), written)


def dependencies(groups: Iterable[Iterable[Step]]) -> tuple[frozenset[int], ...]:
    """`dependencies_of` what groups of steps use."""
    return dependencies_of([[use for step in group for use in uses_of(step)] for group in groups])


def dependencies_of(uses: Sequence[Sequence[Use]]) -> tuple[frozenset[int], ...]:
    """For each group the earlier groups that must be done before it, by the bytes they use.

    A group is behind one that writes what it reads, reads what it writes, or writes what it writes;
    what follows through another group is left out.
    """
    found: list[frozenset[int]] = []
    reached: list[frozenset[int]] = []  # all that a group is behind, however far
    for number, own in enumerate(uses):
        direct: set[int] = set()
        behind: set[int] = set()
        for earlier in range(number - 1, -1, -1):
            if earlier not in behind and _conflict(own, uses[earlier]):
                direct.add(earlier)
                behind |= {earlier, *reached[earlier]}
        found.append(frozenset(direct))
        reached.append(frozenset(behind))
    return tuple(found)


def pattern_of(uses: Iterable[Sequence[Use]]) -> tuple[Any, ...]:
    """What dependencies come from: equal for other memory that is shared in the same way."""
    numbers: dict[tuple[int, int], int] = {}
    rows = tuple(
        tuple((numbers.setdefault((u.first, u.last), len(numbers)), u.written) for u in own)
        for own in uses
    )
    overlapping: list[tuple[int, int]] = []
    open_: list[tuple[int, int]] = []  # where each ends that began before, and its number
    for first, last in sorted(numbers):
        number = numbers[first, last]
        open_ = [each for each in open_ if each[0] > first]
        overlapping += [(min(number, n), max(number, n)) for _, n in open_ if first < last]
        open_.append((last, number))
    return rows, tuple(sorted(overlapping))


def _conflict(own: Sequence[Use], others: Sequence[Use]) -> bool:
    return any(
        (use.written or other.written) and max(use.first, other.first) < min(use.last, other.last)
        for use in own
        for other in others
    )
