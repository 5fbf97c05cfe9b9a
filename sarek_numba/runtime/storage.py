"""Memory of vectors: host bytes, their copies on devices, and which of these are current.

Each byte is current in one place at least: on the host, on devices, or on several of them. A place
that needs a byte gets it from one that has it; whoever writes a byte is the only place that has it
then. So data moves when it must, and only as much of it as is not there. Devices that work on host
memory itself are the host. What moves or changes bytes waits for the work that uses them.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from sarek_numba.runtime import recorders
from sarek_numba.runtime.cache import count
from sarek_numba.runtime.device import Bytes, DeviceMemory
from sarek_numba.runtime.extents import Extents
from sarek_numba.runtime.pinned import PAGE
from sarek_numba.runtime.telemetry import ONCE, say
from sarek_numba.runtime.work import Uses, Work, WorkQueue

_serials = itertools.count(1)


class Access(Enum):
    """What a launch does with bytes that it uses."""

    READ = "read"
    WRITE = "write"  # or both


HOST: dict[Access | None, str] = {
    access: f"host {access and access.value}" for access in (None, *Access)
}
"""What stands in `Storage.ready` for launches that use host memory as it lies, by their access."""


class Storage:
    """Bytes that host and devices share. Safe to use from any thread."""

    def __init__(self, host: Bytes) -> None:
        self.host = host
        self.is_alone = False  # is it sure that no other storage has one of the bytes?
        self.lock = threading.RLock()
        self._on_host = Extents((0, host.size))
        self.pinned_for: str | None = None  # the device that the host memory is page-locked for
        self._copies: dict[DeviceMemory, _Copy] = {}
        self._uses = Uses()
        self.ready: dict[Any, int] = dict.fromkeys(HOST.values(), 0)  # see `note`
        self._ready_for: WorkQueue | None = None
        self._release = weakref.finalize(self, _release, self._copies)

    @classmethod
    def of_size(cls, size: int) -> Storage:
        """New memory, aligned to a page; its contents are undefined."""
        room: Bytes = np.empty(size + PAGE, np.uint8)
        shift = -room.ctypes.data % PAGE
        made = cls(room[shift : shift + size])
        made.is_alone = True
        return made

    @property
    def start(self) -> int:
        """The host address of the first byte."""
        return int(self.host.ctypes.data)

    # --- work -------------------------------------------------------------------------------------

    def settle(self, first: int, last: int, why: str, *, written: bool) -> None:
        """Wait for the work that must be done before bytes are read, or `written`."""
        with self.lock:
            if self._uses:
                for work in self._uses.conflicting(first, last, written):
                    work.wait(why)

    def put_behind(self, queue: WorkQueue, first: int, last: int, *, written: bool) -> None:
        """Have a queue go on after the work that must be done before it reads, or writes, bytes."""
        with self.lock:
            for work in self._uses.conflicting(first, last, written, queue):
                queue.follow(work, "order")

    def used_by(self, work: Work, first: int, last: int, *, written: bool) -> None:
        """Work uses bytes, behind all that it had to be put behind."""
        with self.lock:
            if work.queue is not self._ready_for:
                self.ready.clear()
            self._uses.add(first, last, written, work)

    # --- the host ---------------------------------------------------------------------------------

    def fetch(self, first: int, last: int) -> None:
        """Make bytes current on the host. Raises GraphError inside a capture."""
        recorders.refuse_host_read()
        with self.lock:
            self.settle(first, last, "host read", written=False)
            for start, end in self._on_host.missing(first, last):
                self._fetch_missing(start, end)

    def _fetch_missing(self, first: int, last: int) -> None:
        self.ready.clear()
        for memory, copy in self._copies.items():
            for start, end in copy.current.within(first, last):
                for a, b in self._on_host.missing(start, end):
                    memory.fetch(copy.buffer, a, b)
                    count("downloads")
                    count("downloaded_bytes", b - a)
                    say("transfer", ONCE, partial(_moved, "to the host", a, b))
                    self._on_host.add(a, b)
        assert self._on_host.covers(first, last), "every byte is current somewhere"

    def claim(self, first: int, last: int) -> None:
        """The host is about to write bytes: wait for all work that uses them."""
        self.settle(first, last, "host write", written=True)

    def wrote(self, first: int, last: int) -> None:
        """The host has written bytes, which it claimed before: no other place has them now."""
        with self.lock:
            if self._copies:
                self.ready.clear()
            for copy in self._copies.values():
                copy.current.remove(first, last)
            self._on_host.add(first, last)

    # --- launches like earlier ones ---------------------------------------------------------------

    def note(
        self, memory: DeviceMemory | None, access: Access | None, queue: WorkQueue | None
    ) -> None:
        """Remember that a launch on a queue that uses all bytes there moves none, changes no place,
        and waits for nothing; one without a queue has nobody use the bytes meanwhile.

        `ready` has that until something changes; the lock is to be held while it counts. It is
        for one queue at a time. An access of None needs no bytes, but the buffer.
        """
        with self.lock:
            if queue is not self._ready_for:
                self.ready.clear()
                self._ready_for = queue
            if memory is None:
                if access is None or self._is_of_host(access):
                    self.ready[HOST[access]] = 0
                return
            copy = self._copies.get(memory)
            if copy is None:
                return
            if access is None:
                self.ready[ready_key(memory, queue, None)] = copy.serial
                return
            if self._is_used(queue) or not copy.current.covers(0, self.host.size):
                return
            others = [each.current for each in self._copies.values() if each is not copy]
            if access is Access.READ or not any([self._on_host, *others]):
                self.ready[ready_key(memory, queue, access)] = copy.serial

    def _is_of_host(self, access: Access) -> bool:
        """Whether the host has all bytes, alone if they are to be written, and nobody uses them."""
        if self._is_used(None) or not self._on_host.covers(0, self.host.size):
            return False
        copies = [copy.current for copy in self._copies.values()]
        return access is Access.READ or not any(copies)

    def _is_used(self, queue: WorkQueue | None) -> bool:
        """Whether other work than that of a queue may use bytes still."""
        if not self._uses:
            return False
        self._uses.conflicting(0, self.host.size, True, queue)  # forgets what is done
        return not self._uses.are_of(queue)

    def bring(
        self, memory: DeviceMemory, last: int, access: Access | None, queue: WorkQueue | None
    ) -> int:
        """Have the first bytes ready for a launch that is about to use them, and note it so.

        The serial number of the buffer. The lock is to be held until the launch was given to the
        queue, or, without one, is done. Raises BackendError.
        """
        self.send(memory, 0, last if access else 0, queue)
        if access and queue is not None:
            self.put_behind(queue, 0, last, written=access is Access.WRITE)
        if access is Access.WRITE:
            self.written_on(memory, 0, last)
        self.note(memory, access, queue)
        return self._copies[memory].serial

    # --- devices ----------------------------------------------------------------------------------

    def send(
        self, memory: DeviceMemory, first: int, last: int, queue: WorkQueue | None = None
    ) -> Any:
        """Make bytes current in a device's memory; its buffer, which is for all bytes.

        Waits for the work that uses them unless it is for a queue, which is put behind that.
        """
        with self.lock:
            if queue is None:
                self.settle(first, last, "transfer", written=True)
            copy = self._copies.get(memory)
            if copy is None:
                self.ready.clear()
                copy = self._copies[memory] = _Copy(memory.hold(self.host))
                say("memory", ONCE, partial("{} bytes of a device's memory".format, self.host.size))
            for start, end in copy.current.missing(first, last):
                self.ready.clear()
                self.fetch(start, end)
                memory.send(copy.buffer, start, end)
                count("uploads")
                count("uploaded_bytes", end - start)
                say("transfer", ONCE, partial(_moved, "to the device", start, end))
                copy.current.add(start, end)
            return copy.buffer

    def written_on(self, memory: DeviceMemory, first: int, last: int) -> None:
        """A launch has written bytes of a device's buffer, or may have."""
        with self.lock:
            self.ready.clear()
            for other, copy in self._copies.items():
                if other is not memory:
                    copy.current.remove(first, last)
            self._on_host.remove(first, last)
            self._copies[memory].current.add(first, last)

    def places(self) -> list[DeviceMemory]:
        """The memory of the devices that have a copy."""
        with self.lock:
            return list(self._copies)

    def hold(self, memory: DeviceMemory, first: int, last: int) -> Any:
        """The buffer in a device's memory, of which bytes are about to be written there, all of
        them: they are not brought. Waits for the work that uses them.
        """
        with self.lock:
            self.settle(first, last, "transfer", written=True)
            self.send(memory, first, first)
            return self._copies[memory].buffer

    def held(self, memory: DeviceMemory) -> Any:
        """The buffer in a device's memory, or None."""
        with self.lock:
            copy = self._copies.get(memory)
            return None if copy is None else copy.buffer

    def serial(self, memory: DeviceMemory) -> int:
        """The number of the buffer on a device, which no other has ever; 0 without a buffer."""
        with self.lock:
            copy = self._copies.get(memory)
            return 0 if copy is None else copy.serial

    def free(self, memory: DeviceMemory | None = None) -> None:
        """Give up the copy on a device, or on all; what only it has comes to the host first."""
        with self.lock:
            # work that uses no bytes has the buffer all the same
            self.settle(-1, self.host.size + 1, "free", written=True)
            for each in [memory] if memory is not None else list(self._copies):
                copy = self._copies.get(each)
                if copy is None:
                    continue
                self.ready.clear()
                for start, end in copy.current:
                    self.fetch(start, end)
                del self._copies[each]
                each.release(copy.buffer)

    def is_current(self, memory: DeviceMemory | None, first: int, last: int) -> bool:
        """Whether bytes are current in a device's memory, or, of None, on the host."""
        with self.lock:
            if memory is None:
                return self._on_host.covers(first, last)
            copy = self._copies.get(memory)
            return copy is not None and copy.current.covers(first, last)


