"""Lowering of the resolved operations of `frontend.typed`, one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numba.core import ir, types

from sarek_numba.frontend import typed as t
from sarek_numba.frontend.complexes import element_scalar, is_complex
from sarek_numba.frontend.lower import (
    arrays,
    calls,
    captured,
    complexes,
    matrices,
    printing,
    warps,
)
from sarek_numba.frontend.lower.convert import cast, constant_as, int64, round_to_half
from sarek_numba.frontend.lower.operators import (
    binary,
    choose,
    compare,
    power,
    round_digits,
    unary,
)
from sarek_numba.frontend.lower.values import (
    NOTHING,
    Cell,
    ComplexValue,
    IteratorValue,
    Nothing,
    RangeValue,
    SliceValue,
    TupleValue,
    Value,
)
from sarek_numba.frontend.variants import VariantValue
from sarek_numba.frontend.weak import Weak, WeakInt, is_number, scalar_of
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import (
    Barrier,
    Binary,
    BinOp,
    Const,
    Empty,
    Expr,
    Index,
    Intrinsic,
    MemFence,
    constant,
)
from sarek_numba.ir.types import BOOL, INT64, Scalar
from sarek_numba.ir.typing import scalar_of as scalar_of_expr
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering
    from sarek_numba.frontend.regions import Statement


def lower_operation(
    lowering: FunctionLowering, operation: t.Operation, statement: Statement
) -> Value:
    """The value of an operation; its effects are emitted."""
    what = operation.what
    span = lowering.span(statement)
    match what:
        case t.Constant(value):
            return constant_value(value, operation.result, span)
        case t.MakeRange():
            return _range(lowering, operation)
        case t.Unroll(count):
            return _unrolled(lowering, operation, count)
        case t.Iterate():
            return _iterate(lowering, operation, span)
        case t.Next():
            return _next(lowering, operation, statement)
        case t.MakeSlice():
            parts = [_optional(lowering, argument) for argument in operation.arguments]
            return SliceValue(*parts, *[None] * (3 - len(parts)))
        case t.Index(coordinate, axis):
            return Cell(Index(coordinate, axis, span=span))
        case t.IndexTuple(coordinate, count):
            return TupleValue(
                tuple(Cell(Index(coordinate, axis, span=span)) for axis in range(count))
            )
        case t.MakeTuple():
            return calls.tuple_of(lowering, operation)
        case t.TupleItem() | t.TupleSlice() | t.TuplePick() | t.Contains():
            return _tuple_operation(lowering, operation, span)
        case t.Barrier():
            lowering.emitter.settle_memory()
            lowering.emitter.emit(Barrier(span=span))
            return NOTHING
        case t.Mark():
            lowering.emitter.emit(Empty(span=span))
            return NOTHING
        case t.MemFence(scope):
            lowering.emitter.settle_memory()
            lowering.emitter.emit(MemFence(scope, span=span))
            return NOTHING
        case t.WarpBarrier() | t.WarpLane() | t.Warp():
            return warps.lower_warp(lowering, operation, statement)
        case t.Fragment() | t.Matrix():
            return matrices.lower_matrix(lowering, operation, statement)
        case t.Print():
            return printing.lower_print(lowering, operation, what, span)
        case t.Call():
            return calls.call(lowering, operation, statement)
        case t.Complex():
            return complexes.lower_complex(lowering, operation, statement)
        case (
            t.Binary()
            | t.Unary()
            | t.Convert()
            | t.RoundToHalf()
            | t.HalfBits()
            | t.HalfFromBits()
            | t.Intrinsic()
            | t.DivMod()
            | t.RoundToInt()
            | t.RoundDigits()
            | t.Select()
        ):
            return _arithmetic(lowering, operation, span)
        case _:
            return arrays.lower_array_operation(lowering, operation, statement)


def constant_value(value: object, type: types.Type, span: Span) -> Value:
    """A constant, or a tuple of constants."""
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return SliceValue(*(None if part is None else Cell(int64(int(part))) for part in parts))
    if isinstance(type, types.BaseTuple):
        items = zip(value, type.types, strict=True)  # type: ignore[call-overload] # a tuple
        return TupleValue(tuple(constant_value(item, kind, span) for item, kind in items))
    if isinstance(value, (VariantValue, np.void)):
        return captured.record_of_constants(np.asarray(value), type, span)
    if is_complex(type):
        return complexes.complex_constant(value, type, span)  # type: ignore[arg-type] # a number
    if isinstance(type, (types.Number, types.Boolean, Weak)):
        return Cell(constant_as(scalar_of(type), _python(value), span))
    return NOTHING


def _python(value: object) -> object:
    return value.item() if hasattr(value, "item") else value


# --- numbers --------------------------------------------------------------------------------------


def _arithmetic(lowering: FunctionLowering, operation: t.Operation, span: Span) -> Value:
    bind = lowering.emitter.bind
    what = operation.what
    result = operation.result
    weak = isinstance(result, WeakInt)
    if isinstance(what, t.Intrinsic) and what.name in ("pow", "ipow"):
        return Cell(_power(lowering, operation, span))
    operands = [
        lowering.number(argument, type)
        for argument, type in zip(operation.arguments, operation.operands, strict=True)
    ]
    match what:
        case t.Binary(op):
            return Cell(binary(op, operands[0], operands[1], weak, bind, span))
        case t.Unary(op):
            return Cell(unary(op, operands[0], weak, span))
        case t.Convert():
            is_weak = isinstance(operation.operands[0], WeakInt)
            return Cell(cast(operands[0], scalar_of(result), is_weak, span))
        case t.RoundToHalf(half):
            return Cell(round_to_half(half, operands[0], span))
        case t.HalfBits(half):
            bits = (cast(operands[0], half, span=span),)
            return Cell(Intrinsic((), "reinterpret", bits, Scalar.UINT16, span=span))
        case t.HalfFromBits(half):
            named = Intrinsic((), "reinterpret", tuple(operands), half, span=span)
            return Cell(cast(named, Scalar.FLOAT32, span=span))
        case t.Intrinsic("reinterpret"):
            kind = scalar_of(result)
            return Cell(Intrinsic((), "reinterpret", tuple(operands), kind, span=span))
        case t.Intrinsic(name):
            return Cell(_intrinsic(name, operands, span))
        case t.DivMod():
            left, right = map(bind, operands)
            whole = isinstance(operation.operands[0], WeakInt)
            pair = (BinOp.FLOORDIV, BinOp.FLOORMOD)
            return TupleValue(tuple(Cell(Binary(op, left, right, whole, span=span)) for op in pair))
        case t.RoundToInt(mode):
            type = scalar_of(operation.operands[0])
            rounded = Intrinsic((), mode, (operands[0],), type, span=span)
            return Cell(cast(rounded, INT64, span=span))
        case t.RoundDigits(digits):
            return Cell(round_digits(operands[0], digits, bind, span))
        case _:
            return Cell(choose(operands[0], operands[1], operands[2], span))


def _intrinsic(name: str, operands: list[Expr], span: Span) -> Expr:
    type = scalar_of_expr(operands[0])
    info = INTRINSICS[name]
    result = BOOL if info.result == "bool" else type
    if len(operands) <= info.arity:
        return Intrinsic((), name, tuple(operands), result, span=span)
    folded = operands[0]
    for operand in operands[1:]:
        folded = Intrinsic((), name, (folded, operand), result, span=span)
    return folded


def _power(lowering: FunctionLowering, operation: t.Operation, span: Span) -> Expr:
    base, exponent = operation.arguments
    number = lowering.number(base, operation.operands[0])
    power_of = lowering.number(exponent, operation.operands[1])
    name = operation.what.name  # type: ignore[union-attr] # an Intrinsic
    weak = isinstance(operation.result, WeakInt)
    return power(name, number, power_of, weak, lowering.emitter.bind, span)


# --- iteration ------------------------------------------------------------------------------------


def _range(lowering: FunctionLowering, operation: t.Operation) -> Value:
    bounds = [lowering.number(argument, types.int64) for argument in operation.arguments]
    if len(bounds) == 1:
        bounds = [int64(0), *bounds]
    if len(bounds) == 2:
        bounds.append(int64(1))
    first, stop, step = map(Cell, bounds)
    return RangeValue(first, stop, step)


def _unrolled(lowering: FunctionLowering, operation: t.Operation, count: int | None) -> Value:
    (argument,) = operation.arguments
    assert isinstance(argument, ir.Var)
    source = lowering.read(argument)
    assert isinstance(source, RangeValue)
    return replace(source, hints=("unroll",) if count is None else ("unroll", str(count)))


def _iterate(lowering: FunctionLowering, operation: t.Operation, span: Span) -> Value:
    (argument,) = operation.arguments
    assert isinstance(argument, ir.Var)
    source = lowering.read(argument)
    item = operation.result.item
    scalar = element_scalar(item) if is_complex(item) or is_number(item) else BOOL
    if isinstance(source, RangeValue):
        return IteratorValue(source, scalar)
    assert isinstance(source, TupleValue)
    items = zip(source.items, lowering.type_of(argument).types, strict=True)
    if not all(isinstance(value, Cell | ComplexValue) for value in source.items):
        raise lowering.refuse("a loop over a tuple of tuples or arrays", argument)
    return IteratorValue(
        TupleValue(tuple(lowering.converted(value, type, item) for value, type in items)),
        scalar,
    )


def _next(lowering: FunctionLowering, operation: t.Operation, statement: Statement) -> Value:
    """An `iternext` outside of a loop: the body runs at most once."""
    name = statement.target.name
    if name in lowering.items:
        return NOTHING
    (argument,) = operation.arguments
    assert isinstance(argument, ir.Var)
    iterator = lowering.read(argument)
    assert isinstance(iterator, IteratorValue)
    bind = lowering.emitter.bind
    if isinstance(iterator.source, TupleValue):
        items = iterator.source.items
        first = items[0] if items else Cell(constant(iterator.item, 0))
        lowering.items[name] = (first, constant(BOOL, bool(items)))
        return NOTHING
    source = iterator.source
    start, stop, step = (bind(cell.expr) for cell in (source.first, source.stop, source.step))
    up = Binary(BinOp.LT, start, stop)
    down = Binary(BinOp.GT, start, stop)
    some = choose(Binary(BinOp.GT, step, int64(0)), up, down)
    if isinstance(step, Const):
        some = up if int(step.value) > 0 else down
    lowering.items[name] = (Cell(start), some)
    return NOTHING


def _optional(lowering: FunctionLowering, argument: t.Argument) -> Cell | None:
    type = argument.type if isinstance(argument, t.Default) else lowering.type_of(argument)
    if isinstance(type, types.NoneType):
        return None
    return Cell(lowering.number(argument, types.int64))


# --- tuples ---------------------------------------------------------------------------------------


def _tuple_operation(lowering: FunctionLowering, operation: t.Operation, span: Span) -> Value:
    what = operation.what
    argument = operation.arguments[0]
    if isinstance(argument, t.Default):
        source: Value = constant_value(argument.value, argument.type, span)
        kind = argument.type
    else:
        source, kind = lowering.read(argument), lowering.type_of(argument)
    if isinstance(source, Nothing):
        return NOTHING
    assert isinstance(source, TupleValue)
    match what:
        case t.TupleItem(index):
            item = source.items[index]
            return lowering.converted(item, kind.types[index], operation.result)
        case t.TupleSlice(start, stop, step):
            return TupleValue(source.items[start:stop:step])
        case t.Contains(compares, is_negated):
            return _contains(lowering, source, kind, operation, compares, is_negated, span)
        case _:
            place = lowering.number(operation.arguments[1], types.int64)
            items = [
                lowering.converted(item, type, operation.result)
                for item, type in zip(source.items, kind.types, strict=True)
            ]
            return pick_value(items, lowering.emitter.bind(place), span)


def pick_value(items: list[Value], index: Expr, span: Span | None, wrap: bool = True) -> Value:
    """Item `index` of some numbers, real or complex ones."""
    parts = [item.items for item in items if isinstance(item, ComplexValue)]
    if not parts:
        return Cell(pick(items, index, span, wrap))
    both = zip(*parts, strict=True)
    return ComplexValue(tuple(Cell(pick(list(part), index, span, wrap)) for part in both))


def pick(items: list[Value], index: Expr, span: Span | None, wrap: bool = True) -> Expr:
    """Item `index` of some real numbers; with `wrap` a negative one counts from the end."""
    cells = [item.expr for item in items if isinstance(item, Cell)]
    result = cells[-1]
    for place in reversed(range(len(cells) - 1)):
        here = compare(BinOp.EQ, index, int64(place), lambda expr: expr)
        if wrap:
            from_end = compare(BinOp.EQ, index, int64(place - len(cells)), lambda expr: expr)
            here = Binary(BinOp.OR, here, from_end)
        result = choose(here, cells[place], result, span)
    return result


def _contains(
    lowering: FunctionLowering,
    source: TupleValue,
    kind: types.Type,
    operation: t.Operation,
    compares: tuple[tuple[types.Type, types.Type], ...],
    is_negated: bool,
    span: Span,
) -> Value:
    bind = lowering.emitter.bind
    value = operation.arguments[1]
    own = value.type if isinstance(value, t.Default) else lowering.type_of(value)
    wanted = Cell(bind(lowering.number(value)))
    op, join = (BinOp.NE, BinOp.AND) if is_negated else (BinOp.EQ, BinOp.OR)
    result: Expr | None = None
    for item, type, (left, right) in zip(source.items, kind.types, compares, strict=True):
        ours = lowering.converted(item, type, left)
        theirs = lowering.converted(wanted, own, right)
        assert isinstance(ours, Cell)
        assert isinstance(theirs, Cell)
        test = compare(op, theirs.expr, ours.expr, bind, span)
        result = test if result is None else Binary(join, result, test, span=span)
    return Cell(result if result is not None else constant(BOOL, is_negated, span))
