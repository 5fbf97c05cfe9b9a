"""Addresses for arrays that the host does not have.

An array of NumPy describes one in a device's memory: shape, strides, which byte is which. Its
elements are not there, but whoever shows the variables of a program reads them all the same, as
debuggers do. So it is at addresses of this process where reading finds zeros and nothing is used.
"""

from __future__ import annotations

import mmap
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

_PAGE = 4096
_lock = threading.Lock()
_room: Any = None  # bytes of address space, as an array
_UNUSED = 1 << 60  # an address that no process has, where address space cannot be had for nothing


class _Address:
    """An address as NumPy takes it, and what keeps it."""

    __slots__ = ("__array_interface__", "room")

    def __init__(self, room: Any, interface: dict[str, Any]) -> None:
        self.room = room
        self.__array_interface__ = interface


class Nowhere:
    """Space for buffers of some sizes in bytes, apart from each other; `starts` are addresses."""

    def __init__(self, sizes: list[int]) -> None:
        rooms = [-(-size // _PAGE) * _PAGE + _PAGE for size in sizes]
        self._room = _reserved(sum(rooms))
        start = _UNUSED if self._room is None else int(self._room.ctypes.data)
        self.starts = [start + sum(rooms[:k]) for k in range(len(rooms))]

    def array(
        self,
        start: int,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        writable: bool,
    ) -> npt.NDArray[Any]:
        """What describes an array at an address. It must not be written, whatever it says."""
        interface = {
            "version": 3,
            "typestr": f"|V{dtype.itemsize}",
            "shape": shape,
            "strides": strides,
            "data": (start, not writable),
        }
        return np.asarray(_Address(self._room, interface)).view(dtype)


def _reserved(size: int) -> Any:
    """Address space for so many bytes; None where it would take memory."""
    global _room
    with _lock:
        if _room is None or _room.size < size:
            try:
                # pages that are only read take no memory, and are not counted as if they might
                flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
                wanted = 1 << size.bit_length()
                _room = np.frombuffer(
                    mmap.mmap(-1, wanted, flags=flags, prot=mmap.PROT_READ), np.uint8
                )
            except (AttributeError, OSError, ValueError):
                return None
        return _room
