"""Uses of range analysis that hold for every target: guards, wraparound, rounding, loop directions.

An operator that never meets its edge becomes `unguarded`. For a shift the edge is the count alone;
bits shifted out of a signed number are no edge. Flooring division of numbers that are not negative
becomes C's, and by a power of two a shift or a mask. A subscript that is never negative does not
wrap. A conversion there and back goes where the value survives it.

Address arithmetic is unguarded by an argument of its own. Every partial sum of
`Subscript(i) * n + Subscript(j)`, or of an offset and subscripts times strides, is the position of
an element of the array, or the distance between two of them, since each subscript is within its
extent: so it is less than the number of elements, which the index type holds.
"""

from __future__ import annotations

from dataclasses import replace

from sarek_numba.ir.nodes import (
    ArrayRead,
    Assign,
    Atomic,
    Binary,
    BinOp,
    Body,
    Cast,
    Const,
    Direction,
    Expr,
    For,
    Intrinsic,
    Kernel,
    LElement,
    Stmt,
    Subscript,
    Unary,
    UnOp,
    VarRef,
    constant,
)
from sarek_numba.ir.types import BOOL, Kind, Scalar
from sarek_numba.ir.typing import scalar_of, type_of
from sarek_numba.ir.walk import (
    expressions_of,
    map_body,
    map_body_expressions,
    map_expr,
    operands,
    rebuild,
    with_expressions,
)
from sarek_numba.passes.common import Target, distinct_nodes, map_bodies
from sarek_numba.passes.interval import TYPE_RANGE, Interval, fits
from sarek_numba.passes.ranges import Ranges, ranges_of

_TRUNCATING = {BinOp.FLOORDIV: BinOp.DIV, BinOp.FLOORMOD: BinOp.MOD}
_ADDRESS_OPERATORS = {BinOp.ADD, BinOp.SUB, BinOp.MUL}
_EDGED = {
    *_ADDRESS_OPERATORS,
    *_TRUNCATING,
    BinOp.DIV,
    BinOp.MOD,
    BinOp.SHL,
    BinOp.SHR,
}


