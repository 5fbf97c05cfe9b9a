"""Exact results by MPFR (200 bits, correctly rounded), and the distance of a device's from them.

An error is measured in the spacing of floats at the exact value, so a correctly rounded result has
at most 0.5. Beyond the largest float the spacing goes on and infinity stands for the next power of
two: a result that overflows too early is as far off as that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gmpy2
import numpy as np

from tools.numerics.functions import Function
from tools.numerics.sample import Arguments

BITS = 200
VERSION = f"{gmpy2.mpfr_version()}, {BITS} bits"  # begins with "MPFR"


@dataclass(frozen=True)
class Exact:
    """Results: `near + rest * unit`, with `unit` the spacing there; `rounded`; which are special.

    `kind` is what the correctly rounded result is: "nan", "inf", "-inf", "0.0", "-0.0", "number".
    Where `singular`, the mathematical value itself is none, infinite or zero, or so far out that
    MPFR says so, and only the kind counts.
    """

    rounded: np.ndarray
    near: np.ndarray
    rest: np.ndarray
    unit: np.ndarray
    kind: np.ndarray
    singular: np.ndarray
    dtype: np.dtype[Any]


_BY_CODE = np.array(["number", "nan", "inf", "-inf", "0.0", "-0.0"])


def kinds(values: np.ndarray) -> np.ndarray:
    """What each float is, as in `Exact.kind`."""
    code = np.zeros(values.shape, np.int8)
    code[np.isnan(values)] = 1
    code[values == np.inf] = 2
    code[values == -np.inf] = 3
    code[values == 0] = 4
    code[(values == 0) & np.signbit(values)] = 5
    return _BY_CODE[code]


def exact(function: Function, rows: Arguments) -> Exact:
    """The exact results of a function at rows of arguments."""
    dtype = rows[0].dtype
    info = np.finfo(dtype)
    digits = int(info.nmant) + 1
    lowest = int(info.minexp - info.nmant)
    least = int(np.frexp(function.least)[1]) - digits if function.least else lowest
    columns: list[tuple[float, float, float, bool]] = []
    with gmpy2.context(gmpy2.get_context(), precision=BITS):
        top = gmpy2.exp2(gmpy2.mpfr(int(info.maxexp)))
        for row in zip(*(column.tolist() for column in rows), strict=True):
            value = function.reference(*map(gmpy2.mpfr, row))
            columns.append(_split(value, top, digits, max(lowest, least)))
    near, rest, unit, singular = np.array(columns).T
    with np.errstate(over="ignore"):
        beyond = np.where(rest >= 0.5, np.inf, np.where(rest <= -0.5, -np.inf, near))
        rounded = np.where(np.abs(near) >= info.max, beyond, near).astype(dtype)
    return Exact(rounded, near, rest, unit, kinds(rounded), singular != 0, dtype)


def _split(value: Any, top: Any, digits: int, lowest: int) -> tuple[float, float, float, bool]:
    if gmpy2.is_nan(value) or value == 0:
        return float(value), 0.0, 2.0**lowest, True
    singular = bool(gmpy2.is_infinite(value))
    if abs(value) >= top:
        value = gmpy2.copy_sign(top, value)
        exponent = gmpy2.get_exp(top) - 1
    else:
        exponent = gmpy2.get_exp(value)
    unit = 2.0 ** max(exponent - digits, lowest)
    largest = float(top * (1 - gmpy2.exp2(-digits)))
    near = max(-largest, min(largest, float(value)))
    return near, float((value - near) / unit), unit, singular


def errors(actual: np.ndarray, expected: Exact) -> np.ndarray:
    """Distances in ULP: 0 where only the kind counts, infinite for a NaN that should be none."""
    largest = float(np.finfo(expected.dtype).max)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        wide = actual.astype(np.float64)
    beyond = np.where(np.isinf(wide), np.sign(wide), 0.0)
    inside = np.clip(wide, -largest, largest)
    with np.errstate(all="ignore"):
        distance = np.abs((inside - expected.near) / expected.unit + beyond - expected.rest)
    distance = np.where(np.isnan(wide), np.inf, distance)
    return np.where(expected.singular, 0.0, distance)
