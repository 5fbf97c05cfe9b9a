"""Launches on queues: what they wait for is put before them, and what they use lives on.

A launch whose arrays are all vectors in the device's memory returns when the queue has it. One that
has arrays of NumPy, a report, or memory in a layout that the device cannot address, brings it back
and so returns when it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from sarek_numba.runtime.device import DeviceMemory, Driver
from sarek_numba.runtime.memory import AnyArray, Arrangement, bound_regions
from sarek_numba.runtime.storage import Storage
from sarek_numba.runtime.work import Work, WorkQueue

Start = Callable[[Sequence[Any]], Any]
"""Gives the queue a launch with a buffer for each region; gives its mark."""


@dataclass(frozen=True, slots=True)
class Use:
    """Bytes of a storage, and the part of the device's buffer that stands for them."""

    storage: Storage
    first: int
    last: int
    written: bool
    part: Any


class Held:
    """What the vectors of one launch are on the device; `hold` is for `bound_regions`."""

    def __init__(self, queue: WorkQueue) -> None:
        self.queue = queue
        self.uses: list[Use] = []

    def hold(
        self,
        memory: DeviceMemory,
        storage: Storage,
        first: int,
        last: int,
        written: bool,
        stack: ExitStack,
    ) -> Any:
        """Bytes of a storage where the device keeps them, behind other work on them."""
        if first == last:
            first = last = 0
        buffer = storage.send(memory, first, last, self.queue)
        storage.put_behind(self.queue, first, last, written=written)
        part = memory.part(buffer, first, last, written=written)
        if written:
            stack.callback(storage.written_on, memory, first, last)
        self.uses.append(Use(storage, first, last, written, part))
        return part

    def enqueue(self, memory: DeviceMemory | None, start: Callable[[], Any]) -> Work:
        """Give the queue a launch between what its parts need, and note what it uses."""
        queue = self.queue
        with queue.lock:
            for use in self.uses:
                assert memory is not None
                memory.begin_part(use.part, queue.handle)
            mark = start()
            ends = [memory.end_part(use.part, queue.handle) for use in self.uses if memory]
            if any(ends):
                mark = queue.queues.mark(queue.handle)
            queue.queues.submit(queue.handle)
            work = Work(queue, mark, (start, self.uses))
            queue.add(work)
        for use in self.uses:
            use.storage.used_by(work, use.first, use.last, written=use.written)
        return work


def enqueue(
    driver: Driver,
    queue: WorkQueue,
    arrangement: Arrangement,
    arrays: Sequence[AnyArray],
    read: Set[int],
    written: Set[int],
    storages: Mapping[int, Storage],
    start: Start,
    report: Any = None,
) -> None:
    """Give a launch to a queue; returns when its results are where the caller looks for them.

    `report` is bound as one more buffer. Raises BackendError.
    """
    held = Held(queue)
    with ExitStack() as stack:
        own: list[Any] = []
        if report is not None:
            own.append(driver.bind(report, read=True, written=True))
            stack.callback(driver.unbind, own[0])
        regions = bound_regions(driver, arrangement, arrays, read, written, storages, held.hold)
        buffers = [*stack.enter_context(regions), *own]
        work = held.enqueue(driver.memory, lambda: start(buffers))
        if len(held.uses) < len(buffers):
            work.wait("argument")
