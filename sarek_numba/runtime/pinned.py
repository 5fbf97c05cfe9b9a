"""Page-locked host memory: what a device reads and writes without a copy by its driver between.

A driver gives `PinnedMemory` two functions, as it does for the `Allocator` of its own memory. The
memory goes when the last array of it does, whoever has that: a vector, a view of NumPy, another
library through DLPack.
"""

from __future__ import annotations

import gc
import mmap
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.errors import OutOfMemory

if TYPE_CHECKING:
    from sarek_numba.runtime.device import Bytes

PAGE = max(4096, mmap.PAGESIZE)  # at which devices take host memory without a copy of their own


class _Pages:
    """The owner of page-locked memory, as NumPy takes it."""

    __slots__ = ("__array_interface__", "__weakref__")

    def __init__(self, start: int, size: int) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (size,),
            "data": (start, False),
        }


class PinnedMemory:
    """The page-locked memory of one device. Safe to use from any thread, and from finalizers.

    `allocate` gives the address of so many bytes and what stands for them, or raises OutOfMemory;
    `release` gives the latter up. `finish` waits for the device's work, which may have the last
    arrays of some.
    """

    def __init__(
        self,
        allocate: Callable[[int], tuple[int, Any]],
        release: Callable[[Any], None],
        finish: Callable[[], None] | None = None,
    ) -> None:
        self._allocate = allocate
        self._release = release
        self._finish = finish
        self._lock = threading.Lock()
        self._returned: deque[int] = deque()  # finalizers may not wait for the lock
        self._bytes = 0

    def acquire(self, size: int) -> Bytes:
        """So many bytes from the start of a page on. Raises OutOfMemory."""
        room = size + PAGE
        start, handle = self._allocated(room)
        with self._lock:
            self._bytes += room
        pages = _Pages(start, room)
        # at the end of the process memory goes by itself, and arrays may be used still
        weakref.finalize(pages, self._end, room, handle).atexit = False
        shift = -start % PAGE
        return np.asarray(pages)[shift : shift + size]

    def _allocated(self, room: int) -> tuple[int, Any]:
        try:
            return self._allocate(room)
        except OutOfMemory:
            if self._finish is not None:
                self._finish()
            gc.collect()  # vectors in cycles hold memory too
            return self._allocate(room)

    def _end(self, room: int, handle: Any) -> None:
        self._returned.append(room)
        with suppress(Exception):  # the device may be gone before
            self._release(handle)

    @property
    def bytes(self) -> int:
        """What is held now."""
        with self._lock:
            while self._returned:
                self._bytes -= self._returned.popleft()
            return self._bytes
