"""Unrolling: a `Pragma("unroll")` around a short loop of constant bounds becomes its passes.

With a number, as in `Pragma("unroll", "4")`, a loop of more passes does that many at once, and the
rest behind it. A loop too long for either, with bounds known at the launch only, or left by `break`
or `continue` keeps its pragma, which printers show to the device's compiler.
"""

from __future__ import annotations

from sarek_numba.ir.build import Fresh
from sarek_numba.ir.nodes import (
    Binary,
    BinOp,
    Body,
    Break,
    Const,
    Continue,
    For,
    Kernel,
    Let,
    Pragma,
    Stmt,
    VarRef,
    While,
    constant,
)
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.walk import (
    bodies_of,
    bound_within,
    declared_by,
    map_body,
    substitute_body,
    walk_stmts,
)
from sarek_numba.passes.common import Target, map_bodies

_MOST_PASSES = 32
_MOST_STATEMENTS = 256


def unroll(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with its short constant loops unrolled where it asks for that."""
    fresh = Fresh.beyond(kernel)

    def statement(stmt: Stmt) -> Stmt | Body:
        match stmt:
            case Pragma(hints=("unroll", *count), body=(For() as loop,)):
                at_once = int(count[0]) if count else None
                result = _unroll_loop(loop, at_once, fresh)
                return stmt if result is None else result
            case _:
                return stmt

    return map_bodies(kernel, lambda body: map_body(body, statement))


def _unroll_loop(loop: For, at_once: int | None, fresh: Fresh) -> Body | None:
    """The loop unrolled, or None where it stays as it is."""
    passes = _passes(loop)
    if passes is None or _leaves(loop.body):
        return None
    copies = len(passes) if at_once is None else min(at_once, len(passes))
    most = _MOST_PASSES if at_once is None else _MOST_STATEMENTS
    if copies > most or copies * sum(1 for _ in walk_stmts(loop.body)) > _MOST_STATEMENTS:
        return None
    if copies == len(passes):
        return _unrolled(loop, passes, fresh)
    whole = len(passes) - len(passes) % copies
    return (
        _in_groups(loop, passes[:whole], copies, fresh),
        *_unrolled(loop, passes[whole:], fresh),
    )


def _passes(loop: For) -> range | None:
    """The values of the loop's variable, if they are known."""
    match loop.first, loop.stop, loop.step:
        case Const() as first, Const() as stop, Const() as step if step.value != 0:
            return range(int(first.value), int(stop.value), int(step.value))
        case _:
            return None


def _in_groups(loop: For, passes: range, copies: int, fresh: Fresh) -> For:
    """A loop that does `copies` passes at once; their number is a multiple of it."""
    kind = loop.var.type
    assert isinstance(kind, Scalar)
    var = fresh.like(loop.var)
    body: list[Stmt] = []
    for k in range(copies):
        item = var
        if k:
            item = fresh.like(loop.var)
            distance = constant(kind, k * passes.step, loop.span)
            value = Binary(BinOp.ADD, VarRef(var), distance, weak=True, span=loop.span)
            body.append(Let(item, value, span=loop.span))
        body += renamed(loop.body, fresh, {loop.var.id: VarRef(item)})
    step = constant(kind, passes.step * copies, loop.span)
    stop = constant(kind, passes[-1] + (1 if passes.step > 0 else -1), loop.span)
    first = constant(kind, passes.start, loop.span)
    return For(var, first, stop, step, loop.direction, tuple(body), span=loop.span)


def _leaves(body: Body) -> bool:
    """Whether a `break` or `continue` of the loop itself is in its body."""
    for stmt in body:
        if isinstance(stmt, Break | Continue):
            return True
        inner_loop = isinstance(stmt, For | While)
        if not inner_loop and any(_leaves(inner) for inner in bodies_of(stmt)):
            return True
    return False


def _unrolled(loop: For, passes: range, fresh: Fresh) -> Body:
    kind = loop.var.type
    result: list[Stmt] = []
    for value in passes:
        number = constant(kind, value, loop.span)  # type: ignore[arg-type]  # scalar by ir.verify
        result += renamed(loop.body, fresh, {loop.var.id: number})
    return tuple(result)


def renamed(body: Body, fresh: Fresh, values: dict[int, Const | VarRef]) -> Body:
    """A copy of a body that declares variables of its own; `values` replaces further ones."""
    replaced: dict[int, Const | VarRef] = dict(values)
    for stmt in walk_stmts(body):
        for var in (*declared_by(stmt), *bound_within(stmt)):
            replaced[var.id] = VarRef(fresh.like(var))
    return substitute_body(body, replaced)
