"""Warp collectives and barriers: every thread of a warp must come to them.

A collective works on arrays of whole warps, (warp, lane), filled from the lanes that run: all of
them where the kernel is right, and where it is not, the absent ones count as zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sarek_interp.code import Context, Step
from sarek_interp.expressions import compile_expr
from sarek_interp.machine import Lanes, Machine
from sarek_interp.order import BARRIERS, Order, WarpOrder
from sarek_interp.synchronise import whereabouts
from sarek_numba.errors import WarpDivergence
from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import REDUCTIONS, SHUFFLES, BinOp, Kernel, Warp, WarpBarrier, WarpOp
from sarek_numba.ir.semantics.arrays import bare
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.walk import bodies_of_kernel, walk_stmts
from sarek_numba.ir.warps import mask_type
from sarek_numba.span import Span

_HINT = "every thread of a warp must reach it: move it out of the branch or loop"


class Warps:
    """The warps of the lanes that run: which they are, and their places in them."""

    def __init__(self, m: Machine, width: int) -> None:
        chunk = m.chunk
        selected = m.chunk_lanes(m.selected())
        lanes = np.arange(chunk.lanes) if selected is None else selected
        self.per_block = -(-chunk.launch.threads // width)
        self.count = chunk.count * self.per_block
        self.width = width
        thread = chunk.thread[lanes]
        self.warp = chunk.block[lanes] * self.per_block + thread // width
        self.lane = thread % width

    def of_all(self, m: Machine, values: Lanes) -> Lanes:
        """Values of the lanes of the frame as (warp, lane), zero where no lane runs."""
        selected = m.selected()
        whole = np.broadcast_to(values, m.size)
        table = np.zeros((self.count, self.width), values.dtype)
        table[self.warp, self.lane] = whole if selected is None else whole[selected]
        return table

    def to_lanes(self, m: Machine, table: Lanes) -> Lanes:
        """What stands at each lane's place, for the lanes of the frame."""
        found: Lanes = table[self.warp, self.lane]
        selected = m.selected()
        if selected is None:
            return found
        whole = np.zeros(m.size, table.dtype)
        whole[selected] = found
        return whole


def order_of(kernel: Kernel) -> Order:
    """What orders the accesses of a kernel."""
    bodies = bodies_of_kernel(kernel)
    if not any(isinstance(s, WarpBarrier) for body in bodies for s in walk_stmts(body)):
        return BARRIERS
    assert kernel.warp_width is not None
    return WarpOrder(kernel.warp_width)


def compile_warp(c: Context, stmt: Warp) -> Step:
    """A collective: its value, then the check that its warps are whole, then the exchange."""
    width = width_of(c)
    value = None if stmt.value is None else compile_expr(c, stmt.value)
    lane = None if stmt.lane is None else compile_expr(c, stmt.lane).evaluate
    result = c.declare(stmt.result)
    site = c.site(stmt.span)
    c.body.barriers = True
    exchange = _exchange(stmt, value.type if value else Scalar.BOOL, width)
    name = f"warp.{stmt.op.value}()"
    present = np.ones(1, np.bool_)

    def run(m: Machine) -> None:
        given = present if value is None else value.evaluate(m)
        other = None if lane is None else lane(m)
        warps = Warps(m, width)
        check_whole(m, warps, site, name)
        distance = None if other is None else warps.of_all(m, other)
        table = exchange(warps.of_all(m, given), distance)
        m.values[result] = warps.to_lanes(m, np.broadcast_to(table, (warps.count, width)))

    return run


def compile_warp_barrier(c: Context, span: Span | None) -> Step:
    """Orders what the threads of a warp did before and do after."""
    width = width_of(c)
    site = c.site(span)
    c.body.barriers = True

    def run(m: Machine) -> None:
        m.count_barrier(site)
        check_whole(m, Warps(m, width), site, "warp_barrier()")
        chunk, lanes = m.chunk, m.chunk_lanes(m.selected())
        stamps = chunk.stamps.copy()
        where = slice(None) if lanes is None else lanes
        stamps[where] = chunk.launch.order.after_warp_barrier(stamps[where])
        chunk.stamps = stamps
        if chunk.launch.clocks is not None:
            present = np.arange(chunk.lanes) if lanes is None else lanes
            chunk.launch.clocks.barrier_of_warps(present)

    return run


def width_of(c: Context) -> int:
    width = c.kernel.warp_width
    assert width is not None, "a warp operation in a kernel that states no width"
    return width


def _exchange(stmt: Warp, type: Scalar, width: int) -> Any:
    if stmt.op in SHUFFLES:
        return lambda table, lane: _shuffled(stmt.op, table, lane, stmt.width)
    if stmt.op in REDUCTIONS:
        combine = bare(_combination(stmt.op, type))
        return lambda table, _: _reduced(table, combine)
    match stmt.op:
        case WarpOp.ALL:
            return lambda table, _: table.all(axis=1, keepdims=True)
        case WarpOp.ANY:
            return lambda table, _: table.any(axis=1, keepdims=True)
        case _:
            bits = np.uint64(1) << np.arange(width, dtype=np.uint64)
            dtype = semantics.dtype_of(mask_type(width))
            return lambda table, _: (table * bits).sum(axis=1, keepdims=True).astype(dtype)


def _shuffled(op: WarpOp, table: Lanes, lane: Lanes, width: int) -> Lanes:
    own = np.arange(table.shape[1])
    place = own % width
    with np.errstate(over="ignore"):
        match op:
            case WarpOp.SHUFFLE:
                source = lane
            case WarpOp.SHUFFLE_UP:
                source = place - lane
            case WarpOp.SHUFFLE_DOWN:
                source = place + lane
            case _:
                source = place ^ lane
    chosen = np.where((source >= 0) & (source < width), own - place + source, own)
    return np.take_along_axis(table, chosen, axis=1)


def _combination(op: WarpOp, type: Scalar) -> Any:
    if op is WarpOp.SUM:
        return semantics.binary(BinOp.ADD, type)
    return semantics.intrinsic("fmin" if op is WarpOp.MIN else "fmax", type)


def _reduced(table: Lanes, combine: Any) -> Lanes:
    """The upper half joins the lower one, until one lane is left."""
    with np.errstate(all="ignore"):
        while table.shape[1] > 1:
            half = table.shape[1] // 2
            table = combine(table[:, :half], table[:, half:])
    return table


def check_whole(m: Machine, warps: Warps, site: int, name: str) -> None:
    """Report warps of which some threads, but not all, are here."""
    chunk = m.chunk
    threads = chunk.launch.threads
    first = np.arange(warps.count) % warps.per_block * warps.width
    wanted = np.minimum(warps.width, threads - first)
    present = np.bincount(warps.warp, minlength=warps.count)
    partial = (present != 0) & (present != wanted)
    if not partial.any():
        return
    warp = int(np.flatnonzero(partial)[0])
    there = np.zeros(wanted[warp], np.bool_)
    there[warps.lane[warps.warp == warp]] = True
    missing = int(first[warp] + np.flatnonzero(~there)[0])
    absent = int(np.count_nonzero(~there))

    def explain() -> dict[str, Any]:
        span, text = whereabouts(m, warp // warps.per_block * threads + missing)
        return {
            "message": f"{absent} of the {there.size} threads of this warp do not reach {name}",
            "note": (span, f"thread {chunk.launch.thread_at(missing)} {text}"),
            "hint": _HINT,
        }

    selected = m.selected()
    frame = np.arange(m.size) if selected is None else selected
    m.report(WarpDivergence, site, frame[np.flatnonzero(partial[warps.warp])], explain)
