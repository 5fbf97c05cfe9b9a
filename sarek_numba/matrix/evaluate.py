"""The value of an expression of a product, by `ir.semantics`: of one number or of many at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import (
    ArrayRead,
    Binary,
    BinOp,
    Cast,
    Const,
    Expr,
    IfExpr,
    Index,
    Intrinsic,
    Subscript,
    Unary,
    VarRef,
)
from sarek_numba.ir.semantics import Lanes
from sarek_numba.ir.types import INT64, Scalar
from sarek_numba.ir.typing import type_of

Leaf = Callable[[Expr], Lanes]


def evaluate(expr: Expr, leaf: Leaf) -> Lanes:
    """The value where `leaf` gives that of variables, coordinates and elements of arrays.

    Both sides of a choice are evaluated. Raises KeyError for what has no value.
    """
    match expr:
        case Const():
            return semantics.as_lane(expr)
        case VarRef() | Index() | ArrayRead():
            return leaf(expr)
        case Subscript(index=index):
            return evaluate(index, leaf)
        case Cast(type=kind, operand=operand):
            return semantics.cast(_scalar(operand), kind)(evaluate(operand, leaf))
        case Unary(op=op, operand=operand):
            return semantics.unary(op, _scalar(operand))(evaluate(operand, leaf))
        case Binary(op=op, left=left, right=right):
            function = semantics.binary(op, _scalar(left))
            return function(evaluate(left, leaf), evaluate(right, leaf))
        case IfExpr(condition=condition, then=then, orelse=orelse):
            chosen = evaluate(condition, leaf)
            return np.where(chosen, evaluate(then, leaf), evaluate(orelse, leaf))
        case Intrinsic(name=name, args=args, type=kind):
            function = semantics.intrinsic(name, _scalar(args[0]), kind)
            return function(*(evaluate(arg, leaf) for arg in args))
        case _:
            raise KeyError(type(expr).__name__)


def integer(expr: Expr, leaf: Leaf) -> int:
    """The value of an int64 expression, without wrapping where it is of sums and products."""
    match expr:
        case Const(value=value):
            return int(value)
        case Binary(op=BinOp.ADD, left=left, right=right) if _scalar(left) is INT64:
            return integer(left, leaf) + integer(right, leaf)
        case Binary(op=BinOp.MUL, left=left, right=right) if _scalar(left) is INT64:
            return integer(left, leaf) * integer(right, leaf)
        case Intrinsic(name="min", args=(left, right)):
            return min(integer(left, leaf), integer(right, leaf))
        case Intrinsic(name="max", args=(left, right)):
            return max(integer(left, leaf), integer(right, leaf))
        case Cast(operand=VarRef() as operand) if expr.type is INT64:
            return int(leaf(operand).flat[0])
        case _:
            return int(evaluate(expr, leaf).flat[0])


def _scalar(expr: Expr) -> Scalar:
    kind = type_of(expr)
    if not isinstance(kind, Scalar):
        raise KeyError(kind)
    return kind
