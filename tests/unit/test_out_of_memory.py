"""A device with little memory: what is not needed any more makes room, what is too much is refused.

The devices are OpenCL's CPUs, which are made to copy and to fail.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import OutOfMemory
from sarek_numba.execute import counters, window
from sarek_numba.runtime.allocator import Allocator
from sarek_numba.runtime.pinned import PinnedMemory
from tests.unit.apart import OPENCL, apart

BYTES = 16384  # of one vector; a class of the allocator
COUNT = BYTES // 4


@pytest.fixture(params=OPENCL)
def small(request: Any) -> Any:
    """A device with room for four vectors."""
    yield apart(request.param, 4 * BYTES)
    window.configure(enabled=True)


@sarek.kernel
def add(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i]


def launch(out: Any, x: Any, device: Any, stream: Any = None) -> None:
    add.launch(out, x, grid=COUNT // 64, block=64, device=device, stream=stream)


def full(value: int) -> Any:
    return sarek.full(COUNT, value, np.int32)


@pytest.mark.parametrize("way", ["window", "no window", "stream"])
def test_vectors_dropped_under_pending_launches_make_room(small: Any, way: str) -> None:
    """Ten times the memory of the device, in vectors that only waiting launches have."""
    window.configure(enabled=way != "no window")
    stream = small.stream() if way == "stream" else None
    total = full(0)
    for k in range(40):
        launch(total, full(k), small, stream)
        if k % 11 == 0:
            gc.collect()
    assert np.array_equal(total, np.full(COUNT, sum(range(40))))
    statistics = small.memory_statistics()
    assert statistics.in_use + statistics.cached <= 4 * BYTES
    assert statistics.peak <= 4 * BYTES
    assert statistics.allocations == 41


@pytest.mark.parametrize("way", ["window", "no window", "stream"])
def test_too_much_is_refused_and_then_there_is_room(small: Any, way: str) -> None:
    """With the bytes asked for and those there are; nothing is lost, and it goes on."""
    window.configure(enabled=way != "no window")
    stream = small.stream() if way == "stream" else None
    kept = [full(k).to(small) for k in range(3)]
    total = full(100)
    launch(total, kept[1], small, stream)
    for _ in range(5):
        extra = full(7)
        counters.reset()
        with pytest.raises(OutOfMemory, match="full") as caught:
            launch(total, extra, small, stream)
        assert (caught.value.asked, caught.value.available) == (BYTES, 0)
        assert (counters.launches, counters.uploads) == (0, 0)
        assert extra.is_current()
        assert extra[0] == 7
    assert total[COUNT - 1] == 101
    assert [v[5] for v in kept] == [0, 1, 2]
    kept.pop()
    for _ in range(4):
        launch(total, extra, small, stream)
    assert np.array_equal(total, np.full(COUNT, 129))


def test_what_is_kept_is_let_go(small: Any) -> None:
    """Memory kept in classes that nobody asks for serves one that is asked for."""
    for part in (1, 2, 4):
        for _ in range(part):
            sarek.zeros(COUNT // part, np.int32).to(small).free(small)
    assert small.memory_statistics().cached > BYTES
    large = sarek.ones(4 * COUNT, np.int32).to(small)
    assert small.memory_statistics().cached == 0
    with pytest.raises(OutOfMemory):
        full(1).to(small)
    assert large.is_current(small)
    del large
    assert full(1).to(small).tolist() == [1] * COUNT


class Full:
    """A device on which work that is not done has the only memory."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.is_busy = True

    def allocate(self, size: int) -> Any:
        self.events.append("asked")
        if self.is_busy:
            raise OutOfMemory("the device is full", size, 0)
        return bytearray(size)

    def locked(self, size: int) -> tuple[int, Any]:
        room = np.frombuffer(self.allocate(size), np.uint8)
        return room.ctypes.data, room

    def finish(self) -> None:
        self.events.append("finished")
        self.is_busy = False

    def release(self, buffer: Any) -> None:
        """Nothing is needed."""


def test_work_is_finished_before_the_second_attempt() -> None:
    """What pending work has is asked for once: of a device's memory, and of page-locked memory."""
    device = Full()
    assert len(Allocator(device.allocate, device.release, device.finish).acquire(8)) >= 8
    assert device.events == ["asked", "finished", "asked"]
    device = Full()
    assert PinnedMemory(device.locked, device.release, device.finish).acquire(8).size == 8
    assert device.events == ["asked", "finished", "asked"]
