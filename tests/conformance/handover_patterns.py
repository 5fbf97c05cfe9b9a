"""The patterns by which blocks work together: last block, ticket, look-back, lock, queue.

As `handover`. A kernel whose loop waits for an earlier block runs in the oracle block by block.
"""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.conformance.handover import ordered, racing

# --- the last block -------------------------------------------------------------------------------


@ordered(grid=7)
def last_block_sums(out, data, flag):
    t, b = sarek.thread_idx.x, sarek.block_idx.x
    last = sarek.shared.array(1, np.int32)
    total = sarek.block.reduce_sum(np.int32(1))
    if t == 0:
        data[b] = total
        sarek.mem_fence("device")
        last[0] = sarek.atomic.add(flag, 0, 1) == sarek.grid_dim.x - 1
        sarek.mem_fence("device")
    sarek.barrier()
    if last[0] == 1 and t == 0:
        for k in range(sarek.grid_dim.x):
            out[0] += data[k]
        sarek.atomic.store(flag, 0, 0)


@racing(grid=7)
def last_block_without_the_first_fence(out, data, flag):
    t, b = sarek.thread_idx.x, sarek.block_idx.x
    last = sarek.shared.array(1, np.int32)
    if t == 0:
        data[b] = 8
        last[0] = sarek.atomic.add(flag, 0, 1) == sarek.grid_dim.x - 1
        sarek.mem_fence("device")
    sarek.barrier()
    if last[0] == 1 and t == 0:
        for k in range(sarek.grid_dim.x):
            out[0] += data[k]  # BUG


@racing(grid=7)
def last_block_without_the_second_fence(out, data, flag):
    t, b = sarek.thread_idx.x, sarek.block_idx.x
    last = sarek.shared.array(1, np.int32)
    if t == 0:
        data[b] = 8
        sarek.mem_fence("device")
        last[0] = sarek.atomic.add(flag, 0, 1) == sarek.grid_dim.x - 1
    sarek.barrier()
    if last[0] == 1 and t == 0:
        for k in range(sarek.grid_dim.x):
            out[0] += data[k]  # BUG


@racing(grid=7)
def last_block_by_a_fence_of_the_block(out, data, flag):
    t, b = sarek.thread_idx.x, sarek.block_idx.x
    last = sarek.shared.array(1, np.int32)
    if t == 0:
        data[b] = 8
        sarek.mem_fence("block")
        last[0] = sarek.atomic.add(flag, 0, 1) == sarek.grid_dim.x - 1
        sarek.mem_fence("device")
    sarek.barrier()
    if last[0] == 1 and t == 0:
        for k in range(sarek.grid_dim.x):
            out[0] += data[k]  # BUG


@racing(grid=7)
def last_block_resets_its_counter_plainly(out, data, flag):
    if sarek.thread_idx.x == 0:
        data[sarek.block_idx.x] = 8
        sarek.mem_fence("device")
        last = sarek.atomic.add(flag, 0, 1) == sarek.grid_dim.x - 1
        sarek.mem_fence("device")
        if last:
            flag[0] = 0  # BUG


@ordered(grid=7)
def last_thread_of_all_sums(out, data, flag):
    i = sarek.global_idx.x
    data[i] = i
    sarek.mem_fence("device")
    ticket = sarek.atomic.inc(flag, 0, 55)
    sarek.mem_fence("device")
    if ticket == 55:
        for k in range(56):
            out[0] += data[k]


@racing(grid=7)
def last_thread_but_one_sums(out, data, flag):
    i = sarek.global_idx.x
    data[i] = i
    sarek.mem_fence("device")
    ticket = sarek.atomic.inc(flag, 0, 55)
    sarek.mem_fence("device")
    if ticket == 54:
        for k in range(56):
            out[0] += data[k]  # BUG


# --- waiting for an earlier block -----------------------------------------------------------------


@ordered(grid=9)
def chained_scan(out, data, flag):
    if sarek.thread_idx.x == 0:
        ticket = sarek.atomic.add(flag, 63, 1)
        before = np.int32(0)
        if ticket > 0:
            while sarek.atomic.load(flag, ticket - 1) == 0:
                pass
            sarek.mem_fence("device")
            before = data[ticket - 1]
        data[ticket] = before + 1
        sarek.mem_fence("device")
        sarek.atomic.store(flag, ticket, 1)
        if ticket == 8:
            out[0] = data[0] + data[8]


@racing(grid=9)
def chained_scan_without_a_fence(out, data, flag):
    if sarek.thread_idx.x == 0:
        ticket = sarek.atomic.add(flag, 63, 1)
        before = np.int32(0)
        if ticket > 0:
            while sarek.atomic.load(flag, ticket - 1) == 0:
                pass
            before = data[ticket - 1]  # BUG
        data[ticket] = before + 1
        sarek.mem_fence("device")
        sarek.atomic.store(flag, ticket, 1)


@ordered(grid=9)
def look_back(out, data, flag):
    """Status 1: the block's own sum is in data; 2: the sum up to it is in data + 32."""
    if sarek.thread_idx.x == 0:
        ticket = sarek.atomic.add(flag, 63, 1)
        data[ticket] = ticket + 1
        sarek.mem_fence("device")
        sarek.atomic.store(flag, ticket, 1)
        before = np.int32(0)
        k = ticket - 1
        while k >= 0:
            status = sarek.atomic.load(flag, k)
            sarek.mem_fence("device")
            if status == 2:
                before += data[32 + k]
                k = -1
            elif status == 1:
                before += data[k]
                k -= 1
        data[32 + ticket] = before + ticket + 1
        sarek.mem_fence("device")
        sarek.atomic.store(flag, ticket, 2)
        if ticket == 8:
            out[0] = data[32 + 8]


