"""Arithmetic, comparisons and functions of numbers: operands are converted already.

Every function takes expressions and gives one. `bind` makes an expression that may be used twice.
"""

from __future__ import annotations

from collections.abc import Callable

from sarek_numba.frontend.lower.convert import cast, converted, int64, negated
from sarek_numba.ir.nodes import (
    COMPARISONS,
    SHIFTS,
    Binary,
    BinOp,
    Const,
    Expr,
    IfExpr,
    Intrinsic,
    Unary,
    UnOp,
    VarRef,
    constant,
)
from sarek_numba.ir.types import BOOL, INT64, Kind, Scalar
from sarek_numba.ir.typing import scalar_of
from sarek_numba.span import Span

Bind = Callable[[Expr], Expr]


def binary(
    op: BinOp, left: Expr, right: Expr, weak: bool, bind: Bind, span: Span | None = None
) -> Expr:
    """A binary operator of typed operands."""
    if op in COMPARISONS:
        return compare(op, left, right, bind, span)
    if op in SHIFTS:
        return Binary(op, left, _count(left, right), weak, span=span)
    return Binary(op, left, right, weak, span=span)


def _count(left: Expr, count: Expr) -> Expr:
    """A shift's count; a small constant takes the type of what is shifted."""
    if isinstance(count, Const) and 0 <= int(count.value) < scalar_of(left).bits:
        return cast(count, scalar_of(left))
    return count


def unary(op: UnOp, operand: Expr, weak: bool, span: Span | None = None) -> Expr:
    """A unary operator; `not` of a number is a comparison with zero."""
    if op is not UnOp.NOT:
        return Unary(op, operand, weak, span=span)
    if scalar_of(operand) is BOOL:
        return negated(operand, span)
    return Binary(BinOp.EQ, operand, constant(scalar_of(operand), 0), span=span)


# --- comparisons ----------------------------------------------------------------------------------


def compare(op: BinOp, left: Expr, right: Expr, bind: Bind, span: Span | None = None) -> Expr:
    """A comparison; two integers of different types compare as mathematical values."""
    ours, theirs = scalar_of(left), scalar_of(right)
    if ours is theirs:
        return Binary(op, left, right, span=span)
    if isinstance(left, Const) and not isinstance(right, Const):
        return compare(_MIRRORED[op], right, left, bind, span)
    if isinstance(right, Const) and converted(ours, right.value) == right.value:
        return Binary(op, left, cast(right, ours), span=span)
    common = _common(ours, theirs)
    if common is not None:
        return Binary(op, cast(left, common), cast(right, common), span=span)
    if theirs is Scalar.UINT64:
        return _signed_with_uint64(op, bind(left), right, span)
    return _signed_with_uint64(_MIRRORED[op], bind(right), left, span)


def _common(left: Scalar, right: Scalar) -> Scalar | None:
    """The smallest integer type that holds the values of both."""
    low, high = min(left.minimum, right.minimum), max(left.maximum, right.maximum)
    for scalar in _INTEGERS:
        if scalar.minimum <= low and high <= scalar.maximum:
            return scalar
    return None


def _signed_with_uint64(op: BinOp, signed: Expr, unsigned: Expr, span: Span | None) -> Expr:
    """Compare a signed integer with a uint64: a negative one is less than any."""
    zero = constant(scalar_of(signed), 0)
    same = Binary(op, cast(signed, Scalar.UINT64), unsigned, span=span)
    if op in (BinOp.LT, BinOp.LE, BinOp.NE):
        return Binary(BinOp.OR, Binary(BinOp.LT, signed, zero, span=span), same, span=span)
    return Binary(BinOp.AND, Binary(BinOp.GE, signed, zero, span=span), same, span=span)


_INTEGERS = tuple(Scalar[f"{sign}{bits}"] for bits in (8, 16, 32, 64) for sign in ("INT", "UINT"))
_MIRRORED = {
    BinOp.EQ: BinOp.EQ,
    BinOp.NE: BinOp.NE,
    BinOp.LT: BinOp.GT,
    BinOp.GT: BinOp.LT,
    BinOp.LE: BinOp.GE,
    BinOp.GE: BinOp.LE,
}


# --- logic ----------------------------------------------------------------------------------------


