"""Planted bugs and near misses: values that nothing gave, arithmetic, asserts, progress."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from sarek_numba import (
    ArithmeticFault,
    AssertionFailed,
    NoProgress,
    UnboundRead,
    UninitialisedRead,
    WeakOverflow,
)
from tests.conformance.planted import bug, silent, zeros

# --- values that nothing gave ---------------------------------------------------------------------


@bug(UninitialisedRead, zeros(8), thread=(5, 0, 0), threads=3, array="tile", index=5)
def shared_partly_written(out):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    if t < 5:
        tile[t] = t
    sarek.barrier()
    out[t] = tile[t]  # BUG


@silent(zeros(8))
def shared_partly_written_and_partly_read(out):
    t = sarek.thread_idx.x
    tile = sarek.shared.array(8, sarek.int32)
    if t < 5:
        tile[t] = t
    sarek.barrier()
    if t < 5:
        out[t] = tile[4 - t]


@bug(UninitialisedRead, zeros(8), thread=(0, 0, 0), threads=8, array="mine")
def local_never_written_there(out):
    t = sarek.thread_idx.x
    mine = sarek.local.array(4, sarek.int32)
    for k in range(3):
        mine[k] = t
    total = 0
    for k in range(4):
        total += mine[k]  # BUG
    out[t] = total


@silent(zeros(8))
def local_written(out):
    t = sarek.thread_idx.x
    mine = sarek.local.array(4, sarek.int32)
    for k in range(4):
        mine[k] = t
    total = 0
    for k in range(4):
        total += mine[k]
    out[t] = total


@bug(UninitialisedRead, zeros(16), grid=2, threads=16, array="tile", index=0)
def shared_counter_never_cleared(out):
    tile = sarek.shared.array(1, sarek.int32)
    sarek.atomic.add(tile, 0, 1)  # BUG
    sarek.barrier()
    out[sarek.global_idx.x] = tile[0]


@silent(zeros(16), grid=2)
def shared_counter_cleared(out):
    tile = sarek.shared.array(1, sarek.int32)
    if sarek.thread_idx.x == 0:
        tile[0] = 0
    sarek.barrier()
    sarek.atomic.add(tile, 0, 1)
    sarek.barrier()
    out[sarek.global_idx.x] = tile[0]


@bug(UnboundRead, zeros(8), thread=(3, 0, 0), threads=3, says="s")
def assigned_for_some_threads(out):
    t = sarek.thread_idx.x
    if t < 3:
        s = t * 2
    if t < 6:
        out[t] = s  # BUG


@bug(UnboundRead, zeros(8), thread=(0, 0, 0), threads=8, says="s")
def assigned_where_nothing_comes(out):
    t, never = sarek.thread_idx.x, 0
    if never & never == 3:
        s = t * 2
    out[t] = s  # BUG


@silent(zeros(8))
def assigned_where_it_is_read(out):
    t = sarek.thread_idx.x
    if t < 3:
        s = t * 2
    if t < 3:
        out[t] = s


@bug(UnboundRead, zeros(8), thread=(0, 0, 0), threads=1, says="k")
def loop_variable_after_no_pass(out):
    t = sarek.thread_idx.x
    for k in range(t):  # noqa: B007
        pass
    out[t] = k  # BUG


@silent(zeros(8))
def loop_variable_after_some_passes(out):
    t = sarek.thread_idx.x
    for k in range(t + 1):  # noqa: B007
        pass
    out[t] = k


# --- Python ints ----------------------------------------------------------------------------------


def with_int(value, dtype=np.int64):
    """Arguments: zeros to write and a Python int."""
    return lambda: (np.zeros(8, dtype), value)


@bug(WeakOverflow, with_int(2**63 - 5), thread=(5, 0, 0), threads=3)
def sum_leaves_int64(out, n):
    t = sarek.thread_idx.x
    out[t] = n + t  # BUG


@silent(with_int(2**63 - 8))
def sum_stays_in_int64(out, n):
    t = sarek.thread_idx.x
    out[t] = n + t


@bug(WeakOverflow, with_int(2**40), thread=(4, 0, 0), threads=4)
def product_leaves_int64(out, n):
    t = sarek.thread_idx.x
    out[t] = n * (t * 2097152)  # BUG


@bug(WeakOverflow, with_int(3_000_000_000, np.int32), threads=8)
def int_meets_an_int32(out, n):
    t = sarek.thread_idx.x
    out[t] = out[t] + n  # BUG


@silent(with_int(2_147_483_640, np.int32))
def int_meets_an_int32_that_wraps(out, n):
    """The Python int fits; int32 arithmetic wraps as NumPy's."""
    t = sarek.thread_idx.x
    out[t] = out[t] + n
    out[t] = out[t] + 100


