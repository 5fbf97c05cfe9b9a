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
from sarek_numba.frontend.lower.values import Cell, RecordRef, RecordStore, View
from sarek_numba.frontend.records import ComplexField, RecordType
from sarek_numba.ir.nodes import Expr, Var, VarRef
from sarek_numba.ir.records import Leaf, leaves
from sarek_numba.ir.records import bases as record_bases
from sarek_numba.ir.spelling import SCALAR_NAMES
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
from sarek_numba.ir.typing import element_of


@dataclass(frozen=True, slots=True)
class ArrayParameter:
    """The variables of one array parameter: the bases, then what describes the view.

    `parts` gives each of the latter the cell of a view that it is passed from.
    """

    view: View
    bases: tuple[Var, ...]
    params: tuple[tuple[Var, Role], ...]
    parts: tuple[Callable[[View], Expr], ...]


def array_info(type: types.Array, base: Var) -> ArrayInfo:
    """What is known of an array argument, for one of its bases."""
    record = type.dtype.root if isinstance(type.dtype, RecordType) else None
    element = element_of(base.type)
    return ArrayInfo(
        element,
        space_of(type),
        type.ndim,
        type.layout,
        bool(type.mutable),
        pairs=is_complex(type.dtype),
        record=record,
        columns=record is not None and not type.dtype.by_bytes,
    )


def bases_of(view: View) -> list[Var]:
    """What is passed of a view beside its shape and strides."""
    if view.records is not None:
        return view.records.store.variables
    apart = view.twin is not None and view.twin[0] is not view.base
    return [view.base, view.twin[0]] if view.twin is not None and apart else [view.base]


def array_parameter(
    ids: Ids, name: str, type: types.Array, argument: int, index: Scalar, with_offset: bool
) -> ArrayParameter:
    """The parameters that an array argument becomes. `with_offset` gives one to any layout."""
    base, place, packed = _base(ids, name, type)
    twin = _twin(ids, name, type, base)
    bases = [base] if place is None else place.store.variables
    if twin is not None and twin[0] is not base:
        bases = [base, twin[0]]
    columns = range(len(bases)) if place is not None and place.store.apart else [None] * len(bases)
    params: list[tuple[Var, Role]] = [
        (each, UserArgument(argument, column)) for each, column in zip(bases, columns, strict=True)
    ]
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
    pairs = is_complex(type.dtype) and twin is None
    view = View(base, tuple(shape), offset, tuple(strides), order, pairs, None, place, packed, twin)
    return ArrayParameter(view, tuple(bases), tuple(params), tuple(parts))


def _base(ids: Ids, name: str, type: types.Array) -> tuple[Var, RecordRef | None, Scalar | None]:
    """The base of an array, where its records are, and the type of packed elements."""
    space = space_of(type)
    if isinstance(type.dtype, RecordType):
        store = record_store(
            name, type.dtype, lambda word, part, leaf: ids.var(word, array_type(part, space))
        )
        return store.variables[0], RecordRef(store, (), ()), None
    element = element_scalar(type.dtype)
    if type.aligned:
        return ids.var(name, array_type(element, space)), None, None
    return ids.var(name, array_type(Scalar.UINT8, space)), None, element


def _twin(ids: Ids, name: str, type: types.Array, base: Var) -> tuple[Var, int] | None:
    """Where the imaginary parts are, if they do not lie as in an array of complex numbers."""
    if not isinstance(type.dtype, ComplexField):
        return None
    if not type.dtype.by_bytes:
        return ids.var(f"{name}.imag", base.type), 0
    return base, 1 if type.aligned else element_scalar(type.dtype).bits // 8


def array_type(element: Scalar, space: MemSpace) -> Vec | Array:
    return Vec(element) if space is MemSpace.GLOBAL else Array(element, space)


def record_store(
    name: str, type: RecordType, declare: Callable[[str, Scalar, Leaf | None], Var]
) -> RecordStore:
    """An array of records, its variables made by `declare` from their words and types.

    The first has the array's own name, which reports show. A leaf is given where each number of a
    record has an array of its own.
    """
    record = type.root
    if not type.by_bytes:
        apart = {
            leaf.path: declare(f"{name}.{'.'.join(leaf.path)}", leaf.scalar, leaf)
            for leaf in leaves(record)
        }
        return RecordStore(record, {}, apart, True)
    words = {each: f"{name}.{SCALAR_NAMES[each]}" for each in record_bases(record)}
    words[record_bases(record)[0]] = name
    made = {each: declare(word, each, None) for each, word in words.items()}
    return RecordStore(record, made, {}, True)


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
