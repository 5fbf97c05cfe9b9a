"""Operations of floats that a target has too inexactly, replaced by those of `passes.library`.

In: a kernel as lowered. Out: each operation that `target.own_operations` names is an `App` of a
helper on the bits of its operands, which the kernel then has. Python's `//` and `%` stand on a
quotient and a rest, and are helpers where either is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sarek_numba.ir.build import Fresh
from sarek_numba.ir.nodes import App, Binary, BinOp, Body, Expr, HelperFunction, Intrinsic, Kernel
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.walk import bodies_of_kernel, map_body_expressions, map_expr, walk_body_exprs
from sarek_numba.passes import library
from sarek_numba.passes.common import Target, Types, map_bodies
from sarek_numba.passes.functions import copied

OPERATIONS = ("divide", "fmod", "sqrt", "fma", "nextafter")

# what an operator is called in the library, and which operations it stands on
_BINARY: Mapping[BinOp, tuple[str, tuple[str, ...]]] = {
    BinOp.DIV: ("divide", ("divide",)),
    BinOp.MOD: ("fmod", ("fmod",)),
    BinOp.FLOORDIV: ("floor_div", ("divide", "fmod")),
    BinOp.FLOORMOD: ("floor_mod", ("fmod",)),
}


def exact_operations(kernel: Kernel, target: Target) -> Kernel:
    """The kernel without the operations that `target.own_operations` names."""
    if not target.own_operations:
        return kernel
    types = Types()
    wanted: dict[str, None] = {}
    for body in bodies_of_kernel(kernel):
        for expr in walk_body_exprs(body):
            name = _library_name(expr, target, types)
            if name is not None:
                wanted[name] = None
    if not wanted:
        return kernel
    helpers = library.all_of(tuple(wanted))
    names = _free_names(helpers, {helper.name for helper in kernel.functions})
    fresh = Fresh.beyond(kernel)
    added = tuple(copied(helper, names, fresh) for helper in helpers)

    def called(expr: Expr) -> Expr:
        name = _library_name(expr, target, types)
        if name is None:
            return expr
        match expr:
            case Binary(left=left, right=right):
                return App(names[name], (left, right), types.of(left), span=expr.span)
            case Intrinsic(args=args, type=type):
                return App(names[name], args, type, span=expr.span)
            case _:
                raise AssertionError("only these have a name in the library")

    def mapped(body: Body) -> Body:
        return map_body_expressions(body, lambda root: map_expr(root, called))

    kernel = map_bodies(kernel, mapped)
    return replace(kernel, functions=(*added, *kernel.functions))


def _library_name(expr: Expr, target: Target, types: Types) -> str | None:
    """The function of the library that an expression becomes; None where it stays."""
    own = target.own_operations
    match expr:
        case Binary(op=op, left=left) if op in _BINARY:
            type = types.of(left)
            name, stands_on = _BINARY[op]
        case Intrinsic(name=name, type=type) if name in OPERATIONS:
            stands_on = (name,)
        case _:
            return None
    if not isinstance(type, Scalar) or not any((each, type) in own for each in stands_on):
        return None
    return f"{name}_{type.value}"


def _free_names(helpers: tuple[HelperFunction, ...], taken: set[str]) -> dict[str, str]:
    """Names of helpers that the kernel does not have yet."""
    names: dict[str, str] = {}
    for helper in helpers:
        name = helper.name
        while name in taken:
            name += "_"
        taken.add(name)
        names[helper.name] = name
    return names
