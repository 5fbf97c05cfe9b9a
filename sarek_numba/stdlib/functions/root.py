"""Roots: a first approximation, then one step whose remainder is computed as a pair."""

from __future__ import annotations

import math

import numpy as np

import sarek_numba as sarek
from sarek_numba.stdlib.functions.pairs import (
    add,
    decompose,
    quick_sum,
    scaled,
    two_product,
)


@sarek.function
def cbrt(x: sarek.float64) -> sarek.float64:
    if x == 0.0 or not np.isfinite(x):
        return x
    m, k = decompose(abs(x))
    third = k // 3
    m = scaled(m, k - 3 * third)  # in [1, 8)
    # a straight line, then Halley's steps: 0.1, 1e-3, 1e-9, 1e-17
    r = 0.8 + 0.17 * m
    for _ in range(3):
        cube = r * r * r
        r = r * (cube + 2.0 * m) / (2.0 * cube + m)
    a, b = two_product(r, r)
    p, q = two_product(a, r)
    rest = ((m - p) - q) - b * r
    return np.copysign(scaled(r + rest / (3.0 * a), third), x)


@sarek.function
def rsqrt(x: sarek.float64) -> sarek.float64:
    if x == 0.0:
        return np.copysign(math.inf, x)
    if not (x > 0.0):
        return math.nan
    if x == math.inf:
        return sarek.float64(0.0)
    m, k = decompose(x)
    half = k >> 1
    m = scaled(m, k - 2 * half)
    r = 1.0 / np.sqrt(m)
    a, b = two_product(r, r)
    p, q = two_product(a, m)
    rest = ((1.0 - p) - q) - b * m
    return scaled(r + 0.5 * r * rest, -half)


@sarek.function
def hypot(x: sarek.float64, y: sarek.float64) -> sarek.float64:
    a, b = abs(x), abs(y)
    if a == math.inf or b == math.inf:
        return math.inf
    if np.isnan(a) or np.isnan(b):
        return math.nan
    high, low = max(a, b), min(a, b)
    if low == 0.0:
        return high
    m, k = decompose(high)
    n, j = decompose(low)
    if k - j > 60:
        return high + low
    n = scaled(n, j - k)
    p, e = two_product(m, m)
    q, f = two_product(n, n)
    p, e = add(p, e, q, f)
    s = np.sqrt(p)
    q, f = two_product(s, s)
    s, e = quick_sum(s, (((p - q) - f) + e) / (2.0 * s))
    return scaled(s, k)
