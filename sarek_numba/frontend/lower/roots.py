"""Functions of complex numbers made of real functions: exp, sqrt and general powers.

Their errors are those of the real functions, relative to the magnitude of the result. Special
values are those of C99's annex G; the signs of zeros and of infinities beside a NaN are left open.
"""

from __future__ import annotations

import math

from sarek_numba.frontend.lower.arithmetic import Arithmetic, Parts, both
from sarek_numba.frontend.lower.convert import negated
from sarek_numba.ir.nodes import BinOp, Const, Expr
from sarek_numba.ir.types import FLOAT32, FLOAT64
from sarek_numba.ir.typing import scalar_of

# From here on exp(x) is taken as exp(x / 2) squared: it overflows where its product with a small
# cosine does not.
_LARGE_EXPONENT = {FLOAT32: 80.0, FLOAT64: 700.0}

# Where the sum in a square root would overflow, or would lose bits to the subnormals; the factors
# that bring its operand back into range and the result back to its size.
_LARGE = {FLOAT32: 2.0**126, FLOAT64: 2.0**1022}
_SMALL = {FLOAT32: 2.0**-100, FLOAT64: 2.0**-960}
_UP = {FLOAT32: 2.0**52, FLOAT64: 2.0**108}


def exponential(a: Arithmetic, z: Parts) -> Parts:
    """exp(x) * (cos(y) + i sin(y)); of a real number it is real."""
    x, y = a.bound(z)
    size = a.bind(a.call("exp", x))
    half = a.bind(a.call("exp", a.times(x, a.number(x, 0.5))))
    is_large = a.bind(a.test(BinOp.GT, x, a.number(x, _LARGE_EXPONENT[scalar_of(x)])))

    def scaled(part: Expr) -> Expr:
        part = a.bind(part)
        return a.choose(is_large, a.times(a.times(half, part), half), a.times(size, part))

    is_real = a.bind(a.test(BinOp.EQ, y, a.number(y, 0.0)))
    real = a.choose(is_real, size, scaled(a.call("cos", y)))
    imag = a.choose(is_real, y, scaled(a.call("sin", y)))
    endless = negated(a.classify("isfinite", y), a.span)
    at_limit = a.bind(a.test(BinOp.AND, a.classify("isinf", x), endless))
    vanishes = a.test(BinOp.AND, at_limit, a.test(BinOp.EQ, size, a.number(x, 0.0)))
    return a.choose(at_limit, size, real), a.choose(vanishes, size, imag)


def square_root(a: Arithmetic, z: Parts) -> Parts:
    """The root with a real part that is not negative; its sign of zero is that of the operand."""
    z = a.bound(z)
    kind = scalar_of(z[0])
    sizes = both(lambda part: a.call("abs", part), z)
    size = a.bind(a.call("max", *sizes))
    is_large = a.bind(a.test(BinOp.GE, size, a.number(size, _LARGE[kind])))
    is_small = a.bind(a.test(BinOp.LT, size, a.number(size, _SMALL[kind])))

    def factor(large: float, small: float) -> Expr:
        one = a.number(size, 1.0)
        small_or_one = a.choose(is_small, a.number(size, small), one)
        return a.bind(a.choose(is_large, a.number(size, large), small_or_one))

    into, back = factor(0.25, _UP[kind]), factor(2.0, _UP[kind] ** -0.5)
    x, y = a.bound(both(lambda part: a.times(part, into), z))
    total = a.plus(a.call("abs", x), a.call("hypot", x, y))
    root = a.bind(a.call("sqrt", a.times(total, a.number(x, 0.5))))
    other = a.bind(a.over(y, a.times(a.number(x, 2.0), root)))
    is_left = a.bind(a.test(BinOp.LT, x, a.number(x, 0.0)))
    real = a.times(a.choose(is_left, a.call("abs", other), root), back)
    imag = a.times(a.choose(is_left, a.call("copysign", root, y), other), back)
    zero = a.number(x, 0.0)
    is_zero = a.bind(a.test(BinOp.EQ, root, zero))
    endless = a.bind(a.classify("isinf", z[1]))
    real = a.choose(endless, a.number(x, math.inf), a.choose(is_zero, zero, real))
    return real, a.choose(a.test(BinOp.OR, endless, is_zero), z[1], imag)


def power(a: Arithmetic, z: Parts, w: Parts) -> Parts:
    """z ** w as exp(w * log(z)), in polar form. z ** 0 is 1, a power of zero is 0 or NaN."""
    zero, one = a.number(z[0], 0.0), a.number(z[0], 1.0)
    magnitude = a.bind(a.call("hypot", *z))
    angle = a.bind(a.call("atan2", z[1], z[0]))
    length = a.call("pow", magnitude, w[0])
    phase = a.times(angle, w[0])
    if not _is_zero(w[1]):
        is_real = a.bind(a.test(BinOp.EQ, w[1], zero))
        shrunk = a.times(length, a.call("exp", a.negative(a.times(angle, w[1]))))
        turned = a.plus(phase, a.times(w[1], a.call("log", magnitude)))
        length, phase = a.choose(is_real, length, shrunk), a.choose(is_real, phase, turned)
    length, phase = a.bind(length), a.bind(phase)
    found = a.times(length, a.call("cos", phase)), a.times(length, a.call("sin", phase))
    grows = a.test(BinOp.AND, a.test(BinOp.GT, w[0], zero), a.test(BinOp.EQ, w[1], zero))
    of_zero = a.bind(a.choose(grows, zero, a.number(zero, math.nan)))
    is_zero, is_one = a.bind(a.falsehood(z)), a.bind(a.falsehood(w))
    real, imag = both(lambda part: a.choose(is_zero, of_zero, part), found)
    return a.choose(is_one, one, real), a.choose(is_one, zero, imag)


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0
