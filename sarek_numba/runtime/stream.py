"""Streams and events: work of a device that is done in order, beside the work of other streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sarek_numba.errors import StreamError
from sarek_numba.runtime.window import flush_device
from sarek_numba.runtime.work import AT_ONCE, Work, WorkQueue

if TYPE_CHECKING:
    from sarek_numba.runtime.registry import Device


class Stream:
    """Launches of one device in order; `device.stream()` makes one.

    A stream that nobody has any more still does the work that it was given. On a device whose
    launches are done when they return, all streams are done with everything at any time.
    """

    __slots__ = ("__weakref__", "device", "queue")

    def __init__(self, device: Device) -> None:
        queues = device.driver.queues
        if queues is None:
            raise _unsupported(device, f"device '{device.name}' has no streams")
        self.device = device
        self.queue = WorkQueue(queues, queues.open())

    @property
    def runs_at_once(self) -> bool:
        """Whether a launch is done when it returns."""
        return self.queue.queues is AT_ONCE

    def synchronize(self) -> None:
        """Wait for everything that was given to the stream. Raises BackendError."""
        flush_device(self.device.driver, "synchronize")
        self.queue.finish("synchronize")

    def record(self) -> Event:
        """An event that has happened when all that was given to the stream by now is done."""
        return Event(self)

    def wait(self, event: Event) -> None:
        """What is given to the stream from now on begins after an event.

        Where the event is of another device, this waits for it itself.
        """
        if not isinstance(event, Event):
            raise TypeError(f"a stream waits for an event, not for {event!r}")
        self.queue.follow(event.work, "event")

    def __repr__(self) -> str:
        return f"<sarek stream of {self.device.name}>"


class Event:
    """A point in the work of a stream, from `stream.record()`."""

    __slots__ = ("device", "work")

    def __init__(self, stream: Stream) -> None:
        queue = stream.queue
        self.device = stream.device
        flush_device(self.device.driver, "event")
        with queue.lock:
            self.work = Work(queue, queue.queues.mark(queue.handle), ())
            if not stream.runs_at_once:
                queue.add(self.work)

    def synchronize(self) -> None:
        """Wait until it has happened. Raises BackendError."""
        self.work.wait("event")

    @property
    def is_done(self) -> bool:
        """Whether it has happened."""
        return self.work.is_done()

    def elapsed_ms(self, other: Event) -> float:
        """Milliseconds from this event to another of the same device; waits for both.

        Raises StreamError with reason "foreign" for an event of another device.
        """
        if not isinstance(other, Event):
            raise TypeError(f"time passes between two events; {other!r} is none")
        if other.device is not self.device:
            raise StreamError(
                f"an event of device '{self.device.name}' and one of '{other.device.name}' are "
                "timed by different clocks\n  hint: record both on streams of one device",
                reason="foreign",
            )
        self.synchronize()
        other.synchronize()
        return self.work.queue.queues.elapsed_ms(self.work.mark, other.work.mark)

    def __repr__(self) -> str:
        return f"<sarek event of {self.device.name}>"


def _unsupported(device: Device, what: str) -> StreamError:
    return StreamError(
        f"{what}\n  hint: leave the stream out; a launch has finished when it returns",
        reason="unsupported",
    )


def check_stream(kernel: str, stream: object, device: Device) -> Stream | None:
    """The stream of a launch, if it is one of the device. Raises StreamError.

    None stands for no stream. Nothing that is asked for is silently left out.
    """
    if stream is None:
        return None
    if device.driver.queues is None:
        what = f"kernel '{kernel}': stream {stream!r} is refused: device '{device.name}' has none"
        raise _unsupported(device, what)
    if not isinstance(stream, Stream):
        raise StreamError(
            f"kernel '{kernel}': {stream!r} is no stream of device '{device.name}'\n"
            "  hint: device.stream() makes one",
            reason="foreign",
        )
    if stream.device is not device:
        raise StreamError(
            f"kernel '{kernel}': the stream is one of device '{stream.device.name}', and the "
            f"launch is on '{device.name}'\n"
            "  hint: launch(..., device=stream.device, stream=stream)",
            reason="foreign",
        )
    return stream
