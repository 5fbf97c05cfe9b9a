"""Which variables decide what a loop does: one that merely counts hides no endless wait.

A pass that changes neither memory nor any of these is followed by its like for ever.
"""

from __future__ import annotations

from sarek_numba.ir.nodes import Assign, Body, Expr, ExprStmt, Let, LetMut, LVar, Var
from sarek_numba.ir.walk import expressions_of, variables_in, walk_exprs, walk_stmts


def deciding(condition: Expr, body: Body) -> set[int]:
    """Ids of variables that a condition, a bound, a subscript or a stored value may depend on."""
    found = _named(condition)
    sources: list[tuple[Var, set[int]]] = []
    for stmt in walk_stmts(body):
        match stmt:
            case Let(var=var, value=value) | Assign(target=LVar(var=var), value=value):
                sources.append((var, _named(value)))
            case LetMut(var=var, value=optional):
                sources.append((var, set() if optional is None else _named(optional)))
            case ExprStmt():
                pass
            case _:
                found |= _named(*expressions_of(stmt))
    grown = -1
    while grown != len(found):
        grown = len(found)
        found.update(*(named for var, named in sources if var.id in found))
    return found


def counting(condition: Expr, body: Body) -> set[int]:
    """Ids of variables that the body assigns and that decide nothing."""
    assigned = {
        stmt.target.var.id
        for stmt in walk_stmts(body)
        if isinstance(stmt, Assign) and isinstance(stmt.target, LVar)
    }
    return assigned - deciding(condition, body)


def _named(*exprs: Expr) -> set[int]:
    return {var.id for expr in walk_exprs(*exprs) for var in variables_in(expr)}
