"""Host functions that the native device calls instead of generated code, and their arguments.

A function gets scalars and vectors, each of a stated type. What a vector holds is reached only by
naming its type: a `TypeId` is an identity, equal to nothing but itself, so a wrong type is refused
rather than read as another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from sarek_numba.ir.types import Scalar

T = TypeVar("T")
Dimensions = tuple[int, int, int]


class TypeId(Generic[T]):
    """The identity of a type of elements or of underlying vectors."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"TypeId({self.name!r})"


SCALAR_IDS: dict[Scalar, TypeId[Any]] = {scalar: TypeId(scalar.value) for scalar in Scalar}
NUMPY_ARRAY: TypeId[npt.NDArray[Any]] = TypeId("numpy.ndarray")


class Accessor(Protocol):
    """Reads and writes elements of a custom type in the underlying vector."""

    def get(self, underlying: Any, index: int) -> Any: ...

    def set(self, underlying: Any, index: int, value: Any) -> None: ...


class _Elements:
    """The elements of an array as they are."""

    def get(self, underlying: Any, index: int) -> Any:
        return underlying[index]

    def set(self, underlying: Any, index: int, value: Any) -> None:
        underlying[index] = value


@dataclass(frozen=True, slots=True, eq=False)
class NativeVec:
    """A vector argument: `length` elements of `item_bytes` bytes, of the type `type_id`."""

    length: int
    item_bytes: int
    type_name: str
    type_id: TypeId[Any]
    underlying_id: TypeId[Any]
    underlying: Any
    accessor: Accessor


def numpy_vec(array: npt.NDArray[Any], scalar: Scalar) -> NativeVec:
    """A vector of the elements of a 1-D NumPy array, which it shares."""
    if array.ndim != 1:
        raise TypeError(f"a vector has one dimension, not {array.ndim}")
    if array.dtype.name != scalar.value:
        raise TypeError(f"an array of {array.dtype.name} is no vector of {scalar.value}")
    identity = SCALAR_IDS[scalar]
    size = array.dtype.itemsize
    return NativeVec(len(array), size, identity.name, identity, NUMPY_ARRAY, array, _Elements())


@dataclass(frozen=True, slots=True)
class NativeInt32:
    value: np.int32


@dataclass(frozen=True, slots=True)
class NativeInt64:
    value: np.int64


@dataclass(frozen=True, slots=True)
class NativeFloat32:
    value: np.float32


@dataclass(frozen=True, slots=True)
class NativeFloat64:
    value: np.float64


NativeArg = NativeInt32 | NativeInt64 | NativeFloat32 | NativeFloat64 | NativeVec


class NativeRun(Protocol):
    """Runs all threads of a launch; with `parallel` it may use several cores."""

    def __call__(
        self, parallel: bool, block: Dimensions, grid: Dimensions, args: Sequence[NativeArg]
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A host function that the native device calls instead of generated code."""

    run: NativeRun


def vec_length(arg: NativeArg) -> int:
    """The number of elements; raises TypeError for a scalar."""
    return _vec(arg).length


def vec_get_custom(type_id: TypeId[T], arg: NativeArg, index: int) -> T:
    """Element `index`, of the stated type; raises TypeError for another, IndexError outside."""
    vec = _checked(type_id, arg, index)
    value: T = vec.accessor.get(vec.underlying, index)
    return value


def vec_set_custom(type_id: TypeId[T], arg: NativeArg, index: int, value: T) -> None:
    """Store element `index`, of the stated type; raises as `vec_get_custom`."""
    vec = _checked(type_id, arg, index)
    vec.accessor.set(vec.underlying, index, value)


def vec_as_vector(type_id: TypeId[T], arg: NativeArg) -> T:
    """The underlying vector, of the stated type; raises TypeError for another."""
    vec = _vec(arg)
    if vec.underlying_id is not type_id:
        raise TypeError(f"the vector is a {vec.underlying_id.name}, not a {type_id.name}")
    underlying: T = vec.underlying
    return underlying


def _vec(arg: NativeArg) -> NativeVec:
    if not isinstance(arg, NativeVec):
        raise TypeError(f"{type(arg).__name__} is no vector")
    return arg


def _checked(type_id: TypeId[T], arg: NativeArg, index: int) -> NativeVec:
    vec = _vec(arg)
    if vec.type_id is not type_id:
        raise TypeError(f"the elements are {vec.type_id.name}, not {type_id.name}")
    if not 0 <= index < vec.length:
        raise IndexError(f"index {index} of a vector of {vec.length}")
    return vec
