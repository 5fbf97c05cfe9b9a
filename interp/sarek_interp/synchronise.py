"""Barriers: every thread of a block must come; they order what was before and what is after."""

from __future__ import annotations

from typing import Any

import numpy as np

from sarek_interp.code import Context, Step
from sarek_interp.machine import Lanes, Machine
from sarek_numba.errors import BarrierDivergence
from sarek_numba.span import Span

_HINT = "every thread of a block must reach the same barrier: move it out of the branch or loop"


def compile_barrier(c: Context, span: Span | None) -> Step:
    site = c.site(span)
    c.body.barriers = True

    def run(m: Machine) -> None:
        chunk, order = m.chunk, m.chunk.launch.order
        m.count_barrier(site)
        selected = m.selected()
        lanes = m.chunk_lanes(selected)
        if lanes is None:
            chunk.stamps = order.after_barrier(chunk.stamps)
            if chunk.launch.clocks is not None:
                chunk.launch.clocks.barrier(np.arange(chunk.lanes))
            return
        present = np.bincount(chunk.block[lanes], minlength=chunk.count)
        partial = (present != 0) & (present != chunk.launch.threads)
        if partial.any():
            _report(m, lanes, partial, site)
        stamps = chunk.stamps.copy()
        stamps[lanes] = order.after_barrier(stamps[lanes])
        chunk.stamps = stamps
        if chunk.launch.clocks is not None:
            chunk.launch.clocks.barrier(lanes)

    return run


def _report(m: Machine, lanes: Lanes, partial: Lanes, site: int) -> None:
    """Report for a thread that waits, and say where one that does not come has gone."""
    chunk = m.chunk
    waiting = np.flatnonzero(partial[chunk.block[lanes]])
    block = int(np.flatnonzero(partial)[0])
    threads = chunk.launch.threads
    there = np.zeros(threads, np.bool_)
    there[chunk.thread[lanes[chunk.block[lanes] == block]]] = True
    missing = int(np.flatnonzero(~there)[0])

    def explain() -> dict[str, Any]:
        span, text = whereabouts(m, block * threads + missing)
        absent = int(threads - np.count_nonzero(there))
        who = f"thread {chunk.launch.thread_at(missing)}"
        return {
            "message": f"{absent} of the {threads} threads of this block do not reach this barrier",
            "note": (span, f"{who} {text}"),
            "hint": _HINT,
        }

    frame_lanes = m.selected()
    frame = np.arange(m.size) if frame_lanes is None else frame_lanes
    m.report(BarrierDivergence, site, frame[waiting], explain)


def whereabouts(m: Machine, lane: int) -> tuple[Span | None, str]:
    chunk = m.chunk
    if chunk.returned_at is not None and chunk.returned_at[lane] >= 0:
        return chunk.launch.sites[int(chunk.returned_at[lane])].span, "has returned here"
    for divergence in m.divergences:
        if lane not in divergence.lanes:
            return divergence.span, "did not go this way here"
    return None, "has left the loop by break or continue, or has returned from the helper"
