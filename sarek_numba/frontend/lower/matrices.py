"""Lowering of `sarek.coopmat`: fragments are names of the IR, of a block each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba.core import ir

from sarek_numba.errors import Diagnostic, UnsupportedConstruct
from sarek_numba.frontend import typed as t
from sarek_numba.frontend.extensions import FragmentType
from sarek_numba.frontend.lower import arrays
from sarek_numba.frontend.lower.convert import cast
from sarek_numba.frontend.lower.values import NOTHING, FragmentValue, Value
from sarek_numba.ir.matrices import fragments_of
from sarek_numba.ir.nodes import (
    Body,
    CMDecl,
    CMFill,
    CMLoad,
    CMMulAdd,
    CMStore,
    Coopmat,
    CoopmatOp,
)
from sarek_numba.ir.types import INT64
from sarek_numba.ir.walk import bodies_of
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering
    from sarek_numba.frontend.regions import Statement


def lower_matrix(lowering: FunctionLowering, operation: t.Operation, statement: Statement) -> Value:
    """The value of a declaration; the other operations are emitted and have none."""
    span = lowering.span(statement)
    what = operation.what
    if isinstance(what, t.Fragment):
        word = lowering.name_of(statement.target.name)
        name = lowering.program.unique_fragment("fragment" if word == "t" else word)
        kind = fragments_of(what.config)[what.use]
        lowering.emitter.emit(Coopmat(CMDecl(name, kind), span=span))
        return FragmentValue(name)
    assert isinstance(what, t.Matrix)
    lowering.emitter.settle_memory()
    lowering.emitter.emit(Coopmat(_operation(lowering, operation, what, span), span=span))
    return NOTHING


def _operation(
    lowering: FunctionLowering, operation: t.Operation, what: t.Matrix, span: Span
) -> CoopmatOp:
    if what.op == "muladd":
        target, a, b, c = (_name(lowering, each) for each in operation.arguments)
        return CMMulAdd(target, a, b, c, what.config)
    held = operation.operands[0]
    assert isinstance(held, FragmentType)
    name = _name(lowering, operation.arguments[0])
    kind = fragments_of(what.config)[held.use]
    if what.op == "fill":
        value = lowering.number(operation.arguments[1], operation.operands[1])
        return CMFill(name, kind, cast(value, kind.component, span=span))
    view, index = arrays.place_of(lowering, operation, 1, span)
    stride = lowering.number(operation.arguments[3], operation.operands[3])
    stride = cast(stride, INT64, span=span)
    make = CMLoad if what.op == "load" else CMStore
    return make(name, kind, view.base, index, stride, what.column_major)


def _name(lowering: FunctionLowering, argument: t.Argument) -> str:
    assert isinstance(argument, ir.Var)
    value = lowering.read(argument)
    assert isinstance(value, FragmentValue), f"{argument} is no fragment"
    return value.name


def check_scopes(body: Body) -> None:
    """Refuse a fragment that is used where its block has ended. Raises UnsupportedConstruct."""
    _check(body, frozenset())


def _check(body: Body, outer: frozenset[str]) -> None:
    known = outer
    for stmt in body:
        if isinstance(stmt, Coopmat):
            if isinstance(stmt.op, CMDecl):
                known |= {stmt.op.name}
            else:
                _check_names(stmt, known)
        for inner in bodies_of(stmt):
            _check(inner, known)


def _check_names(stmt: Coopmat, known: frozenset[str]) -> None:
    for name in _names(stmt.op):
        if name not in known:
            raise UnsupportedConstruct(
                Diagnostic(
                    UnsupportedConstruct,
                    f"the fragment {name!r} is used where the block that declares it has ended",
                    stmt.span,
                    "declare it before the branch or loop",
                )
            )


def _names(op: CoopmatOp) -> tuple[str, ...]:
    match op:
        case CMDecl(name=name):
            return (name,)
        case CMLoad(target=name) | CMFill(target=name) | CMStore(source=name):
            return (name,)
        case CMMulAdd(target=target, a=a, b=b, c=c):
            return (target, a, b, c)
