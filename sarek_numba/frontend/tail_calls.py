"""Tail recursion as a loop, on Numba IR before SSA.

In: the IR of a device function. Out: the same IR, changed in place. Where each call that the
function makes of itself is the last thing it does (`return f(...)`, or `f(...)` at the end of a
function without results), such a call becomes an assignment of the parameters and a jump behind
the function's start. Otherwise nothing changes. The name of the function is still read, so that
it stays a captured value.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType

from numba.core import ir

from sarek_numba.frontend.compile_time import Definitions
from sarek_numba.frontend.context import device_function
from sarek_numba.frontend.reads import read_by_statement
from sarek_numba.frontend.rules.calls import bound_arguments
from sarek_numba.frontend.typed import Argument, Default
from sarek_numba.frontend.weak import Refusal


@dataclass(frozen=True, slots=True)
class _TailCall:
    """A call by its block and position, its arguments by parameter, and if it drops the result."""

    label: int
    position: int
    arguments: tuple[Argument, ...]
    drops_result: bool


def make_loop_of_tail_calls(function_ir: ir.FunctionIR, function: FunctionType) -> None:
    """Turn the calls of itself into a loop if all are tail calls."""
    blocks = function_ir.blocks
    definitions = Definitions(blocks)
    places = [
        (label, position)
        for label, block in blocks.items()
        for position, statement in enumerate(block.body)
        if _calls(statement, function, definitions)
    ]
    calls = [_tail_call(blocks, *place, function, definitions) for place in places]
    known = [call for call in calls if call is not None]
    if not known or len(known) < len(calls):
        return
    if any(call.drops_result for call in known) and not _returns_nothing(blocks, known):
        return
    header = _split_entry(function_ir)
    for call in known:
        _jump(function_ir, call, header)
    _forget_locals(function_ir, header)


def _calls(statement: ir.Stmt, function: FunctionType, definitions: Definitions) -> bool:
    value = getattr(statement, "value", None)
    if not (isinstance(statement, ir.Assign) and isinstance(value, ir.Expr) and value.op == "call"):
        return False
    try:
        callee = device_function(definitions.object_of(value.func.name))
    except Refusal:
        return False
    return callee is not None and callee.function is function


def _tail_call(
    blocks: dict[int, ir.Block],
    label: int,
    position: int,
    function: FunctionType,
    definitions: Definitions,
) -> _TailCall | None:
    """The call as a tail call; None if anything is done behind it, or its arguments do not fit."""
    statement = blocks[label].body[position]
    call = statement.value
    if call.vararg is not None or call.varkwarg is not None:
        return None
    drops_result = _what_follows(blocks, label, position, statement.target.name)
    if drops_result is None:
        return None
    try:
        arguments = bound_arguments(function, tuple(call.args), dict(call.kws))
    except Refusal:  # inference says it
        return None
    return _TailCall(label, position, arguments, drops_result)


def _what_follows(
    blocks: dict[int, ir.Block], label: int, position: int, result: str
) -> bool | None:
    """Whether None is returned behind a call, instead of its result; None if anything else is."""
    carried, nothing, passed = {result}, set(), set()
    while label not in passed:
        passed.add(label)
        for statement in blocks[label].body[position + 1 : -1]:
            if not isinstance(statement, ir.Assign):
                return None
            value = statement.value
            if isinstance(value, ir.Expr) and value.op == "cast":
                value = value.value
            if isinstance(value, ir.Var) and value.name in carried:
                carried.add(statement.target.name)
            elif (isinstance(value, ir.Var) and value.name in nothing) or (
                isinstance(value, ir.Const) and value.value is None
            ):
                nothing.add(statement.target.name)
            else:
                return None
        last = blocks[label].body[-1]
        if isinstance(last, ir.Return):
            found = last.value.name
            return False if found in carried else True if found in nothing else None
        if not isinstance(last, ir.Jump):
            return None
        label, position = last.target, -1
    return None


def _returns_nothing(blocks: dict[int, ir.Block], calls: list[_TailCall]) -> bool:
    """Whether all returns but those of tail calls give None."""
    definitions = Definitions(blocks)
    results = {blocks[call.label].body[call.position].value for call in calls}
    for block in blocks.values():
        last = block.body[-1]
        if isinstance(last, ir.Return):
            value = definitions.single(last.value.name)
            is_none = isinstance(value, ir.Const) and value.value is None
            if not is_none and value not in results:
                return False
    return True


def _split_entry(function_ir: ir.FunctionIR) -> int:
    """Leave the parameters in the first block; what comes behind them is a new one."""
    blocks = function_ir.blocks
    entry = blocks[min(blocks)]
    header: int = max(blocks) + 1
    rest = [statement for statement in entry.body if not _is_parameter(statement)]
    blocks[header] = ir.Block(entry.scope, rest[0].loc)
    blocks[header].body = rest
    entry.body = [statement for statement in entry.body if _is_parameter(statement)]
    entry.body.append(ir.Jump(header, rest[0].loc))
    return header


def _is_parameter(statement: ir.Stmt) -> bool:
    return isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Arg)


def _jump(function_ir: ir.FunctionIR, call: _TailCall, header: int) -> None:
    blocks = function_ir.blocks
    block = blocks[call.label]
    if call.label == min(blocks):  # its statements have moved
        block = blocks[header]
    offset = len(blocks[min(blocks)].body) - 1 if block is blocks[header] else 0
    loc = block.body[call.position - offset].loc
    body = block.body[: call.position - offset]
    names = [statement.target for statement in blocks[min(blocks)].body[:-1]]
    moved: list[ir.Stmt] = []
    for number, (name, argument) in enumerate(zip(names, call.arguments, strict=True)):
        if isinstance(argument, ir.Var) and argument.name == name.name:
            continue
        value = ir.Const(argument.value, loc) if isinstance(argument, Default) else argument
        kept = block.scope.get_or_define(f"$tail{call.label}.{number}", loc=loc)
        body.append(ir.Assign(value, kept, loc))
        moved.append(ir.Assign(kept, name, loc))
        function_ir._definitions[kept.name].append(value)
        function_ir._definitions[name.name].append(kept)
    block.body = [*body, *moved, ir.Jump(header, loc)]


def _forget_locals(function_ir: ir.FunctionIR, header: int) -> None:
    """A call starts without locals: one that may be read before it is set has no value there."""
    block = function_ir.blocks[header]
    parameters = {s.target.name for s in function_ir.blocks[min(function_ir.blocks)].body[:-1]}
    for name in sorted(_live_at(function_ir.blocks)[header] - parameters):
        if not name.startswith("$"):
            undefined = ir.Expr.undef(block.loc)
            target = block.scope.get_exact(name)
            block.body.insert(0, ir.Assign(undefined, target, block.loc))
            function_ir._definitions[name].append(undefined)


def _live_at(blocks: dict[int, ir.Block]) -> dict[int, set[str]]:
    """The names that may be read, from the start of each block on, before they are assigned."""
    read: dict[int, set[str]] = {}
    assigned: dict[int, set[str]] = {}
    for label, block in blocks.items():
        reads: set[str] = set()
        sets: set[str] = set()
        for statement in block.body:
            reads |= set(read_by_statement(statement)) - sets
            if isinstance(statement, ir.Assign):
                sets.add(statement.target.name)
        read[label], assigned[label] = reads, sets
    live: dict[int, set[str]] = {label: set(names) for label, names in read.items()}
    changed = True
    while changed:
        changed = False
        for label, block in blocks.items():
            after: set[str] = set()
            for target in block.body[-1].get_targets():
                after |= live[target]
            new = read[label] | (after - assigned[label])
            if new != live[label]:
                live[label], changed = new, True
    return live


__all__ = ["make_loop_of_tail_calls"]
