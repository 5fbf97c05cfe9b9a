"""Conversions between the scalar types: explicit `Cast`s, and constants converted at once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from numba.core import types

from sarek_numba.frontend.weak import WeakInt, constant_of, scalar_of
from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import Binary, BinOp, Cast, Const, Expr, Unary, UnOp, constant
from sarek_numba.ir.types import BOOL, FLOAT32, HALVES, INT64, Scalar
from sarek_numba.ir.typing import scalar_of as scalar_of_expr
from sarek_numba.span import Span

# Integers up to here are exact in float64, so that a second rounding to float32 changes nothing.
_EXACT = 1 << 53


def int64(value: int, span: Span | None = None) -> Const:
    """A constant of Python's int, or of an address."""
    return constant(INT64, value, span)


def constant_as(target: Scalar, value: Any, span: Span | None = None) -> Expr:
    """The constant expression of a number converted to a type as a store would."""
    if target in HALVES:
        return Cast(target, constant(FLOAT32, rounded(target, value), span), span=span)
    known = converted(target, value)
    if known is not None:
        return constant(target, known, span)
    if isinstance(value, int):
        return Cast(target, int64(value, span), span=span)
    return Cast(target, constant(Scalar.FLOAT64, value, span), span=span)


def rounded(half: Scalar, value: Any) -> float:
    """The half nearest to a number, as halves have no constants: float32 has each of them."""
    return float(semantics.half_of(value, half))


def converted(target: Scalar, value: Any) -> bool | int | float | None:
    """A number as a type holds it, or None where only the device's conversion gives it."""
    if target is BOOL:
        return bool(value)
    if target.is_integer:
        if isinstance(value, float):
            if math.isnan(value):
                return 0
            if math.isinf(value):
                return target.maximum if value > 0 else target.minimum
            return min(max(int(value), target.minimum), target.maximum)
        wrapped = int(value) & ((1 << target.bits) - 1)
        return wrapped - (1 << target.bits) if wrapped > target.maximum else wrapped
    if target not in (Scalar.FLOAT32, Scalar.FLOAT64):
        return None
    if not isinstance(value, float) and abs(int(value)) > _EXACT:
        return None
    return float(value)


def convert(expr: Expr, source: types.Type, target: types.Type, span: Span | None = None) -> Expr:
    """A number of type `source` as `target`."""
    known = constant_of(source)
    if known is not None:
        return constant_as(scalar_of(target), known, span)
    return cast(expr, scalar_of(target), isinstance(source, WeakInt), span)


def cast(expr: Expr, target: Scalar, weak: bool = False, span: Span | None = None) -> Expr:
    """An expression as a scalar type; nothing is added where it has that type."""
    if isinstance(expr, Const):
        if expr.type is target:
            return expr
        if target in HALVES:
            return constant_as(target, expr.value, span or expr.span)
        known = converted(target, expr.value)
        if known is not None:
            return constant(target, known, span or expr.span)
    source = scalar_of_expr(expr)
    if source is target:
        return expr
    if isinstance(expr, Cast) and _is_widened(expr, target):
        return expr.operand
    if isinstance(expr, Cast) and source in HALVES and isinstance(expr.operand, Const):
        return cast(expr.operand, target, weak, span)  # the constant is a half already
    if target is BOOL and source in HALVES:
        return cast(cast(expr, FLOAT32, span=span), BOOL, span=span)
    if target is BOOL:
        return Binary(BinOp.NE, expr, _zero(source), span=span)
    return Cast(target, expr, weak, span=span)


def _is_widened(expr: Cast, target: Scalar) -> bool:
    """Whether an expression is widened, as float32 to float64: narrowed again it is itself."""
    if target in HALVES:
        return expr.type is FLOAT32 and scalar_of_expr(expr.operand) is target
    if target is not Scalar.FLOAT32 or expr.type is not Scalar.FLOAT64:
        return False
    return scalar_of_expr(expr.operand) is Scalar.FLOAT32


def _zero(type: Scalar) -> Const:
    return constant(type, 0)


def widened(expr: Expr, span: Span | None = None) -> Expr:
    """An element as a value: a half is a float32."""
    return cast(expr, FLOAT32, span=span) if scalar_of_expr(expr) in HALVES else expr


def round_to_half(half: Scalar, expr: Expr, span: Span | None = None) -> Expr:
    """A float32 that holds the half nearest to a number."""
    return cast(cast(expr, half, span=span), FLOAT32, span=span)


def negated(expr: Expr, span: Span | None = None) -> Expr:
    """`not expr` of a bool, simplified where that is exact."""
    match expr:
        case Const(type=Scalar.BOOL):
            return constant(BOOL, not expr.value, span)
        case Unary(op=UnOp.NOT, operand=operand):
            return operand
        case Binary(op=BinOp.EQ):
            return replace(expr, op=BinOp.NE)
        case Binary(op=BinOp.NE):
            return replace(expr, op=BinOp.EQ)
        case Binary(op=op, left=left) if op in _OPPOSITE and not scalar_of_expr(left).is_float:
            # a comparison with a NaN and its opposite are both false, so floats keep their `not`
            return replace(expr, op=_OPPOSITE[op])
        case _:
            return Unary(UnOp.NOT, expr, span=span)


_OPPOSITE = {
    BinOp.LT: BinOp.GE,
    BinOp.GE: BinOp.LT,
    BinOp.GT: BinOp.LE,
    BinOp.LE: BinOp.GT,
}
