"""Algebra that holds for every value: integers modulo 2^n, floats with signed zeros and NaNs.

What is left out is left out because it is false for some float: `x + 0.0` turns -0.0 into 0.0 and
`x * 0.0` has a sign, or because it would only rearrange what the user wrote.
"""

from __future__ import annotations

import struct

from sarek_numba.ir.nodes import (
    COMPARISONS,
    Binary,
    BinOp,
    Body,
    Cast,
    Const,
    Expr,
    IfExpr,
    Kernel,
    Unary,
    UnOp,
    constant,
)
from sarek_numba.ir.types import BOOL, Kind, Scalar
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import map_body_expressions, map_expr
from sarek_numba.passes.common import Target, map_bodies

_INVERTED = {
    BinOp.EQ: BinOp.NE,
    BinOp.NE: BinOp.EQ,
    BinOp.LT: BinOp.GE,
    BinOp.GE: BinOp.LT,
    BinOp.GT: BinOp.LE,
    BinOp.LE: BinOp.GT,
}
_UNORDERED_SAFE = {BinOp.EQ, BinOp.NE}  # their inversion is right for NaN as well
_MIRRORED = {
    BinOp.EQ: BinOp.EQ,
    BinOp.NE: BinOp.NE,
    BinOp.LT: BinOp.GT,
    BinOp.GT: BinOp.LT,
    BinOp.LE: BinOp.GE,
    BinOp.GE: BinOp.LE,
}

# Operator and number beside which the other operand is the result.
_RIGHT_IDENTITY = {
    BinOp.ADD: 0,
    BinOp.SUB: 0,
    BinOp.MUL: 1,
    BinOp.DIV: 1,
    BinOp.FLOORDIV: 1,
    BinOp.SHL: 0,
    BinOp.SHR: 0,
    BinOp.BITOR: 0,
    BinOp.BITXOR: 0,
    BinOp.BITAND: -1,
}
_COMMUTATIVE = {BinOp.ADD, BinOp.MUL, BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR}
_ABSORBING = {BinOp.MUL: 0, BinOp.BITAND: 0, BinOp.BITOR: -1}
_FLOAT_RIGHT_IDENTITY = {
    BinOp.ADD: -0.0,
    BinOp.SUB: 0.0,
    BinOp.MUL: 1.0,
    BinOp.DIV: 1.0,
}


