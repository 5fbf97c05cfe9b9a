"""Planted bugs and near misses: barriers, values that nothing gave, arithmetic, progress."""

from __future__ import annotations

from typing import Any

import numpy as np

from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import (
    Assert,
    Barrier,
    Binary,
    BinOp,
    Call,
    Cast,
    Continue,
    Kernel,
    Return,
    Unary,
    UnOp,
)
from sarek_numba.ir.types import INT32, INT64, UNIT, Scalar
from tests.unit.oracle_kit import Builder, bid, gid, tid
from tests.unit.oracle_plants import plant, zeros

UINT8 = Scalar.UINT8


# --- barriers -------------------------------------------------------------------------------------


@plant("BarrierDivergence")
def barrier_in_a_divergent_branch() -> Any:
    k = Builder()
    return k.kernel(b.if_(b.lt(tid(), 4), [Barrier()])), []


@plant(None, grid=4)
def barrier_in_a_branch_of_whole_blocks() -> Any:
    k = Builder()
    return k.kernel(b.if_(b.lt(bid(), 2), [Barrier()])), []


@plant("BarrierDivergence")
def barrier_in_both_arms() -> Any:
    k = Builder()
    return k.kernel(b.if_(b.lt(tid(), 4), [Barrier()], [Barrier()])), []


@plant("BarrierDivergence")
def barrier_behind_a_return_of_some_threads() -> Any:
    """Case 110."""
    k = Builder()
    return k.kernel(b.if_(b.gt(tid(), 5), [Return()]), Barrier()), []


@plant(None, grid=4)
def barrier_behind_a_return_of_whole_blocks() -> Any:
    k = Builder()
    return k.kernel(b.if_(b.gt(bid(), 2), [Return()]), Barrier()), []


def _loop_with_barrier(passes: Any) -> tuple[Kernel, list[Any]]:
    k = Builder()
    j = k.var("j")
    return k.kernel(b.for_(j, b.const_int(0), passes, Barrier())), []


@plant("BarrierDivergence")
def barrier_in_a_loop_of_differing_length() -> Any:
    return _loop_with_barrier(b.add(tid(), b.const_int(1)))


@plant(None, grid=4)
def barrier_in_a_loop_whose_length_differs_by_block() -> Any:
    return _loop_with_barrier(b.add(bid(), b.const_int(1)))


@plant("BarrierDivergence")
def barrier_in_a_loop_that_some_threads_continue() -> Any:
    k = Builder()
    j = k.var("j")
    return k.kernel(b.for_(j, 0, 3, b.if_(b.eq(tid(), 2), [Continue()]), Barrier())), []


def _barrier_in_helper(condition: Any) -> tuple[Kernel, list[Any]]:
    k = Builder()
    k.functions.append(b.helper("sync", [], UNIT, Barrier()))
    return k.kernel(b.if_(condition, [Call((), "sync", ())])), []


@plant("BarrierDivergence")
def barrier_in_a_helper_that_some_threads_call() -> Any:
    return _barrier_in_helper(b.lt(tid(), 4))


@plant(None)
def barrier_in_a_helper_that_all_threads_call() -> Any:
    return _barrier_in_helper(b.lt(tid(), 8))


# --- values that nothing gave ---------------------------------------------------------------------


@plant("UninitialisedRead", grid=2)
def uninitialised_shared() -> Any:
    k = Builder()
    out, s = k.array("out"), k.shared("s", 8)
    return k.kernel(
        b.if_(b.lt(tid(), 7), [b.store(s, tid(), 1)]),
        Barrier(),
        b.store(out, gid(), b.read(s, tid())),
    ), [zeros(16)]


@plant(None, grid=2)
def initialised_shared() -> Any:
    k = Builder()
    out, s = k.array("out"), k.shared("s", 8)
    return k.kernel(
        b.store(s, tid(), 1), Barrier(), b.store(out, gid(), b.read(s, tid()))
    ), [zeros(16)]  # fmt: skip


