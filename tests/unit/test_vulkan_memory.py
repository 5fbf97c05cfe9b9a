"""Memory of Vulkan devices: spans of blocks, the ways to reach it, arguments, order, times."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import OutOfMemory
from sarek_vulkan.logical import Block
from sarek_vulkan.memory import IMPORTED, STAGED, Spans, way_of
from tests.unit.vulkan_kit import driver_of, on_every_vulkan, on_vulkan, other_ways


@sarek.kernel
def saxpy(y, x, a):
    i = sarek.global_idx.x
    if i < len(y):
        y[i] += a * x[i]


@sarek.kernel
def many(
    out,
    a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18,
    a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33,
):  # fmt: skip
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = (
            a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 +
            a13 + a14 + a15 + a16 + a17 + a18 + a19 + a20 + a21 + a22 + a23 +
            a24 + a25 + a26 + a27 + a28 + a29 + a30 + a31 + a32 + a33
        )  # fmt: skip


class FakeLogical:
    """Counts blocks; the address of each is its own."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.made = self.freed = 0

    def allocate(self, size: int, *wishes: int) -> Block:
        if size > self.room:
            raise OutOfMemory("full", size, self.room)
        self.room -= size
        self.made += 1
        return Block(None, None, size, self.made << 40)

    def free(self, block: Block) -> None:
        self.room += block.size
        self.freed += 1


def test_spans_share_blocks_and_never_overlap():
    """Spans are apart and aligned; what is given up is found again; empty blocks go."""
    logical = FakeLogical(1 << 30)
    spans, rng = Spans(logical, 0), np.random.default_rng(5)
    held, known = [], {}
    for _ in range(2000):
        if held and rng.random() < 0.5:
            span = held.pop(rng.integers(len(held)))
            del known[id(span)]
            spans.release(span)
            continue
        span = spans.allocate(int(rng.integers(1, 3 << 20)))
        assert span.address % 256 == 0
        assert span.offset + span.size <= span.block.size
        for first, last in known.values():
            assert span.address + span.size <= first or last <= span.address
        known[id(span)] = span.address, span.address + span.size
        held.append(span)
    assert spans.blocks < 20
    for span in held:
        spans.release(span)
    assert spans.blocks == 0
    assert logical.made == logical.freed
    assert logical.room == 1 << 30


def test_large_and_last_spans_have_blocks_of_their_own():
    """So has one where the device has no room for a whole block."""
    logical = FakeLogical(100 << 20)
    spans = Spans(logical, 0)
    large = spans.allocate(70 << 20)
    small = spans.allocate(1 << 20)
    assert spans.blocks == 0
    with pytest.raises(OutOfMemory):
        spans.allocate(60 << 20)
    spans.release(large)
    spans.release(small)
    assert logical.room == 100 << 20


@on_vulkan
def test_the_way_of_a_device(device):
    """CPUs work on the pages of the host, GPUs have their own memory."""
    physical = driver_of(device).physical
    way = driver_of(device).vulkan_memory.way
    assert way == way_of(physical)
    assert (device.driver.memory.allocator is None) == (way == IMPORTED)
    if physical.is_cpu and physical.import_alignment:
        assert way == IMPORTED
    if physical.kind == 2:
        assert way == STAGED


