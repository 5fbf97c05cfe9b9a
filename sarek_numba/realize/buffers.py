"""Which memory the nodes of a schedule stand for.

A concrete buffer is what a launch takes as an array: a `Vector`, or an array of NumPy. A buffer on
several devices is a `MultiBuffer`, one of these for each. `Buffers` maps `Buffer` nodes to concrete
buffers, which it makes when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sarek_numba.errors import InvalidArgument
from sarek_numba.realize.data import (
    NODES,
    Buffer,
    Layout,
    Node,
    Param,
    Select,
    Stack,
    Symbolic,
    View,
)
from sarek_numba.runtime.memory import address, extent, host_bytes
from sarek_numba.runtime.vector import Vector, empty_vector

Concrete: TypeAlias = Vector | npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class MultiBuffer:
    """A buffer on several devices: what each has, and the names of the devices, where known."""

    shards: tuple[Concrete, ...]
    devices: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.shards)


Resolved: TypeAlias = Concrete | MultiBuffer


class Buffers:
    """Concrete buffers by node. Iterates over the nodes that have one."""

    def __init__(self) -> None:
        self._bound: dict[Buffer, Resolved] = {}
        self._revisions: dict[Buffer, int] = {}
        self.changes = 0  # how often a node got another buffer
        self.recorded: dict[Any, Any] = {}  # what `run` made of schedules that ran with this

    def __getitem__(self, node: Buffer) -> Resolved:
        """The buffer of a node, new memory if it has none yet. Raises OutOfMemory."""
        found = self._bound.get(node)
        if found is None:
            found = self._bound[node] = _allocated(node)
        return found

    def seed(self, node: Buffer, buffer: Resolved) -> None:
        """Have a node stand for a buffer from now on: graphs that were recorded are told.

        Raises InvalidArgument for another number, or another type, of elements.
        """
        for shard in buffer.shards if isinstance(buffer, MultiBuffer) else (buffer,):
            if (shard.size, shard.dtype) != (node.size, node.dtype):
                raise InvalidArgument(
                    f"a buffer of {node.size} {node.dtype} cannot be one of "
                    f"{shard.size} {shard.dtype}"
                )
        self.bind(node, buffer)

    def bind(self, node: Buffer, buffer: Resolved) -> None:
        """`seed` of what is known to fit."""
        self._bound[node] = buffer
        self.changes += 1
        self._revisions[node] = self.changes

    def revision(self, node: Buffer) -> int:
        """Another number after each `seed` of the node."""
        return self._revisions.get(node, 0)

    def remove(self, node: Buffer) -> None:
        """Forget a node's buffer. Raises KeyError if it has none."""
        del self._bound[node]
        self.changes += 1
        self._revisions[node] = self.changes

    def clear(self) -> None:
        """Forget all buffers, and all graphs that were recorded with them."""
        for node in list(self._bound):
            self.remove(node)
        self.recorded.clear()

    def __contains__(self, node: object) -> bool:
        return node in self._bound

    def __iter__(self) -> Iterator[Buffer]:
        return iter(list(self._bound))

    def __len__(self) -> int:
        return len(self._bound)


def _allocated(node: Buffer) -> Resolved:
    if isinstance(node.device, tuple):
        shards = tuple(empty_vector(node.size, node.dtype) for _ in node.device)
        return MultiBuffer(shards, node.device)
    return empty_vector(node.size, node.dtype)


@dataclass(frozen=True, slots=True)
class ExecContext:
    """What a run of a schedule is told.

    `var_vals` are values of variables by name, `inputs` what `Param` slots stand for: nodes or
    concrete buffers. `jit` says that everything is compiled, `wait` that each call is waited for.
    """

    var_vals: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[Any] = ()
    jit: bool = False
    wait: bool = False


# --- resolving ------------------------------------------------------------------------------------


def resolve(binding: Buffers, context: ExecContext, node: Node) -> Concrete:
    """The concrete buffer of a node that is on one device.

    Raises InvalidArgument for one on several, and as `resolve_buffer` does.
    """
    found = resolve_buffer(binding, context, node)
    if isinstance(found, MultiBuffer):
        raise InvalidArgument(
            f"{describe_node(node)} is on {len(found)} devices, and one is wanted\n"
            "  hint: Select(node, i) is what one of them has"
        )
    return found


def resolve_buffer(binding: Buffers, context: ExecContext, node: Node) -> Resolved:
    """The concrete buffer that a node names.

    Raises InvalidArgument for a parameter without an input, an offset that is symbolic or out of
    the source, a selection of what is not there, and for what names no buffer.
    """
    match node:
        case Param(slot):
            return _input(binding, context, slot)
        case Buffer():
            return binding[node]
        case View():
            return _viewed(resolve_buffer(binding, context, node.source), node)
        case Select(source, index):
            return _selected(resolve_buffer(binding, context, source), node, index)
        case Stack(sources):
            return _stacked([resolve_buffer(binding, context, each) for each in sources], node)
    raise InvalidArgument(
        f"{node!r} names no buffer\n  hint: a node is a Param, Buffer, View, Select or Stack"
    )


