"""Operators, conversions and functions on compiled operands, with the checks of weak ints.

Their meaning comes from `ir.semantics` alone. Where the operands' intervals prove that a weak int
stays in range, no check is made; where the values at hand do, only two cheap ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sarek_interp.code import Context, Evaluate, Interval, Value, scalar
from sarek_interp.machine import Lanes, Machine, Mask, Selection
from sarek_numba.errors import ArithmeticFault, WeakOverflow
from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import COMPARISONS, Binary, BinOp, Cast, Intrinsic, Unary, UnOp
from sarek_numba.ir.semantics.arrays import bare
from sarek_numba.ir.types import BOOL, INT64, Scalar

_DIVISIONS = frozenset({BinOp.DIV, BinOp.MOD, BinOp.FLOORDIV, BinOp.FLOORMOD})


def flagged(m: Machine, condition: Mask) -> Selection:
    """The live lanes of the frame for which a condition holds."""
    return np.flatnonzero(m.narrowed(condition))


def lane_value(lanes: Lanes, lane: int) -> Any:
    """The value of one lane of the frame, as a Python number."""
    return lanes[lane if lanes.size > 1 else 0].item()


_TYPE_RANGES: dict[Scalar, Interval] = {
    type: (type.minimum, type.maximum) for type in Scalar if not type.is_float
}


def range_of(value: Value) -> Interval:
    return value.interval or _TYPE_RANGES[value.type]


def _exact_interval(op: BinOp, left: Interval, right: Interval) -> Interval | None:
    """The interval of a sum, difference or product as if integers had no end."""
    (a, b), (d, e) = left, right
    match op:
        case BinOp.ADD:
            return a + d, b + e
        case BinOp.SUB:
            return a - e, b - d
        case BinOp.MUL:
            products = (a * d, a * e, b * d, b * e)
            return min(products), max(products)
        case _:
            return None


def _fits(interval: Interval | None, type: Scalar) -> bool:
    if interval is None:
        return False
    low, high = _TYPE_RANGES[type]
    return low <= interval[0] and interval[1] <= high


def binary(c: Context, expr: Binary, left: Value, right: Value) -> Value:
    function = bare(semantics.binary(expr.op, left.type))
    type = BOOL if expr.op in COMPARISONS else left.type
    a, b = left.evaluate, right.evaluate
    plain = left.plain and right.plain
    interval = None
    if type.is_integer:
        exact = _exact_interval(expr.op, range_of(left), range_of(right))
        interval = exact if _fits(exact, type) else None
    if expr.op in _DIVISIONS and type.is_integer and "division" in c.checks:
        b, plain = _checked_divisor(c, expr, b), False
    if expr.weak and interval is None and type is INT64:
        return Value(_checked_binary(c, expr, a, b), type, False)
    return Value(lambda m: function(a(m), b(m)), type, plain, interval)


def _checked_divisor(c: Context, expr: Binary, divisor: Evaluate) -> Evaluate:
    site = c.site(expr.span)

    def run(m: Machine) -> Lanes:
        lanes: Lanes = divisor(m)
        zero = lanes == 0
        if zero.any():
            message = "integer division by zero"
            m.report(ArithmeticFault, site, flagged(m, zero), lambda: {"message": message})
        return lanes

    return run


def _met(lanes: Lanes) -> Interval:
    """The interval of the values at hand: two cheap passes that mostly save a costly one."""
    return int(lanes.min()), int(lanes.max())


def _checked_binary(c: Context, expr: Binary, a: Evaluate, b: Evaluate) -> Evaluate:
    site = c.site(expr.span)
    op = expr.op
    function = bare(semantics.binary(op, INT64))

    def run(m: Machine) -> Lanes:
        x, y = a(m), b(m)
        if _fits(_exact_interval(op, _met(x), _met(y)), INT64):
            return function(x, y)
        over = semantics.binary_overflows(op, x, y)
        if over is not None and over.any():
            lanes = flagged(m, over)
            m.report(
                WeakOverflow,
                site,
                lanes,
                lambda: {
                    "message": f"a Python int leaves int64: {lane_value(x, lanes[0])} {op.value} "
                    f"{lane_value(y, lanes[0])}",
                    "hint": "convert an operand to a type that is wide enough, such as np.uint64, "
                    "or to one whose wrapping is meant",
                },
            )
        return function(x, y)

    return run


def unary(c: Context, expr: Unary, operand: Value) -> Value:
    function = bare(semantics.unary(expr.op, operand.type))
    evaluate = operand.evaluate
    low, high = range_of(operand) if operand.type.is_integer else (0, 0)
    negated = (-high, -low) if expr.op is UnOp.NEG and operand.type.is_integer else None
    if negated is not None and _fits(negated, operand.type):
        return Value(lambda m: function(evaluate(m)), operand.type, operand.plain, negated)
    if not (expr.weak and expr.op is UnOp.NEG and operand.type is INT64):
        return Value(lambda m: function(evaluate(m)), operand.type, operand.plain)
    site = c.site(expr.span)

    def run(m: Machine) -> Lanes:
        x = evaluate(m)
        over = semantics.unary_overflows(UnOp.NEG, x)
        if over is not None and over.any():
            message = "a Python int leaves int64: the negative of its least value"
            m.report(WeakOverflow, site, flagged(m, over), lambda: {"message": message})
        return function(x)

    return Value(run, operand.type, False)


def cast(c: Context, expr: Cast, operand: Value) -> Value:
    target = scalar(expr.type, expr.span)
    function = bare(semantics.cast(operand.type, target))
    evaluate = operand.evaluate
    both = operand.type.is_integer and target.is_integer
    interval = range_of(operand) if both and _fits(range_of(operand), target) else None
    if not expr.weak or interval is not None or not both:
        return Value(lambda m: function(evaluate(m)), target, operand.plain, interval)
    site = c.site(expr.span)

    def run(m: Machine) -> Lanes:
        x = evaluate(m)
        outside = semantics.outside_of(target, x)
        if outside is not None and outside.any():
            lanes = flagged(m, outside)
            m.report(
                WeakOverflow,
                site,
                lanes,
                lambda: {
                    "message": f"the Python int {lane_value(x, lanes[0])} does not fit "
                    f"{target.value}",
                    "hint": f"cast it, as np.{target.value}(…), if wrapping is meant",
                },
            )
        return function(x)

    return Value(run, target, False)


def intrinsic(c: Context, expr: Intrinsic, args: list[Value]) -> Value:
    operand = args[0].type
    function = bare(semantics.intrinsic(expr.name, operand, expr.type))
    type = scalar(expr.type, expr.span)
    evaluations = [arg.evaluate for arg in args]
    plain = all(arg.plain for arg in args)
    if expr.name == "ipow" and range_of(args[1])[0] < 0:
        evaluations[1], plain = _checked_exponent(c, expr, evaluations[1]), False
    match evaluations:
        case [a]:
            return Value(lambda m: function(a(m)), type, plain)
        case [a, b]:
            return Value(lambda m: function(a(m), b(m)), type, plain)
        case _:
            return Value(lambda m: function(*(e(m) for e in evaluations)), type, plain)


def _checked_exponent(c: Context, expr: Intrinsic, exponent: Evaluate) -> Evaluate:
    site = c.site(expr.span)

    def run(m: Machine) -> Lanes:
        x: Lanes = exponent(m)
        negative = x < 0
        if negative.any():
            lanes = flagged(m, negative)
            m.report(
                ArithmeticFault,
                site,
                lanes,
                lambda: {
                    "message": "an integer to a negative power: the exponent is "
                    f"{lane_value(x, lanes[0])}",
                    "hint": "use a float base",
                },
            )
        return x

    return run
