"""Memory of a Vulkan device, every buffer a 64-bit address.

There are three ways. `imported`: a CPU device works on the pages of host memory itself
(VK_EXT_external_memory_host), nothing is copied. `mapped`: host and device share one memory, and
the host copies to and from where the buffer lies. `staged`: the device has memory of its own, and
copies to and from a ring of chunks that the host sees.

Devices allow few allocations (maxMemoryAllocationCount), so buffers are spans of large blocks.
"""

from __future__ import annotations

import threading
from bisect import insort
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sarek_numba.errors import OutOfMemory
from sarek_numba.runtime.allocator import Allocator
from sarek_numba.runtime.device import Bytes
from sarek_numba.runtime.pinned import PinnedMemory
from sarek_vulkan import driver
from sarek_vulkan.logical import MAPPED, Block, Logical
from sarek_vulkan.physical import DEVICE_LOCAL, HOST_MEMORY, HOST_VISIBLE, Physical

if TYPE_CHECKING:
    from sarek_vulkan.runtime import VulkanDriver

IMPORTED, SHARED, STAGED = "imported", "mapped", "staged"

_BLOCK = 64 << 20  # of which buffers are parts; larger buffers have a block of their own
_ALIGNMENT = 256
_CHUNK = 4 << 20
_CHUNKS = 4


def way_of(physical: Physical) -> str:
    """How a device's memory is reached."""
    if physical.is_cpu and HOST_MEMORY in physical.extensions:
        return IMPORTED
    shared = MAPPED | DEVICE_LOCAL
    largest = max(range(len(physical.heaps)), key=lambda k: physical.heaps[k])
    is_shared = any(t.heap == largest and t.flags & shared == shared for t in physical.memory_types)
    integrated = physical.kind in (1, 4)
    return SHARED if integrated and is_shared else STAGED


@dataclass(slots=True, eq=False)
class Span:
    """A part of a block. `address` is the device's."""

    block: Block
    offset: int
    size: int
    address: int

    @property
    def buffer(self) -> Any:
        """The VkBuffer of the whole block."""
        return self.block.buffer


@dataclass(slots=True, eq=False)
class Buffer:
    """Bytes of a device: for one launch of `bind`, or what is held for a vector."""

    span: Span
    host: Bytes
    written: bool = False
    whole: Any = None  # a block that is its own

    @property
    def address(self) -> int:
        """The device's, of the first byte."""
        return self.span.address


@dataclass(slots=True, eq=False)
class Part:
    """Some bytes of a buffer in a launch: an address is all that it takes."""

    whole: Buffer
    first: int
    size: int

    @property
    def address(self) -> int:
        """The device's, of the first byte."""
        return self.whole.span.address + self.first

    @property
    def span(self) -> Span:
        """The bytes as a part of a block."""
        span = self.whole.span
        return Span(span.block, span.offset + self.first, self.size, self.address)


