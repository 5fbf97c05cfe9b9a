"""Functions that no device rounds exactly. float32 is computed in float64 and rounded once.

Domain and range errors give what IEEE 754 says (NaN, infinities), never an exception.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sarek_numba.ir.semantics.arrays import Lanes, Operator, silent


def _each(function: Callable[[float], float]) -> Operator:
    """A function of one Python float, applied to every lane."""

    def apply(a: Lanes) -> Lanes:
        return np.fromiter(map(function, a.ravel().tolist()), np.float64, a.size).reshape(a.shape)

    return apply


def _gamma(x: float) -> float:
    if x == 0.0:
        return math.copysign(math.inf, x)
    if math.isinf(x):
        return x if x > 0 else math.nan
    if x < 0 and x == math.floor(x):
        return math.nan
    try:
        return math.gamma(x)
    except OverflowError:  # between two poles the sign alternates
        return -math.inf if x < 0 and math.floor(x) % 2 else math.inf


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # a pole, or beyond the largest float
        return math.inf


def _half_turns(a: Lanes) -> Lanes:
    """|a| modulo 2, exactly: pi * a and pi times this differ by whole turns."""
    return np.fmod(np.abs(a), 2.0)


def sinpi(a: Lanes) -> Lanes:
    """sin(pi * a), the argument reduced exactly to an eighth of a turn."""
    turn = _half_turns(a)
    lower = turn >= 1.0
    part = np.where(lower, turn - 1.0, turn)
    part = np.where(part > 0.5, 1.0 - part, part)
    value = np.where(part <= 0.25, np.sin(np.pi * part), np.cos(np.pi * (0.5 - part)))
    value = np.where(lower, -value, value)
    whole = np.isfinite(a) & (part == 0)
    return np.where(whole, np.copysign(0.0, a), np.where(np.signbit(a), -value, value))


def cospi(a: Lanes) -> Lanes:
    """cos(pi * a), the argument reduced exactly to an eighth of a turn."""
    turn = _half_turns(a)
    turn = np.where(turn > 1.0, 2.0 - turn, turn)
    negative = turn > 0.5
    part = np.where(negative, 1.0 - turn, turn)
    value = np.where(part <= 0.25, np.cos(np.pi * part), np.sin(np.pi * (0.5 - part)))
    return np.where(negative, -value, value)


def power(a: Lanes, b: Lanes) -> Lanes:
    """IEEE's pow. NumPy's takes the square root where one exponent of 0.5 serves all lanes."""
    root = np.where(a == -np.inf, np.inf, np.sqrt(a) + 0.0)  # pow(-0.0, 0.5) is 0.0
    return np.where(b == 0.5, root, np.power(a, b))


_FLOAT64: dict[str, Operator] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sinpi": sinpi,
    "cospi": cospi,
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "gamma": _each(_gamma),
    "lgamma": _each(_lgamma),
    "cbrt": np.cbrt,
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "pow": power,
    "atan2": np.arctan2,
    "hypot": np.hypot,
}


def _through_float64(function: Operator) -> Operator:
    def narrow(*operands: Lanes) -> Lanes:
        return function(*(a.astype(np.float64) for a in operands)).astype(np.float32)

    return narrow


FLOAT64: dict[str, Operator] = {name: silent(function) for name, function in _FLOAT64.items()}
FLOAT32: dict[str, Operator] = {
    name: silent(_through_float64(function)) for name, function in _FLOAT64.items()
}
