"""sin, cos and tan, of radians and of half turns.

An angle is reduced to a number of quarter turns and a rest of at most pi/4, a pair: by a pi/2 in
four parts (Cody and Waite), or, from 2^20 on, by the bits of 2/pi that matter (Payne and Hanek,
Radian reduction for trigonometric functions, SIGNUM Newsletter 18, 1983).
"""
# ruff: noqa: SIM108  (a tree of branches)

from __future__ import annotations

import math

import numpy as np

import sarek_numba as sarek
from sarek_numba.stdlib.functions.pairs import divide, multiply, quick_sum, two_sum

_PER_HALF_PI = 0.6366197723675814
# pi/2 = _A + _B + _C + _D; the first three have 33 bits
_A, _B, _C, _D = (
    1.5707963267341256,
    6.077100506303966e-11,
    2.0222662487111665e-21,
    8.4784276603689e-32,
)
_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
_PI, _PI_LOW = 3.141592653589793, 1.2246467991473532e-16
_DIRECT = 1048576.0


@sarek.function
def word(at: sarek.int64) -> sarek.uint64:
    """Word `at` of the bits of 2/pi behind 64 zeros: branches, so that it needs no memory."""
    w = sarek.uint64(0)
    if at < 10:
        if at < 5:
            if at < 2:
                if at < 1:
                    w = sarek.uint64(0x0000000000000000)
                else:
                    w = sarek.uint64(0xA2F9836E4E441529)
            else:
                if at < 3:
                    w = sarek.uint64(0xFC2757D1F534DDC0)
                else:
                    if at < 4:
                        w = sarek.uint64(0xDB6295993C439041)
                    else:
                        w = sarek.uint64(0xFE5163ABDEBBC561)
        else:
            if at < 7:
                if at < 6:
                    w = sarek.uint64(0xB7246E3A424DD2E0)
                else:
                    w = sarek.uint64(0x06492EEA09D1921C)
            else:
                if at < 8:
                    w = sarek.uint64(0xFE1DEB1CB129A73E)
                else:
                    if at < 9:
                        w = sarek.uint64(0xE88235F52EBB4484)
                    else:
                        w = sarek.uint64(0xE99C7026B45F7E41)
    else:
        if at < 15:
            if at < 12:
                if at < 11:
                    w = sarek.uint64(0x3991D639835339F4)
                else:
                    w = sarek.uint64(0x9C845F8BBDF9283B)
            else:
                if at < 13:
                    w = sarek.uint64(0x1FF897FFDE05980F)
                else:
                    if at < 14:
                        w = sarek.uint64(0xEF2F118B5A0A6D1F)
                    else:
                        w = sarek.uint64(0x6D367ECF27CB09B7)
        else:
            if at < 17:
                if at < 16:
                    w = sarek.uint64(0x4F463F669E5FEA2D)
                else:
                    w = sarek.uint64(0x7527BAC7EBE5F17B)
            else:
                if at < 18:
                    w = sarek.uint64(0x3D0739F78A5292EA)
                else:
                    if at < 19:
                        w = sarek.uint64(0x6BFB5FB11F8D5D08)
                    else:
                        w = sarek.uint64(0x56033046FC7B6BAB)
    return w


@sarek.function
def high_product(a: sarek.uint64, b: sarek.uint64) -> sarek.uint64:
    """The upper 64 bits of a * b."""
    mask = sarek.uint64(0xFFFFFFFF)
    a1, a2, b1, b2 = a >> 32, a & mask, b >> 32, b & mask
    middle = a1 * b2 + (a2 * b2 >> 32)
    other = a2 * b1 + (middle & mask)
    return a1 * b1 + (middle >> 32) + (other >> 32)


@sarek.function
def large_angle(x: sarek.float64):
    """A finite x >= 2^20 in quarter turns: their number modulo 4, and the rest as a pair."""
    pattern = sarek.math.reinterpret(x, sarek.uint64)
    exponent = sarek.int64(pattern >> 52) - 1075
    m = (pattern & 0x000FFFFFFFFFFFFF) | 0x0010000000000000
    # x = m 2^exponent: the bits of 2/pi in front of exponent - 2 give whole turns
    first = exponent + 62
    at, shift = first >> 6, first & 63
    back = 64 - shift
    second, third = word(at + 1), word(at + 2)
    a = (word(at) << shift) | (second >> back)
    b = (second << shift) | (third >> back)
    c = (third << shift) | (word(at + 3) >> back)
    low = m * b + high_product(m, c)
    carry = sarek.uint64(1) if low < m * b else sarek.uint64(0)
    high = m * a + high_product(m, b) + carry
    count = sarek.int64(high >> 62)
    high = (high << 2) | (low >> 62)
    low = low << 2
    negative = (high >> 63) != 0
    if negative:  # the nearest number of quarters: the rest is at most a half
        count += 1
        low = ~low + 1
        high = ~high + (sarek.uint64(1) if low == 0 else sarek.uint64(0))
    zeros = sarek.int64(sarek.math.clz(high))
    high = (high << zeros) | (low >> (64 - zeros))
    low = low << zeros
    head = sarek.float64(sarek.int64(high >> 11))
    tail = sarek.float64(sarek.int64(((high & 0x7FF) << 42) | (low >> 22)))
    scale = sarek.math.reinterpret((1023 - 53 - zeros) << 52, sarek.float64)
    head *= scale
    tail *= scale * 1.1102230246251565e-16  # 2^-53
    if negative:
        head, tail = -head, -tail
    head, tail = quick_sum(head, tail)
    r, e = multiply(head, tail, _HALF_PI, _HALF_PI_LOW)
    return count & 3, r, e


