"""Rules of types as functions: `np.float32(x)`, `sarek.int32(x)`; and element types of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend.complexes import is_complex
from sarek_numba.frontend.extensions import CompileTime
from sarek_numba.frontend.halves import HALF_TYPES, Half, is_half
from sarek_numba.frontend.language import DType
from sarek_numba.frontend.registered import registered
from sarek_numba.frontend.rules.complexes import constructor_of
from sarek_numba.frontend.rules.operators import require_numbers
from sarek_numba.frontend.rules.records import record_type
from sarek_numba.frontend.rules.registry import Rule
from sarek_numba.frontend.typed import Convert, Operation, RoundToHalf, Type
from sarek_numba.frontend.weak import Refusal, WeakInt, check_fit, describe, is_integer
from sarek_numba.ir.semantics import dtype_of as scalar_dtype

_ZERO = WeakInt.of(0)  # a type called without an argument


HALF_DTYPES = {scalar_dtype(scalar): half for scalar, half in HALF_TYPES.items()}


def numba_type(dtype: np.dtype[Any]) -> Type:
    """The type of elements of a NumPy dtype; raises a `Refusal` that says what to use instead."""
    if dtype.names is not None:
        return record_type(dtype)
    if dtype.subdtype is not None:
        raise Refusal(f"{dtype} is no type of a kernel", "give the array more axes")
    half = HALF_DTYPES.get(dtype)
    if half is not None:
        return half
    if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise Refusal(
            f"{dtype.name} is no type of a kernel",
            {"f": "use float64", "c": "use complex128"}.get(dtype.kind, "use a number type"),
            UnsupportedConstruct,
        )
    if not dtype.isnative:
        raise Refusal(
            f"{dtype.name} in the byte order {dtype.byteorder!r}",
            "convert it with a.astype(a.dtype.newbyteorder('='))",
        )
    return from_dtype(dtype)


def element_type(type: Type) -> Type:
    """The number type that an argument `dtype` names."""
    value = type.value if isinstance(type, CompileTime) else None
    dtype = as_dtype(value)
    if dtype is None:
        raise Refusal(f"{describe(type)} is no element type", "write one, as in sarek.float32")
    return numba_type(dtype)


def as_dtype(value: Any) -> np.dtype[Any] | None:
    """The dtype that an object names in a kernel, or None."""
    dtype: np.dtype[Any] | None = None
    record = registered(value)
    if record is not None:
        dtype = record.dtype
    elif isinstance(value, DType):
        dtype = value.dtype
    elif isinstance(value, np.dtype):
        dtype = value
    elif _is_python_number_type(value) or (
        isinstance(value, type) and issubclass(value, np.generic)
    ):
        dtype = np.dtype(value)
    return dtype


def _is_python_number_type(value: Any) -> bool:
    return any(value is kind for kind in (bool, int, float, complex))


def constructor(value: Any) -> Rule | None:
    """The rule of a type that is called; None if the object is no NumPy or sarek type."""
    if _is_python_number_type(value) or isinstance(value, np.dtype):
        return None
    if registered(value) is not None:
        return None
    dtype = as_dtype(value)
    return None if dtype is None else _converts_to(numba_type(dtype))


def _converts_to(target: Type) -> Rule:
    if is_complex(target):
        return constructor_of(target, target)
    if is_half(target):
        return _rounds_to(target)

    def convert(x: Type = _ZERO, /) -> Operation:
        require_numbers(target, x)
        if is_integer(target) and isinstance(x, WeakInt):
            check_fit(x, target)
        return Operation(Convert(), (x,), target)

    return convert


def _rounds_to(half: Half) -> Rule:
    """`np.float16(x)`: a float32 that holds a half."""

    def round_to_half(x: Type = _ZERO, /) -> Operation:
        require_numbers(half, x)
        return Operation(RoundToHalf(half.scalar), (x,), types.float32)

    return round_to_half
