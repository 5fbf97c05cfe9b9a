"""The copies of phis: what an edge of the control-flow graph assigns.

Most phis are none, since all versions of a user's variable share one. What is left are temporaries,
versions of other types, and the parts of tuples and views.
"""

from __future__ import annotations

from dataclasses import replace

from numba.core import ir

from sarek_numba.frontend.lower import records, views
from sarek_numba.frontend.lower.convert import cast
from sarek_numba.frontend.lower.function import FunctionLowering
from sarek_numba.frontend.lower.values import (
    NOTHING,
    Cell,
    ComplexValue,
    IteratorValue,
    Nothing,
    RangeValue,
    RecordRef,
    TupleValue,
    Value,
    View,
    cells_of,
    reads_variable,
)
from sarek_numba.frontend.names import is_temporary, user_name
from sarek_numba.frontend.records import is_value
from sarek_numba.frontend.regions import Node, Phi
from sarek_numba.frontend.weak import is_number
from sarek_numba.ir.nodes import Expr, Var, VarRef
from sarek_numba.ir.types import PART_NAMES
from sarek_numba.ir.typing import type_of


def copy_phis(lowering: FunctionLowering, node: Node | None, source: int) -> None:
    """The phis of a node take their values, as if all at once."""
    moves: list[tuple[Var, Cell, object]] = []
    for phi in node.phis if node is not None else ():
        incoming = phi.incoming.get(source)
        name = phi.target.name
        if incoming is None or not lowering.homes.reads[name]:
            continue
        target = lowering.type_of(phi.target)
        if is_number(target):
            home = lowering.homes.get(name)
            if home is None or lowering.homes.get(incoming.name) is home:
                continue
            value = lowering.converted(lowering.read(incoming), lowering.type_of(incoming), target)
            assert isinstance(value, Cell)
            moves.append((home, Cell(value.expr), phi))
        elif is_value(target):
            moves += records.copy_phi(lowering, phi.target, incoming, phi)
        else:
            moves += _copy_parts(lowering, phi, incoming)
    for k, (home, cell, phi_of) in enumerate(moves):
        for _, later, _ in moves[k + 1 :]:
            if reads_variable(later.expr, home):
                later.expr = lowering.emitter.store(later.expr)
        assert isinstance(phi_of, Phi)
        span = lowering.span(phi_of)
        expr = cast(cell.expr, home.type, span=span)  # type: ignore[arg-type] # a scalar
        if not (isinstance(expr, VarRef) and expr.var is home):
            lowering.emitter.assign(home, expr, span)


def _copy_parts(
    lowering: FunctionLowering, phi: Phi, incoming: ir.Var
) -> list[tuple[Var, Cell, object]]:
    """Copies of the parts of a tuple or a view."""
    name = phi.target.name
    value = lowering.converted(
        lowering.read(incoming), lowering.type_of(incoming), lowering.type_of(phi.target)
    )
    known = lowering.environment.get(name)
    if isinstance(value, (Nothing, IteratorValue, RangeValue)):
        lowering.environment[name] = value
        return []
    if known is None or isinstance(known, Nothing):
        known = lowering.environment[name] = _parts(lowering, value, user_name(name))
    if not _alike(known, value):
        word = user_name(name) if not is_temporary(name) else "a value"
        if isinstance(value, RecordRef):
            raise lowering.refuse(
                f"{word!r} is an element of one array or another, as the flow decides",
                phi,
                "take a copy of the element, as in p[i].copy()",
            )
        raise lowering.refuse(
            f"{word!r} is one array or another, as the flow decides",
            phi,
            "use an if statement around the accesses",
        )
    pairs = zip(cells_of(known), cells_of(_strided(lowering, value, known)), strict=True)
    return [
        (ours.expr.var, theirs, phi)
        for ours, theirs in pairs
        if isinstance(ours.expr, VarRef) and not _is_same(ours.expr, theirs.expr)
    ]


def _is_same(left: VarRef, right: Expr) -> bool:
    return isinstance(right, VarRef) and right.var is left.var


def _parts(lowering: FunctionLowering, value: Value, name: str) -> Value:
    """A value of the same shape whose numbers are new variables."""
    word = "t" if is_temporary(name) else name

    def part(cell: Cell, suffix: str = "") -> Cell:
        return Cell(VarRef(lowering.ids.var(f"{word}{suffix}", type_of(cell.expr), mutable=True)))

    match value:
        case Cell():
            return part(value)
        case ComplexValue(items):
            pairs = zip(items, PART_NAMES, strict=True)
            cells = [part(cell, f"_{name}") for cell, name in pairs if isinstance(cell, Cell)]
            return ComplexValue(tuple(cells))
        case TupleValue(items):
            return TupleValue(tuple(_parts(lowering, item, name) for item in items))
        case View():
            value = _strided(lowering, value, None)
            assert isinstance(value, View)
            within = value.records
            return replace(
                value,
                shape=tuple(part(cell, "_shape") for cell in value.shape),
                offset=part(value.offset, "_offset"),
                strides=tuple(part(cell, "_stride") for cell in value.strides),
                records=None
                if within is None
                else replace(within, indices=tuple(map(part, within.indices))),
            )
        case RecordRef(indices=indices):
            return replace(value, indices=tuple(map(part, indices)))
        case _:
            return NOTHING


def _strided(lowering: FunctionLowering, value: Value, like: Value | None) -> Value:
    """A view with strides written out, as a variable view has them; tuples item by item."""
    if isinstance(value, View) and value.order is not None:
        return views.select(value, (), lowering.emitter.bind, None)
    if isinstance(value, TupleValue) and (like is None or isinstance(like, TupleValue)):
        likes = like.items if isinstance(like, TupleValue) else (None,) * len(value.items)
        pairs = zip(value.items, likes, strict=True)
        return TupleValue(tuple(_strided(lowering, item, other) for item, other in pairs))
    return value


def _alike_places(left: RecordRef | None, right: RecordRef | None) -> bool:
    if left is None or right is None:
        return left is right
    return left.store is right.store and left.path == right.path


def _alike(left: Value, right: Value) -> bool:
    match left, right:
        case Cell(), Cell():
            return True
        case View(), View():
            return (
                left.base is right.base
                and left.ndim == right.ndim
                and left.packed is right.packed
                and _alike_places(left.records, right.records)
            )
        case RecordRef(), RecordRef():
            return _alike_places(left, right)
        case TupleValue(ours), TupleValue(theirs):
            return len(ours) == len(theirs) and all(map(_alike, ours, theirs))
        case _:
            return type(left) is type(right)
