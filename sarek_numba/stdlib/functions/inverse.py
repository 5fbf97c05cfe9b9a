"""Inverse circular functions."""

from __future__ import annotations

import math

import numpy as np

import sarek_numba as sarek
from sarek_numba.stdlib.functions.pairs import (
    add,
    decompose,
    divide,
    quick_sum,
    scaled,
    square_root,
    two_product,
    two_sum,
)

_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
_PI, _PI_LOW = 3.141592653589793, 1.2246467991473532e-16


@sarek.function
def beyond_linear(x: sarek.float64) -> sarek.float64:
    """asin(x) - x for |x| <= 1/2."""
    z = x * x
    p = 0.02963502626354855
    p = p * z - 0.019277545928584557
    p = p * z + 0.019579201619744684
    p = p * z + 0.0030350071727267623
    p = p * z + 0.009322101501082774
    p = p * z + 0.00962140274734483
    p = p * z + 0.011566511821890942
    p = p * z + 0.013963775787848137
    p = p * z + 0.017352816768546473
    p = p * z + 0.022372157435623815
    p = p * z + 0.030381944475693704
    p = p * z + 0.04464285714255019
    p = p * z + 0.07500000000000119
    p = p * z + 0.16666666666666666
    return x * z * p


@sarek.function
def half_angle(magnitude: sarek.float64):
    """acos(magnitude) / 2 as a pair, for 1/2 <= magnitude <= 1: asin of a root."""
    z = 0.5 * (1.0 - magnitude)
    if z == 0.0:
        return sarek.float64(0.0), sarek.float64(0.0)
    s, t = square_root(z, 0.0)
    return quick_sum(s, t + beyond_linear(s))


@sarek.function
def asin(x: sarek.float64) -> sarek.float64:
    magnitude = abs(x)
    if not (magnitude <= 1.0):
        return math.nan
    if magnitude < 1e-8:
        return x
    if magnitude <= 0.5:
        return x + beyond_linear(x)
    a, b = half_angle(magnitude)
    high, low = add(_HALF_PI, _HALF_PI_LOW, -2.0 * a, -2.0 * b)
    return np.copysign(high + low, x)


@sarek.function
def acos(x: sarek.float64) -> sarek.float64:
    magnitude = abs(x)
    if not (magnitude <= 1.0):
        return math.nan
    if magnitude <= 0.5:
        a, b = quick_sum(x, beyond_linear(x))
        high, low = add(_HALF_PI, _HALF_PI_LOW, -a, -b)
        return high + low
    a, b = half_angle(magnitude)
    if x > 0.0:
        return 2.0 * a + 2.0 * b
    high, low = add(_PI, _PI_LOW, -2.0 * a, -2.0 * b)
    return high + low


@sarek.function
def ratio(y: sarek.float64, x: sarek.float64, c: sarek.float64):
    """(y - c x) / (x + c y) as a pair: the tangent of what is left behind atan(c)."""
    p, q = two_product(c, x)
    a, b = two_sum(y, -p)
    p, r = two_product(c, y)
    d, e = two_sum(x, p)
    a, b = quick_sum(a, b - q)
    d, e = quick_sum(d, e + r)
    return divide(a, b, d, e)


@sarek.function
def atan_pair(y: sarek.float64, x: sarek.float64):
    """atan(y / x) as a pair, for y, x > 0 with exponents close to 0."""
    a, b = sarek.float64(0.0), sarek.float64(0.0)
    c = sarek.float64(0.0)
    if y <= 0.4375 * x:
        c = sarek.float64(0.0)
    elif y <= 0.6875 * x:
        a, b, c = 0.4636476090008061, 2.2698777452961687e-17, 0.5
    elif y <= 1.1875 * x:
        a, b, c = 0.7853981633974483, 3.061616997868383e-17, 1.0
    elif y <= 2.4375 * x:
        a, b, c = 0.982793723247329, 1.3903311031230998e-17, 1.5
    else:
        a, b = _HALF_PI, _HALF_PI_LOW
        y, x = -x, y
    s, t = ratio(y, x, c)
    z = s * s
    p = 0.014766871594831716
    p = p * z - 0.033121776641729314
    p = p * z + 0.04491983392875039
    p = p * z - 0.052166122327185115
    p = p * z + 0.05876936226535485
    p = p * z - 0.06666240930258646
    p = p * z + 0.07692285493171186
    p = p * z - 0.09090908353219823
    p = p * z + 0.11111111096591583
    p = p * z - 0.14285714285566195
    p = p * z + 0.19999999999999407
    p = p * z - 0.3333333333333333
    s, t = quick_sum(s, t + s * z * p)
    return add(a, b, s, t)


@sarek.function
def atan(x: sarek.float64) -> sarek.float64:
    magnitude = abs(x)
    if np.isnan(x) or magnitude < 1e-9:
        return x
    high, low = sarek.float64(_HALF_PI), sarek.float64(_HALF_PI_LOW)
    if magnitude < 1e18:
        high, low = atan_pair(magnitude, sarek.float64(1.0))
    return np.copysign(high + low, x)


@sarek.function
def atan2(y: sarek.float64, x: sarek.float64) -> sarek.float64:
    """The angle of (x, y) with the special values of IEEE 754-2019, section 9.2.1."""
    if np.isnan(x) or np.isnan(y):
        return math.nan
    a, b = abs(x), abs(y)
    behind = np.signbit(x)
    if b == 0.0:
        return np.copysign(_PI if behind else 0.0, y)
    if a == math.inf:
        if b == math.inf:
            return np.copysign(2.356194490192345 if behind else 0.7853981633974483, y)
        return np.copysign(_PI if behind else 0.0, y)
    if a == 0.0 or b == math.inf:
        return np.copysign(_HALF_PI, y)
    m, j = decompose(b)
    n, k = decompose(a)
    if j - k > 64:
        return np.copysign(_HALF_PI, y)
    if j - k < -64:  # the quotient itself, which may be no normal number
        return np.copysign(_PI if behind else b / a, y)
    high, low = atan_pair(scaled(m, j - k), n)
    if behind:
        high, low = add(_PI, _PI_LOW, -high, -low)
    return np.copysign(high + low, y)
