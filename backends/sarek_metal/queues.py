"""Command queues of a Metal device. Each piece of work is a command buffer, which tells its times.

A queue has an event of its own, whose value grows with each piece: another queue goes on behind one
by waiting for its value. A piece that fails may leave the value as it is, so who waits on the host
sets it then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sarek_metal import driver

if TYPE_CHECKING:
    from sarek_metal.runtime import MetalDriver


class Mark:
    """A command buffer of a stream, and what stands before it in other streams."""

    __slots__ = ("buffer", "followed", "number", "stream")

    def __init__(self, stream: Stream, number: int, buffer: Any) -> None:
        self.stream = stream
        self.number = number
        self.buffer = buffer
        self.followed = tuple(stream.followed)


class Stream:
    """A command queue, and its event. Safe to use from any thread."""

    def __init__(self, access: driver.Access) -> None:
        self._access = access
        self.raw = access.device.newCommandQueue()
        self.event = access.device.newSharedEvent()
        self.lock = threading.Lock()
        self.number = 0
        self.followed: list[Mark] = []  # marks of other streams that may not be done

    def give(self, encode: Callable[[Any], None]) -> Mark:
        """Have the device do what `encode` writes into a command buffer. Raises BackendError."""
        access = self._access
        access.refuse_lost()
        with self.lock, access.framework.pool():
            buffer = self.raw.commandBuffer()
            if buffer is None:
                raise access.failure(None, "making a command buffer")
            encode(buffer)
            self.number += 1
            buffer.encodeSignalEvent_value_(self.event, self.number)
            buffer.commit()
            self.followed = [mark for mark in self.followed if mark.buffer.status() < driver.FAILED]
            self.followed = [
                mark for mark in self.followed if mark.buffer.status() != driver.COMPLETED
            ]
            return Mark(self, self.number, buffer)


class MetalQueues:
    """See `sarek_numba.runtime.device.Queues`: a handle is a `Stream`."""

    def __init__(self, owner: MetalDriver) -> None:
        self._owner = owner
        self._scratch: Any = None

    def open(self) -> Stream:
        """A queue of its own."""
        self._owner.access.refuse_lost()
        return Stream(self._owner.access)

    def default(self) -> Stream:
        """The device's first queue."""
        return self._owner.stream

    def mark(self, handle: Stream) -> Mark:
        """A fill of a few bytes, which has a time."""
        if self._scratch is None:
            self._scratch = self._owner.access.device.newBufferWithLength_options_(16, 0)

        def encode(buffer: Any) -> None:
            encoder = buffer.blitCommandEncoder()
            encoder.fillBuffer_range_value_(self._scratch, (0, 16), 0)
            encoder.endEncoding()

        return handle.give(encode)

    def follow(self, handle: Stream, mark: Mark) -> None:
        """By the value of an event; nothing where the work is done or has failed."""
        if mark.buffer.status() in (driver.COMPLETED, driver.FAILED):
            return
        with handle.lock:
            handle.followed.append(mark)
        handle.give(lambda buffer: buffer.encodeWaitForEvent_value_(mark.stream.event, mark.number))

    def submit(self, handle: Stream) -> None:
        """A command buffer begins as soon as it can."""

    def status(self, mark: Mark) -> int:
        """That of the command buffer."""
        status = int(mark.buffer.status())
        return 0 if status == driver.COMPLETED else -1 if status == driver.FAILED else 1

    def wait(self, mark: Mark) -> None:
        """For the command buffer. Raises BackendError."""
        self._settle(mark)
        if mark.buffer.status() == driver.FAILED:
            raise self._owner.access.failure(mark.buffer.error(), "a launch")

    def _settle(self, mark: Mark) -> None:
        """Wait for a command buffer behind what it follows, which may have failed."""
        for before in mark.followed:
            self._settle(before)
        mark.followed = ()
        with self._owner.access.framework.pool():
            mark.buffer.waitUntilCompleted()
            event = mark.stream.event
            if mark.buffer.status() == driver.FAILED and event.signaledValue() < mark.number:
                event.setSignaledValue_(mark.number)

    def duration_ms(self, mark: Mark) -> float:
        """By the clock of the device."""
        return 1e3 * (float(mark.buffer.GPUEndTime()) - float(mark.buffer.GPUStartTime()))

    def elapsed_ms(self, start: Mark, end: Mark) -> float:
        """By the clock of the device."""
        return 1e3 * (float(end.buffer.GPUEndTime()) - float(start.buffer.GPUEndTime()))
