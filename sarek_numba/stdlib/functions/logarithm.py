"""log, powers and inverse hyperbolic functions.

log(1 + f) = 2 atanh(s) with s = f / (2 + f). The first terms of the series are added up as pairs,
which leaves an error of about 2^-68: powers need that.
"""

from __future__ import annotations

import math

import numpy as np

import sarek_numba as sarek
from sarek_numba.stdlib.functions.exponential import exp_of
from sarek_numba.stdlib.functions.pairs import (
    add,
    decompose,
    divide,
    multiply,
    power_of_two,
    quick_sum,
    square_root,
    two_product,
    two_sum,
)

_LN2_HEAD = 0.6931471803691238
_LN2_TAIL, _LN2_REST = 1.9082149292705877e-10, 1.1612227229362532e-26
_TWO_THIRDS, _TWO_THIRDS_LOW = 0.6666666666666666, 3.700743415417188e-17
_TWO_FIFTHS, _TWO_FIFTHS_LOW = 0.4, -2.2204460492503132e-17
_PER_LN2, _PER_LN2_LOW = 1.4426950408889634, 2.0355273740931033e-17
_PER_LN10, _PER_LN10_LOW = 0.4342944819032518, 1.098319650216765e-17
_LOG10_2, _LOG10_2_LOW = 0.3010299956639812, -2.8037281277851704e-18
_ROOT_OF_TWO = 1.4142135623730951


@sarek.function
def log1p_reduced(f: sarek.float64, low: sarek.float64):
    """log(1 + f + low) as a pair, for 1 + f in [1/sqrt 2, sqrt 2]."""
    d, e = quick_sum(2.0, f)
    s, t = divide(f, low, d, e + low)
    z, y = multiply(s, t, s, t)
    p = 0.09847849951281375
    p = p * z + 0.09458034513880637
    p = p * z + 0.10528316140606478
    p = p * z + 0.11764670600471544
    p = p * z + 0.13333333697963048
    p = p * z + 0.15384615382501765
    p = p * z + 0.18181818181824314
    p = p * z + 0.22222222222222215
    p = p * z + 0.2857142857142857
    a, b = quick_sum(_TWO_FIFTHS, _TWO_FIFTHS_LOW + z * p)
    a, b = multiply(z, y, a, b)
    a, b = add(_TWO_THIRDS, _TWO_THIRDS_LOW, a, b)
    a, b = multiply(z, y, a, b)
    a, b = multiply(s, t, a, b)
    return add(2.0 * s, 2.0 * t, a, b)


@sarek.function
def split_number(high: sarek.float64, low: sarek.float64):
    """high + low > 0 as 2^k (1 + f + g) with 1 + f in [1/sqrt 2, sqrt 2]."""
    m, k = decompose(high)
    scale = sarek.float64(1.0)
    if low != 0.0:
        scale = power_of_two(-k)  # only for sums of at least 1/2, and no huge ones
    if m > _ROOT_OF_TWO:
        m *= 0.5
        scale *= 0.5
        k += 1
    return k, m - 1.0, low * scale


@sarek.function
def log_pair(high: sarek.float64, low: sarek.float64):
    """log(high + low) as a pair; high is positive and finite."""
    k, f, g = split_number(high, low)
    a, b = log1p_reduced(f, g)
    whole = sarek.float64(k)
    c, d = two_sum(whole * _LN2_HEAD, whole * _LN2_TAIL)
    return add(c, d + whole * _LN2_REST, a, b)


@sarek.function(inline=True)
def is_special(x):
    """Whether the logarithm of x is none of a positive number."""
    return not (0.0 < x < math.inf)


@sarek.function
def log_special(x: sarek.float64) -> sarek.float64:
    if x == 0.0:
        return -math.inf
    return math.nan if x < 0.0 else x


@sarek.function
def log(x: sarek.float64) -> sarek.float64:
    if is_special(x):
        return log_special(x)
    high, low = log_pair(x, sarek.float64(0.0))
    return high + low


@sarek.function
def log2(x: sarek.float64) -> sarek.float64:
    if is_special(x):
        return log_special(x)
    k, f, g = split_number(x, sarek.float64(0.0))
    a, b = log1p_reduced(f, g)
    a, b = multiply(a, b, _PER_LN2, _PER_LN2_LOW)
    high, low = add(sarek.float64(k), 0.0, a, b)
    return high + low


