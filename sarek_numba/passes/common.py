"""What passes share: the target as they see it, bodies, types and nodes of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from sarek_numba.ir.nodes import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Body,
    Const,
    Expr,
    IfExpr,
    Kernel,
    Stmt,
    Subscript,
    Unary,
    UnOp,
)
from sarek_numba.ir.types import ElementType, Scalar
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import (
    expressions_of,
    map_body,
    operands,
    rebuild,
    with_expressions,
)


class Target(Protocol):
    """The part of `codegen.target.Target` that passes look at."""

    @property
    def address_bits(self) -> int: ...

    @property
    def calls(self) -> bool: ...

    @property
    def inline_barriers(self) -> bool: ...

    @property
    def shuffles_only(self) -> bool: ...

    @property
    def framework(self) -> str: ...

    @property
    def coarsening(self) -> int: ...

    @property
    def own_functions(self) -> frozenset[tuple[str, Scalar]]: ...

    @property
    def own_operations(self) -> frozenset[tuple[str, Scalar]]: ...


Pass = Callable[[Kernel, Target], Kernel]


class Types:
    """The types of the nodes of one kernel, each found once, however deep the tree.

    Nodes are told apart by identity, so all of them are kept alive: the number of one that died
    would soon be that of another.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[ElementType, Expr]] = {}

    def of(self, expr: Expr) -> ElementType:
        passed: list[Expr] = []
        while True:
            found = self._known.get(id(expr))
            if found is not None:
                known = found[0]
                break
            passed.append(expr)
            deeper = _same_type(expr)
            if deeper is None:
                known = type_of(expr)
                break
            expr = deeper
        for node in passed:
            self._known[id(node)] = known, node
        return known


def distinct_nodes(kernel: Kernel) -> Kernel:
    """The kernel with every expression an object of its own.

    Facts by node are joined over all places where the node stands: one place, one node.
    """
    seen: set[int] = set()

    def node(expr: Expr) -> Expr:
        if isinstance(expr, Const):
            return expr
        again = id(expr) in seen
        seen.add(id(expr))
        old = operands(expr)
        new = rebuild(expr, [node(operand) for operand in old]) if old else expr
        return replace(new) if again and new is expr else new

    def statement(stmt: Stmt) -> Stmt:
        return with_expressions(stmt, [node(expr) for expr in expressions_of(stmt)])

    return map_bodies(kernel, lambda body: map_body(body, statement))


def _same_type(expr: Expr) -> Expr | None:
    """The operand whose type an expression has, if it has one."""
    match expr:
        case Binary(op=op, left=left):
            return None if op in COMPARISONS or op in LOGICAL else left
        case Unary(op=op, operand=operand):
            return None if op is UnOp.NOT else operand
        case Subscript(index=index):
            return index
        case IfExpr(then=then):
            return then
        case _:
            return None


def map_bodies(kernel: Kernel, function: Callable[[Body], Body]) -> Kernel:
    """`function` applied to the body of the kernel and of each helper."""
    body = function(kernel.body)
    bodies = [function(helper.body) for helper in kernel.functions]
    same = all(new is helper.body for new, helper in zip(bodies, kernel.functions, strict=True))
    if same:
        return kernel if body is kernel.body else replace(kernel, body=body)
    functions = tuple(
        replace(helper, body=new) for new, helper in zip(bodies, kernel.functions, strict=True)
    )
    return replace(kernel, body=body, functions=functions)
