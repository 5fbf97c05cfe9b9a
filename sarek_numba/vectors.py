"""Vectors: arrays that stay on devices from launch to launch.

With `pinned=True`, or a device, the host memory of a vector is page-locked where a device has that:
it is the device that launches go to now or else the best one that has such memory. Everywhere else
it is ordinary memory. `v.pinned` tells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.runtime import recorders
from sarek_numba.runtime.dlpack.driver import array_on_host
from sarek_numba.runtime.pinning import Pinned
from sarek_numba.runtime.soa import SoAVector, soa_of
from sarek_numba.runtime.vector import Vector, empty_vector, vector_of

__all__ = [
    "SoAVector",
    "Vector",
    "arange",
    "empty",
    "from_dlpack",
    "full",
    "like",
    "ones",
    "soa",
    "vector",
    "zeros",
]


def _type_for_numba(array: npt.NDArray[Any]) -> Any:
    from sarek_numba.frontend.njit import vector_type  # loads Numba's compiler

    return vector_type(array)


Vector._type_for_numba = staticmethod(_type_for_numba)


def vector(
    array: npt.ArrayLike, dtype: npt.DTypeLike | None = None, *, pinned: Pinned = False
) -> Vector:
    """A vector of the elements of an array, or of nested lists; a copy, C- or F-contiguous."""
    return vector_of(np.asarray(array, dtype), pinned)


def soa(records: npt.ArrayLike, *, pinned: Pinned = False) -> SoAVector:
    """A vector of the records of an array, each number in a column of its own; a copy.

    TypeError for what is no array of records that a kernel takes.
    """
    return soa_of(np.asarray(records), pinned)


def empty(shape: Any, dtype: npt.DTypeLike = np.float64, *, pinned: Pinned = False) -> Vector:
    """A vector whose elements are undefined until they are written."""
    return empty_vector(shape, dtype, pinned)


def zeros(shape: Any, dtype: npt.DTypeLike = np.float64, *, pinned: Pinned = False) -> Vector:
    """A vector of zeros."""
    return full(shape, 0, dtype, pinned=pinned)


def ones(shape: Any, dtype: npt.DTypeLike = np.float64, *, pinned: Pinned = False) -> Vector:
    """A vector of ones."""
    return full(shape, 1, dtype, pinned=pinned)


def full(
    shape: Any, value: Any, dtype: npt.DTypeLike | None = None, *, pinned: Pinned = False
) -> Vector:
    """A vector in which every element is `value`, whose type decides if `dtype` does not."""
    made = empty_vector(shape, np.asarray(value).dtype if dtype is None else dtype, pinned)
    made._array[...] = value
    recorder = recorders.current.get()
    if recorder is not None:
        recorder.filled(made, value)
    return made


def like(
    other: npt.ArrayLike | Vector,
    dtype: npt.DTypeLike | None = None,
    *,
    pinned: Pinned = False,
) -> Vector:
    """A vector with the shape and type of another, whose elements are undefined."""
    given: Any = other if hasattr(other, "dtype") and hasattr(other, "shape") else np.asarray(other)
    return empty_vector(given.shape, given.dtype if dtype is None else dtype, pinned)


def arange(*bounds: Any, dtype: npt.DTypeLike | None = None, pinned: Pinned = False) -> Vector:
    """A vector of evenly spaced numbers, as of `numpy.arange`."""
    return vector_of(np.arange(*bounds, dtype=dtype), pinned)


def from_dlpack(given: Any, *, pinned: Pinned = False) -> Vector:
    """A vector of the elements of an object with DLPack on the host; a copy."""
    return vector_of(array_on_host(given), pinned)
