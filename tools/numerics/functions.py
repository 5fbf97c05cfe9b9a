"""The inexact functions: the names that kernels call them by, MPFR's function, and where to look.

`ranges` are intervals of the first argument (of both, for functions of two) and `points` arguments
whose neighbours are taken, where an implementation changes its method or cancels: zeros, poles,
thresholds of overflow and underflow. A test asserts that the table is total.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gmpy2

from sarek_numba.ir.intrinsics import INTRINSICS

# Near the zeros of lgamma at negative arguments only the absolute error is bounded.
ABSOLUTE = " near zeros"
Reference = Callable[..., Any]


@dataclass(frozen=True)
class Function:
    """`names` compute it from x (and y); the first is the one measured.

    `least` says that errors are counted in the spacing at the result or at this number, whichever
    is larger.
    """

    name: str
    names: tuple[str, ...]
    reference: Reference
    ranges: tuple[tuple[float, float], ...]
    points: tuple[float, ...] = ()
    least: float = 0.0

    @property
    def arity(self) -> int:
        return INTRINSICS[self.intrinsic].arity

    @property
    def intrinsic(self) -> str:
        return self.name.removesuffix(ABSOLUTE)


def _turns(x: Any) -> tuple[int, Any]:
    """The nearest number of quarter turns of pi * x, modulo 4, and the rest in half turns."""
    halves = gmpy2.fmod(2 * x, 4)
    quarters = int(gmpy2.rint(halves))
    return quarters % 4, (halves - quarters) / 2


def _sine_of_turns(x: Any, shift: int) -> Any:
    quarters, rest = _turns(x)
    quarters = (quarters + shift) % 4
    angle = rest * gmpy2.const_pi()
    value = gmpy2.cos(angle) if quarters % 2 else gmpy2.sin(angle)
    return -value if quarters >= 2 else value


def _sinpi(x: Any) -> Any:
    """IEEE 754-2019: the zero at an integer has the sign of the integer."""
    if not gmpy2.is_finite(x):
        return gmpy2.nan()
    value = _sine_of_turns(x, 0)
    return gmpy2.copy_sign(gmpy2.zero(), x) if value == 0 else value


def _cospi(x: Any) -> Any:
    """IEEE 754-2019: every zero is positive."""
    if not gmpy2.is_finite(x):
        return gmpy2.nan()
    value = _sine_of_turns(x, 1)
    return gmpy2.zero() if value == 0 else value


def _rsqrt(x: Any) -> Any:
    """IEEE 754-2019 rSqrt; MPFR's own gives +infinity at -0.0."""
    return gmpy2.copy_sign(gmpy2.inf(), x) if x == 0 else gmpy2.rec_sqrt(x)


def _lgamma(x: Any) -> Any:
    return gmpy2.lgamma(x)[0]


_PI = math.pi
_CIRCLE = ((-_PI, _PI), (-100.0, 100.0), (-1e6, 1e6), (1e15, 1e30))
_CIRCLE_POINTS = (_PI / 4, _PI / 2, _PI, 1.5 * _PI, 2 * _PI, 11.0, 22.0, 355.0, 710.0, 102573.0)
_EXP = ((-1.0, 1.0), (-104.0, 89.0), (-746.0, 710.0))
_EXP_POINTS = (88.72284, -87.33655, -103.97208, 709.782712893384, -708.3964185322641, -745.13321910)
_UNIT = ((-1.0, 1.0), (0.4, 0.6), (0.99, 1.0), (-1.0, -0.99), (-1e-3, 1e-3))
_LOG = ((0.0, 2.0), (0.99, 1.01), (0.5, 100.0), (1e10, 1e30))
_HYPERBOLIC = ((-1.0, 1.0), (-0.6, 0.6), (-25.0, 25.0), (-90.0, 90.0), (-711.0, 711.0))
_HYPERBOLIC_POINTS = (0.35, 0.55, 22.0, 88.72284, 89.41599, 709.782712893384, 710.4758600739439)
_TURNS = ((-2.0, 2.0), (-1e3, 1e3), (-1e7, 1e7), (1e15, 1e17))
_TURN_POINTS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 8388607.5, 16777216.0, 4503599627370495.5)

