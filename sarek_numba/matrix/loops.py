"""How often a loop runs, and what its variables are in pass number t.

`for i in range(first, stop, step)` runs with i = first + step * t. Two forms make one index of two:
a loop that starts at the thread's coordinate and steps by as many threads as there are, and a tile,
`range(u * T, min(u * T + T, n))`, whose passes are those of u times T.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sarek_numba.ir.nodes import (
    ArrayRead,
    Assign,
    Binary,
    BinOp,
    Body,
    Cast,
    Expr,
    For,
    Intrinsic,
    LVar,
    Unary,
    UnOp,
    Var,
    VarRef,
    While,
)
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.walk import declared_by, walk_exprs, walk_stmts
from sarek_numba.matrix.conditions import variables
from sarek_numba.matrix.indices import Space
from sarek_numba.matrix.polynomial import ONE, Polynomial, number, symbol
from sarek_numba.matrix.reasons import Reason, Refusal
from sarek_numba.span import Span


@dataclass(frozen=True, slots=True)
class Passes:
    """A loop's axis and its variable in each pass; `counted` if the axis counts its passes."""

    axis: int
    value: Expr
    counted: bool = True


def passes_of(
    space: Space, name: str, first: Expr, stop: Expr, step: Expr, span: Span | None
) -> Passes:
    """The passes of a `for`. Raises Refusal."""
    for bound in (first, stop, step):
        if any(isinstance(node, ArrayRead) for node in walk_exprs(bound)):
            raise Refusal(Reason.DATA_BOUND, f"'{name}'", span=span)
    start, by = space.polynomial(first), space.polynomial(step)
    if by == ONE and space.iterations(start):
        tile = _tile(space, name, start, stop)
        if tile is not None:
            return tile
    return _range(space, name, start, _bound(space, name, stop, span), by, span)


def _bound(space: Space, name: str, stop: Expr, span: Span | None) -> Polynomial:
    try:
        return space.polynomial(stop)
    except Refusal:
        raise Refusal(Reason.DATA_BOUND, f"'{name}'", span=span) from None


def _range(
    space: Space, name: str, first: Polynomial, stop: Polynomial, by: Polynomial, span: Span | None
) -> Passes:
    found = sorted(space.iterations(first))
    if space.iterations(stop) or len(found) > 1:
        raise Refusal(Reason.DATA_BOUND, f"'{name}'", span=span)
    if found:
        return _strided(space, name, found[0], first, stop, by, span)
    step = by.constant
    if not step:
        raise Refusal(Reason.STEP, span=span)
    if step > 0:
        extent = space.floor_divided(stop - first + number(step - 1), number(step))
    else:
        extent = space.floor_divided(first - stop + number(-step - 1), number(-step))
    axis = space.iteration(name, extent)
    space.symbols[axis].reversed = step < 0
    return Passes(axis, space.expr(first + by * symbol(axis)))


def _strided(
    space: Space,
    name: str,
    thread: int,
    first: Polynomial,
    stop: Polynomial,
    by: Polynomial,
    span: Span | None,
) -> Passes:
    """From a thread's coordinate, in steps of as many threads as there are: each index once."""
    extent, rest = space.symbols[thread].extent, first - symbol(thread)
    if space.iterations(rest):
        raise Refusal(Reason.DATA_BOUND, f"'{name}'", span=span)
    if by.constant is not None and by != extent:
        space.equalities.append((extent, by, span))
    elif by != extent:
        raise Refusal(Reason.STEP, span=span)
    space.consumed.add(thread)
    axis = space.iteration(name, stop - rest)
    space.symbols[axis].consumes = thread
    return Passes(axis, space.expr(rest + symbol(axis)), counted=False)


def _tile(space: Space, name: str, first: Polynomial, stop: Expr) -> Passes | None:
    """The passes of a tile joined with those over tiles; None if it is none."""
    found = sorted(space.iterations(first))
    if len(found) != 1:
        return None
    width, rest = first.coefficient(found[0]), first.without(frozenset(found))
    if rest or not space.uniform(width):
        return None
    uppers: list[Polynomial] = []
    ends = list(stop.args) if isinstance(stop, Intrinsic) and stop.name == "min" else [stop]
    full = False
    for end in map(space.polynomial, ends):
        if end == first + width:
            full = True
        elif space.uniform(end):
            uppers.append(end)
        else:
            return None
    if not full:
        return None
    space.consumed.add(found[0])
    outer = space.symbols[found[0]]
    axis = space.iteration(name, outer.extent * width)
    made = space.symbols[axis]
    made.consumes, made.uppers = found[0], uppers
    return Passes(axis, VarRef(made.var), counted=False)