# --- spans of blocks ------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Shelf:
    """A block and its gaps: sorted (offset, size)."""

    block: Block
    gaps: list[tuple[int, int]] = field(default_factory=list)

    def take(self, size: int) -> int | None:
        for k, (offset, room) in enumerate(self.gaps):
            if room >= size:
                if room == size:
                    del self.gaps[k]
                else:
                    self.gaps[k] = (offset + size, room - size)
                return offset
        return None

    def put(self, offset: int, size: int) -> None:
        insort(self.gaps, (offset, size))
        merged: list[tuple[int, int]] = []
        for start, room in self.gaps:
            if merged and sum(merged[-1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + room)
            else:
                merged.append((start, room))
        self.gaps = merged

    @property
    def is_empty(self) -> bool:
        return self.gaps == [(0, self.block.size)]


class Spans:
    """Spans of blocks of one kind of memory. Safe to use from any thread."""

    def __init__(self, logical: Logical, *wishes: int) -> None:
        self._logical = logical
        self._wishes = wishes
        self._shelves: list[_Shelf] = []
        self._lock = threading.Lock()

    def allocate(self, size: int) -> Span:
        """A span of at least so many bytes. Raises OutOfMemory."""
        size = max(_ALIGNMENT, -(-size // _ALIGNMENT) * _ALIGNMENT)
        if size > _BLOCK // 2:
            return self._span(self._logical.allocate(size, *self._wishes), 0, size)
        with self._lock:
            for shelf in self._shelves:
                offset = shelf.take(size)
                if offset is not None:
                    return self._span(shelf.block, offset, size)
            try:
                block = self._logical.allocate(_BLOCK, *self._wishes)
            except OutOfMemory:  # a whole block is more than was asked for
                return self._span(self._logical.allocate(size, *self._wishes), 0, size)
            shelf = _Shelf(block, [(size, _BLOCK - size)])
            self._shelves.append(shelf)
            return self._span(block, 0, size)

    def _span(self, block: Block, offset: int, size: int) -> Span:
        return Span(block, offset, size, block.address + offset)

    def release(self, span: Span) -> None:
        """Give a span up; a block without spans goes back to the device."""
        with self._lock:
            for shelf in self._shelves:
                if shelf.block is span.block:
                    shelf.put(span.offset, span.size)
                    if not shelf.is_empty:
                        return
                    self._shelves.remove(shelf)
                    break
        self._logical.free(span.block)

    @property
    def blocks(self) -> int:
        """How many blocks are shared by buffers."""
        return len(self._shelves)


# --- the contract ---------------------------------------------------------------------------------


class VulkanMemory:
    """See `sarek_numba.runtime.device.DeviceMemory`."""

    def __init__(self, owner: VulkanDriver, way: str) -> None:
        self._owner = owner
        self.way = way
        self.allocator = None if way == IMPORTED else Allocator(self._allocate, self._release)
        self.pinned: PinnedMemory | None = (
            PinnedMemory(self._allocate_pinned, self._release_pinned) if way == STAGED else None
        )
        self._pinned: dict[int, Block] = {}
        self._made: Spans | None = None
        self._empty: Span | None = None
        self._ended: deque[Span] = deque()
        self._lock = threading.RLock()
        self._ring: list[_Chunk] = []

    @property
    def _spans(self) -> Spans:
        with self._lock:
            if self._made is None:
                wishes = (
                    (MAPPED | DEVICE_LOCAL, MAPPED) if self.way == SHARED else (DEVICE_LOCAL, 0)
                )
                if self.way == IMPORTED:
                    wishes = (MAPPED, MAPPED)
                self._made = Spans(self._owner.logical, *wishes)
            return self._made

    def _allocate(self, size: int) -> Span:
        return self._spans.allocate(size)

    def _release(self, span: Span) -> None:
        self._spans.release(span)

    def _allocate_pinned(self, size: int) -> tuple[int, Block]:
        """Memory of the host's that the device copies to and from without a chunk between."""
        block = self._owner.logical.staging(size)
        self._pinned[block.mapped] = block
        return block.mapped, block

    def _release_pinned(self, block: Block) -> None:
        del self._pinned[block.mapped]
        self._owner.logical.free(block)

    def _pinned_block(self, address: int) -> Block | None:
        """The page-locked memory that host bytes lie in, if they lie in any."""
        for start, block in list(self._pinned.items()):
            if start <= address < start + block.size:
                return block
        return None

    def hold(self, memory: Bytes) -> Buffer:
        """The host's pages, or a span of the device's memory."""
        if self.allocator is not None:
            return Buffer(self.allocator.acquire(memory.size), memory)
        return self.imported(memory)

    def imported(self, memory: Bytes) -> Buffer:
        """The pages that host bytes lie on, as the device's."""
        if memory.size == 0:
            with self._lock:
                if self._empty is None:
                    self._empty = self._spans.allocate(_ALIGNMENT)
                return Buffer(self._empty, memory)
        logical = self._owner.logical
        page = logical.physical.import_alignment
        start = int(memory.ctypes.data)
        first = start // page * page
        last = -(-(start + memory.size) // page) * page
        block = logical.import_host(first, last - first)
        offset = start - first
        span = Span(block, offset, memory.size, block.address + offset)
        return Buffer(span, memory, whole=block)

    def send(self, buffer: Buffer, first: int, last: int) -> None:
        """From the host; nothing to do where its own pages are used."""
        if self.way == IMPORTED or first == last:
            return
        source = int(buffer.host.ctypes.data) + first
        if self.way == SHARED:
            _move(self._mapped(buffer, first), source, last - first)
            return
        if self._copied_directly(buffer, source, first, last, to_device=True):
            return
        with self._lock:
            lane = self._owner.transfers
            for at in range(first, last, _CHUNK):
                size = min(_CHUNK, last - at)
                chunk = self._chunk()
                _move(chunk.block.mapped, source + at - first, size)
                chunk.mark = lane.copy(chunk.block, 0, buffer.span, at, size, to_device=True)
            if chunk.mark is not None:
                lane.wait(chunk.mark)

    def fetch(self, buffer: Buffer, first: int, last: int) -> None:
        """To the host; one chunk is copied by the host while the device fills the next."""
        if self.way == IMPORTED or first == last:
            return
        target = int(buffer.host.ctypes.data) + first
        if self.way == SHARED:
            _move(target, self._mapped(buffer, first), last - first)
            return
        if self._copied_directly(buffer, target, first, last, to_device=False):
            return
        with self._lock:
            lane = self._owner.transfers
            begun: list[tuple[_Chunk, int, int]] = []
            for at in range(first, last, _CHUNK):
                size = min(_CHUNK, last - at)
                if len(begun) == _CHUNKS:
                    self._finish(target - first, *begun.pop(0))
                chunk = self._chunk()
                chunk.mark = lane.copy(chunk.block, 0, buffer.span, at, size, to_device=False)
                begun.append((chunk, at, size))
            for each in begun:
                self._finish(target - first, *each)

    def _copied_directly(
        self, buffer: Buffer, address: int, first: int, last: int, *, to_device: bool
    ) -> bool:
        """Copy between page-locked memory and the device, if the host's bytes lie there."""
        block = self._pinned_block(address) if self._pinned else None
        if block is None:
            return False
        lane, offset = self._owner.transfers, address - block.mapped
        size = last - first
        lane.wait(lane.copy(block, offset, buffer.span, first, size, to_device=to_device))
        return True

    def _finish(self, target: int, chunk: _Chunk, at: int, size: int) -> None:
        self._owner.transfers.wait(chunk.mark)
        chunk.mark = None
        _move(target + at, chunk.block.mapped, size)

    def _mapped(self, buffer: Buffer, first: int) -> int:
        return buffer.span.block.mapped + buffer.span.offset + first

    def _chunk(self) -> _Chunk:
        """The chunk of the ring that was used longest ago, whose copy is done."""
        if len(self._ring) < _CHUNKS:
            chunk = _Chunk(self._owner.logical.staging(_CHUNK))
        else:
            chunk = self._ring.pop(0)
            if chunk.mark is not None:
                self._owner.transfers.wait(chunk.mark)
                chunk.mark = None
        self._ring.append(chunk)
        return chunk

    def temporary(self, size: int) -> Span:
        """Room for a copy of some bytes. Raises OutOfMemory."""
        while self._ended:
            self._spans.release(self._ended.popleft())
        return self._spans.allocate(size)

    def end_temporary(self, span: Span) -> None:
        """Give such room up; finalizers do, which may not wait for a lock."""
        self._ended.append(span)

    def part(self, buffer: Buffer, first: int, last: int, *, written: bool) -> Part:
        """An address within the buffer."""
        return Part(buffer, first, last - first)

    def begin_part(self, part: Part, handle: Any = None) -> None:
        """A part is the buffer's own memory."""

    def end_part(self, part: Part, handle: Any = None) -> bool:
        """A part is the buffer's own memory."""
        return False

    def handle(self, buffer: Buffer) -> Span:
        """The buffer's place: `buffer` (a VkBuffer), `offset`, `size`, `address`."""
        return buffer.span

    def release(self, buffer: Buffer) -> None:
        """Imported pages are let go; a span is kept for another."""
        if self.allocator is not None:
            self.allocator.give_back(buffer.host.size, buffer.span)
        elif buffer.whole is not None:
            self._owner.logical.free(buffer.whole)
            buffer.whole = None


@dataclass(slots=True, eq=False)
class _Chunk:
    """A piece of host memory that the device copies to and from; `mark` of its last copy."""

    block: Block
    mark: Any = None


def _move(target: int, source: int, size: int) -> None:
    ffi = driver.ffi
    ffi.memmove(ffi.cast("char *", target), ffi.cast("char *", source), size)


__all__ = ["HOST_VISIBLE", "IMPORTED", "SHARED", "STAGED", "Buffer", "Part", "Span", "VulkanMemory"]
