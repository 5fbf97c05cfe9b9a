"""Rules of the language's own functions: coordinates, barriers, memory, atomics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba.core import types

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend import language
from sarek_numba.frontend.extensions import CompileTime, PlacedArray
from sarek_numba.frontend.rules.arrays import (
    check_stored,
    indexed,
    is_captured_array,
    require_writable,
)
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.rules.types import element_type, numba_type
from sarek_numba.frontend.typed import (
    Atomic,
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
    scalar_of,
    tuple_of,
)
from sarek_numba.ir.nodes import AtomicOp, Coordinate, FenceScope
from sarek_numba.ir.types import FLOAT32, INT32, MemSpace, Scalar

_MOST_CONSTANT_BYTES = 65536  # the least that OpenCL and CUDA promise of constant memory


# --- places ---------------------------------------------------------------------------------------


def _along_axes(name: str, coordinate: Coordinate) -> Callable[[Type], Operation]:
    def resolve(ndim: Type) -> Operation:
        count = constant_of(ndim)
        if count not in (1, 2, 3):
            raise Refusal(f"sarek.{name}() takes the constant 1, 2 or 3, not {describe(ndim)}")
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
        raise Refusal('sarek.mem_fence() takes scope="block" or scope="device"')
    return Operation(MemFence(FenceScope(value)), (), types.none)


@rule(language.superstep)
def superstep() -> Operation:
    raise Refusal(
        "sarek.superstep() stands in a `with` statement only",
        "write `with sarek.superstep():`, in a function whose source text can be read",
        UnsupportedConstruct,
    )


# --- memory ---------------------------------------------------------------------------------------


def _extents(name: str, shape: Type) -> tuple[int, ...]:
    """A constant shape."""
    items = tuple(shape.types) if isinstance(shape, types.BaseTuple) else (shape,)
    if not items:
        raise Refusal(f"sarek.{name}() of no axes", "use a shape of 1 element")
    extents = []
    for item in items:
        extent = constant_of(item)
        if not isinstance(item, WeakInt) or extent is None:
            raise Refusal(
                f"the shape of sarek.{name}() is constant, not {describe(item)}",
                "write a literal or a global; sarek.shared.array(0, dtype) is sized at launch",
            )
        if extent < 0:
            raise Refusal(f"a shape of {extent} elements")
        extents.append(int(extent))
    return tuple(extents)


@rule(language.shared.array)
def shared_array(shape: Type, dtype: Type) -> Operation:
    element = element_type(dtype)
    if constant_of(shape) == 0:
        return _dynamic(0, element)
    return _created("shared.array", MemSpace.SHARED, shape, element)


@rule(language.shared.dynamic)
def shared_dynamic(offset: Type, dtype: Type) -> Operation:
    element = element_type(dtype)
    start = constant_of(offset)
    size = scalar_of(element).bits // 8
    if not isinstance(offset, WeakInt) or start is None or start < 0:
        raise Refusal("the offset of sarek.shared.dynamic() is a constant number of bytes")
    if start % size:
        raise Refusal(f"the offset {start} is no multiple of the {size} bytes of {element}")
    return _dynamic(int(start), element)


def _dynamic(offset: int, element: Type) -> Operation:
    array = PlacedArray(element, 1, "C", MemSpace.SHARED)
    return Operation(CreateArray(MemSpace.SHARED, None, offset), (), array)


@rule(language.local.array)
def local_array(shape: Type, dtype: Type) -> Operation:
    return _created("local.array", MemSpace.LOCAL, shape, element_type(dtype))


def _created(name: str, space: MemSpace, shape: Type, element: Type) -> Operation:
    extents = _extents(name, shape)
    if 0 in extents:
        raise Refusal(f"sarek.{name}() of no elements")
    array = PlacedArray(element, len(extents), "C", space, extents)
    return Operation(CreateArray(space, extents), (), array)


@rule(language.const.array_like)
def constant_array(array: Type) -> Operation:
    if not is_captured_array(array):
        raise Refusal(
            f"sarek.const.array_like() takes a NumPy array from around the kernel, not "
            f"{describe(array)}"
        )
    values = np.array(array.value, order="C", copy=True)
    element = numba_type(values.dtype)
    if values.ndim == 0 or values.size == 0:
        raise Refusal("a constant array has at least one element and one axis")
    if values.nbytes > _MOST_CONSTANT_BYTES:
        raise Refusal(
            f"a constant array of {values.nbytes} bytes; at most {_MOST_CONSTANT_BYTES} fit",
            "pass it as an argument",
        )
    values.flags.writeable = False
    kind = PlacedArray(element, values.ndim, "C", MemSpace.CONSTANT, values.shape)
    return Operation(ConstantArray(values), (), kind)


# --- atomics --------------------------------------------------------------------------------------

_ATOMIC_TYPES = (INT32, Scalar.UINT32, FLOAT32)


def _element(name: str, array: Type, index: Type) -> Type:
    """The element that an atomic operation acts on."""
    if not isinstance(array, types.Array):
        raise Refusal(f"sarek.atomic.{name}() takes an array, not {describe(array)}")
    target = indexed(array, index)
    if isinstance(target, types.Array):
        raise Refusal(
            f"sarek.atomic.{name}() of a view", "give an index for each axis, as a tuple of ints"
        )
    if scalar_of(target) not in _ATOMIC_TYPES:
        raise Refusal(
            f"atomics on {target} are not in this version",
            "use int32, uint32 or float32",
            UnsupportedConstruct,
        )
    space = getattr(array, "space", MemSpace.GLOBAL)
    if space not in (MemSpace.GLOBAL, MemSpace.SHARED) and name != "load":
        if space is MemSpace.CONSTANT:
            require_writable(array)
        raise Refusal(
            f"sarek.atomic.{name}() on a local array", "only its thread sees it: use plain code"
        )
    return target


@rule(language.atomic.load)
def atomic_load(array: Type, index: Type) -> Operation:
    element = _element("load", array, index)
    return Operation(Atomic(AtomicOp.LOAD), (array, index), element)


def _update(op: AtomicOp) -> Callable[[Type, Type, Type], Operation]:
    def resolve(array: Type, index: Type, value: Type) -> Operation:
        element = _element(op.value, array, index)
        require_writable(array)
        check_stored(value, element)
        result = types.none if op is AtomicOp.STORE else element
        return Operation(Atomic(op), (array, index, element), result)

    return resolve


for _op in (AtomicOp.STORE, AtomicOp.ADD, AtomicOp.MIN, AtomicOp.MAX, AtomicOp.EXCH):
    rule(getattr(language.atomic, _op.value))(_update(_op))


@rule(language.atomic.cas)
def atomic_cas(array: Type, index: Type, old: Type, new: Type) -> Operation:
    element = _element("cas", array, index)
    require_writable(array)
    check_stored(old, element)
    check_stored(new, element)
    return Operation(Atomic(AtomicOp.CAS), (array, index, element, element), element)
