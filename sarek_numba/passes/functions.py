"""Functions that a target lacks, or has too inexactly, replaced by those of `stdlib.functions`.

In: a kernel as lowered. Out: each such `Intrinsic` of float64 is an `App` of a helper, which the
kernel then has; one of float32 is computed in float64 and rounded, as the oracle does. The helpers
lie beside this module as rows of `ir.stored`, one file for each function, written by
`python -m tools.numerics.functions_ir` from the Python functions.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files

from sarek_numba.ir.build import Fresh
from sarek_numba.ir.nodes import (
    App,
    Body,
    Call,
    Cast,
    Expr,
    HelperFunction,
    Intrinsic,
    Kernel,
    Stmt,
    VarRef,
)
from sarek_numba.ir.stored import Row, decode, encode
from sarek_numba.ir.types import FLOAT32, FLOAT64, Scalar
from sarek_numba.ir.walk import (
    bodies_of_kernel,
    bound_within,
    declared_by,
    map_body,
    map_body_expressions,
    map_expr,
    substitute_body,
    walk_body_exprs,
    walk_stmts,
)
from sarek_numba.passes.common import Target, map_bodies

_FOLDER = files(__package__) / "stored_functions"


def own_functions(kernel: Kernel, target: Target) -> Kernel:
    """The kernel without the functions that `target.own_functions` names."""
    wanted = _names(kernel, target)
    if not wanted:
        return kernel
    fresh = Fresh.beyond(kernel)
    taken = {helper.name for helper in kernel.functions}
    helpers: list[HelperFunction] = []
    entries: dict[str, str] = {}
    for name in wanted:
        added = renamed(stored(name), name, taken, fresh)
        taken |= {helper.name for helper in added}
        entries[name] = added[-1].name
        helpers += added

    def called(expr: Expr) -> Expr:
        if not _is_own(expr, target):
            return expr
        assert isinstance(expr, Intrinsic)
        if expr.type is FLOAT64:
            return App(entries[expr.name], expr.args, FLOAT64, span=expr.span)
        wide = tuple(Cast(FLOAT64, arg, span=expr.span) for arg in expr.args)
        value = App(entries[expr.name], wide, FLOAT64, span=expr.span)
        return Cast(FLOAT32, value, span=expr.span)

    def mapped(body: Body) -> Body:
        return map_body_expressions(body, lambda root: map_expr(root, called))

    kernel = map_bodies(kernel, mapped)
    return replace(kernel, functions=(*helpers, *kernel.functions))


def _names(kernel: Kernel, target: Target) -> list[str]:
    """The functions to replace, each once, in the order of their uses."""
    found: dict[str, None] = {}
    if target.own_functions:
        for body in bodies_of_kernel(kernel):
            for expr in walk_body_exprs(body):
                if isinstance(expr, Intrinsic) and _is_own(expr, target):
                    found[expr.name] = None
    return list(found)


def _is_own(expr: Expr, target: Target) -> bool:
    return isinstance(expr, Intrinsic) and (expr.name, expr.type) in target.own_functions


@cache
def stored(name: str) -> tuple[HelperFunction, ...]:
    """The helpers that compute a function of float64, callees first, the function itself last."""
    rows: list[Row] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    helpers: tuple[HelperFunction, ...] = decode(rows, ())
    return helpers


def store(helpers: tuple[HelperFunction, ...]) -> str:
    """What the file of a function contains: a row a line, equal nodes once."""
    places: dict[str, int] = {}
    moved: list[int] = []
    for row in encode(helpers, ()):
        new = [[moved[value[0]]] if isinstance(value, list) else value for value in row]
        line = json.dumps(new, separators=(",", ":"))
        moved.append(places.setdefault(line, len(places)))
    return "[\n" + ",\n".join(places) + "\n]\n"


def functions_stored() -> frozenset[tuple[str, Scalar]]:
    """Every function and type that there is one for: what a target may have in `own_functions`."""
    names = (entry.name.removesuffix(".json") for entry in _FOLDER.iterdir())
    return frozenset((name, scalar) for name in names for scalar in (FLOAT32, FLOAT64))


def renamed(
    helpers: tuple[HelperFunction, ...], prefix: str, taken: set[str], fresh: Fresh
) -> list[HelperFunction]:
    """Copies with names and variables that a kernel does not have yet, `taken` being its names."""
    names: dict[str, str] = {}
    for helper in helpers:
        name = helper.name if helper.name == prefix else f"{prefix}_{helper.name}"
        while name in taken or name in names.values():
            name += "_"
        names[helper.name] = name
    return [copied(helper, names, fresh) for helper in helpers]


def copied(helper: HelperFunction, names: dict[str, str], fresh: Fresh) -> HelperFunction:
    """A helper under another name, with variables of its own; so are those that it calls."""
    variables = [*helper.params, *(local.var for local in helper.locals)]
    for stmt in walk_stmts(helper.body):
        variables += [*declared_by(stmt), *bound_within(stmt)]
    new = {var.id: fresh.like(var) for var in variables}
    body = substitute_body(helper.body, {id: VarRef(var) for id, var in new.items()})
    return replace(
        helper,
        name=names[helper.name],
        params=tuple(new[var.id] for var in helper.params),
        locals=tuple(replace(local, var=new[local.var.id]) for local in helper.locals),
        body=_with_names(body, names),
    )


def _with_names(body: Body, names: dict[str, str]) -> Body:
    """The body with the callees' new names."""

    def expression(expr: Expr) -> Expr:
        return replace(expr, function=names[expr.function]) if isinstance(expr, App) else expr

    def statement(stmt: Stmt) -> Stmt:
        return replace(stmt, function=names[stmt.function]) if isinstance(stmt, Call) else stmt

    body = map_body(body, statement)
    return map_body_expressions(body, lambda root: map_expr(root, expression))
