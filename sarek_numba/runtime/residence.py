"""The memory that work uses again and again: where the device needs it, and noted as in use.

Each time storages are locked, brought to the device if they are not there, and told what became of
them. Where a storage says that it is ready, as for launches like earlier ones, there is nothing to
bring and nothing to tell but the use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sarek_numba.runtime.device import DeviceMemory, Driver
from sarek_numba.runtime.storage import HOST, Access, Storage, ready_key
from sarek_numba.runtime.window import Window, window_for
from sarek_numba.runtime.work import Work, WorkQueue, forget_all_done

_LOOKS = 16  # uses between those that look for what is done

Start = Callable[[Any], tuple[Any, Any]]
"""Gives work to a queue; gives its mark, and what must live until it is done."""


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Bytes of a storage, and whether work uses and writes them."""

    storage: Storage
    first: int
    last: int
    used: bool
    written: bool


class _Place:
    """One storage: the bytes that are used, and those that are written, in stretches."""

    __slots__ = ("access", "key", "serial", "storage", "used", "written")

    def __init__(self, storage: Storage, spans: Sequence[Span]) -> None:
        self.storage = storage
        self.used = _merged((s.first, s.last) for s in spans if s.used or s.written)
        self.written = _merged((s.first, s.last) for s in spans if s.written)
        self.access = Access.WRITE if self.written else Access.READ if self.used else None
        self.key = ""
        self.serial = 0


def _merged(spans: Any) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        elif first < last:
            merged.append((first, last))
    return merged


class Residence:
    """Storages that work of a device uses. Not safe for threads by itself."""

    def __init__(
        self, driver: Driver, spans: Sequence[Span], before: Residence | None = None
    ) -> None:
        """`before` is another one, whose buffers are known."""
        known = {} if before is None else before.serials
        by_storage: dict[Storage, list[Span]] = {}
        for span in spans:
            by_storage.setdefault(span.storage, []).append(span)
        self._memory = driver.memory
        self._queue: Window | None = None if driver.memory is None else window_for(driver)
        self._places = [_Place(s, by_storage[s]) for s in sorted(by_storage, key=id)]
        for place in self._places:
            place.serial = known.get(place.storage, 0)
            place.key = (
                HOST[place.access]
                if self._memory is None
                else ready_key(self._memory, self._queue, place.access)
            )
        self._uses = [
            (place.storage._uses.add, first, last, place.access is Access.WRITE)
            for place in self._places
            for first, last in place.used or [(0, 0)]
        ]
        self._count = 0

    @property
    def serials(self) -> dict[Storage, int]:
        """The numbers of the buffers that were last used."""
        return {place.storage: place.serial for place in self._places}

    def run(self, moved: Callable[[set[Storage]], None], start: Start) -> Work | None:
        """Have work begin, with its memory ready. Without a queue it is done then, and is None.

        `moved` is told before which storages have another buffer than the time before. Raises
        BackendError.
        """
        places = self._places
        for place in places:
            place.storage.lock.acquire()
        try:
            for place in places:
                if place.storage.ready.get(place.key) != place.serial:
                    break
            else:
                return self._started(start, ready=True)
            if self._memory is None:
                self._come_to_host()
            else:
                self._bring(self._memory, moved)
            return self._started(start, ready=False)
        finally:
            for place in places:
                place.storage.lock.release()

    def _started(self, start: Start, *, ready: bool) -> Work | None:
        queue, memory = self._queue, self._memory
        if queue is None:
            try:
                start(None)
            finally:
                if not ready:
                    self._leave_on_host()
            return None
        self._count += 1
        if not self._count % _LOOKS:
            forget_all_done()
        WorkQueue.make_room(queue)
        with queue.lock:
            if queue.waiting:
                queue.submit_all("graph")
            if queue.before_work is not None:
                queue.before_work()
            mark, used = start(queue.handle)
            work = Work(queue, mark, used)
            queue.note(work)
        assert memory is not None
        if ready:  # for this queue, and locked
            for add, first, last, written in self._uses:
                add(first, last, written, work)
            return work
        for place in self._places:
            storage = place.storage
            for first, last in place.written:
                storage.written_on(memory, first, last)
            if place.access is None:
                storage.used_by(work, 0, 0, written=False)
            for first, last in place.used:
                storage.used_by(work, first, last, written=place.access is Access.WRITE)
            storage.note(memory, place.access, queue)
        return work

    def _bring(self, memory: DeviceMemory, moved: Callable[[set[Storage]], None]) -> None:
        """Have all bytes in the device's memory, and the queue behind other work on them."""
        queue, others = self._queue, set()
        assert queue is not None
        for place in self._places:
            storage, is_written = place.storage, place.access is Access.WRITE
            storage.send(memory, 0, 0, queue)
            for first, last in place.used:
                storage.send(memory, first, last, queue)
                storage.put_behind(queue, first, last, written=is_written)
            serial = storage.serial(memory)
            if serial != place.serial:
                place.serial = serial
                others.add(storage)
        if others:
            moved(others)

    def _come_to_host(self) -> None:
        for place in self._places:
            for first, last in place.used:
                place.storage.fetch(first, last)
            for first, last in place.written:
                place.storage.claim(first, last)

    def _leave_on_host(self) -> None:
        for place in self._places:
            for first, last in place.written:
                place.storage.wrote(first, last)
            place.storage.note(None, place.access, None)
