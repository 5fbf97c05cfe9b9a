"""Captured graphs as pickles: their calls, the memory that they hold, and its inputs.

Kernels go as Sarek IR, and are compiled where the pickle is read; devices go by name. The copies
that devices have are not sent: elements come from the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sarek_numba.realize.buffers import Concrete, laid_out
from sarek_numba.realize.data import Buffer, Layout
from sarek_numba.realize.inputs import Input, Memories, Memory, array_of
from sarek_numba.runtime.memory import address
from sarek_numba.runtime.vector import Vector


@dataclass(frozen=True, slots=True)
class _Part:
    """Elements of a piece of memory, by the number of its node."""

    node: Buffer
    offset: int
    layout: Layout


@dataclass(frozen=True, slots=True)
class SavedMemory:
    """What `Memories` is made of: each piece of memory once, and what lies in it."""

    pieces: tuple[tuple[Buffer, Concrete, bool, str | None, Any], ...]
    slots: dict[int, str]
    inputs: dict[str, tuple[int, _Part, bool]]


def saved(memories: Memories, inputs: dict[str, Input]) -> SavedMemory:
    """The memory of a graph, and its inputs."""
    pieces = []
    for memory in memories.pieces():
        stretches = [
            (s.first, s.last, s.name, None if s.whole is None else _part(memory, s.whole),
             s.written, s.slot)
            for s in memory.stretches
        ]  # fmt: skip
        whole = memory.whole if isinstance(memory.whole, Vector) else np.array(memory.whole)
        pieces.append((memory.node, whole, memory.own, memory.exposed, stretches))
    found = {}
    for name, given in inputs.items():
        memory = memories.piece_of(given.captured)
        found[name] = given.slot, _part(memory, given.captured), given.written
    return SavedMemory(tuple(pieces), memories.names(), found)


def restored(given: SavedMemory) -> tuple[Memories, dict[str, Input]]:
    """The memory of a graph and its inputs, as they were saved."""
    memories = Memories({})
    wholes: dict[Buffer, Concrete] = {}
    for node, whole, own, exposed, stretches in given.pieces:
        wholes[node] = whole
        parts = [
            (first, last, name, None if part is None else _made(wholes, part), written, slot)
            for first, last, name, part, written, slot in stretches
        ]
        memories.restore(node, whole, own, exposed, parts)
    memories.rename(given.slots)
    inputs = {
        name: Input(slot, _made(wholes, part), written)
        for name, (slot, part, written) in given.inputs.items()
    }
    return memories, inputs


def _part(memory: Memory, concrete: Concrete) -> _Part:
    array = array_of(concrete)
    layout = Layout(array.dtype, array.shape, array.strides, bool(array.flags.writeable))
    return _Part(memory.node, address(array) - memory.start, layout)


def _made(wholes: dict[Buffer, Concrete], part: _Part) -> Concrete:
    return laid_out(wholes[part.node], part.offset, part.layout)
