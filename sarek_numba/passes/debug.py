"""Debug builds: each subscript is compared with its extent, each assertion tested, on the device.

Before a statement stands a test for each subscript in it, under the condition under which it is
evaluated. A thread that fails leaves one record and is marked; from then on it stores and prints
nothing, and still meets the barriers of its block. An element read out of range is zero, so nothing
outside an array is ever touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sarek_numba.ir.nodes import (
    ArrayRead,
    Assert,
    Assign,
    Atomic,
    AtomicOp,
    Barrier,
    Binary,
    BinOp,
    Body,
    Break,
    Call,
    Cast,
    Const,
    Expr,
    If,
    IfExpr,
    Let,
    LetMut,
    LVar,
    Print,
    RecordExpr,
    Stmt,
    Subscript,
    Unary,
    UnOp,
    Var,
    VarRef,
    Warp,
    WarpBarrier,
    While,
    constant,
)
from sarek_numba.ir.types import (
    BOOL,
    FLOAT32,
    INT64,
    Array,
    ElementType,
    Record,
    Scalar,
    Vec,
)
from sarek_numba.ir.typing import scalar_of, type_of
from sarek_numba.ir.walk import (
    assigned_by,
    expressions_of,
    map_expr,
    map_expressions,
    operands,
    walk_exprs,
    walk_stmts,
)
from sarek_numba.passes.records import AssertSite, BoundsSite, Recorder, Site
from sarek_numba.span import Span


class DebugChecks:
    """The checks of one kernel; `failed` says of each thread whether it has failed."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.failed = recorder.fresh("failed", BOOL, mutable=True)

    def start(self) -> Body:
        """Nobody has failed yet."""
        return (LetMut(self.failed, constant(BOOL, False)),)

    def statement(self, stmt: Stmt, made: Body) -> Body:
        """A statement with its checks before it; `made` is what a print has become."""
        before = tuple(self._before(stmt))
        safe = map_expressions(stmt, guarded)
        match safe:
            case Print():
                stored = tuple(map_expressions(part, guarded) for part in made)
                return (*before, If(self._sound(), stored, span=stmt.span))
            case Assert(condition=condition):
                wrong = _both(self._sound(), _negated(condition))
                return (*before, self._fail(wrong, AssertSite(safe.message, stmt.span), ()))
            case While(condition=condition):
                return (self._loop(safe, condition, before),)
            case Atomic():
                return (*before, *self._atomic(safe))
            case Call(results=()):
                return (*before, If(self._sound(), (safe,), span=stmt.span))
            case Assign() if _stores(safe):
                return (*before, If(self._sound(), (safe,), span=stmt.span))
            case _:
                return (*before, safe)

    def _sound(self) -> Expr:
        return _negated(VarRef(self.failed))

    def _fail(self, condition: Expr, site: Site, values: tuple[Expr, ...]) -> If:
        span = getattr(site, "span", None)
        record = self.recorder.record(site, values, span)
        mark = Assign(LVar(self.failed), constant(BOOL, True), span=span)
        return If(condition, (*record, mark), span=span)

    # --- subscripts -------------------------------------------------------------------------------

    def _before(self, stmt: Stmt) -> Iterator[Stmt]:
        for root in expressions_of(stmt):
            for subscript, path in _subscripts(root, None):
                yield self._check(subscript, path)

    def _check(self, subscript: Subscript, path: Expr | None) -> Stmt:
        """The test of one subscript, for threads that have not failed and evaluate it."""
        fresh, span = self.recorder.fresh, subscript.span
        given, extent = guarded(subscript.index), guarded(subscript.extent)
        index = fresh("index", scalar_of(given))
        bound = fresh("extent", scalar_of(extent))
        outside = _negated(_within(VarRef(index), VarRef(bound), subscript.wrap))
        site = BoundsSite(subscript.array.name, subscript.axis, span)
        values = (Cast(INT64, VarRef(index)), Cast(INT64, VarRef(bound)))
        test: Body = (
            Let(index, given, span=span),
            Let(bound, extent, span=span),
            self._fail(outside, site, values),
        )
        if path is not None:
            test = (If(path, test, span=span),)
        return If(self._sound(), test, span=span)

    # --- statements -------------------------------------------------------------------------------

    def _loop(self, loop: While, condition: Expr, before: Body) -> Stmt:
        """A loop that a thread leaves when it has failed, unless others wait for it in there."""
        if not any(
            isinstance(stmt, Barrier | WarpBarrier | Warp) for stmt in walk_stmts(loop.body)
        ):
            condition = _both(condition, self._sound())
        if not before:
            return replace(loop, condition=condition)
        leave = If(_negated(condition), (Break(),), span=loop.span)
        return While(constant(BOOL, True), (*before, leave, *loop.body), span=loop.span)

    def _atomic(self, stmt: Atomic) -> Body:
        if stmt.op is AtomicOp.STORE or stmt.result is None:
            return (If(self._sound(), (stmt,), span=stmt.span),)
        fresh, result = self.recorder.fresh, stmt.result
        held = fresh(result.name, result.type, mutable=True)
        old = fresh(result.name, result.type)
        done = (
            replace(stmt, result=old),
            Assign(LVar(held), VarRef(old), span=stmt.span),
        )
        return (
            LetMut(held, zero(result.type), span=stmt.span),
            If(self._sound(), done, span=stmt.span),
            Let(result, VarRef(held), span=stmt.span),
        )


