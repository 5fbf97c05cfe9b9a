"""`while` and `for` as functions that change the machine.

A loop keeps its lanes in the mask, pass by pass. Where few lanes are left it goes on in a smaller
frame. The number of passes of a `for` is computed once, without overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarek_interp.code import Block, Collected, Context, Evaluate, Loop, Step, scalar
from sarek_interp.expressions import compile_expr
from sarek_interp.machine import FALSE, Divergence, Lanes, Machine, Mask, Scope
from sarek_interp.operators import flagged
from sarek_interp.waiting import counting
from sarek_numba.errors import ArithmeticFault
from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import Body, For, While
from sarek_numba.span import Span

CompileBody = Callable[[Context, Body], Block]
_WATCH_EVERY = 512
_STUCK = (
    "this loop never ends: a pass changes no memory and no variable that decides anything, so it "
    "waits for a thread that need not run before it"
)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What both kinds of loop are made of."""

    block: Block
    scope: Scope
    continued: int | None
    returned: int | None
    site: int
    span: Span | None

    def one_pass(self, m: Machine) -> bool:
        """Run the body for the lanes in the mask; whether any lane may go on."""
        if self.block.barriers:
            lanes = m.chunk_lanes(m.selected())
            everyone = np.arange(m.chunk.lanes) if lanes is None else lanes
            m.divergences.append(Divergence(self.span, everyone))
        self.block.run(m)
        if self.block.barriers:
            m.divergences.pop()
        if self.continued is not None:
            back = m.values[self.continued]
            if back is not FALSE:
                m.mask = None if m.mask is None else m.mask | back
                m.values[self.continued] = FALSE
        return not self.block.leaves or m.any()

    def run(self, m: Machine, iterate: Step) -> None:
        """Run all passes; behind the loop its lanes go on, but for those that returned in it."""
        mask = m.mask
        if self.continued is not None:
            m.values[self.continued] = FALSE
        iterate(m)
        m.mask = mask
        if self.returned is not None:
            gone = m.values[self.returned]
            if gone.any():
                m.mask = m.narrowed(~gone)

    def enters(self, m: Machine, condition: Mask, iterate: Step) -> bool:
        """Narrow the mask to the lanes that make one more pass; whether the caller is to run it.

        Where few are left, `iterate` makes their remaining passes in a smaller frame.
        """
        if condition.size == 1:
            return bool(condition[0])
        live = m.narrowed(condition)
        count = int(np.count_nonzero(live))
        if count == 0:
            return False
        if m.worth_compacting(count):
            m.compacted(live, self.scope, iterate)
            return False
        m.mask = None if count == m.size else live
        return True


def _compiled(
    c: Context, loop: Loop, inner: Collected, block: Block, site: int, span: Span | None
) -> _Compiled:
    scope = Scope(tuple(sorted(inner.used)), tuple(sorted(inner.assigned - inner.declared)))
    returned = c.function.returned if inner.returns else None
    continued = loop.continued if loop.has_continue else None
    return _Compiled(block, scope, continued, returned, site, span)


# --- while ----------------------------------------------------------------------------------------


def compile_while(c: Context, stmt: While, compile_body: CompileBody) -> Step:
    loop = Loop(c.new_slot())
    span = stmt.span or stmt.condition.span
    site = c.site(span)
    leaves = c.body.leaves
    with c.nested() as inner:
        inner.used.add(loop.continued)
        inner.declared.add(loop.continued)
        condition = compile_expr(c, stmt.condition).evaluate
        c.function.loops.append(loop)
        block = compile_body(c, stmt.body)
        c.function.loops.pop()
    c.body.leaves = leaves or inner.returns
    parts = _compiled(c, loop, inner, block, site, span)
    idle = {c.function.slots[var] for var in counting(stmt.condition, stmt.body)}
    watched = [slot for slot in parts.scope.assigned if slot not in idle]

    def iterate(m: Machine) -> None:
        passes = 0
        while parts.enters(m, condition(m), iterate):
            m.count_pass(site)
            passes += 1
            if passes % _WATCH_EVERY:
                if not parts.one_pass(m):
                    return
            elif not _watched_pass(m, parts, watched):
                return

    return lambda m: parts.run(m, iterate)


