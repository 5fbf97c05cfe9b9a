"""The alpha and beta of C = alpha * (A @ B) + beta * C, where a kernel is one of these."""

from __future__ import annotations

from sarek_numba.ir.nodes import Binary, BinOp, Const, Expr, Var, VarRef, constant
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.walk import walk_exprs


def scaling(
    start: Expr, factor: Expr | None, epilogue: Expr, result: Var, before: Var
) -> tuple[Expr | None, Expr | None]:
    """Alpha and beta, both or neither: other epilogues have none.

    The result is multiplied by the epilogue's factor, so what the sum starts with is too.
    """
    kind = result.type
    assert isinstance(kind, Scalar)
    if before.type is not kind:
        return None, None
    one, zero = constant(kind, 1), constant(kind, 0)
    first, rest = _linear(start, before, before), _linear(epilogue, result, before)
    if first is None or rest is None or rest[0] is None:
        return None, None
    alpha = _times(rest[0], factor or one)
    if first[0] is None:
        return alpha, rest[1] or zero
    return (alpha, _times(rest[0], first[0])) if rest[1] is None else (None, None)


def _linear(expr: Expr, first: Var, second: Var) -> tuple[Expr | None, Expr | None] | None:
    """The factors of two variables in their sum; None if it is something else, zero aside."""
    found: dict[int, Expr | None] = {first.id: None, second.id: None}
    stack = [expr]
    while stack:
        part = stack.pop()
        if isinstance(part, Binary) and part.op is BinOp.ADD:
            stack += [part.left, part.right]
            continue
        if isinstance(part, Const) and part.value == 0:
            continue
        of = next((var for var in (first, second) if _mentions(part, var)), None)
        factor = None if of is None else _factor(part, of)
        if of is None or factor is None or found[of.id] is not None:
            return None
        found[of.id] = factor
    return found[first.id], found[second.id]


def _factor(expr: Expr, of: Var) -> Expr | None:
    """What a variable is multiplied by, if the expression is such a product."""
    assert isinstance(of.type, Scalar)
    if expr == VarRef(of):
        return constant(of.type, 1)
    match expr:
        case Binary(op=BinOp.MUL, left=left, right=right):
            for inner, by in ((left, right), (right, left)):
                factor = _factor(inner, of)
                if factor is not None and not _mentions(by, of):
                    return _times(factor, by)
    return None


def _times(left: Expr, right: Expr) -> Expr:
    if isinstance(left, Const) and left.value == 1:
        return right
    if isinstance(right, Const) and right.value == 1:
        return left
    return Binary(BinOp.MUL, left, right)


def _mentions(expr: Expr, var: Var) -> bool:
    return any(node == VarRef(var) for node in walk_exprs(expr))
