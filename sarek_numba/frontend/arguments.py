"""The types of a launch's arguments, and what annotations ask of them.

A Python number is weak, a NumPy scalar keeps its type, an array has element type, axes, layout and
whether it may be written to. What a kernel cannot take is an `ArgumentTypeError` that names the
parameter and what to pass instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from sarek_numba.errors import ArgumentTypeError
from sarek_numba.frontend.complexes import WEAK_COMPLEX
from sarek_numba.frontend.halves import value_type
from sarek_numba.frontend.language import ArrayAnnotation, DType
from sarek_numba.frontend.rules.types import numba_type
from sarek_numba.frontend.typed import Type
from sarek_numba.frontend.weak import WEAK_FLOAT, WEAK_INT, Refusal

_INT64 = np.iinfo(np.int64)


def typeof_argument(value: Any, annotation: Any = None, name: str = "argument") -> Type:
    """The type of one argument of a launch, for the parameter `name`.

    `annotation` is what the parameter states: a `sarek.float32` or `sarek.float32[:]`, or None.
    Raises `ArgumentTypeError`.
    """
    kind = _array(value, name) if is_array(value) else _scalar(value, name)
    if annotation is None:
        return kind
    if isinstance(annotation, ArrayAnnotation):
        _check_array(kind, annotation, name)
        return kind
    stated = stated_scalar(annotation)
    if stated is None:
        return kind
    return _stated(value, kind, stated, name)


def is_array(value: Any) -> bool:
    """Whether an argument is an array: of NumPy, or anything with a shape, a dtype and strides."""
    if isinstance(value, np.generic):
        return False
    return all(hasattr(value, part) for part in ("shape", "dtype", "strides", "ndim"))


def stated_scalar(annotation: Any) -> np.dtype[Any] | None:
    """The scalar type that an annotation states; None for one that states nothing."""
    if isinstance(annotation, DType):
        return annotation.dtype
    if isinstance(annotation, np.dtype):
        return annotation
    if isinstance(annotation, type) and issubclass(annotation, np.generic):
        return np.dtype(annotation)
    return None


def _scalar(value: Any, name: str) -> Type:
    if value is None:
        return types.none
    if isinstance(value, np.generic):
        return value_type(_number_type(value.dtype, name))
    if isinstance(value, bool):
        return types.boolean
    if isinstance(value, int):
        if not _INT64.min <= int(value) <= _INT64.max:
            raise ArgumentTypeError(
                f"{name}: the Python int {value} does not fit int64; pass it as np.uint64"
            )
        return WEAK_INT
    if isinstance(value, float):
        return WEAK_FLOAT
    if isinstance(value, complex):
        return WEAK_COMPLEX
    raise ArgumentTypeError(
        f"{name}: a {type(value).__name__} cannot be passed to a kernel; pass numbers and arrays"
    )


def _number_type(dtype: np.dtype[Any], name: str) -> Type:
    try:
        return numba_type(dtype)
    except Refusal as refusal:
        hint = f"; {refusal.hint}" if refusal.hint else ""
        raise ArgumentTypeError(f"{name}: {refusal.message}{hint}") from None


def _array(value: Any, name: str) -> Type:
    element = _number_type(value.dtype, name)
    flags = value.flags
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(f"{name}: a masked array; pass its .data or .filled()")
    if any(stride % value.dtype.itemsize for stride in value.strides):
        raise ArgumentTypeError(
            f"{name}: its strides are no multiples of its {value.dtype.itemsize}-byte elements; "
            "pass a copy"
        )
    layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    return types.Array(
        element,
        value.ndim,
        layout,
        readonly=not flags.writeable,
        aligned=bool(flags.aligned),
    )


# --- annotations ----------------------------------------------------------------------------------


def _check_array(kind: Type, annotation: ArrayAnnotation, name: str) -> None:
    if not isinstance(kind, types.Array):
        raise ArgumentTypeError(f"{name} is stated as {annotation!r}; {kind} is no array")
    dtype = np.dtype(kind.dtype.name)
    if dtype != annotation.element.dtype:
        raise ArgumentTypeError(
            f"{name} is stated as {annotation!r}, and is an array of {dtype}; "
            f"pass a.astype({annotation.element.dtype.name!r})"
        )
    if kind.ndim != annotation.ndim:
        raise ArgumentTypeError(f"{name} is stated as {annotation!r}, and has {kind.ndim} axes")
    if annotation.layout in ("C", "F") and kind.layout != annotation.layout:
        order = {"C": "np.ascontiguousarray", "F": "np.asfortranarray"}[annotation.layout]
        raise ArgumentTypeError(
            f"{name} is stated as {annotation!r}, and is laid out otherwise; pass {order}(a)"
        )


def _stated(value: Any, kind: Type, stated: np.dtype[Any], name: str) -> Type:
    """The stated type of a scalar, if the value may have it."""
    wanted = value_type(_number_type(stated, name))
    if isinstance(kind, (types.Array, types.NoneType)):
        raise ArgumentTypeError(f"{name} is stated as {stated}, and is {_shown(value)}")
    if isinstance(value, np.generic):
        if value.dtype != stated:
            raise ArgumentTypeError(
                f"{name} is stated as {stated}, and is a {value.dtype}; pass np.{stated}(value)"
            )
        return wanted
    if isinstance(value, bool) != (stated.kind == "b"):
        raise ArgumentTypeError(f"{name} is stated as {stated}, and is {_shown(value)}")
    if stated.kind in "iu":
        if not isinstance(value, int):
            raise ArgumentTypeError(f"{name} is stated as {stated}, and is {_shown(value)}")
        info = np.iinfo(stated)
        if not info.min <= value <= info.max:
            raise ArgumentTypeError(f"{name} is stated as {stated}, which {value} does not fit")
    return wanted


def _shown(value: Any) -> str:
    if value is None:
        return "None"
    if is_array(value):
        return f"an array of {value.dtype}"
    return f"the Python {type(value).__name__} {value!r}"
