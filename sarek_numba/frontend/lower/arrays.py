"""Lowering of array operations: elements, views, shapes, declarations, atomics."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numba.core import ir, types

from sarek_numba.frontend import typed as t
from sarek_numba.frontend.complexes import element_scalar, is_complex
from sarek_numba.frontend.extensions import SliceType
from sarek_numba.frontend.lower import complexes, pairs, records, variants, views
from sarek_numba.frontend.lower.convert import cast, constant_as, int64, widened
from sarek_numba.frontend.lower.parameters import record_store
from sarek_numba.frontend.lower.program import Hoisted
from sarek_numba.frontend.lower.values import (
    NOTHING,
    Cell,
    RecordRef,
    SliceValue,
    TupleValue,
    Value,
    View,
)
from sarek_numba.frontend.names import is_temporary, user_name
from sarek_numba.frontend.records import RecordType, is_value
from sarek_numba.ir.layout import layout_of
from sarek_numba.ir.nodes import (
    ArrayCreate,
    Assert,
    Atomic,
    AtomicOp,
    Binary,
    BinOp,
    Const,
    ConstDecl,
    Expr,
    LocalDecl,
    SharedDecl,
    Var,
    VarRef,
)
from sarek_numba.ir.pairs import field_of
from sarek_numba.ir.records import Leaf
from sarek_numba.ir.semantics import dtype_of
from sarek_numba.ir.types import INT64, Array, MemSpace, Scalar
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering
    from sarek_numba.frontend.regions import Statement

_NAMED = (ir.Global, ir.FreeVar)


def lower_array_operation(
    lowering: FunctionLowering, operation: t.Operation, statement: Statement
) -> Value:
    """The value of an operation on arrays; its effects are emitted."""
    what = operation.what
    span = lowering.span(statement)
    match what:
        case t.CreateArray():
            return _create(lowering, operation, statement)
        case t.ConstantArray(values):
            return _constant_array(lowering, values, operation.result, statement)
        case t.Atomic(op):
            return _atomic(lowering, op, operation, statement)
        case t.GetItem():
            view, items = _indexed(lowering, operation)
            if isinstance(operation.result, types.Array):
                _check_steps(lowering, items, span)
                return views.select(view, items, lowering.emitter.bind, span)
            if view.pairs:
                return complexes.read_element(view, _indices(view, items), span)
            flat = _flat(view, items, span)
            if view.twin is not None:
                return pairs.read_element(lowering, view, flat, span)
            if view.records is not None:
                place = replace(view.records, indices=(*view.records.indices, Cell(flat)))
                is_loaded = is_value(operation.result)  # a variant
                return variants.load(lowering, place, span) if is_loaded else place
            return Cell(widened(records.read_element(lowering, view, flat, span), span))
        case t.SetItem():
            view, items = _indexed(lowering, operation)
            if view.pairs:
                stored = complexes.operand(lowering, operation, 2)
                complexes.store_element(lowering, view, _indices(view, items), stored, span)
                return NOTHING
            if view.twin is not None:
                stored = complexes.operand(lowering, operation, 2)
                pairs.write_element(lowering, view, _flat(view, items, span), stored, span)
                return NOTHING
            value = lowering.number(operation.arguments[2], operation.operands[2])
            value = cast(value, view.element, span=span)
            flat = _flat(view, items, span)
            lowering.emitter.settle_memory()
            records.write_element(lowering, view, flat, value, span)
            return NOTHING
        case t.SetRecord():
            view, items = _indexed(lowering, operation)
            assert view.records is not None
            flat = _flat(view, items, span)
            place = replace(view.records, indices=(*view.records.indices, Cell(flat)))
            return records.store_record(lowering, place, operation.arguments[2], span)
        case t.Shape():
            return TupleValue(tuple(Cell(cell.expr) for cell in _view(lowering, operation).shape))
        case t.Extent(axis):
            return Cell(_view(lowering, operation).shape[axis].expr)
        case t.Size():
            return Cell(views.size_of(_view(lowering, operation)))
        case t.Transpose():
            return views.transpose(_view(lowering, operation))
        case t.PartView(part):
            return complexes.part_view(lowering, _view(lowering, operation), part)
        case _:
            return records.lower_record_operation(lowering, operation, statement)


def _check_steps(
    lowering: FunctionLowering, items: list[views.IndexItem], span: Span | None
) -> None:
    """Slices whose step is known at run time alone assert that it is not zero.

    Where no statement can stand (the arm of a conditional expression) there is no check; the
    slice is empty, so a read of it is out of range.
    """
    for item in items:
        if isinstance(item, SliceValue) and item.step and not lowering.emitter.guarded:
            lowering.emitter.bind_cell(item.step)
            holds = Binary(BinOp.NE, item.step.expr, int64(0), span=span)
            if not isinstance(item.step.expr, Const):
                lowering.emitter.emit(Assert(holds, "the step of a slice is zero", span=span))


def place_of(
    lowering: FunctionLowering, operation: t.Operation, position: int, span: Span
) -> tuple[View, Expr]:
    """The array that argument `position` is, and the flat place that the next one names."""
    shifted = replace(operation, arguments=operation.arguments[position:])
    view, items = _indexed(lowering, shifted)
    return view, _flat(view, items, span)


def _view(lowering: FunctionLowering, operation: t.Operation) -> View:
    (argument, *_) = operation.arguments
    assert isinstance(argument, ir.Var)
    view = lowering.read(argument)
    assert isinstance(view, View), f"{argument} is no array"
    return view


def _indexed(
    lowering: FunctionLowering, operation: t.Operation
) -> tuple[View, list[views.IndexItem]]:
    index = operation.arguments[1]
    view = _view(lowering, operation)
    assert isinstance(index, ir.Var)
    return view, _items(lowering, lowering.read(index), lowering.type_of(index))


def _items(lowering: FunctionLowering, value: Value, type: types.Type) -> list[views.IndexItem]:
    if isinstance(type, types.BaseTuple):
        assert isinstance(value, TupleValue)
        pairs = zip(value.items, type.types, strict=True)
        return [item for part, kind in pairs for item in _items(lowering, part, kind)]
    if isinstance(type, SliceType):
        return [value]  # type: ignore[list-item] # a SliceValue
    index = lowering.converted(value, type, types.int64)
    assert isinstance(index, Cell)
    return [index]


def _flat(view: View, items: list[views.IndexItem], span: Span) -> Expr:
    return views.flat_index(view, _indices(view, items), span)


def _indices(view: View, items: list[views.IndexItem]) -> list[Expr]:
    indices = [item.expr for item in items if isinstance(item, Cell)]
    assert len(indices) == view.ndim, "an element has an index for each axis"
    return indices


# --- declarations ---------------------------------------------------------------------------------


def _create(lowering: FunctionLowering, operation: t.Operation, statement: Statement) -> View:
    what = operation.what
    assert isinstance(what, t.CreateArray)
    name = lowering.name_of(statement.target.name)
    name = name if name != "t" else what.space.value
    span = lowering.span(statement)
    if isinstance(operation.result.dtype, RecordType):
        return _create_records(lowering, operation, name, span)
    element, pairs = element_scalar(operation.result.dtype), is_complex(operation.result.dtype)
    var = lowering.ids.var(name, Array(element, what.space))
    if what.shape is None:
        return _dynamic(lowering, var, element, what.offset, span, pairs)
    size = int64(math.prod(what.shape) * (1 + pairs))
    var = _placed(lowering, var, element, size, what.space, span)
    return views.whole(var, [int64(extent) for extent in what.shape], pairs=pairs)


def _placed(
    lowering: FunctionLowering, var: Var, element: Scalar, size: Expr, space: MemSpace, span: Span
) -> Var:
    """Declare a shared array, or one of a thread."""
    if space is MemSpace.LOCAL:
        created = ArrayCreate(element, size, space, span=span)
        lowering.scope.locals.append(LocalDecl(var, created, span=span))
        return var
    return _declare(lowering, SharedDecl(var, element, size, span=span))


def _create_records(
    lowering: FunctionLowering, operation: t.Operation, name: str, span: Span
) -> View:
    """An array of records: one array for each number in them, or views of the dynamic region."""
    what, type = operation.what, operation.result
    assert isinstance(what, t.CreateArray)
    space = what.space

    def declare(word: str, element: Scalar, leaf: Leaf | None) -> Var:
        var = lowering.ids.var(word, Array(element, space))
        if what.shape is None:
            return _declare(lowering, SharedDecl(var, element, None, what.offset, span=span))
        count = leaf.count if leaf is not None else 1
        size = int64(math.prod(what.shape) * count)
        return _placed(lowering, var, element, size, space, span)

    store = record_store(name, type.dtype, declare)
    extents: list[Expr]
    if what.shape is None:
        size = layout_of(type.dtype.root).size
        extents = [_dynamic_extent(lowering, what.offset, size, name, span)]
    else:
        extents = [int64(extent) for extent in what.shape]
    return replace(views.whole(store.variables[0], extents), records=RecordRef(store, (), ()))


def _dynamic(
    lowering: FunctionLowering, var: Var, element: Scalar, offset: int, span: Span, pairs: bool
) -> View:
    var = _declare(lowering, SharedDecl(var, element, None, offset, span=span))
    width = element.bits // 8 * (1 + pairs)
    extent = _dynamic_extent(lowering, offset, width, var.name, span)
    return views.whole(var, [extent], pairs=pairs)


def _dynamic_extent(
    lowering: FunctionLowering, offset: int, size: int, name: str, span: Span
) -> Expr:
    """How many elements of a size the dynamic region has from an offset on."""
    if lowering.scope.dynamic_length is None:
        lowering.scope.dynamic_length = lowering.ids.var(
            "dynamic_bytes", lowering.program.index if lowering.scope.is_kernel else INT64
        )
    length = cast(VarRef(lowering.scope.dynamic_length), INT64)
    room = Binary(BinOp.SUB, length, int64(offset)) if offset else length
    extent = Binary(BinOp.FLOORDIV, room, int64(size), weak=True, span=span)
    return lowering.emitter.bind(extent, f"{name}_length")


def _declare(lowering: FunctionLowering, declaration: SharedDecl | ConstDecl) -> Var:
    """Declare an array for the whole kernel; a helper gets it as a parameter."""
    if lowering.scope.is_kernel:
        lowering.program.declared.append(declaration)
        return declaration.var
    param = lowering.ids.var(declaration.var.name, declaration.var.type)
    lowering.scope.hoisted.append(Hoisted(param, declaration))
    return param


def _constant_array(
    lowering: FunctionLowering, values: np.ndarray, type: types.Type, statement: Statement
) -> View:
    name = lowering.name_of(statement.target.name)
    value = statement.value if isinstance(statement, ir.Assign) else None
    source = value.name if isinstance(value, _NAMED) else None
    if name == "t":
        name = source if isinstance(source, str) else "table"
    span = lowering.span(statement)
    extents = [int64(extent) for extent in values.shape]

    def declare(word: str, element: Scalar, leaf: Leaf | None) -> Var:
        var = lowering.ids.var(word, Array(element, MemSpace.CONSTANT))
        parts = values
        for field in leaf.path if leaf is not None else ():
            parts = field_of(parts, field)
        flat = np.ascontiguousarray(parts).reshape(-1).view(dtype_of(element))
        bits = flat.view(f"u{flat.dtype.itemsize}") if flat.dtype != np.bool_ else flat
        declared = ConstDecl(var, element, tuple(int(each) for each in bits), span=span)
        return _declare(lowering, declared)

    if isinstance(type.dtype, RecordType):
        store = record_store(user_name(name), type.dtype, declare)
        whole = views.whole(store.variables[0], extents)
        return replace(whole, records=RecordRef(store, (), ()))
    base = declare(user_name(name), element_scalar(type.dtype), None)
    return views.whole(base, extents, pairs=is_complex(type.dtype))


# --- atomics --------------------------------------------------------------------------------------


def _atomic(
    lowering: FunctionLowering, op: AtomicOp, operation: t.Operation, statement: Statement
) -> Value:
    view, items = _indexed(lowering, operation)
    span = lowering.span(statement)
    index = _flat(view, items, span)
    values = [
        cast(lowering.number(argument, type), view.element)
        for argument, type in zip(operation.arguments[2:], operation.operands[2:], strict=True)
    ]
    if op in _BY_ONE and not values:
        op, values = _BY_ONE[op], [constant_as(view.element, 1, span)]
    compare = values.pop(0) if op is AtomicOp.CAS else None
    lowering.emitter.settle_memory()
    result = None
    if op is not AtomicOp.STORE and not isinstance(operation.result, types.NoneType):
        result = result_var(lowering, statement, view.element)
    value = values[0] if values else None
    lowering.emitter.emit(Atomic(op, result, view.base, index, value, compare, span=span))
    return NOTHING if result is None else Cell(VarRef(result, span=span))


_BY_ONE = {AtomicOp.INC: AtomicOp.ADD, AtomicOp.DEC: AtomicOp.SUB}  # without a value to wrap at


def result_var(
    lowering: FunctionLowering, statement: Statement, type: Scalar, word: str = "old"
) -> Var | None:
    """The variable that a statement declares for its result: the user's, if it goes there alone.

    Another is named `word`.
    """
    name = statement.target.name
    if lowering.homes.reads[name] == 0:
        return None
    wanted = name
    if is_temporary(name) and lowering.homes.reads[name] == 1:
        wanted = lowering.homes.copies.get(name, name)
    home = None if is_temporary(wanted) else lowering.homes.get(wanted)
    if home is not None and home.type is type and not home.mutable:
        return home
    named = lowering.name_of(name)
    return lowering.ids.var(word if named == "t" else named, type)
