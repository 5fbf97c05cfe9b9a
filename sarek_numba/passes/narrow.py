"""Weak ints in 32 bits, for a target whose addresses have 32.

An int64 expression is computed in int32 where that gives the same kernel:

- Its every value fits int32 (`passes.ranges`). Sums, products and bit operations are then right
  modulo 2^32, whatever their operands; other operators need operands that fit as well.
- It is only an index. A valid index of an array of fewer than 2^31 elements fits int32 (a negative
  one that wraps does too), and is therefore right if it is right modulo 2^32.

A variable becomes int32 if every value fits, or if nothing but its value modulo 2^32 is ever looked
at: it flows into indices, into conversions to 32 bits or fewer, and into variables of that kind.
With `index_bits` 64 arrays may be longer, and only the first argument holds.
"""

from __future__ import annotations

from dataclasses import replace

from sarek_numba.ir.nodes import (
    COMPARISONS,
    App,
    ArrayRead,
    Assign,
    Atomic,
    Binary,
    BinOp,
    Body,
    Cast,
    Const,
    Expr,
    For,
    IfExpr,
    Index,
    Intrinsic,
    Kernel,
    LElement,
    Let,
    LetMut,
    LVar,
    Stmt,
    Subscript,
    Unary,
    UnOp,
    Var,
    VarRef,
    constant,
)
from sarek_numba.ir.types import BOOL, INT32, INT64, ElementType, Kind, Scalar
from sarek_numba.ir.walk import (
    bodies_of_kernel,
    expressions_of,
    map_body,
    operands,
    rebuild,
    walk_stmts,
    with_expressions,
)
from sarek_numba.passes.common import Target, Types, distinct_nodes
from sarek_numba.passes.interval import fits
from sarek_numba.passes.ranges import Ranges, ranges_of

# Right modulo 2^32 if their operands are, as is the flooring remainder by a power of two.
_RING = {BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR}
_SUMS = {BinOp.ADD, BinOp.SUB, BinOp.MUL}
# Right if their operands fit; a count beyond 31 gives what it gives in 64 bits.
_EXACT = {BinOp.DIV, BinOp.MOD, BinOp.FLOORDIV, BinOp.FLOORMOD, BinOp.SHR}
_EXACT_FUNCTIONS = {"abs", "min", "max", "minimum", "maximum", "fmin", "fmax"}