@plant("UninitialisedRead")
def uninitialised_shared_counter() -> Any:
    k = Builder()
    s = k.shared("s", 1)
    return k.kernel(b.atomic("add", s, 0, 1)), []


@plant("UninitialisedRead")
def uninitialised_local() -> Any:
    k = Builder()
    out, a = k.array("out"), k.local("a", 4)
    return k.kernel(b.store(a, 1, 5), b.store(out, gid(), b.read(a, 2))), [zeros(8)]


@plant(None)
def initialised_local() -> Any:
    k = Builder()
    out, a = k.array("out"), k.local("a", 4)
    return k.kernel(b.store(a, 2, 5), b.store(out, gid(), b.read(a, 2))), [zeros(8)]


@plant("UninitialisedRead")
def uninitialised_local_in_some_threads() -> Any:
    k = Builder()
    out, a = k.array("out"), k.local("a", 4)
    return k.kernel(b.if_(b.gt(tid(), 3), [b.store(a, 2, 5)]), b.store(out, gid(), b.read(a, 2))), [
        zeros(8)
    ]


def _assigned_in_branch(read_condition: Any) -> tuple[Kernel, list[Any]]:
    k = Builder()
    out, s = k.array("out"), k.var("s", INT32, mutable=True)
    return k.kernel(
        b.let_mut(s),
        b.if_(b.eq(tid(), 0), [b.assign(s, 5)]),
        b.if_(read_condition, [b.store(out, gid(), s)]),
    ), [zeros(8)]


@plant("UnboundRead")
def unbound_local() -> Any:
    return _assigned_in_branch(b.lt(tid(), 2))


@plant(None)
def bound_local_where_it_is_read() -> Any:
    return _assigned_in_branch(b.eq(tid(), 0))


# --- arithmetic -----------------------------------------------------------------------------------


def _weak(op: BinOp, start: int) -> tuple[Kernel, list[Any]]:
    k = Builder()
    out, n = k.array("out", INT64), k.scalar("n", INT64)
    value = Binary(op, b.add(n, tid()), b.const_int(1), weak=True)
    return k.kernel(b.store(out, gid(), value)), [zeros(8, np.int64), np.int64(start)]


@plant("WeakOverflow")
def weak_int_leaves_int64() -> Any:
    return _weak(BinOp.ADD, 2**63 - 8)


@plant(None)
def weak_int_reaches_the_end_of_int64() -> Any:
    return _weak(BinOp.ADD, 2**63 - 9)


@plant(None)
def strong_int_wraps() -> Any:
    k = Builder()
    out, n = k.array("out", INT64), k.scalar("n", INT64)
    return k.kernel(b.store(out, gid(), b.add(n, tid()))), [
        zeros(8, np.int64),
        np.int64(2**63 - 4),
    ]


@plant("WeakOverflow")
def weak_negation_of_the_least_int() -> Any:
    k = Builder()
    out, n = k.array("out", INT64), k.scalar("n", INT64)
    return k.kernel(b.store(out, gid(), Unary(UnOp.NEG, b.expr(n), weak=True))), [
        zeros(8, np.int64),
        np.int64(-(2**63)),
    ]


def _stored_as_byte(offset: int, weak: bool = True) -> tuple[Kernel, list[Any]]:
    k = Builder()
    out = k.array("out", UINT8)
    value = Cast(UINT8, b.add(tid(), b.const_int(offset)), weak=weak)
    return k.kernel(b.store(out, gid(), value)), [zeros(8, np.uint8)]


@plant("WeakOverflow")
def weak_int_does_not_fit_a_byte() -> Any:
    return _stored_as_byte(249)


@plant(None)
def weak_int_just_fits_a_byte() -> Any:
    return _stored_as_byte(248)


@plant(None)
def strong_int_is_cut_to_a_byte() -> Any:
    return _stored_as_byte(249, weak=False)


def _power(exponent: Any) -> tuple[Kernel, list[Any]]:
    k = Builder()
    out = k.array("out", INT64)
    return k.kernel(b.store(out, gid(), b.intrinsic("ipow", b.const_int(2), exponent))), [
        zeros(8, np.int64)
    ]


