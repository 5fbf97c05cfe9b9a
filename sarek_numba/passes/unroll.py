"""Unrolling: a `Pragma("unroll")` around a short loop of constant bounds becomes its passes.

A loop with more passes, with bounds known at the launch only, or left by `break` or `continue`
keeps its pragma, which printers show to the device's compiler.
"""

from __future__ import annotations

from sarek_numba.ir.build import Fresh
from sarek_numba.ir.nodes import (
    Body,
    Break,
    Const,
    Continue,
    For,
    Kernel,
    Pragma,
    Stmt,
    VarRef,
    While,
    constant,
)
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
            case Pragma(hints=("unroll", *_), body=(For() as loop,)):
                passes = _passes(loop)
                return stmt if passes is None else _unrolled(loop, passes, fresh)
            case _:
                return stmt

    return map_bodies(kernel, lambda body: map_body(body, statement))


def _passes(loop: For) -> range | None:
    """The values of the loop's variable, if they are known and few."""
    match loop.first, loop.stop, loop.step:
        case Const() as first, Const() as stop, Const() as step if step.value != 0:
            passes = range(int(first.value), int(stop.value), int(step.value))
        case _:
            return None
    if len(passes) > _MOST_PASSES or _leaves(loop.body):
        return None
    statements = sum(1 for _ in walk_stmts(loop.body))
    return passes if len(passes) * statements <= _MOST_STATEMENTS else None


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
