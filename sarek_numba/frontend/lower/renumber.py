"""Number the variables of a finished kernel in order of declaration.

So equal kernels are equal, however many variables lowering made and dropped. Uses take the variable
as its declaration has it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from sarek_numba.ir.build import all_vars
from sarek_numba.ir.nodes import (
    ArrayRead,
    Body,
    Decl,
    Expr,
    HelperFunction,
    Kernel,
    Stmt,
    Subscript,
    Var,
    VarRef,
)
from sarek_numba.ir.walk import map_body, map_expr, map_expressions, map_variables

AnyDecl = TypeVar("AnyDecl", bound=Decl)


def renumbered(kernel: Kernel) -> Kernel:
    """The kernel with dense variable ids."""
    final: dict[int, Var] = {}
    for var in all_vars(kernel):
        final[var.id] = replace(var, id=len(final))

    def of(var: Var) -> Var:
        return final[var.id]

    def expression(expr: Expr) -> Expr:
        match expr:
            case VarRef(var=var):
                return VarRef(of(var), span=expr.span)
            case ArrayRead(array=array, index=index):
                return ArrayRead(of(array), index, span=expr.span)
            case Subscript(array, axis, index, extent, wrap, part):
                return Subscript(of(array), axis, index, extent, wrap, part, span=expr.span)
            case _:
                return expr

    def statement(stmt: Stmt) -> Stmt:
        stmt = map_expressions(stmt, lambda expr: map_expr(expr, expression))
        return map_variables(stmt, of)

    def body(statements: Body) -> Body:
        return map_body(statements, statement)

    def declaration(decl: AnyDecl) -> AnyDecl:
        return replace(decl, var=of(decl.var))

    def helper(function: HelperFunction) -> HelperFunction:
        return replace(
            function,
            params=tuple(map(of, function.params)),
            body=body(function.body),
            locals=tuple(map(declaration, function.locals)),
        )

    return replace(
        kernel,
        params=tuple(map(declaration, kernel.params)),
        locals=tuple(map(declaration, kernel.locals)),
        functions=tuple(map(helper, kernel.functions)),
        body=body(kernel.body),
    )
