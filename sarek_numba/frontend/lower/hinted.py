"""What hints make of a lowered kernel: indices that do not wrap or are clamped, and its pragma."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from sarek_numba.frontend.hints import Hints
from sarek_numba.frontend.lower.convert import int64
from sarek_numba.frontend.lower.operators import larger, smaller, subtract
from sarek_numba.ir.nodes import Body, Const, Expr, For, Kernel, ParamDecl, Pragma, Stmt, Subscript
from sarek_numba.ir.walk import map_body, map_body_expressions, map_expr


def hinted(kernel: Kernel, hints: Hints) -> Kernel:
    """The kernel as its hints want it; itself where there are none."""
    if not hints.wraparound or hints.bounds is not None:
        functions = tuple(
            replace(function, body=_indexed(function.body, hints)) for function in kernel.functions
        )
        kernel = replace(kernel, body=_indexed(kernel.body, hints), functions=functions)
    if hints.restrict:
        kernel = replace(kernel, params=_apart(kernel.params))
    if hints.max_threads is not None:
        pragma = Pragma(("max_threads", str(hints.max_threads)), kernel.body)
        kernel = replace(kernel, body=(pragma,))
    return kernel


def with_pragmas(kernel: Kernel, hints: Mapping[int, tuple[str, ...]]) -> Kernel:
    """The kernel with each loop whose variable has hints in a pragma of them."""
    if not hints:
        return kernel

    def statement(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.var.id in hints:
            return Pragma(hints[stmt.var.id], (stmt,), span=stmt.span)
        return stmt

    functions = tuple(
        replace(function, body=map_body(function.body, statement)) for function in kernel.functions
    )
    return replace(kernel, body=map_body(kernel.body, statement), functions=functions)


def _apart(params: tuple[ParamDecl, ...]) -> tuple[ParamDecl, ...]:
    """The arrays marked as sharing nothing; the bases of records share memory among themselves."""
    bases = Counter(param.role for param in params if param.array is not None)
    return tuple(
        replace(param, array=replace(param.array, restrict=True))
        if param.array is not None and bases[param.role] == 1
        else param
        for param in params
    )


def _indexed(body: Body, hints: Hints) -> Body:
    def node(expr: Expr) -> Expr:
        if not isinstance(expr, Subscript):
            return expr
        if not hints.wraparound:
            expr = replace(expr, wrap=False)
        return expr if hints.bounds is None else _clamped(expr)

    return map_body_expressions(body, lambda expr: map_expr(expr, node))


def _clamped(subscript: Subscript) -> Subscript:
    """An index from -extent to extent - 1 where it wraps, else from 0; of no elements none is."""
    index, extent = subscript.index, subscript.extent
    match index, extent:
        case Const(), Const() if 0 <= int(index.value) < int(extent.value):
            return subscript
    lowest = subtract(int64(0), extent) if subscript.wrap else int64(0)
    inside = larger(smaller(index, subtract(extent, int64(1))), lowest)
    return replace(subscript, index=inside)
