"""What conditions say about the difference of two variables, for `passes.ranges`.

`if t >= offset: … a[t - offset]` is in bounds below although neither interval alone says so. A fact
is an interval of `left - right`, kept in the `State` beside the intervals of variables, so branches
and joins treat both alike. Its key holds an epoch of each variable, which every binding and every
pass of a loop that assigns it advances: a fact about an old value is never found again.
"""

from __future__ import annotations

from collections.abc import Callable

from sarek_numba.ir.nodes import BinOp, Cast, Expr, Index, Var, VarRef
from sarek_numba.passes.interval import TYPE_RANGE, Interval, fits
from sarek_numba.passes.state import Key, State, coordinate_key

_FURTHEST = 2**70  # beyond every difference of two values of 64 bits
_LEAST = {BinOp.LT: 1, BinOp.LE: 0}


class Differences:
    """Facts of one body; `evaluate` gives the interval of an expression in the present state."""

    def __init__(self, state: State, evaluate: Callable[[Expr], Interval | None]) -> None:
        self._state = state
        self._evaluate = evaluate
        self._epochs: dict[int, int] = {}

    def forget(self, var: Var) -> None:
        """The variable has a new value."""
        self._epochs[var.id] = self._epochs.get(var.id, 0) + 1

    def learn(self, op: BinOp, left: Expr, right: Expr) -> None:
        """`left op right` holds in the present state; `op` is LT, LE or EQ."""
        key = self._key(right, left)
        if key is None:
            return
        if op is BinOp.EQ:
            self._state.set(key, (0, 0))
            return
        known = self._state.get(key) or (-_FURTHEST, _FURTHEST)
        self._state.set(key, (max(known[0], _LEAST[op]), known[1]))

    def between(self, left: Expr, right: Expr) -> Interval | None:
        """What is known of `left - right` beyond the intervals of the two."""
        key, mirrored = self._key(left, right), self._key(right, left)
        if key is None or mirrored is None:
            return None
        low, high = self._state.get(key) or (-_FURTHEST, _FURTHEST)
        other = self._state.get(mirrored)
        if other is not None:
            low, high = max(low, -other[1]), min(high, -other[0])
        return None if (low, high) == (-_FURTHEST, _FURTHEST) else (low, high)

    def _key(self, left: Expr, right: Expr) -> Key | None:
        one, two = self._term(left), self._term(right)
        return None if one is None or two is None else (one, two)

    def _term(self, expr: Expr) -> tuple[int, int] | None:
        """What names a variable's present value or a coordinate, seen through exact conversions."""
        match expr:
            case VarRef(var=var):
                return (var.id, self._epochs.get(var.id, 0))
            case Index():
                return (coordinate_key(expr), 0)
            case Cast(type=target, operand=operand) if target in TYPE_RANGE:
                value = self._evaluate(operand)
                return self._term(operand) if value is not None and fits(value, target) else None
            case _:
                return None