def _stores(stmt: Stmt) -> bool:
    written = assigned_by(stmt)
    return isinstance(written, Var) and isinstance(written.type, Vec | Array)


def _negated(condition: Expr) -> Expr:
    return Unary(UnOp.NOT, condition)


def _both(left: Expr | None, right: Expr) -> Expr:
    return right if left is None else Binary(BinOp.AND, left, right)


def _within(index: Expr, extent: Expr, wrap: bool) -> Expr:
    """Whether a subscript is in range; with `wrap` from -extent on."""
    type = scalar_of(index)
    least: Expr = Unary(UnOp.NEG, extent) if wrap else constant(type, 0)
    from_start = Binary(BinOp.GE, index, least)
    return Binary(BinOp.AND, from_start, Binary(BinOp.LT, index, extent))


def _subscripts(expr: Expr, path: Expr | None) -> Iterator[tuple[Subscript, Expr | None]]:
    """The subscripts of an expression, inner ones first, each with what must hold for it."""
    match expr:
        case Binary(op=BinOp.AND | BinOp.OR as op, left=left, right=right):
            yield from _subscripts(left, path)
            condition = guarded(left) if op is BinOp.AND else _negated(guarded(left))
            yield from _subscripts(right, _both(path, condition))
        case IfExpr(condition=condition, then=then, orelse=orelse):
            yield from _subscripts(condition, path)
            chosen = guarded(condition)
            yield from _subscripts(then, _both(path, chosen))
            yield from _subscripts(orelse, _both(path, _negated(chosen)))
        case _:
            for operand in operands(expr):
                yield from _subscripts(operand, path)
            if isinstance(expr, Subscript):
                yield expr, path


def guarded(expr: Expr) -> Expr:
    """An expression whose array elements are zero where a subscript is out of range."""
    if not any(isinstance(node, ArrayRead) for node in walk_exprs(expr)):
        return expr
    return map_expr(expr, _guarded_read)


def _guarded_read(expr: Expr) -> Expr:
    if not isinstance(expr, ArrayRead):
        return expr
    inside: Expr | None = None
    for subscript in _own_subscripts(expr.index):
        inside = _both(inside, _within(subscript.index, subscript.extent, subscript.wrap))
    if inside is None:
        return expr
    return IfExpr(inside, expr, zero(type_of(expr)), span=expr.span)


def _own_subscripts(expr: Expr) -> Iterator[Subscript]:
    """The subscripts of a flat index, without those of elements that it reads."""
    if isinstance(expr, Subscript):
        yield expr
    elif not isinstance(expr, ArrayRead):
        for operand in operands(expr):
            yield from _own_subscripts(operand)


def zero(type: ElementType, span: Span | None = None) -> Expr:
    """The value of a type whose bytes are zero."""
    match type:
        case Scalar.FLOAT16 | Scalar.BFLOAT16:
            return Cast(type, Const(FLOAT32, 0), span=span)
        case Scalar():
            return Const(type, 0, span=span)
        case Record(name=name, fields=fields):
            return RecordExpr(name, tuple((field, zero(kind)) for field, kind in fields))
        case _:
            raise AssertionError(f"no zero of {type}")
