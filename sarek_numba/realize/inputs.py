"""The memory that a capture met, and which of it are inputs of the graph.

Memory of before the block is an input, in stretches: what overlaps is one, and the first buffer
that is all of it says what may take its place. Memory that the block made, and stretches that no
buffer is all of, stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sarek_numba.errors import GraphError
from sarek_numba.realize.buffers import Concrete
from sarek_numba.realize.data import Buffer, Layout, Node, Param, View
from sarek_numba.runtime.memory import address, extent, host_bytes
from sarek_numba.runtime.vector import Vector


@dataclass(frozen=True, slots=True)
class Input:
    """What may be replaced in a replay: `captured` is what it was."""

    slot: int
    captured: Concrete
    written: bool

    def __str__(self) -> str:
        axes = ", ".join(map(str, self.captured.shape))
        return f"{self.captured.dtype}[{axes}]{', written' if self.written else ''}"


@dataclass(slots=True)
class _Stretch:
    """Bytes that belong together; offsets are from the start of their memory."""

    first: int
    last: int
    name: str
    whole: Concrete | None
    written: bool
    slot: int | None = None


@dataclass(slots=True)
class Memory:
    """One piece of memory that the block used."""

    node: Buffer
    whole: Concrete  # its bytes
    start: int
    owner: Any  # whose identity stands for it
    own: bool = False  # did the block make it?
    exposed: str | None = None  # the input that it is wholly, though the block made it
    uses: list[_Stretch] = field(default_factory=list)
    stretches: list[_Stretch] = field(default_factory=list)


class Memories:
    """Collects the memory that a block uses; `named` are inputs that have names already."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._known: dict[int, Memory] = {}
        self._by_node: dict[Buffer, Memory] = {}
        self._slots: dict[int, str] = {}
        for name, value in named.items():
            self._use(value, name, False)

    def own(self, concrete: Concrete) -> None:
        """The block made this memory."""
        self._memory(concrete).own = True

    def expose(self, concrete: Vector, name: str) -> tuple[int, int] | None:
        """Have memory that the block made be an input of that name, or of its first one.

        The size of the memory in bytes, and where the elements of `concrete` begin in it; None for
        memory of before the block.
        """
        memory = self._memory(concrete)
        if not memory.own:
            return None
        memory.exposed = memory.exposed or name
        return memory.whole.size, address(array_of(concrete)) - memory.start

    def exposed_name(self, concrete: Vector) -> str | None:
        """The input that `expose` made of the memory of a vector."""
        return self._memory(concrete).exposed

    def node(self, concrete: Concrete, name: str, written: bool) -> Node:
        """What stands for a buffer that the block uses."""
        memory = self._use(concrete, name, written)
        array = array_of(concrete)
        layout = Layout(array.dtype, array.shape, array.strides, bool(array.flags.writeable))
        return View(memory.node, address(array) - memory.start, array.size, layout)

    def _use(self, concrete: Concrete, name: str, written: bool) -> Memory:
        memory = self._memory(concrete)
        first, last = span(concrete)
        memory.uses.append(
            _Stretch(first - memory.start, last - memory.start, name, concrete, written)
        )
        return memory

    def _memory(self, concrete: Concrete) -> Memory:
        owner = _owner(concrete)
        found = self._known.get(id(owner))
        if found is None:
            whole: Concrete
            if isinstance(concrete, Vector):
                whole, start = Vector(concrete._storage, concrete._storage.host), owner.start
            else:
                start, end = extent(owner, address(owner))
                whole = host_bytes(start, end - start, not owner.flags.writeable, [owner])
            node = Buffer(whole.size, np.dtype(np.uint8))
            found = self._known[id(owner)] = self._by_node[node] = Memory(node, whole, start, owner)
        return found

    # --- pickles ----------------------------------------------------------------------------------

    def pieces(self) -> list[Memory]:
        """The memory that was met, in that order."""
        return list(self._known.values())

    def piece_of(self, concrete: Concrete) -> Memory:
        """The memory that a buffer of the block is in."""
        first, last = span(concrete)
        for memory in self._known.values():
            same = isinstance(memory.whole, Vector) == isinstance(concrete, Vector)
            if same and memory.start <= first and last <= memory.start + memory.whole.size:
                return memory
        raise AssertionError("inputs are in memory that the block met")

    def names(self) -> dict[int, str]:
        """The names of the inputs by their slots."""
        return dict(self._slots)

    def rename(self, names: Mapping[int, str]) -> None:
        """Have inputs be called so."""
        self._slots.update(names)

    def restore(
        self, node: Buffer, whole: Concrete, own: bool, exposed: str | None, parts: list[Any]
    ) -> None:
        """Meet memory that was met in another process."""
        owner, start = _owner(whole), span(whole)[0]
        stretches = [_Stretch(*part) for part in parts]
        made = Memory(node, whole, start, owner, own, exposed, [], stretches)
        self._known[id(owner)] = self._by_node[node] = made

    # --- afterwards -------------------------------------------------------------------------------

    def inputs(self) -> dict[str, Input]:
        """The inputs by name, in the order of their first uses."""
        found: dict[str, Input] = {}
        for memory in self._known.values():
            memory.stretches = list(_merged(memory.uses))
            if memory.exposed is not None:
                last, name = memory.whole.size, memory.exposed
                memory.stretches = [_Stretch(0, last, name, memory.whole, True)]
            for stretch in memory.stretches:
                if stretch.whole is None or (memory.own and memory.exposed is None):
                    continue
                name, number = stretch.name, 2
                while name in found:
                    name, number = f"{stretch.name}_{number}", number + 1
                stretch.slot, stretch.name = len(found), name
                self._slots[stretch.slot] = name
                found[name] = Input(stretch.slot, stretch.whole, stretch.written)
        return found

    def fixed(self) -> Iterator[tuple[Buffer, Concrete]]:
        """The nodes that are no inputs, or not wholly, and their memory."""
        for memory in self._known.values():
            yield memory.node, memory.whole

    def parameter(self, node: Node) -> Node:
        """A node of `node` by the parameter, if it is part of an input."""
        assert isinstance(node, View)
        assert isinstance(node.source, Buffer)
        assert isinstance(node.offset, int)
        assert node.layout is not None
        offset = node.offset
        stretch = self._stretch_of(self._by_node[node.source], offset)
        if stretch is None or stretch.slot is None or stretch.whole is None:
            return node
        memory = self._by_node[node.source]
        array = array_of(stretch.whole)
        at = address(array) - memory.start
        same = node.layout.dtype, node.layout.shape, node.layout.strides
        if offset == at and same == (array.dtype, array.shape, array.strides):
            return Param(stretch.slot)
        return View(Param(stretch.slot), offset - stretch.first, node.size, node.layout)

    def _stretch_of(self, memory: Memory, offset: int) -> _Stretch | None:
        for stretch in memory.stretches:
            if stretch.first <= offset < stretch.last or stretch.first == offset == stretch.last:
                return stretch
        return None

    def check_apart(self, chosen: Mapping[str, Concrete]) -> None:
        """Refuse inputs that share memory with one another, or with what stays in the graph."""
        taken = sorted((*span(value), f"input '{name}'") for name, value in chosen.items())
        for memory in self._known.values():
            for stretch in memory.stretches:
                if stretch.slot is None and stretch.first < stretch.last:
                    first, last = memory.start + stretch.first, memory.start + stretch.last
                    taken.append((first, last, "memory that the graph holds"))
        furthest, owner = -1, ""
        for first, last, name in sorted(taken):
            if first < furthest and first < last:
                one, other = sorted((owner, name), key=lambda text: not text.startswith("input"))
                raise GraphError(
                    f"{one} shares memory with {other}, and did not when it was captured\n"
                    "  hint: pass a copy, or capture it so"
                )
            if last > furthest:
                furthest, owner = last, name

    def name_of(self, node: Node) -> str:
        """A node for readers."""
        match node:
            case Param(slot):
                return self._slots[slot]
            case View(Param(slot), offset):
                return f"{self._slots[slot]}+{offset}"
            case View(Buffer() as buffer, offset):
                return f"buffer {list(self._by_node).index(buffer)}" + f"+{offset}" * bool(offset)
            case _:
                return str(node)