@sarek.function
def log10(x: sarek.float64) -> sarek.float64:
    if is_special(x):
        return log_special(x)
    k, f, g = split_number(x, sarek.float64(0.0))
    a, b = log1p_reduced(f, g)
    a, b = multiply(a, b, _PER_LN10, _PER_LN10_LOW)
    c, d = multiply(sarek.float64(k), 0.0, _LOG10_2, _LOG10_2_LOW)
    high, low = add(c, d, a, b)
    return high + low


@sarek.function
def log1p(x: sarek.float64) -> sarek.float64:
    if np.isnan(x) or x == math.inf or abs(x) < 1e-300:
        return x
    if x <= -1.0:
        return -math.inf if x == -1.0 else math.nan
    if x > 1e300:
        return log(x)
    high, low = two_sum(1.0, x)
    high, low = log_pair(high, low)
    return high + low


@sarek.function
def asinh(x: sarek.float64) -> sarek.float64:
    magnitude = abs(x)
    if magnitude < 1e-8 or not np.isfinite(x):
        return x
    high, low = magnitude, sarek.float64(0.0)
    if magnitude < 1e9:
        a, b = two_product(magnitude, magnitude)
        a, b = add(a, b, 1.0, 0.0)
        a, b = square_root(a, b)
        a, b = add(a, b, magnitude, 0.0)
        high, low = log_pair(a, b)
    else:  # log(2 x)
        a, b = log_pair(magnitude, sarek.float64(0.0))
        high, low = add(a, b, 0.6931471805599453, 2.3190468138462996e-17)
    return np.copysign(high + low, x)


@sarek.function
def acosh(x: sarek.float64) -> sarek.float64:
    if not (x >= 1.0):
        return math.nan
    if x == 1.0:
        return sarek.float64(0.0)
    if x > 1e9:
        if x == math.inf:
            return x
        a, b = log_pair(x, sarek.float64(0.0))
        a, b = add(a, b, 0.6931471805599453, 2.3190468138462996e-17)
        return a + b
    a, b = two_product(x, x)
    a, b = add(a, b, -1.0, 0.0)
    a, b = square_root(a, b)
    a, b = add(a, b, x, 0.0)
    a, b = log_pair(a, b)
    return a + b


@sarek.function
def atanh(x: sarek.float64) -> sarek.float64:
    magnitude = abs(x)
    if np.isnan(x) or magnitude < 1e-9:
        return x
    if magnitude >= 1.0:
        return np.copysign(math.inf, x) if magnitude == 1.0 else math.nan
    a, b = two_sum(1.0, magnitude)
    c, d = two_sum(1.0, -magnitude)
    a, b = divide(a, b, c, d)
    a, b = log_pair(a, b)
    return np.copysign(0.5 * (a + b), x)


@sarek.function
def is_whole(y: sarek.float64) -> sarek.bool_:
    return np.floor(y) == y


@sarek.function
def is_odd(y: sarek.float64) -> sarek.bool_:
    """Whether y is an odd whole number; the halves of even ones are whole."""
    return is_whole(y) and abs(y) < 9007199254740992.0 and not is_whole(0.5 * y)


@sarek.function
def power(x: sarek.float64, y: sarek.float64) -> sarek.float64:
    """x^y with the special values of IEEE 754-2019, section 9.2.1."""
    if y == 0.0 or x == 1.0:
        return sarek.float64(1.0)
    if np.isnan(x) or np.isnan(y):
        return math.nan
    magnitude = abs(x)
    negative = np.signbit(x) and is_odd(y)
    result = sarek.float64(0.0)
    if magnitude == 0.0 or magnitude == math.inf:
        result = 0.0 if (magnitude == 0.0) == (y > 0.0) else math.inf
    elif abs(y) == math.inf:
        if magnitude == 1.0:
            return sarek.float64(1.0)
        result = math.inf if (magnitude > 1.0) == (y > 0.0) else 0.0
    elif x < 0.0 and not is_whole(y):
        return math.nan
    elif magnitude == 1.0:
        result = sarek.float64(1.0)
    else:
        exponent = min(max(y, -3.6893488147419103e19), 3.6893488147419103e19)  # 2^65 decides too
        a, b = log_pair(magnitude, sarek.float64(0.0))
        a, b = multiply(a, b, exponent, 0.0)
        result = exp_of(a, b, sarek.int64(0))
    return -result if negative else result
