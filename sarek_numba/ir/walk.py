"""Walks and maps over IR, and the variables in it.

Written with `ir.shape`, whose functions are offered here too, so that a pass needs this import
alone. A map gives the same object where nothing changed: a pass that does nothing costs no copies,
and `is` tells whether it did anything.

Walks are iterative. Maps recurse over nesting, never over the length of a body; an expression may
be a thousand levels deep, so whoever recurses over one does it within `deep_recursion`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from sarek_numba.ir.depth import deep_recursion
from sarek_numba.ir.nodes import (
    ArrayLen,
    ArrayRead,
    Assign,
    Atomic,
    Body,
    Call,
    CMLoad,
    CMStore,
    Coopmat,
    Expr,
    For,
    Kernel,
    LElement,
    LElementExpr,
    Let,
    LetMut,
    LField,
    LValue,
    LVar,
    Match,
    MatchExpr,
    Pattern,
    PConstr,
    Stmt,
    Subscript,
    Var,
    VarRef,
    Warp,
)
from sarek_numba.ir.shape import (
    bodies_of,
    expressions_of,
    lvalue_expressions,
    operands,
    rebuild,
    rebuild_lvalue,
    root_variable,
    with_bodies,
    with_expressions,
)

__all__ = [
    "assigned_by",
    "bodies_of",
    "bound_within",
    "declared_by",
    "deep_recursion",
    "expressions_of",
    "free_vars",
    "lvalue_expressions",
    "map_body",
    "map_body_expressions",
    "map_expr",
    "map_expressions",
    "map_operands",
    "map_variables",
    "operands",
    "rebuild",
    "rebuild_lvalue",
    "root_variable",
    "substitute",
    "substitute_body",
    "variables_in",
    "walk_body_exprs",
    "walk_exprs",
    "walk_stmts",
    "with_bodies",
    "with_expressions",
]

MapExpr = Callable[[Expr], Expr]

# --- expressions ----------------------------------------------------------------------------------


def map_operands(expr: Expr, function: MapExpr) -> Expr:
    """`expr` with `function` applied to each of its operands."""
    old = operands(expr)
    return rebuild(expr, [function(operand) for operand in old]) if old else expr


def map_expr(expr: Expr, function: MapExpr) -> Expr:
    """`function` applied to every node of the tree, operands before the node that holds them."""
    old = operands(expr)
    if old:
        expr = rebuild(expr, [map_expr(operand, function) for operand in old])
    return function(expr)


def walk_exprs(*roots: Expr) -> Iterator[Expr]:
    """Every node of the trees, each before its operands, in the order of evaluation."""
    stack = list(reversed(roots))
    while stack:
        expr = stack.pop()
        yield expr
        stack.extend(reversed(operands(expr)))


# --- statements -----------------------------------------------------------------------------------


def map_expressions(stmt: Stmt, function: MapExpr) -> Stmt:
    """`stmt` with `function` applied to each of its own expressions, as whole trees."""
    return with_expressions(stmt, [function(expr) for expr in expressions_of(stmt)])


def map_body(body: Body, function: Callable[[Stmt], Stmt | Body]) -> Body:
    """`function` applied to every statement, nested ones first; a tuple it gives is spliced in."""
    result: list[Stmt] = []
    changed = False
    for stmt in body:
        nested = bodies_of(stmt)
        rebuilt = with_bodies(stmt, [map_body(inner, function) for inner in nested])
        new = function(rebuilt if nested else stmt)
        changed = changed or new is not stmt
        if isinstance(new, tuple):
            result.extend(new)
        else:
            result.append(new)
    return tuple(result) if changed else body


def map_body_expressions(body: Body, function: MapExpr) -> Body:
    """`body` with `function` applied to every expression of every statement, as whole trees."""
    return map_body(body, lambda stmt: map_expressions(stmt, function))


def walk_stmts(body: Body) -> Iterator[Stmt]:
    """Every statement of the body and of all nested bodies, each before those within it."""
    stack: list[Iterator[Stmt]] = [iter(body)]
    while stack:
        for stmt in stack[-1]:
            yield stmt
            nested = bodies_of(stmt)
            if nested:
                stack.extend(iter(inner) for inner in reversed(nested))
                break
        else:
            stack.pop()


def bodies_of_kernel(kernel: Kernel) -> tuple[Body, ...]:
    """The body of a kernel and those of its helpers."""
    return (kernel.body, *(helper.body for helper in kernel.functions))


def walk_body_exprs(body: Body) -> Iterator[Expr]:
    """Every expression node of the body and of all nested bodies."""
    for stmt in walk_stmts(body):
        yield from walk_exprs(*expressions_of(stmt))


# --- variables ------------------------------------------------------------------------------------


def variables_in(expr: Expr) -> tuple[Var, ...]:
    """The variables that this node itself names, its operands aside."""
    match expr:
        case VarRef(var=var):
            return (var,)
        case ArrayRead(array=array) | Subscript(array=array) | ArrayLen(array=array):
            return (array,)
        case _:
            return ()


def declared_by(stmt: Stmt) -> tuple[Var, ...]:
    """The variables that a statement brings into scope for the rest of its body."""
    match stmt:
        case Let(var=var) | LetMut(var=var) | Warp(result=var):
            return (var,)
        case Call(results=results):
            return results
        case Atomic(result=result):
            return () if result is None else (result,)
        case _:
            return ()


def bound_within(stmt: Stmt) -> tuple[Var, ...]:
    """The variables that a statement brings into scope for its own nested bodies."""
    match stmt:
        case For(var=var):
            return (var,)
        case Match(cases=cases):
            return tuple(
                v for pattern, _ in cases if isinstance(pattern, PConstr) for v in pattern.bound
            )
        case _:
            return ()


def assigned_by(stmt: Stmt) -> Var | None:
    """The variable or array that a statement writes: an assignment's or an atomic's."""
    match stmt:
        case Assign(target=target):
            return root_variable(target)
        case Atomic(array=array):
            return array
        case Coopmat(op=CMStore(target=array)):
            return array
        case _:
            return None


def _named_by(stmt: Stmt) -> tuple[Var, ...]:
    """The variables that a statement uses other than in expressions."""
    match stmt:
        case Coopmat(op=CMLoad(source=array)):
            return (array,)
        case _:
            written = assigned_by(stmt)
            return () if written is None else (written,)


def free_vars(code: Expr | Body) -> dict[int, Var]:
    """The variables used in `code` but not bound in it, by id, in the order of first use."""
    used: dict[int, Var] = {}
    bound: set[int] = set()
    if not isinstance(code, tuple):
        _use_expr(code, used, bound)
    else:
        for stmt in walk_stmts(code):
            for expr in expressions_of(stmt):
                _use_expr(expr, used, bound)
            for var in _named_by(stmt):
                used.setdefault(var.id, var)
            bound.update(var.id for var in declared_by(stmt))
            bound.update(var.id for var in bound_within(stmt))
    return {id: var for id, var in used.items() if id not in bound}


def _use_expr(root: Expr, used: dict[int, Var], bound: set[int]) -> None:
    for expr in walk_exprs(root):
        for var in variables_in(expr):
            used.setdefault(var.id, var)
        if isinstance(expr, MatchExpr):
            patterns = (pattern for pattern, _ in expr.cases if isinstance(pattern, PConstr))
            bound.update(var.id for pattern in patterns for var in pattern.bound)


def substitute(expr: Expr, values: Mapping[int, Expr]) -> Expr:
    """`expr` with each variable whose id is in `values` replaced; an array only by a `VarRef`."""

    def replaced(node: Expr) -> Expr:
        match node:
            case VarRef(var=var):
                return values.get(var.id, node)
            case ArrayRead(array=array) | Subscript(array=array) | ArrayLen(array=array):
                new = _substituted_array(array, values)
                return node if new is array else replace(node, array=new)
            case _:
                return node

    return map_expr(expr, replaced)


def substitute_body(body: Body, values: Mapping[int, Expr]) -> Body:
    """`body` with each variable whose id is in `values` replaced wherever it is used.

    A variable that is declared or assigned is replaced only by a `VarRef`: so a body is given fresh
    variables by mapping the old ones to references of the new.
    """

    def variable(var: Var) -> Var:
        return _substituted_array(var, values)

    def replaced(stmt: Stmt) -> Stmt:
        return map_variables(map_expressions(stmt, lambda e: substitute(e, values)), variable)

    return map_body(body, replaced)


def _substituted_array(array: Var, values: Mapping[int, Expr]) -> Var:
    new = values.get(array.id)
    if new is None:
        return array
    assert isinstance(new, VarRef), f"{array.name} cannot be replaced by an expression here"
    return new.var


def map_variables(stmt: Stmt, function: Callable[[Var], Var]) -> Stmt:
    """`stmt` with `function` applied to the variables it declares or writes, expressions aside."""
    match stmt:
        case Let(var=var) | LetMut(var=var) | For(var=var):
            new = function(var)
            return stmt if new is var else replace(stmt, var=new)
        case Call(results=results):
            renamed = tuple(map(function, results))
            return stmt if _same(renamed, results) else replace(stmt, results=renamed)
        case Atomic(result=result, array=array):
            old = result
            result = None if result is None else function(result)
            new = function(array)
            return (
                stmt if new is array and result is old else replace(stmt, result=result, array=new)
            )
        case Warp(result=var):
            new = function(var)
            return stmt if new is var else replace(stmt, result=new)
        case Assign(target=target):
            moved = _map_lvalue_variable(target, function)
            return stmt if moved is target else replace(stmt, target=moved)
        case Match(cases=cases):
            arms = tuple((_map_pattern(pattern, function), body) for pattern, body in cases)
            return (
                stmt
                if _same([p for p, _ in arms], [p for p, _ in cases])
                else replace(stmt, cases=arms)
            )
        case Coopmat(op=CMLoad(source=array) as op):
            new = function(array)
            return stmt if new is array else replace(stmt, op=replace(op, source=new))
        case Coopmat(op=CMStore(target=array) as op):
            new = function(array)
            return stmt if new is array else replace(stmt, op=replace(op, target=new))
        case _:
            return stmt


def _same(left: Iterable[object], right: Iterable[object]) -> bool:
    return all(a is b for a, b in zip(left, right, strict=True))


def _map_pattern(pattern: Pattern, function: Callable[[Var], Var]) -> Pattern:
    if not isinstance(pattern, PConstr):
        return pattern
    bound = tuple(map(function, pattern.bound))
    return pattern if _same(bound, pattern.bound) else PConstr(pattern.constructor, bound)


def _map_lvalue_variable(target: LValue, function: Callable[[Var], Var]) -> LValue:
    match target:
        case LVar(var=var):
            new = function(var)
            return target if new is var else LVar(new, span=target.span)
        case LElement(array=array, index=index):
            new = function(array)
            return target if new is array else LElement(new, index, span=target.span)
        case LField(record=record, name=name):
            inner = _map_lvalue_variable(record, function)
            return target if inner is record else LField(inner, name, span=target.span)
        case LElementExpr():
            return target
        case _:
            assert_never(target)
