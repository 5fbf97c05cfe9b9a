"""Sums and products of floats without error, as pairs; and the exponent of a float.

Two sums: Knuth, The Art of Computer Programming, volume 2, section 4.2.2. Products: Dekker, A
floating-point technique for extending the available precision, Numerische Mathematik 18, 1971;
they need no fused operation, which some devices lack, and magnitudes below 2^995.
"""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek

_SPLITTER = 134217729.0  # 2^27 + 1
_INFINITY = float("inf")


@sarek.function(inline=True)
def quick_sum(a, b):
    """a + b as a pair, where |a| >= |b|."""
    s = a + b
    return s, b - (s - a)


@sarek.function(inline=True)
def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@sarek.function(inline=True)
def split(a):
    """a as a sum of two floats of at most 26 bits."""
    t = _SPLITTER * a
    high = t - (t - a)
    return high, a - high


@sarek.function
def two_product(a, b):
    p = a * b
    a1, a2 = split(a)
    b1, b2 = split(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@sarek.function
def add(a, b, c, d):
    """The pair (a, b) plus the pair (c, d)."""
    s, e = two_sum(a, c)
    t, f = two_sum(b, d)
    s, e = quick_sum(s, e + t)
    return quick_sum(s, e + f)


@sarek.function
def multiply(a, b, c, d):
    """The pair (a, b) times the pair (c, d)."""
    p, e = two_product(a, c)
    return quick_sum(p, e + (a * d + b * c))


@sarek.function
def divide(a, b, c, d):
    """The pair (a, b) divided by the pair (c, d)."""
    q = a / c
    p, e = two_product(q, c)
    rest = (((a - p) - e) + b) - q * d
    return quick_sum(q, rest / c)


@sarek.function
def square_root(a, b):
    """The square root of the pair (a, b), a > 0."""
    s = np.sqrt(a)
    p, e = two_product(s, s)
    return quick_sum(s, (((a - p) - e) + b) / (2.0 * s))


@sarek.function
def power_of_two(k: sarek.int64) -> sarek.float64:
    """2^k where that is a normal number: -1022 <= k <= 1023."""
    return sarek.math.reinterpret((k + 1023) << 52, sarek.float64)


@sarek.function
def scaled(x: sarek.float64, k: sarek.int64) -> sarek.float64:
    """x * 2^k, rounded once where x is in [1/4, 4] and |k| <= 2000."""
    half = k >> 1
    if -2000 <= k <= 2000:
        if -1022 <= k <= 1020:
            return x * power_of_two(k)
        return x * power_of_two(half) * power_of_two(k - half)
    return x * (0.0 if k < 0 else _INFINITY)


@sarek.function
def decompose(x: sarek.float64):
    """A finite x > 0 as m * 2^k with m in [1, 2)."""
    bits = sarek.math.reinterpret(x, sarek.int64)
    shift = sarek.int64(0)
    if x < 2.2250738585072014e-308:
        bits = sarek.math.reinterpret(x * 18014398509481984.0, sarek.int64)  # 2^54
        shift = sarek.int64(54)
    k = (bits >> 52) - 1023 - shift
    m = sarek.math.reinterpret((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000, sarek.float64)
    return m, k