def drop_guards(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with no guard, wraparound or rounding that its ranges make needless."""
    kernel = distinct_nodes(kernel)
    guards = _Guards(ranges_of(kernel))
    return map_bodies(kernel, lambda body: map_body(body, guards.statement))


def open_subscripts(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with every subscript that does not wrap replaced by its index.

    It computes that and nothing else; without its extent, parameters of lengths often have no use.
    """

    def opened(expr: Expr) -> Expr:
        match expr:
            case Subscript(wrap=False, index=index):
                return index
            case _:
                return expr

    def body(body: Body) -> Body:
        return map_body_expressions(body, lambda root: map_expr(root, opened))

    return map_bodies(kernel, body)


def is_address(index: Expr) -> bool:
    """Whether a flat index is subscripts of one array, times and plus what describes its layout."""
    subscripts = 0
    stack = [index]
    while stack:
        expr = stack.pop()
        match expr:
            case Subscript():
                subscripts += 1
            case Binary(op=op, left=left, right=right) if op in _ADDRESS_OPERATORS:
                stack += (left, right)
            case Cast(operand=operand):
                stack.append(operand)
            case VarRef(var=var) if not var.mutable:
                pass
            case Const():
                pass
            case _:
                return False
    return subscripts > 0


class _Guards:
    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges

    # --- statements ---

    def statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Assign(target=LElement(index=index), value=value):
                return with_expressions(stmt, [self.expression(value), self.index(index)])
            case Atomic(index=index):
                rest = expressions_of(stmt)[1:]
                return with_expressions(stmt, [self.index(index), *map(self.expression, rest)])
            case For():
                return self._loop(stmt)
            case _:
                return with_expressions(stmt, [self.expression(e) for e in expressions_of(stmt)])

    def _loop(self, stmt: For) -> For:
        bounds = [self.ranges.of(expr) for expr in (stmt.first, stmt.stop, stmt.step)]
        new = with_expressions(stmt, [self.expression(e) for e in expressions_of(stmt)])
        assert isinstance(new, For)
        _, stop, step = bounds
        if stop is None or step is None:
            return new
        direction = stmt.direction
        if direction is Direction.RUNTIME and step[0] > 0:
            direction = Direction.UPTO
        elif direction is Direction.RUNTIME and step[1] < 0:
            direction = Direction.DOWNTO
        unguarded = stmt.unguarded or _ends_in_range(direction, stop, step, scalar_of(stmt.stop))
        if direction is stmt.direction and unguarded is stmt.unguarded:
            return new
        return replace(new, direction=direction, unguarded=unguarded)

    # --- expressions ---

    def expression(self, expr: Expr) -> Expr:
        if isinstance(expr, ArrayRead):
            return rebuild(expr, [self.index(expr.index)])
        old = operands(expr)
        new = rebuild(expr, [self.expression(operand) for operand in old]) if old else expr
        return self._improved(expr, new)

    def index(self, index: Expr) -> Expr:
        """A flat index of an access."""
        return self._address(index) if is_address(index) else self.expression(index)

    def _address(self, expr: Expr) -> Expr:
        match expr:
            case Binary(op=op, left=left, right=right, weak=weak, span=span):
                new = self._address(left), self._address(right)
                if expr.unguarded and new[0] is left and new[1] is right:
                    return expr
                return Binary(op, *new, weak, True, span=span)
            case Cast(operand=operand):
                return self._improved(expr, rebuild(expr, [self._address(operand)]))
            case _:
                return self.expression(expr)

    def _improved(self, old: Expr, new: Expr) -> Expr:
        """`new`, which is `old` with improved operands, improved by what is known of `old`."""
        match old, new:
            case Binary(op=op), Binary() if op in _EDGED:
                return self._operator(old, new)
            case Unary(op=UnOp.NEG), Unary(unguarded=False) if self.ranges.avoids_edge(old):
                return replace(new, unguarded=True)
            case Subscript(wrap=True), Subscript():
                return self._subscript(old, new)
            case Intrinsic(), Intrinsic():
                return self._intrinsic(old, new)
            case Cast(), Cast(operand=Cast()):
                return self._conversion(old, new)
            case _:
                return new

    def _operator(self, old: Binary, new: Binary) -> Binary:
        x, y = self.ranges.of(old.left), self.ranges.of(old.right)
        if x is None or y is None:
            return new
        unguarded = new.unguarded or self.ranges.avoids_edge(old)
        op = new.op
        if op in _TRUNCATING:
            if x[0] >= 0 and y[0] >= 0:
                op = _TRUNCATING[op]
            elif isinstance(new.right, Const) and y[0] > 0 and y[0] & (y[0] - 1) == 0:
                return _by_power_of_two(new, y[0])
        if op is new.op and unguarded is new.unguarded:
            return new
        return replace(new, op=op, unguarded=unguarded)

    def _subscript(self, old: Subscript, new: Subscript) -> Subscript:
        value = self.ranges.of(old.index)
        extent = self.ranges.of(old.extent)
        if value is None or extent is None:
            return new
        if value[0] >= 0:
            return replace(new, wrap=False)
        if value[1] < 0 and extent[0] >= 0:
            return replace(new, index=_from_the_end(new), wrap=False)
        return new

    def _intrinsic(self, old: Intrinsic, new: Intrinsic) -> Expr:
        known = [self.ranges.of(arg) for arg in old.args]
        match old.name, known:
            case "abs", [(low, _)] if low >= 0:
                return new.args[0]
            case (("min" | "minimum" | "fmin"), [x, y]) if x is not None and y is not None:
                return _chosen(new, x, y)
            case (("max" | "maximum" | "fmax"), [x, y]) if x is not None and y is not None:
                return _chosen(new, y, x)
            case _:
                return new

    def _conversion(self, old: Cast, new: Cast) -> Expr:
        """A conversion by way of a type that holds every value: that type does not matter."""
        assert isinstance(new.operand, Cast)
        inner = new.operand
        if not isinstance(old.operand, Cast) or inner.type.is_float or inner.type is BOOL:
            return new
        value = self.ranges.of(old.operand.operand)
        if value is None or not fits(value, inner.type):
            return new
        if type_of(inner.operand) is new.type:
            return inner.operand
        return Cast(new.type, inner.operand, new.weak, span=new.span)


def _chosen(call: Intrinsic, x: Interval, y: Interval) -> Expr:
    """The first operand of a call where x <= y always, the second where y <= x always."""
    first, second = call.args
    if x[1] <= y[0]:
        return first
    return second if y[1] <= x[0] else call


def _by_power_of_two(expr: Binary, divisor: int) -> Binary:
    """Flooring division by 2^k: the arithmetic shift; its remainder: the low bits."""
    kind = scalar_of(expr.left)
    if expr.op is BinOp.FLOORDIV:
        count = constant(kind, divisor.bit_length() - 1, expr.right.span)
        return Binary(BinOp.SHR, expr.left, count, expr.weak, True, span=expr.span)
    mask = constant(kind, divisor - 1, expr.right.span)
    return Binary(BinOp.BITAND, expr.left, mask, expr.weak, span=expr.span)


def _from_the_end(subscript: Subscript) -> Expr:
    """An index known to be negative, plus the extent."""
    index, extent = subscript.index, subscript.extent
    if isinstance(index, Const) and index.value > index.type.minimum:
        back = constant(index.type, -index.value, index.span)
        return Binary(BinOp.SUB, extent, back, unguarded=True, span=index.span)
    return Binary(BinOp.ADD, extent, index, unguarded=True, span=index.span)


def _ends_in_range(direction: Direction, stop: Interval, step: Interval, kind: Scalar) -> bool:
    """Whether a loop's variable plus a step stays in its type after the last pass."""
    least, most = TYPE_RANGE[kind]
    if kind.kind is Kind.UNSIGNED and direction is not Direction.UPTO:
        return False
    up = stop[1] - 1 + max(step[1], 0) <= most
    down = stop[0] + 1 + min(step[0], 0) >= least
    match direction:
        case Direction.UPTO:
            return up
        case Direction.DOWNTO:
            return down
        case Direction.RUNTIME:
            return up and down
