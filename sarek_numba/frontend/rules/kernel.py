"""Rules of the language's own functions: coordinates, barriers, memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba.core import types

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend import language
from sarek_numba.frontend.extensions import CompileTime, PlacedArray
from sarek_numba.frontend.records import RecordType
from sarek_numba.frontend.rules.arrays import is_captured_array
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.rules.types import element_type, numba_type
from sarek_numba.frontend.typed import (
    Barrier,
    ConstantArray,
    CreateArray,
    Index,
    IndexTuple,
    MemFence,
    Operation,
    Type,
)
from sarek_numba.frontend.weak import (
    WEAK_INT,
    Refusal,
    WeakInt,
    constant_of,
    describe,
    dtype_of,
    is_whole,
    operand,
    tuple_of,
)
from sarek_numba.ir.nodes import Coordinate, FenceScope
from sarek_numba.ir.records import unit_alignment
from sarek_numba.ir.types import MemSpace

_MOST_CONSTANT_BYTES = 65536  # the least that OpenCL and CUDA promise of constant memory


# --- places ---------------------------------------------------------------------------------------


def _along_axes(name: str, coordinate: Coordinate) -> Callable[[Type], Operation]:
    def resolve(ndim: Type) -> Operation:
        count = constant_of(ndim)
        if count not in (1, 2, 3):
            with operand(0):
                raise Refusal(
                    f"sarek.{name}() takes the constant 1, 2 or 3, not {describe(ndim)}",
                    "write the number of axes as a literal",
                )
        if count == 1:
            return Operation(Index(coordinate, 0), (), WEAK_INT)
        return Operation(IndexTuple(coordinate, int(count)), (), tuple_of((WEAK_INT,) * int(count)))

    return resolve


rule(language.grid)(_along_axes("grid", Coordinate.GLOBAL_IDX))
rule(language.gridsize)(_along_axes("gridsize", Coordinate.GRID_SIZE))

_DEVICE = CompileTime("device")
_AXES = {"x": 0, "y": 1, "z": 2}


def coordinate(axes: language.Axes, name: str) -> Operation | None:
    """`thread_idx.x` and its like; None for another attribute."""
    axis = _AXES.get(name)
    return None if axis is None else Operation(Index(axes.coordinate, axis), (), WEAK_INT)


def global_thread_id() -> Operation:
    return Operation(Index(Coordinate.GLOBAL_IDX, 0), (), WEAK_INT)


# --- synchronisation ------------------------------------------------------------------------------


@rule(language.barrier)
def barrier() -> Operation:
    return Operation(Barrier(), (), types.none)


@rule(language.mem_fence)
def mem_fence(scope: Type = _DEVICE) -> Operation:
    value = scope.value if isinstance(scope, CompileTime) else None
    if value not in ("block", "device"):
        with operand(0):
            raise Refusal(
                f"the scope of sarek.mem_fence() is a constant string, not {describe(scope)}"
                if not isinstance(value, str)
                else f"sarek.mem_fence() has no scope {value!r}",
                'write scope="block" or scope="device"',
            )
    return Operation(MemFence(FenceScope(value)), (), types.none)


@rule(language.superstep)
def superstep() -> Operation:
    raise Refusal(
        "sarek.superstep() stands in a `with` statement only",
        "write `with sarek.superstep():`, in a function whose source text can be read",
        UnsupportedConstruct,
    )


# --- memory ---------------------------------------------------------------------------------------


def _element_type(dtype: Type) -> Type:
    with operand(1):
        return element_type(dtype)


def _extents(name: str, shape: Type) -> tuple[int, ...]:
    """A constant shape."""
    if not isinstance(shape, types.BaseTuple):
        return (_extent(name, shape),)
    if not len(shape):
        raise Refusal(f"the shape of sarek.{name}() has no axes", "write 1 for a single element")
    extents = []
    for position, item in enumerate(shape.types):
        with operand(position):
            extents.append(_extent(name, item))
    return tuple(extents)


def _extent(name: str, item: Type) -> int:
    extent = constant_of(item)
    if not isinstance(item, WeakInt) or extent is None:
        hint = "write a literal or a global"
        if name == "shared.array":
            hint += "; sarek.shared.array(0, dtype) is sized at launch"
        given = f"{describe(item)} known only at run time" if is_whole(item) else describe(item)
        raise Refusal(f"the shape of sarek.{name}() is made of constants, not of {given}", hint)
    if extent < 1:
        raise Refusal(
            f"the shape of sarek.{name}() has an axis of {extent} elements", "write at least 1"
        )
    return int(extent)


@rule(language.shared.array)
def shared_array(shape: Type, dtype: Type) -> Operation:
    element = _element_type(dtype)
    if constant_of(shape) == 0:
        return _dynamic(0, element)
    return _created("shared.array", MemSpace.SHARED, shape, element)


@rule(language.shared.dynamic)
def shared_dynamic(offset: Type, dtype: Type) -> Operation:
    element = _element_type(dtype)
    start = constant_of(offset)
    is_record = isinstance(element, RecordType)
    size = unit_alignment(element.root) if is_record else dtype_of(element).itemsize
    with operand(0):
        if not isinstance(offset, WeakInt) or start is None or start < 0:
            raise Refusal(
                "the offset of sarek.shared.dynamic() is a constant number of bytes, not "
                f"{describe(offset)}",
                "write a literal or a global",
            )
        if start % size:
            raise Refusal(
                f"the offset {start} is no multiple of the {size} bytes of {element}",
                f"write {-(-start // size) * size}",
            )
    return _dynamic(int(start), element)


def _dynamic(offset: int, element: Type) -> Operation:
    if isinstance(element, RecordType):
        element = RecordType(element.root, "element", MemSpace.SHARED)
    array = PlacedArray(element, 1, "C", MemSpace.SHARED)
    return Operation(CreateArray(MemSpace.SHARED, None, offset), (), array)


@rule(language.local.array)
def local_array(shape: Type, dtype: Type) -> Operation:
    return _created("local.array", MemSpace.LOCAL, shape, _element_type(dtype))


def _created(name: str, space: MemSpace, shape: Type, element: Type) -> Operation:
    with operand(0):
        extents = _extents(name, shape)
    array = PlacedArray(_kept_apart(element, space), len(extents), "C", space, extents)
    return Operation(CreateArray(space, extents), (), array)


def _kept_apart(element: Type, space: MemSpace) -> Type:
    """The element type of a new array: no other sees the fields of its records side by side."""
    if not isinstance(element, RecordType):
        return element
    return RecordType(element.root, "element", space, by_bytes=False)


@rule(language.const.array_like)
def constant_array(array: Type) -> Operation:
    if not is_captured_array(array):
        hint = "name an array of the module or function in which the kernel is defined"
        if isinstance(array, types.Array):
            hint = "index the argument itself; it needs no copy"
        with operand(0):
            raise Refusal(
                f"sarek.const.array_like() takes a NumPy array from around the kernel, not "
                f"{describe(array)}",
                hint,
            )
    values = np.array(array.value, order="C", copy=True)
    element = numba_type(values.dtype)
    if values.ndim == 0 or values.size == 0:
        raise Refusal(
            f"a constant array of shape {values.shape} has no elements to index",
            "write the number itself" if values.ndim == 0 else "leave it out",
        )
    if values.nbytes > _MOST_CONSTANT_BYTES:
        raise Refusal(
            f"a constant array has at most {_MOST_CONSTANT_BYTES} bytes, and this one "
            f"{values.nbytes}",
            "pass it as an argument",
        )
    values.flags.writeable = False
    element = _kept_apart(element, MemSpace.CONSTANT)
    kind = PlacedArray(element, values.ndim, "C", MemSpace.CONSTANT, values.shape)
    return Operation(ConstantArray(values), (), kind)