_FUNCTIONS = (
    Function("exp", ("math.exp(x)", "np.exp(x)"), gmpy2.exp, _EXP, _EXP_POINTS),
    Function(
        "exp2",
        ("math.exp2(x)", "np.exp2(x)"),
        gmpy2.exp2,
        ((-1.0, 1.0), (-150.0, 129.0), (-1075.0, 1025.0)),
        (128.0, -126.0, -149.0, 1024.0, -1022.0, -1074.0),
    ),
    Function(
        "expm1",
        ("math.expm1(x)", "np.expm1(x)", "sarek.math.expm1(x)"),
        gmpy2.expm1,
        (*_EXP, (-0.01, 0.01), (-40.0, 2.0)),
        (*_EXP_POINTS, 0.34657, -0.34657, -17.33, -37.43),
    ),
    Function("log", ("math.log(x)", "np.log(x)"), gmpy2.log, _LOG, (1.0, math.e)),
    Function("log2", ("math.log2(x)", "np.log2(x)"), gmpy2.log2, _LOG, (1.0, 2.0, 0.5, 1024.0)),
    Function("log10", ("math.log10(x)", "np.log10(x)"), gmpy2.log10, _LOG, (1.0, 10.0, 0.1, 1e10)),
    Function(
        "log1p",
        ("math.log1p(x)", "np.log1p(x)", "sarek.math.log1p(x)"),
        gmpy2.log1p,
        ((-1.0, 1.0), (-0.01, 0.01), (-1.0, -0.99), (0.0, 100.0), (1e10, 1e30)),
        (-1.0, -0.5, 0.41421),
    ),
    Function("sin", ("math.sin(x)", "np.sin(x)"), gmpy2.sin, _CIRCLE, _CIRCLE_POINTS),
    Function("cos", ("math.cos(x)", "np.cos(x)"), gmpy2.cos, _CIRCLE, _CIRCLE_POINTS),
    Function("tan", ("math.tan(x)", "np.tan(x)"), gmpy2.tan, _CIRCLE, _CIRCLE_POINTS),
    Function("asin", ("math.asin(x)", "np.arcsin(x)"), gmpy2.asin, _UNIT, (0.5, 1.0, -1.0)),
    Function("acos", ("math.acos(x)", "np.arccos(x)"), gmpy2.acos, _UNIT, (0.5, -0.5, 1.0, -1.0)),
    Function(
        "atan",
        ("math.atan(x)", "np.arctan(x)"),
        gmpy2.atan,
        ((-1.0, 1.0), (-10.0, 10.0), (-1e4, 1e4)),
        (0.4375, 0.6875, 1.0, 1.1875, 2.4375),
    ),
    Function("sinh", ("math.sinh(x)", "np.sinh(x)"), gmpy2.sinh, _HYPERBOLIC, _HYPERBOLIC_POINTS),
    Function("cosh", ("math.cosh(x)", "np.cosh(x)"), gmpy2.cosh, _HYPERBOLIC, _HYPERBOLIC_POINTS),
    Function(
        "tanh", ("math.tanh(x)", "np.tanh(x)"), gmpy2.tanh, _HYPERBOLIC, (0.55, 1.0, 9.01, 22.0)
    ),
    Function(
        "asinh",
        ("math.asinh(x)", "np.arcsinh(x)"),
        gmpy2.asinh,
        ((-1.0, 1.0), (-10.0, 10.0), (-1e9, 1e9)),
        (2.0, 0.5, 2.0**28),
    ),
    Function(
        "acosh",
        ("math.acosh(x)", "np.arccosh(x)"),
        gmpy2.acosh,
        ((1.0, 2.0), (1.0, 1.01), (1.0, 100.0), (1e6, 1e12)),
        (1.0, 2.0, 2.0**28),
    ),
    Function("atanh", ("math.atanh(x)", "np.arctanh(x)"), gmpy2.atanh, _UNIT, (0.5, 1.0, -1.0)),
    Function("sinpi", ("sarek.math.sinpi(x)",), _sinpi, _TURNS, _TURN_POINTS),
    Function("cospi", ("sarek.math.cospi(x)",), _cospi, _TURNS, _TURN_POINTS),
    Function(
        "erf",
        ("math.erf(x)", "sarek.math.erf(x)"),
        gmpy2.erf,
        ((-1.0, 1.0), (-4.0, 4.0), (-6.5, 6.5)),
        (0.84375, 1.25, 2.857, 3.92, 6.0),
    ),
    Function(
        "erfc",
        ("math.erfc(x)", "sarek.math.erfc(x)"),
        gmpy2.erfc,
        ((-1.0, 1.0), (-6.5, 11.0), (0.0, 28.0)),
        (0.84375, 1.25, 2.857, 10.054, 26.543, 27.226),
    ),
    Function(
        "gamma",
        ("math.gamma(x)", "sarek.math.gamma(x)"),
        gmpy2.gamma,
        ((-5.0, 5.0), (0.0, 36.0), (-45.0, 0.0), (0.0, 172.0), (-185.0, 0.0)),
        (1.0, 2.0, -1.0, -2.0, -10.0, 35.04, 171.62437, -41.5),
    ),
    Function(
        "lgamma",
        ("math.lgamma(x)", "sarek.math.lgamma(x)"),
        _lgamma,
        ((-5.0, 5.0), (0.5, 3.0), (0.0, 100.0), (-50.0, 0.0), (1e3, 1e12)),
        (1.0, 2.0, -1.0, -2.0, -2.4570247382208, -2.7476826467274, -3.1435808883499, 7.0),
    ),
    Function(
        "cbrt", ("math.cbrt(x)", "np.cbrt(x)"), gmpy2.cbrt, ((-8.0, 8.0), (-1e9, 1e9)), (1.0,)
    ),
    Function("rsqrt", ("sarek.math.rsqrt(x)",), _rsqrt, ((0.0, 4.0), (0.0, 1e9)), (1.0, 4.0)),
    Function(
        "pow",
        ("x ** y", "math.pow(x, y)", "pow(x, y)", "np.power(x, y)"),
        lambda x, y: x**y,
        ((0.0, 2.0), (0.9, 1.1), (0.0, 100.0), (-20.0, 20.0)),
        (0.0, 1.0, -1.0, 2.0, 0.5, -2.0, 3.0, 33.0, 127.0, 1023.0),
    ),
    Function(
        "atan2",
        ("math.atan2(x, y)", "np.arctan2(x, y)"),
        gmpy2.atan2,
        ((-1.0, 1.0), (-10.0, 10.0), (1.0, 1e6)),
        (0.0, 1.0, -1.0),
    ),
    Function(
        "hypot",
        ("math.hypot(x, y)", "np.hypot(x, y)", "sarek.math.hypot(x, y)"),
        gmpy2.hypot,
        ((-1.0, 1.0), (1.0, 2.0), (-1e3, 1e3)),
        (0.0, 1.0, 3.0, 4.0),
    ),
)

FUNCTIONS = {function.name: function for function in _FUNCTIONS}
_LGAMMA = replace(FUNCTIONS["lgamma"], name=f"lgamma{ABSOLUTE}", least=1.0)
FUNCTIONS[_LGAMMA.name] = _LGAMMA
INEXACT = tuple(name for name, info in INTRINSICS.items() if not info.exact)
EXACT = tuple(name for name, info in INTRINSICS.items() if info.exact)
