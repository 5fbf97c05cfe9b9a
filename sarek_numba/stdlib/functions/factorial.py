"""gamma and lgamma: Stirling's series from 10 on, recurrence below, reflection for x < 0.

Logarithms are pairs, so that exp of them is right to the last place. Close to its zeros at 1 and 2,
lgamma has polynomials of its own; close to those at negative arguments its absolute error is small.
"""

from __future__ import annotations

import math

import numpy as np

import sarek_numba as sarek
from sarek_numba.stdlib.functions.circular import cos_pair, sin_rest
from sarek_numba.stdlib.functions.exponential import exp_of
from sarek_numba.stdlib.functions.logarithm import is_odd, log_pair
from sarek_numba.stdlib.functions.pairs import add, divide, multiply, quick_sum, two_sum

_HALF_LOG_2PI, _HALF_LOG_2PI_LOW = 0.9189385332046728, -3.8782941580672414e-17
_PI, _PI_LOW = 3.141592653589793, 1.2246467991473532e-16
_EULER, _EULER_LOW = 0.5772156649015329, -4.942915152430645e-18
_LEFT, _LEFT_LOW = 0.42278433509846713, 4.942915152430645e-18  # 1 - Euler's constant


@sarek.function
def stirling(x: sarek.float64, e: sarek.float64):
    """lgamma(x + e) as a pair, for x >= 10 below 1e300."""
    a, b = log_pair(x, e)
    c, d = two_sum(x, -0.5)
    c, d = multiply(a, b, c, d + e)
    c, d = add(c, d, -x, -e)
    c, d = add(c, d, _HALF_LOG_2PI, _HALF_LOG_2PI_LOW)
    w = 1.0 / (x * x)
    p = -0.0017404560390011845
    p = p * w + 0.0008398119452648516
    p = p * w - 0.0005952281678273074
    p = p * w + 0.0007936507705360397
    p = p * w - 0.002777777777758028
    p = p * w + 0.08333333333333333
    return add(c, d, p / x, 0.0)


@sarek.function
def raised(x: sarek.float64):
    """For 0 < x < 10: x + n >= 10 as a pair, and x (x + 1) ... (x + n - 1) as a pair."""
    a, b = x, sarek.float64(0.0)
    p, q = sarek.float64(1.0), sarek.float64(0.0)
    while a < 10.0:
        p, q = multiply(p, q, a, b)
        c, d = two_sum(a, 1.0)
        a, b = quick_sum(c, d + b)
    return a, b, p, q


@sarek.function
def lgamma_pair(x: sarek.float64):
    """lgamma(x) as a pair, for x > 0 away from 1 and 2, below 1e300."""
    if x >= 10.0:
        return stirling(x, sarek.float64(0.0))
    a, b, p, q = raised(x)
    a, b = stirling(a, b)
    p, q = log_pair(p, q)
    return add(a, b, -p, -q)


@sarek.function
def near_one(e: sarek.float64) -> sarek.float64:
    """lgamma(1 + e) for |e| <= 1/8."""
    p = -0.06998352362194853
    p = p * e + 0.07495427366391531
    p = p * e - 0.07686060566443692
    p = p * e + 0.08327745465136459
    p = p * e - 0.09095478680277302
    p = p * e + 0.10010027504238739
    p = p * e - 0.11133426164969644
    p = p * e + 0.12550966504247354
    p = p * e - 0.1440498967798514
    p = p * e + 0.16955717700909767
    p = p * e - 0.20738555102866324
    p = p * e + 0.2705808084277731
    p = p * e - 0.40068563438653143
    p = p * e + 0.8224670334241132
    a, b = multiply(e, 0.0, -_EULER, -_EULER_LOW)
    return a + (b + e * e * p)


@sarek.function
def near_two(e: sarek.float64) -> sarek.float64:
    """lgamma(2 + e) for |e| <= 1/8."""
    p = -9.535696732434743e-06
    p = p * e + 2.071360325213438e-05
    p = p * e - 4.492454203844993e-05
    p = p * e + 9.945387730802947e-05
    p = p * e - 0.00022315477219722382
    p = p * e + 0.0005096695542256825
    p = p * e - 0.0011927539116529044
    p = p * e + 0.0028905103306335
    p = p * e - 0.0073855510286740525
    p = p * e + 0.020580808427784692
    p = p * e - 0.0673523010531981
    p = p * e + 0.3224670334241132
    a, b = multiply(e, 0.0, _LEFT, _LEFT_LOW)
    return a + (b + e * e * p)


@sarek.function
def sine_of_turns(x: sarek.float64):
    """|sin(pi x)| as a pair, for an x > 0 that is not whole."""
    rest = x - np.rint(x)  # at most a half
    rest = abs(rest)
    a, b = multiply(0.5 - rest if rest > 0.25 else rest, 0.0, _PI, _PI_LOW)
    if rest > 0.25:
        return cos_pair(a, b)
    return quick_sum(a, sin_rest(a, b))


@sarek.function
def reflected(x: sarek.float64):
    """log |gamma(-x)| as a pair, for an x > 0 that is not whole."""
    a, b = sine_of_turns(x)
    a, b = multiply(a, b, x, 0.0)
    a, b = divide(_PI, _PI_LOW, a, b)
    a, b = log_pair(a, b)
    c, d = lgamma_pair(x)
    return add(a, b, -c, -d)


@sarek.function
def lgamma(x: sarek.float64) -> sarek.float64:
    if np.isnan(x):
        return x
    magnitude = abs(x)
    if magnitude == math.inf or (x <= 0.0 and np.floor(x) == x):
        return math.inf
    if magnitude < 1e-20:
        a, b = log_pair(magnitude, sarek.float64(0.0))
        return -(a + b)
    if x > 1e17:
        if x > 2.556348e305:
            return math.inf
        a, b = log_pair(x, sarek.float64(0.0))
        c, d = add(a, b, -1.0, 0.0)
        return x * c + x * d
    if x < 0.0:
        a, b = reflected(magnitude)
        return a + b
    if abs(x - 1.0) <= 0.125:
        return near_one(x - 1.0)
    if abs(x - 2.0) <= 0.125:
        return near_two(x - 2.0)
    a, b = lgamma_pair(x)
    return a + b


@sarek.function
def gamma(x: sarek.float64) -> sarek.float64:
    if np.isnan(x) or x == math.inf:
        return x
    if x == 0.0:
        return np.copysign(math.inf, x)
    magnitude = abs(x)
    if x < 0.0 and np.floor(x) == x:
        return math.nan
    if magnitude < 1e-17:
        return 1.0 / x
    if x > 172.0:
        return math.inf
    if x < -190.0:
        return -0.0 if is_odd(np.floor(x)) else 0.0
    if x > 0.0:
        if x >= 10.0:
            a, b = stirling(x, sarek.float64(0.0))
            return exp_of(a, b, sarek.int64(0))
        a, b, p, q = raised(x)
        a, b = stirling(a, b)
        c, d = divide(1.0, 0.0, p, q)
        value = exp_of(a, b, sarek.int64(0))
        return value * c + value * d
    a, b = reflected(magnitude)
    value = exp_of(a, b, sarek.int64(0))
    return -value if is_odd(np.floor(x)) else value
