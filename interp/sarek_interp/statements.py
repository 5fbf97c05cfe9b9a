"""Statements of the IR as functions that change the machine.

Control flow is masks: a branch runs with the mask narrowed to the lanes that take it, a loop with
the lanes that are still in it. `break`, `continue` and `return` take lanes out of the mask; who
continues comes back at the end of the pass, the rest of a loop's lanes behind the loop, those that
returned behind the function.
"""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np

from sarek_interp import variables
from sarek_interp.code import (
    Block,
    Collected,
    Context,
    Evaluate,
    Function,
    Helper,
    Step,
    refuse,
    scalar,
    scope_of,
)
from sarek_interp.covering import count_lanes
from sarek_interp.expressions import (
    compile_argument,
    compile_expr,
)
from sarek_interp.fences import compile_fence
from sarek_interp.loops import compile_for, compile_while
from sarek_interp.machine import FALSE, TRUE, Divergence, Lanes, Machine, Mask, united
from sarek_interp.matrices import compile_matrix
from sarek_interp.operators import flagged
from sarek_interp.printing import compile_print
from sarek_interp.synchronise import compile_barrier
from sarek_interp.variables import merge
from sarek_interp.warps import compile_warp, compile_warp_barrier
from sarek_numba.errors import AssertionFailed
from sarek_numba.ir import nodes, semantics
from sarek_numba.ir.nodes import (
    Assign,
    Atomic,
    Barrier,
    Body,
    Break,
    Call,
    Continue,
    Coopmat,
    Empty,
    Expr,
    ExprStmt,
    For,
    HelperFunction,
    If,
    Let,
    LetMut,
    LocalDecl,
    Match,
    MemFence,
    Native,
    Pragma,
    Return,
    Seq,
    Stmt,
    TupleExpr,
    Warp,
    WarpBarrier,
    While,
)
from sarek_numba.ir.types import TupleType, Unit
from sarek_numba.span import Span


def compile_body(c: Context, body: Body, collected: Collected | None = None) -> Block:
    """A body as one step; a step after which no lane is left ends it."""
    with c.nested() as inner:
        steps: list[tuple[Step, bool]] = []
        for stmt in body:
            before = inner.leaves
            inner.leaves = False
            step = compile_stmt(c, stmt)
            if step is not None:
                steps.append((step, inner.leaves))
            inner.leaves |= before
    plain = [step for step, _ in steps]

    def run(m: Machine) -> None:
        for step in plain:
            step(m)

    def run_while_any(m: Machine) -> None:
        for step, leaves in steps:
            step(m)
            if leaves and not m.any():
                return

    chosen: Step = run_while_any if inner.leaves else run
    if len(plain) == 1:
        chosen = plain[0]
    return Block(chosen, scope_of(inner), inner.leaves, inner.barriers, not steps)


def compile_stmt(c: Context, stmt: Stmt) -> Step | None:
    """The step of a statement; None where there is nothing to do."""
    match stmt:
        case Let(var=var, value=value):
            return variables.declaration(c, var, value)
        case LetMut(var=var, value=optional):
            return (
                variables.unbound(c, var)
                if optional is None
                else variables.declaration(c, var, optional)
            )
        case Assign():
            return variables.assignment(c, stmt)
        case If():
            return _branch(c, stmt)
        case For():
            return compile_for(c, stmt, compile_body)
        case While():
            return compile_while(c, stmt, compile_body)
        case Seq(body=body) | nodes.Block(body=body) | Pragma(body=body) | Native(fallback=body):
            return compile_body(c, body).run
        case Break():
            c.body.leaves = True
            return _leave
        case Continue():
            return _continue(c)
        case Return():
            return _return(c, stmt)
        case Call():
            return _call(c, stmt)
        case Barrier(span=span):
            return compile_barrier(c, span)
        case Atomic():
            return variables.atomic(c, stmt)
        case ExprStmt(value=value):
            evaluate = compile_expr(c, value).evaluate
            return lambda m: _ignore(evaluate(m))
        case nodes.Assert():
            return _assertion(c, stmt)
        case nodes.Print():
            return compile_print(c, stmt)
        case Empty(span=Span() as span):
            number = c.marks.number(span)
            return lambda m: count_lanes(m, number)
        case Empty():
            return None
        case MemFence(scope=scope):  # lanes run in step: memory is in order, races are looked for
            return compile_fence(scope) if c.clocked else None
        case Match():
            raise refuse("match", stmt.span)
        case Warp():
            return compile_warp(c, stmt)
        case WarpBarrier(span=span):
            return compile_warp_barrier(c, span)
        case Coopmat():
            return compile_matrix(c, stmt)
        case _:
            assert_never(stmt)


def _ignore(lanes: Lanes) -> None:
    """An expression statement: its checks have been made."""


# --- branches -------------------------------------------------------------------------------------


