"""Fences, and what atomics carry from one to another, as steps of the machine."""

from __future__ import annotations

import numpy as np

from sarek_interp.atomics import identity
from sarek_interp.clock_shadow import ClockShadow
from sarek_interp.clocks import Clocks, Extent, Update
from sarek_interp.code import Step
from sarek_interp.machine import Lanes, Machine, Selection
from sarek_interp.memory import Storage
from sarek_interp.order import Order
from sarek_numba.errors import Triple
from sarek_numba.ir.nodes import (
    Atomic,
    AtomicOp,
    Call,
    FenceScope,
    Kernel,
    MemFence,
    Stmt,
    WarpBarrier,
    While,
)
from sarek_numba.ir.walk import bodies_of_kernel, walk_stmts


def has_clocks(kernel: Kernel) -> bool:
    """Whether fences order anything: only together with atomics."""
    kinds = {type(stmt) for stmt in _statements(kernel)}
    return {Atomic, MemFence} <= kinds


def clocks_of(kernel: Kernel, grid: Triple, block: Triple, order: Order) -> Clocks | None:
    """The clocks of a launch; None where barriers alone order accesses."""
    if not has_clocks(kernel):
        return None
    statements = _statements(kernel)
    warps = any(isinstance(stmt, WarpBarrier) for stmt in statements)
    scopes = {stmt.scope for stmt in statements if isinstance(stmt, MemFence)}
    extent = Extent(
        grid[0] * grid[1] * grid[2],
        block[0] * block[1] * block[2],
        kernel.warp_width if warps and kernel.warp_width else 0,
    )
    return Clocks(extent, order, has_block_fences=FenceScope.BLOCK in scopes)


def may_wait(kernel: Kernel) -> bool:
    """Whether a loop of the kernel holds an atomic, so that it may wait for another thread."""
    waiting = Atomic if not kernel.functions else Atomic | Call
    return any(
        isinstance(stmt, waiting)
        for outer in _statements(kernel)
        if isinstance(outer, While)
        for stmt in walk_stmts(outer.body)
    )


def _statements(kernel: Kernel) -> list[Stmt]:
    return [stmt for body in bodies_of_kernel(kernel) for stmt in walk_stmts(body)]


def compile_fence(scope: FenceScope) -> Step:
    device = scope is FenceScope.DEVICE

    def run(m: Machine) -> None:
        clocks = m.chunk.launch.clocks
        if clocks is not None and m.any():
            clocks.fence(chunk_lanes(m), device)

    return run


def chunk_lanes(m: Machine) -> Lanes:
    """The lanes of the chunk that run."""
    lanes = m.chunk_lanes(m.selected())
    return np.arange(m.chunk.lanes) if lanes is None else lanes


def synchronise(
    m: Machine,
    storage: Storage,
    op: AtomicOp,
    where: Lanes,
    chosen: Selection | None,
    old: Lanes,
    compare: Lanes | None,
) -> None:
    """Tell the clocks of atomic accesses that have been made: lanes act as in `atomics`."""
    clocks = m.chunk.launch.clocks
    tracing = storage.tracing
    if clocks is None or tracing is None or not where.size:
        return
    order = np.argsort(where * m.chunk.lanes + m.of_lanes(m.chunk.rank, chosen))
    if op is AtomicOp.CAS:
        assert compare is not None
        wrote = (identity(old) == identity(compare))[order]
    else:
        wrote = np.full(where.size, op is not AtomicOp.LOAD)
    lanes = m.chunk_lanes(chosen)
    acting = np.arange(m.chunk.lanes) if lanes is None else lanes
    overwrites = op is AtomicOp.STORE
    update = Update(
        tracing.base + where[order] * tracing.granules, acting[order], wrote, overwrites
    )
    shadow = tracing.shadow
    assert isinstance(shadow, ClockShadow)
    shadow.synchronise(update)