def _input(binding: Buffers, context: ExecContext, slot: int) -> Resolved:
    if not 0 <= slot < len(context.inputs):
        raise InvalidArgument(
            f"parameter {slot} is bound to no input: there are {len(context.inputs)}"
        )
    given = context.inputs[slot]
    if isinstance(given, NODES):
        if isinstance(given, Param):
            raise InvalidArgument(f"parameter {slot} is bound to another parameter, {given.slot}")
        return resolve_buffer(binding, context, given)
    if isinstance(given, Vector | np.ndarray | MultiBuffer):
        return given
    raise InvalidArgument(
        f"parameter {slot} is bound to a {type(given).__name__}, which is no buffer"
    )


def _viewed(source: Resolved, view: View) -> Resolved:
    if isinstance(source, MultiBuffer):
        return MultiBuffer(tuple(view_of(each, view) for each in source.shards), source.devices)
    return view_of(source, view)


def view_of(source: Concrete, view: View) -> Concrete:
    """A part of a concrete buffer. Raises InvalidArgument for one that is not in it."""
    offset = view.offset
    if isinstance(offset, Symbolic):
        raise InvalidArgument(
            f"the offset {offset} of a view is symbolic\n"
            "  hint: pass the whole buffer, and the offset as an argument of the kernel"
        )
    if view.layout is not None:
        return laid_out(source, int(offset), view.layout)
    if isinstance(offset, bool) or not isinstance(offset, int | np.integer):
        raise InvalidArgument(f"the offset of a view is an int, not {offset!r}")
    if offset < 0 or view.size < 0 or offset + view.size > source.size:
        raise InvalidArgument(
            f"a view of {view.size} elements from {offset} on is not within {source.size}"
        )
    array = source._array if isinstance(source, Vector) else source
    if not array.flags.c_contiguous:
        raise InvalidArgument("a view is of a buffer whose elements lie one after the other")
    return source.reshape(-1)[int(offset) : int(offset) + view.size]


def laid_out(source: Concrete, offset: int, layout: Layout) -> Concrete:
    """Elements of a concrete buffer's memory, `offset` bytes from its first byte on."""
    array = source._array if isinstance(source, Vector) else source
    first, last = extent(array, address(array))
    writable = layout.writable and bool(array.flags.writeable)
    if isinstance(source, Vector):
        memory, first = source._storage.host, first - source._storage.start
    else:
        memory, first = host_bytes(first, last - first, not writable, [array]), 0
    made: npt.NDArray[Any] = np.ndarray(
        layout.shape, layout.dtype, memory, first + offset if memory.size else 0, layout.strides
    )
    made.flags.writeable = writable
    return Vector(source._storage, made) if isinstance(source, Vector) else made


def _selected(source: Resolved, node: Node, index: int) -> Resolved:
    if not isinstance(source, MultiBuffer):
        raise InvalidArgument(f"{describe_node(node)} selects of a buffer on one device")
    if not 0 <= index < len(source):
        raise InvalidArgument(
            f"{describe_node(node)} selects number {index} of a buffer on {len(source)} devices"
        )
    return source.shards[index]


def _stacked(sources: Sequence[Resolved], node: Node) -> MultiBuffer:
    shards: list[Concrete] = []
    assert isinstance(node, Stack)
    if not sources:
        raise InvalidArgument("a stack of no buffers is on no device")
    for each in sources:
        if isinstance(each, MultiBuffer):
            raise InvalidArgument("a stack is of buffers on one device each, not on several")
        shards.append(each)
    first = shards[0]
    for shard in shards[1:]:
        if (shard.size, shard.dtype) != (first.size, first.dtype):
            raise InvalidArgument(
                f"a stack is of equal buffers, not of {first.size} {first.dtype} and "
                f"{shard.size} {shard.dtype}"
            )
    devices = [each.device if isinstance(each, Buffer) else None for each in node.sources]
    return MultiBuffer(tuple(shards), tuple(d if isinstance(d, str) else None for d in devices))


def describe_node(node: Any) -> str:
    """A node in words, for errors."""
    match node:
        case Param(slot):
            return f"parameter {slot}"
        case Buffer(size, dtype):
            return f"a buffer of {size} {dtype}"
        case View(source):
            return f"a view of {describe_node(source)}"
        case Select(source, index):
            return f"number {index} of {describe_node(source)}"
        case Stack(sources):
            return f"a stack of {len(sources)} buffers"
        case _:
            return repr(node)
