"""Device memory that is given back is kept for the next one who asks for as much.

Sizes are rounded up to classes, so that buffers fit again: four to each power of two, and beyond 16
MiB whole pairs of MiB. Where the device has no more, its work is waited for, which may have memory
that nobody else has; what is kept is let go, and the device is asked once more. Whoever gives
memory back knows that nothing uses it: storages wait for their work, and work keeps its storages.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sarek_numba.errors import OutOfMemory

_LEAST = 512
_LARGE = 16 << 20
_LARGE_STEP = 2 << 20


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """Memory that vectors have on a device, in bytes, and how often it was asked for.

    `in_use` and `cached` is held now, `peak` the most that was in use. Of the `allocations`, `hits`
    took what was kept. All these are 0 where the device works on host memory. `pinned` is memory of
    the host that is page-locked for the device.
    """

    in_use: int = 0
    cached: int = 0
    peak: int = 0
    allocations: int = 0
    hits: int = 0
    pinned: int = 0


def class_of(size: int) -> int:
    """The bytes that are allocated for so many."""
    if size <= _LEAST:
        return _LEAST
    if size > _LARGE:
        return -(-size // _LARGE_STEP) * _LARGE_STEP
    step = 1 << ((size - 1).bit_length() - 3)
    return -(-size // step) * step


class Allocator:
    """The memory of one device. Safe to use from any thread, and from finalizers.

    `allocate` gives a buffer of so many bytes or raises OutOfMemory; `release` gives one up.
    `finish` waits for the device's work; what it raises is raised.
    """

    def __init__(
        self,
        allocate: Callable[[int], Any],
        release: Callable[[Any], None],
        finish: Callable[[], None] | None = None,
    ) -> None:
        self._allocate = allocate
        self._release = release
        self._finish = finish
        self._lock = threading.Lock()
        self._kept: dict[int, list[Any]] = {}
        self._returned: deque[tuple[int, Any]] = deque()  # finalizers may not wait for the lock
        self._statistics = MemoryStatistics()

    def acquire(self, size: int) -> Any:
        """A buffer of at least so many bytes. Raises OutOfMemory."""
        wanted = class_of(size)
        with self._lock:
            self._take_returned()
            kept = self._kept.get(wanted)
            if kept:
                self._note(wanted, cached=-wanted, hits=1)
                return kept.pop()
        buffer = self._allocated(wanted)
        with self._lock:
            self._note(wanted)
        return buffer

    def _allocated(self, wanted: int) -> Any:
        try:
            return self._allocate(wanted)
        except OutOfMemory:
            if self._finish is not None:
                self._finish()
            gc.collect()  # vectors in cycles hold memory too
            self.flush()
            return self._allocate(wanted)

    def _note(self, wanted: int, cached: int = 0, hits: int = 0) -> None:
        before = self._statistics
        in_use = before.in_use + wanted
        self._statistics = MemoryStatistics(
            in_use,
            before.cached + cached,
            max(before.peak, in_use),
            before.allocations + 1,
            before.hits + hits,
        )

    def give_back(self, size: int, buffer: Any) -> None:
        """Keep a buffer that was acquired for so many bytes, and that nothing uses any more."""
        self._returned.append((class_of(size), buffer))

    def flush(self) -> int:
        """Let go of all that is kept; gives its bytes."""
        with self._lock:
            self._take_returned()
            kept, self._kept = self._kept, {}
            let_go = self._statistics.cached
            self._statistics = replace(self._statistics, cached=0)
        for buffers in kept.values():
            for buffer in buffers:
                self._release(buffer)
        return let_go

    @property
    def statistics(self) -> MemoryStatistics:
        """As of now."""
        with self._lock:
            self._take_returned()
            return self._statistics

    def _take_returned(self) -> None:
        while self._returned:
            size, buffer = self._returned.popleft()
            self._kept.setdefault(size, []).append(buffer)
            before = self._statistics
            self._statistics = replace(
                before, in_use=before.in_use - size, cached=before.cached + size
            )
