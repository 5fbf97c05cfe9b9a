"""Copies of host memory that stay on an OpenCL device from launch to launch.

A CPU works on the host memory itself (CL_MEM_USE_HOST_PTR); mapping a stretch and unmapping it
hands it over. Any other device has memory of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.errors import DeviceLost, OutOfMemory
from sarek_numba.runtime.allocator import Allocator
from sarek_numba.runtime.device import Bytes
from sarek_numba.runtime.pinned import PinnedMemory
from sarek_numba.runtime.work import finish_all
from sarek_opencl import driver

if TYPE_CHECKING:
    from sarek_opencl.runtime import OpenCLDriver


@dataclass(slots=True)
class Buffer:
    """Host bytes in use by a device, and the OpenCL object that stands for them."""

    memory: Any
    host: Bytes
    written: bool


@dataclass(slots=True, eq=False, weakref_slot=True)
class Held:
    """A buffer, and the host bytes that it is a copy of."""

    buffer: Any
    host: Bytes


@dataclass(slots=True, eq=False)
class Part:
    """What stands for some bytes of a buffer in a launch.

    `copied` is where those bytes begin in the buffer, if `memory` is a copy of them.
    """

    memory: Any
    whole: Held
    size: int
    copied: int | None = None
    written: bool = False


def api_arguments(arguments: Sequence[Any]) -> list[Any]:
    """Arguments of a launch as OpenCL's API takes them: memory objects and numbers."""
    return [a.memory if isinstance(a, Buffer | Part) else a for a in arguments]


