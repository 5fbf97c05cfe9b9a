"""`for` over a constant tuple as its body once for each item.

The tuple is written behind `in`, or is what a captured name stands for. Each pass is typed for
itself, so the items may be of any types: numbers, arrays, tuples, functions. A body with a `break`
or `continue` of the loop becomes a loop of one pass; after a `break` no further pass is entered:

    for f in (sine, cosine):                going = True
        if n < 0:                           for once in range(1):
            break                               f = sine
        use(f)                                  if n < 0:
    else:                                           going = False
        done()                                      break
                                                use(f)
                                            if going:
                                                for once in range(1): ...  # the same with cosine
                                            if going:
                                                done()

The items of a written tuple are evaluated before the first pass, as the tuple is in Python: all but
constants, captured names, and variables that the loop does not assign.

A tuple of more than `MOST_PASSES` items is left to a loop, which takes numbers alone.

Passes must not be taken for the copies that CPython makes of one statement (`tails`), since their
variables may be of other types. So each pass has line numbers of its own, a multiple of `FAR` from
the written ones.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from types import FunctionType
from typing import Any

from sarek_numba.frontend.tree import located

MOST_PASSES = 32
FAR = 1 << 20  # lines
_LAST = (1 << 31) // FAR  # how many multiples of it a line number has room for

Evaluate = Callable[[ast.expr, FunctionType], Any]


def items_of(
    loop: ast.AST, function: FunctionType, evaluate: Evaluate, assigned: set[str]
) -> list[ast.expr] | None:
    """Expressions of the items of the constant tuple that a loop runs over; None if it does not.

    `assigned` are the function's own variables, which no captured name has.
    """
    if not isinstance(loop, ast.For):
        return None
    over = loop.iter
    if isinstance(over, ast.Tuple):
        if any(isinstance(item, ast.Starred) for item in over.elts):
            return None
        return over.elts if len(over.elts) <= MOST_PASSES else None
    first = over
    while isinstance(first, ast.Attribute):
        first = first.value
    if not isinstance(first, ast.Name) or first.id in assigned:
        return None
    value = evaluate(over, function)
    if not isinstance(value, tuple) or len(value) > MOST_PASSES:
        return None
    return [
        ast.copy_location(
            ast.Subscript(over, ast.copy_location(ast.Constant(k), over), ast.Load()), over
        )
        for k in range(len(value))
    ]


def written_line(line: int) -> int:
    """The line of the source for a line of a pass."""
    return line % FAR


def unrolled(
    loop: ast.For, items: list[ast.expr], fresh: Callable[[str], str], assigned: set[str]
) -> list[ast.stmt]:
    """The statements that stand for a loop, whose body is rewritten already."""
    before: list[ast.stmt] = []
    if items is getattr(loop.iter, "elts", None):
        changed = _stored_in(loop)
        items = [_evaluated(item, fresh, assigned, changed, before) for item in items]
    return [*before, *_in_passes(loop, items, fresh)]


def _stored_in(loop: ast.For) -> set[str]:
    """The variables that a loop assigns."""
    return {
        node.id
        for node in ast.walk(loop)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _evaluated(
    item: ast.expr,
    fresh: Callable[[str], str],
    assigned: set[str],
    changed: set[str],
    before: list[ast.stmt],
) -> ast.expr:
    """An item, or a variable to which `before` assigns it."""
    if isinstance(item, ast.Tuple):
        elements = [_evaluated(each, fresh, assigned, changed, before) for each in item.elts]
        return ast.copy_location(ast.Tuple(elements, ast.Load()), item)
    first = item.operand if isinstance(item, ast.UnaryOp) else item
    if isinstance(first, ast.Constant):
        return item
    while isinstance(first, ast.Attribute):
        first = first.value
    if isinstance(first, ast.Name):
        captured = first.id not in assigned
        if captured or (first is item and first.id not in changed):
            return item
    name = fresh("item")
    target = ast.copy_location(ast.Name(name, ast.Store()), item)
    before.append(ast.copy_location(ast.Assign([target], item), item))
    return ast.copy_location(ast.Name(name, ast.Load()), item)


def _in_passes(loop: ast.For, items: list[ast.expr], fresh: Callable[[str], str]) -> list[ast.stmt]:
    """A loop as its passes."""
    passes = _passes(loop, items)
    jumps = [type(jump) for jump in _own_jumps(loop.body)]
    if not jumps:
        flat = [statement for body in passes for statement in body]
        return [*flat, *loop.orelse] or [ast.copy_location(ast.Pass(), loop)]
    once = fresh("once")
    if ast.Break not in jumps:
        loops = [_once(loop, once, body) for body in passes]
        return [*loops, *loop.orelse] or [ast.copy_location(ast.Pass(), loop)]
    going = fresh("going")
    rest: list[ast.stmt] = list(loop.orelse)
    for body in reversed(passes):
        rest = [_if(loop, going, rest)] if rest else []
        rest = [_once(loop, once, _with_flag(body, going)), *rest]
    return [_store(loop, going, True), *rest]


def _passes(loop: ast.For, items: list[ast.expr]) -> list[list[ast.stmt]]:
    """The body for each item, on lines of its own."""
    far = 1 + max(_line(node) for statement in loop.body for node in ast.walk(statement)) // FAR
    if far * len(items) > _LAST:
        far = 0
    return [_moved(_pass(loop, item), k * far * FAR) for k, item in enumerate(items)]


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _moved(body: list[ast.stmt], lines: int) -> list[ast.stmt]:
    for statement in body:
        for node in ast.walk(statement):
            if "lineno" in node._attributes:
                node.lineno += lines  # type: ignore[attr-defined] # it has that attribute
                node.end_lineno += lines  # type: ignore[attr-defined]
    return body


def _pass(loop: ast.For, item: ast.expr) -> list[ast.stmt]:
    target = copy.deepcopy(loop.target)
    assign = ast.copy_location(ast.Assign([target], copy.deepcopy(item)), item)
    return [assign, *copy.deepcopy(loop.body)]


def _own_jumps(body: list[ast.stmt]) -> list[ast.stmt]:
    """Each `break` and `continue` that belongs to the loop with this body."""
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Break | ast.Continue):
            found.append(statement)
        for inner in _bodies(statement):
            found += _own_jumps(inner)
    return found


def _bodies(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The bodies in a statement whose jumps leave a loop around it."""
    match statement:
        case ast.For(orelse=orelse) | ast.While(orelse=orelse):
            return [orelse]
        case ast.If(body=body, orelse=orelse):
            return [body, orelse]
        case ast.With(body=body):
            return [body]
        case _:
            return []


