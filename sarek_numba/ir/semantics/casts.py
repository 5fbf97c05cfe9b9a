"""Conversions between every two scalar types, each with at most one rounding.

Integer to integer modulo 2^n; float to integer truncates and saturates, NaN gives 0; to bool
`x != 0`; to a float type rounded once from the source's exact value, overflow to infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sarek_numba.ir.semantics.arrays import Lanes, dtype_of, silent
from sarek_numba.ir.types import Scalar

Conversion = Callable[[Lanes], Lanes]


def conversion(source: Scalar, target: Scalar) -> Conversion:
    """The function that converts lanes of `source` to lanes of `target`."""
    if source is target:
        return _same
    if target is Scalar.BOOL:
        return _to_bool
    if source.is_float and target.is_integer:
        return _float_to_integer(target)
    if target is Scalar.BFLOAT16:
        return _to_bfloat16(source)
    dtype = dtype_of(target)
    if source is Scalar.BFLOAT16 and target is not Scalar.FLOAT32:
        return silent(lambda a: a.astype(np.float32).astype(dtype))  # the first step is exact
    return silent(lambda a: a.astype(dtype))


_SCALARS = {dtype_of(scalar): scalar for scalar in Scalar}


def half_of(value: Any, half: Scalar) -> Any:
    """A number of the host as the NumPy scalar of the nearest half, rounded once; so of arrays.

    Raises TypeError for what is no real number.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = _as_float(value)
    number = np.asarray(value)
    if number.dtype not in _SCALARS:
        kind = number.dtype.name if isinstance(value, np.ndarray) else type(value).__name__
        raise TypeError(f"sarek.{half.value}() takes real numbers, not {kind}")
    rounded = conversion(_SCALARS[number.dtype], half)(number.reshape(-1))
    return rounded.reshape(number.shape)[()]


def _as_float(value: int) -> float:
    """An integer as a float64 that rounds to fewer bits as it does: to odd where it is inexact."""
    shift = max(0, value.bit_length() - 53)
    kept = abs(value) >> shift
    if kept << shift != abs(value):
        kept |= 1
    sign = -1.0 if value < 0 else 1.0
    return sign * (math.inf if shift > 2**10 - 53 else float(kept << shift))


def _same(a: Lanes) -> Lanes:
    return a


def _to_bool(a: Lanes) -> Lanes:
    nonzero: Lanes = a != a.dtype.type(0)
    return nonzero


def _float_to_integer(target: Scalar) -> Conversion:
    dtype = dtype_of(target)
    low, high = float(target.minimum), float(target.maximum + 1)  # powers of two, so exact

    @silent
    def convert(a: Lanes) -> Lanes:
        whole = np.trunc(a.astype(np.float64))
        below, above = whole < low, whole >= high
        # through int64 or uint64: a direct conversion to a narrow type is not defined everywhere
        wide = np.uint64 if target is Scalar.UINT64 else np.int64
        inside = np.where(below | above | (whole != whole), 0.0, whole).astype(wide).astype(dtype)
        inside = np.where(below, dtype.type(target.minimum), inside)
        return np.where(above, dtype.type(target.maximum), inside)

    return convert


def _to_bfloat16(source: Scalar) -> Conversion:
    """Through a float32 rounded to odd, so that the second rounding is the only one that counts."""
    bfloat16 = dtype_of(Scalar.BFLOAT16)
    if source in (Scalar.INT64, Scalar.UINT64):
        return silent(lambda a: _odd_float32(_odd_float64(a)).astype(bfloat16))
    if source in (Scalar.FLOAT64, Scalar.INT32, Scalar.UINT32):
        return silent(lambda a: _odd_float32(a.astype(np.float64)).astype(bfloat16))
    return silent(lambda a: a.astype(np.float32).astype(bfloat16))


def _odd_float32(a: Lanes) -> Lanes:
    """float64 rounded to float32: inexact values go to the neighbour whose last bit is 1."""
    nearest = a.astype(np.float32)
    back = nearest.astype(np.float64)
    fits = np.isfinite(nearest)
    even = (nearest.view(np.uint32) & np.uint32(1)) == 0
    toward = np.where(a > back, np.float32(np.inf), np.float32(-np.inf))
    return np.where(fits & even & (back != a), np.nextafter(nearest, toward), nearest)


def _odd_float64(a: Lanes) -> Lanes:
    """A 64-bit integer rounded to float64, to odd: what the low 11 bits lose leaves a mark."""
    magnitude = a.astype(np.uint64)
    if a.dtype.kind == "i":
        magnitude = np.where(a < 0, np.uint64(0) - magnitude, magnitude)
    lost = (magnitude & np.uint64(0x7FF)) != 0
    large = magnitude >= np.uint64(1 << 53)
    kept = magnitude & ~np.uint64(0x7FF)
    # bit 11 of a number below 2^64 is within the 53 bits kept of it
    odd = np.where(lost & large, kept | np.uint64(0x800), magnitude)
    result = odd.astype(np.float64)
    return np.where(a < 0, -result, result) if a.dtype.kind == "i" else result
