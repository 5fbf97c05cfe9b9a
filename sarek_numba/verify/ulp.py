"""Distances in units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.ir.variants import name_of_dtype


def ulp_distance(actual: npt.ArrayLike, expected: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Element by element, the number of floats between two arrays of one shape and type.

    NaN against NaN is 0, NaN against a number is infinite, and 0.0 against -0.0 is 1. For integers
    and bools the distance is the difference, as a float64; for complex numbers the larger of those
    of the parts.
    """
    a, b = np.asarray(actual), np.asarray(expected)
    if a.dtype != b.dtype or a.shape != b.shape:
        raise TypeError(f"{a.dtype} {a.shape} and {b.dtype} {b.shape} cannot be compared")
    if a.dtype.kind == "c":
        return np.maximum(ulp_distance(a.real, b.real), ulp_distance(a.imag, b.imag))
    if a.dtype.names is not None:
        return _of_fields(a, b)
    left, right = _ordered(a), _ordered(b)
    distance = np.where(left > right, left - right, right - left).astype(np.float64)
    if a.dtype.kind != "f" and a.dtype.name != "bfloat16":
        return distance
    neither = np.isnan(a) & np.isnan(b)
    one = np.isnan(a) ^ np.isnan(b)
    return np.where(neither, 0.0, np.where(one, np.inf, distance))


def _of_fields(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """For each record the largest distance of its fields; the bytes between them do not count."""
    if name_of_dtype(a.dtype) is not None:
        return _of_cases(a, b)
    worst = np.zeros(a.shape)
    for name in a.dtype.names or ():
        distance = ulp_distance(a[name], b[name])
        inner = tuple(range(a.ndim, distance.ndim))
        worst = np.maximum(worst, distance.max(axis=inner, initial=0.0) if inner else distance)
    return worst


def _of_cases(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """For each variant the distance of its parts; infinite where it is of two cases."""
    worst = np.where(a["tag"] == b["tag"], 0.0, np.inf)
    for tag, case in enumerate((a.dtype.names or ())[1:]):
        here = (a["tag"] == tag) & (b["tag"] == tag)
        distance = ulp_distance(a[case][here], b[case][here])
        inner = tuple(range(1, distance.ndim))
        worst[here] = distance.max(axis=inner, initial=0.0) if inner else distance
    return worst


def worst_ulp(actual: npt.ArrayLike, expected: npt.ArrayLike) -> float:
    """The largest distance; 0.0 for equal or empty arrays."""
    return float(np.max(ulp_distance(actual, expected), initial=0.0))


def _ordered(values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Values as unsigned integers in the same order, one apart for neighbouring floats."""
    if values.dtype.kind in "bu":
        return values.astype(np.uint64)
    sign = np.uint64(1 << 63)
    if values.dtype.kind == "i":
        return values.astype(np.int64).view(np.uint64) ^ sign
    bits = values.dtype.itemsize * 8
    raw = np.ascontiguousarray(values).view(f"u{bits // 8}").astype(np.uint64)
    top = np.uint64(1 << (bits - 1))
    mask = np.uint64((1 << bits) - 1)
    return np.where(raw & top, ~raw & mask, raw | top)
