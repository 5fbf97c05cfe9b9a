"""Names that stand for one record while it changes.

In Python two names may stand for one record, and what is stored through one is seen through the
other. A variable that is joined from several paths, however, has a record of its own, into which
each path copies. The two agree unless a record that takes part in such a join has several names and
is changed: that is refused. No flow is followed, so it is refused also where the change comes
before the second name.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from numba.core import ir, types

from sarek_numba.errors import Diagnostic, UnsupportedConstruct
from sarek_numba.frontend import typed as t
from sarek_numba.frontend.inferer import Inferer
from sarek_numba.frontend.names import user_name
from sarek_numba.frontend.records import RecordType, is_value, is_variant_type

_PARTS = (t.GetField, t.GetItem, t.FieldView, t.TupleItem)
_CHANGES = (t.SetField, t.SetItem, t.SetRecord, t.Atomic, t.Call)


class _Classes:
    """Sets of variables that may stand for one record, or for parts of it."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def find(self, name: str) -> str:
        while name in self._parent:
            name = self._parent[name]
        return name

    def join(self, first: str, second: str) -> None:
        ours, theirs = self.find(first), self.find(second)
        if ours != theirs:
            self._parent[ours] = theirs


def check_aliases(inferer: Inferer) -> list[Diagnostic]:
    """The stores into records that several names may stand for."""
    if not any(is_value(known.type) for known in inferer.typevars.values()):
        return []
    classes = _Classes()
    joined: list[str] = []
    changes: list[tuple[str, Any]] = []
    for block in inferer.blocks.values():
        for inst in block.body:
            _collect(inferer, inst, classes, joined, changes)
    names: defaultdict[str, set[str]] = defaultdict(set)
    for inst in (inst for block in inferer.blocks.values() for inst in block.body):
        if isinstance(inst, ir.Assign) and not inst.target.is_temp:
            names[classes.find(inst.target.name)].add(user_name(inst.target.name))
    in_joins = {classes.find(name) for name in joined}
    return [
        _refused(inferer, sorted(names[classes.find(name)]), inst)
        for name, inst in changes
        if classes.find(name) in in_joins and len(names[classes.find(name)]) > 1
    ]


def _refused(inferer: Inferer, names: list[str], inst: Any) -> Diagnostic:
    shown = f"{', '.join(map(repr, names[:-1]))} and {names[-1]!r}"
    return Diagnostic(
        UnsupportedConstruct,
        f"{shown} may name one record, which is changed here",
        inferer.source.span_of(inst),
        "give each name a record of its own, as in q = r.copy()",
    )


def _collect(
    inferer: Inferer,
    inst: Any,
    classes: _Classes,
    joined: list[str],
    changes: list[tuple[str, Any]],
) -> None:
    operation = inferer.operations.get(inst.value if isinstance(inst, ir.Assign) else inst)
    if operation is not None and isinstance(operation.what, _CHANGES):
        taken = (
            operation.arguments if isinstance(operation.what, t.Call) else operation.arguments[:1]
        )
        for argument in taken:
            if isinstance(argument, ir.Var) and _may_change(inferer, argument, operation.what):
                changes.append((argument.name, inst))
    if not isinstance(inst, ir.Assign) or not _holds(inferer.type_of(inst.target.name)):
        return
    value, target = inst.value, inst.target.name
    for source in _sources(value, operation):
        if _holds(inferer.type_of(source)):
            classes.join(target, source)
    if isinstance(value, ir.Expr) and value.op == "phi":
        joined.append(target)


def _sources(value: Any, operation: t.Operation | None) -> list[str]:
    """The variables that a value is, or is a part of."""
    if isinstance(value, ir.Var):
        return [value.name]
    if not isinstance(value, ir.Expr):
        return []
    if operation is not None:
        first = operation.arguments[:1]
        if isinstance(operation.what, t.MakeTuple):
            first = operation.arguments
        found = first if isinstance(operation.what, (*_PARTS, t.MakeTuple)) else ()
        return [each.name for each in found if isinstance(each, ir.Var)]
    match value.op:
        case "phi":
            return [v.name for v in value.incoming_values if v is not ir.UNDEFINED]
        case "cast" | "exhaust_iter":
            return [value.value.name]
        case "build_tuple":
            return [item.name for item in value.items]
        case _:
            return []


def _holds(kind: Any) -> bool:
    """Whether a variable of a type may stand for a value, or for a part of one.

    A variant does not change, so it does not matter who else has it.
    """
    if isinstance(kind, types.BaseTuple):
        return any(map(_holds, kind.types))
    if is_variant_type(kind):
        return False
    return isinstance(kind, (RecordType, types.Array))


def _may_change(inferer: Inferer, argument: ir.Var, what: t.What) -> bool:
    """A function gets records as values, and may store into arrays."""
    kind = inferer.type_of(argument.name)
    return isinstance(kind, types.Array) or not isinstance(what, t.Call)