def ready_key(memory: DeviceMemory, queue: WorkQueue | None, access: Access | None) -> str:
    """What stands in `Storage.ready` for launches: text, which is looked up fastest.

    The same object each time, of no other memory and queue, ever.
    """
    keys = _keys.get(memory)
    if keys is None:
        keys = _keys.setdefault(memory, {})
    name = None if access is None else access.value
    if queue is None:
        return keys.get(name) or keys.setdefault(name, _new_key(name))
    of_queue = queue.ready_keys
    return of_queue.get((memory, name)) or of_queue.setdefault((memory, name), _new_key(name))


def ready_keys(memory: DeviceMemory, queue: WorkQueue | None) -> dict[Access | None, str]:
    """The key of each access, and of none."""
    return {access: ready_key(memory, queue, access) for access in (None, *Access)}


_keys: WeakKeyDictionary[DeviceMemory, dict[str | None, str]] = WeakKeyDictionary()


def _new_key(name: str | None) -> str:
    return f"{next(_serials)} {name}"


class _Copy:
    """A buffer of a device, and its bytes that are current."""

    __slots__ = ("buffer", "current", "serial")

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self.serial = next(_serials)  # of no other buffer, ever
        self.current = Extents()


def _release(copies: dict[DeviceMemory, _Copy]) -> None:
    """Give device memory back when its storage is gone; a device may be gone before."""
    for memory, copy in copies.items():
        with suppress(Exception):
            memory.release(copy.buffer)


def _moved(where: str, first: int, last: int) -> str:
    return f"{last - first} bytes of a vector {where}, from byte {first} on"
