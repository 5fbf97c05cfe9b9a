"""Blocks that work together by fences and atomics: the last block, a chained scan, a lock."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()


@sarek.kernel
def sum_by_the_last_block(out, sums, done, x):
    i = sarek.global_idx.x
    last = sarek.shared.array(1, np.int32)
    of_block = sarek.block.reduce_sum(x[i] if i < len(x) else np.int32(0))
    if sarek.thread_idx.x == 0:
        sums[sarek.block_idx.x] = of_block
        sarek.mem_fence("device")
        last[0] = sarek.atomic.add(done, 0, 1) == sarek.grid_dim.x - 1
        sarek.mem_fence("device")
    sarek.barrier()
    if last[0] == 1:
        t = sarek.thread_idx.x
        total = sarek.block.reduce_sum(sums[t] if t < sarek.grid_dim.x else np.int32(0))
        if t == 0:
            out[0] = total


@corpus.add(sum_by_the_last_block)
def last_block_of_a_sum(rng):
    x = rng.integers(-1000, 1000, 700).astype(np.int32)
    sums = x.copy()
    sums.resize(704)
    return Launch(
        11,
        64,
        (poison(1, np.int32), poison(11, np.int32), np.zeros(1, np.int32), x),
        (
            np.array([x.sum()], np.int32),
            sums.reshape(11, 64).sum(axis=1, dtype=np.int32),
            np.array([11], np.int32),
            None,
        ),
    )


@sarek.kernel
def scan_in_one_pass(out, ends, ready, x):
    """Blocks take tickets, so that the one before has begun; each waits for its sum."""
    place = sarek.shared.array(1, np.int32)
    before = sarek.shared.array(1, np.int32)
    t = sarek.thread_idx.x
    if t == 0:
        place[0] = sarek.atomic.add(ready, 0, 1)
    sarek.barrier()
    ticket = place[0]
    i = ticket * sarek.block_dim.x + t
    upto = sarek.block.scan_sum(x[i] if i < len(x) else np.int32(0))
    if t == sarek.block_dim.x - 1:
        before[0] = 0
        if ticket > 0:
            while sarek.atomic.load(ready, ticket) == 0:
                pass
            sarek.mem_fence("device")
            before[0] = ends[ticket - 1]
        ends[ticket] = before[0] + upto
        sarek.mem_fence("device")
        sarek.atomic.store(ready, ticket + 1, 1)
    sarek.barrier()
    if i < len(x):
        out[i] = before[0] + upto


@corpus.add(scan_in_one_pass)
def chained_scan(rng):
    x = rng.integers(-1000, 1000, 500).astype(np.int32)
    sums = np.cumsum(x, dtype=np.int32)
    ready = np.ones(9, np.int32)
    ready[0] = 8
    return Launch(
        8,
        64,
        (poison(500, np.int32), poison(8, np.int32), np.zeros(9, np.int32), x),
        (sums, np.append(sums[63::64], sums[-1]), ready, None),
    )


@sarek.kernel
def largest_under_a_lock(best, lock, x):
    """The largest number and where it is: two elements that one atomic cannot change together."""
    i = sarek.global_idx.x
    if i < len(x):
        done = False
        while not done:
            if sarek.atomic.cas(lock, 0, 0, 1) == 0:
                sarek.mem_fence("device")
                if x[i] > best[0]:
                    best[0] = x[i]
                    best[1] = i
                sarek.mem_fence("device")
                sarek.atomic.store(lock, 0, 0)
                done = True


@corpus.add(largest_under_a_lock)
def lock_of_every_thread(rng):
    x = rng.permutation(60).astype(np.int32)
    return Launch(
        4,
        16,
        (np.array([-1, -1], np.int32), np.zeros(1, np.int32), x),
        (np.array([59, x.argmax()], np.int32), np.zeros(1, np.int32), None),
    )
