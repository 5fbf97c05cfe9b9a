"""Loops of one lane group.

A loop that all lanes pass through alike is a plain loop. Any other keeps the lanes that are still
in it as a live mask and ends when none is left; `for` with uniform start and step keeps its
variable scalar even then, because the lanes that run are all in the same pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sarek_native import masks
from sarek_native.expressions import emit
from sarek_native.masks import Live, Mask
from sarek_native.operators import binary, common, compare
from sarek_native.state import LoopContext, State
from sarek_native.values import Slot, Value
from sarek_numba.ir.nodes import (
    BinOp,
    Body,
    Break,
    Continue,
    Direction,
    For,
    Return,
    While,
)
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.uniformity import BLOCK
from sarek_numba.ir.walk import bodies_of, walk_stmts

EmitBody = Callable[[State, Body], None]


def _leaves(body: Body, kinds: type | tuple[type, ...]) -> bool:
    """Is there a break or continue of this very loop?"""
    return any(
        isinstance(stmt, kinds)
        or (
            not isinstance(stmt, For | While)
            and any(_leaves(inner, kinds) for inner in bodies_of(stmt))
        )
        for stmt in body
    )


def _returns_apart(state: State, body: Body) -> bool:
    return any(
        isinstance(stmt, Return) and state.uniformity.control_of(stmt).level > BLOCK
        for stmt in walk_stmts(body)
    )


def _open(state: State, stmt: For | While) -> tuple[LoopContext, bool]:
    """The context of a loop, and whether lanes leave it one by one."""
    code = state.code
    returns = _returns_apart(state, stmt.body)
    apart = state.uniformity.of_loop(stmt) > BLOCK
    loop = LoopContext(code.fresh("exit"), code.fresh("latch"), state.mask)
    if apart or returns:
        loop.looping = Live(code)
        loop.looping.set(state.mask)
        if _leaves(stmt.body, (Break, Continue)) or returns:
            loop.passing = Live(code)
    return loop, apart or returns


def _pass(state: State, loop: LoopContext, mask: Mask, body: Body, emit_body: EmitBody) -> None:
    """One pass of a loop's body under `mask`, up to its latch, where the loop goes on."""
    code = state.code
    state.mask = loop.entry = mask
    if loop.passing is not None:
        loop.passing.set(mask)
    state.function.loops.append(loop)
    emit_body(state, body)
    state.function.loops.pop()
    code.label(loop.latch)


def _again(state: State, loop: LoopContext, head: str) -> None:
    """Back to the head; past it if lanes may have left within the pass, and none is left."""
    code = state.code
    if loop.looping is None or loop.passing is None:
        code.jump(head)
    else:
        code.branch(masks.any_lane(code, loop.looping.get()), head, loop.exit)


def _close(state: State, loop: LoopContext, before: Mask) -> None:
    """After the loop; who returned within is found by the caller, from the live masks around."""
    state.code.label(loop.exit)
    state.mask = before


def emit_while(state: State, stmt: While, emit_body: EmitBody) -> None:
    code, before = state.code, state.mask
    loop, apart = _open(state, stmt)
    head, inside = code.fresh("head"), code.fresh("body")
    code.label(head)
    mask: Mask = before
    if apart:
        assert loop.looping is not None
        mask = state.mask = loop.looping.get()
    condition = emit(state, stmt.condition)
    if not apart:
        condition = state.scalar(condition)
    if condition.uniform:
        code.branch(condition.text, inside, loop.exit)
    else:
        assert loop.looping is not None, "a divergent condition of a uniform loop"
        mask = masks.narrow(code, mask, masks.condition_lanes(code, condition))
        loop.looping.set(mask)
        code.branch(masks.any_lane(code, mask), inside, loop.exit)
    code.label(inside)
    _pass(state, loop, mask, stmt.body, emit_body)
    _again(state, loop, head)
    _close(state, loop, before)


