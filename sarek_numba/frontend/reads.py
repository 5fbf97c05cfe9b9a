"""Which variables an instruction of Numba's IR reads: `list_vars` without its reflection."""

from __future__ import annotations

from typing import Any

from numba.core import ir


def read_by_value(value: Any) -> list[str]:
    """The names that the value of an assignment reads, once for each time."""
    if isinstance(value, ir.Var):
        return [value.name]
    if not isinstance(value, ir.Expr):
        return []
    names: list[str] = []
    for part in value._kws.values():
        if isinstance(part, ir.Var):
            names.append(part.name)
        elif isinstance(part, (list, tuple)):
            names += _in_items(part)
    return names


def read_by_statement(statement: ir.Stmt) -> list[str]:
    """The names that a statement reads, once for each time."""
    if isinstance(statement, ir.Assign):
        return read_by_value(statement.value)
    if isinstance(statement, ir.SetItem):
        return [statement.target.name, statement.index.name, statement.value.name]
    if isinstance(statement, ir.SetAttr):
        return [statement.target.name, statement.value.name]
    if isinstance(statement, ir.Branch):
        return [statement.cond.name]
    if isinstance(statement, ir.Return):
        return [statement.value.name]
    if isinstance(statement, ir.Jump):
        return []
    return [variable.name for variable in statement.list_vars()]


def _in_items(items: Any) -> list[str]:
    names: list[str] = []
    for item in items:
        if isinstance(item, ir.Var):
            names.append(item.name)
        elif isinstance(item, (list, tuple)):
            names += _in_items(item)
    return names
