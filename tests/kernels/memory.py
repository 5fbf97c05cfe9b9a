"""Arrays: views, slices, negative indices, strides, shared, local and constant memory, barriers."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()
TILE = 16
WEIGHTS = np.array([1, 4, 6, 4, 1], np.float32)


@sarek.kernel
def reverse_block(out, x):
    tile = sarek.shared.array(64, sarek.int32)
    t = sarek.thread_idx.x
    i = sarek.global_idx.x
    tile[t] = x[i] if i < len(x) else 0
    sarek.barrier()
    if i < len(x):
        out[i] = tile[sarek.block_dim.x - 1 - t]


@corpus.add(reverse_block)
def shared_reverse(rng):
    n = 150
    x = rng.integers(-999, 999, n).astype(np.int32)
    padded = np.zeros(192, np.int32)
    padded[:n] = x
    return Launch(
        3, 64, (poison(n, np.int32), x), (padded.reshape(3, 64)[:, ::-1].ravel()[:n], None)
    )


@sarek.kernel
def block_sum(out, x):
    part = sarek.shared.array(128, sarek.float64)
    t = sarek.thread_idx.x
    total = 0.0
    for i in range(sarek.global_idx.x, len(x), sarek.gridsize(1)):
        total += x[i]
    part[t] = total
    sarek.barrier()
    step = sarek.block_dim.x // 2
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        sarek.barrier()
        step //= 2
    if t == 0:
        out[sarek.block_idx.x] = part[0]


@corpus.add(block_sum)
def tree_reduction(rng):
    x = rng.integers(-1000, 1000, 3000).astype(np.float64)  # whole numbers: every order is exact
    parts = np.zeros(4)
    for b in range(4):
        for t in range(64):
            parts[b] += x[b * 64 + t :: 256].sum()
    return Launch(4, 64, (poison(4, np.float64), x), (parts, None))


@sarek.kernel
def superstep_scan(out, x):
    a = sarek.shared.array(0, sarek.int32)
    t = sarek.thread_idx.x
    n = sarek.block_dim.x
    with sarek.superstep():
        a[t] = x[sarek.global_idx.x]
    offset = 1
    while offset < n:
        with sarek.superstep():
            value = a[t] + (a[t - offset] if t >= offset else 0)
        with sarek.superstep():
            a[t] = value
        offset *= 2
    out[sarek.global_idx.x] = a[t]


@corpus.add(superstep_scan)
def scan_in_dynamic_shared_memory(rng):
    x = rng.integers(-(2**30), 2**30, 96).astype(np.int32)
    expected = np.cumsum(x.reshape(4, 24), axis=1, dtype=np.int32).ravel()
    return Launch(4, 24, (poison(96, np.int32), x), (expected, None), shared_bytes=24 * 4)


@sarek.kernel
def two_views_of_dynamic(out):
    whole = sarek.shared.array(0, sarek.int32)
    floats = sarek.shared.dynamic(64, sarek.float32)
    t = sarek.thread_idx.x
    whole[t] = t * 3
    floats[t] = t * 0.5
    sarek.barrier()
    other = 15 - t
    out[t, 0] = whole[other]
    out[t, 1] = floats[other]


@corpus.add(two_views_of_dynamic)
def further_view_of_dynamic_region(rng):
    t = 15 - np.arange(16)
    return Launch(
        1,
        16,
        (poison((16, 2), np.float32),),
        (np.stack([t * 3, t * 0.5], 1).astype(np.float32),),
        shared_bytes=128,
    )


@sarek.kernel
def tiled_transpose(out, a):
    tile = sarek.shared.array((8, 9), sarek.float32)
    x, y = sarek.grid(2)
    tx, ty = sarek.thread_idx.x, sarek.thread_idx.y
    if y < a.shape[0] and x < a.shape[1]:
        tile[ty, tx] = a[y, x]
    sarek.barrier()
    x = sarek.block_idx.y * 8 + tx
    y = sarek.block_idx.x * 8 + ty
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[tx, ty]


@corpus.add(tiled_transpose)
def transpose_through_shared(rng):
    a = rng.standard_normal((21, 35)).astype(np.float32)
    return Launch((5, 3), (8, 8), (poison((35, 21), np.float32), a), (a.T.copy(), None))


@sarek.kernel
def local_sort(out, x):
    i = sarek.global_idx.x
    if i < x.shape[0]:
        mine = sarek.local.array(6, sarek.int16)
        for k in range(6):
            mine[k] = x[i, k]
        for a in range(1, 6):
            b = a
            while b > 0 and mine[b - 1] > mine[b]:
                mine[b - 1], mine[b] = mine[b], mine[b - 1]
                b -= 1
        for k in range(6):
            out[i, k] = mine[k]


@corpus.add(local_sort)
def insertion_sort_in_local_memory(rng):
    x = rng.integers(-(2**15), 2**15, (70, 6)).astype(np.int16)
    return Launch(3, 32, (poison((70, 6), np.int16), x), (np.sort(x, axis=1), None))


@sarek.kernel
def convolve(out, x):
    w = sarek.const.array_like(WEIGHTS)
    i = sarek.global_idx.x
    if i < len(x):
        total = 0.0
        for k in range(5):
            j = i + k - 2
            if 0 <= j < len(x):
                total += w[k] * x[j]
        out[i] = total / 16


@corpus.add(convolve)
def constant_weights(rng):
    x = rng.integers(-100, 100, 90).astype(np.float32)
    return Launch(
        3,
        32,
        (poison(90, np.float32), x),
        ((np.convolve(x, WEIGHTS, "same") / 16).astype(np.float32), None),
    )


@sarek.kernel
def row_views(out, a):
    i = sarek.global_idx.x
    if i < a.shape[0]:
        row = a[i]
        back = row[::-1]
        middle = a[i, 1:-1]
        every = back[1::2]
        out[i, 0] = back[0] + row[-1]
        out[i, 1] = middle[0] + middle[-1] + len(middle)
        out[i, 2] = every[0] + every.shape[0]
        a[i, 2:5][1] = 77
        column = a[:, 0]
        out[i, 3] = column[i] + column.size


@corpus.add(row_views)
def views_by_slicing(rng):
    a = rng.integers(-50, 50, (9, 8)).astype(np.int32)
    after = a.copy()
    after[:, 3] = 77
    out = np.stack([a[:, -1] * 2, a[:, 1] + a[:, 6] + 6, a[:, 6] + 4, a[:, 0] + 9], 1).astype(
        np.int32
    )
    return Launch(1, 16, (poison((9, 4), np.int32), a), (out, after))


@corpus.add(row_views)
def views_of_a_strided_array(rng):
    base = rng.integers(-50, 50, (18, 24)).astype(np.int32)
    a = base[::-2, ::3]
    after = a.copy()
    after[:, 3] = 77
    out = np.stack([a[:, -1] * 2, a[:, 1] + a[:, 6] + 6, a[:, 6] + 4, a[:, 0] + 9], 1).astype(
        np.int32
    )
    return Launch(1, 16, (poison((9, 4), np.int32), a), (out, after))


@sarek.kernel
def wrap_negative(out, x, shift):
    i = sarek.global_idx.x
    if i < len(x):
        out[i] = x[i - shift] + x[-1]


@corpus.add(wrap_negative)
def negative_indices_wrap(rng):
    x = rng.integers(0, 99, 40).astype(np.int64)
    return Launch(1, 64, (poison(40, np.int64), x, 11), (np.roll(x, 11) + x[-1], None, None))


@sarek.kernel
def read_other_argument(a, b):
    i = sarek.global_idx.x
    if i < len(a):
        a[i] = b[i] + 1


@corpus.add(read_other_argument)
def same_array_twice(rng):
    a = rng.integers(0, 99, 40).astype(np.int32)
    return Launch(2, 32, (a, a), (a + 1, None))


@corpus.add(read_other_argument)
def overlapping_views_of_one_array(rng):
    base = rng.integers(0, 99, 80).astype(np.int32)
    a, b = base[0::2], base[1::2]  # interleaved in memory, no element in common
    return Launch(2, 32, (a, b), (b + 1, None))


@sarek.kernel
def empty_safe(out, x):
    i = sarek.global_idx.x
    if i == 0:
        out[0] = len(x)
    if i < len(x):
        out[i + 1] = x[i]


@corpus.add(empty_safe)
def zero_size_array(rng):
    return Launch(
        1, 32, (poison(1, np.int32), np.empty(0, np.int32)), (np.zeros(1, np.int32), None)
    )


@sarek.kernel
def barriers_in_nested_loops(out, n, m):
    tile = sarek.shared.array(33, sarek.int32)
    t = sarek.thread_idx.x
    mine = t
    for a in range(n):
        for b in range(m + a):
            tile[t] = mine
            sarek.barrier()
            mine += tile[(t + b + 1) % sarek.block_dim.x] * (a + 1)
            sarek.barrier()
        if a == 2:
            break
    out[sarek.global_idx.x] = mine


@corpus.add(barriers_in_nested_loops)
def values_live_across_barriers_in_loops(rng):
    mine = np.tile(np.arange(33, dtype=np.int32), (2, 1))
    for a in range(3):
        for b in range(2 + a):
            mine = mine + np.roll(mine, -(b + 1), axis=1) * np.int32(a + 1)
    return Launch(2, 33, (poison(66, np.int32), 5, 2), (mine.ravel(), None, None))


@sarek.function
def rotated(x, i, n):
    """An array of each thread, in a function that few threads call."""
    mine = sarek.local.array(4, np.int32)
    for k in range(4):
        mine[k] = x[i] + k
    return mine[n % 4]


@sarek.kernel
def rotate_some(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i] = 0
        if x[i] % 16 == 3:
            out[i] = rotated(x, i, i)


@corpus.add(rotate_some)
def local_array_of_a_function_that_few_threads_call(rng):
    x = rng.integers(0, 64, 4000).astype(np.int32)
    expected = np.where(x % 16 == 3, x + np.arange(4000) % 4, 0).astype(np.int32)
    return Launch(63, 64, (poison(4000, np.int32), x), (expected, None))
