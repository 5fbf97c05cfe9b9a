"""Streams of a device, and marks of what they were given.

Most launches get no event, which costs as much as a third of a launch: the default queue counts
them, and an event is recorded when somebody asks, behind all that the stream was given by then. A
launch in a stream of the user's has an event of its own, so that who follows it follows no more.
Streams and events are used again.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from sarek_numba.runtime import telemetry
from sarek_numba.runtime.cudalike.access import check, failure
from sarek_numba.runtime.cudalike.api import Api, ApiError

if TYPE_CHECKING:
    from sarek_numba.runtime.cudalike.owner import Owner


class Stream:
    """A stream of the driver, and how far it is.

    A number is taken after the work was given, so an event that is recorded later is behind all
    work of numbers that were taken before. `given` is one of the last of them, not always the last.
    """

    __slots__ = ("_event", "_lock", "_numbers", "_pool", "_probed", "done", "each", "given", "raw")

    def __init__(self, raw: Any, event: Any, pool: deque[tuple[Any, Any]], *, each: bool) -> None:
        self.raw = raw
        self.each = each  # does each launch have an event?
        self._numbers = itertools.count(1)
        self.given = 0
        self.done = 0  # all up to this number is
        self._event = event
        self._probed = 0  # the number that the event stands for
        self._pool = pool
        self._lock = threading.Lock()

    def __del__(self) -> None:
        self._pool.append((self.raw, self._event))

    def next(self) -> int:
        """The number of what was just given."""
        number = self.given = next(self._numbers)
        return number

    def probe(self, api: Api, number: int) -> Any:
        """The event, behind the work of a number."""
        with self._lock:
            if self._probed < number:
                reached = max(self.given, number)
                api.record(self._event, self.raw)
                self._probed = reached
            return self._event

    def has_done(self, api: Api, number: int) -> bool:
        """Whether the work of a number is done."""
        for _ in range(2):  # the event as it is, then one for the number
            if self.done >= number:
                return True
            with self._lock:
                probed = self._probed
                if probed > self.done:
                    if not api.has_happened(self._event):
                        return False
                    self.done = max(self.done, probed)
                    continue
            self.probe(api, number)
        return self.done >= number

    def note_done(self, number: int) -> None:
        """The work up to a number is done."""
        with self._lock:
            self.done = max(self.done, number)

    def wait(self, api: Api, number: int) -> None:
        """Return when the work of a number is done."""
        if self.done >= number:
            return
        with self._lock:
            probed, reached = self._probed, max(self.given, number)
        if probed >= number:
            api.wait_for(self._event)
            reached = probed
        else:
            api.finish_stream(self.raw)
        self.note_done(reached)


class Mark:
    """What was given to a stream up to a number; with an event that is of just that."""

    __slots__ = ("_pool", "event", "given", "start", "stream")

    def __init__(self, stream: Stream, given: int, event: Any = None, pool: Any = None) -> None:
        self.stream = stream
        self.given = given
        self.event = event
        self.start: Any = None  # an event before it, where it is measured
        self._pool = pool

    def __del__(self) -> None:
        if self._pool is not None:
            self._pool.append(self.event)
            if self.start is not None:
                self._pool.append(self.start)


class StreamQueues:
    """See `sarek_numba.runtime.device.Queues`: a handle is a `Stream`."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._streams: deque[tuple[Any, Any]] = deque()
        self._plain: deque[Any] = deque()  # events
        self._timed: deque[Any] = deque()

    def open(self) -> Stream:
        """A stream, each of whose launches has an event."""
        return self.stream(each=True)

    def stream(self, *, each: bool) -> Stream:
        """A stream that was used before, or a new one. Raises BackendError."""
        access = self._owner.access
        with check("making a stream", access):
            try:
                raw, event = self._streams.pop()
            except IndexError:
                raw, event = access.api.stream(), access.api.event(timed=False)
        return Stream(raw, event, self._streams, each=each)

    def default(self) -> Stream:
        """The device's first stream."""
        return self._owner.stream

    def last(self) -> Mark:
        """What the device's first stream was given last."""
        stream = self._owner.stream
        return Mark(stream, stream.given)

    def event(self, *, timed: bool) -> tuple[Any, deque[Any]]:
        """An event, and where it goes when nobody has it any more. The context is current."""
        pool = self._timed if timed else self._plain
        try:
            return pool.pop(), pool
        except IndexError:
            return self._owner.access.api.event(timed=timed), pool

    def begin(self, handle: Stream) -> Any:
        """Where launches are measured, a timed event in front of one. The context is current."""
        if not telemetry.is_measuring():
            return None
        start, _ = self.event(timed=True)
        self._owner.access.api.record(start, handle.raw)
        return start

    def launched(self, handle: Stream, start: Any = None) -> Mark:
        """The mark of what was just given to a stream. The context is current."""
        number = handle.next()
        if start is None and not handle.each:
            return Mark(handle, number)
        event, pool = self.event(timed=start is not None)
        self._owner.access.api.record(event, handle.raw)
        mark = Mark(handle, number, event, pool)
        mark.start = start
        return mark

    def mark(self, handle: Stream) -> Mark:
        """An event with a time."""
        access = self._owner.access
        with check("recording an event", access):
            event, pool = self.event(timed=True)
            number = handle.next()
            access.api.record(event, handle.raw)
            return Mark(handle, number, event, pool)

    def follow(self, handle: Stream, mark: Mark) -> None:
        """By an event; nothing where it has happened."""
        access = self._owner.access
        if mark.stream.done >= mark.given:
            return
        with check("waiting for an event", access):
            event = mark.event
            if event is None:
                event = mark.stream.probe(access.api, mark.given)
            access.api.follow(handle.raw, event)

    def submit(self, handle: Stream) -> None:
        """A stream begins at once."""

    def status(self, mark: Mark) -> int:
        """By an event, if it is not known."""
        stream, access = mark.stream, self._owner.access
        if stream.done >= mark.given:
            return 0
        if access.is_lost:
            return -1
        try:
            pushed = access.enter()
            try:
                if mark.event is None:
                    return 0 if stream.has_done(access.api, mark.given) else 1
                if not access.api.has_happened(mark.event):
                    return 1
            finally:
                if pushed:
                    access.leave()
        except ApiError as error:
            failure(error, "a launch", access)
            return -1
        stream.note_done(mark.given)
        return 0

    def wait(self, mark: Mark) -> None:
        """For one event, or all that the stream was given."""
        access = self._owner.access
        with check("a launch", access):
            if mark.event is None:
                mark.stream.wait(access.api, mark.given)
            elif mark.stream.done < mark.given:
                access.api.wait_for(mark.event)
                mark.stream.note_done(mark.given)

    def duration_ms(self, mark: Mark) -> float:
        """By the clock of the device; 0 for what was not measured."""
        return 0.0 if mark.start is None else self._between(mark.start, mark.event)

    def elapsed_ms(self, start: Mark, end: Mark) -> float:
        """By the clock of the device."""
        return self._between(start.event, end.event)

    def _between(self, start: Any, end: Any) -> float:
        access = self._owner.access
        with check("reading the time of an event", access):
            return access.api.elapsed_ms(start, end)
