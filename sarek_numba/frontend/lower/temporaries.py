"""Put a temporary back into the one expression that uses it.

Lowering binds a temporary that it reads twice, and later finds that one of the two reads was not
needed: `a and b` tests its left operand and is it. What is put back reads no memory and no variable
that changes, and goes where it is evaluated whenever the binding was: into an expression of the
same body, in no guarded operand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from sarek_numba.ir.nodes import (
    LOGICAL,
    Binary,
    Body,
    Cast,
    Const,
    Expr,
    IfExpr,
    Index,
    Kernel,
    Let,
    Unary,
    VarRef,
)
from sarek_numba.ir.walk import (
    bodies_of,
    bodies_of_kernel,
    expressions_of,
    map_expressions,
    operands,
    substitute,
    walk_body_exprs,
    walk_exprs,
    with_bodies,
)


def fold_temporaries(kernel: Kernel, temporaries: Collection[int]) -> Kernel:
    """The kernel with every temporary of `temporaries` (ids) folded that can be."""
    if not temporaries:
        return kernel
    uses = Counter(
        expr.var.id
        for body in bodies_of_kernel(kernel)
        for expr in walk_body_exprs(body)
        if isinstance(expr, VarRef)
    )
    once = {id for id in temporaries if uses[id] == 1}
    functions = tuple(replace(f, body=_body(f.body, once)) for f in kernel.functions)
    return replace(kernel, functions=functions, body=_body(kernel.body, once))


def _body(body: Body, once: Collection[int]) -> Body:
    folded: dict[int, Expr] = {}
    reachable = {
        expr.var.id
        for stmt in body
        for root in expressions_of(stmt)
        for expr in _unguarded(root)
        if isinstance(expr, VarRef)
    }
    result = []
    for stmt in body:
        if folded:
            stmt = map_expressions(stmt, lambda expr: substitute(expr, folded))
        if isinstance(stmt, Let) and _may_move(stmt, once) and stmt.var.id in reachable:
            folded[stmt.var.id] = stmt.value
            continue
        inner = bodies_of(stmt)
        if inner:
            stmt = with_bodies(stmt, [_body(each, once) for each in inner])
        result.append(stmt)
    return tuple(result)


def _may_move(stmt: Let, once: Collection[int]) -> bool:
    return stmt.var.id in once and all(map(_keeps_its_value, walk_exprs(stmt.value)))


def _keeps_its_value(expr: Expr) -> bool:
    match expr:
        case VarRef(var=var):
            return not var.mutable
        case Const() | Index() | Binary() | Unary() | Cast():
            return True
        case _:
            return False


def _unguarded(expr: Expr) -> Iterator[Expr]:
    """The nodes that are evaluated whenever the expression is."""
    yield expr
    match expr:
        case Binary(op=op, left=left) if op in LOGICAL:
            yield from _unguarded(left)
        case IfExpr(condition=condition):
            yield from _unguarded(condition)
        case _:
            for operand in operands(expr):
                yield from _unguarded(operand)