@sarek.function
def quarters(x: sarek.float64):
    """A finite x in quarter turns: their number modulo 4, and the rest as a pair."""
    magnitude = abs(x)
    count, r, e = sarek.int64(0), x, sarek.float64(0.0)
    if magnitude > 0.7853981633974483:
        if magnitude < _DIRECT:
            n = np.rint(x * _PER_HALF_PI)
            a, b = two_sum(x, -n * _A)
            c, d = two_sum(a, -n * _B)
            f, g = two_sum(c, -n * _C)
            low = b + d + g - n * _D
            r, e = quick_sum(f, low)
            count = sarek.int64(n) & 3
        else:
            count, r, e = large_angle(magnitude)
            if x < 0.0:
                count, r, e = -count & 3, -r, -e
    return count, r, e


@sarek.function
def sin_rest(r: sarek.float64, e: sarek.float64) -> sarek.float64:
    """sin(r + e) - r for |r| <= pi/4."""
    z = r * r
    p = -7.586576588171073e-13
    p = p * z + 1.6058529572267877e-10
    p = p * z - 2.5052106219521895e-08
    p = p * z + 2.755731921930192e-06
    p = p * z - 0.00019841269841265017
    p = p * z + 0.008333333333333331
    p = p * z - 0.16666666666666666
    return r * z * p + (e - 0.5 * z * e)


@sarek.function
def cos_pair(r: sarek.float64, e: sarek.float64):
    """cos(r + e) as a pair, for |r| <= pi/4."""
    z = r * r
    p = 4.745804889760674e-14
    p = p * z - 1.1470459749675607e-11
    p = p * z + 2.087675578389404e-09
    p = p * z - 2.7557319221382114e-07
    p = p * z + 2.4801587301584618e-05
    p = p * z - 0.0013888888888888887
    p = p * z + 0.041666666666666664
    half = 0.5 * z
    s = 1.0 - half
    return quick_sum(s, ((1.0 - s) - half) + (z * z * p - r * e))


@sarek.function
def sin_shifted(r: sarek.float64, e: sarek.float64, count: sarek.int64) -> sarek.float64:
    """The sine of r + e and so many quarter turns."""
    value = r + sin_rest(r, e)
    if (count & 1) != 0:
        a, b = cos_pair(r, e)
        value = a + b
    return -value if (count & 2) != 0 else value


@sarek.function
def sin(x: sarek.float64) -> sarek.float64:
    if not np.isfinite(x):
        return math.nan
    if abs(x) < 1e-8:
        return x
    count, r, e = quarters(x)
    return sin_shifted(r, e, count)


@sarek.function
def cos(x: sarek.float64) -> sarek.float64:
    if not np.isfinite(x):
        return math.nan
    count, r, e = quarters(x)
    return sin_shifted(r, e, count + 1)


@sarek.function
def tan(x: sarek.float64) -> sarek.float64:
    if not np.isfinite(x):
        return math.nan
    if abs(x) < 1e-9:
        return x
    count, r, e = quarters(x)
    a, b = quick_sum(r, sin_rest(r, e))
    c, d = cos_pair(r, e)
    if (count & 1) != 0:
        a, b, c, d = -c, -d, a, b
    high, low = divide(a, b, c, d)
    return high + low


@sarek.function
def turned(x: sarek.float64, shift: sarek.int64) -> sarek.float64:
    """sin(pi (x + shift/2)) of a finite x."""
    n = np.rint(2.0 * math.fmod(x, 2.0))
    r, e = multiply(math.fmod(x, 2.0) - 0.5 * n, 0.0, _PI, _PI_LOW)
    return sin_shifted(r, e, sarek.int64(n) + shift)


@sarek.function
def sinpi(x: sarek.float64) -> sarek.float64:
    if not np.isfinite(x):
        return math.nan
    if np.floor(x) == x:
        return np.copysign(0.0, x)
    if abs(x) < 1e-290:  # the product with pi as a pair would leave the normal numbers
        return x * _PI
    return turned(x, sarek.int64(0))


@sarek.function
def cospi(x: sarek.float64) -> sarek.float64:
    if not np.isfinite(x):
        return math.nan
    if np.floor(x) != x and np.floor(2.0 * x) == 2.0 * x:
        return sarek.float64(0.0)
    if abs(x) < 1e-9:
        return sarek.float64(1.0)
    return turned(x, sarek.int64(1))
