"""Warp operations: shuffles, votes, reductions and barriers of warps of 32 threads."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()


@sarek.function
def block_total(partial, value):
    """The sum over a block of up to 32 warps, in every thread of it."""
    t = sarek.thread_idx.x
    total = sarek.warp.sum(value)
    if sarek.warp.lane == 0:
        partial[t // sarek.warp.size] = total
    sarek.barrier()
    mine = partial[sarek.warp.lane] if sarek.warp.lane < sarek.block_dim.x // 32 else 0 * value
    return sarek.warp.sum(mine)


@sarek.kernel
def sum_blocks(out, x):
    partial = sarek.shared.array(32, sarek.int32)
    i = sarek.global_idx.x
    total = block_total(partial, x[i] if i < len(x) else 0)
    if sarek.thread_idx.x == 0:
        out[sarek.block_idx.x] = total


@corpus.add(sum_blocks, warps=True)
def block_sums_through_warps(rng):
    x = rng.integers(-999, 999, 500).astype(np.int32)
    padded = np.concatenate([x, np.zeros(12, np.int32)])
    expected = padded.reshape(4, 128).sum(axis=1).astype(np.int32)
    return Launch(4, 128, (poison(4, np.int32), x), (expected, None))


@sarek.kernel
def scan_warps(out, x):
    i = sarek.global_idx.x
    value = x[i]
    delta = 1
    while delta < sarek.warp.size:
        below = sarek.warp.shuffle_up(value, delta)
        if sarek.warp.lane >= delta:
            value += below
        delta *= 2
    out[i] = value


@corpus.add(scan_warps, warps=True)
def inclusive_scan_int64(rng):
    x = rng.integers(-(2**40), 2**40, 192)
    return Launch(3, 64, (poison(192, np.int64), x), (x.reshape(6, 32).cumsum(1).ravel(), None))


@sarek.kernel
def tree_sum(out, x):
    i = sarek.global_idx.x
    value = x[i]
    for step in range(5):
        value += sarek.warp.shuffle_down(value, 16 >> step)
    if sarek.warp.lane == 0:
        out[i // 32] = value
        out[i // 32 + 4] = sarek.warp.size


@corpus.add(tree_sum, warps=True)
def sum_by_shuffling_down(rng):
    x = rng.standard_normal(128)
    part = x.reshape(4, 32)
    while part.shape[1] > 1:
        half = part.shape[1] // 2
        part = part[:, :half] + part[:, half:]
    expected = np.concatenate([part.ravel(), np.full(4, 32.0)])
    return Launch(2, 64, (poison(8, np.float64), x), (expected, None))


@sarek.kernel
def votes(out, x, limit):
    i = sarek.global_idx.x
    out[0, i] = sarek.warp.ballot(x[i] < limit)
    out[1, i] = sarek.warp.all(x[i] < limit)
    out[2, i] = sarek.warp.any(x[i] < limit)
    out[3, i] = sarek.warp.active_mask()


@corpus.add(votes, warps=True)
def ballots_and_votes(rng):
    x = rng.integers(0, 9, (4, 32)).astype(np.int32)
    x[1], x[2] = 0, 9
    held = x < 5
    ballot = (held * (1 << np.arange(32, dtype=np.uint64))).sum(1)
    rows = [ballot, held.all(1), held.any(1), np.full(4, 2**32 - 1)]
    expected = np.stack([np.repeat(row, 32) for row in rows]).astype(np.uint32)
    arguments = (poison((4, 128), np.uint32), x.ravel(), 5)
    return Launch(2, 64, arguments, (expected, None, None))


@sarek.kernel
def uniform_flow(out, x):
    i = sarek.global_idx.x
    value = x[i]
    rounds = 0
    while sarek.warp.any(value > 3):  # the same for a warp, not for a block
        if value > 3:
            value -= sarek.warp.size // 8
        rounds += 1
    smallest = sarek.warp.min(value)
    out[i] = rounds * 100 + smallest if sarek.warp.all(value > 0) else -rounds


@corpus.add(uniform_flow, warps=True)
def loops_until_a_warp_agrees(rng):
    x = rng.integers(0, 90, 256).astype(np.int32)
    x[:32] = 7
    value = np.where(x > 3, x - 4 * -(-(x - 3) // 4), x).reshape(8, 32)
    rounds = np.maximum(0, -(-(x.reshape(8, 32).max(1) - 3) // 4))
    result = np.where((value > 0).all(1), rounds * 100 + value.min(1), -rounds)
    expected = np.repeat(result, 32).astype(np.int32)
    return Launch(2, 128, (poison(256, np.int32), x), (expected, None))


@sarek.kernel
def through_memory(out, x):
    tile = sarek.shared.array(128, sarek.float32)
    t = sarek.thread_idx.x
    i = sarek.global_idx.x
    tile[t] = x[i]
    sarek.warp_barrier()
    for distance in range(1, 4):
        other = tile[t ^ distance]
        sarek.warp_barrier()
        tile[t] = other * 2
        sarek.warp_barrier()
    out[i] = tile[t]


@corpus.add(through_memory, warps=True)
def warp_barriers_order_memory(rng):
    x = rng.standard_normal(256).astype(np.float32)
    return Launch(2, 128, (poison(256, np.float32), x), (x * 8, None))


@sarek.kernel
def lanes_of_blocks(out):
    x, y, z = sarek.thread_idx.x, sarek.thread_idx.y, sarek.thread_idx.z
    out[z, y, x] = sarek.warp.lane + 100 * sarek.warp.shuffle(sarek.warp.lane, 5)


@corpus.add(lanes_of_blocks, warps=True)
def lanes_follow_the_linear_index(rng):
    expected = (np.arange(256) % 32 + 500).astype(np.int32).reshape(2, 4, 32)
    return Launch(1, (32, 4, 2), (poison((2, 4, 32), np.int32),), (expected,))


@sarek.kernel
def fibonacci_sums(out, n):
    """A loop that hands one variable's value on to another, and that threads leave apart."""
    i = sarek.global_idx.x
    a, b = 0, 1
    for _ in range((i + n) % 40):
        a, b = b, a + b
    out[i] = sarek.warp.sum(a)


@corpus.add(fibonacci_sums, warps=True)
def warp_sums_after_a_rotating_loop(rng):
    f = [0, 1]
    while len(f) < 40:
        f.append(f[-1] + f[-2])
    values = np.array([f[(i + 7) % 40] for i in range(128)], np.int64).reshape(4, 32)
    return Launch(2, 64, (poison(128, np.int64), 7), (np.repeat(values.sum(1), 32), None))
