"""Calls of device functions: each specialisation becomes a helper, its calls statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba.core import types

from sarek_numba.frontend import typed as t
from sarek_numba.frontend.complexes import is_complex
from sarek_numba.frontend.lower import complexes, records, views
from sarek_numba.frontend.lower.arrays import result_var
from sarek_numba.frontend.lower.convert import cast
from sarek_numba.frontend.lower.operations import constant_value
from sarek_numba.frontend.lower.parameters import array_parameter, bases_of
from sarek_numba.frontend.lower.program import Helper, Hoisted
from sarek_numba.frontend.lower.values import (
    NOTHING,
    Cell,
    ComplexValue,
    Nothing,
    RecordRef,
    TupleValue,
    Value,
    View,
    cells_of,
)
from sarek_numba.frontend.names import is_temporary, user_name
from sarek_numba.frontend.records import RecordType
from sarek_numba.frontend.records import numbers as record_numbers
from sarek_numba.frontend.weak import is_number, scalar_of
from sarek_numba.ir.nodes import Call, Const, Expr, Var, VarRef
from sarek_numba.ir.types import INT64, PART_NAMES, Scalar

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering
    from sarek_numba.frontend.regions import Statement


def call(lowering: FunctionLowering, operation: t.Operation, statement: Statement) -> Value:
    """Call a device function; the value of its result."""
    what = operation.what
    assert isinstance(what, t.Call)
    span = lowering.span(statement)
    arguments = [
        _argument(lowering, argument, type)
        for argument, type in zip(operation.arguments, operation.operands, strict=True)
    ]
    helper = _helper(lowering, what.callee, arguments, operation.operands)
    flat: list[Expr] = []
    for value, type in zip(arguments, operation.operands, strict=True):
        flat += _flattened(lowering, value, type)
    flat += [VarRef(_provided(lowering, hoisted)) for hoisted in helper.hoisted]
    if helper.needs_dynamic_length:
        flat.append(cast(VarRef(_dynamic_length(lowering)), INT64))
    lowering.emitter.settle_memory()
    results, value = _results(lowering, helper, operation.result, statement)
    lowering.emitter.emit(Call(results, helper.name, tuple(flat), span=span))
    return records.owned(lowering, value, operation.result, lowering.name_of(statement.target.name))


def _argument(lowering: FunctionLowering, argument: t.Argument, type: types.Type) -> Value:
    if isinstance(argument, t.Default):
        return constant_value(argument.value, type, lowering.typed.source.span_of_definition())
    value = lowering.read(argument)
    return lowering.converted(value, lowering.type_of(argument), type)


def tuple_of(lowering: FunctionLowering, operation: t.Operation) -> Value:
    """A tuple of the arguments of an operation, each as its operand's type."""
    pairs = zip(operation.arguments, operation.operands, strict=True)
    return TupleValue(tuple(_argument(lowering, argument, type) for argument, type in pairs))


def _flattened(lowering: FunctionLowering, value: Value, type: types.Type) -> list[Expr]:
    """The arguments that a value becomes."""
    match value:
        case Cell(expr):
            return [expr]
        case ComplexValue(items):
            return [cell.expr for cell in items if isinstance(cell, Cell)]
        case TupleValue(items):
            kinds = type.types
            return [
                expr
                for item, kind in zip(items, kinds, strict=True)
                for expr in _flattened(lowering, item, kind)
            ]
        case View():
            described = array_parameter(
                lowering.ids, "unused", type, 0, INT64, needs_offset(value, type)
            )
            if type.layout not in "CF" and value.order is not None:
                value = views.select(value, (), lowering.emitter.bind, None)
            if value.records is not None and (value.records.path or value.records.indices):
                raise lowering.refuse(
                    "an array of records within records as an argument",
                    lowering.current,
                    "pass the whole array, and the indices",
                )
            bases = map(VarRef, bases_of(value))
            return [*bases, *(part(value) for part in described.parts)]
        case RecordRef():
            return records.numbers_of(lowering, value)
        case _:
            return []


def needs_offset(view: View, type: types.Array) -> bool:
    """Whether a view typed as contiguous may start inside its base."""
    offset = view.offset.expr
    return type.layout in "CF" and not (isinstance(offset, Const) and offset.value == 0)


