"""The interval of an expression in a state, for `passes.ranges`.

Every node evaluated leaves its interval in `Ranges.facts`, joined over all visits, and its id in
`Ranges.edges` if it may meet its edge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sarek_numba.ir.nodes import (
    COMPARISONS,
    LOGICAL,
    App,
    ArrayLen,
    Binary,
    BinOp,
    Cast,
    Const,
    Coordinate,
    Expr,
    IfExpr,
    Index,
    Intrinsic,
    Kernel,
    Subscript,
    Unary,
    Var,
    VarRef,
)
from sarek_numba.ir.types import BOOL, Scalar
from sarek_numba.ir.walk import operands
from sarek_numba.passes import interval
from sarek_numba.passes.common import Types
from sarek_numba.passes.differences import Differences
from sarek_numba.passes.interval import EITHER, FALSE, TRUE, TYPE_RANGE, Interval, hull
from sarek_numba.passes.refine import type_interval
from sarek_numba.passes.state import State, coordinate_key

# A launch has at most 2^31 - 1 blocks along an axis and as many threads in a block. With 32-bit
# indices it also has fewer than 2^31 threads along each axis.
_MOST = 2**31 - 1
_MOST_THREADS = {32: _MOST, 64: 2**62}


def _coordinates(index_bits: int) -> dict[Coordinate, Interval]:
    threads = _MOST_THREADS[index_bits]
    return {
        Coordinate.THREAD_IDX: (0, _MOST - 1),
        Coordinate.BLOCK_IDX: (0, _MOST - 1),
        Coordinate.BLOCK_DIM: (1, _MOST),
        Coordinate.GRID_DIM: (1, _MOST),
        Coordinate.GLOBAL_IDX: (0, threads - 1),
        Coordinate.GRID_SIZE: (1, threads),
    }


# Products and sums of coordinates that are bounded as a whole: the place of a block's first thread
# is called BLOCK_START.
BLOCK_START = "block_start"
Place = tuple[Coordinate | str, int]
_PRODUCTS: dict[frozenset[Coordinate | str], Coordinate | str] = {
    frozenset({Coordinate.BLOCK_IDX, Coordinate.BLOCK_DIM}): BLOCK_START,
    frozenset({Coordinate.GRID_DIM, Coordinate.BLOCK_DIM}): Coordinate.GRID_SIZE,
}
_SUMS: dict[frozenset[Coordinate | str], Coordinate | str] = {
    frozenset({BLOCK_START, Coordinate.THREAD_IDX}): Coordinate.GLOBAL_IDX,
}


class Facts(Protocol):
    """`passes.ranges.Ranges`, of which this module fills two fields."""

    kernel: Kernel
    facts: dict[int, Interval]
    edges: set[int]
    values: dict[int, Interval]


class Evaluator:
    """`assume` narrows the state by a condition, `call` interprets a helper."""

    def __init__(
        self,
        state: State,
        ranges: Facts,
        assume: Callable[[Expr, bool], bool],
        call: Callable[[str, tuple[Expr, ...]], Interval | None],
        types: Types,
    ) -> None:
        self.state = state
        self.ranges = ranges
        self.assume = assume
        self.call = call
        self.index_bits = ranges.kernel.index_bits
        self.coordinates = _coordinates(self.index_bits)
        self.places: dict[int, Place] = {}  # by identity of a node
        self.named: dict[int, Place] = {}  # by id of a variable
        self.latest: dict[int, tuple[int, Interval | None]] = {}
        self.constants: dict[int, Interval] = {}
        self.types = types
        self.differences = Differences(state, self.evaluate)

    def evaluate(self, expr: Expr) -> Interval | None:
        """Every value `expr` has in the present state; None if it is no integer and no bool."""
        key = id(expr)
        if isinstance(expr, Const):
            return self._constant(expr, key)
        version = self.state.version
        latest = self.latest.get(key)
        if latest is not None and latest[0] == version:
            return latest[1]
        result = self._evaluate(expr)
        if self.state.version == version:
            self.latest[key] = (version, result)
        if result is not None:
            known = self.ranges.facts.get(key)
            self.ranges.facts[key] = result if known is None else hull(known, result)
        return result

    def _constant(self, expr: Const, key: int) -> Interval | None:
        if key not in self.constants:
            if expr.type.is_float:
                return None
            self.constants[key] = (int(expr.value), int(expr.value))
        return self.constants[key]

    def _scalar(self, expr: Expr) -> Scalar:
        kind = self.types.of(expr)
        assert isinstance(kind, Scalar)
        return kind

    def _evaluate(self, expr: Expr) -> Interval | None:
        match expr:
            case VarRef(var=var):
                return self._variable(expr, var)
            case Binary(op=op):
                return self._logical(expr) if op in LOGICAL else self._binary(expr)
            case Cast(type=target, operand=operand):
                value = self.evaluate(operand)
                self._same_place(expr, operand)
                if target.is_float:
                    return None
                return TYPE_RANGE[target] if value is None else interval.cast(value, target)
            case Index():
                return self._coordinate(expr)
            case Subscript():
                return self._subscript(expr)
            case Unary(op=op, operand=operand):
                value = self.evaluate(operand)
                if value is None:
                    return None
                result, edge = interval.unary(op, value, self._scalar(operand))
                if edge:
                    self.ranges.edges.add(id(expr))
                return result
            case Intrinsic(name=name, args=args, type=result_type):
                values = [self.evaluate(arg) for arg in args]
                known = tuple(value for value in values if value is not None)
                if result_type.is_float:
                    return None
                if len(known) < len(values):
                    return TYPE_RANGE[result_type]
                return interval.intrinsic(name, known, result_type)
            case IfExpr():
                return self._conditional(expr)
            case ArrayLen():
                return (0, 2 ** (self.index_bits - 1) - 1)
            case App(function=function, args=args, type=kind):
                return self.call(function, args) or type_interval(kind)
            case _:
                for operand in operands(expr):
                    self.evaluate(operand)
                return type_interval(self.types.of(expr))

    def _variable(self, expr: VarRef, var: Var) -> Interval | None:
        whole = type_interval(var.type)
        if whole is None:
            return None
        if not var.mutable and var.id in self.named:
            self.places[id(expr)] = self.named[var.id]
        known = self.state.get(var.id)
        if known is None and not var.mutable:
            known = self.ranges.values.get(var.id)
        return known or whole

    def _binary(self, expr: Binary) -> Interval | None:
        x, y = self.evaluate(expr.left), self.evaluate(expr.right)
        if x is None or y is None:
            return EITHER if expr.op in COMPARISONS else None
        scalar = self._scalar(expr.left)
        if expr.op is BinOp.SUB:
            known = self.differences.between(expr.left, expr.right)
            if known is not None:
                exact = (max(x[0] - y[1], known[0]), min(x[1] - y[0], known[1]))
                if exact[0] <= exact[1] and interval.fits(exact, scalar):
                    return exact
        result, edge = interval.binary(expr.op, x, y, scalar)
        place = self._combined_place(expr)
        if place is not None and interval.fits(self._place_range(place), scalar):
            self.places[id(expr)] = place
            low, high = self._place_range(place)
            return (max(low, result[0]), min(high, result[1]))
        if edge:
            self.ranges.edges.add(id(expr))
        return result

    def _logical(self, expr: Binary) -> Interval:
        x = self.evaluate(expr.left) or EITHER
        settled = FALSE if expr.op is BinOp.AND else TRUE
        self.state.push()
        reached = self.assume(expr.left, expr.op is BinOp.AND)
        y = (self.evaluate(expr.right) or EITHER) if reached else None
        self.state.pop()
        if y is None:
            return settled
        return interval.binary(expr.op, x, y, BOOL)[0]

    def _conditional(self, expr: IfExpr) -> Interval | None:
        self.evaluate(expr.condition)
        found: list[Interval | None] = []
        for truth, side in ((True, expr.then), (False, expr.orelse)):
            self.state.push()
            if self.assume(expr.condition, truth):
                found.append(self.evaluate(side))
            self.state.pop()
        whole = type_interval(self.types.of(expr.then))
        values = [value for value in found if value is not None]
        if whole is None or not values or len(values) < len(found):
            return whole
        return values[0] if len(values) == 1 else hull(*values)

    def _subscript(self, expr: Subscript) -> Interval | None:
        index, extent = self.evaluate(expr.index), self.evaluate(expr.extent)
        if index is None or extent is None:
            return None
        last = max(extent[1] - 1, 0)
        if index[0] >= 0:
            return (min(index[0], last), min(index[1], last))
        return (0, last)

    # --- the launch ---

    def _coordinate(self, expr: Index) -> Interval:
        self.places[id(expr)] = (expr.coordinate, expr.axis)
        known = self.state.get(coordinate_key(expr)) or self.coordinates[expr.coordinate]
        return known if interval.fits(known, expr.type) else TYPE_RANGE[expr.type]

    def name_place(self, var: Var, value: Expr) -> None:
        """An immutable variable is bound to a value just evaluated."""
        place = self.places.get(id(value))
        if place is not None:
            self.named[var.id] = place

    def _same_place(self, expr: Cast, operand: Expr) -> None:
        place = self.places.get(id(operand))
        if place is None or expr.type.is_float:
            return
        if interval.fits(self._place_range(place), expr.type):
            self.places[id(expr)] = place

    def _place_range(self, place: Place) -> Interval:
        kind, _ = place
        if isinstance(kind, Coordinate):
            return self.coordinates[kind]
        return self.coordinates[Coordinate.GLOBAL_IDX]

    def _combined_place(self, expr: Binary) -> Place | None:
        table = {BinOp.MUL: _PRODUCTS, BinOp.ADD: _SUMS}.get(expr.op)
        if table is None:
            return None
        left, right = self.places.get(id(expr.left)), self.places.get(id(expr.right))
        if left is None or right is None or left[1] != right[1]:
            return None
        kind = table.get(frozenset({left[0], right[0]}))
        return None if kind is None else (kind, left[1])
