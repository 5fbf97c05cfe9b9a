"""a * b + c with one rounding.

float32: the product is exact in float64; the sum is rounded to odd there, then to float32 once.
float64: S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
using rounding to odd" (IEEE Transactions on Computers 57, 2008), where no step can leave the range
of normal numbers; rational arithmetic elsewhere.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sarek_numba.ir.semantics.arrays import Lanes, Mask, silent

_SPLITTER = 134217729.0  # 2^27 + 1, T. J. Dekker (1971)
_LARGE, _SMALL = 2.0**500, 2.0**-450


@silent
def fma32(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    product = a.astype(np.float64) * b.astype(np.float64)
    return _odd_sum(product, c.astype(np.float64)).astype(np.float32)


@silent
def fma64(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = _two_product(a, b)
    total, rest = _two_sum(c, low)
    upper, lower = _two_sum(high, total)
    result = upper + _odd_sum(rest, lower)
    plain = a * b + c
    trivial = ((a == 0) | (b == 0)) & np.isfinite(plain)
    result = np.where(trivial, plain, result)
    rare = np.flatnonzero(~trivial & ~_in_range(a, b, c))
    if rare.size:
        result.ravel()[rare] = [
            _exact(*operands)
            for operands in zip(
                a.ravel()[rare].tolist(),
                b.ravel()[rare].tolist(),
                c.ravel()[rare].tolist(),
                strict=True,
            )
        ]
    return result


def _in_range(a: Lanes, b: Lanes, c: Lanes) -> Mask:
    """Where neither a step of the fast way nor its error term overflows or is subnormal."""
    inside = [(np.abs(x) < _LARGE) & (np.abs(x) > _SMALL) for x in (a, b)]
    addend = (np.abs(c) < _LARGE) & ((np.abs(c) > _SMALL) | (c == 0))
    usual: Mask = inside[0] & inside[1] & (np.abs(a * b) > _SMALL) & addend
    return usual


def _two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The rounded sum and its exact error (D. E. Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _split(a: Lanes) -> tuple[Lanes, Lanes]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def _two_product(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The rounded product and its exact error (T. J. Dekker)."""
    product = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _odd_sum(a: Lanes, b: Lanes) -> Lanes:
    """a + b in float64, an inexact sum going to the neighbour whose last bit is 1."""
    total, error = _two_sum(a, b)
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    adjust = even & (error != 0) & np.isfinite(total) & np.isfinite(error)
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.where(adjust, np.nextafter(total, toward), total)


def _exact(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total == 0:  # c cancels the product: a product that is itself zero does not come here
        return 0.0
    try:
        return total.numerator / total.denominator  # CPython rounds this once, subnormals too
    except OverflowError:
        return math.inf if total > 0 else -math.inf
