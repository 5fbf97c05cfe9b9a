"""Work that a device was given and may not have done: in which order, and which bytes it uses.

A `WorkQueue` has the work of one device in the order in which it is done. Work is remembered, with
all that it uses, until it is known to be done, whoever else has forgotten it. A `Storage` knows by
`Uses` which work reads and writes which of its bytes; who needs them waits for it, or is put behind
it where both are on one device.
"""

from __future__ import annotations

import atexit
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sarek_numba.runtime.device import Queues


_MOST_WORKS = 1024  # of one queue; who gives it more waits for the older half


class Work:
    """Something that a queue does. `mark` is how the device tells that it is done.

    `used` is what must live until then. A failure is raised to the first that waits.
    """

    __slots__ = ("mark", "number", "queue", "told", "used")

    def __init__(self, queue: WorkQueue, mark: Any, used: Any) -> None:
        self.queue = queue
        self.mark = mark
        self.used = used
        self.number = 0  # by which it stands behind other work of the queue
        self.told = False  # was its failure raised?

    def submit(self, why: str) -> None:
        """Have the device begin with it as soon as it can. `why` is for statistics."""

    def wait(self, why: str) -> None:
        """Return when it is done. Raises BackendError."""
        self.submit(why)
        try:
            if not self.told:
                self.queue.queues.wait(self.mark)
        except Exception:
            self.told = True
            raise
        finally:
            self.queue.forget_done(self.number)

    def is_done(self, number: int = 0) -> bool:
        """Whether it is done, or has failed and said so; the work of a number is done."""
        if self.told:
            return True
        status = self.queue.queues.status(self.mark)
        return status == 0 or (status > 0 and self.number <= number)