def _with_flag(body: list[ast.stmt], going: str) -> list[ast.stmt]:
    """The body in which each `break` says first that the loop is over."""
    result: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Break):
            result.append(_store(statement, going, False))
        for inner in _bodies(statement):
            inner[:] = _with_flag(inner, going)
        result.append(statement)
    return result


# --- nodes ----------------------------------------------------------------------------------------


def _store(place: ast.stmt, name: str, value: bool) -> ast.stmt:
    stored: ast.stmt = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))
    return located(stored, place)


def _if(place: ast.For, name: str, body: list[ast.stmt]) -> ast.stmt:
    test: ast.expr = located(ast.Name(name, ast.Load()), place.iter)
    return ast.copy_location(ast.If(test, body, []), place)


def _once(place: ast.For, name: str, body: list[ast.stmt]) -> ast.stmt:
    """`for name in range(1):`, whatever `range` is in the program."""
    target: ast.expr = located(ast.Name(name, ast.Store()), place.iter)
    call: ast.expr = ast.Call(ast.Name(RANGE, ast.Load()), [ast.Constant(1)], [])
    return ast.copy_location(ast.For(target, located(call, place.iter), body, []), place)


RANGE = "<range>"  # a free variable that no program can write
FUNCTIONS: dict[str, Any] = {RANGE: range}
