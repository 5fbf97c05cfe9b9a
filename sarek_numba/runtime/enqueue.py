"""Launches on queues: what they wait for is put before them, and what they use lives on.

A launch whose arrays are all vectors in the device's memory returns when the queue has it. One that
has arrays of NumPy, a report, or memory in a layout that the device cannot address, brings it back
and so returns when it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from typing import Any

from sarek_numba.runtime.arguments import Arguments
from sarek_numba.runtime.device import DeviceMemory, Driver
from sarek_numba.runtime.foreign import queue_of
from sarek_numba.runtime.memory import AnyArray, Arrangement, bound_regions
from sarek_numba.runtime.storage import Storage
from sarek_numba.runtime.stream import Stream
from sarek_numba.runtime.submission import Start, Surrounded, Use
from sarek_numba.runtime.window import flush_device, window_of
from sarek_numba.runtime.work import Work, WorkQueue


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

    def give(self, kernel: str, memory: DeviceMemory | None, start: Start) -> Work:
        """Give the queue a launch between what its parts need, and note what it uses."""
        queue, uses = self.queue, self.uses
        assert memory is not None or not uses
        begin = Surrounded(queue, memory, uses, start)
        work = queue.give(begin, (start, uses), kernel)
        for use in uses:
            use.storage.used_by(work, use.first, use.last, written=use.written)
        return work


def queue_for(
    driver: Driver,
    stream: Stream | None,
    arguments: Arguments,
    *,
    reports: bool = False,
    measured: bool = False,
) -> WorkQueue | None:
    """The queue of a launch: that of its stream, that of another library's array, or the device's
    window if it may wait there.

    None stands for a launch that is done when it returns, as one that is `measured` is. What waited
    is submitted before it, and before one on a stream. Raises BackendError.
    """
    if stream is not None:
        flush_device(driver, "stream")
        return None if stream.runs_at_once else stream.queue
    if arguments.foreign:
        flush_device(driver, "argument")
        return None if measured else queue_of(driver, arguments.storages.values())
    window = window_of(driver)
    if window is None:
        return None
    if measured:
        window.submit_all("measured")
        return None
    arrangement = arguments.arrangement
    are_vectors = len(arguments.storages) == len(arguments.arrays) and not reports
    if are_vectors and not any(region.staging for region in arrangement.regions):
        return window
    window.submit_all("argument")
    return None


def enqueue(
    kernel: str,
    driver: Driver,
    queue: WorkQueue,
    arrangement: Arrangement,
    arrays: Sequence[AnyArray],
    read: Set[int],
    written: Set[int],
    storages: Mapping[int, Storage],
    prepare: Callable[[Sequence[Any]], Start],
    report: Any = None,
) -> None:
    """Give a launch to a queue; returns when its results are where the caller looks for them.

    `prepare` gets a buffer for each region; `report` is bound as one more. Raises BackendError.
    """
    queue.make_room()
    held = Held(queue)
    with ExitStack() as stack:
        own: list[Any] = []
        if report is not None:
            own.append(driver.bind(report, read=True, written=True))
            stack.callback(driver.unbind, own[0])
        regions = bound_regions(driver, arrangement, arrays, read, written, storages, held.hold)
        buffers = [*stack.enter_context(regions), *own]
        work = held.give(kernel, driver.memory, prepare(buffers))
        if len(held.uses) < len(buffers):
            work.wait("argument")