class WorkQueue:
    """Work of one device, done in the order in which it is given. Safe to use from any thread."""

    def __init__(self, queues: Queues, handle: Any) -> None:
        self.queues = queues
        self.handle = handle
        self.lock = threading.RLock()
        self.ready_keys: dict[Any, str] = {}  # see `storage.ready_key`
        self.before_work: Callable[[], None] | None = None  # called before work is remembered
        self._works: deque[Work] = deque()
        self._count = 0

    def add(self, work: Work) -> None:
        """Remember work, which is behind all that was added before."""
        forget_all_done()
        with self.lock:
            self.remember(work)

    def remember(self, work: Work) -> None:
        """As `add`, which also looks for what is done. The lock is held."""
        if self.before_work is not None:
            self.before_work()
        self.note(work)

    def note(self, work: Work) -> None:
        """As `remember`, where `before_work` was called. The lock is held."""
        self._count += 1
        work.number = self._count
        if not self._works:
            with _lock:
                _busy.add(self)
        self._works.append(work)

    def make_room(self) -> None:
        """Wait if the device is far behind."""
        if len(self._works) > _MOST_WORKS:
            with self.lock:
                work = self._works[len(self._works) // 2] if self._works else None
            if work is not None:
                work.wait("full")

    def give(self, start: Callable[[], Any], used: Any, kernel: str) -> Work:
        """Have the device do something; `start` gives it to the device and returns its mark."""
        with self.lock:
            work = Work(self, start(), used)
            self.queues.submit(self.handle)
            self.add(work)
        return work

    def follow(self, work: Work, why: str) -> None:
        """What is given from now on begins after work of another queue."""
        if work.queue is self:
            return
        if work.queue.queues is not self.queues:
            work.wait(why)  # no device knows the marks of another
            return
        work.submit(why)
        self.queues.follow(self.handle, work.mark)

    def forget_done(self, number: int = 0) -> None:
        """Drop work that is done, with what it used, unless another thread is at it.

        The work of a number is done, and so is all before it, whatever its marks say by now.
        """
        ended: list[Work] = []  # dropped without the lock: a finalizer may run
        if not self.lock.acquire(blocking=False):
            return
        try:
            while self._works and self._works[0].is_done(number):
                ended.append(self._works.popleft())
            if not self._works:
                with _lock:
                    _busy.discard(self)
        finally:
            self.lock.release()
        for work in ended:
            work.used = ()

    def submit_all(self, why: str) -> None:
        """Have the device begin with everything. A queue of a stream submits at once."""

    def finish(self, why: str) -> None:
        """Wait for all work. Raises BackendError, if some of it failed, for the first of it."""
        failures: list[Exception] = []
        try:
            self.submit_all(why)
        except Exception as error:  # what began is waited for all the same
            failures.append(error)
        with self.lock:
            pending = list(self._works)
        if pending:
            with suppress(Exception):  # asked again below, in order
                self.queues.wait(pending[-1].mark)
        for work in pending:
            if work.is_done():
                continue
            try:
                work.wait(why)
            except Exception as error:  # the rest is waited for all the same
                failures.append(error)
        self.forget_done()
        if failures:
            raise failures[0]


class Uses:
    """Which work uses which bytes of one piece of memory. Not safe for threads by itself."""

    __slots__ = ("_uses",)

    def __init__(self) -> None:
        self._uses: list[tuple[int, int, bool, Work]] = []

    def __bool__(self) -> bool:
        return bool(self._uses)

    def conflicting(
        self, first: int, last: int, written: bool, queue: WorkQueue | None = None
    ) -> list[Work]:
        """Work that must be done before bytes are read, or `written`; the oldest first.

        That of `queue`, which is in order by itself, is left out.
        """
        if self.are_of(queue):
            return []
        kept: list[tuple[int, int, bool, Work]] = []
        for use in self._uses:
            if use[3].is_done():
                use[3].queue.forget_done(use[3].number)
            else:
                kept.append(use)
        self._uses = kept
        return [
            work
            for start, end, writes, work in self._uses
            if start < last and first < end and (written or writes) and work.queue is not queue
        ]

    def are_of(self, queue: WorkQueue | None) -> bool:
        """Whether all uses are by work of one queue, which is in order by itself."""
        return all(use[3].queue is queue for use in self._uses)

    def has(self, first: int, last: int, written: bool, work: Work) -> bool:
        """Whether it is noted that work uses bytes so, and no other work is."""
        uses = self._uses
        if len(uses) != 1:
            return False
        start, end, writes, noted = uses[0]
        return noted is work and start <= first and last <= end and writes >= written

    def add(self, first: int, last: int, written: bool, work: Work) -> None:
        """Note a use, which follows all that it conflicts with; it stands for what it covers."""
        uses = self._uses
        if len(uses) == 1:  # as in most launches
            start, end, writes, earlier = uses[0]
            if first <= start and end <= last and earlier.queue is work.queue:
                uses[0] = first, last, written or writes, work
                return
        kept: list[tuple[int, int, bool, Work]] = []
        for use in uses:
            start, end, writes, earlier = use
            if not (first <= start and end <= last):
                kept.append(use)
            elif written:
                continue
            elif earlier.queue is work.queue:
                written = written or writes
            else:
                kept.append(use)
        self._uses = [*kept, (first, last, written, work)]


# --- devices that run at once ---------------------------------------------------------------------


class AtOnce:
    """`Queues` of a device whose launches are done when they return: marks are times in ns."""

    def open(self) -> Any:
        """Nothing is needed."""
        return None

    def mark(self, handle: Any) -> int:
        """The time."""
        return perf_counter_ns()

    def default(self) -> Any:
        """Nothing is needed."""
        return None

    def follow(self, handle: Any, mark: Any) -> None:
        """All that was given is done."""

    def submit(self, handle: Any) -> None:
        """All that was given is done."""

    def status(self, mark: Any) -> int:
        """It is done."""
        return 0

    def wait(self, mark: Any) -> None:
        """All that was given is done."""

    def duration_ms(self, mark: int) -> float:
        """Nothing: it was done before the mark was made."""
        return 0.0

    def elapsed_ms(self, start: int, end: int) -> float:
        """By the clock of the host."""
        return (end - start) / 1e6


AT_ONCE = AtOnce()


# --- all queues -----------------------------------------------------------------------------------

_lock = threading.Lock()
_busy: set[WorkQueue] = set()  # these have work, and live on although their streams are gone


def _with_work() -> list[WorkQueue]:
    with _lock:
        return list(_busy)


def forget_all_done() -> None:
    """Drop what is done, with what it used, in all queues."""
    for queue in _with_work():
        queue.forget_done()


def is_idle(queues: Queues | None) -> bool:
    """Whether all work of a device that was given to its queues is done."""
    for queue in _with_work():
        if queue.queues is queues:
            queue.forget_done()
            if queue._works:
                return False
    return True


def finish_all(queues: Queues | None, why: str) -> None:
    """Wait for the work of all queues of a device. Raises BackendError."""
    failures: list[Exception] = []
    for queue in _with_work():
        if queue.queues is queues:
            try:
                queue.finish(why)
            except Exception as error:  # the other queues are waited for all the same
                failures.append(error)
    if failures:
        raise failures[0]


def _at_exit() -> None:
    """No memory goes while a device works on it."""
    for queue in _with_work():
        try:
            queue.finish("exit")
        except Exception as error:  # nobody is left to handle it
            print(f"{type(error).__name__}: {error}", file=sys.stderr)


class _First:
    """What has its finalizer registered: this module's end comes before those of storages."""


_first = _First()
weakref.finalize(_first, _at_exit)  # makes weakref register its own function for the exit first
atexit.register(_at_exit)
