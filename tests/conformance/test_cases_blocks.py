"""Cases from the field: shared memory, barriers, atomics (sections H and I)."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.everywhere import everywhere, gives
from tests.executors import device_of, executors, run
from tests.kernels.case import Launch

devices = pytest.mark.parametrize("device", [name for name in executors() if name != "emulation"])

ATOMIC = (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64)


@sarek.kernel
def reversed_blocks(out, x):
    t = sarek.thread_idx.x
    i = sarek.global_idx.x
    n = len(x)
    tile = sarek.shared.array(16, sarek.int32)
    tile[t] = x[i] if i < n else -1
    sarek.barrier()
    if i < n:
        out[i] = tile[15 - t]


@everywhere
@pytest.mark.parametrize("n", [1, 15, 16, 17, 40])
def test_case_110_padding(executor, n):
    """Threads beyond the data reach the barrier too, where the guard stands around accesses."""
    x = np.arange(100, 100 + n, dtype=np.int32)
    blocks = -(-n // 16)
    padded = np.full(blocks * 16, -1)
    padded[:n] = x
    expected = padded.reshape(blocks, 16)[:, ::-1].ravel()[:n]
    gives(executor, reversed_blocks, expected, x, grid=blocks, block=16)


@sarek.kernel
def once_in_a_block(out):
    t = sarek.thread_idx.x
    seen = sarek.shared.array(1, sarek.int32)
    if t == 0:
        seen[0] = 0
        sarek.atomic.add(out, 0, 1)
    sarek.barrier()
    sarek.atomic.add(seen, 0, 1)
    sarek.barrier()
    if t == 0:
        sarek.atomic.add(out, 1, seen[0])


@everywhere
def test_case_112_leader(executor):
    """A branch of thread 0 runs once in each block."""
    out = np.zeros(2, np.int32)
    run(executor, once_in_a_block, Launch(7, 24, (out,), ()))
    assert out.tolist() == [7, 7 * 24]


@sarek.kernel
def nested_barriers(out, n):
    t = sarek.thread_idx.x
    size = sarek.block_dim.x
    tile = sarek.shared.array(16, sarek.int32)
    tile[t] = t + 1
    mine = t
    for a in range(n):
        kept = mine * 2
        for b in range(a + 1):
            sarek.barrier()
            value = tile[(t + b + 1) % size]
            sarek.barrier()
            tile[t] = value + a
            mine += value + kept
    sarek.barrier()
    half = size // 2
    while half > 0:
        if t < half:
            tile[t] += tile[t + half]
        sarek.barrier()
        half //= 2
    out[sarek.global_idx.x] = mine * 1000 + tile[0]


def _nested_barriers(size, n):
    tile, mine = np.arange(1, size + 1), np.arange(size)
    for a in range(n):
        kept = mine * 2
        for b in range(a + 1):
            value = np.roll(tile, -(b + 1))
            tile = value + a
            mine = mine + value + kept
    return mine * 1000 + tile.sum()


@everywhere
def test_case_113_nested(executor):
    """Values live across barriers in nested loops; a reduction by `while` ends."""
    expected = np.tile(_nested_barriers(16, 4), 3)
    gives(executor, nested_barriers, expected, 4, grid=3, block=16)


@sarek.kernel
def reuse(out, x, rounds):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    total = 0
    for k in range(rounds):
        tile[t] = x[t] * (k + 1)
        sarek.barrier()
        total += tile[t ^ 1]
        sarek.barrier()
    out[t] = total


@everywhere
def test_case_116_reuse(executor):
    """Shared memory written again behind a second barrier (without one it is a planted bug)."""
    x = np.arange(8, dtype=np.int32) ** 2
    gives(executor, reuse, x[[1, 0, 3, 2, 5, 4, 7, 6]] * 6, x, 3)


@sarek.kernel
def reuse_without_a_barrier(out, x, rounds):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    total = 0
    for k in range(rounds):
        tile[t] = x[t] * (k + 1)
        sarek.barrier()
        total += tile[t ^ 1]
    out[t] = total


def test_case_116_race():
    """Without the second barrier the oracle reports the race, with the line of either access."""
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    with pytest.raises(sarek.DataRace, match=r"tile\[t\]") as raised:
        run("interpreter", reuse_without_a_barrier, Launch(1, 8, (out, x, 3), ()))
    assert "tile[t ^ 1]" in str(raised.value)


def whole(bytes_of_shared, bytes_of_local=16):
    size, mine = bytes_of_shared // 4, bytes_of_local // 4

    @sarek.kernel
    def fill(out):
        t = sarek.thread_idx.x
        tile = sarek.shared.array(size, sarek.int32)
        own = sarek.local.array(mine, sarek.int32)
        for k in range(mine):
            own[k] = k + t
        for k in range(t, size, sarek.block_dim.x):
            tile[k] = k
        sarek.barrier()
        out[t] = tile[size - 1 - t] + own[mine - 1]

    return fill


@devices
def test_case_118_limit(device):
    """All shared memory of a device can be used; 4 bytes more are refused with both numbers."""
    limit = device_of(device).record.limits.shared_bytes
    size = min(limit, 64 * 1024)  # the largest that is worth filling
    gives(device, whole(size), [size // 4 - 1 - t + 3 + t for t in range(4)])
    out = np.full(4, 7, np.int32)
    with pytest.raises(sarek.SarekError) as raised:
        run(device, whole(limit + 4), Launch(1, 4, (out,), ()))
    text = str(raised.value).replace(",", "").replace("_", "")
    assert str(limit + 4) in text
    assert str(limit) in text
    assert out.tolist() == [7] * 4
    gives(device, whole(64), [15 + 3] * 4)


def together(bytes_of_long):
    """Static arrays of three types, and two parts of the dynamic region behind them."""
    size = bytes_of_long // 8

    @sarek.kernel
    def fill(out):
        t = sarek.thread_idx.x
        small = sarek.shared.array(1003, sarek.uint8)
        long = sarek.shared.array(size, sarek.float64)
        odd = sarek.shared.array(5, sarek.int16)
        behind = sarek.shared.array(0, sarek.float64)
        for k in range(t, 1003, 4):
            small[k] = k % 200
        for k in range(t, size, 4):
            long[k] = 0.5 + k
        for k in range(t, 5, 4):
            odd[k] = -k
        for k in range(t, len(behind), 4):
            behind[k] = -0.25 * k
        sarek.barrier()
        total = 0.0
        for k in range(t, 1003, 4):
            total += small[k]
        for k in range(t, size, 4):
            total += long[k]
        for k in range(t, 5, 4):
            total += odd[k]
        for k in range(t, len(behind), 4):
            total += behind[k]
        out[t] = total

    return fill


@devices
@pytest.mark.parametrize("size", [4096, 48 * 1024 - 1024, 60 * 1024])
def test_shared_memory_of_several_arrays(device, size):
    """Arrays beyond what a device takes as declared ones share no byte, and the dynamic region is
    as long as was asked for and shares none of theirs.
    """
    if device_of(device).record.limits.shared_bytes < size + 2048:
        pytest.skip("the device has less")
    out = np.zeros(4)
    run(device, together(size), Launch(1, 4, (out,), (), shared_bytes=512))
    numbers = [np.arange(1003) % 200, 0.5 + np.arange(size // 8), -np.arange(5), -np.arange(64) / 4]
    assert out.tolist() == [sum(part[t::4].sum() for part in numbers) for t in range(4)]


@everywhere
def test_case_118_local(executor):
    """A local array of 8 KiB in each thread."""
    gives(executor, whole(64, 8192), [15 + 2047] * 4)


def local_arrays(bytes_of_thread):
    """A kernel whose threads have local arrays of so many bytes, a quarter in a device function."""
    inside = bytes_of_thread // 16
    mine = bytes_of_thread // 4 - inside

    @sarek.function
    def helper(t, k):
        own = sarek.local.array(inside, sarek.int32)
        own[k] = t
        own[inside - 1] = 1
        return own[k]

    @sarek.kernel
    def fill(out):
        t = sarek.thread_idx.x
        own = sarek.local.array(mine, sarek.int32)
        for k in range(t % 7, mine, 1000):
            own[k] = t + 1
        own[mine - 1] = t * 3
        sarek.barrier()
        out[t] = own[t % 7] * 10000 + own[mine - 1] + helper(t, t % 5)

    return fill


@devices
def test_case_118_local_limit(device):
    """4 MiB of local arrays in a block can be used; more than a device has are refused with both
    numbers, and the process lives.
    """
    expected = [(t + 1) * 10000 + t * 3 + t for t in range(64)]
    gives(device, local_arrays(2**22 // 64), expected)
    limits = device_of(device).record.limits
    limit = limits.local_bytes
    out = np.full(64, 7, np.int32)
    if limits.thread_local_bytes is not None:
        most = limits.thread_local_bytes
        with pytest.raises(
            sarek.InvalidDimensions, match=rf"asks for {2**22} bytes .* a thread; .*has {most}"
        ):
            run(device, local_arrays(2**22), Launch(1, 64, (out,), ()))
    elif limit is None:  # the driver knows how many threads it takes, of kernels of 4 MiB a thread
        with pytest.raises(sarek.InvalidDimensions, match=r"at most 1 threads.*\n.*memory is \d+"):
            run(device, local_arrays(2**22), Launch(1, 64, (out,), ()))
    else:
        kernel = local_arrays(limit // 64 + 16)
        with pytest.raises(
            sarek.InvalidDimensions, match=rf"asks for {limit + 1024} .*has {limit}"
        ):
            run(device, kernel, Launch(1, 64, (out,), ()))
    assert out.tolist() == [7] * 64
    gives(device, local_arrays(4096), expected)


@sarek.kernel
def slots(out, counter):
    i = sarek.global_idx.x
    old = sarek.atomic.add(counter, 0, 1)
    out[i] = old


@everywhere
@pytest.mark.parametrize("dtype", ATOMIC)
def test_case_121_old(executor, dtype):
    """An atomic gives the value from before it: all slots are distinct."""
    out, counter = np.full(96, 500, dtype), np.zeros(1, dtype)
    run(executor, slots, Launch(3, 32, (out, counter), ()))
    assert sorted(out.tolist()) == list(range(96))
    assert counter[0] == 96


@sarek.kernel
def every_old_value(out, a):
    if sarek.thread_idx.x == 0:
        old_add = sarek.atomic.add(a, 0, 5)
        old_min = sarek.atomic.min(a, 0, 3)
        old_max = sarek.atomic.max(a, 0, 9)
        old_exch = sarek.atomic.exch(a, 0, 2)
        old_hit = sarek.atomic.cas(a, 0, 2, 6)
        old_miss = sarek.atomic.cas(a, 0, 2, 8)
        loaded = sarek.atomic.load(a, 0)
        sarek.atomic.store(a, 0, 1)
        out[0] = old_add
        out[1] = old_min
        out[2] = old_max
        out[3] = old_exch
        out[4] = old_hit
        out[5] = old_miss
        out[6] = loaded


@everywhere
@pytest.mark.parametrize("dtype", ATOMIC)
def test_case_121_each(executor, dtype):
    """Each operation gives its old value, and does what it says."""
    a = np.array([1], dtype)
    gives(executor, every_old_value, [1, 6, 3, 9, 2, 6, 6], a, dtype=dtype)
    assert a[0] == 1


@sarek.kernel
def sum_and_extremes(totals, x):
    t = sarek.thread_idx.x
    part = sarek.shared.array(1, sarek.float32)
    if t == 0:
        part[0] = 0.0
    sarek.barrier()
    i = sarek.global_idx.x
    sarek.atomic.add(part, 0, x[i])
    sarek.atomic.min(totals, 1, x[i])
    sarek.atomic.max(totals, 2, x[i])
    sarek.barrier()
    if t == 0:
        sarek.atomic.add(totals, 0, part[0])


@everywhere
def test_case_122_float(executor):
    """float32 add, min and max in global and shared memory; the sum is exact here."""
    x = (np.arange(128, dtype=np.float32) - 40) * 0.25
    totals = np.zeros(3, np.float32)
    run(executor, sum_and_extremes, Launch(4, 32, (totals, x), ()))
    assert totals.tolist() == [x.sum(), x.min(), x.max()]


@sarek.kernel
def multiply_by_cas(product, x):
    i = sarek.global_idx.x
    seen = sarek.atomic.load(product, 0)
    while True:
        old = sarek.atomic.cas(product, 0, seen, seen * x[i])
        if old == seen:
            break
        seen = old


@everywhere
@pytest.mark.parametrize("dtype", ATOMIC)
def test_case_125_cas(executor, dtype):
    """A loop of compare-and-swap does what no atomic does."""
    x = np.array([3, 2, 5, 1, 2, 7, 1, 3], dtype)
    product = np.ones(1, dtype)
    run(executor, multiply_by_cas, Launch(2, 4, (product, x), ()))
    assert product[0] == 1260
