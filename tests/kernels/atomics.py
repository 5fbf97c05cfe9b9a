"""Atomics on 32-bit types, in global and shared memory, and what they return."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()


@sarek.kernel
def histogram(counts, values):
    local = sarek.shared.array(16, sarek.uint32)
    t = sarek.thread_idx.x
    if t < 16:
        local[t] = 0
    sarek.barrier()
    for i in range(sarek.global_idx.x, len(values), sarek.gridsize(1)):
        sarek.atomic.add(local, values[i] % 16, 1)
    sarek.barrier()
    if t < 16:
        sarek.atomic.add(counts, t, local[t])


@corpus.add(histogram)
def histogram_through_shared(rng):
    values = rng.integers(0, 256, 2000).astype(np.uint8)
    return Launch(
        3,
        64,
        (np.zeros(16, np.uint32), values),
        (np.bincount(values % 16, minlength=16).astype(np.uint32), None),
    )


@sarek.kernel
def take_ticket(owner, counter):
    ticket = sarek.atomic.add(counter, 0, 1)
    sarek.atomic.add(owner, ticket, 1)


@corpus.add(take_ticket)
def old_values_are_distinct(rng):
    return Launch(
        5,
        40,
        (np.zeros(200, np.int32), np.zeros(1, np.int32)),
        (np.ones(200, np.int32), np.array([200], np.int32)),
    )


@sarek.kernel
def extremes(low, high, values):
    i = sarek.global_idx.x
    if i < len(values):
        sarek.atomic.min(low, 0, values[i])
        sarek.atomic.max(high, 0, values[i])


def _extremes(rng, dtype, values):
    return Launch(
        4, 64,
        (np.array([values[0]], dtype), np.array([values[0]], dtype), values),
        (np.array([values.min()], dtype), np.array([values.max()], dtype), None),
    )  # fmt: skip


@corpus.add(extremes)
def min_max_int32(rng):
    return _extremes(rng, np.int32, rng.integers(-(2**31), 2**31, 250).astype(np.int32))


@corpus.add(extremes)
def min_max_uint32(rng):
    return _extremes(rng, np.uint32, rng.integers(0, 2**32, 250).astype(np.uint32))


@corpus.add(extremes)
def min_max_float32(rng):
    return _extremes(rng, np.float32, (rng.standard_normal(250) * 100).astype(np.float32))


@corpus.add(extremes)
def min_max_float32_ignore_nan(rng):
    values = (rng.standard_normal(250) * 100).astype(np.float32)
    launch = _extremes(rng, np.float32, values)
    values[1:60] = np.nan
    expected = (np.array([np.nanmin(values)]), np.array([np.nanmax(values)]), None)
    return Launch(launch.grid, launch.block, launch.arguments, expected)


@sarek.kernel
def float_sum(total, values):
    i = sarek.global_idx.x
    if i < len(values):
        sarek.atomic.add(total, i % 3, values[i])


@corpus.add(float_sum)
def add_float32(rng):
    values = rng.integers(-99, 99, 300).astype(np.float32)  # whole numbers: every order is exact
    return Launch(5, 64, (np.zeros(3, np.float32), values), (values.reshape(100, 3).sum(0), None))


@sarek.function
def lock_free_max(array, index, value):
    seen = sarek.atomic.load(array, index)
    while seen < value:
        before = sarek.atomic.cas(array, index, seen, value)
        if before == seen:
            return before
        seen = before
    return seen


@sarek.kernel
def cas_in_a_helper(best, values, last):
    i = sarek.global_idx.x
    if i < len(values):
        lock_free_max(best, 0, values[i])
        sarek.atomic.store(last, i % 4, 5)
        sarek.atomic.exch(last, 4 + i % 4, 9)


@corpus.add(cas_in_a_helper)
def compare_and_swap_loop(rng):
    values = rng.integers(0, 2**31, 250).astype(np.int32)
    last = np.repeat(np.array([5, 9], np.int32), 4)
    return Launch(
        4,
        64,
        (np.zeros(1, np.int32), values, poison(8, np.int32)),
        (np.array([values.max()]), None, last),
    )


@sarek.kernel
def cas_bits(a, compare):
    t = sarek.thread_idx.x
    sarek.atomic.cas(a, t, compare[t], 7)


@corpus.add(cas_bits)
def compare_and_swap_compares_bits(rng):
    a = np.array([0.0, -0.0, np.nan, 1, 2], np.float32)
    compare = np.array([-0.0, -0.0, np.nan, 1, 3], np.float32)
    return Launch(1, 5, (a, compare), (np.array([0, 7, 7, 7, 2], np.float32), None))


def any_nans(dtype, word, patterns):
    """Cells, wanted and given values: NaNs of all bits are the same, -0.0 and 0.0 are not."""
    nans = np.array(patterns, word).view(dtype)
    cells = np.concatenate([nans, [dtype(3), dtype(-0.0)]]).astype(dtype)
    compare = np.concatenate([nans[::-1], [nans[0], dtype(0.0)]]).astype(dtype)
    expected = np.array([7] * len(nans) + [3, -0.0], dtype)
    return Launch(1, len(cells), (cells, compare), (expected, None))


@corpus.add(cas_bits)
def compare_and_swap_of_any_nan_float32(rng):
    patterns = [0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF, 0xFF812345]
    return any_nans(np.float32, np.uint32, patterns)


@corpus.add(cas_bits)
def compare_and_swap_of_any_nan_float64(rng):
    patterns = [0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1, (1 << 63) - 1]
    return any_nans(np.float64, np.uint64, patterns)


@sarek.kernel
def first_of_a_nan(cell, taken, nans):
    t = sarek.global_idx.x
    old = sarek.atomic.cas(cell, 0, nans[t], 9)
    if old != old:
        sarek.atomic.add(taken, 0, 1)


@corpus.add(first_of_a_nan)
def one_thread_takes_the_place_of_a_nan(rng):
    nans = (np.arange(64, dtype=np.uint32) + 0xFFC00000).view(np.float32)
    cell = np.array([0x7F800123], np.uint32).view(np.float32)
    taken = np.zeros(1, np.int32)
    expected = (np.array([9], np.float32), np.array([1], np.int32), None)
    return Launch(2, 32, (cell, taken, nans), expected)


@sarek.kernel
def atomics_on_views(out, values):
    i = sarek.global_idx.x
    if i < len(values):
        row = out[values[i] % 3]
        sarek.atomic.add(row, (values[i] // 3) % 4, 1)
        sarek.atomic.add(out, (3, -1), 1)


@corpus.add(atomics_on_views)
def views_as_targets(rng):
    values = rng.integers(0, 1000, 120).astype(np.int32)
    expected = np.zeros((4, 4), np.int32)
    np.add.at(expected, (values % 3, (values // 3) % 4), 1)
    expected[3, 3] = 120
    return Launch(2, 64, (np.zeros((4, 4), np.int32), values), (expected, None))


@sarek.kernel
def zeros(a, values):
    """Of equal zeros the element keeps its own, as `np.fmin(element, value)` has the first."""
    i = sarek.global_idx.x
    sarek.atomic.min(a, (i, 0), values[i])
    sarek.atomic.max(a, (i, 1), values[i])


def _zeros(dtype):
    a = np.array([[0.0] * 2, [-0.0] * 2, [0.0] * 2, [-0.0] * 2], dtype)
    values = np.array([-0.0, 0.0, 0.0, -0.0], dtype)
    bits = np.signbit(a)
    expected = np.where(bits, dtype(-0.0), dtype(0.0))
    return Launch(1, 4, (a, values), (expected, None))


@corpus.add(zeros)
def extremes_of_zeros_float32(rng):
    return _zeros(np.float32)


@corpus.add(zeros)
def extremes_of_zeros_float64(rng):
    return _zeros(np.float64)