@bug(WeakOverflow, with_int(250, np.uint8), thread=(6, 0, 0), threads=2)
def store_beyond_a_byte(out, n):
    t = sarek.thread_idx.x
    out[t] = n + t  # BUG


@silent(with_int(248, np.uint8))
def store_within_a_byte(out, n):
    t = sarek.thread_idx.x
    out[t] = n + t


@silent(with_int(250, np.uint8))
def store_of_a_strong_int_cuts(out, n):
    t = sarek.thread_idx.x
    out[t] = np.int32(n) + t


# --- arithmetic -----------------------------------------------------------------------------------


@bug(ArithmeticFault, zeros(8), thread=(0, 0, 0), threads=2)
def negative_exponent(out):
    t = sarek.thread_idx.x
    out[t] = np.int32(3) ** (t - 2)  # BUG


@silent(zeros(8))
def exponents_from_zero(out):
    t = sarek.thread_idx.x
    out[t] = np.int32(3) ** t


@bug(ArithmeticFault, zeros(8), checks={"division"}, thread=(4, 0, 0), threads=1)
def division_by_zero_when_asked(out):
    t = sarek.thread_idx.x
    out[t] = 100 // (t - 4)  # BUG


@bug(ArithmeticFault, zeros(8), checks={"division"}, thread=(4, 0, 0), threads=1)
def remainder_by_zero_when_asked(out):
    t = sarek.thread_idx.x
    out[t] = 100 % (t - 4)  # BUG


@silent(zeros(8))
def division_by_zero_when_not_asked(out):
    t = sarek.thread_idx.x
    out[t] = 100 // (t - 4)


@silent(zeros(8), checks={"division"})
def division_guarded(out):
    t = sarek.thread_idx.x
    out[t] = 100 // (t - 4) if t != 4 else 0


@bug(ArithmeticFault, zeros(8), thread=(0, 0, 0), threads=1)
def step_of_zero(out):
    t = sarek.thread_idx.x
    for k in range(0, 8, t):  # BUG
        out[t] = k


@silent(zeros(8))
def step_from_one(out):
    t = sarek.thread_idx.x
    for k in range(0, 8, t + 1):
        out[t] = k


# --- asserts --------------------------------------------------------------------------------------


@bug(AssertionFailed, zeros(8), thread=(6, 0, 0), threads=2, says="t is small")
def assertion_of_some_threads(out):
    t = sarek.thread_idx.x
    assert t < 6, "t is small"  # BUG
    out[t] = t


@silent(zeros(8))
def assertion_that_holds(out):
    t = sarek.thread_idx.x
    if t < 6:
        assert t < 6, "t is small"
        out[t] = t


@sarek.function
def checked(value):
    assert value >= 0
    return value * 2


@silent(zeros(8))
def assertion_in_a_helper_that_holds(out):
    t = sarek.thread_idx.x
    out[t] = checked(t)


# --- progress -------------------------------------------------------------------------------------


@bug(NoProgress, zeros(1), grid=2, block=1, place=(0, 0, 0))
def waits_for_another_block(flag):
    if sarek.block_idx.x == 0:
        while sarek.atomic.load(flag, 0) == 0:  # BUG
            pass
    elif sarek.block_idx.x > 5:
        sarek.atomic.store(flag, 0, 1)


@silent(zeros(1), grid=2, block=1)
def waits_for_what_it_did_itself(flag):
    sarek.atomic.store(flag, 0, 1)
    while sarek.atomic.load(flag, 0) == 0:
        pass


@bug(NoProgress, zeros(8), step_limit=500)
def longer_than_the_limit(out):
    t = sarek.thread_idx.x
    k = 0
    while k < 600:  # BUG
        k += 1
    out[t] = k


@silent(zeros(8), step_limit=700)
def within_the_limit(out):
    t = sarek.thread_idx.x
    k = 0
    while k < 600:
        k += 1
    out[t] = k