def narrow(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with weak ints in int32 where a 32-bit target may have them so."""
    if target.address_bits != 32:
        return kernel
    kernel = distinct_nodes(kernel)
    ranges = ranges_of(kernel)
    demand = _Demand(kernel, ranges)
    narrowing = _Narrowing(ranges, demand, demand.narrow_variables())
    helpers = tuple(
        replace(helper, body=narrowing.body(helper.body)) for helper in kernel.functions
    )
    return replace(kernel, body=narrowing.body(kernel.body), functions=helpers)


# --- what is looked at ----------------------------------------------------------------------------


class _Demand:
    """Which variables are looked at modulo 2^32 alone, apart from those that fit."""

    def __init__(self, kernel: Kernel, ranges: Ranges) -> None:
        self.ranges = ranges
        self.indices_fit = kernel.index_bits == 32
        self.types = Types()
        self.candidates: dict[int, Var] = {}
        self.wide: set[int] = set()  # looked at as a whole
        self.flows: dict[int, set[int]] = {}  # from the values of a variable: those it is made of
        bodies = bodies_of_kernel(kernel)
        for body in bodies:
            for stmt in walk_stmts(body):
                self._statement(stmt)

    def narrow_variables(self) -> set[int]:
        fitting = {id for id, var in self.candidates.items() if self._variable_fits(var)}
        waiting = [id for id in (*self.flows, *self.wide) if id not in fitting]
        waiting = [id for id in waiting if id in self.wide or id not in self.candidates]
        wide = set(waiting)
        while waiting:
            for source in self.flows.get(waiting.pop(), ()):
                if source not in wide and source not in fitting:
                    wide.add(source)
                    waiting.append(source)
        return {id for id in self.candidates if id not in wide}

    def _variable_fits(self, var: Var) -> bool:
        value = self.ranges.of_variable(var)
        return value is not None and fits(value, INT32)

    def fits(self, expr: Expr) -> bool:
        value = self.ranges.of(expr)
        return value is not None and fits(value, INT32)

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Assign(target=LVar(var=var), value=value):
                self._bind(var, value)
            case Let(var=var, value=value):
                self._declare(var)
                self._bind(var, value)
            case LetMut(var=var, value=optional):
                self._declare(var)
                if optional is not None:
                    self._bind(var, optional)
            case Assign(target=LElement(index=index), value=value):
                self._index(index)
                self._whole(value)
            case Atomic(index=index):
                self._index(index)
                for expr in expressions_of(stmt)[1:]:
                    self._whole(expr)
            case For(var=var):
                self._loop(stmt, var)
            case _:
                for expr in expressions_of(stmt):
                    self._whole(expr)

    def _bind(self, var: Var, value: Expr) -> None:
        if var.type is INT64:
            self._look(value, self.flows.setdefault(var.id, set()))
        else:
            self._whole(value)

    def _declare(self, var: Var) -> None:
        if var.type is INT64:
            self.candidates[var.id] = var

    def _loop(self, stmt: For, var: Var) -> None:
        bounds = (stmt.first, stmt.stop, stmt.step)
        for expr in bounds:
            self._whole(expr)
        if all(self.fits(expr) for expr in bounds):
            self._declare(var)

    def _index(self, index: Expr) -> None:
        if self.indices_fit and self.types.of(index) is INT64:
            self._look(index, set())
        else:
            self._whole(index)

    def _whole(self, expr: Expr) -> None:
        self._look(expr, self.wide)

    def _look(self, expr: Expr, sink: set[int]) -> None:
        """Note what is looked at in `expr`; `sink` takes the variables that its value needs."""
        if self.types.of(expr) is INT64 and self.fits(expr):
            sink = set()
        match expr:
            case VarRef(var=var):
                sink.add(var.id)
            case Binary(left=left, right=right) if _is_ring(expr):
                self._look(left, sink)
                self._look(right, sink)
            case Binary(op=BinOp.SHL, left=left, right=Const() as count) if _in_range(count):
                self._look(left, sink)
            case Unary(op=UnOp.NEG | UnOp.BITNOT, operand=operand):
                self._look(operand, sink)
            case IfExpr(condition=condition, then=then, orelse=orelse):
                self._whole(condition)
                self._look(then, sink)
                self._look(orelse, sink)
            case Cast(operand=operand) if takes_low_bits(expr, self.types):
                self._look(operand, set())
            case Subscript(index=index, extent=extent):
                self._index(index)
                self._index(extent)
            case ArrayRead(index=index):
                self._index(index)
            case _:
                for operand in operands(expr):
                    self._whole(operand)


def _is_ring(expr: Binary) -> bool:
    """Whether the operator is right modulo 2^32 if its operands are."""
    if expr.op is BinOp.FLOORMOD and isinstance(expr.right, Const):
        divisor = int(expr.right.value)
        return 0 < divisor <= INT32.maximum and divisor & (divisor - 1) == 0
    return expr.op in _RING


def _in_range(count: Const) -> bool:
    return 0 <= count.value < INT32.bits


def takes_low_bits(expr: Cast, types: Types) -> bool:
    """Whether a conversion from int64 depends on the low 32 bits alone."""
    if expr.type.kind not in (Kind.SIGNED, Kind.UNSIGNED) or expr.type.bits > INT32.bits:
        return False
    return types.of(expr.operand) is INT64


# --- the new expressions --------------------------------------------------------------------------


class _Narrowing:
    """`same` gives an expression of the same type, `low` an int32 equal to an int64 modulo 2^32."""

    def __init__(self, ranges: Ranges, demand: _Demand, variables: set[int]) -> None:
        self.ranges = ranges
        self.demand = demand
        self.variables = variables
        self.indices_fit = demand.indices_fit
        self.types = demand.types

    def body(self, body: Body) -> Body:
        return map_body(body, self._statement)

    def _statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Let(var=var, value=value) if var.id in self.variables:
                return replace(stmt, var=_narrow(var), value=self.low(value))
            case LetMut(var=var, value=optional) if var.id in self.variables:
                first = None if optional is None else self.low(optional)
                return replace(stmt, var=_narrow(var), value=first)
            case Assign(target=LVar(var=var), value=value) if var.id in self.variables:
                return Assign(LVar(_narrow(var)), self.low(value), span=stmt.span)
            case Assign(target=LElement(index=index), value=value):
                return with_expressions(stmt, [self.same(value), self._index(index)])
            case Atomic(index=index):
                rest = expressions_of(stmt)[1:]
                return with_expressions(stmt, [self._index(index), *map(self.same, rest)])
            case For(var=var) if var.id in self.variables:
                bounds = [self.low(expr) for expr in expressions_of(stmt)]
                new = with_expressions(stmt, bounds)
                assert isinstance(new, For)
                return replace(new, var=_narrow(var), unguarded=False)
            case _:
                return with_expressions(stmt, [self.same(e) for e in expressions_of(stmt)])

    def _index(self, index: Expr) -> Expr:
        if self.types.of(index) is not INT64:
            return self.same(index)
        if self.indices_fit or self.demand.fits(index):
            return self.low(index)
        return self.same(index)

    def same(self, expr: Expr) -> Expr:
        """`expr`, of its own type, with what is within it narrowed."""
        match expr:
            case Const():
                return expr
            case Cast(operand=operand) if takes_low_bits(expr, self.types):
                return _converted(expr, self.low(operand))
            case Cast(operand=operand) if self.types.of(operand) is INT64 and self._fits(operand):
                return _converted(expr, self.low(operand))
            case Binary(op=op, left=left, right=right) if op in COMPARISONS:
                if self.types.of(left) is INT64 and self._fits(left) and self._fits(right):
                    return rebuild(expr, [self.low(left), self.low(right)])
            case ArrayRead(index=index):
                return rebuild(expr, [self._index(index)])
            case App() | VarRef():
                pass
            case Subscript() if not self._subscript_fits(expr):
                return rebuild(expr, [self.same(operand) for operand in operands(expr)])
            case Cast(type=outer, operand=operand) if outer is INT64:
                return rebuild(expr, [self.same(operand)])
            case _:
                pass
        if self.types.of(expr) is INT64 and self._becomes_narrow(expr):
            return Cast(INT64, self.low(expr), span=expr.span)
        return rebuild(expr, [self.same(operand) for operand in operands(expr)])

    def _fits(self, expr: Expr) -> bool:
        return self.demand.fits(expr)

    def _subscript_fits(self, expr: Subscript) -> bool:
        return self.indices_fit or (self._fits(expr.index) and self._fits(expr.extent))

    def _becomes_narrow(self, expr: Expr) -> bool:
        """Whether an int64 is best computed in int32 and converted."""
        match expr:
            case VarRef(var=var):
                return var.id in self.variables
            case Subscript():
                return self._subscript_fits(expr)
            case Index() | Binary() | Unary() | Intrinsic() | IfExpr():
                return self._fits(expr) and self._is_narrow(expr)
            case _:
                return False

    def _is_narrow(self, expr: Expr) -> bool:
        """Whether `low` of an int64 expression is more than its conversion."""
        match expr:
            case Binary(op=op, left=left, right=right):
                if _is_ring(expr):
                    return True
                if op is BinOp.SHL:
                    return isinstance(right, Const) and _in_range(right)
                return op in _EXACT and self._fits(left) and self._fits(right)
            case Unary(op=UnOp.NEG | UnOp.BITNOT):
                return True
            case Intrinsic(name=name, args=args):
                return name in _EXACT_FUNCTIONS and all(self._fits(arg) for arg in args)
            case Index() | IfExpr():
                return self._fits(expr) or isinstance(expr, IfExpr)
            case Subscript():
                return self._subscript_fits(expr)
            case _:
                return False

    def _low_index(self, index: Expr) -> Expr:
        """The index of a subscript: being valid, it does not overflow as a sum of int32s."""
        new = self.low(index)
        match index, new:
            case Binary(op=op, left=left, right=right), Binary() if op in _SUMS:
                if self._fits(left) and self._fits(right):
                    return replace(new, unguarded=True)
            case _:
                pass
        return new

    def low(self, expr: Expr) -> Expr:
        """An int32 equal to `expr`, an int64, modulo 2^32."""
        match expr:
            case Const(value=value, span=span):
                return constant(INT32, _signed(int(value)), span)
            case VarRef(var=var, span=span) if var.id in self.variables:
                return VarRef(_narrow(var), span=span)
            case Index(coordinate=coordinate, axis=axis, span=span) if self._fits(expr):
                return Index(coordinate, axis, INT32, span=span)
            case Cast(operand=operand) if _narrows_to_int32(self.types.of(operand)):
                inner = self.same(operand)
                return (
                    inner if self.types.of(operand) is INT32 else Cast(INT32, inner, span=expr.span)
                )
            case IfExpr(condition=condition, then=then, orelse=orelse, span=span):
                return IfExpr(self.same(condition), self.low(then), self.low(orelse), span=span)
            case Intrinsic(args=args) if self._is_narrow(expr):
                return replace(expr, args=tuple([self.low(arg) for arg in args]), type=INT32)
            case Subscript(index=index, extent=extent) if self._is_narrow(expr):
                return rebuild(expr, [self._low_index(index), self.low(extent)])
            case Binary(op=BinOp.SHL | BinOp.SHR, left=left, right=right):
                if self._is_narrow(expr):
                    count = self.low(right) if self.types.of(right) is INT64 else self.same(right)
                    return rebuild(_guarded(expr), [self.low(left), count])
            case Binary() | Unary() if self._is_narrow(expr):
                return rebuild(_guarded(expr), [self.low(operand) for operand in operands(expr)])
            case _:
                pass
        return Cast(INT32, self.same(expr), span=expr.span)


def _narrow(var: Var) -> Var:
    return Var(var.name, var.id, INT32, var.mutable)


def _guarded(expr: Binary | Unary) -> Binary | Unary:
    """An operator without what was said of its 64 bits: that it meets no edge, or is weak."""
    return replace(expr, weak=False, unguarded=False)


def _signed(value: int) -> int:
    low = value & 0xFFFF_FFFF
    return low - (1 << 32) if low >> 31 else low


def _narrows_to_int32(kind: ElementType) -> bool:
    """Whether a value converted to int64 has the same low bits as converted to int32."""
    assert isinstance(kind, Scalar)
    return kind is BOOL or (kind is not INT64 and kind.is_integer)


def _converted(expr: Cast, operand: Expr) -> Expr:
    """`expr` with its int64 operand in int32."""
    return operand if expr.type is INT32 else Cast(expr.type, operand, expr.weak, span=expr.span)
