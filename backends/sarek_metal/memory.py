"""What a launch gives a kernel, as Metal takes it: buffers, and a structure of all numbers.

Memory of the host is memory of the device: see `MetalMemory`.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarek_metal.driver import Access
from sarek_numba.ir.nodes import ParamDecl
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.allocator import Allocator
from sarek_numba.runtime.device import Bytes
from sarek_numba.runtime.pinned import PinnedMemory

PAGE = mmap.PAGESIZE

# Numbers in memory, little-endian: Metal Shading Language Specification, section 2.1
_FORMATS = {
    Scalar.BOOL: "?",
    Scalar.INT8: "b",
    Scalar.INT16: "h",
    Scalar.INT32: "i",
    Scalar.INT64: "q",
    Scalar.UINT8: "B",
    Scalar.UINT16: "H",
    Scalar.UINT32: "I",
    Scalar.UINT64: "Q",
    Scalar.FLOAT32: "f",
}


class Layout:
    """Where the arguments of a kernel go, in the order that `codegen.cfamily` gives them.

    `buffers` are the positions of parameters that are memory, by their places; the numbers' one
    structure, laid out as in C, has the place behind these. `size` is its bytes, 0 where there is
    none.
    """

    def __init__(self, params: Sequence[ParamDecl]) -> None:
        types = [param.var.type for param in params]
        self.buffers = [k for k, type in enumerate(types) if not isinstance(type, Scalar)]
        self._numbers = [k for k, type in enumerate(types) if isinstance(type, Scalar)]
        scalars = [type for type in types if isinstance(type, Scalar)]
        text, at = "<", 0
        for scalar in scalars:
            size = max(8, scalar.bits) // 8
            text += "x" * (-at % size) + _FORMATS[scalar]
            at += -at % size + size
        widest = max((max(8, scalar.bits) // 8 for scalar in scalars), default=1)
        self._struct = struct.Struct(text + "x" * (-at % widest))
        self.size = self._struct.size

    def pack(self, arguments: Sequence[Any]) -> bytes:
        """The structure of the numbers."""
        return self._struct.pack(*(arguments[k] for k in self._numbers))


# --- memory ---------------------------------------------------------------------------------------

_SHARED = 0  # MTLResourceStorageModeShared
_ALIGNMENT = 16  # of what begins within a buffer: no type of the language has more
_LEAST = 16  # bytes of a buffer: there are no empty ones


@dataclass(slots=True, eq=False)
class Held:
    """Host bytes in use by a device: an MTLBuffer, and where in it they begin.

    `copy` is the buffer's own memory where it is not that of the host.
    """

    buffer: Any
    offset: int
    host: Bytes
    copy: Bytes | None = None
    written: bool = False


@dataclass(slots=True, eq=False)
class Part:
    """A place within a buffer."""

    buffer: Any
    offset: int
    whole: Held


class MetalMemory:
    """See `sarek_numba.runtime.device.DeviceMemory`. The pages in which host bytes lie are a buffer
    without a copy; bytes that begin at odd places, or in pages that may not be written, are copied.
    """

    allocator: Allocator | None = None
    pinned: PinnedMemory | None = None

    def __init__(self, access: Access) -> None:
        self._access = access
        self._most = int(access.device.maxBufferLength())

    def hold(self, memory: Bytes) -> Held:
        """A buffer of the pages, or one with memory of its own."""
        self._access.refuse_lost()
        held = self._pages(memory) if memory.size else None
        return held or self._own(memory)

    def _pages(self, memory: Bytes) -> Held | None:
        """The whole pages that the bytes are in; None where they cannot be a buffer."""
        start = _address(memory)
        first = start // PAGE * PAGE
        length = -(-(start + memory.size) // PAGE) * PAGE - first
        if start % _ALIGNMENT or length > self._most:
            return None
        pages = np.asarray(_Pages(first, length))
        with self._access.framework.pool():
            buffer = self._access.device.newBufferWithBytesNoCopy_length_options_deallocator_(
                pages, length, _SHARED, None
            )
        if buffer is None or _address(_contents(buffer, length)) != first:
            return None
        return Held(buffer, start - first, memory)

    def _own(self, memory: Bytes) -> Held:
        size = max(memory.size, _LEAST)
        if size > self._most:
            raise self._access.out_of_memory(size)
        with self._access.framework.pool():
            buffer = self._access.device.newBufferWithLength_options_(size, _SHARED)
        if buffer is None:
            raise self._access.out_of_memory(size)
        return Held(buffer, 0, memory, _contents(buffer, size)[: memory.size])

    def send(self, buffer: Held, first: int, last: int) -> None:
        """From the host, where that is not its memory."""
        if buffer.copy is not None:
            buffer.copy[first:last] = buffer.host[first:last]

    def fetch(self, buffer: Held, first: int, last: int) -> None:
        """To the host, where that is not its memory."""
        if buffer.copy is not None:
            buffer.host[first:last] = buffer.copy[first:last]

    def part(self, buffer: Held, first: int, last: int, *, written: bool) -> Part:
        """A place in the buffer: a kernel's `device` pointer needs its type's alignment alone."""
        return Part(buffer.buffer, buffer.offset + first, buffer)

    def begin_part(self, part: Part, handle: Any = None) -> None:
        """A part is the buffer's memory."""

    def end_part(self, part: Part, handle: Any = None) -> bool:
        """A part is the buffer's memory."""
        return False

    def handle(self, buffer: Held) -> Any:
        """The `MTLBuffer`."""
        return buffer.buffer

    def release(self, buffer: Held) -> None:
        """With the last reference: no launch is pending."""
        buffer.buffer = buffer.copy = None


class _Pages:
    """Pages of the host, as NumPy takes them."""

    def __init__(self, start: int, size: int) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (size,),
            "data": (start, False),
        }


def _contents(buffer: Any, size: int) -> Bytes:
    """The memory of a buffer."""
    return np.frombuffer(buffer.contents().as_buffer(size), np.uint8)


def _address(memory: Bytes) -> int:
    where: int = memory.__array_interface__["data"][0]
    return where
