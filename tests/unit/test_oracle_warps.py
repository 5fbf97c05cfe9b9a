"""The oracle's checks of warps: races across warp barriers, and collectives that some miss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_interp.order import BARRIERS, WarpOrder
from sarek_interp.races import Shadow
from sarek_numba.execute import simulated_warp_width
from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import If, Warp, WarpBarrier, WarpOp
from sarek_numba.ir.types import INT64
from tests.unit.oracle_kit import Builder, run, tid

THREADS = 8


@sarek.kernel
def neighbours(out, waits, distance):
    tile = sarek.shared.array(64, sarek.int32)
    t = sarek.thread_idx.x
    tile[t] = t
    if waits:
        sarek.warp_barrier()
    out[t] = tile[t ^ distance]


@pytest.mark.parametrize(
    ("width", "waits", "distance", "races"),
    [
        (8, 1, 1, False), (8, 1, 7, False), (8, 1, 8, True), (8, 0, 1, True), (8, 0, 0, False),
        (32, 1, 16, False), (32, 1, 32, True), (4, 1, 4, True), (1, 1, 1, True), (64, 1, 32, False),
    ],
)  # fmt: skip
def test_a_warp_barrier_orders_its_warp_alone(width, waits, distance, races):
    """Warp-synchronous code without a barrier races, at the width of the device."""
    with simulated_warp_width(width):
        report = sarek.sanitize(neighbours)[1, 64](np.zeros(64, np.int32), waits, distance)
    assert [finding.error for finding in report.findings] == [sarek.DataRace] * races


def happened(history: list[Any], width: int, lane: int, epochs: tuple[Any, Any]) -> set[str]:
    """The kinds of earlier accesses that are unordered with one of a lane now, by their epochs."""
    blocks, warps = epochs
    found = set()
    for kind, other, block, warp in history:
        same_warp = other // width == lane // width
        ordered = block != blocks or (same_warp and warp != warps[lane // width])
        if other != lane and not ordered:
            found.add(kind)
    return found


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_shadow_agrees_with_the_whole_history(width):
    """Random accesses and barriers: a race is found if and only if the history holds one."""
    rng = np.random.default_rng(width)
    races = 0
    for _ in range(300):
        order = WarpOrder(width)
        shadow = Shadow(1, crosses_blocks=False, order=order)
        stamps = order.stamps_of(np.zeros(THREADS, np.int64), np.arange(THREADS))
        history: list[Any] = []
        epoch, warps = 0, np.zeros(THREADS // width, int)
        for _ in range(12):
            action = rng.integers(6)
            if action == 0:
                stamps, epoch = order.after_barrier(stamps), epoch + 1
                warps[:] = 0
                continue
            if action <= 2:
                warp = rng.integers(THREADS // width)
                lanes = np.arange(warp * width, (warp + 1) * width)
                stamps[lanes] = order.after_warp_barrier(stamps[lanes])
                warps[warp] += 1
                continue
            lanes = np.flatnonzero(rng.integers(0, 4, THREADS) == 0)
            if not lanes.size:
                continue
            where, kind = np.zeros(lanes.size, np.intp), ("reads", "writes")[action % 2]
            expected: set[str] = set()
            for lane in lanes.tolist():
                expected |= happened(history, width, lane, (epoch, warps))
            if kind == "reads":
                found = {c.kind for c in shadow.read(where, stamps[lanes], 0)}
                expected -= {"reads"}
            else:
                conflicts, writes = shadow.before_write(where, stamps[lanes])
                found = {c.kind for c in conflicts} | ({"writes"} if writes else set())
                if shadow.write(where, stamps[lanes], 0):
                    assert lanes.size > 1
            assert found == expected
            races += len(found)
            if found:
                break  # after a race the shadow remembers the later access
            history += [(kind, lane, epoch, int(warps[lane // width])) for lane in lanes.tolist()]
    assert races > 50


def test_orders_agree_without_warp_barriers():
    """Of kernels without warp barriers both orders say the same."""
    rng = np.random.default_rng(1)
    seen, mine = rng.integers(0, THREADS, (2, 100))
    for order in (BARRIERS, WarpOrder(4)):
        block = np.zeros(100, np.int64)
        unordered = order.unordered(order.stamps_of(block, seen), order.stamps_of(block, mine))
        assert np.array_equal(unordered, seen != mine)


def broken_kernel(stmt: Any) -> Any:
    """A kernel in which thread 5 does not reach a statement; the compiler would refuse it."""
    k = Builder()
    kernel = k.kernel(If(b.ne(tid(), 5), (stmt,)))
    return replace(kernel, warp_width=4)


@pytest.mark.parametrize("op", [WarpOp.SUM, WarpOp.MAX])
def test_a_collective_that_a_thread_misses(op):
    """One finding, with the warp's absent thread and the condition it did not meet."""
    k = Builder()
    result = k.var("result", INT64)
    (finding,) = run(broken_kernel(Warp(op, result, 4, tid())), 1, 8).findings
    assert finding.error is sarek.WarpDivergence
    assert finding.thread == (4, 0, 0)
    assert f"1 of the 4 threads of this warp do not reach warp.{op.value}()" in finding.message
    assert "thread (5, 0, 0) did not go this way here" in finding.note[1]


def test_a_warp_barrier_that_a_thread_misses():
    """The other warp of the block has nothing to say."""
    (finding,) = run(broken_kernel(WarpBarrier()), 1, 8).findings
    assert finding.error is sarek.WarpDivergence
    assert finding.threads == 3


def test_emulation_reports_a_missed_collective():
    """The compiler takes no part in it, so it meets what would be refused."""

    def half(out):
        if sarek.thread_idx.x < 16:
            out[0] = sarek.warp.sum(1)

    with pytest.raises(sarek.WarpDivergence, match="16 of the 32 threads"):
        sarek.emulate(half)[1, 32](np.zeros(1, np.int32))
