"""What a backend tells of memory that another library has on one of its devices.

A backend that can work on such memory is an `Adopter`. Its driver for an array is one in whose
context the memory is: launches take place there, and vectors are copied there as to any device.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sarek_numba.runtime.device import Driver


class NotAdopted(Exception):
    """Why an array is no argument: what it is ("is ..."), and what to do instead."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


class Order(Protocol):
    """The order in which another library works on an array.

    `handle` is a queue of the device, in order, that it gives its work to; launches go to it too.
    None where it has no such queue. `is_known` says whether `follow` puts its later work behind a
    launch; where it does not, a launch is waited for.
    """

    handle: Any
    is_known: bool

    def precede(self, handle: Any) -> None:
        """What a queue of ours is given from now on begins after what the library gave."""
        ...

    def follow(self, handle: Any, mark: Any) -> None:
        """What the library gives from now on begins after a mark of that queue."""
        ...

    def wait(self) -> None:
        """Return when the library's work is done. Raises BackendError."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DeviceArray:
    """An array in a device's memory. Sizes, offsets and strides are in bytes.

    `home` is the name of the device in `sarek.devices()`, which `driver` may have another context
    of. `buffer` is what its `DeviceMemory.part` takes, `key` equal for arrays of one buffer, and
    `alignment` where parts of it may begin. `offset` is where element (0, …, 0) stands.
    """

    driver: Driver
    home: str
    buffer: Any
    key: Hashable
    size: int
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool
    alignment: int
    order: Order


@runtime_checkable
class Adopter(Protocol):
    """A `Backend` that works on memory of others."""

    def adopt(self, value: Any) -> DeviceArray | None:
        """An array of another library; None for what is none of this backend.

        Raises NotAdopted, BackendUnavailable.
        """
        ...

    def driver_of(self, value: Any) -> Driver | None:
        """The driver for an array, a queue or a context of another library; None for others.

        Raises NotAdopted, BackendUnavailable.
        """
        ...
