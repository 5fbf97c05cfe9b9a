"""Parameters of kernels and helpers, and the values that stand for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from numba.core import types

from sarek_numba.frontend.complexes import element_scalar, is_complex
from sarek_numba.frontend.extensions import PlacedArray, space_of
from sarek_numba.frontend.lower.convert import cast, int64
from sarek_numba.frontend.lower.emitter import Ids
from sarek_numba.frontend.lower.operators import multiply
from sarek_numba.frontend.lower.values import Cell, View
from sarek_numba.ir.nodes import Expr, Var, VarRef
from sarek_numba.ir.types import (
    INT64,
    Array,
    ArrayInfo,
    LengthOf,
    MemSpace,
    OffsetOf,
    Role,
    Scalar,
    ShapeOf,
    StrideOf,
    UserArgument,
    Vec,
)


@dataclass(frozen=True, slots=True)
class ArrayParameter:
    """The variables of one array parameter: the base first, then what describes the view.

    `parts` gives each of the latter the cell of a view that it is passed from.
    """

    view: View
    params: tuple[tuple[Var, Role], ...]
    parts: tuple[Callable[[View], Expr], ...]


def array_info(type: types.Array) -> ArrayInfo:
    """What is known of an array argument."""
    element, pairs = element_scalar(type.dtype), is_complex(type.dtype)
    return ArrayInfo(element, space_of(type), type.ndim, type.layout, bool(type.mutable), pairs)


def array_parameter(
    ids: Ids, name: str, type: types.Array, argument: int, index: Scalar, with_offset: bool
) -> ArrayParameter:
    """The parameters that an array argument becomes. `with_offset` gives one to any layout."""
    element, space = element_scalar(type.dtype), space_of(type)
    kind = Vec(element) if space is MemSpace.GLOBAL else Array(element, space)
    base = ids.var(name, kind)
    params: list[tuple[Var, Role]] = [(base, UserArgument(argument))]
    parts: list[Callable[[View], Expr]] = []

    def added(word: str, role: Role, part: Callable[[View], Expr]) -> Cell:
        var = ids.var(f"{name}_{word}", index)
        params.append((var, role))
        parts.append(part)
        return Cell(cast(VarRef(var), INT64))

    extents = type.extents if isinstance(type, PlacedArray) else None
    if extents is not None:
        shape = [Cell(int64(extent)) for extent in extents]
    elif type.ndim == 1 and type.layout in "CF":
        shape = [added("length", LengthOf(argument), lambda view: view.shape[0].expr)]
    else:
        shape = [
            added(f"shape{axis}", ShapeOf(argument, axis), _extent(axis))
            for axis in range(type.ndim)
        ]
    order = type.layout if type.layout in "CF" else None
    strides: list[Cell] = []
    offset = Cell(int64(0))
    if order is None:
        strides = [
            added(f"stride{axis}", StrideOf(argument, axis), _stride(axis))
            for axis in range(type.ndim)
        ]
    if order is None or with_offset:
        offset = added("offset", OffsetOf(argument), lambda view: view.offset.expr)
        strides = strides or _strides_in_order(shape, order or "C")
        order = None
    view = View(base, tuple(shape), offset, tuple(strides), order, is_complex(type.dtype))
    return ArrayParameter(view, tuple(params), tuple(parts))


def _strides_in_order(shape: list[Cell], order: str) -> list[Cell]:
    strides = [Cell(int64(1)) for _ in shape]
    stride: Expr = int64(1)
    axes = range(len(shape)) if order == "F" else reversed(range(len(shape)))
    for axis in axes:
        strides[axis] = Cell(stride)
        stride = multiply(shape[axis].expr, stride)
    return strides


def _extent(axis: int) -> Callable[[View], Expr]:
    return lambda view: view.shape[axis].expr


def _stride(axis: int) -> Callable[[View], Expr]:
    return lambda view: view.strides[axis].expr
