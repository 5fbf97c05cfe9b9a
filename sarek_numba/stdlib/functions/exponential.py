"""exp and what is made of it.

x = k ln 2 + r with |r| <= ln 2 / 2, exp(r) by a polynomial, added up so that the last addition
alone rounds.
"""

from __future__ import annotations

import math

import numpy as np

import sarek_numba as sarek
from sarek_numba.stdlib.functions.pairs import (
    add,
    divide,
    power_of_two,
    quick_sum,
    scaled,
    two_product,
    two_sum,
)

_LN2_HEAD = 0.6931471803691238  # 32 bits: its products with an exponent are exact
_LN2_TAIL = 1.9082149292705877e-10
_LN2, _LN2_LOW = 0.6931471805599453, 2.3190468138462996e-17
_PER_LN2 = 1.4426950408889634
_LEAST = -746.0
_MOST = 710.0


@sarek.function
def reduced(high: sarek.float64, low: sarek.float64):
    """high + low as k ln 2 + (r + e)."""
    k = np.rint(high * _PER_LN2)
    r = high - k * _LN2_HEAD
    c = k * _LN2_TAIL - low
    rest = r - c
    return sarek.int64(k), rest, (r - rest) - c


@sarek.function
def beyond_linear(r: sarek.float64):
    """exp(r) - 1 - r for |r| <= 0.35."""
    p = 1.6084831332283696e-10
    p = p * r + 2.0915442297780116e-09
    p = p * r + 2.50520767806545e-08
    p = p * r + 2.75572718102198e-07
    p = p * r + 2.7557319240929863e-06
    p = p * r + 2.4801587327007187e-05
    p = p * r + 0.00019841269841266133
    p = p * r + 0.0013888888888883327
    p = p * r + 0.008333333333333333
    p = p * r + 0.04166666666666667
    p = p * r + 0.16666666666666666
    return r * r * (0.5 + r * p)


@sarek.function
def exp_of(high: sarek.float64, low: sarek.float64, shift: sarek.int64) -> sarek.float64:
    """2^shift exp(high + low), overflow and underflow included; high is a number."""
    if high > 1500.0:
        return math.inf
    if high < -1500.0:
        return sarek.float64(0.0)
    k, r, e = reduced(high, low)
    s, t = quick_sum(1.0, r)
    return scaled(s + (t + (e + e * r + beyond_linear(r))), k + shift)


@sarek.function
def expm1_pair(high: sarek.float64, low: sarek.float64):
    """exp(high + low) - 1 as a pair, for -700 <= high <= 700."""
    k, r, e = reduced(high, low)
    u = sarek.float64(0.0)
    if k < 64:
        u = power_of_two(-k)
    # 2^k ((1 - u) + r + what is beyond): the first two are exact as a pair
    s, t = two_sum(1.0, -u)
    a, b = two_sum(s, r)
    a, b = quick_sum(a, b + (t + (e + e * r + beyond_linear(r))))
    return scaled_pair(a, b, k)


@sarek.function
def scaled_pair(a: sarek.float64, b: sarek.float64, k: sarek.int64):
    half = k >> 1
    f, g = power_of_two(half), power_of_two(k - half)
    return a * f * g, b * f * g


@sarek.function
def exp(x: sarek.float64) -> sarek.float64:
    return x + x if np.isnan(x) else exp_of(x, sarek.float64(0.0), sarek.int64(0))


@sarek.function
def exp2(x: sarek.float64) -> sarek.float64:
    if np.isnan(x):
        return x
    if x > 1100.0:
        return math.inf
    if x < -1100.0:
        return sarek.float64(0.0)
    k = np.rint(x)
    high, low = two_product(x - k, _LN2)
    low += (x - k) * _LN2_LOW
    s, t = quick_sum(1.0, high)
    return scaled(s + (t + (low + low * high + beyond_linear(high))), sarek.int64(k))


@sarek.function
def expm1(x: sarek.float64) -> sarek.float64:
    if np.isnan(x) or x == 0.0:
        return x
    if x > _MOST:
        return math.inf
    if x < -40.0:
        return sarek.float64(-1.0)
    if abs(x) < 1e-300:
        return x
    if x > 700.0:
        return exp_of(x, sarek.float64(0.0), sarek.int64(0))
    high, low = expm1_pair(x, sarek.float64(0.0))
    return high + low


@sarek.function
def sinh(x: sarek.float64) -> sarek.float64:
    magnitude = abs(x)
    if np.isnan(x) or magnitude < 1e-8:
        return x
    if magnitude > 40.0:
        return np.copysign(exp_of(magnitude, sarek.float64(0.0), sarek.int64(-1)), x)
    a, b = expm1_pair(magnitude, sarek.float64(0.0))
    c, d = two_sum(a, 1.0)
    q, r = divide(a, b, c, d + b)
    high, low = add(a, b, q, r)
    return np.copysign(0.5 * (high + low), x)


@sarek.function
def cosh(x: sarek.float64) -> sarek.float64:
    magnitude = abs(x)
    if np.isnan(x):
        return x
    if magnitude > 40.0:
        return exp_of(magnitude, sarek.float64(0.0), sarek.int64(-1))
    a, b = expm1_pair(magnitude, sarek.float64(0.0))
    c, d = two_sum(a, 1.0)
    c, d = quick_sum(c, d + b)
    q, r = divide(1.0, 0.0, c, d)
    high, low = add(c, d, q, r)
    return 0.5 * (high + low)


@sarek.function
def tanh(x: sarek.float64) -> sarek.float64:
    magnitude = abs(x)
    if np.isnan(x) or magnitude < 1e-9:
        return x
    if magnitude > 20.0:
        return np.copysign(1.0, x)
    a, b = expm1_pair(2.0 * magnitude, sarek.float64(0.0))
    c, d = two_sum(a, 2.0)
    q, r = divide(a, b, c, d + b)
    return np.copysign(q + r, x)