def emit_for(state: State, stmt: For, emit_body: EmitBody) -> None:
    """`remaining` passes counted down: exact at the ends of the type, whatever the step."""
    code, before = state.code, state.mask
    first, stop, step = (emit(state, e) for e in (stmt.first, stmt.stop, stmt.step))
    if first.stride and not step.uniform:
        first = code.as_lanes(first)
    passes = trip_count(state, stmt.direction, first, stop, step)
    loop, apart = _open(state, stmt)
    if not apart:
        passes = state.scalar(passes)
    variable = code.slot(first.type, first.lanes or not step.uniform)
    code.write(variable, first)  # of a linear start, the base: the stride stays what it is
    remaining = code.slot(passes.type, passes.lanes)
    code.write(remaining, passes)
    head, inside = code.fresh("head"), code.fresh("body")
    code.label(head)
    mask = _passing(state, loop, apart, code.read(remaining), inside, before)
    code.label(inside)
    state.bindings[stmt.var.id] = replace(code.read(variable), stride=first.stride)
    _pass(state, loop, mask, stmt.body, emit_body)
    _advance(state, variable, step, remaining)
    _again(state, loop, head)
    _close(state, loop, before)


def _passing(
    state: State, loop: LoopContext, apart: bool, remaining: Value, inside: str, before: Mask
) -> Mask:
    """Branch into the body if a pass is left for any lane; gives the lanes of the pass."""
    code = state.code
    mask = before
    if apart:
        assert loop.looping is not None
        mask = loop.looping.get()
    more = compare(code, BinOp.NE, remaining, Value(remaining.type, "0"))
    if more.uniform:
        code.branch(more.text, inside, loop.exit)
        return mask
    assert loop.looping is not None, "divergent bounds of a uniform loop"
    mask = masks.narrow(code, mask, more.text)
    loop.looping.set(mask)
    code.branch(masks.any_lane(code, mask), inside, loop.exit)
    return mask


def _advance(state: State, variable: Slot, step: Value, remaining: Slot) -> None:
    code = state.code
    code.write(variable, binary(code, BinOp.ADD, code.read(variable), step))
    one = Value(remaining.type, "1")
    code.write(remaining, binary(code, BinOp.SUB, code.read(remaining), one))


def trip_count(state: State, direction: Direction, first: Value, stop: Value, step: Value) -> Value:
    """The number of passes, as an unsigned integer of the loop's own width."""
    if direction is Direction.UPTO:
        return _count(state, first, stop, step)
    if direction is Direction.DOWNTO:
        return _count_down(state, first, stop, step)
    code = state.code
    nothing = Value(step.type, "0")
    up = compare(code, BinOp.GT, step, nothing)
    down = compare(code, BinOp.LT, step, nothing)
    upward = _count(state, first, stop, step)
    downward = _count_down(state, first, stop, step)
    rest = code.select(down, downward, Value(upward.type, "0"))
    return code.select(up, upward, rest)


def _count_down(state: State, first: Value, stop: Value, step: Value) -> Value:
    backwards = binary(state.code, BinOp.SUB, Value(step.type, "0"), step)
    return _count(state, stop, first, backwards)


def _count(state: State, low: Value, high: Value, step: Value) -> Value:
    """(high - low - 1) / step + 1 where low < high, else 0; nothing of it leaves the type."""
    code = state.code
    ahead = compare(code, BinOp.LT, low, high)
    unsigned = Scalar(f"uint{low.type.bits}")
    if step.text == "1" and step.uniform:
        distance = binary(code, BinOp.SUB, high, low)
        distance = Value(unsigned, distance.text, distance.lanes, distance.stride)
        return code.select(ahead, distance, Value(unsigned, "0"))
    o = common(code, low, high, step)
    texts = [o.text(value) for value in (low, high, step)]
    less = o.do("sub", o.do("sub", texts[1], texts[0]), o.constant("1"))
    size = Value(unsigned, texts[2], o.lanes)
    passes = binary(code, BinOp.DIV, Value(unsigned, less, o.lanes), size)
    one = Value(unsigned, "1")
    return code.select(ahead, binary(code, BinOp.ADD, passes, one), Value(unsigned, "0"))
