"""Functions of float32 in float32 alone, for devices on which float64 is slow or not there.

The results are not those of the float64 functions rounded, which are within half a unit in the
last place: these are within one and a half, tanh within 2.3. exp, log and what is made of them are
reduced as those of float64 are; a logarithm of another base takes log(1 + f) as a pair.
Coefficients are those of `tools/numerics/polynomials.py`.
"""

from __future__ import annotations

import math

import numpy as np

import sarek_numba as sarek

_ROUND = 12582912.0  # 3 * 2^22: a float below 2^22 added to it becomes an integer in its low bits
_ROUND_BITS = 0x4B400000  # no bit of which is left when it is shifted by 23
_ONE_BITS = 0x3F800000
_PER_LN2 = 1.4426950408889634
_LN2_HEAD = 0.693145751953125  # 16 bits: its products with an exponent are exact
_LN2_TAIL = 1.4286068203094173e-06
_PER_LN2_HEAD, _PER_LN2_TAIL = 1.44287109375, -0.00017605285393074155  # 12 bits, as `_head` gives
_PER_LN10_HEAD, _PER_LN10_TAIL = 0.434326171875, -3.168997136526741e-05
_LOG10_2_HEAD, _LOG10_2_TAIL = 0.301029205322265625, 7.903415166765626e-07
_ROOT_HALF_BITS = 0x3F3504F3
_LEAST_NORMAL = 1.1754943508222875e-38


@sarek.function(inline=True)
def _power_of_two(k: sarek.int32) -> sarek.float32:
    """2^k of normal numbers."""
    return sarek.math.reinterpret((k + sarek.int32(127)) << sarek.int32(23), sarek.float32)


@sarek.function(inline=True)
def _scaled(x: sarek.float32, k: sarek.int32) -> sarek.float32:
    """2^k x, rounded once, for -252 <= k <= 254."""
    half = k >> sarek.int32(1)
    return x * _power_of_two(half) * _power_of_two(k - half)


@sarek.function(inline=True)
def _reduced(x: sarek.float32):
    """k with `_ROUND` added to it, and r: x = k ln 2 + r, |r| <= ln 2 / 2."""
    shifted = x * _PER_LN2 + _ROUND
    k = shifted - _ROUND
    return shifted, (x - k * _LN2_HEAD) - k * _LN2_TAIL


@sarek.function(inline=True)
def _expm1_of(r: sarek.float32) -> sarek.float32:
    """exp(r) - 1 for |r| <= 0.35."""
    p = np.float32(0.0001989198)
    p = p * r + 0.0013934541
    p = p * r + 0.0083333105
    p = p * r + 0.041666456
    p = p * r + 0.16666667
    p = p * r + 0.5
    return r + r * r * p


@sarek.function
def exp(x: sarek.float32) -> sarek.float32:
    if x > 90.0:
        x = sarek.float32(90.0)
    if x < -105.0:
        x = sarek.float32(-105.0)
    shifted, r = _reduced(x)
    n = sarek.math.reinterpret(shifted, sarek.int32) - sarek.int32(_ROUND_BITS)
    return _scaled(1.0 + _expm1_of(r), n)


@sarek.function
def exp2(x: sarek.float32) -> sarek.float32:
    if x > 130.0:
        x = sarek.float32(130.0)
    if x < -152.0:
        x = sarek.float32(-152.0)
    shifted = x + _ROUND
    r = x - (shifted - _ROUND)
    p = np.float32(1.5298221e-05)
    p = p * r + 0.0001546261
    p = p * r + 0.00133335
    p = p * r + 0.009618054
    p = p * r + 0.05550411
    p = p * r + 0.2402265
    p = p * r + 0.6931472
    n = sarek.math.reinterpret(shifted, sarek.int32) - sarek.int32(_ROUND_BITS)
    return _scaled(1.0 + r * p, n)


@sarek.function
def tanh(x: sarek.float32) -> sarek.float32:
    """t / (t + 2) with t = exp(2 |x|) - 1 = 2^k (exp(r) - 1) + (2^k - 1), for all x alike."""
    double = 2.0 * abs(x)
    if double > 20.0:
        double = sarek.float32(20.0)
    shifted, r = _reduced(double)
    power = sarek.math.reinterpret(
        (sarek.math.reinterpret(shifted, sarek.int32) << sarek.int32(23)) + sarek.int32(_ONE_BITS),
        sarek.float32,
    )
    t = power * _expm1_of(r) + (power - 1.0)
    return np.copysign(t / (t + 2.0), x)


@sarek.function(inline=True)
def _head(x: sarek.float32) -> sarek.float32:
    """The first 12 bits."""
    bits = sarek.math.reinterpret(x, sarek.int32) & sarek.int32(-4096)
    return sarek.math.reinterpret(bits, sarek.float32)


@sarek.function
def _decomposed(x: sarek.float32):
    """k, f, f^2 / 2 and log(1 + f) - f + f^2 / 2, where x = 2^k (1 + f).

    x is positive and finite, 1 + f between the roots of 1/2 and of 2.
    """
    below = sarek.int32(0)
    if x < _LEAST_NORMAL:
        x *= 8388608.0
        below = sarek.int32(23)
    bits = sarek.math.reinterpret(x, sarek.int32)
    k = (bits - sarek.int32(_ROOT_HALF_BITS)) >> sarek.int32(23)
    f = sarek.math.reinterpret(bits - (k << sarek.int32(23)), sarek.float32) - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = np.float32(0.23341943)
    p = p * z + 0.28550398
    p = p * z + 0.40000126
    p = p * z + 0.6666667
    square = 0.5 * f * f
    return sarek.float32(k - below), f, square, s * (square + z * p)


@sarek.function
def _without_logarithm(x: sarek.float32) -> sarek.float32:
    """What logarithms are of 0, negative numbers, infinity and NaNs."""
    if x == 0.0:
        return -math.inf
    return math.nan if x < 0.0 else x


@sarek.function
def log(x: sarek.float32) -> sarek.float32:
    if not (x > 0.0) or x == math.inf:
        return _without_logarithm(x)
    k, f, square, rest = _decomposed(x)
    return k * _LN2_HEAD - ((square - (rest + k * _LN2_TAIL)) - f)


@sarek.function
def log2(x: sarek.float32) -> sarek.float32:
    if not (x > 0.0) or x == math.inf:
        return _without_logarithm(x)
    k, f, square, rest = _decomposed(x)
    high = _head(f - square)
    low = ((f - high) - square) + rest
    return ((low + high) * _PER_LN2_TAIL + low * _PER_LN2_HEAD) + high * _PER_LN2_HEAD + k


@sarek.function
def log10(x: sarek.float32) -> sarek.float32:
    if not (x > 0.0) or x == math.inf:
        return _without_logarithm(x)
    k, f, square, rest = _decomposed(x)
    high = _head(f - square)
    low = ((f - high) - square) + rest
    small = k * _LOG10_2_TAIL + ((low + high) * _PER_LN10_TAIL + low * _PER_LN10_HEAD)
    return (small + high * _PER_LN10_HEAD) + k * _LOG10_2_HEAD


@sarek.function
def rsqrt(x: sarek.float32) -> sarek.float32:
    return 1.0 / np.sqrt(x)
