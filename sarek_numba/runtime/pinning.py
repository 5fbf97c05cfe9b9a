"""Which device's page-locked memory the host memory of a vector is."""

from __future__ import annotations

from sarek_numba.errors import InvalidArgument
from sarek_numba.runtime.device import DeviceMemory
from sarek_numba.runtime.registry import Device, device, devices
from sarek_numba.runtime.storage import Storage

Pinned = bool | str | Device
"""Whether the memory of a vector is page-locked, and for which device."""


def storage_of_size(size: int, pinned: Pinned = False) -> Storage:
    """New memory for vectors, from the start of a page on.

    Where the device has no page-locked memory it is ordinary memory. Raises UnknownDevice,
    InvalidArgument, OutOfMemory.
    """
    if pinned is False:
        return Storage.of_size(size)
    target = _target(pinned)
    memory = None if target is None else _pinning(target)
    if target is None or memory is None or memory.pinned is None:
        return Storage.of_size(size)
    storage = Storage(memory.pinned.acquire(size))
    storage.is_alone = True
    storage.pinned_for = target.name
    return storage


def _target(pinned: object) -> Device | None:
    """The device that is named, that launches go to now, or the first that has such memory."""
    if isinstance(pinned, str | Device):
        return device(pinned)
    if pinned is not True:
        raise InvalidArgument(
            f"a vector is pinned or not: True, False or a device, not {pinned!r}\n"
            "  hint: pinned=True"
        )
    current = device()
    if _pinning(current) is not None:
        return current
    able = [each for each in devices() if isinstance(each, Device) and _pinning(each) is not None]
    own = [each for each in able if each.driver.memory and each.driver.memory.allocator]
    return next(iter(own or able), None)


def _pinning(target: Device) -> DeviceMemory | None:
    memory = target.driver.memory
    return None if memory is None or memory.pinned is None else memory
