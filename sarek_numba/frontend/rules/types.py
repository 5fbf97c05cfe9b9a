"""Rules of types as functions: `np.float32(x)`, `sarek.int32(x)`; and element types of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.np.numpy_support import from_dtype

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend.complexes import is_complex
from sarek_numba.frontend.extensions import CompileTime
from sarek_numba.frontend.language import DType, NotYet
from sarek_numba.frontend.registered import registered
from sarek_numba.frontend.rules.complexes import constructor_of
from sarek_numba.frontend.rules.operators import require_numbers
from sarek_numba.frontend.rules.records import record_type
from sarek_numba.frontend.rules.registry import Rule
from sarek_numba.frontend.typed import Convert, Operation, Type
from sarek_numba.frontend.weak import Refusal, WeakInt, check_fit, describe, is_integer

_ZERO = WeakInt.of(0)  # a type called without an argument

_INSTEAD = {"float16": "use float32", "bfloat16": "use float32"}


def numba_type(dtype: np.dtype[Any]) -> Type:
    """The type of a NumPy dtype; raises a `Refusal` that says what to use instead."""
    if dtype.names is not None:
        return record_type(dtype)
    if dtype.subdtype is not None:
        raise Refusal(f"{dtype} is no type of a kernel", "give the array more axes")
    if dtype.name in ("float16", "bfloat16"):
        raise Refusal(
            f"{dtype.name} is not in this version", _INSTEAD.get(dtype.name), UnsupportedConstruct
        )
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
    if isinstance(value, NotYet):
        raise refused(value)
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
    if _is_python_number_type(value) or isinstance(value, (NotYet, np.dtype)):
        return None
    if registered(value) is not None:
        return None
    dtype = as_dtype(value)
    return None if dtype is None else _converts_to(numba_type(dtype))


def _converts_to(target: Type) -> Rule:
    if is_complex(target):
        return constructor_of(target, target)

    def convert(x: Type = _ZERO, /) -> Operation:
        require_numbers(target, x)
        if is_integer(target) and isinstance(x, WeakInt):
            check_fit(x, target)
        return Operation(Convert(), (x,), target)

    return convert


def refused(feature: NotYet) -> Refusal:
    """The refusal of a feature of a later version."""
    return Refusal(
        f"sarek.{feature.name} is not in this version", feature.hint, UnsupportedConstruct
    )