def _watched_pass(m: Machine, parts: _Compiled, watched: list[int]) -> bool:
    """A pass that must change something: one that does not is followed by its like for ever."""
    before = [m.mask, *(m.values.get(slot) for slot in watched)]
    m.chunk.watchers += 1
    changes = m.chunk.changes
    goes_on = parts.one_pass(m)
    m.chunk.watchers -= 1
    after = [m.mask, *(m.values.get(slot) for slot in watched)]
    if goes_on and changes == m.chunk.changes and all(map(_alike, before, after)):
        m.stop(parts.site, _STUCK)
    return goes_on


def _alike(old: Any, new: Any) -> bool:
    if old is new:
        return True
    return isinstance(old, np.ndarray) and old.tobytes() == np.asarray(new).tobytes()


# --- for ------------------------------------------------------------------------------------------


def compile_for(c: Context, stmt: For, compile_body: CompileBody) -> Step:
    loop = Loop(c.new_slot())
    site = c.site(stmt.span)
    first, stop, step = (compile_expr(c, bound) for bound in (stmt.first, stmt.stop, stmt.step))
    following, left, stride = c.new_slot(), c.new_slot(), c.new_slot()
    leaves = c.body.leaves
    with c.nested() as inner:
        own = {loop.continued, following, left, stride}
        inner.used |= own
        inner.declared |= own
        slot = c.declare(stmt.var)
        if first.interval and stop.interval:
            low = min(first.interval[0], stop.interval[0])
            c.function.intervals[slot] = (low, max(first.interval[1], stop.interval[1]))
        c.function.loops.append(loop)
        block = compile_body(c, stmt.body)
        c.function.loops.pop()
    c.body.leaves = leaves or inner.returns
    parts = _compiled(c, loop, inner, block, site, stmt.span)
    begin = _bounds(first.evaluate, stop.evaluate, step.evaluate, site, following, left, stride)
    scalar(stmt.var.type, stmt.span)
    one = np.uint64(1)

    def iterate(m: Machine) -> None:
        values = m.values
        while parts.enters(m, values[left] != 0, iterate):
            m.count_pass(site)
            now = values[following]
            values[slot] = now
            if not parts.one_pass(m):
                return
            values[following] = now + values[stride]
            values[left] = values[left] - one

    def run(m: Machine) -> None:
        begin(m)
        parts.run(m, iterate)

    return run


def _bounds(
    first: Evaluate,
    stop: Evaluate,
    step: Evaluate,
    site: int,
    following: int,
    left: int,
    stride: int,
) -> Step:
    """Evaluate the bounds once, and report a step of zero."""

    def begin(m: Machine) -> None:
        start, end, each = first(m), stop(m), step(m)
        m.values[following] = start
        m.values[stride] = each
        m.values[left] = passes(start, end, each)
        zero = each == 0
        if zero.any():
            message = "the step of range() is zero"
            m.report(ArithmeticFault, site, flagged(m, zero), lambda: {"message": message})

    return begin


def passes(first: Lanes, stop: Lanes, step: Lanes) -> Lanes:
    """The length of range(first, stop, step) as uint64, exact for every integer type; 0 for step 0.

    Distances are below 2^64, so arithmetic modulo 2^64 gives them.
    """
    one = np.uint64(1)
    start, end, each = (x.astype(np.uint64) for x in (first, stop, step))
    floor_divide = semantics.integers.floor_divide
    up = (step > 0) & (first < stop)
    down = (step < 0) & (first > stop)
    rising = floor_divide(end - start - one, each) + one
    falling = floor_divide(start - end - one, np.uint64(0) - each) + one
    none = np.uint64(0)
    return np.where(up, rising, np.where(down, falling, none))