def _branch(c: Context, stmt: If) -> Step:
    condition = compile_expr(c, stmt.condition).evaluate
    then, orelse = compile_body(c, stmt.then), compile_body(c, stmt.orelse)
    leaves = then.leaves or orelse.leaves
    span = stmt.span or stmt.condition.span

    def run(m: Machine) -> None:
        chosen = condition(m)
        if chosen.size == 1:
            (then if chosen[0] else orelse).run(m)
            return
        mask = m.mask
        yes, no = m.narrowed(chosen), m.narrowed(~chosen)
        taken, left = int(np.count_nonzero(yes)), int(np.count_nonzero(no))
        if not left or not taken:
            (orelse if left else then).run(m)
            return
        _run_part(m, yes, taken, then, span)
        after = m.mask
        _run_part(m, no, left, orelse, span)
        m.mask = united(after, m.mask) if leaves else mask

    return run


def _run_part(m: Machine, mask: Mask, live: int, block: Block, span: Any) -> None:
    """Run a branch for some lanes; `m.mask` is afterwards what is left of them."""
    m.mask = mask
    if block.empty:
        return
    if block.barriers:
        lanes = m.chunk_lanes(m.selected())
        assert lanes is not None
        m.divergences.append(Divergence(span, lanes))
    if m.worth_compacting(live):
        m.compacted(mask, block.scope, block.run)
    else:
        block.run(m)
    if block.barriers:
        m.divergences.pop()


# --- leaving --------------------------------------------------------------------------------------


def _leave(m: Machine) -> None:
    m.mask = m.nobody()


def _continue(c: Context) -> Step:
    loop = c.function.loops[-1]
    loop.has_continue = True
    c.touch(loop.continued)
    c.body.leaves = True
    continued = loop.continued

    def run(m: Machine) -> None:
        merge(m, continued, TRUE)
        m.mask = m.nobody()

    return run


def _return(c: Context, stmt: Return) -> Step:
    function = c.function
    c.body.leaves = c.body.returns = function.returns = True
    c.touch(function.returned, *function.results)
    returned = function.returned
    items: tuple[Expr, ...] = ()
    if stmt.value is not None:
        items = stmt.value.items if isinstance(stmt.value, TupleExpr) else (stmt.value,)
    values = [compile_expr(c, item).evaluate for item in items]
    pairs = list(zip(function.results, values, strict=True)) if values else []
    site = c.site(stmt.span) if function.is_kernel else None

    def run(m: Machine) -> None:
        for slot, value in [(slot, evaluate(m)) for slot, evaluate in pairs]:
            merge(m, slot, value)
        merge(m, returned, TRUE)
        if site is not None and m.chunk.returned_at is not None:
            lanes = m.chunk_lanes(m.selected())
            m.chunk.returned_at[slice(None) if lanes is None else lanes] = site
        m.mask = m.nobody()

    return run


# --- helpers --------------------------------------------------------------------------------------


def compile_helper(c: Context, function: HelperFunction) -> Helper:
    """A helper: called with its parameters' slots filled, it fills its results' slots."""
    result = function.result
    items = result.items if isinstance(result, TupleType) else (result,)
    types = [] if isinstance(result, Unit) else [scalar(item, function.span) for item in items]
    results = tuple(c.new_slot() for _ in types)
    c.function = Function(c.new_slot(), results, is_kernel=False)
    params = tuple(c.declare(param) for param in function.params)
    start = compile_locals(c, function.locals)
    body = compile_body(c, function.body)
    zeros = [np.zeros(1, semantics.dtype_of(type)) for type in types]
    returned = c.function.returned

    def run(m: Machine) -> None:
        mask = m.mask
        m.values[returned] = FALSE
        for slot, zero in zip(results, zeros, strict=True):
            m.values[slot] = zero
        start(m)
        body.run(m)
        m.mask = mask

    return Helper(params, results, run, body.barriers, frozenset(c.arrays & c.body.used))


def compile_locals(c: Context, declarations: tuple[Any, ...]) -> Step:
    """The locals of a function, begun anew at each call."""
    steps: list[Step] = []
    for declaration in declarations:
        if not isinstance(declaration, LocalDecl):
            continue
        var, value = declaration.var, declaration.value
        step = variables.unbound(c, var) if value is None else variables.declaration(c, var, value)
        if step is not None:
            steps.append(step)

    def run(m: Machine) -> None:
        for step in steps:
            step(m)

    return run


def _call(c: Context, stmt: Call) -> Step:
    args: list[Evaluate] = [compile_argument(c, arg) for arg in stmt.args]
    helper = c.helper(stmt.function)
    c.body.barriers |= helper.barriers
    c.body.used |= helper.arrays
    targets = [c.declare(var) for var in stmt.results]
    pairs = list(zip(targets, helper.results, strict=True)) if targets else []
    params, run_body = helper.params, helper.run

    def run(m: Machine) -> None:
        given = [arg(m) for arg in args]
        for slot, value in zip(params, given, strict=True):
            m.values[slot] = value
        run_body(m)
        for target, result in pairs:
            m.values[target] = m.values[result]

    return run


# --- effects --------------------------------------------------------------------------------------


def _assertion(c: Context, stmt: nodes.Assert) -> Step:
    condition = compile_expr(c, stmt.condition).evaluate
    site = c.site(stmt.span)
    message = f"assertion failed: {stmt.message}" if stmt.message else "assertion failed"

    def run(m: Machine) -> None:
        holds = condition(m)
        if not holds.all():
            m.report(AssertionFailed, site, flagged(m, ~holds), lambda: {"message": message})

    return run