@plant("ArithmeticFault")
def negative_exponent() -> Any:
    return _power(b.sub(tid(), b.const_int(1)))


@plant(None)
def exponent_zero() -> Any:
    return _power(tid())


def _quotient() -> tuple[Kernel, list[Any]]:
    k = Builder()
    out = k.array("out", INT64)
    return k.kernel(b.store(out, gid(), b.floordiv(b.const_int(7), tid()))), [zeros(8, np.int64)]


@plant("ArithmeticFault", checks={"division"})
def division_by_zero_when_asked() -> Any:
    return _quotient()


@plant(None)
def division_by_zero_when_not_asked() -> Any:
    return _quotient()


def _stepped(step: Any) -> tuple[Kernel, list[Any]]:
    k = Builder()
    out, j = k.array("out", INT64), k.var("j")
    loop = b.for_(j, b.const_int(0), b.const_int(3), b.store(out, gid(), j), step=step)
    return k.kernel(loop), [zeros(8, np.int64)]


@plant("ArithmeticFault")
def step_of_zero() -> Any:
    return _stepped(tid())


@plant(None)
def step_of_one_or_more() -> Any:
    return _stepped(b.add(tid(), b.const_int(1)))


# --- asserts and progress -------------------------------------------------------------------------


@plant("AssertionFailed")
def assertion_that_one_thread_fails() -> Any:
    k = Builder()
    return k.kernel(Assert(b.lt(tid(), 7), "tid < 7")), []


@plant(None)
def assertion_that_holds_where_it_stands() -> Any:
    k = Builder()
    return k.kernel(b.if_(b.lt(tid(), 7), [Assert(b.lt(tid(), 7), "tid < 7")])), []


def _spin(setter: int) -> tuple[Kernel, list[Any]]:
    k = Builder()
    flag, seen = k.array("flag"), k.var("seen", INT32, mutable=True)
    got = k.var("got", INT32)
    return k.kernel(
        b.if_(b.eq(gid(), setter), [b.atomic("store", flag, 0, 1)]),
        b.let_mut(seen, 0),
        b.if_(
            b.eq(gid(), 0),
            [b.while_(b.eq(seen, 0), b.atomic("load", flag, 0, result=got), b.assign(seen, got))],
        ),
        b.if_(b.eq(gid(), 9), [b.atomic("store", flag, 0, 1)]),
    ), [zeros(1)]


@plant("NoProgress", grid=2)
def waiting_for_another_block() -> Any:
    return _spin(setter=100)


@plant(None, grid=2)
def waiting_for_what_has_happened() -> Any:
    return _spin(setter=0)


@plant("NoProgress", block=1)
def taking_a_lock_twice() -> Any:
    k = Builder()
    lock, held = k.array("lock"), k.var("held", INT32, mutable=True)
    old = k.var("old", INT32)
    return k.kernel(
        b.let_mut(held, 1),
        b.while_(
            b.ne(held, 0), b.atomic("cas", lock, 0, 1, compare=0, result=old), b.assign(held, old)
        ),
    ), [np.ones(1, np.int32)]


@plant("NoProgress", step_limit=1000)
def longer_than_the_step_limit() -> Any:
    k = Builder()
    j = k.var("j")
    return k.kernel(b.for_(j, 0, 1001, b.let(k.var("t"), j))), []


@plant(None, step_limit=1000)
def as_long_as_the_step_limit() -> Any:
    k = Builder()
    j = k.var("j")
    return k.kernel(b.for_(j, 0, 1000, b.let(k.var("t"), j))), []


@plant(None)
def loop_that_changes_only_memory_ends() -> Any:
    k = Builder()
    out, a = k.array("out"), k.local("a", 1)
    return k.kernel(
        b.store(a, 0, 0),
        b.while_(b.lt(b.read(a, 0), 2000), b.store(a, 0, b.add(b.read(a, 0), 1))),
        b.store(out, gid(), b.read(a, 0)),
    ), [zeros(8)]
