"""Work of queues by itself: what is remembered, what waits for what, and failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from sarek_numba.errors import LaunchFailed, StreamError
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.stream import Event, Stream, check_stream
from sarek_numba.runtime.work import Uses, Work, WorkQueue, _busy, finish_all
from tests.unit.fake_backend import FakeDriver, record


@dataclass(eq=False)
class FakeQueues:
    """Marks are numbers; a test says which are done (0) and which failed (-1)."""

    states: dict[int, int] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)

    def open(self) -> int:
        return len(self.events)

    def default(self) -> int:
        return -1

    def mark(self, handle: int) -> int:
        self.states[len(self.states)] = 1
        return len(self.states) - 1

    def follow(self, handle: int, mark: int) -> None:
        self.events.append(("follow", handle, mark))

    def submit(self, handle: int) -> None:
        self.events.append(("submit", handle))

    def status(self, mark: int) -> int:
        return self.states[mark]

    def wait(self, mark: int) -> None:
        self.events.append(("wait", mark))
        if self.states[mark] < 0:
            raise LaunchFailed(f"mark {mark}")
        self.states[mark] = 0

    def duration_ms(self, mark: int) -> float:
        return 0.5

    def elapsed_ms(self, start: int, end: int) -> float:
        return float(end - start)


def give(queue: WorkQueue, used: Any = ()) -> Work:
    work = Work(queue, queue.queues.mark(queue.handle), used)
    queue.add(work)
    return work


def test_waiting_for_work_forgets_all_before_it() -> None:
    """The order of a queue says that it is done, whatever its marks say."""
    queue = WorkQueue(FakeQueues(), 0)
    first, second, third = give(queue, "a"), give(queue, "b"), give(queue, "c")
    second.wait("test")
    assert (first.used, second.used, third.used) == ((), (), "c")
    assert queue in _busy
    queue.finish("test")
    assert queue not in _busy


def test_a_failure_is_told_once() -> None:
    """To whom waits for the work or for the queue, which is empty then."""
    queues = FakeQueues()
    queue = WorkQueue(queues, 0)
    works = [give(queue) for _ in range(4)]
    queues.states |= {1: -1, 2: -1}
    with pytest.raises(LaunchFailed, match="mark 1"):
        queue.finish("test")
    assert all(work.is_done() for work in works)
    assert queue not in _busy
    queue.finish("test")
    works[1].wait("test")
    failing = give(queue)
    queues.states[4] = -1
    with pytest.raises(LaunchFailed, match="mark 4"):
        failing.wait("test")
    queue.finish("test")
    give(queue)
    queues.states[5] = -1
    with pytest.raises(LaunchFailed, match="mark 5"):
        finish_all(queues, "test")
    assert queue not in _busy


def test_only_other_queues_are_followed() -> None:
    """A queue is in order by itself; work of another device is waited for."""
    here, there = FakeQueues(), FakeQueues()
    queue, beside, far = WorkQueue(here, 0), WorkQueue(here, 1), WorkQueue(there, 0)
    queue.follow(give(queue), "test")
    assert here.events == []
    queue.follow(give(beside), "test")
    assert here.events == [("follow", 0, 1)]
    queue.follow(give(far), "test")
    assert there.events == [("wait", 0)]
    queue.finish("test")
    beside.finish("test")


def test_uses_that_conflict() -> None:
    """Reads go together; whoever writes is alone with its bytes."""
    queue, other = WorkQueue(queues := FakeQueues(), 0), WorkQueue(queues, 1)
    uses = Uses()
    reading, beside, writing = give(queue), give(other), give(queue)
    uses.add(0, 10, False, reading)
    uses.add(0, 10, False, beside)
    uses.add(20, 30, True, writing)
    assert uses.conflicting(0, 40, False) == [writing]
    assert uses.conflicting(10, 20, True) == []
    assert uses.conflicting(5, 6, True) == [reading, beside]
    assert uses.conflicting(29, 31, False) == [writing]
    last = give(other)
    uses.add(0, 40, True, last)  # behind all of them
    assert uses.conflicting(0, 40, True) == [last]
    later = give(other)
    uses.add(0, 40, False, later)  # of the same queue: whoever waits for it waits for the other
    assert uses.conflicting(0, 1, False) == [later]
    queue.finish("test")
    other.finish("test")
    assert uses.conflicting(0, 40, True) == []


def test_devices_without_streams_refuse_them() -> None:
    """Making one and using one."""
    bare, device = Device(FakeDriver(record("bare"))), Device(FakeDriver(record("fake")))
    device.driver.queues = FakeQueues()  # type: ignore[assignment]
    stream = device.stream()
    assert check_stream("k", stream, device) is stream
    assert check_stream("k", None, bare) is None
    for use in (bare.stream, lambda: check_stream("k", stream, bare)):
        with pytest.raises(StreamError, match=r"'bare' has (none|no streams)") as error:
            use()
        assert error.value.reason == "unsupported"
    with pytest.raises(StreamError) as error:
        check_stream("k", 0, device)
    assert str(error.value) == (
        "kernel 'k': 0 is no stream of device 'fake'\n  hint: device.stream() makes one"
    )
    assert error.value.reason == "foreign"


def test_times_between_events() -> None:
    """Both are waited for."""
    device = Device(FakeDriver(record("fake")))
    device.driver.queues = queues = FakeQueues()  # type: ignore[assignment]
    stream: Stream = device.stream()
    events: list[Event] = [stream.record() for _ in range(3)]
    assert events[0].elapsed_ms(events[2]) == 2.0
    assert queues.events == [("wait", 0), ("wait", 2)]
    assert stream.queue not in _busy
