"""The coefficients of `sarek_numba.stdlib.functions`, computed anew, lowest power first.

    python -m tools.numerics.polynomials

Each polynomial interpolates its function at Chebyshev points with 60 digits, which comes close to
the best approximation; coefficients are then rounded to the type. Printed beside each is the
largest error on the interval, as a power of two, with the rounded coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

_TINY = mp.mpf(10) ** -9
_SAMPLES = 300


@dataclass(frozen=True)
class Polynomial:
    name: str
    function: Callable[[Any], Any]
    first: Any
    last: Any
    degree: int
    type: Any = float


def _series(terms: Callable[[int], Any], count: int = 60) -> Callable[[Any], Any]:
    return lambda x: sum(terms(i) * x**i for i in range(count))


def _odd(function: Callable[[Any], Any], linear: Any, limit: Any) -> Callable[[Any], Any]:
    """(f(s) / s - linear) / s^2 as a function of z = s^2, with its limit at 0."""

    def quotient(z: Any) -> Any:
        if z < _TINY:
            return limit
        s = mp.sqrt(z)
        return (function(s) / s - linear) / z

    return quotient


def _scaled_erfc(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def _mapped(center: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """exp(x^2) erfc(x) by u = (x - center) / (x + center), and u by x."""
    c = mp.mpf(center)
    return (
        lambda u: _scaled_erfc(c * (1 + u) / (1 - u)),
        lambda x: (mp.mpf(x) - c) / (mp.mpf(x) + c),
    )


def _far_erfc(w: Any) -> Any:
    if w < _TINY:
        return 1 / mp.sqrt(mp.pi)
    x = 1 / mp.sqrt(w)
    return x * _scaled_erfc(x)


def _stirling(w: Any) -> Any:
    if w < _TINY:
        return mp.mpf(1) / 12
    x = 1 / mp.sqrt(w)
    return x * (mp.loggamma(x) - (x - mp.mpf(0.5)) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def _log_gamma(at: int, slope: Any) -> Callable[[Any], Any]:
    def quotient(e: Any) -> Any:
        if abs(e) < _TINY:
            e = _TINY
        return (mp.loggamma(at + e) / e - slope) / e

    return quotient


def polynomials() -> list[Polynomial]:
    half = mp.log(2) / 2 * mp.mpf("1.01")
    quarter = (mp.pi / 4 * mp.mpf("1.001")) ** 2
    ratio = (3 - 2 * mp.sqrt(2)) ** 2 * mp.mpf("1.01")
    slope = 2 / mp.sqrt(mp.pi)
    near, near_u = _mapped(1.25)
    middle, middle_u = _mapped(3)
    eighth = mp.mpf(1) / 8
    return [
        Polynomial("exp", _series(lambda i: 1 / mp.factorial(i + 3), 40), -half, half, 10),
        Polynomial("log", _series(lambda i: mp.mpf(2) / (2 * i + 7)), 0, ratio, 8),
        Polynomial(
            "sin",
            _series(lambda i: (-1) ** (i + 1) / mp.factorial(2 * i + 3), 30),
            0,
            quarter,
            6,
        ),
        Polynomial(
            "cos", _series(lambda i: (-1) ** i / mp.factorial(2 * i + 4), 30), 0, quarter, 6
        ),
        Polynomial("asin", _odd(mp.asin, 1, mp.mpf(1) / 6), 0, mp.mpf("0.2501"), 13),
        Polynomial("atan", _odd(mp.atan, 1, -mp.mpf(1) / 3), 0, mp.mpf("0.4376") ** 2, 11),
        Polynomial("erf", _odd(mp.erf, slope, -slope / 3), 0, mp.mpf("0.7"), 12),
        Polynomial("erfc near", near, near_u(0.84), near_u(2), 15),
        Polynomial("erfc middle", middle, middle_u(2), middle_u(5), 15),
        Polynomial("erfc far", _far_erfc, 0, mp.mpf("0.0401"), 12),
        Polynomial("stirling", _stirling, 0, mp.mpf(1) / 100, 5),
        Polynomial("lgamma at 1", _log_gamma(1, -mp.euler), -eighth, eighth, 13),
        Polynomial("lgamma at 2", _log_gamma(2, 1 - mp.euler), -eighth, eighth, 11),
        Polynomial("exp", _series(lambda i: 1 / mp.factorial(i + 2)), -half, half, 5, np.float32),
        Polynomial(
            "exp2",
            _series(lambda i: mp.log(2) ** (i + 1) / mp.factorial(i + 1)),
            -mp.mpf("0.505"),
            mp.mpf("0.505"),
            6,
            np.float32,
        ),
        Polynomial("log", _series(lambda i: mp.mpf(2) / (2 * i + 3)), 0, ratio, 3, np.float32),
    ]


def coefficients(polynomial: Polynomial) -> list[Any]:
    """Lowest power first."""
    interval = [polynomial.first, polynomial.last]
    found = mp.chebyfit(polynomial.function, interval, polynomial.degree + 1)
    return [polynomial.type(float(c)) for c in reversed(found)]


def error(polynomial: Polynomial, found: list[Any]) -> float:
    """The largest error on the interval, as a power of two."""
    step = (polynomial.last - polynomial.first) / mp.mpf(_SAMPLES)
    exact = [mp.mpf(float(c)) for c in reversed(found)]
    points = [polynomial.first + i * step for i in range(1, _SAMPLES + 1)]
    worst = max(abs(mp.polyval(exact, x) - polynomial.function(x)) for x in points)
    return float(mp.log(worst, 2))


def main() -> None:
    with mp.workdps(80):
        for polynomial in polynomials():
            found = coefficients(polynomial)
            name = f"{polynomial.name}, {polynomial.type.__name__}"
            print(f"{name}: 2^{error(polynomial, found):.1f}")
            for value in found:
                print(f"    {value}")


if __name__ == "__main__":
    main()
