"""Planted bugs and near misses: places of accesses, and accesses that nothing orders."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from sarek_numba import DataRace, OutOfBounds
from tests.conformance.planted import bug, silent, zeros


def pair(n, m, dtype=np.int32):
    """Arguments: zeros to write and ones to read."""
    return lambda: (np.zeros(n, dtype), np.ones(m, dtype))


# --- out of bounds --------------------------------------------------------------------------------


@bug(OutOfBounds, pair(8, 8), thread=(7, 0, 0), threads=1, array="x", index=8)
def reads_one_beyond(out, x):
    i = sarek.global_idx.x
    out[i] = x[i + 1]  # BUG


@silent(pair(8, 9))
def reads_the_last(out, x):
    i = sarek.global_idx.x
    out[i] = x[i + 1]


@bug(OutOfBounds, zeros(6), block=8, thread=(6, 0, 0), threads=2, array="out", index=6)
def writes_without_guard(out):
    i = sarek.global_idx.x
    out[i] = i  # BUG


@silent(zeros(6), block=8)
def writes_with_guard(out):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = i


@bug(OutOfBounds, pair(8, 8), thread=(0, 0, 0), threads=1, array="x", index=-9)
def negative_beyond_the_start(out, x):
    i = sarek.global_idx.x
    out[i] = x[i - 9]  # BUG


@silent(pair(8, 8))
def negative_down_to_the_start(out, x):
    i = sarek.global_idx.x
    out[i] = x[i - 8]


@bug(OutOfBounds, zeros(8, 8), thread=(4, 0, 0), threads=4, array="a")
def beyond_a_slice_inside_its_base(a):
    i = sarek.global_idx.x
    row = a[2, 1:5]
    row[i] = i  # BUG


@silent(zeros(8, 8), block=4)
def inside_a_slice(a):
    i = sarek.global_idx.x
    row = a[2, 1:5]
    row[i] = i


@bug(OutOfBounds, zeros(4, 8), thread=(2, 0, 0), threads=1, array="a")
def column_beyond_inside_the_buffer(a):
    i = sarek.global_idx.x
    if i < 3:
        a[i, 3 * i + 2] = 1  # BUG


@silent(zeros(4, 9))
def column_inside(a):
    i = sarek.global_idx.x
    if i < 3:
        a[i, 3 * i + 2] = 1


@bug(OutOfBounds, zeros(8), thread=(7, 0, 0), threads=1, array="tile", index=8)
def shared_beyond(out):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    tile[t] = t
    sarek.barrier()
    out[t] = tile[t + 1]  # BUG


@bug(OutOfBounds, zeros(8), thread=(0, 0, 0), threads=8, array="mine", index=4)
def local_beyond(out):
    t = sarek.thread_idx.x
    mine = sarek.local.array(4, sarek.int32)
    for k in range(5):
        mine[k] = k  # BUG
    out[t] = mine[t % 4]


@bug(
    OutOfBounds,
    zeros(2),
    grid=(1, 2),
    place=(0, 1, 0),
    thread=(2, 0, 0),
    threads=6,
    array="counts",
    index=2,
)
def atomic_beyond(counts):
    if sarek.block_idx.y == 1:
        sarek.atomic.add(counts, sarek.thread_idx.x, 1)  # BUG


@bug(OutOfBounds, zeros(4), shared_bytes=16, thread=(4, 0, 0), threads=4, array="tile")
def dynamic_shared_beyond(out):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(0, sarek.int32)
    tile[t] = t  # BUG
    sarek.barrier()
    if t < 4:
        out[t] = tile[3 - t]


@silent(pair(8, 8))
def reads_guarded_by_and(out, x):
    i = sarek.global_idx.x
    if i + 1 < len(x) and x[i + 1] > 0:
        out[i] = 1


@silent(pair(8, 8))
def reads_guarded_by_or(out, x):
    i = sarek.global_idx.x
    if i + 1 >= len(x) or x[i + 1] > 0:
        out[i] = 1


@silent(pair(8, 8))
def reads_guarded_by_ternary(out, x):
    i = sarek.global_idx.x
    out[i] = x[i - 1] if i > 0 else x[i + 1] if i + 1 < len(x) else 0


@silent(pair(8, 8))
def reads_guarded_in_the_condition_of_a_loop(out, x):
    i = sarek.global_idx.x
    k = i
    while k < len(x) and x[k] != 0:
        k += 1
    out[i] = k


@silent(zeros(0))
def an_empty_array_is_left_alone(out):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = 1


# --- races in global memory -----------------------------------------------------------------------


@bug(DataRace, pair(8, 8), place=(0, 0, 0), threads=8, array="a")
def neighbour_without_barrier(out, a):
    i = sarek.global_idx.x
    a[i] = i
    out[i] = a[(i + 1) % 8] + 1  # BUG


@silent(zeros(8))
def neighbour_with_barriers(a):
    i = sarek.global_idx.x
    a[i] = i
    sarek.barrier()
    right = a[(i + 1) % 8]
    sarek.barrier()
    a[i] = right + 1


@bug(DataRace, pair(16, 16), grid=2, threads=2, array="a")
def neighbour_across_blocks_despite_a_barrier(out, a):
    i = sarek.global_idx.x
    a[i] = i
    sarek.barrier()
    out[i] = a[(i + 1) % 16] + 1  # BUG


@bug(DataRace, zeros(1), array="a", index=0)
def all_write_differing_bits(a):
    a[0] = sarek.thread_idx.x  # BUG


@silent(zeros(1))
def all_write_the_same_bits(a):
    a[0] = 7


@bug(DataRace, zeros(1), races="strict", array="a", index=0)
def all_write_the_same_bits_strictly(a):
    a[0] = 7  # BUG


@bug(DataRace, pair(1, 8, np.float32), array="a", index=0)
def zeros_of_both_signs(a, x):
    i = sarek.thread_idx.x
    a[0] = 0.0 if i < 4 else -0.0 * x[i]  # BUG


@bug(DataRace, pair(8, 1), array="flag", index=0)
def benign_writes_that_another_reads(out, flag):
    i = sarek.thread_idx.x
    flag[0] = 5
    out[i] = flag[0]  # BUG


@bug(DataRace, zeros(1), array="count", index=0)
def lost_updates(count):
    count[0] += 1  # BUG


@silent(zeros(1), grid=3)
def atomic_updates_only(count):
    sarek.atomic.add(count, 0, 1)


@bug(DataRace, pair(8, 1), array="flag", index=0, says="atomic")
def plain_read_against_atomic(out, flag):
    i = sarek.thread_idx.x
    sarek.atomic.add(flag, 0, 1)
    out[i] = flag[0]  # BUG


@silent(pair(8, 1))
def atomic_read_against_atomic(out, flag):
    i = sarek.thread_idx.x
    sarek.atomic.add(flag, 0, 1)
    old = sarek.atomic.load(flag, 0)
    out[i] = old


@silent(pair(8, 1))
def plain_read_after_atomics_and_a_barrier(out, flag):
    i = sarek.thread_idx.x
    sarek.atomic.add(flag, 0, 1)
    sarek.barrier()
    out[i] = flag[0]


@silent(zeros(64, dtype=np.uint8), grid=2, block=32)
def neighbouring_bytes(a):
    i = sarek.global_idx.x
    a[i] = a[i] + 1


@silent(zeros(64, dtype=np.bool_), grid=2, block=32)
def neighbouring_bools(a):
    i = sarek.global_idx.x
    a[i] = not a[i]


def overlapping(shift):
    def arguments():
        base = np.arange(17, dtype=np.int32)
        return base[shift : shift + 8], base[:8]

    return arguments


@bug(DataRace, overlapping(1))
def arguments_that_overlap(a, b):
    i = sarek.thread_idx.x
    a[i] = b[i] + 1  # BUG


@silent(overlapping(8))
def arguments_that_touch(a, b):
    i = sarek.thread_idx.x
    a[i] = b[i] + 1


@silent(overlapping(0))
def arguments_that_are_one_array(a, b):
    i = sarek.thread_idx.x
    a[i] = b[i] + 1


# --- races in shared memory -----------------------------------------------------------------------


@bug(DataRace, zeros(8), array="tile")
def shared_without_barrier(out):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    tile[t] = t
    out[t] = tile[7 - t]  # BUG


@silent(zeros(16), grid=2)
def shared_with_barrier(out):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    tile[t] = t
    sarek.barrier()
    out[sarek.global_idx.x] = tile[7 - t]


@silent(zeros(8))
def shared_with_superstep(out):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    with sarek.superstep():
        tile[t] = t
    out[t] = tile[7 - t]


@bug(DataRace, zeros(8), array="tile")
def shared_reused_in_a_loop(out):
    """Case 116."""
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    total = 0
    for k in range(3):
        tile[t] = t + k  # BUG
        sarek.barrier()
        total += tile[t ^ 1]
    out[t] = total


@silent(zeros(8))
def shared_reused_behind_a_barrier(out):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    total = 0
    for k in range(3):
        tile[t] = t + k
        sarek.barrier()
        total += tile[t ^ 1]
        sarek.barrier()
    out[t] = total


@silent(zeros(8))
def ping_pong(out):
    t = sarek.thread_idx.x
    tile = sarek.shared.array((2, 8), sarek.int32)
    tile[0, t] = t
    sarek.barrier()
    for k in range(4):
        tile[(k + 1) % 2, t] = tile[k % 2, (t + 1) % 8]
        sarek.barrier()
    out[t] = tile[0, t]


@silent(zeros(1))
def tree_reduction(out):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    tile[t] = t
    sarek.barrier()
    half = 4
    while half > 0:
        if t < half:
            tile[t] += tile[t + half]
        sarek.barrier()
        half //= 2
    if t == 0:
        out[0] = tile[0]


@bug(DataRace, zeros(1), array="tile")
def tree_reduction_without_barrier(out):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    tile[t] = t
    sarek.barrier()
    half = 4
    while half > 0:
        if t < half:
            tile[t] += tile[t + half]  # BUG
        half //= 2
    if t == 0:
        out[0] = tile[0]


@bug(DataRace, zeros(2), grid=2, array="total", says="atomic")
def fence_does_not_order_plain_reads(total):
    t = sarek.thread_idx.x
    sarek.atomic.add(total, 0, 1)
    sarek.mem_fence("device")
    if t == 0:
        total[1] = total[0]  # BUG