def simplify(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with fewer operators and the same results, bit for bit."""
    return map_bodies(kernel, _simplify_body)


def _simplify_body(body: Body) -> Body:
    return map_body_expressions(body, lambda expr: map_expr(expr, simplify_node))


def simplify_node(expr: Expr) -> Expr:
    """A node whose operands are simple."""
    match expr:
        case Binary(op=op, left=left, right=right) if op in COMPARISONS:
            if isinstance(left, Const) and not isinstance(right, Const):
                return _compare(Binary(_MIRRORED[op], right, left, span=expr.span))
            return _compare(expr)
        case Binary(left=Const(type=kind)) | Binary(right=Const(type=kind)):
            # a shift's count may have another type, but neither of the two is a float
            return _float_operator(expr) if kind.is_float else _integer_operator(expr, kind)
        case Binary(op=BinOp.ADD | BinOp.SUB, right=Unary(op=UnOp.NEG) as negated):
            return _opposite(expr, negated)
        case Unary():
            return _unary(expr)
        case Cast():
            return _cast(expr)
        case IfExpr(then=Const(type=Scalar.BOOL) as then, orelse=Const() as orelse):
            if then.bits == orelse.bits:
                return then
            if then.bits:
                return expr.condition
            return simplify_node(Unary(UnOp.NOT, expr.condition, span=expr.span))
        case _:
            return expr


# --- operators ------------------------------------------------------------------------------------


def _is(expr: Expr, number: int) -> bool:
    """Whether an integer or bool constant equals `number` modulo 2^n; all ones are -1."""
    if not isinstance(expr, Const):
        return False
    if expr.type is BOOL:
        return expr.bits == abs(number)
    return expr.bits == number & ((1 << expr.type.bits) - 1)


def _integer_operator(expr: Binary, kind: Scalar) -> Expr:
    op, left, right = expr.op, expr.left, expr.right
    if op in _RIGHT_IDENTITY:
        if _is(right, _RIGHT_IDENTITY[op]):
            return left
        if op in _COMMUTATIVE and _is(left, _RIGHT_IDENTITY[op]):
            return right
    if op in _ABSORBING:
        for operand in (right, left):
            if _is(operand, _ABSORBING[op]):
                return operand
    if op in (BinOp.MOD, BinOp.FLOORMOD) and _is(right, 1):
        return Const(kind, 0, span=expr.span)
    if kind.kind is Kind.SIGNED and (negated := _negated(expr)) is not None:
        return Unary(UnOp.NEG, negated, expr.weak, expr.unguarded, span=expr.span)
    return _signed_constant(expr, kind)


def _negated(expr: Binary) -> Expr | None:
    """What an operator with a constant negates, or None."""
    match expr:
        case Binary(op=BinOp.SUB, left=left, right=right) if _is(left, 0):
            return right
        case Binary(op=BinOp.MUL, left=left, right=right) if _is(left, -1):
            return right
        case Binary(op=BinOp.MUL | BinOp.DIV | BinOp.FLOORDIV, left=left, right=right) if _is(
            right, -1
        ):
            return left
        case Binary(op=BinOp.ADD, left=Unary(op=UnOp.BITNOT, operand=inner), right=right) if _is(
            right, 1
        ):
            return inner
        case _:
            return None


def _opposite(expr: Binary, negated: Unary) -> Expr:
    """`x + -y` as `x - y`, and `x - -y` as `x + y`: the same modulo 2^n."""
    kind = type_of(negated)
    if not isinstance(kind, Scalar) or kind.is_float:
        return expr
    op = BinOp.SUB if expr.op is BinOp.ADD else BinOp.ADD
    unguarded = expr.unguarded and negated.unguarded
    return Binary(op, expr.left, negated.operand, expr.weak, unguarded, span=expr.span)


def _signed_constant(expr: Binary, kind: Scalar) -> Expr:
    """`x + -1` as `x - 1`: the same modulo 2^n, and it overflows for the same x."""
    if expr.op not in (BinOp.ADD, BinOp.SUB) or kind.kind is not Kind.SIGNED:
        return expr
    right = expr.right
    if not isinstance(right, Const) or not kind.minimum < right.value < 0:
        return expr
    op = BinOp.SUB if expr.op is BinOp.ADD else BinOp.ADD
    positive = constant(kind, -right.value, right.span)
    return Binary(op, expr.left, positive, expr.weak, expr.unguarded, span=expr.span)


def _float_operator(expr: Binary) -> Expr:
    identity = _FLOAT_RIGHT_IDENTITY.get(expr.op)
    if identity is None:
        return expr
    if _is_float(expr.right, identity):
        return expr.left
    if expr.op in _COMMUTATIVE and _is_float(expr.left, identity):
        return expr.right
    return expr


def _is_float(expr: Expr, number: float) -> bool:
    """Whether a constant is this number; 0.0 and -0.0 are two."""
    return isinstance(expr, Const) and struct.pack("<d", expr.value) == struct.pack("<d", number)


def _unary(expr: Unary) -> Expr:
    operand = expr.operand
    match operand:
        case Unary(op=op, operand=inner) if op is expr.op:
            return inner
        case Binary(op=op, left=left) if expr.op is UnOp.NOT and op in COMPARISONS:
            kind = type_of(left)
            if op in _UNORDERED_SAFE or (isinstance(kind, Scalar) and not kind.is_float):
                return Binary(_INVERTED[op], left, operand.right, span=operand.span)
        case _:
            pass
    return expr


# --- conversions and comparisons ------------------------------------------------------------------


def keeps_values(source: Scalar, target: Scalar) -> bool:
    """Whether every value of `source` is one of `target`, so that the conversion loses nothing."""
    if source is target:
        return True
    if source.is_float or target is BOOL:
        return source is Scalar.FLOAT32 and target is Scalar.FLOAT64
    if target.is_float:
        mantissa = {Scalar.FLOAT32: 24, Scalar.FLOAT64: 53}.get(target, 0)
        return max(abs(source.minimum), source.maximum).bit_length() <= mantissa
    return target.minimum <= source.minimum and source.maximum <= target.maximum


def _cast(expr: Cast) -> Expr:
    outer, operand = expr.type, expr.operand
    kind = type_of(operand)
    if kind is outer:
        return operand
    if not isinstance(operand, Cast):
        return expr
    inner, origin = operand.type, type_of(operand.operand)
    assert isinstance(origin, Scalar)
    if not _one_conversion(origin, inner, outer):
        return expr
    if operand.weak and not keeps_values(origin, inner):
        return expr  # the oracle may have a report of the inner conversion
    if origin is outer:
        return operand.operand
    return Cast(outer, operand.operand, expr.weak, span=expr.span)


def _one_conversion(origin: Scalar, inner: Scalar, outer: Scalar) -> bool:
    """Whether converting by way of `inner` gives what converting at once does."""
    if keeps_values(origin, inner):
        # a float saturates where an integer wraps
        wraps = inner.is_float and outer.is_integer and not origin.is_float
        return not wraps or keeps_values(origin, outer)
    integers = origin.is_integer and inner.is_integer and outer.is_integer
    return integers and inner.bits >= outer.bits


def _compare(expr: Binary) -> Expr:
    """A comparison of converted values is made before the conversion where nothing is lost."""
    op, left, right = expr.op, expr.left, expr.right
    if isinstance(right, Const) and right.type is BOOL and op in _UNORDERED_SAFE:
        if bool(right.bits) is (op is BinOp.EQ):
            return left
        return simplify_node(Unary(UnOp.NOT, left, span=expr.span))
    if not isinstance(left, Cast):
        return expr
    origin = type_of(left.operand)
    assert isinstance(origin, Scalar)
    if not keeps_values(origin, left.type) or origin is BOOL:
        return expr
    match right:
        case Cast(operand=operand) if type_of(operand) is origin:
            return Binary(op, left.operand, operand, span=expr.span)
        case Const():
            return _compare_constant(expr, left.operand, origin, right)
        case _:
            return expr


def _compare_constant(expr: Binary, operand: Expr, origin: Scalar, right: Const) -> Expr:
    value = right.value
    if origin.is_float:
        narrow = constant(origin, value, right.span)
        same = struct.pack("<d", narrow.value) == struct.pack("<d", value)
        return Binary(expr.op, operand, narrow, span=expr.span) if same else expr
    if value != value or value in (float("inf"), float("-inf")) or value != int(value):
        return expr
    if not origin.minimum <= value <= origin.maximum:
        return expr
    return Binary(expr.op, operand, constant(origin, int(value), right.span), span=expr.span)
