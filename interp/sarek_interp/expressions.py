"""Expressions of the IR as functions of the machine. Operators are in `operators`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

import numpy as np

from sarek_interp import operators
from sarek_interp.code import Context, Evaluate, Interval, Value, refuse, scalar
from sarek_interp.machine import FALSE, Lanes, Machine, Mask
from sarek_interp.operators import flagged, lane_value, range_of
from sarek_interp.pairs import part_of
from sarek_interp.views import whole_name
from sarek_numba.errors import OutOfBounds, UnboundRead
from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import (
    App,
    ArrayCreate,
    ArrayLen,
    ArrayRead,
    ArrayReadExpr,
    Binary,
    BinOp,
    Cast,
    Const,
    Coordinate,
    Expr,
    Field,
    IfExpr,
    Index,
    Intrinsic,
    MatchExpr,
    RecordExpr,
    Subscript,
    TupleExpr,
    Unary,
    Var,
    VariantExpr,
    VarRef,
)
from sarek_numba.ir.types import BOOL, INT64, Array, LengthOf, Scalar, UserArgument, Vec
from sarek_numba.ir.typing import scalar_of

_COORDINATE_RANGES: dict[Coordinate, Interval] = {
    Coordinate.THREAD_IDX: (0, 1023),
    Coordinate.BLOCK_DIM: (1, 1024),
    Coordinate.BLOCK_IDX: (0, 2**31 - 2),
    Coordinate.GRID_DIM: (1, 2**31 - 1),
    Coordinate.GLOBAL_IDX: (0, 2**41),
    Coordinate.GRID_SIZE: (1, 2**41),
}


def compile_expr(c: Context, expr: Expr) -> Value:
    """The function that gives an expression's lanes."""
    match expr:
        case Const(type=type, value=number):
            lane = semantics.as_lane(expr)
            interval = None if type.is_float else (int(number), int(number))
            return Value(lambda m: lane, type, True, interval)
        case VarRef(var=var):
            return _variable(c, expr, var)
        case Binary(op=BinOp.AND | BinOp.OR):
            return _short_circuit(c, expr)
        case Binary(left=left, right=right):
            return operators.binary(c, expr, compile_expr(c, left), compile_expr(c, right))
        case Unary(operand=operand):
            return operators.unary(c, expr, compile_expr(c, operand))
        case ArrayRead():
            return _array_read(c, expr)
        case Subscript():
            return _subscript(c, expr)
        case Cast(operand=operand):
            return operators.cast(c, expr, compile_expr(c, operand))
        case Index(coordinate=which, axis=axis, type=type):
            return _coordinate(which, axis, type)
        case Intrinsic(args=args):
            return operators.intrinsic(c, expr, [compile_expr(c, arg) for arg in args])
        case IfExpr():
            return _conditional(c, expr)
        case App():
            return _application(c, expr)
        case ArrayLen(array=array):
            return _length(c, array)
        case ArrayReadExpr() | Field() | RecordExpr() | VariantExpr() | MatchExpr():
            raise refuse("records and variants", expr.span)
        case TupleExpr() | ArrayCreate():
            raise refuse("a tuple or an array as a value", expr.span)
        case _:
            assert_never(expr)


def compile_index(c: Context, index: Expr) -> Callable[[Machine], tuple[Lanes, Mask | None]]:
    """The lanes of a flat index, and which lanes had a subscript out of range within it."""
    evaluate = compile_expr(c, index).evaluate

    def run(m: Machine) -> tuple[Lanes, Mask | None]:
        outer = m.bad
        m.bad = None
        lanes = evaluate(m)
        bad = m.bad
        m.bad = outer
        return lanes, bad

    return run


def compile_argument(c: Context, arg: Expr) -> Evaluate:
    """An argument of a helper: a scalar, or an array, which goes as the storage itself."""
    if isinstance(arg, VarRef) and isinstance(arg.var.type, Vec | Array):
        slot = c.use(arg.var)
        return lambda m: m.values[slot]
    return compile_expr(c, arg).evaluate


# --- variables ------------------------------------------------------------------------------------


def _variable(c: Context, expr: VarRef, var: Var) -> Value:
    slot = c.use(var)
    type = scalar(var.type, expr.span)
    bound = c.function.bound.get(slot)
    if bound is None:
        interval = c.function.intervals.get(slot)
        return Value(lambda m: m.values[slot], type, True, interval)
    c.body.used.add(bound)
    site = c.site(expr.span)
    name = var.name

    def checked(m: Machine) -> Lanes:
        unbound = ~m.values[bound]
        if unbound.any():
            message = f"'{name}' is read, but this thread has not assigned it"
            m.report(UnboundRead, site, flagged(m, unbound), lambda: {"message": message})
        lanes: Lanes = m.values[slot]
        return lanes

    return Value(checked, type, False)


