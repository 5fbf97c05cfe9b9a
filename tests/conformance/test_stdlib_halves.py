"""Algorithms over halves: added up in float32, moved and ordered by their bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from sarek_numba import stdlib
from sarek_numba.stdlib import arguments
from tests.executors import devices

SLOW = "interpreter"
F32 = np.float32
halves = pytest.mark.parametrize(
    "half", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"]
)
everywhere = pytest.mark.parametrize("device", devices())


@pytest.fixture(autouse=True)
def short_segments(device, monkeypatch):
    """Few elements make several segments too."""
    monkeypatch.setattr(arguments, "_SEGMENT", 40 if device == SLOW else 500)


def whole(device: str, half: type, seed: int = 3) -> np.ndarray:
    """Whole numbers, whose sums are exact in float32 and not in halves."""
    count = 90 if device == SLOW else 3000
    return np.random.default_rng(seed).integers(-9, 90, count).astype(half)


def same(actual, expected) -> None:
    """Equal in type, shape and bits, NaN included."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert actual.tobytes() == expected.tobytes()


@everywhere
@halves
def test_sums_are_of_float32(half, device):
    """Sums, products and their scans neither round nor overflow as halves."""
    x = whole(device, half)
    total = np.cumsum(x.astype(F32))
    same(stdlib.reduce_sum(x, device=device), total[-1])
    same(stdlib.inclusive_scan(x, device=device), total)
    same(stdlib.exclusive_scan(x, device=device)[1:], total[:-1])
    same(stdlib.reduce_prod(np.full(5, 300, half), device=device), F32(half(300)) ** 5)
    same(stdlib.reduce_sum(np.empty(0, half), device=device), F32(0))


@everywhere
@halves
def test_extremes_are_halves(half, device):
    x = whole(device, half)
    x[0] = -0.0
    x[3] = -np.inf
    wide = x.astype(F32)
    same(stdlib.reduce_min(x, device=device), x[3])
    same(stdlib.reduce_max(x, device=device), half(wide.max()))
    same(stdlib.inclusive_scan(x, "max", device=device), np.maximum.accumulate(wide).astype(half))
    same(stdlib.exclusive_scan(x, "min", device=device)[0], half(np.inf))
    x[5] = np.nan
    assert np.isnan(F32(stdlib.reduce_max(x, device=device)))


@everywhere
@halves
def test_every_pattern_is_sorted(half, device, monkeypatch):
    """In the order of a stable sort of their values, the bits of NaN untouched."""
    if device != SLOW:  # one thread goes through the buckets of all segments
        monkeypatch.setattr(arguments, "_SEGMENT", 1 << 14)
    bits = np.random.default_rng(5).permutation(1 << 16).astype(np.uint16)
    x = bits[: 300 if device == SLOW else None].view(half)
    order = np.argsort(x.astype(F32), kind="stable")
    same(stdlib.sort(x, device=device), x[order])
    keys, moved = stdlib.sort_by_key(x, x[::-1], device=device)
    same(keys, x[order])
    assert moved.dtype == half
    with np.errstate(invalid="ignore"):
        numbers = ~np.isnan(x[::-1][order].astype(F32))
    assert np.array_equal(moved[numbers], x[::-1][order][numbers])


@everywhere
@halves
def test_moving_keeps_every_bit(half, device):
    """`compact` and `transpose` change no NaN's bits."""
    x = np.arange(0, 1 << 16, 61 if device == SLOW else 1).astype(np.uint16).view(half)
    mask = np.random.default_rng(7).integers(0, 2, len(x)).astype(bool)
    same(stdlib.compact(x, mask, device=device), x[mask])
    a = x[-60:].reshape(4, 15)
    same(stdlib.transpose(a, device=device), a.T)


@everywhere
@halves
def test_histogram_is_that_of_float32(half, device):
    x = whole(device, half) / half(7)
    for bins, limits in ((10, None), (7, (-1.0, 5.5))):
        counts, edges = stdlib.histogram(x, bins, limits, device=device)
        expected, expected_edges = np.histogram(x.astype(F32), bins, limits)
        same(edges, expected_edges)
        same(counts, expected)


@everywhere
@halves
def test_products_are_of_float32(half, device):
    """Products of matrices of halves are summed in float32 and are float32."""
    a, b = whole(device, half)[:84].reshape(12, 7), whole(device, half, 4)[:63].reshape(7, 9)
    same(stdlib.matmul(a, b, device=device), a.astype(F32) @ b.astype(F32))
