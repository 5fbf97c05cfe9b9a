"""Collectives of a block, `sarek.block`, called from kernels."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()


@sarek.kernel
def every_reduction(out, x):
    i = sarek.global_idx.x
    value = x[i] if i < len(x) else 1
    out[i, 0] = sarek.block.reduce_sum(value)
    out[i, 1] = sarek.block.reduce_prod(value)
    out[i, 2] = sarek.block.reduce_min(value)
    out[i, 3] = sarek.block.reduce_max(value)


def _reductions(x, block):
    padded = np.ones(-(-len(x) // block) * block, x.dtype)
    padded[: len(x)] = x
    rows = padded.reshape(-1, block)
    columns = [f.reduce(rows, axis=1, dtype=x.dtype) for f in (np.add, np.multiply)]
    columns += [rows.min(1), rows.max(1)]
    return np.stack(columns, 1).repeat(block, axis=0)


@corpus.add(every_reduction)
def reductions_of_int32(rng):
    x = rng.integers(-(2**31), 2**31, 60).astype(np.int32)
    return Launch(2, 37, (poison((74, 4), np.int32), x), (_reductions(x, 37), None))


@corpus.add(every_reduction)
def reductions_of_uint8(rng):
    x = rng.integers(0, 256, 64).astype(np.uint8)
    return Launch(2, 32, (poison((64, 4), np.uint8), x), (_reductions(x, 32), None))


@corpus.add(every_reduction)
def reductions_of_float64_with_nan(rng):
    x = rng.integers(1, 3, 48).astype(np.float64)  # small whole numbers: every order is exact
    x[30] = np.nan
    return Launch(3, 16, (poison((48, 4), np.float64), x), (_reductions(x, 16), None))


@corpus.add(every_reduction)
def reductions_of_one_thread(rng):
    x = rng.integers(-9, 9, 3).astype(np.int64)
    return Launch(3, 1, (poison((3, 4), np.int64), x), (_reductions(x, 1), None))


# Two scans a kernel: PoCL's compile time rises steeply with the loops that hold a barrier.


@sarek.kernel
def scans_of_sums(out, x):
    i = sarek.global_idx.x
    out[i, 0] = sarek.block.scan_sum(x[i])
    out[i, 1] = sarek.block.scan_exclusive_sum(x[i])


@sarek.kernel
def scans_of_products(out, x):
    i = sarek.global_idx.x
    out[i, 0] = sarek.block.scan_prod(x[i])
    out[i, 1] = sarek.block.scan_exclusive_prod(x[i])


@sarek.kernel
def scans_of_extremes(out, x):
    i = sarek.global_idx.x
    out[i, 0] = sarek.block.scan_min(x[i])
    out[i, 1] = sarek.block.scan_max(x[i])


def _accumulated(function, x, block, first):
    """The inclusive scan of each row of threads, and the one shifted by one."""
    inclusive = function.accumulate(x.reshape(-1, block), axis=1, dtype=x.dtype)
    before = np.full_like(inclusive, first)
    before[:, 1:] = inclusive[:, :-1]
    return np.stack([inclusive, before], 2).reshape(-1, 2)


@corpus.add(scans_of_sums)
def sums_of_int32(rng):
    x = rng.integers(-(2**31), 2**31, 74).astype(np.int32)
    return Launch(2, 37, (poison((74, 2), np.int32), x), (_accumulated(np.add, x, 37, 0), None))


@corpus.add(scans_of_products)
def products_of_float32(rng):
    x = rng.choice([-2.0, -1.0, 1.0], 64).astype(np.float32)
    expected = _accumulated(np.multiply, x, 32, 1)
    return Launch(2, 32, (poison((64, 2), np.float32), x), (expected, None))


@corpus.add(scans_of_extremes)
def extremes_of_float64_with_nan(rng):
    x = rng.standard_normal(66)
    x[50] = np.nan
    rows = x.reshape(2, 33)
    columns = [f.accumulate(rows, axis=1) for f in (np.minimum, np.maximum)]
    expected = np.stack(columns, 2).reshape(-1, 2)
    return Launch(2, 33, (poison((66, 2), np.float64), x), (expected, None))


@sarek.kernel
def two_element_types(out, x, y):
    t = sarek.thread_idx.x
    total = sarek.block.reduce_sum(x[t])
    other = sarek.block.reduce_sum(y[t])
    out[t] = total + other
    total = sarek.block.reduce_sum(x[t] + total)
    out[t] += total


@corpus.add(two_element_types)
def collectives_one_after_another(rng):
    x = rng.integers(0, 99, 24).astype(np.int32)
    y = rng.integers(0, 99, 24).astype(np.float64)
    expected = np.full(24, float(x.sum()) + y.sum() + x.sum() * 25)
    return Launch(1, 24, (poison(24, np.float64), x, y), (expected, None, None))


@sarek.kernel
def planes(out, x):
    i = (sarek.thread_idx.z * 3 + sarek.thread_idx.y) * 4 + sarek.thread_idx.x
    for k in range(2):
        out[k, i] = sarek.block.scan_sum(x[k, i])


@corpus.add(planes)
def threads_count_in_linear_order(rng):
    x = rng.integers(-99, 99, (2, 24)).astype(np.int64)
    return Launch(1, (4, 3, 2), (poison((2, 24), np.int64), x), (x.cumsum(1), None))