def choose(condition: Expr, then: Expr, orelse: Expr, span: Span | None = None) -> Expr:
    """A conditional expression, as `and` or `or` where it is one."""
    if isinstance(condition, Const):
        return then if condition.value else orelse
    if scalar_of(then) is not BOOL:
        return IfExpr(condition, then, orelse, span=span)
    if _is(then, True) and _is(orelse, False):
        return condition
    if _is(then, False) and _is(orelse, True):
        return negated(condition, span)
    if _is(orelse, False) or _same(orelse, condition):
        return Binary(BinOp.AND, condition, then, span=span)
    if _is(then, True) or _same(then, condition):
        return Binary(BinOp.OR, condition, orelse, span=span)
    if _is(then, False):
        return Binary(BinOp.AND, negated(condition), orelse, span=span)
    if _is(orelse, True):
        return Binary(BinOp.OR, negated(condition), then, span=span)
    return IfExpr(condition, then, orelse, span=span)


def _is(expr: Expr, value: bool) -> bool:
    return isinstance(expr, Const) and expr.type is BOOL and expr.value is value


def _same(left: Expr, right: Expr) -> bool:
    if isinstance(left, VarRef) and isinstance(right, VarRef):
        return left.var is right.var
    return left is right


# --- functions ------------------------------------------------------------------------------------


def power(
    name: str, base: Expr, exponent: Expr, weak: bool, bind: Bind, span: Span | None = None
) -> Expr:
    """`**`: exact for the constant exponents 0, 1, 2 and (of floats) -1."""
    type = scalar_of(base)
    if isinstance(exponent, Const):
        match exponent.value:
            case 0:
                return constant(type, 1, span)
            case 1:
                return base
            case 2:
                base = bind(base)
                return Binary(BinOp.MUL, base, base, weak, span=span)
            case -1 if type.is_float:
                return Binary(BinOp.DIV, constant(type, 1), base, span=span)
    return Intrinsic((), name, (base, exponent), type, span=span)


def round_digits(value: Expr, digits: int, bind: Bind, span: Span | None = None) -> Expr:
    """`np.round(value, digits)` as NumPy does it: scale, round to even, scale back."""
    type = scalar_of(value)
    if type.kind is not Kind.FLOAT:
        return value
    if digits == 0:
        return Intrinsic((), "rint", (value,), type, span=span)
    scale = constant(type, _ten_to(abs(digits)))
    there, back = (BinOp.MUL, BinOp.DIV) if digits > 0 else (BinOp.DIV, BinOp.MUL)
    scaled = Binary(there, value, scale, span=span)
    return Binary(back, Intrinsic((), "rint", (scaled,), type, span=span), scale, span=span)


def _ten_to(exponent: int) -> float:
    """10 ** exponent with the error that NumPy's has from the 23rd power on."""
    power = 10.0 ** min(exponent, 9)
    for _ in range(9, min(exponent, 310)):
        power *= 10.0
    return power


# --- addresses ------------------------------------------------------------------------------------


def add(left: Expr, right: Expr) -> Expr:
    """A sum of addresses, without additions of zero."""
    if _is_int(left, 0):
        return right
    if _is_int(right, 0):
        return left
    if isinstance(left, Const) and isinstance(right, Const):
        return int64(int(left.value) + int(right.value))
    return Binary(BinOp.ADD, left, right, weak=True)


def subtract(left: Expr, right: Expr) -> Expr:
    """A difference of addresses, without subtractions of zero."""
    if _is_int(right, 0):
        return left
    if isinstance(left, Const) and isinstance(right, Const):
        return int64(int(left.value) - int(right.value))
    if isinstance(right, Const) and int(right.value) < 0:
        return add(left, int64(-int(right.value)))
    return Binary(BinOp.SUB, left, right, weak=True)


def multiply(left: Expr, right: Expr) -> Expr:
    """A product of addresses, without multiplications by one."""
    if _is_int(left, 1):
        return right
    if _is_int(right, 1):
        return left
    if isinstance(left, Const) and isinstance(right, Const):
        return int64(int(left.value) * int(right.value))
    if _is_int(left, 0) or _is_int(right, 0):
        return int64(0)
    return Binary(BinOp.MUL, left, right, weak=True)


def smaller(left: Expr, right: Expr) -> Expr:
    """The smaller of two int64."""
    if isinstance(left, Const) and isinstance(right, Const):
        return left if left.value <= right.value else right
    return Intrinsic((), "min", (left, right), INT64)


def larger(left: Expr, right: Expr) -> Expr:
    """The larger of two int64."""
    if isinstance(left, Const) and isinstance(right, Const):
        return left if left.value >= right.value else right
    return Intrinsic((), "max", (left, right), INT64)


def _is_int(expr: Expr, value: int) -> bool:
    return isinstance(expr, Const) and expr.value == value
