"""Checks of host arguments, and how work is divided, alike for all algorithms."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np

from sarek_numba.errors import ArgumentTypeError, GraphError, InvalidArgument
from sarek_numba.runtime import recorders
from sarek_numba.runtime.hosted import array_on_host
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.vector import Vector, empty_vector, vector_of
from sarek_numba.vectors import full

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Where: TypeAlias = str | Device | None

HALVES: tuple[np.dtype[Any], ...] = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
FLOATS = (*HALVES, np.dtype(np.float32), np.dtype(np.float64))
INTEGERS = tuple(np.dtype(f"{kind}int{bits}") for kind in ("", "u") for bits in (8, 16, 32, 64))
ELEMENTS = (np.dtype(bool), *INTEGERS, *FLOATS)

_SEGMENT = 16384  # elements below which a segment is not worth a block of its own
_SEGMENTS = 64


def check_array(
    function: str,
    parameter: str,
    given: Any,
    dtypes: tuple[np.dtype[Any], ...] = ELEMENTS,
    ndim: int | None = 1,
) -> Array:
    """The array in C order, of a vector what it holds. `ndim` None takes any number of axes.

    Where results are to be vectors it is the vector itself, which has what an array has here.
    """
    kept = recorders.gives_vectors()
    if not (kept and isinstance(given, Vector)):
        given = array_on_host(given)
    if not isinstance(given, np.ndarray | Vector):
        raise ArgumentTypeError(
            f"{function}(): '{parameter}' is {_article(type(given).__name__)}, not a NumPy array\n"
            f"  hint: np.asarray({parameter})"
        )
    if given.dtype not in dtypes:
        names = ", ".join(dtype.name for dtype in dtypes)
        raise ArgumentTypeError(
            f"{function}(): '{parameter}' has elements of type {given.dtype}; it takes {names}\n"
            f"  hint: convert it with {parameter}.astype(...)"
        )
    if ndim is not None and given.ndim != ndim:
        axes = "1 axis" if ndim == 1 else f"{ndim} axes"
        raise InvalidArgument(
            f"{function}(): '{parameter}' has shape {given.shape}; it takes an array of {axes}\n"
            f"  hint: {parameter}.ravel() has one axis, {parameter}.reshape(...) as many as given"
        )
    if isinstance(given, Vector):
        return cast(Array, given if given._array.flags.c_contiguous else given.copy())
    if kept and not given.flags.c_contiguous:
        raise GraphError(
            f"{function}() is given an array of NumPy inside a capture that is not in C order\n"
            f"  hint: make a vector of {parameter} before the block"
        )
    return np.ascontiguousarray(given) if given.ndim else given


def room(shape: Any, dtype: Any) -> Array:
    """Undefined elements for a result: a vector where results are to be vectors."""
    if recorders.gives_vectors():
        return cast(Array, empty_vector(shape, dtype))
    return np.empty(shape, dtype)


def filled(shape: Any, value: Any, dtype: Any = None) -> Array:
    """Equal elements, as `room` has them."""
    if recorders.gives_vectors():
        return cast(Array, full(shape, value, dtype))
    return np.full(shape, value, dtype)


def constant(array: Array) -> Array:
    """An array that stays as it is, for kernels that read it."""
    return cast(Array, vector_of(array)) if recorders.gives_vectors() else array


def refuse_in_graphs(function: str, hint: str) -> None:
    """Raise GraphError where launches are taken down: those of the function are other ones for
    other elements.
    """
    if recorders.gives_vectors():
        raise GraphError(
            f"{function}() is called inside a capture, and what it launches depends on the "
            f"elements\n  hint: {hint}"
        )


def check_integer(function: str, parameter: str, given: Any, least: int, most: int) -> int:
    """A Python or NumPy integer in [least, most]."""
    if isinstance(given, bool | np.bool_) or not isinstance(given, int | np.integer):
        raise ArgumentTypeError(
            f"{function}(): '{parameter}' is {_article(type(given).__name__)}, not an integer\n"
            f"  hint: int({parameter})"
        )
    if not least <= given <= most:
        raise InvalidArgument(
            f"{function}(): '{parameter}' is {given}, which is not in [{least}, {most}]\n"
            f"  hint: choose one in that range"
        )
    return int(given)


def check_length(function: str, parameter: str, given: Array, length: int, other: str) -> None:
    """As many elements as another argument."""
    if len(given) != length:
        raise InvalidArgument(
            f"{function}(): '{parameter}' has {len(given)} elements, '{other}' {length}\n"
            "  hint: pass arrays of one length"
        )


def _article(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def segments(count: int) -> tuple[int, np.uint64]:
    """How many segments `count` elements are divided into, and how long each but the last is.

    A function of the count alone, so that results are the same on all devices. The length is
    unsigned, which tells the compiler that no index made of it is negative.
    """
    number = min(max(1, count // _SEGMENT), _SEGMENTS)
    length = -(-count // number)
    return max(1, -(-count // max(1, length))), np.uint64(length)


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which is added up: NumPy's 64 bits for integers and bools, float32 for halves."""
    if dtype in HALVES:
        return np.dtype(np.float32)
    if dtype.kind in "bi":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


def as_bits(array: Array) -> Array:
    """Halves as the uint16 of their patterns, for what only moves them: no NaN changes its bits."""
    return array.view(np.uint16) if array.dtype in HALVES else array
