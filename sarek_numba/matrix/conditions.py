"""Conditions of a kernel: turned round, taken apart, and as bounds of indices."""

from __future__ import annotations

from dataclasses import replace

from sarek_numba.ir.nodes import Binary, BinOp, Expr, Unary, UnOp, Var, VarRef
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import walk_exprs
from sarek_numba.matrix.indices import Space
from sarek_numba.matrix.polynomial import ONE, Polynomial, number, symbol
from sarek_numba.matrix.reasons import Reason, Refusal


def variables(expr: Expr) -> list[Var]:
    """The variables in an expression."""
    return [node.var for node in walk_exprs(expr) if isinstance(node, VarRef)]


_INVERSE = {
    BinOp.LT: BinOp.GE,
    BinOp.GE: BinOp.LT,
    BinOp.GT: BinOp.LE,
    BinOp.LE: BinOp.GT,
    BinOp.EQ: BinOp.NE,
    BinOp.NE: BinOp.EQ,
}


def negated(expr: Expr) -> Expr:
    """The opposite of a condition; comparisons of integers are turned round."""
    match expr:
        case Unary(op=UnOp.NOT, operand=operand):
            return operand
        case Binary(op=BinOp.OR, left=left, right=right):
            return Binary(BinOp.AND, negated(left), negated(right), span=expr.span)
        case Binary(op=BinOp.AND, left=left, right=right):
            return Binary(BinOp.OR, negated(left), negated(right), span=expr.span)
        case Binary(op=op, left=left) if op in _INVERSE and _is_integer(left):
            return replace(expr, op=_INVERSE[op])
        case _:
            return Unary(UnOp.NOT, expr, span=expr.span)


def conjuncts(expr: Expr) -> list[Expr]:
    """The conditions that are joined by `and`."""
    match expr:
        case Binary(op=BinOp.AND, left=left, right=right):
            return [*conjuncts(left), *conjuncts(right)]
        case Unary(op=UnOp.NOT, operand=Binary(op=BinOp.OR | BinOp.AND) as operand):
            inner = negated(operand)
            return conjuncts(inner) if inner != expr else [expr]
        case _:
            return [expr]


def _is_integer(expr: Expr) -> bool:
    kind = type_of(expr)
    return isinstance(kind, Scalar) and kind.is_integer


def narrow(space: Space, condition: Expr) -> bool:
    """Narrow the index that a condition is about; False if it is about none.

    Raises Refusal for one that leaves no rectangle.
    """
    space.wide = True
    try:
        found = _differences(space, condition)
    finally:
        space.wide = False
    if found is None:
        return False
    bounds = [_bound(space, space.normal(positive), condition) for positive in found]
    return all(bounds)


def _differences(space: Space, condition: Expr) -> list[Polynomial] | None:
    """The polynomials that are positive where the condition holds; None if it is uniform."""
    if space.is_uniform(condition):
        return None
    match condition:
        case Binary(op=op, left=left, right=right) if op in _INVERSE and _is_integer(left):
            less = space.polynomial(right) - space.polynomial(left)
            match op:
                case BinOp.LT:
                    return [less]
                case BinOp.LE:
                    return [less + ONE]
                case BinOp.GT:
                    return [-less]
                case BinOp.GE:
                    return [ONE - less]
                case BinOp.EQ:
                    return [less + ONE, ONE - less]
    raise Refusal(Reason.GUARD, "it is no bound", span=condition.span)


def _bound(space: Space, positive: Polynomial, condition: Expr) -> bool:
    """Take in that a polynomial is positive."""
    found = sorted(space.iterations(positive))
    if not found:
        return False
    for one in space.symbols.values():  # a flat index below whole rows is a row below their number
        if one.parts is None:
            continue
        flat = symbol(one.parts[0]) * one.parts[2] + symbol(one.parts[1])
        if len(found) > 1 and not space.iterations(positive + space.normal(flat)):
            one.uppers.append(positive + space.normal(flat))
            return True
    factor = positive.coefficient(found[0]).constant
    if len(found) > 1 or factor is None:
        raise Refusal(Reason.GUARD, _names(space, found), span=condition.span)
    rest = positive.without(frozenset(found))
    if factor < 0:  # v * f < rest
        bound = space.floor_divided(rest + number(-factor - 1), number(-factor))
        space.symbols[found[0]].uppers.append(bound)
    else:  # v * f > -rest
        bound = space.floor_divided(-rest, number(factor)) + ONE
        space.symbols[found[0]].lowers.append(bound)
    return True


def _names(space: Space, found: list[int]) -> str:
    return " and ".join(f"'{space.name(one)}'" for one in found)
