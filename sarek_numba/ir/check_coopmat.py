"""The rules of cooperative matrices, on top of `ir.check_expr`: see `ir.verify`."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from sarek_numba.ir.check_expr import Broken, ExprChecker
from sarek_numba.ir.matrices import ACCUMULATORS, fragments_of, lies_in
from sarek_numba.ir.nodes import (
    CMDecl,
    CMFill,
    CMLoad,
    CMMulAdd,
    CMStore,
    Coopmat,
    Expr,
    Fragment,
    Var,
)
from sarek_numba.ir.types import ElementType, MemSpace, Vec

_SPACES = (MemSpace.GLOBAL, MemSpace.SHARED)


def check_coopmat(
    checker: ExprChecker, fragments: dict[str, Fragment], warp: int | None, stmt: Coopmat
) -> None:
    """Raises Broken for an operation whose fragments, memory or operands do not fit.

    `fragments` are those in scope, to which a declaration adds its own; whether an array may be
    written is looked at elsewhere.
    """
    if not isinstance(stmt.op, CMDecl) and warp is None:
        raise Broken(stmt, "the kernel states no width of a warp")
    match stmt.op:
        case CMDecl(name=name, fragment=fragment):
            if name in fragments:
                raise Broken(stmt, f"fragment {name} is declared twice")
            fragments[name] = fragment
        case CMLoad(target=name, fragment=fragment, source=array) as op:
            _declared(stmt, fragments, name, fragment)
            _tile(checker, stmt, array, fragment)
            _offsets(checker, op.index, op.stride)
        case CMStore(source=name, fragment=fragment, target=array) as op:
            _declared(stmt, fragments, name, fragment)
            _tile(checker, stmt, array, fragment)
            _offsets(checker, op.index, op.stride)
        case CMFill(target=name, fragment=fragment, value=value):
            _declared(stmt, fragments, name, fragment)
            what = f"what fragment {name} is filled with"
            if not lies_in(fragment.component, checker.type(value)):
                checker.expect(value, fragment.component, what)
        case CMMulAdd(target=target, a=a, b=b, c=c, config=config):
            wanted = fragments_of(config)
            for name, use in ((target, "result"), (a, "a"), (b, "b"), (c, "c")):
                _declared(stmt, fragments, name, wanted[use], accumulates=True)
        case _:
            assert_never(stmt.op)


def _declared(
    stmt: Coopmat,
    fragments: dict[str, Fragment],
    name: str,
    wanted: Fragment,
    *,
    accumulates: bool = False,
) -> None:
    """A multiply-add adds to what an earlier one gave: of one type, `c` may be a `result`."""
    found = fragments.get(name)
    if accumulates and found is not None and {found.use, wanted.use} <= set(ACCUMULATORS):
        found = replace(found, use=wanted.use)
    if found != wanted:
        raise Broken(stmt, f"fragment {name} is not declared so")


def _tile(checker: ExprChecker, stmt: Coopmat, array: Var, fragment: Fragment) -> None:
    element: ElementType = checker.use_array(array, stmt)
    space = MemSpace.GLOBAL
    if not isinstance(array.type, Vec):
        space = getattr(array.type, "space", MemSpace.GLOBAL)
    if not lies_in(fragment.component, element) or space not in _SPACES:
        raise Broken(stmt, f"a fragment of {fragment.component.value} is not in {array.name}")


def _offsets(checker: ExprChecker, index: Expr, stride: Expr) -> None:
    checker.integer(index)
    checker.integer(stride)
