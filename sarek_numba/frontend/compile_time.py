"""Which Python object a variable of Numba's IR stands for, before it is typed."""

from __future__ import annotations

import enum
from collections import defaultdict
from types import ModuleType
from typing import Any

from numba.core import ir

UNKNOWN = object()


class Definitions:
    """The assignments of each name of a function, before SSA."""

    def __init__(self, blocks: dict[int, ir.Block]) -> None:
        self.of: dict[str, list[Any]] = defaultdict(list)
        for block in blocks.values():
            for statement in block.body:
                if isinstance(statement, ir.Assign):
                    self.of[statement.target.name].append(statement.value)

    def single(self, name: str) -> Any:
        """What a name is assigned, copies followed; None if that is not one thing."""
        while True:
            values = self.of.get(name, ())
            if len(values) != 1:
                return None
            value = values[0]
            if isinstance(value, ir.Expr) and value.op == "cast":
                value = value.value
            if not isinstance(value, ir.Var):
                return value
            name = value.name

    def object_of(self, name: str) -> Any:
        """The constant, captured value or attribute of a module or class; else `UNKNOWN`."""
        value = self.single(name)
        if isinstance(value, (ir.Global, ir.FreeVar, ir.Const)):
            return value.value
        if isinstance(value, ir.Expr) and value.op == "getattr":
            owner = self.object_of(value.value.name)
            if isinstance(owner, (ModuleType, type, enum.Enum)):
                return getattr(owner, value.attr, UNKNOWN)
        return UNKNOWN