# --- while ----------------------------------------------------------------------------------------


def induction(
    body: Body,
    before: Mapping[int, Expr],
    value: Callable[[Expr], Expr],
    loop: Var | None = None,
) -> dict[int, Expr]:
    """Integer variables to which each pass adds the same, and what it adds, by id."""
    own = {var.id for stmt in walk_stmts(body) for var in declared_by(stmt)}
    own |= {stmt.var.id for stmt in walk_stmts(body) if isinstance(stmt, For)}
    counts: dict[int, int] = {}
    for stmt in walk_stmts(body):
        match stmt:
            case Assign(target=LVar(var=var)):
                counts[var.id] = counts.get(var.id, 0) + 1
    changing = own | counts.keys() | ({loop.id} if loop is not None else set())
    steps: dict[int, Expr] = {}
    for stmt in body:
        match stmt:
            case Assign(target=LVar(var=var), value=Binary() as new) if (
                counts[var.id] == 1 and var.id in before and _is_index(var)
            ):
                step = _step(var, new)
                if step is not None and not {v.id for v in variables(step)} & changing:
                    steps[var.id] = step
    return {key: value(step) for key, step in steps.items() if _is_plain(step)}


def _is_index(var: Var) -> bool:
    return isinstance(var.type, Scalar) and var.type.is_integer


def _is_plain(step: Expr) -> bool:
    return not any(isinstance(node, ArrayRead) for node in walk_exprs(step))


def _step(var: Var, new: Binary) -> Expr | None:
    match new:
        case Binary(op=BinOp.ADD, left=VarRef(var=same), right=step) if same.id == var.id:
            return step
        case Binary(op=BinOp.ADD, left=step, right=VarRef(var=same)) if same.id == var.id:
            return step
        case Binary(op=BinOp.SUB, left=VarRef(var=same), right=step) if same.id == var.id:
            return Unary(UnOp.NEG, step)
        case _:
            return None


def while_passes(
    space: Space,
    loop: While,
    steps: Mapping[int, Expr],
    environment: dict[int, Expr],
    value: Callable[[Expr], Expr],
) -> tuple[Passes, Var]:
    """The passes of a `while` that is a range, and its counter. Raises Refusal."""
    span = loop.condition.span or loop.span
    counters = [var for var in variables(loop.condition) if var.id in steps]
    if len(counters) != 1:
        raise Refusal(Reason.LOOP, span=span)
    counter, entry = counters[0], environment[counters[0].id]
    start, step = space.polynomial(entry), space.polynomial(steps[counter.id])
    now = _positive(space, loop.condition, value, span)
    environment[counter.id] = _at(space, start + step, counter)
    change = _positive(space, loop.condition, value, span) - now
    environment[counter.id] = entry
    if change == -step and (step.constant or 1) > 0:
        return _range(space, counter.name, start, start + now, step, span), counter
    if change == step and (step.constant or 1) < 0:
        return _range(space, counter.name, start, start - now, step, span), counter
    raise Refusal(Reason.LOOP, span=span)


def _at(space: Space, value: Polynomial, var: Var) -> Expr:
    assert isinstance(var.type, Scalar)
    made = space.expr(value)
    return made if var.type is Scalar.INT64 else Cast(var.type, made)


def _positive(
    space: Space, condition: Expr, value: Callable[[Expr], Expr], span: Span | None
) -> Polynomial:
    """What is positive while a loop goes on."""
    match condition:
        case Binary(op=BinOp.LT, left=left, right=right):
            return space.polynomial(value(right)) - space.polynomial(value(left))
        case Binary(op=BinOp.LE, left=left, right=right):
            return space.polynomial(value(right)) - space.polynomial(value(left)) + ONE
        case Binary(op=BinOp.GT, left=left, right=right):
            return space.polynomial(value(left)) - space.polynomial(value(right))
        case Binary(op=BinOp.GE, left=left, right=right):
            return space.polynomial(value(left)) - space.polynomial(value(right)) + ONE
        case _:
            raise Refusal(Reason.LOOP, span=span)