@racing(grid=9)
def look_back_too_soon(out, data, flag):
    if sarek.thread_idx.x == 0:
        ticket = sarek.atomic.add(flag, 63, 1)
        sarek.mem_fence("device")
        sarek.atomic.store(flag, ticket, 1)
        data[ticket] = ticket + 1
        before = np.int32(0)
        k = ticket - 1
        while k >= 0:
            status = sarek.atomic.load(flag, k)
            sarek.mem_fence("device")
            if status == 1:
                before += data[k]  # BUG
                k -= 1
        out[ticket] = before


# --- locks ----------------------------------------------------------------------------------------


@ordered(grid=9)
def lock_of_blocks(out, data, flag):
    if sarek.thread_idx.x == 0:
        while sarek.atomic.cas(flag, 0, 0, 1) != 0:
            pass
        sarek.mem_fence("device")
        out[0] += 3
        sarek.mem_fence("device")
        sarek.atomic.store(flag, 0, 0)


@racing(grid=9)
def lock_without_the_fence_behind_it(out, data, flag):
    if sarek.thread_idx.x == 0:
        while sarek.atomic.cas(flag, 0, 0, 1) != 0:
            pass
        data[0] = data[0] + 3  # BUG
        sarek.mem_fence("device")
        sarek.atomic.store(flag, 0, 0)


@racing(grid=9)
def lock_without_the_fence_before_the_unlock(out, data, flag):
    if sarek.thread_idx.x == 0:
        while sarek.atomic.cas(flag, 0, 0, 1) != 0:
            pass
        sarek.mem_fence("device")
        data[0] = data[0] + 3  # BUG
        sarek.atomic.store(flag, 0, 0)


@ordered(grid=3)
def lock_of_threads(out, data, flag):
    done = False
    while not done:
        if sarek.atomic.cas(flag, 0, 0, 1) == 0:
            sarek.mem_fence("device")
            out[0] += 1
            sarek.mem_fence("device")
            sarek.atomic.exch(flag, 0, 0)
            done = True


@racing(grid=3)
def lock_of_threads_with_fences_of_the_block(out, data, flag):
    done = False
    while not done:
        if sarek.atomic.cas(flag, 0, 0, 1) == 0:
            sarek.mem_fence("block")
            data[0] = data[0] + 1  # BUG
            sarek.mem_fence("block")
            sarek.atomic.exch(flag, 0, 0)
            done = True


@ordered(grid=1)
def lock_of_one_block_with_fences_of_the_block(out, data, flag):
    done = False
    while not done:
        if sarek.atomic.cas(flag, 0, 0, 1) == 0:
            sarek.mem_fence("block")
            out[0] += 1
            sarek.mem_fence("block")
            sarek.atomic.store(flag, 0, 0)
            done = True


# --- queues ---------------------------------------------------------------------------------------


@ordered(grid=4)
def queue_with_a_flag_for_each_slot(out, data, flag):
    t = sarek.thread_idx.x
    if sarek.block_idx.x < 3:
        slot = sarek.atomic.add(flag, 63, 1)
        data[slot] = t + 1
        sarek.mem_fence("device")
        sarek.atomic.store(flag, slot, 1)
    else:
        for k in range(t, 24, 8):
            if sarek.atomic.load(flag, k) == 1:
                sarek.mem_fence("device")
                out[t] += data[k]


@racing(grid=4)
def queue_that_trusts_its_counter(out, data, flag):
    t = sarek.thread_idx.x
    if sarek.block_idx.x < 3:
        slot = sarek.atomic.add(flag, 63, 1)
        data[slot] = t + 1
        sarek.mem_fence("device")
        sarek.atomic.store(flag, slot, 1)
    else:
        filled = sarek.atomic.load(flag, 63)
        sarek.mem_fence("device")
        for k in range(t, filled, 8):
            out[t] += data[k]  # BUG


@ordered(grid=4)
def list_that_grows_at_its_head(out, data, flag):
    i = sarek.global_idx.x
    if sarek.block_idx.x < 3:
        data[32 + i] = i + 1
        sarek.mem_fence("device")
        following = sarek.atomic.exch(flag, 0, i + 1)
        sarek.atomic.store(data, i, following)
    elif sarek.thread_idx.x == 0:
        node = sarek.atomic.exch(flag, 0, 0)
        sarek.mem_fence("device")
        while node > 0:
            out[0] += data[31 + node]
            node = sarek.atomic.load(data, node - 1)


@racing(grid=4)
def list_that_grows_without_a_fence(out, data, flag):
    i = sarek.global_idx.x
    if sarek.block_idx.x < 3:
        data[32 + i] = i + 1
        following = sarek.atomic.exch(flag, 0, i + 1)
        sarek.atomic.store(data, i, following)
    elif sarek.thread_idx.x == 0:
        node = sarek.atomic.exch(flag, 0, 0)
        sarek.mem_fence("device")
        while node > 0:
            out[0] += data[31 + node]  # BUG
            node = sarek.atomic.load(data, node - 1)