def _helper(
    lowering: FunctionLowering,
    callee: t.Typed,
    arguments: list[Value],
    operands: tuple[types.Type, ...],
) -> Helper:
    offsets = tuple(
        isinstance(value, View) and needs_offset(value, type)
        for value, type in zip(arguments, operands, strict=True)
    )
    key = (id(callee), offsets)
    known = lowering.program.helpers.get(key)
    if known is None:
        known = lowering.program.lower_helper(lowering.program, callee, offsets)
        lowering.program.helpers[key] = known
    return known


def _provided(lowering: FunctionLowering, hoisted: Hoisted) -> Var:
    """The variable to pass for an array that a helper declares for the whole kernel."""
    declaration = hoisted.owner
    if lowering.scope.is_kernel:
        declared = lowering.program.declared
        if not any(known is declaration for known in declared):
            declared.append(declaration)
        return declaration.var
    for known in lowering.scope.hoisted:
        if known.owner is declaration:
            return known.param
    param = lowering.ids.var(declaration.var.name, declaration.var.type)
    lowering.scope.hoisted.append(Hoisted(param, declaration))
    return param


def _dynamic_length(lowering: FunctionLowering) -> Var:
    scope = lowering.scope
    if scope.dynamic_length is None:
        type = lowering.program.index if scope.is_kernel else INT64
        scope.dynamic_length = lowering.ids.var("dynamic_bytes", type)
    return scope.dynamic_length


def _results(
    lowering: FunctionLowering, helper: Helper, type: types.Type, statement: Statement
) -> tuple[tuple[Var, ...], Value]:
    """The variables that take the results, and the value that they make together."""
    name = statement.target.name
    if not helper.results:
        return (), NOTHING
    if is_number(type):
        var = result_var(lowering, statement, scalar_of(type))
        if var is None:
            var = lowering.ids.var("unused", scalar_of(type))
        return (var,), Cell(VarRef(var))
    word = lowering.name_of(name)
    made: list[Var] = []
    items = lowering.unpacked.get(name, {})

    def build(kind: types.Type, target: str | None = None) -> Value:
        if isinstance(kind, types.BaseTuple):
            parts = enumerate(kind.types)
            is_whole = kind is type
            return TupleValue(
                tuple(build(part, items.get(k) if is_whole else None) for k, part in parts)
            )
        if is_complex(kind):
            names = zip(PART_NAMES, complexes.complex_parts(kind), strict=True)
            stem = "result" if word == "t" else word
            made.extend(lowering.ids.var(f"{stem}_{name}", scalar) for name, scalar in names)
            return ComplexValue(tuple(Cell(VarRef(var)) for var in made[-2:]))
        if isinstance(kind, RecordType):
            word_of = "result" if word == "t" else word
            parts_of = [
                lowering.ids.var(each, part) for each, part in records.words(word_of, kind.root)
            ]
            made.extend(parts_of)
            return TupleValue(tuple(Cell(VarRef(var)) for var in parts_of))
        if not is_number(kind):
            return NOTHING
        made.append(_item_var(lowering, target, "result" if word == "t" else word, kind))
        return Cell(VarRef(made[-1]))

    value = build(type)
    return tuple(made), value


def _item_var(lowering: FunctionLowering, target: str | None, word: str, kind: types.Type) -> Var:
    """The variable of one item of a result: the user's, if it is unpacked there alone."""
    type = scalar_of(kind)
    if target is not None and is_temporary(target) and lowering.homes.reads[target] == 1:
        target = lowering.homes.copies.get(target)
    if target is None or is_temporary(target):
        return lowering.ids.var(word, type)
    home = lowering.homes.get(target)
    if home is not None and home.type is type and not home.mutable:
        return home
    return lowering.ids.var(user_name(target), type)


def leaves(type: types.Type) -> tuple[Scalar, ...]:
    """The numbers in a result type, in order."""
    if isinstance(type, types.BaseTuple):
        return tuple(leaf for item in type.types for leaf in leaves(item))
    if is_complex(type):
        return complexes.complex_parts(type)
    if isinstance(type, RecordType):
        return record_numbers(type.root)
    return (scalar_of(type),) if is_number(type) else ()


def numbers_in(lowering: FunctionLowering, value: Value) -> list[Expr]:
    """The numbers in a value, in order."""
    match value:
        case Nothing():
            return []
        case RecordRef():
            return records.numbers_of(lowering, value)
        case TupleValue(items):
            return [number for item in items for number in numbers_in(lowering, item)]
        case _:
            return [cell.expr for cell in cells_of(value)]
