"""Conversions between every two scalar types, on boundary values (cases 7, 8, 34, 47)."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from sarek_numba.ir import semantics
from sarek_numba.ir.types import Scalar

INTEGERS = [scalar for scalar in Scalar if scalar.is_integer]
FLOATS = [Scalar.FLOAT16, Scalar.BFLOAT16, Scalar.FLOAT32, Scalar.FLOAT64]
# digits of the significand, exponent of the least subnormal, exponent beyond the largest
FORMATS = {
    Scalar.FLOAT16: (11, -24, 16),
    Scalar.BFLOAT16: (8, -133, 128),
    Scalar.FLOAT32: (24, -149, 128),
    Scalar.FLOAT64: (53, -1074, 1024),
}


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def integer_values(type: Scalar) -> np.ndarray:
    values = {0, 1, -1, 2, 100, type.minimum, type.maximum}
    for bit in range(type.bits):
        for delta in (-1, 0, 1):
            values |= {(1 << bit) + delta, -(1 << bit) + delta}
            # halves of the last place of each float format, and one beside them
            for digits in (8, 11, 24, 53):
                if bit >= digits:
                    half = (1 << bit) + (1 << (bit - digits))
                    values |= {half + delta, half + (1 << (bit - digits + 1)) + delta}
    inside = sorted(v for v in values if type.minimum <= v <= type.maximum)
    return np.array(inside, semantics.dtype_of(type))


@np.errstate(all="ignore")
def float_values(type: Scalar) -> np.ndarray:
    values = [0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.5, -1.5, math.inf, -math.inf, math.nan]
    for bit in (7, 8, 15, 16, 31, 32, 63, 64):
        for sign in (1, -1):
            power = np.array(sign * 2.0**bit).astype(semantics.dtype_of(type))
            values += [float(power), float(power) * 0.9999, float(power) * 1.001]
            values += [sign * (2.0**bit - 0.5), sign * (2.0**bit + 0.5)]
            values += [float(np.nextafter(np.float32(power), np.float32(s))) for s in (0, 1e38)]
            values += [float(np.nextafter(np.float64(power), s)) for s in (0, 1e300)]
    # ties of narrower formats, overflow limits and subnormals
    values += [1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 2**-8 + 2**-40, 65519.99, 65520.0]
    values += [2.0**-25, 2.0**-24, 1.5 * 2.0**-24, 2.0**-133, 2.0**-134 * 1.0001, 3.4e38, 1e300]
    return np.array(values).astype(semantics.dtype_of(type))


def rounded(type: Scalar, value: Fraction) -> float:
    digits, least, most = FORMATS[type]
    if value == 0:
        return 0.0
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    unit = max(exponent - digits + 1, least)
    steps = round(magnitude / Fraction(2) ** unit)
    sign = -1.0 if value < 0 else 1.0
    if steps * Fraction(2) ** unit >= Fraction(2) ** most:
        return sign * math.inf
    return sign * math.ldexp(steps, unit)


@pytest.mark.parametrize("source", INTEGERS, ids=lambda t: t.value)
@pytest.mark.parametrize("target", INTEGERS, ids=lambda t: t.value)
def test_integer_to_integer_is_modulo_the_width(source: Scalar, target: Scalar) -> None:
    values = integer_values(source)
    result = semantics.cast(source, target)(values)
    assert result.dtype == semantics.dtype_of(target)
    mask = (1 << target.bits) - 1
    assert [v & mask for v in result.tolist()] == [v & mask for v in values.tolist()]


@pytest.mark.parametrize("source", INTEGERS, ids=lambda t: t.value)
@pytest.mark.parametrize("target", FLOATS, ids=lambda t: t.value)
def test_integer_to_float_rounds_once(source: Scalar, target: Scalar) -> None:
    values = integer_values(source)
    result = semantics.cast(source, target)(values)
    assert result.dtype == semantics.dtype_of(target)
    expected = [rounded(target, Fraction(v)) for v in values.tolist()]
    assert result.astype(np.float64).tolist() == expected


@pytest.mark.parametrize("source", FLOATS, ids=lambda t: t.value)
@pytest.mark.parametrize("target", INTEGERS, ids=lambda t: t.value)
def test_float_to_integer_saturates(source: Scalar, target: Scalar) -> None:
    values = float_values(source)
    result = semantics.cast(source, target)(values)
    assert result.dtype == semantics.dtype_of(target)

    def exact(x: float) -> int:
        if math.isnan(x):
            return 0
        if math.isinf(x):
            return target.maximum if x > 0 else target.minimum
        return min(max(math.trunc(x), target.minimum), target.maximum)

    assert result.tolist() == [exact(x) for x in values.astype(np.float64).tolist()]


@pytest.mark.parametrize("source", FLOATS, ids=lambda t: t.value)
@pytest.mark.parametrize("target", FLOATS, ids=lambda t: t.value)
def test_float_to_float_rounds_once(source: Scalar, target: Scalar) -> None:
    values = float_values(source)
    result = semantics.cast(source, target)(values).astype(np.float64)
    for x, y in zip(values.astype(np.float64).tolist(), result.tolist(), strict=True):
        if math.isnan(x):
            assert math.isnan(y)
        elif math.isinf(x) or x == 0:
            assert (x, math.copysign(1, x)) == (y, math.copysign(1, y))
        else:
            assert y == rounded(target, Fraction(x)), x


@pytest.mark.parametrize("type", list(Scalar), ids=lambda t: t.value)
def test_bools(type: Scalar) -> None:
    """To bool is `x != 0`, NaN included; from bool is 0 or 1."""
    bools = np.array([False, True])
    numbers = semantics.cast(Scalar.BOOL, type)(bools)
    assert numbers.dtype == semantics.dtype_of(type)
    assert numbers.astype(np.float64).tolist() == [0.0, 1.0]
    assert semantics.cast(type, Scalar.BOOL)(numbers).tolist() == [False, True]
    if type.is_float:
        values = np.array([0.0, -0.0, math.nan, math.inf, 0.25]).astype(semantics.dtype_of(type))
        result = semantics.cast(type, Scalar.BOOL)(values)
        assert result.tolist() == [False, False, True, True, True]


def test_reinterpret_keeps_every_bit() -> None:
    patterns = np.array([0, 1, 0x80000000, 0x7FC00001, 0xFF800001, 0x3F800000], np.uint32)
    as_float = semantics.intrinsic("reinterpret", Scalar.UINT32, Scalar.FLOAT32)(patterns)
    assert as_float.dtype == np.float32
    back = semantics.intrinsic("reinterpret", Scalar.FLOAT32, Scalar.UINT32)(as_float)
    assert back.tolist() == patterns.tolist()


def test_weak_ints_outside_a_type() -> None:
    values = np.array([-1, 0, 127, 128, 255, 256, 2**31, 2**32, -(2**31) - 1])
    assert semantics.outside_of(Scalar.UINT8, values).tolist() == [1, 0, 0, 0, 0, 1, 1, 1, 1]
    assert semantics.outside_of(Scalar.INT8, values).tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert semantics.outside_of(Scalar.UINT64, values).tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert semantics.outside_of(Scalar.INT64, values) is None
    assert semantics.outside_of(Scalar.FLOAT32, values) is None