@on_every_vulkan
@pytest.mark.parametrize("size", [0, 1, 1000, 5_000_000])
def test_arrays_and_vectors(device, size):
    """Any number of bytes moves there and back, more than all chunks too."""
    for make in (np.array, sarek.vector):
        y, x = make(np.ones(size, np.float32)), make(np.arange(size, dtype=np.float32))
        for _ in range(2):
            saxpy.launch(
                y, x, np.float32(0.5), grid=max(1, -(-size // 128)), block=128, device=device
            )
        assert np.array_equal(y, 1 + np.arange(size, dtype=np.float32))


@on_every_vulkan
def test_arrays_anywhere_in_a_page(device):
    """Host memory of every alignment is bound; neighbours are left alone."""
    room = np.full(4 * 4096, 7, np.float32)
    for first in (1, 2, 1023, 1024, 3000):
        y = room[first : first + 100]
        saxpy.launch(y, np.ones(100, np.float32), np.float32(1), grid=2, block=64, device=device)
    expected = np.full(room.size, 7, np.float32)
    for first in (1, 2, 1023, 1024, 3000):
        expected[first : first + 100] += 1
    assert np.array_equal(room, expected)


@on_every_vulkan
def test_arguments_beyond_the_push_constants(device):
    """They go to a buffer, and each launch of a window has its own."""
    values = [np.int64(k * k) for k in range(33)]
    outs = [sarek.zeros(40, np.int64) for _ in range(300)]
    for k, out in enumerate(outs):
        many.launch(out, *values, np.int64(k), grid=1, block=64, device=device)
    total = sum(k * k for k in range(33))
    assert [int(out[39]) for out in outs] == [total + k for k in range(300)]
    program = [p for p in driver_of(device)._programs.values() if p.name == "many"]
    assert program
    assert all(p.module.spilled for p in program)


@pytest.mark.parametrize("device", other_ways().values(), ids=other_ways())
def test_out_of_memory_and_usable_again(device):
    """The bytes that were asked for and those that there are; then all is as before."""
    allocator = device.driver.memory.allocator
    for _ in range(2):
        with pytest.raises(OutOfMemory) as caught:
            allocator.acquire(1 << 50)
        assert caught.value.asked >= 1 << 50
        assert 0 < caught.value.available < 1 << 50
    y = sarek.ones(100, np.float32)
    saxpy.launch(y, sarek.ones(100, np.float32), np.float32(1), grid=2, block=64, device=device)
    assert (y == 2).all()


@pytest.mark.parametrize("device", other_ways().values(), ids=other_ways())
def test_memory_is_given_back(device):
    """A vector's memory is kept for the next one, and goes when it is flushed."""
    x = sarek.ones(1000, np.float32)
    x.to(device)
    before = device.memory_statistics()
    del x
    gc.collect()
    after = device.memory_statistics()
    assert after.in_use == before.in_use - 4096
    assert device.free_cached() >= 4096
    assert device.memory_statistics().cached == 0


@on_every_vulkan
def test_streams_wait_for_each_other(device):
    """Events put the work of one behind that of another; times are the device's."""
    first, second = device.stream(), device.stream()
    y = sarek.ones(4096, np.float32)
    one = sarek.ones(4096, np.float32)
    begun = first.record()
    for k in range(200):
        stream, other = (first, second) if k % 2 else (second, first)
        stream.wait(other.record())
        saxpy.launch(y, one, np.float32(1), grid=64, block=64, device=device, stream=stream)
    second.wait(first.record())
    ended = second.record()
    ended.synchronize()
    assert ended.is_done
    assert begun.elapsed_ms(ended) > 0
    assert (y == 201).all()


@on_vulkan
def test_more_work_than_a_command_buffer_has_times(device):
    """A lane goes on in another one, and its times are kept when it is used again."""
    queues, driver = device.driver.queues, driver_of(device)
    lane = queues.open()
    marks = [lane.mark() for _ in range(1000)]
    queues.submit(lane)
    queues.wait(marks[-1])
    times = [queues.elapsed_ms(marks[0], mark) for mark in marks]
    assert times == sorted(times)
    assert queues.status(marks[0]) == 0
    assert all(queues.duration_ms(mark) >= 0 for mark in marks)
    assert driver.logical.lost is None


@on_vulkan
def test_launches_in_streams_have_times_where_they_are_measured(device):
    """Times around each launch cost the device microseconds, so that others have none."""
    y, one = sarek.ones(4096, np.float32), sarek.ones(4096, np.float32)
    stream = device.stream()

    def launch():
        saxpy.launch(y, one, np.float32(1), grid=64, block=64, device=device, stream=stream)

    launch()
    stream.synchronize()
    with sarek.profile() as found:
        launch()
    (seen,) = found.launches
    assert seen.device_s > 0
    assert (y == 3).all()
