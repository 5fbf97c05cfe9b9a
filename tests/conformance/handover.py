"""Kernels that hand data over by fences and atomics, and the like in which one thing is missing.

Parameters say what they are given: `data`, `flag` and `out` are int32 arrays of 64 zeros. A kernel
that is in order leaves what it read in `out[0]`, which is not 0; a racing one marks the line where
the oracle finds it with `# BUG`. Blocks have 8 threads unless a kernel says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import sarek_numba as sarek


@dataclass(frozen=True)
class Handover:
    """A kernel and the blocks and threads that it is launched with."""

    kernel: Any
    grid: int
    block: int

    @property
    def name(self) -> str:
        name: str = self.kernel.__name__
        return name


ORDERED: list[Handover] = []
RACING: list[Handover] = []


def ordered(grid: int = 2, block: int = 8) -> Callable[..., Any]:
    return _registering(ORDERED, grid, block)


def racing(grid: int = 2, block: int = 8) -> Callable[..., Any]:
    return _registering(RACING, grid, block)


def _registering(where: list[Handover], grid: int, block: int) -> Callable[..., Any]:
    def register(function: Callable[..., None]) -> Any:
        where.append(Handover(sarek.kernel(function), grid, block))
        return where[-1].kernel

    return register


# --- from one thread to another -------------------------------------------------------------------


@ordered()
def store_and_load(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
        elif sarek.atomic.load(flag, 0) == 1:
            sarek.mem_fence("device")
            out[0] = data[0]


@racing()
def store_without_a_fence(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.atomic.store(flag, 0, 1)
        elif sarek.atomic.load(flag, 0) == 1:
            sarek.mem_fence("device")
            out[0] = data[0]  # BUG


@racing()
def load_without_a_fence(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
        elif sarek.atomic.load(flag, 0) == 1:
            out[0] = data[0]  # BUG


@racing()
def fences_without_an_atomic_between(out, data, flag):
    if sarek.thread_idx.x == 0:
        sarek.atomic.add(flag, 1, 1)
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
        else:
            sarek.mem_fence("device")
            out[0] = data[0]  # BUG


@ordered()
def exchanges(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.exch(flag, 0, 1)
        elif sarek.atomic.exch(flag, 0, 2) == 1:
            sarek.mem_fence("device")
            out[0] = data[0]


@racing()
def exchange_behind_a_fence_of_the_block(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("block")
            sarek.atomic.exch(flag, 0, 1)
        elif sarek.atomic.exch(flag, 0, 2) == 1:
            sarek.mem_fence("device")
            out[0] = data[0]  # BUG


@ordered()
def additions(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.add(flag, 0, 1)
        elif sarek.atomic.add(flag, 0, 0) == 1:
            sarek.mem_fence("device")
            out[0] = data[0]


@racing()
def addition_before_a_fence_of_the_block(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.add(flag, 0, 1)
        elif sarek.atomic.add(flag, 0, 0) == 1:
            sarek.mem_fence("block")
            out[0] = data[0]  # BUG


@ordered()
def compare_and_swaps(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.cas(flag, 0, 0, 1)
        elif sarek.atomic.cas(flag, 0, 1, 2) == 1:
            sarek.mem_fence("device")
            out[0] = data[0]


@racing()
def compare_and_swap_that_fails(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.cas(flag, 0, 5, 1)
        elif sarek.atomic.cas(flag, 0, 0, 2) == 0:
            sarek.mem_fence("device")
            out[0] = data[0]  # BUG


@ordered()
def failed_compare_and_swap_reads(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.max(flag, 0, 3)
        elif sarek.atomic.cas(flag, 0, 0, 2) == 3:
            sarek.mem_fence("device")
            out[0] = data[0]


@racing()
def data_behind_the_fence(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            sarek.mem_fence("device")
            data[0] = 7
            sarek.atomic.store(flag, 0, 1)
        elif sarek.atomic.load(flag, 0) == 1:
            sarek.mem_fence("device")
            out[0] = data[0]  # BUG


@racing()
def fence_before_the_load(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
        else:
            sarek.mem_fence("device")
            if sarek.atomic.load(flag, 0) == 1:
                out[0] = data[0]  # BUG


@racing()
def plain_flag(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
        else:
            sarek.mem_fence("device")
            out[0] = flag[0]  # BUG


@ordered()
def one_fence_for_two_flags(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 3
            data[1] = 4
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
            sarek.atomic.store(flag, 1, 1)
        elif sarek.atomic.load(flag, 1) == 1:
            sarek.mem_fence("device")
            out[0] = data[0] + data[1]


@racing()
def data_of_the_other_flag(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 3
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
            data[1] = 4
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 1, 1)
        elif sarek.atomic.load(flag, 0) == 1:
            sarek.mem_fence("device")
            out[0] = data[0]
            out[1] = data[1]  # BUG


@ordered()
def flag_of_64_bits_and_data_of_others(out, data, flag):
    wide = sarek.shared.array(2, np.int64)
    t = sarek.thread_idx.x
    if t < 2:
        wide[t] = 0
    sarek.barrier()
    if t == 0:
        data[t + 8 * sarek.block_idx.x] = 7
        sarek.mem_fence("block")
        sarek.atomic.add(wide, 1, 5)
    if t == 7 and sarek.atomic.load(wide, 1) == 5:
        sarek.mem_fence("block")
        out[sarek.block_idx.x] = data[8 * sarek.block_idx.x]


@racing()
def flag_in_shared_memory_without_a_fence(out, data, flag):
    wide = sarek.shared.array(2, np.int64)
    t = sarek.thread_idx.x
    if t < 2:
        wide[t] = 0
    sarek.barrier()
    if t == 0:
        data[t + 8 * sarek.block_idx.x] = 7
        sarek.atomic.add(wide, 1, 5)
    if t == 7 and sarek.atomic.load(wide, 1) == 5:
        sarek.mem_fence("block")
        out[sarek.block_idx.x] = data[8 * sarek.block_idx.x]  # BUG


@ordered(grid=1)
def within_a_block(out, data, flag):
    t = sarek.thread_idx.x
    if t == 3:
        data[0] = 7
        sarek.mem_fence("block")
        sarek.atomic.store(flag, 0, 1)
    if t == 5 and sarek.atomic.load(flag, 0) == 1:
        sarek.mem_fence("block")
        out[0] = data[0]


@racing(grid=1)
def within_a_block_without_a_fence(out, data, flag):
    t = sarek.thread_idx.x
    if t == 3:
        data[0] = 7
        sarek.mem_fence("block")
        sarek.atomic.store(flag, 0, 1)
    if t == 5 and sarek.atomic.load(flag, 0) == 1:
        out[0] = data[0]  # BUG


# --- through others -------------------------------------------------------------------------------


@ordered(grid=3)
def update_between_carries_on(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
        elif sarek.block_idx.x == 1:
            sarek.atomic.add(flag, 0, 1)
        elif sarek.atomic.load(flag, 0) == 2:
            sarek.mem_fence("device")
            out[0] = data[0]


@racing(grid=3)
def store_between_breaks_off(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
        elif sarek.block_idx.x == 1:
            sarek.atomic.store(flag, 0, 2)
        elif sarek.atomic.load(flag, 0) == 2:
            sarek.mem_fence("device")
            out[0] = data[0]  # BUG


@ordered(grid=3)
def handed_on(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
        elif sarek.block_idx.x == 1:
            if sarek.atomic.load(flag, 0) == 1:
                sarek.mem_fence("device")
                sarek.atomic.store(flag, 1, 1)
        elif sarek.atomic.load(flag, 1) == 1:
            sarek.mem_fence("device")
            out[0] = data[0]


@racing(grid=3)
def handed_on_without_a_fence(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
        elif sarek.block_idx.x == 1:
            if sarek.atomic.load(flag, 0) == 1:
                sarek.atomic.store(flag, 1, 1)
        elif sarek.atomic.load(flag, 1) == 1:
            sarek.mem_fence("device")
            out[0] = data[0]  # BUG


@ordered()
def barriers_at_both_ends(out, data, flag):
    t = sarek.thread_idx.x
    if sarek.block_idx.x == 0:
        data[t] = t + 1
    sarek.barrier()
    ready = sarek.shared.array(1, np.int32)
    if t == 0:
        if sarek.block_idx.x == 0:
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
        ready[0] = sarek.atomic.load(flag, 0)
        sarek.mem_fence("device")
    sarek.barrier()
    if sarek.block_idx.x == 1 and ready[0] == 1:
        out[t] = data[7 - t]


@racing()
def no_barrier_before_the_release(out, data, flag):
    t = sarek.thread_idx.x
    if sarek.block_idx.x == 0:
        data[t] = t + 1
    ready = sarek.shared.array(1, np.int32)
    if t == 0:
        if sarek.block_idx.x == 0:
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
        ready[0] = sarek.atomic.load(flag, 0)
        sarek.mem_fence("device")
    sarek.barrier()
    if sarek.block_idx.x == 1 and ready[0] == 1:
        out[t] = data[7 - t]  # BUG


@racing()
def fence_behind_the_barrier(out, data, flag):
    t = sarek.thread_idx.x
    if sarek.block_idx.x == 0:
        data[t] = t + 1
    sarek.barrier()
    ready = sarek.shared.array(1, np.int32)
    if t == 0:
        if sarek.block_idx.x == 0:
            sarek.mem_fence("device")
            sarek.atomic.store(flag, 0, 1)
        ready[0] = sarek.atomic.load(flag, 0)
    sarek.barrier()
    sarek.mem_fence("device")
    if sarek.block_idx.x == 1 and ready[0] == 1 and t > 0:
        out[t] = data[7 - t]  # BUG


@ordered()
def every_thread_acquires(out, data, flag):
    t = sarek.thread_idx.x
    if sarek.block_idx.x == 0:
        data[t] = t + 1
        sarek.mem_fence("device")
        sarek.atomic.add(flag, 0, 1)
    elif sarek.atomic.load(flag, 0) == 8:
        sarek.mem_fence("device")
        for k in range(8):
            out[t] += data[k]


@racing()
def only_one_thread_acquires(out, data, flag):
    t = sarek.thread_idx.x
    if sarek.block_idx.x == 0:
        data[t] = t + 1
        sarek.mem_fence("device")
        sarek.atomic.add(flag, 0, 1)
    elif sarek.atomic.load(flag, 0) == 8:
        if t == 0:
            sarek.mem_fence("device")
        for k in range(8):
            out[t] += data[k]  # BUG


@sarek.function
def release(flag, index):
    sarek.mem_fence("device")
    sarek.atomic.store(flag, index, 1)


@sarek.function
def acquire(flag, index):
    ready = sarek.atomic.load(flag, index)
    sarek.mem_fence("device")
    return ready == 1


@sarek.function
def look(flag, index):
    return sarek.atomic.load(flag, index) == 1


@ordered()
def by_helpers(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            release(flag, 5)
        elif acquire(flag, 5):
            out[0] = data[0]


@racing()
def by_a_helper_without_a_fence(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 7
            release(flag, 5)
        elif look(flag, 5):
            out[0] = data[0]  # BUG


# --- there and back -------------------------------------------------------------------------------


@ordered()
def writes_in_turn(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 6
            release(flag, 0)
        elif acquire(flag, 0):
            data[0] = 7
            out[0] = data[0]


@racing()
def writes_in_no_turn(out, data, flag):
    if sarek.thread_idx.x == 0:
        if sarek.block_idx.x == 0:
            data[0] = 6
            sarek.atomic.store(flag, 0, 1)
        elif acquire(flag, 0):
            data[0] = 7  # BUG


@ordered()
def buffer_given_back(out, data, flag):
    if sarek.thread_idx.x == 0:
        for turn in range(6):
            if sarek.block_idx.x == turn % 2 and sarek.atomic.load(flag, 0) == turn:
                sarek.mem_fence("device")
                out[sarek.block_idx.x] += data[0] + 1
                data[0] += 1
                sarek.mem_fence("device")
                sarek.atomic.add(flag, 0, 1)


@racing()
def buffer_given_back_without_a_fence(out, data, flag):
    if sarek.thread_idx.x == 0:
        for turn in range(6):
            if sarek.block_idx.x == turn % 2 and sarek.atomic.load(flag, 0) == turn:
                sarek.mem_fence("device")
                out[0] = sarek.atomic.load(flag, 0) + data[0]  # BUG
                sarek.atomic.add(flag, 0, 1)
                data[0] = turn


@ordered(grid=3)
def atomics_alone_do_not_race(out, data, flag):
    sarek.mem_fence("device")
    sarek.atomic.add(data, 0, 1)
    if sarek.thread_idx.x == 0:
        sarek.atomic.max(out, 0, sarek.atomic.load(data, 0))


@racing()
def counter_that_one_reads_plainly(out, data, flag):
    sarek.mem_fence("device")
    last = sarek.atomic.add(flag, 0, 1)
    sarek.mem_fence("device")
    if last == 15:
        out[0] = flag[0]  # BUG


@ordered()
def counter_that_is_handed_over(out, data, flag):
    sarek.atomic.add(data, 0, 1)
    sarek.mem_fence("device")
    last = sarek.atomic.add(flag, 0, 1)
    sarek.mem_fence("device")
    if last == 15:
        out[0] = data[0]