def _length(c: Context, array: Var) -> Value:
    slot = c.use(array)
    roles = {param.role: param.var for param in c.kernel.params}
    for param in c.kernel.params:
        if param.var == array and isinstance(param.role, UserArgument):
            length = roles.get(LengthOf(param.role.argument))
            if length is not None:
                return compile_expr(c, Cast(INT64, VarRef(length)))
    return Value(lambda m: np.array([m.values[slot].length]), INT64, True, (0, 2**62))


def _coordinate(which: Coordinate, axis: int, type: Scalar) -> Value:
    interval = _COORDINATE_RANGES[which]
    if type is INT64:
        return Value(lambda m: m.coordinate(which, axis), type, True, interval)
    dtype = semantics.dtype_of(type)
    return Value(lambda m: m.coordinate(which, axis).astype(dtype), type, True, None)


# --- memory ---------------------------------------------------------------------------------------


def _array_read(c: Context, expr: ArrayRead) -> Value:
    slot = c.use(expr.array)
    type = scalar(scalar_of(expr), expr.span)
    index = compile_index(c, expr.index)
    site = c.access_site(expr.span, expr.array, part_of(expr.array, expr.index), "read")

    def run(m: Machine) -> Lanes:
        lanes, bad = index(m)
        found: Lanes = m.values[slot].read(m, lanes, bad, site)
        return found

    return Value(run, type, False)


def _subscript(c: Context, expr: Subscript) -> Value:
    index, extent = compile_expr(c, expr.index), compile_expr(c, expr.extent)
    i, e = index.evaluate, extent.evaluate
    wrap = expr.wrap and range_of(index)[0] < 0
    site = c.access_site(expr.span, expr.array, expr.part, ("subscript", expr.axis))
    name, axis = whole_name(expr.array.name), expr.axis

    def run(m: Machine) -> Lanes:
        given, size = i(m), e(m)
        value: Lanes = given
        if wrap and given.min() < 0:
            value = np.where(given < 0, given + size, given)
        if value.min() >= 0 and value.max() < size.min():
            return value
        bad = m.narrowed((value < 0) | (value >= size))
        if not bad.any():
            return value
        lanes = np.flatnonzero(bad)

        def explain() -> dict[str, Any]:
            asked = lane_value(given, lanes[0])
            return {
                "message": f"index {asked} is out of range for axis {axis} of '{name}', "
                f"whose extent is {lane_value(size, lanes[0])}",
                "array": name,
                "index": asked,
            }

        m.report(OutOfBounds, site, lanes, explain)
        m.bad = bad if m.bad is None else m.bad | bad
        return value

    return Value(run, index.type, False)


# --- conditions -----------------------------------------------------------------------------------


def _short_circuit(c: Context, expr: Binary) -> Value:
    left, right = compile_expr(c, expr.left), compile_expr(c, expr.right)
    a, b = left.evaluate, right.evaluate
    conjunction = expr.op is BinOp.AND
    combine = np.logical_and if conjunction else np.logical_or
    if right.plain:
        return Value(lambda m: combine(a(m), b(m)), BOOL, left.plain)

    def run(m: Machine) -> Lanes:
        known: Lanes = a(m)
        undecided = known if conjunction else ~known
        if known.size == 1:
            decided: Lanes = b(m) if undecided[0] else known
            return decided
        mask = m.mask
        m.mask = m.narrowed(undecided)
        other = b(m) if m.mask.any() else FALSE
        needed = m.mask
        m.mask = mask
        result: Lanes = needed & other if conjunction else known | (needed & other)
        return result

    return Value(run, BOOL, False)


def _conditional(c: Context, expr: IfExpr) -> Value:
    condition = compile_expr(c, expr.condition)
    then, orelse = compile_expr(c, expr.then), compile_expr(c, expr.orelse)
    test, a, b = condition.evaluate, then.evaluate, orelse.evaluate
    all_plain = then.plain and orelse.plain
    zero = np.zeros(1, semantics.dtype_of(then.type))

    def run(m: Machine) -> Lanes:
        chosen = test(m)
        if chosen.size == 1:
            lanes: Lanes = a(m) if chosen[0] else b(m)
            return lanes
        if all_plain:
            return np.asarray(np.where(chosen, a(m), b(m)))
        mask = m.mask
        m.mask = m.narrowed(chosen)
        x = a(m) if m.mask.any() else zero
        m.mask = mask
        m.mask = m.narrowed(~chosen)
        y = b(m) if m.mask.any() else zero
        m.mask = mask
        return np.where(chosen, x, y)

    return Value(run, then.type, condition.plain and all_plain)


def _application(c: Context, expr: App) -> Value:
    helper = c.helper(expr.function)
    args = [compile_argument(c, arg) for arg in expr.args]
    type = scalar(expr.type, expr.span)
    params, run_body, (result,) = helper.params, helper.run, helper.results

    def run(m: Machine) -> Lanes:
        given = [arg(m) for arg in args]
        for slot, value in zip(params, given, strict=True):
            m.values[slot] = value
        run_body(m)
        lanes: Lanes = m.values[result]
        return lanes

    return Value(run, type, False)
