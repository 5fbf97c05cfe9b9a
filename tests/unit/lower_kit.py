"""Lowering under test: a kernel from a function, its text, and its run on the oracle."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
from numba.core import types

from sarek_interp.launch import execute
from sarek_numba.frontend.infer import infer
from sarek_numba.frontend.lower import lower
from sarek_numba.frontend.weak import WEAK_FLOAT, WEAK_INT
from sarek_numba.ir.nodes import Body, Kernel
from sarek_numba.ir.text import text
from sarek_numba.ir.types import (
    DynamicSharedLength,
    LengthOf,
    OffsetOf,
    ShapeOf,
    StrideOf,
    UserArgument,
)
from sarek_numba.ir.verify import verify
from sarek_numba.verify.emulate import emulate

INT32 = types.Array(types.int32, 1, "C")
UINT64 = types.Array(types.uint64, 1, "C")
INT64 = types.Array(types.int64, 1, "C")
FLOAT32 = types.Array(types.float32, 1, "C")
FLOAT64 = types.Array(types.float64, 1, "C")
FLOAT32_2D = types.Array(types.float32, 2, "C")


def type_of(value: Any, layout: str | None = None) -> types.Type:
    """The type that an argument has for the front end."""
    if isinstance(value, bool):
        return types.boolean
    if isinstance(value, int):
        return WEAK_INT
    if isinstance(value, float):
        return WEAK_FLOAT
    dtype = getattr(types, "boolean" if value.dtype == np.bool_ else str(value.dtype))
    if not isinstance(value, np.ndarray):
        return dtype
    order = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "A"
    return types.Array(dtype, value.ndim, layout or order)


def kernel_of(function: FunctionType, *argument_types: types.Type, **options: Any) -> Kernel:
    """The verified kernel of a function."""
    kernel = lower(infer(function, argument_types), **options)
    verify(kernel)
    return kernel


def text_of(function: FunctionType, *argument_types: types.Type, **options: Any) -> str:
    """The text of a function's statements."""
    whole = text(kernel_of(function, *argument_types, **options))
    lines = [line for line in whole.splitlines() if not line.startswith("  param ")]
    return "\n".join(lines[1:-1])


def run(
    function: FunctionType, *arguments: Any, grid: int = 1, block: int = 1, shared_bytes: int = 0
) -> list[str]:
    """Run on the oracle, in place; what it found."""
    kernel = kernel_of(function, *map(type_of, arguments))
    bound = []
    for parameter in kernel.params:
        value = _value(parameter.role, parameter.array, arguments, shared_bytes)
        is_scalar = parameter.array is None
        bound.append(_scalar(parameter, value) if is_scalar else value)
    report = execute(kernel, (grid, 1, 1), (block, 1, 1), bound, shared_bytes)
    return [type(finding).__name__ + ": " + str(finding) for finding in report.findings]


def check(function: FunctionType, *arguments: Any, grid: int = 1, block: int = 1) -> list[Any]:
    """Run in CPython and on the oracle; both must give the same. The results."""
    expected = [np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments]
    expected = [_like(a, e) for a, e in zip(arguments, expected, strict=True)]
    emulate(function)[grid, block](*expected)
    actual = [_like(a, np.copy(a)) if isinstance(a, np.ndarray) else a for a in arguments]
    findings = run(function, *actual, grid=grid, block=block)
    assert findings == []
    for ours, theirs in zip(expected, actual, strict=True):
        if isinstance(ours, np.ndarray):
            np.testing.assert_array_equal(theirs, ours)
    return actual


def _like(value: Any, copy: Any) -> Any:
    """A copy with the strides of the original: into a copy of all the memory it is a view of."""
    if not isinstance(value, np.ndarray) or value.flags.c_contiguous:
        return copy
    base = value
    while isinstance(base.base, np.ndarray):
        base = base.base
    memory = np.copy(base)
    offset = value.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return np.ndarray(value.shape, value.dtype, memory, offset, value.strides)


def _value(role: Any, array: Any, arguments: tuple[Any, ...], shared_bytes: int) -> Any:
    match role:
        case UserArgument(argument=k) if array is not None:
            return _memory(arguments[k])
        case UserArgument(argument=k):
            return arguments[k]
        case LengthOf(argument=k):
            return arguments[k].size
        case ShapeOf(argument=k, axis=axis):
            return arguments[k].shape[axis]
        case StrideOf(argument=k, axis=axis):
            return arguments[k].strides[axis] // arguments[k].itemsize
        case OffsetOf(argument=k):
            return _offset(arguments[k])
        case DynamicSharedLength():
            return shared_bytes
    raise AssertionError(role)


def _base(value: np.ndarray) -> np.ndarray:
    while isinstance(value.base, np.ndarray):
        value = value.base
    return value


def _memory(value: np.ndarray) -> np.ndarray:
    base = value if value.flags.c_contiguous else _base(value)
    return base.reshape(-1, order="A").view(np.uint8)


def _offset(value: np.ndarray) -> int:
    if value.flags.c_contiguous:
        return 0
    base = _base(value)
    distance = value.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return distance // value.itemsize


def _scalar(parameter: Any, value: Any) -> Any:
    return np.dtype(parameter.var.type.value).type(value)


def statements(body: Body) -> list[str]:
    """The class names of the statements of a body."""
    return [type(statement).__name__ for statement in body]