def _merged(uses: list[_Stretch]) -> Iterator[_Stretch]:
    """Stretches of uses that overlap, in the order of their first uses."""
    made: list[_Stretch] = []
    for use in uses:
        touched = [
            s
            for s in made
            if (s.first < use.last and use.first < s.last)
            or (s.first, s.last) == (use.first, use.last)
        ]
        joined = _Stretch(use.first, use.last, use.name, use.whole, use.written)
        for stretch in touched:
            joined.first = min(joined.first, stretch.first)
            joined.last = max(joined.last, stretch.last)
            joined.written |= stretch.written
        if touched:
            made[made.index(touched[0])] = joined
            for stretch in touched[1:]:
                made.remove(stretch)
        else:
            made.append(joined)
    for stretch in made:
        size = stretch.last - stretch.first
        inside = [u for u in uses if stretch.first <= u.first and u.last <= stretch.last]
        named = (u for u in inside if u.last - u.first == size)
        first = next(named, None)
        stretch.whole = None if first is None else first.whole
        stretch.name = (first or inside[0]).name
        yield stretch


def array_of(concrete: Concrete) -> Any:
    """The array that describes a buffer's elements."""
    return concrete._array if isinstance(concrete, Vector) else concrete


def span(concrete: Concrete) -> tuple[int, int]:
    """The host addresses of the first byte of a buffer and of the one behind its last."""
    array = array_of(concrete)
    return extent(array, address(array))


def _owner(concrete: Concrete) -> Any:
    """What stands for the memory that a buffer is in."""
    if isinstance(concrete, Vector):
        return concrete._storage
    array: Any = concrete
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


# --- checks ---------------------------------------------------------------------------------------


def check_memory(subject: str, value: Any) -> None:
    """Refuse what is no vector and no array of NumPy. Raises GraphError."""
    if not isinstance(value, Vector | np.ndarray):
        raise GraphError(
            f"{subject} is a {type(value).__name__}, not a vector or an array of NumPy"
        )


def check_input(name: str, wanted: Input, value: Any) -> None:
    """Refuse what cannot take the place of an input. Raises GraphError."""
    check_memory(f"input '{name}'", value)
    captured, given = array_of(wanted.captured), array_of(value)
    start = f"input '{name}' was captured as"
    if given.dtype != captured.dtype:
        raise GraphError(f"{start} {captured.dtype}, and is given {given.dtype}")
    if given.shape != captured.shape:
        raise GraphError(f"{start} an array of shape {captured.shape}, and is given {given.shape}")
    if captured.size and given.strides != captured.strides:
        raise GraphError(
            f"{start} an array of strides {captured.strides}, and is given {given.strides}\n"
            "  hint: pass one that lies in memory alike"
        )
    if wanted.written and not given.flags.writeable:
        raise GraphError(f"input '{name}' is written by the graph, and can be read only")
