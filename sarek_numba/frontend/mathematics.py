"""`sarek.math`: functions that Python's `math` or NumPy lack, or have under other rules.

In a kernel they are compiled. Called in plain Python, as emulation does, they compute here, on
NumPy scalars at the type of their arguments. Imports no Numba.
"""

from __future__ import annotations

import math as _math
from collections.abc import Callable
from typing import Any

import numpy as np


def _at_its_type(function: Callable[..., float], *values: Any) -> Any:
    """A float64 function at the type of its arguments: rounded once, without exceptions."""
    kind = np.result_type(*values)
    if not np.issubdtype(kind, np.floating):
        kind = np.dtype(np.float64)
    try:
        result = function(*(float(value) for value in values))
    except (ValueError, OverflowError):
        result = _exceptional(function, float(values[0]))
    if all(
        isinstance(value, (int, float)) and not isinstance(value, np.generic) for value in values
    ):
        return float(result)
    with np.errstate(over="ignore"):
        return kind.type(result)


def _exceptional(function: Callable[..., float], value: float) -> float:
    """What a function gives where Python's `math` raises: a pole, an overflow, or no value."""
    if function is _math.gamma:
        return gamma_edges(value)
    if function is _math.log1p:
        return -_math.inf if value == -1.0 else _math.nan
    if function is _math.lgamma or function is _math.expm1 or function is _math.hypot:
        return _math.inf
    return _math.nan


def gamma_edges(x: float) -> float:
    """Poles, and overflow, which between two poles has an alternating sign."""
    if x == 0.0:
        return _math.copysign(_math.inf, x)
    if x == -_math.inf or (x < 0.0 and x == _math.floor(x)):
        return _math.nan
    return _math.inf if x > 0.0 or _math.floor(x) % 2 == 0 else -_math.inf


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    return _at_its_type(_reciprocal_root, x)


def _reciprocal_root(x: float) -> float:
    if x == 0.0:
        return _math.copysign(_math.inf, x)
    return 1.0 / _math.sqrt(x)


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c with one rounding."""
    from fractions import Fraction

    kind = np.result_type(a, b, c)
    values = [float(v) for v in (a, b, c)]
    if not all(map(_math.isfinite, values)):
        return kind.type(values[0] * values[1] + values[2])
    exact = Fraction(values[0]) * Fraction(values[1]) + Fraction(values[2])
    if exact == 0:
        return kind.type(values[0] * values[1] + values[2])
    return kind.type(_rounded(exact, kind))


def _rounded(exact: Any, kind: np.dtype[Any]) -> float:
    """A fraction to the nearest number of the type, ties to even; beyond its range, infinity."""
    info = np.finfo(kind)
    sign = -1.0 if exact < 0 else 1.0
    size = abs(exact)
    exponent = max(_exponent(size), int(info.minexp))
    unit = type(exact)(2) ** (exponent - int(info.nmant))
    rounded = round(size / unit) * unit
    if rounded >= type(exact)(2) ** int(info.maxexp):
        return sign * _math.inf
    return sign * float(rounded)


def _exponent(size: Any) -> int:
    """The power of two that a positive fraction lies at or above."""
    exponent: int = size.numerator.bit_length() - size.denominator.bit_length()
    return exponent if size >= type(size)(2) ** exponent else exponent - 1


def clz(x: Any) -> Any:
    """Zero bits before the highest one, at the width of x's type (64 for a Python int)."""
    width, bits = _bits(x)
    return type(x)(width - bits.bit_length())


def popcount(x: Any) -> Any:
    """The number of one bits."""
    return type(x)(_bits(x)[1].bit_count())


def _bits(x: Any) -> tuple[int, int]:
    width = np.dtype(type(x)).itemsize * 8 if isinstance(x, np.generic) else 64
    return width, int(x) & ((1 << width) - 1)


def copysign(x: Any, y: Any) -> Any:
    """x with the sign of y."""
    return _at_its_type(_math.copysign, x, y)


def hypot(x: Any, y: Any) -> Any:
    """sqrt(x*x + y*y)."""
    return _at_its_type(_math.hypot, x, y)


def erf(x: Any) -> Any:
    """The error function."""
    return _at_its_type(_math.erf, x)


def erfc(x: Any) -> Any:
    """1 - erf(x)."""
    return _at_its_type(_math.erfc, x)


def gamma(x: Any) -> Any:
    """The gamma function."""
    return _at_its_type(_math.gamma, x)


def lgamma(x: Any) -> Any:
    """log(abs(gamma(x)))."""
    return _at_its_type(_math.lgamma, x)


def expm1(x: Any) -> Any:
    """exp(x) - 1."""
    return _at_its_type(_math.expm1, x)


def log1p(x: Any) -> Any:
    """log(1 + x)."""
    return _at_its_type(_math.log1p, x)


def sinpi(x: Any) -> Any:
    """sin(pi * x)."""
    return _at_its_type(_sinpi, x)


def cospi(x: Any) -> Any:
    """cos(pi * x)."""
    return _at_its_type(_cospi, x)


def _sinpi(x: float) -> float:
    quarters, angle = _reduced(x)
    value = (_math.sin, _math.cos)[quarters % 2](angle)
    value = -value if quarters >= 2 else value
    return value if value else _math.copysign(0.0, x)


def _cospi(x: float) -> float:
    quarters, angle = _reduced(x)
    value = (_math.cos, _math.sin)[quarters % 2](angle)
    return (-value if quarters in (1, 2) else value) + 0.0


def _reduced(x: float) -> tuple[int, float]:
    """pi * x as quarter turns, modulo 4, and an angle of at most an eighth of a turn."""
    halves = _math.fmod(x, 2.0) * 2.0
    quarters = round(halves)
    return quarters % 4, (halves - quarters) / 2.0 * _math.pi


def reinterpret(x: Any, dtype: Any) -> Any:
    """The bits of x as a number of another type of the same width."""
    kind = np.dtype(dtype)
    source = x if isinstance(x, np.generic) else np.asarray(x)[()]
    if source.dtype.itemsize != kind.itemsize:
        raise TypeError(f"{source.dtype} and {kind} differ in width")
    return source.view(kind)