class OpenCLMemory:
    """See `sarek_numba.runtime.device.DeviceMemory`."""

    def __init__(self, owner: OpenCLDriver) -> None:
        self._owner = owner
        self._alignment = max(1, int(owner.device.mem_base_addr_align) // 8)
        self.allocator = None
        if not owner.record.is_cpu:
            self.allocator = Allocator(self._allocate, _release, self._finish)
        self.pinned: PinnedMemory | None = PinnedMemory(
            self._allocate_pinned, self._release_pinned, self._finish
        )

    def hold(self, memory: Bytes) -> Held:
        """A buffer on the device; OpenCL has no empty ones."""
        if self.allocator is not None:
            return Held(self.allocator.acquire(memory.size), memory)
        if not memory.size:
            return Held(self._allocate(1), memory)
        cl, owner = driver.load(), self._owner
        access = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        with driver.check("allocating a buffer", owner.device, memory.size):
            return Held(cl.Buffer(owner.context, access, hostbuf=memory), memory)

    def _finish(self) -> None:
        finish_all(self._owner.queues, "memory")

    def _allocate(self, size: int) -> Any:
        cl, owner = driver.load(), self._owner
        limit = owner.record.limits.global_bytes
        if size > limit:  # NVIDIA's driver takes it, and fails when the buffer is used
            subject = f"allocating a buffer of {size} bytes on {owner.device.name}"
            raise OutOfMemory(f"{subject} failed: it has {limit}", size, limit)
        with driver.check("allocating a buffer", owner.device, size):
            return cl.Buffer(owner.context, cl.mem_flags.READ_WRITE, size)

    def _allocate_pinned(self, size: int) -> tuple[int, Any]:
        """A buffer of the host's that stays mapped: what CL_MEM_ALLOC_HOST_PTR gives."""
        cl, owner = driver.load(), self._owner
        with driver.check("allocating page-locked memory", owner.device, size):
            access = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
            buffer = cl.Buffer(owner.context, access, size)
            how = cl.map_flags.READ | cl.map_flags.WRITE
            view, _ = cl.enqueue_map_buffer(owner.queue, buffer, how, 0, (size,), np.uint8)
            return int(view.ctypes.data), (buffer, view)

    def _release_pinned(self, handle: tuple[Any, Any]) -> None:
        buffer, view = handle
        try:
            driver.refuse_lost(self._owner.device)
        except DeviceLost:
            _lost.append(handle)  # dropping it would ask the driver
            raise
        view.base.release(self._owner.queue)
        buffer.release()

    def send(self, buffer: Held, first: int, last: int) -> None:
        """From the host. What is mapped for writing alone is not read from the device before."""
        cl, owner = driver.load(), self._owner
        with driver.check("writing a buffer", owner.device, last - first):
            if owner.record.is_cpu:
                self._map(buffer, first, last, cl.map_flags.WRITE_INVALIDATE_REGION)
                return
            cl.enqueue_copy(owner.queue, buffer.buffer, buffer.host[first:last], dst_offset=first)

    def fetch(self, buffer: Held, first: int, last: int) -> None:
        """To the host."""
        cl, owner = driver.load(), self._owner
        with driver.check("reading a buffer back", owner.device, last - first):
            if owner.record.is_cpu:
                self._map(buffer, first, last, cl.map_flags.READ)
                return
            cl.enqueue_copy(owner.queue, buffer.host[first:last], buffer.buffer, src_offset=first)

    def _map(self, buffer: Held, first: int, last: int, how: Any) -> None:
        cl, queue = driver.load(), self._owner.queue
        view, _ = cl.enqueue_map_buffer(queue, buffer.buffer, how, first, (last - first,), np.uint8)
        view.base.release(queue).wait()

    def part(self, buffer: Held, first: int, last: int, *, written: bool) -> Part:
        """The buffer itself, a sub-buffer, or, where none may begin there, room for a copy."""
        cl, owner = driver.load(), self._owner
        size = last - first
        with driver.check("taking a part of a buffer", owner.device, size):
            if first == 0 or size == 0:
                return Part(buffer.buffer, buffer, size)
            if first % self._alignment == 0:
                return Part(buffer.buffer.get_sub_region(first, size), buffer, size)
            copy = cl.Buffer(owner.context, cl.mem_flags.READ_WRITE, size)
            return Part(copy, buffer, size, first, written)

    def begin_part(self, part: Part, handle: Any = None) -> None:
        """Fill a copy."""
        if part.copied is not None:
            self._copy(part, part.memory, part.whole.buffer, 0, part.copied, handle)

    def end_part(self, part: Part, handle: Any = None) -> bool:
        """Bring what was written to a copy back to where it belongs."""
        if part.copied is None or not part.written:
            return False
        self._copy(part, part.whole.buffer, part.memory, part.copied, 0, handle)
        return True

    def _copy(self, part: Part, to: Any, of: Any, at: int, begin: int, handle: Any) -> None:
        cl, owner = driver.load(), self._owner
        queue = handle or owner.queue
        with driver.check("copying a part of a buffer", owner.device, part.size):
            done = cl.enqueue_copy(
                queue, to, of, byte_count=part.size, dst_offset=at, src_offset=begin
            )
            if handle is None:
                done.wait()

    def transfers_from(self, source: Any) -> bool:
        """Whether bytes come from other memory without the host: that of the same context."""
        return isinstance(source, OpenCLMemory) and source._owner.context == self._owner.context

    def transfer(self, destination: Held, at: int, source: Held, first: int, size: int) -> None:
        """Copy bytes between buffers; see `sarek_numba.realize.copies.TransferringMemory`."""
        cl, owner = driver.load(), self._owner
        with driver.check("copying a buffer", owner.device, size):
            cl.enqueue_copy(
                owner.queue,
                destination.buffer,
                source.buffer,
                byte_count=size,
                dst_offset=at,
                src_offset=first,
            ).wait()

    def handle(self, buffer: Held) -> Any:
        """The `pyopencl.Buffer`."""
        return buffer.buffer

    def release(self, buffer: Held) -> None:
        """At once: no launch is pending. Memory of the device's own is kept for another."""
        if self.allocator is None:
            buffer.buffer.release()
        else:
            self.allocator.give_back(buffer.host.size, buffer.buffer)


_lost: list[Any] = []  # of devices that a parent of this process opened


def _release(buffer: Any) -> None:
    buffer.release()
