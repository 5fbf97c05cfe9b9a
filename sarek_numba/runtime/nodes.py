"""Graphs as a backend has them: nodes bound to memory, done at once as often as is asked.

A driver that has a mechanism for it has an attribute `graphs`; for others `realize` does the steps
one after the other. `sarek_numba.runtime.recorded` looks after the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from sarek_numba.runtime.device import Dimensions, Program


@dataclass(frozen=True, slots=True, eq=False)
class LaunchNode:
    """A launch of a program of the device; the arguments are as `Program.launch` has them."""

    program: Program
    grid: Dimensions
    block: Dimensions
    shared_bytes: int
    arguments: Sequence[Any]


@dataclass(frozen=True, slots=True, eq=False)
class CopyNode:
    """Copy bytes from one part of memory to another; they share none on devices with memory."""

    destination: Any
    source: Any
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class FillNode:
    """Repeat some bytes in a part of memory."""

    destination: Any
    word: bytes
    count: int


Node = LaunchNode | CopyNode | FillNode


class Graph(Protocol):
    """Nodes that a device is ready to do. One thread at a time uses it."""

    def update(self, changed: Mapping[int, Node]) -> bool:
        """Have some nodes be others of the same kind from now on, whatever is under way.

        False where that cannot be; then it is not used again. Raises BackendError.
        """
        ...

    def start(self, handle: Any) -> Any:
        """Give all to a queue; gives its mark. Without a queue it is done when this returns.

        Raises BackendError.
        """
        ...


class Graphs(Protocol):
    """How a device does many nodes at once. `widths` are bytes of words that it fills memory with,
    at whole multiples of them; None for any word anywhere.
    """

    widths: tuple[int, ...] | None

    def build(self, nodes: Sequence[Node], behind: Sequence[frozenset[int]]) -> Graph:
        """An executable of nodes, each behind earlier ones. Raises BackendError."""
        ...


@runtime_checkable
class RecordsGraphs(Protocol):
    """A driver with a mechanism for graphs."""

    graphs: Graphs
