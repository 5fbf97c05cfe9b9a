"""The arguments of a function of `sarek.jit`: buffers, variables, and what stays as it is.

Tuples, lists and dicts are looked into; a buffer within one is called as it is reached, `x[0]`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from sarek_numba.errors import GraphError
from sarek_numba.realize.buffers import Concrete
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.sharded import ShardedVector
from sarek_numba.runtime.vector import Vector


@dataclass(slots=True)
class Leaves:
    """What a call is given: buffers by name, variables by name, and a key of all else.

    `kept` has what the key names by identity.
    """

    buffers: dict[str, Concrete] = field(default_factory=dict)
    numbers: dict[str, int | float] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)
    key: Any = None


def leaves_of(function: str, arguments: Mapping[str, Any], variables: Sequence[str]) -> Leaves:
    """What is in the arguments of a call, by parameter. Raises GraphError for what may not be."""
    leaves = Leaves()
    keys = []
    for name, value in arguments.items():
        if name in variables:
            keys.append(_variable(function, name, value, leaves))
        else:
            keys.append(_key(function, name, value, leaves))
    leaves.key = tuple(keys)
    return leaves


def _variable(function: str, name: str, value: Any, leaves: Leaves) -> Any:
    if type(value) is float and not math.isnan(value):
        leaves.numbers[name] = value
        return float
    if type(value) is int and -(2**63) <= value < 2**63:
        leaves.numbers[name] = value
        return int, number_range(value)
    if type(value) in (int, float):
        return static_key(value)  # one that no range of numbers has
    raise GraphError(
        f"function '{function}': variable '{name}' is an int or a float, not {value!r}"
    )


def number_range(value: int | float) -> tuple[Any, Any]:
    """The values that one graph takes for a variable: those that launches treat alike."""
    if isinstance(value, float):
        return -math.inf, math.inf
    for least, most in ((0, 0), (1, 2**31 - 1), (-(2**31), -1), (2**31, 2**63 - 1)):
        if least <= value <= most:
            return least, most
    return -(2**63), -(2**31) - 1


def _key(function: str, name: str, value: Any, leaves: Leaves) -> Any:
    match value:
        case Vector():
            leaves.buffers[name] = value
            array = value._array
            return "vector", array.dtype, array.shape, array.strides, array.flags.writeable
        case np.ndarray():
            leaves.buffers[name] = value
            return "array", value.dtype, value.shape, value.strides, value.flags.writeable
        case ShardedVector(parts=parts, devices=devices, axis=axis):
            inside = (_key(function, f"{name}[{k}]", each, leaves) for k, each in enumerate(parts))
            return "sharded", devices, axis, *inside
        case tuple() | list():
            inside = (_key(function, f"{name}[{k}]", each, leaves) for k, each in enumerate(value))
            return (type(value), *inside)
        case dict():
            return (
                dict,
                *((k, _key(function, f"{name}[{k!r}]", each, leaves)) for k, each in value.items()),
            )
        case _:
            found = static_key(value)
            if found is None:
                raise GraphError(
                    f"function '{function}': argument '{name}' is a {type(value).__name__}, which "
                    "a graph neither takes for an input nor compares by its value\n"
                    "  hint: give the vectors and numbers that it has as arguments"
                )
            leaves.kept.append(value)
            return found


def static_key(value: Any) -> Any:
    """What is equal for values that a function cannot tell apart; None for what has no such."""
    match value:
        case None | bool() | int() | str() | bytes() | np.dtype() | enum.Enum():
            return type(value), value
        case float() if type(value) is float:
            return float, value.hex() if value == value else "nan"
        case complex() if type(value) is complex:
            return complex, value.real.hex(), value.imag.hex()
        case np.generic() if not value.dtype.hasobject:
            return value.dtype, value.tobytes()
        case Device() | type() | FunctionType() | BuiltinFunctionType() | ModuleType():
            return "object", id(value)
        case tuple():
            keys = tuple(map(static_key, value))
            return None if None in keys else (type(value), *keys)
        case _ if hasattr(value, "py_func"):  # kernels and functions of kernels
            return "object", id(value)
        case _:
            return None


def rebuilt(shape: Any, vectors: Iterator[Any]) -> Any:
    """Something made as `shape` is, with other vectors in the places of its own."""
    match shape:
        case Vector():
            return next(vectors)
        case ShardedVector(parts=parts, devices=devices, axis=axis):
            return ShardedVector([rebuilt(each, vectors) for each in parts], devices, axis)
        case tuple() if hasattr(shape, "_fields"):
            return type(shape)(*(rebuilt(each, vectors) for each in shape))
        case tuple() | list():
            return type(shape)(rebuilt(each, vectors) for each in shape)
        case dict():
            return {name: rebuilt(each, vectors) for name, each in shape.items()}
        case _:
            return shape
