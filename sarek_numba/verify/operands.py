"""Operands that show how a device computes: hard cases by construction, edges, random bits.

A quotient or root is hard where its exact value lies next to the middle between two floats: an
approximation that is off by little rounds to the wrong side there. With p bits of precision,
middles are the odd numbers Q of p + 1 bits.

- Division: for an odd divisor b and a small odd r, Q = r / b modulo 2^(p+1) gives an a with
  Q b = a 2^(p+1) + r, so that a / b differs from Q / 2^(p+1) by r / (b 2^(p+1)) alone.
- Square root: for a small r with a root Q modulo 2^t (Hensel lifting), Q^2 = x 2^t + r, and the
  root of x 2^t differs from Q by r / 2Q.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]

_SEED = 20_261
_HARD = 400  # of each kind
_RANDOM = 1_500


@dataclass(frozen=True, slots=True)
class Operands:
    """Three operands of each row, of one type."""

    a: Floats
    b: Floats
    c: Floats


def operands(dtype: np.dtype[Any]) -> Operands:
    """The rows for a float type, the same each time."""
    random = Random(_SEED)
    bits = np.finfo(dtype).nmant + 1
    parts = [
        *(_rows(dtype, found) for found in (_quotients(bits, random), _roots(bits))),
        _edges(dtype),
        _bits(dtype),
        _ordinary(dtype),
        _cancelling(dtype),
        _tiny(dtype),
    ]
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Operands(*columns)


def _rows(dtype: np.dtype[Any], found: Iterator[tuple[float, float]]) -> list[Floats]:
    pairs = np.array(list(found), np.float64).astype(dtype)
    first, second = pairs[:, 0].copy(), pairs[:, 1].copy()
    return [first, second, np.roll(first, 1)]


def _quotients(bits: int, random: Random) -> Iterator[tuple[float, float]]:
    """Dividend and divisor, both of `bits` bits."""
    modulus = 1 << (bits + 1)
    found = 0
    while found < _HARD:
        divisor = random.randrange(1 << (bits - 1), 1 << bits) | 1
        remainder = random.choice((-5, -3, -1, 1, 3, 5))
        middle = remainder * pow(divisor, -1, modulus) % modulus
        dividend = (middle * divisor - remainder) // modulus
        if dividend > 0 and middle >> bits:
            found += 1
            yield float(dividend), float(divisor)


def _roots(bits: int) -> Iterator[tuple[float, float]]:
    """Radicands whose root lies next to a middle, and that root rounded down."""
    found = 0
    for remainder in range(1, 64 * _HARD, 8):
        for shift in (bits + 1, bits + 2):
            for middle in _roots_modulo(remainder, shift):
                radicand = (middle * middle - remainder) >> shift
                if middle >> bits == 1 and 0 < radicand < 1 << bits:
                    found += 1
                    yield float(radicand) * 2.0**shift, float(middle >> 1)
        if found >= _HARD:
            return


def _roots_modulo(square: int, shift: int) -> set[int]:
    """Odd Q below 2^shift with Q^2 = square modulo 2^shift, for a square that is 1 modulo 8."""
    root = 1
    for power in range(3, shift):
        if (root * root - square) >> power & 1:
            root += 1 << (power - 1)
    half, whole = 1 << (shift - 1), 1 << shift
    return {one % whole for one in (root, -root, root + half, half - root)}


def _edges(dtype: np.dtype[Any]) -> list[Floats]:
    """Every pair of special numbers, the third operand going through them too."""
    info = np.finfo(dtype)
    ends = [0.0, 1.0, 1.5, 3.0, info.tiny, info.smallest_subnormal, info.max, info.eps, np.inf]
    values = np.array([*ends, np.nan, 1 + info.eps, 1 - info.epsneg, info.tiny / 2], dtype)
    values = np.concatenate([values, -values])
    first, second = (each.ravel() for each in np.meshgrid(values, values))
    return [first, second, np.roll(np.resize(values, first.size), 5)]


def _bits(dtype: np.dtype[Any]) -> list[Floats]:
    """Random bit patterns: every exponent is as likely."""
    generator = np.random.default_rng(_SEED)
    return [
        np.frombuffer(generator.bytes(_RANDOM * dtype.itemsize), dtype).copy() for _ in range(3)
    ]


def _ordinary(dtype: np.dtype[Any]) -> list[Floats]:
    generator = np.random.default_rng(_SEED + 1)
    return [generator.uniform(-8, 8, _RANDOM).astype(dtype) for _ in range(3)]


def _cancelling(dtype: np.dtype[Any]) -> list[Floats]:
    """c = -(a b) rounded: with one rounding a b + c is the error of the product, with two it is 0.

    One with a neighbour of it as well.
    """
    a, b, _ = _ordinary(dtype)
    c = -(a * b)
    c[::2] = np.nextafter(c[::2], dtype.type(0))
    return [a, b, c]


def _tiny(dtype: np.dtype[Any]) -> list[Floats]:
    """Subnormals with factors that make them normal, and normal numbers with subnormal products."""
    generator = np.random.default_rng(_SEED + 2)
    info = np.finfo(dtype)
    subnormal = (generator.uniform(0, 1, _HARD) * info.tiny).astype(dtype)
    large = dtype.type(2.0) ** dtype.type(info.nmant + 10)
    normal = generator.uniform(1, 2, _HARD).astype(dtype) * dtype.type(info.tiny)
    first = np.concatenate([subnormal, normal, normal])
    second = np.concatenate(
        [
            np.full(_HARD, large, dtype),
            generator.uniform(0.01, 0.9, _HARD).astype(dtype),
            -subnormal,
        ]
    )
    return [first, second, np.zeros(first.size, dtype)]


# --- conversions and integers ---------------------------------------------------------------------


def for_conversion(dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Values of a type around every edge of a conversion: ends of integers, halves, rounding."""
    generator = np.random.default_rng(_SEED + 3)
    random = np.frombuffer(generator.bytes(600 * dtype.itemsize), dtype)
    powers = [sign * 2**k + d for k in (0, 7, 8, 15, 16, 23, 24, 25, 31, 32, 52, 53, 54, 62, 63, 64)
              for sign in (1, -1) for d in (-2, -1, 0, 1, 2)]  # fmt: skip
    if dtype.kind == "f":
        halves = [k + 0.5 for k in range(-6, 6)]
        values = [*map(float, powers), *halves, -0.0, np.inf, -np.inf, np.nan, 0.99, -0.99]
        with np.errstate(over="ignore"):
            edges = np.array(values, np.float64).astype(dtype)
        spread = (generator.uniform(-1, 1, 400) * 2.0 ** generator.uniform(0, 66, 400)).astype(
            dtype
        )
        return np.concatenate([edges, spread, random])
    info = np.iinfo(dtype)
    middles = [  # next to the middle between two floats
        (2**24 + 1) * 2**k + d for k in range(8, 38) for d in (-1, 0, 1)
    ]
    inside = [one for one in (*powers, *middles, info.min, info.max) if info.min <= one <= info.max]
    return np.concatenate([np.array(inside, dtype), random])


def for_integers(dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Every pair of the ends, zero and small numbers, then random bits."""
    info = np.iinfo(dtype)
    wanted = (0, 1, 2, 3, 7, -1, -2, -7, info.min, info.min + 1, info.max, info.max - 1)
    values = np.array([one for one in wanted if info.min <= one <= info.max], dtype)
    first, second = (each.ravel() for each in np.meshgrid(values, values))
    generator = np.random.default_rng(_SEED + 4)
    random = [np.frombuffer(generator.bytes(500 * dtype.itemsize), dtype) for _ in range(2)]
    small = generator.integers(1, 100, 500).astype(dtype)
    return (
        np.concatenate([first, random[0], random[1]]),
        np.concatenate([second, random[1], small]),
    )
