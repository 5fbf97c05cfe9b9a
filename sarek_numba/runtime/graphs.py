"""The contract of graphs: steps that a backend records once and replays.

A driver that has a mechanism for it has an attribute `recorder`, a `GraphRecorder`; for others
`realize` does the steps one after the other. Everything in a step is checked before. What a step
uses lives as long as the graph does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

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


class Graph(Protocol):
    """Recorded steps."""

    def replay(self, changed: Mapping[int, Sequence[Step]], wait: bool) -> None:
        """Do all steps; of the groups named in `changed`, these ones from now on.

        A group that changes has as many steps of the same kinds, kernels and devices as before; it
        may have none, if a grid became empty, and have them again later. With `wait` all are done
        when this returns; otherwise when somebody looks. Raises BackendError, OracleError.
        """
        ...


class GraphRecorder(Protocol):
    """Makes graphs for a device."""

    def record(
        self, groups: Sequence[Sequence[Step]], dependencies: Sequence[frozenset[int]]
    ) -> Graph:
        """A graph of groups of steps, and what each group is behind; nothing is done yet.

        The steps of a group are independent, one for each of several devices. Raises BackendError.
        """
        ...


@runtime_checkable
class RecordsGraphs(Protocol):
    """A driver with a mechanism for graphs."""

    recorder: GraphRecorder


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
            return _use(_array(source), False), _use(_array(destination), True)
        case FillStep(destination=destination):
            return (_use(_array(destination), True),)


def _array(concrete: Concrete) -> npt.NDArray[Any]:
    return concrete._array if isinstance(concrete, Vector) else np.asarray(concrete)


def _use(array: npt.NDArray[Any], written: bool) -> Use:
    return Use(*extent(array, address(array)), written)


def dependencies(groups: Iterable[Iterable[Step]]) -> tuple[frozenset[int], ...]:
    """For each group the earlier groups that must be done before it, by the bytes they use.

    A group is behind one that writes what it reads, reads what it writes, or writes what it writes;
    what follows through another group is left out.
    """
    uses = [[use for step in group for use in uses_of(step)] for group in groups]
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


def _conflict(own: Sequence[Use], others: Sequence[Use]) -> bool:
    return any(
        (use.written or other.written) and use.first < other.last and other.first < use.last
        for use in own
        for other in others
    )
