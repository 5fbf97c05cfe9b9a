"""Exactly rounded operators on floats, and the several minima and maxima.

IEEE arithmetic in the operands' own type, round to nearest even. The formulas of `%` and `//` are
those of `spec`: they agree bit for bit with NumPy's, which are `divmod` of CPython's floats.
"""

from __future__ import annotations

import numpy as np

from sarek_numba.ir.semantics.arrays import Lanes, Operator, silent


def _divide_and_modulo(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """Quotient and rest for b != 0; both are meaningless where b == 0."""
    zero = a.dtype.type(0)
    rest = np.fmod(a, b)
    quotient = (a - rest) / b
    adjust = (rest != 0) & ((b < 0) != (rest < 0))
    quotient = np.where(adjust, quotient - a.dtype.type(1), quotient)
    rest = np.where(adjust, rest + b, rest)
    rest = np.where(rest == 0, np.copysign(zero, b), rest)
    floor = np.floor(quotient)
    floor = np.where(quotient - floor > a.dtype.type(0.5), floor + a.dtype.type(1), floor)
    floor = np.where(quotient == 0, np.copysign(zero, a / b), floor)
    return floor, rest


@silent
def floor_divide(a: Lanes, b: Lanes) -> Lanes:
    return np.where(b == 0, a / b, _divide_and_modulo(a, b)[0])


@silent
def floor_modulo(a: Lanes, b: Lanes) -> Lanes:
    return np.where(b == 0, a.dtype.type(np.nan), _divide_and_modulo(a, b)[1])


def builtin_min(a: Lanes, b: Lanes) -> Lanes:
    """Python's `min(a, b)`."""
    return np.where(b < a, b, a)


def builtin_max(a: Lanes, b: Lanes) -> Lanes:
    """Python's `max(a, b)`."""
    return np.where(b > a, b, a)


def minimum(a: Lanes, b: Lanes) -> Lanes:
    """NumPy's `minimum`: a NaN wins."""
    return np.where((a <= b) | (a != a), a, b)


def maximum(a: Lanes, b: Lanes) -> Lanes:
    """NumPy's `maximum`: a NaN wins."""
    return np.where((a >= b) | (a != a), a, b)


def fmin(a: Lanes, b: Lanes) -> Lanes:
    """NumPy's `fmin`: a NaN loses."""
    return np.where((a <= b) | (b != b), a, b)


def fmax(a: Lanes, b: Lanes) -> Lanes:
    """NumPy's `fmax`: a NaN loses."""
    return np.where((a >= b) | (b != b), a, b)


OPERATORS: dict[str, Operator] = {
    "add": silent(np.add),
    "sub": silent(np.subtract),
    "mul": silent(np.multiply),
    "div": silent(np.divide),
    "mod": silent(np.fmod),
    "floordiv": floor_divide,
    "floormod": floor_modulo,
}
