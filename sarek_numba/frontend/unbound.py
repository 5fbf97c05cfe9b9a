"""Variables that hold nothing on any path.

Comes in: blocks in SSA form, in which `ir.UNDEFINED` in a phi, or an `undef`, stands for a local
that nothing has assigned. A statement that reads such a local raises, so what it would assign holds
nothing either: in `while c: n += 1`, with no other assignment of `n`, no path gives it a value.
"""

from __future__ import annotations

from typing import Any

from numba.core import ir

from sarek_numba.frontend.reads import read_by_value


def holding_nothing(blocks: dict[int, ir.Block]) -> set[str]:
    """The variables that are unassigned wherever they are read.

    What only the reading of another such variable leaves unassigned is not among them.
    """
    assignments = _assignments(blocks)
    if not any(_has_undefined(each) for each in assignments):
        return set()
    holding = _holding(assignments)
    causes = {
        each.target.name: each
        for each in assignments
        if each.target.name not in holding and (is_phi(each) or is_undefined(each))
    }
    nothing = {name for name, each in causes.items() if _has_undefined(each)}
    changed = True
    while changed:
        changed = False
        for name, each in causes.items():
            if name not in nothing and not nothing.isdisjoint(read_by_value(each.value)):
                nothing.add(name)
                changed = True
    return nothing


def drop_undefined(blocks: dict[int, ir.Block]) -> None:
    """Leave out definitions that hold nothing, where only phis had them, as `ir.UNDEFINED`."""
    for block in blocks.values():
        block.body = [inst for inst in block.body if not is_undefined(inst)]


def phis_of(blocks: dict[int, ir.Block]) -> list[Any]:
    return [inst for block in blocks.values() for inst in block.body if is_phi(inst)]


def is_phi(inst: Any) -> bool:
    return (
        isinstance(inst, ir.Assign) and isinstance(inst.value, ir.Expr) and inst.value.op == "phi"
    )


def is_undefined(inst: Any) -> bool:
    if not isinstance(inst, ir.Assign):
        return False
    value = inst.value
    return value is ir.UNDEFINED or (isinstance(value, ir.Expr) and value.op == "undef")


def _assignments(blocks: dict[int, ir.Block]) -> list[ir.Assign]:
    return [inst for block in blocks.values() for inst in block.body if isinstance(inst, ir.Assign)]


def _has_undefined(inst: ir.Assign) -> bool:
    return is_undefined(inst) or (
        is_phi(inst) and any(each is ir.UNDEFINED for each in inst.value.incoming_values)
    )


def _holding(assignments: list[ir.Assign]) -> set[str]:
    """The variables that some path may give a value."""
    holding: set[str] = set()
    pending = [each for each in assignments if not is_undefined(each)]
    count = -1
    while count != len(holding):
        count = len(holding)
        rest = []
        for each in pending:
            some_or_all = any if is_phi(each) else all
            if some_or_all(name in holding for name in read_by_value(each.value)):
                holding.add(each.target.name)
            else:
                rest.append(each)
        pending = rest
    return holding
