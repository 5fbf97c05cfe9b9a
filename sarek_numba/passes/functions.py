"""Functions that a target lacks, or has too inexactly, replaced by those of `stdlib.functions`.

In: a kernel as lowered. Out: each such `Intrinsic` of float64 is an `App` of a helper, which the
kernel then has; so is one of float32 if there is a function of float32, and else it is computed in
float64 and rounded, as the oracle does. The helpers lie beside this module as rows of `ir.stored`,
one file for each function, those of float32 in a folder of their own, written by
`python -m tools.numerics.functions_ir` from the Python functions.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

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
_SINGLES = "float32"


def own_functions(kernel: Kernel, target: Target) -> Kernel:
    """The kernel without the functions that `target.own_functions` names."""
    wanted = _names(kernel, target)
    if not wanted:
        return kernel
    fresh = Fresh.beyond(kernel)
    taken = {helper.name for helper in kernel.functions}
    helpers: list[HelperFunction] = []
    entries: dict[tuple[str, Scalar], str] = {}
    for name, type in wanted:
        added = renamed(stored(name, type), name, taken, fresh)
        taken |= {helper.name for helper in added}
        entries[name, type] = added[-1].name
        helpers += added

    def called(expr: Expr) -> Expr:
        if not _is_own(expr, target):
            return expr
        assert isinstance(expr, Intrinsic)
        assert isinstance(expr.type, Scalar)
        entry = entries.get((expr.name, expr.type))
        if entry is not None:
            return App(entry, expr.args, expr.type, span=expr.span)
        wide = tuple(Cast(FLOAT64, arg, span=expr.span) for arg in expr.args)
        value = App(entries[expr.name, FLOAT64], wide, FLOAT64, span=expr.span)
        return Cast(FLOAT32, value, span=expr.span)

    def mapped(body: Body) -> Body:
        return map_body_expressions(body, lambda root: map_expr(root, called))

    kernel = map_bodies(kernel, mapped)
    return replace(kernel, functions=(*helpers, *kernel.functions))


def _names(kernel: Kernel, target: Target) -> list[tuple[str, Scalar]]:
    """The functions that are called in place of others, each once, in the order of their uses."""
    found: dict[tuple[str, Scalar], None] = {}
    if target.own_functions:
        for body in bodies_of_kernel(kernel):
            for expr in walk_body_exprs(body):
                if isinstance(expr, Intrinsic) and _is_own(expr, target):
                    is_single = expr.type is FLOAT32 and expr.name in singles_stored()
                    found[expr.name, FLOAT32 if is_single else FLOAT64] = None
    return list(found)


def _is_own(expr: Expr, target: Target) -> bool:
    return isinstance(expr, Intrinsic) and (expr.name, expr.type) in target.own_functions


@cache
def stored(name: str, type: Scalar) -> tuple[HelperFunction, ...]:
    """The helpers that compute a function of a type, callees first, the function itself last."""
    folder = _FOLDER / _SINGLES if type is FLOAT32 else _FOLDER
    rows: list[Row] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
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
    return frozenset((name, scalar) for name in _within(_FOLDER) for scalar in (FLOAT32, FLOAT64))


@cache
def singles_stored() -> frozenset[str]:
    """Those of `functions_stored` whose float32 is computed in float32."""
    return _within(_FOLDER / _SINGLES)


def _within(folder: Traversable) -> frozenset[str]:
    return frozenset(
        entry.name.removesuffix(".json")
        for entry in folder.iterdir()
        if entry.name.endswith(".json")
    )


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
