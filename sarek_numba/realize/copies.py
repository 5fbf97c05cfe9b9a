"""Copies and fills of concrete buffers, on devices where these can do it.

`buffer_copy` is a copy that says what it does. Where the memory of the destination can read that
of the source, nothing comes to the host; otherwise the elements go through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sarek_numba.errors import InvalidArgument
from sarek_numba.realize.buffers import Concrete
from sarek_numba.runtime import telemetry
from sarek_numba.runtime.device import DeviceMemory
from sarek_numba.runtime.registry import Device, device
from sarek_numba.runtime.vector import Vector


@runtime_checkable
class TransferringMemory(Protocol):
    """Device memory that takes bytes from other device memory without the host."""

    def transfers_from(self, source: DeviceMemory) -> bool:
        """Whether it can read memory of another device, or of its own."""
        ...

    def transfer(self, destination: Any, at: int, source: Any, first: int, size: int) -> None:
        """Copy bytes between two buffers of `DeviceMemory.hold`; done when it returns."""
        ...


@dataclass(slots=True)
class CopyStatistics:
    """How many copies stayed on devices, and how many went through the host."""

    native: int = 0
    through_host: int = 0

    def reset(self) -> None:
        """Start again at 0."""
        self.native = self.through_host = 0


statistics = CopyStatistics()


@dataclass(frozen=True, slots=True)
class BufferCopy:
    """A copy between two buffers of `total_size` bytes; call it with them, destination first."""

    device: Device
    total_size: int
    dest_device: str
    src_device: str

    @property
    def display(self) -> str:
        """What it does, for readers."""
        return (
            f"copy {self.total_size} bytes, {_shown(self.dest_device)} <- {_shown(self.src_device)}"
        )

    def __call__(self, buffers: Sequence[Concrete]) -> None:
        """Copy. Raises InvalidArgument for anything but two buffers of equal size and type."""
        if len(buffers) != 2:
            raise InvalidArgument(
                f"{self.display}: a copy has a destination and a source, not {len(buffers)} "
                f"buffer{'s' * (len(buffers) != 1)}"
            )
        destination, source = buffers
        check_pair(self.display, destination, source)
        native = copy(device(self.dest_device), destination, source)
        how = "on the device" if native else "through the host"
        telemetry.say("transfer", telemetry.ONCE, lambda: f"{self.display}, {how}")

    def __str__(self) -> str:
        return self.display


def _shown(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


def buffer_copy(
    which: str | Device | None, total_size: int, dest_device: str, src_device: str
) -> BufferCopy:
    """A copy of so many bytes from one device to another, which are told by their names."""
    return BufferCopy(device(which), total_size, dest_device, src_device)


def check_pair(subject: str, destination: Concrete, source: Concrete) -> None:
    """Refuse a copy between buffers of different size or type. Raises InvalidArgument."""
    if destination.dtype != source.dtype:
        raise InvalidArgument(
            f"{subject}: the destination has elements of {destination.dtype}, the source of "
            f"{source.dtype}"
        )
    if destination.size != source.size:
        raise InvalidArgument(
            f"{subject}: the destination has {destination.size} elements, the source {source.size}"
        )


def supports_transfer(destination: DeviceMemory | None, source: DeviceMemory | None) -> bool:
    """Whether bytes go from one place to another natively; None is memory of the host's."""
    if destination is None or source is None:
        return destination is source
    return isinstance(destination, TransferringMemory) and destination.transfers_from(source)


def copy(target: Device, destination: Concrete, source: Concrete) -> bool:
    """Copy elements, of equal number and type, to where `target` works; whether natively."""
    memory = target.driver.memory
    native = _copied_natively(memory, destination, source)
    if not native:
        _copy_through_host(memory, destination, source)
    if native:
        statistics.native += 1
    else:
        statistics.through_host += 1
    return native


def _copied_natively(memory: DeviceMemory | None, destination: Concrete, source: Concrete) -> bool:
    """Copy in the memory of devices, if these can and the elements are in it already."""
    if memory is None:
        if isinstance(source, Vector) and not source.is_current():
            return False
        _copy_through_host(None, destination, source)
        return True
    if not isinstance(destination, Vector) or not isinstance(source, Vector):
        return False
    if not destination._array.flags.c_contiguous or not source._array.flags.c_contiguous:
        return False
    if destination._storage is source._storage or not isinstance(memory, TransferringMemory):
        return False
    first, last = source._span(source._array)
    at, end = destination._span(destination._array)
    for other in source._storage.places():
        if (
            last > first
            and memory.transfers_from(other)
            and source._storage.is_current(other, first, last)
        ):
            held = source._storage.send(other, first, last)
            room = destination._storage.hold(memory, at, end)
            memory.transfer(room, at, held, first, last - first)
            destination._storage.written_on(memory, at, end)
            return True
    return False


def _copy_through_host(
    memory: DeviceMemory | None, destination: Concrete, source: Concrete
) -> None:
    elements = np.asarray(source).reshape(destination.shape)
    write(destination, elements)
    if memory is not None and isinstance(destination, Vector):
        destination._storage.send(memory, *destination._span(destination._array))


def write(destination: Concrete, elements: Any) -> None:
    """Set all elements on the host."""
    destination[...] = elements


def fill(target: Device, destination: Concrete, value: Any) -> None:
    """Set all elements to a number."""
    write(destination, value)
