"""Memory that is kept: what is used again, what is told of it, and what happens when there is none.

The device is a plan: an allocation beyond its room fails. OpenCL's CPUs are asked as if they had
memory of their own.
"""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import OutOfMemory
from sarek_numba.runtime.allocator import Allocator, MemoryStatistics, class_of
from sarek_numba.runtime.storage import Storage
from sarek_numba.runtime.vector import Vector

OPENCL = [d.name for d in sarek.devices() if d.name.startswith("opencl")]


class Room:
    """A device with so many bytes; buffers are bytearrays."""

    def __init__(self, size: int) -> None:
        self.free = size
        self.asked: list[int] = []

    def allocate(self, size: int) -> bytearray:
        self.asked.append(size)
        if size > self.free:
            raise OutOfMemory(f"{size} bytes are too many", size, self.free)
        self.free -= size
        return bytearray(size)

    def release(self, buffer: bytearray) -> None:
        self.free += len(buffer)


def test_classes_waste_a_quarter_at_most() -> None:
    """Each is large enough, of its own class, and never more than a quarter larger."""
    sizes = [0, 1, 511, 512, 513, 640, 641, 4097, 10**6, (16 << 20) - 1, (16 << 20) + 1, 10**9]
    for size in sizes:
        assert size <= class_of(size) <= max(512, size * 1.25 + 1), size
        assert class_of(class_of(size)) == class_of(size)
    assert len({class_of(size) for size in range(4097, 8193)}) == 4


def test_what_is_given_back_is_used_again() -> None:
    """One allocation of the device serves all that fit its class, one after the other."""
    room = Room(1 << 20)
    allocator = Allocator(room.allocate, room.release)
    first = allocator.acquire(1000)
    allocator.give_back(1000, first)
    assert allocator.statistics == MemoryStatistics(0, 1024, 1024, 1, 0)
    assert allocator.acquire(900) is first
    assert allocator.acquire(900) is not first
    assert allocator.statistics == MemoryStatistics(2048, 0, 2048, 3, 1)
    assert room.asked == [1024, 1024]


def test_flushing_gives_it_to_the_device() -> None:
    room = Room(1 << 20)
    allocator = Allocator(room.allocate, room.release)
    for size in (1000, 5000):
        allocator.give_back(size, allocator.acquire(size))
    assert allocator.flush() == 1024 + 5120
    assert allocator.flush() == 0
    assert room.free == 1 << 20
    assert allocator.statistics.cached == 0


def test_one_more_attempt_with_what_was_kept() -> None:
    """What is kept makes room; without it the second failure is raised."""
    room = Room(4096)
    allocator = Allocator(room.allocate, room.release)
    allocator.give_back(3000, allocator.acquire(3000))
    held = allocator.acquire(2048)
    assert room.asked == [3072, 2048, 2048]
    with pytest.raises(OutOfMemory) as caught:
        allocator.acquire(4000)
    assert (caught.value.asked, caught.value.available) == (4096, 2048)
    assert room.asked[3:] == [4096, 4096]
    assert allocator.statistics.in_use == 2048
    allocator.give_back(2048, held)
    assert len(allocator.acquire(4000)) == 4096


def test_vectors_that_nothing_reaches_make_room() -> None:
    """Memory of what waits for the collector of garbage is found by the second attempt."""
    room = Room(4096)
    allocator = Allocator(room.allocate, room.release)

    class Holder:
        def __init__(self) -> None:
            self.buffer = allocator.acquire(4096)
            self.itself = self

        def __del__(self) -> None:
            allocator.give_back(4096, self.buffer)

    gc.disable()
    try:
        Holder()
        assert room.free == 0
        assert len(allocator.acquire(4096)) == 4096
    finally:
        gc.enable()


# --- OpenCL ---------------------------------------------------------------------------------------


@pytest.fixture(params=OPENCL)
def apart(request: Any) -> Any:
    """The memory of an OpenCL device, as if it were not the host's."""
    from sarek_opencl.runtime import OpenCLDriver

    driver = OpenCLDriver(sarek.device(request.param).driver.device, "opencl:apart:0")
    driver.record = replace(driver.record, description="apart", is_cpu=False)
    from sarek_opencl.memory import OpenCLMemory

    driver.memory = OpenCLMemory(driver)
    return driver.memory


def vector_on(memory: Any, values: np.ndarray) -> Vector:
    storage = Storage.of_size(values.nbytes)
    storage.host[...] = values.view(np.uint8)
    storage.send(memory, 0, values.nbytes)
    return Vector(storage, storage.host.view(values.dtype))


def test_storages_use_memory_again(apart: Any) -> None:
    """What garbage collection and `free` give up serves the next vectors; no datum is mixed up."""
    for k in range(20):
        vector = vector_on(apart, np.arange(k, k + 1000))
        vector._storage.written_on(apart, 0, 8000)  # it is only there
        assert vector.tolist() == list(range(k, k + 1000))
        if k % 2:
            vector._storage.free(apart)
        del vector
    assert apart.allocator.statistics == MemoryStatistics(0, 8192, 8192, 20, 19)
    assert apart.allocator.flush() == 8192


def test_too_much_is_refused_and_loses_nothing(apart: Any, monkeypatch: Any) -> None:
    """A device that has no more: the vector is as before, and what is there stays usable."""
    held = vector_on(apart, np.arange(1000))
    held._storage.written_on(apart, 0, 8000)

    def full(size: int) -> Any:
        raise OutOfMemory("the device is full", size, 0)

    monkeypatch.setattr(apart.allocator, "_allocate", full)
    storage = Storage.of_size(100_000)
    storage.host[...] = 7
    with pytest.raises(OutOfMemory, match="full"):
        storage.send(apart, 0, 100_000)
    assert (storage.host == 7).all()
    assert storage.is_current(None, 0, 100_000)
    assert storage.held(apart) is None
    assert held.tolist() == list(range(1000))


@pytest.mark.parametrize("device", [d.name for d in sarek.devices()])
def test_devices_tell(device: str) -> None:
    """Those that work on host memory have nothing to tell, and nothing to give up."""
    target = sarek.device(device)
    vector = sarek.ones(1000).to(device)
    statistics = target.memory_statistics()
    own = target.driver.memory is not None and target.driver.memory.allocator is not None
    assert (statistics.in_use >= vector.nbytes) == own
    assert target.free_cached() == statistics.cached
