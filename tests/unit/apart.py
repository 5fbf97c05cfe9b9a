"""OpenCL's CPUs as if they had memory of their own, as much as a test gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sarek_numba as sarek
from sarek_numba.errors import OutOfMemory
from sarek_numba.runtime.registry import Device

OPENCL = [d.name for d in sarek.devices() if d.name.startswith("opencl")]


def apart(name: str, room: int | None = None) -> Device:
    """A device of its own, which copies what it works on; no more than `room` bytes at a time."""
    from sarek_opencl.memory import OpenCLMemory
    from sarek_opencl.runtime import OpenCLDriver

    driver = OpenCLDriver(sarek.device(name).driver.device, f"{name}:apart")
    driver.record = replace(driver.record, description="apart", is_cpu=False)
    driver.memory = OpenCLMemory(driver)
    if room is not None:
        _limit(driver.memory.allocator, room)
    return Device(driver)


def _limit(allocator: Any, room: int) -> None:
    """Have a device fail where it would have more than so many bytes."""
    allocate, release = allocator._allocate, allocator._release
    held: dict[int, int] = {}

    def limited(size: int) -> Any:
        free = room - sum(held.values())
        if size > free:
            raise OutOfMemory(f"allocating {size} bytes failed: the device is full", size, free)
        buffer = allocate(size)
        held[buffer.int_ptr] = size
        return buffer

    def released(buffer: Any) -> None:
        del held[buffer.int_ptr]
        release(buffer)

    allocator._allocate, allocator._release = limited, released
