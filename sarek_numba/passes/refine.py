"""What a condition that holds, or does not, says about the variables in it.

`Refiner.assume` narrows the state and tells whether the condition can be so at all. It looks
through logical operators, comparisons of integers, conversions that keep the value, sums and
differences that do not wrap, and bool variables bound to a condition that cannot have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sarek_numba.ir.nodes import (
    COMPARISONS,
    Binary,
    BinOp,
    Cast,
    Const,
    Expr,
    Index,
    Unary,
    UnOp,
    VarRef,
)
from sarek_numba.ir.types import BOOL, Scalar
from sarek_numba.ir.walk import walk_exprs
from sarek_numba.passes.common import Types
from sarek_numba.passes.differences import Differences
from sarek_numba.passes.interval import TYPE_RANGE, Interval, fits
from sarek_numba.passes.state import State, coordinate_key

_NEGATED = {
    BinOp.EQ: BinOp.NE,
    BinOp.NE: BinOp.EQ,
    BinOp.LT: BinOp.GE,
    BinOp.GE: BinOp.LT,
    BinOp.GT: BinOp.LE,
    BinOp.LE: BinOp.GT,
}
_MIRRORED = {BinOp.GT: BinOp.LT, BinOp.GE: BinOp.LE}


def is_stable(expr: Expr) -> bool:
    """Whether an expression keeps its value wherever it is in scope."""
    for node in walk_exprs(expr):
        match node:
            case VarRef(var=var) if not var.mutable:
                pass
            case Const() | Index() | Binary() | Unary() | Cast():
                pass
            case _:
                return False
    return True


@dataclass(slots=True)
class Refiner:
    """`evaluate` gives the interval of an expression in `state`, `definitions` what bools are."""

    state: State
    evaluate: Callable[[Expr], Interval | None]
    types: Types
    definitions: dict[int, Expr]
    differences: Differences
    zeros: dict[Scalar, Const] = field(default_factory=dict)

    def assume(self, expr: Expr, truth: bool) -> bool:
        """Narrow the state to where `expr` is `truth`; False if that cannot be."""
        match expr:
            case Const(bits=bits):
                return bool(bits) is truth
            case Unary(op=UnOp.NOT | UnOp.BITNOT, operand=operand):
                return self.assume(operand, not truth)
            case Binary(op=BinOp.AND | BinOp.BITAND, left=left, right=right):
                return self._assume_both(left, right) if truth else True
            case Binary(op=BinOp.OR | BinOp.BITOR, left=left, right=right):
                return True if truth else self.assume(left, False) and self.assume(right, False)
            case Binary(op=op, left=left, right=right) if op in COMPARISONS:
                return self._assume_comparison(op if truth else _NEGATED[op], left, right)
            case Cast(operand=operand):
                return self._assume_nonzero(operand, truth)
            case VarRef(var=var):
                if not self.constrain(expr, (int(truth), int(truth))):
                    return False
                definition = self.definitions.get(var.id)
                return definition is None or self.assume(definition, truth)
            case _:
                value = self.evaluate(expr)
                return value is None or value[0] <= int(truth) <= value[1]

    def _assume_both(self, left: Expr, right: Expr) -> bool:
        return self.assume(left, True) and self.assume(right, True)

    def _assume_nonzero(self, operand: Expr, truth: bool) -> bool:
        kind = self.types.of(operand)
        if kind is BOOL:
            return self.assume(operand, truth)
        if not isinstance(kind, Scalar) or kind.is_float:
            return True
        op = BinOp.NE if truth else BinOp.EQ
        return self._assume_comparison(op, operand, self._zero(kind))

    def _zero(self, kind: Scalar) -> Const:
        """One node for each type, which lives as long as facts about it."""
        return self.zeros.setdefault(kind, Const(kind, 0))

    def _assume_comparison(self, op: BinOp, left: Expr, right: Expr) -> bool:
        if op in _MIRRORED:
            return self._assume_comparison(_MIRRORED[op], right, left)
        x, y = self.evaluate(left), self.evaluate(right)
        if x is None or y is None:
            return True
        match op:
            case BinOp.LT:
                bounds = (x[0], y[1] - 1), (x[0] + 1, y[1])
            case BinOp.LE:
                bounds = (x[0], y[1]), (x[0], y[1])
            case BinOp.EQ:
                bounds = y, x
            case _:
                bounds = _without(x, y), _without(y, x)
        if op is not BinOp.NE:
            self.differences.learn(op, left, right)
        return self.constrain(left, bounds[0]) and self.constrain(right, bounds[1])

    def constrain(self, expr: Expr, bounds: Interval) -> bool:
        """Narrow the state to where the value of `expr` is within `bounds`."""
        value = self.evaluate(expr)
        if value is None:
            return True
        new = (max(value[0], bounds[0]), min(value[1], bounds[1]))
        if new[0] > new[1]:
            return False
        if new == value:
            return True
        match expr:
            case VarRef(var=var):
                self.state.set(var.id, new)
            case Index():
                self.state.set(coordinate_key(expr), new)
            case Cast(type=target, operand=operand):
                inner = self.evaluate(operand)
                if target is not BOOL and inner is not None and fits(inner, target):
                    return self.constrain(operand, new)
            case Binary(op=BinOp.ADD | BinOp.SUB as op, left=left, right=right):
                return self._constrain_sum(op, left, right, new)
            case _:
                pass
        return True

    def _constrain_sum(self, op: BinOp, left: Expr, right: Expr, new: Interval) -> bool:
        x, y = self.evaluate(left), self.evaluate(right)
        kind = self.types.of(left)
        assert x is not None
        assert y is not None
        assert isinstance(kind, Scalar)
        exact = (x[0] + y[0], x[1] + y[1]) if op is BinOp.ADD else (x[0] - y[1], x[1] - y[0])
        if not fits(exact, kind):
            return True
        if op is BinOp.ADD:
            bounds = (new[0] - y[1], new[1] - y[0]), (new[0] - x[1], new[1] - x[0])
        else:
            bounds = (new[0] + y[0], new[1] + y[1]), (x[0] - new[1], x[1] - new[0])
        return self.constrain(left, bounds[0]) and self.constrain(right, bounds[1])


def _without(x: Interval, y: Interval) -> Interval:
    """x without the single value of y, where that is an end of x; empty if nothing stays."""
    if y[0] != y[1]:
        return x
    return (x[0] + (x[0] == y[0]), x[1] - (x[1] == y[0]))


def type_interval(kind: object) -> Interval | None:
    """All values of an integer type or bool; None for any other type."""
    return TYPE_RANGE.get(kind) if isinstance(kind, Scalar) else None
