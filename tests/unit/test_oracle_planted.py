"""Planted bugs, each found by the check meant for it, beside near misses that must stay silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from sarek_numba import errors as sarek_errors
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
from tests.unit.oracle_kit import Builder, bid, errors, gid, int32, run, tid

UINT8 = Scalar.UINT8


@dataclass(frozen=True)
class Plant:
    """A kernel with its launch, and the error that the oracle must find, or None."""

    error: str | None
    build: Callable[[], tuple[Kernel, list[Any]]]
    grid: int = 1
    block: int = 8
    options: dict[str, Any] = field(default_factory=dict)


PLANTS: dict[str, Plant] = {}


def plant(error: str | None, grid: int = 1, block: int = 8, **options: Any) -> Callable[..., Any]:
    def register(build: Callable[[], tuple[Kernel, list[Any]]]) -> Callable[..., Any]:
        PLANTS[build.__name__] = Plant(error, build, grid, block, options)
        return build

    return register


def zeros(n: int, dtype: Any = np.int32) -> np.ndarray:
    return np.zeros(n, dtype)


# --- bounds ---------------------------------------------------------------------------------------


def _copy(extent: int, shift: int, wrap: bool) -> tuple[Kernel, list[Any]]:
    k = Builder()
    out, src = k.array("out"), k.array("src")
    index = b.subscript(src, 0, b.add(gid(), b.const_int(shift)), b.const_int(extent), wrap)
    return k.kernel(b.store(out, gid(), b.read(src, index))), [zeros(8), zeros(8)]


@plant("OutOfBounds")
def bounds_one_past_the_end() -> Any:
    return _copy(8, 1, wrap=True)


@plant(None)
def bounds_last_element() -> Any:
    return _copy(8, 0, wrap=True)


@plant("OutOfBounds")
def bounds_of_the_view_not_of_the_buffer() -> Any:
    return _copy(7, 0, wrap=True)


@plant(None)
def bounds_negative_index_wraps() -> Any:
    return _copy(8, -8, wrap=True)


@plant("OutOfBounds")
def bounds_negative_index_without_wraparound() -> Any:
    return _copy(8, -8, wrap=False)


@plant("OutOfBounds")
def bounds_beyond_minus_the_extent() -> Any:
    return _copy(8, -9, wrap=True)


@plant("OutOfBounds")
def bounds_flat_access_beyond_the_buffer() -> Any:
    k = Builder()
    out = k.array("out")
    return k.kernel(b.store(out, gid(), 1)), [zeros(7)]


@plant(None)
def bounds_guarded_by_a_branch() -> Any:
    k = Builder()
    out = k.array("out")
    body = b.if_(b.lt(gid(), 7), [b.store(out, gid(), 1)])
    return k.kernel(body), [zeros(7)]


@plant(None)
def bounds_guarded_by_a_short_circuit() -> Any:
    k = Builder()
    out, src = k.array("out"), k.array("src")
    guarded = b.and_(b.lt(gid(), 7), b.gt(b.read(src, gid()), 0))
    return k.kernel(b.if_(guarded, [b.store(out, gid(), 1)])), [zeros(7), zeros(7)]


@plant("OutOfBounds")
def bounds_short_circuit_the_wrong_way_round() -> Any:
    k = Builder()
    out, src = k.array("out"), k.array("src")
    guarded = b.and_(b.gt(b.read(src, gid()), 0), b.lt(gid(), 7))
    return k.kernel(b.if_(guarded, [b.store(out, gid(), 1)])), [zeros(7), zeros(7)]


@plant(None)
def bounds_guarded_by_a_conditional_expression() -> Any:
    k = Builder()
    out, src = k.array("out"), k.array("src")
    value = b.select(b.lt(gid(), 7), b.read(src, gid()), 0)
    return k.kernel(b.store(out, gid(), value)), [zeros(8), zeros(7)]


@plant("OutOfBounds")
def bounds_of_a_local_array() -> Any:
    k = Builder()
    a = k.local("a", 4)
    return k.kernel(b.store(a, tid(), 1)), []


@plant("OutOfBounds", grid=2)
def bounds_of_a_shared_array_whose_neighbour_is_another_blocks() -> Any:
    k = Builder()
    s = k.shared("s", 7)
    return k.kernel(b.store(s, tid(), 1)), []


@plant("OutOfBounds", shared_bytes=28)
def bounds_of_the_dynamic_region() -> Any:
    k = Builder()
    s = k.shared("s", None)
    return k.kernel(b.store(s, tid(), 1)), []


@plant(None, shared_bytes=32)
def bounds_the_dynamic_region_just_fits() -> Any:
    k = Builder()
    s = k.shared("s", None)
    return k.kernel(b.store(s, tid(), 1)), []


@plant("OutOfBounds")
def bounds_of_a_constant_array() -> Any:
    k = Builder()
    out, c = k.array("out"), k.const("c", [1, 2, 3])
    return k.kernel(b.store(out, gid(), b.read(c, gid()))), [zeros(8)]


# --- races ----------------------------------------------------------------------------------------


def _reverse(barrier: bool) -> tuple[Kernel, list[Any]]:
    k = Builder()
    out, s = k.array("out"), k.shared("s", 8)
    exchange = [b.store(s, tid(), int32(tid()))]
    if barrier:
        exchange.append(Barrier())
    exchange.append(b.store(out, gid(), b.read(s, b.sub(7, tid()))))
    return k.kernel(*exchange), [zeros(16)]


@plant("DataRace", grid=2)
def race_shared_exchange_without_barrier() -> Any:
    return _reverse(barrier=False)


@plant(None, grid=2)
def race_shared_exchange_with_barrier() -> Any:
    return _reverse(barrier=True)


def _reused(trailing: bool) -> tuple[Kernel, list[Any]]:
    """Case 116: shared memory used again in the next pass."""
    k = Builder()
    out, s = k.array("out"), k.shared("s", 8)
    j = k.var("j")
    body = [
        b.store(s, tid(), int32(j)),
        Barrier(),
        b.store(out, tid(), b.read(s, b.bitxor(tid(), 1))),
    ]
    if trailing:
        body.append(Barrier())
    return k.kernel(b.for_(j, 0, 4, *body)), [zeros(8)]


@plant("DataRace")
def race_reuse_without_a_trailing_barrier() -> Any:
    return _reused(trailing=False)


@plant(None)
def race_reuse_with_a_trailing_barrier() -> Any:
    return _reused(trailing=True)


@plant("DataRace", grid=2)
def race_across_blocks_in_spite_of_barriers() -> Any:
    k = Builder()
    out = k.array("out")
    left = b.select(b.gt(gid(), 0), b.sub(gid(), 1), gid())
    return k.kernel(
        b.store(out, gid(), 1),
        Barrier(),
        b.store(out, b.add(gid(), 16), b.read(out, left)),
    ), [zeros(32)]


@plant(None, grid=2)
def race_none_if_each_block_reads_its_own() -> Any:
    k = Builder()
    out = k.array("out")
    left = b.select(b.gt(tid(), 0), b.sub(gid(), 1), gid())
    return k.kernel(
        b.store(out, gid(), 1),
        Barrier(),
        b.store(out, b.add(gid(), 16), b.read(out, left)),
    ), [zeros(32)]


@plant("DataRace", grid=64, block=512)
def race_in_place_stencil() -> Any:
    k = Builder()
    out = k.array("out")
    inside = b.and_(b.gt(gid(), 0), b.lt(gid(), 32767))
    both = b.add(b.read(out, b.sub(gid(), 1)), b.read(out, b.add(gid(), 1)))
    return k.kernel(b.if_(inside, [b.store(out, gid(), both)])), [zeros(32768)]


@plant(None, grid=64, block=512)
def race_none_in_an_out_of_place_stencil() -> Any:
    k = Builder()
    out, src = k.array("out"), k.array("src")
    inside = b.and_(b.gt(gid(), 0), b.lt(gid(), 32767))
    both = b.add(b.read(src, b.sub(gid(), 1)), b.read(src, b.add(gid(), 1)))
    store = b.store(out, gid(), both)
    return k.kernel(b.if_(inside, [store])), [zeros(32768), zeros(32768)]


@plant("DataRace", grid=2)
def race_plain_counter() -> Any:
    k = Builder()
    out = k.array("out")
    return k.kernel(b.store(out, 0, b.add(b.read(out, 0), 1))), [zeros(1)]


@plant(None, grid=2)
def race_none_with_an_atomic_counter() -> Any:
    k = Builder()
    out = k.array("out")
    return k.kernel(b.atomic("add", out, 0, 1)), [zeros(1)]


@plant("DataRace")
def race_plain_read_beside_an_atomic() -> Any:
    k = Builder()
    out, count = k.array("out"), k.array("count")
    return k.kernel(b.atomic("add", count, 0, 1), b.store(out, gid(), b.read(count, 0))), [
        zeros(8),
        zeros(1),
    ]


@plant(None)
def race_none_with_an_atomic_load() -> Any:
    k = Builder()
    out, count, old = k.array("out"), k.array("count"), k.var("old", INT32)
    return k.kernel(
        b.atomic("add", count, 0, 1),
        b.atomic("load", count, 0, result=old),
        b.store(out, gid(), old),
    ), [zeros(8), zeros(1)]


@plant(None)
def race_none_between_an_atomic_and_a_read_behind_a_barrier() -> Any:
    k = Builder()
    out, s = k.array("out"), k.shared("s", 1)
    return k.kernel(
        b.if_(b.eq(tid(), 0), [b.store(s, 0, 0)]),
        Barrier(),
        b.atomic("add", s, 0, 1),
        Barrier(),
        b.store(out, gid(), b.read(s, 0)),
    ), [zeros(8)]


@plant("DataRace", grid=2)
def race_different_bits() -> Any:
    k = Builder()
    out = k.array("out")
    return k.kernel(b.store(out, 0, int32(gid()))), [zeros(1)]


@plant(None, grid=2)
def race_benign_identical_bits() -> Any:
    k = Builder()
    out = k.array("out")
    return k.kernel(b.store(out, 0, 7)), [zeros(1)]


@plant("DataRace", grid=2, races="strict")
def race_identical_bits_under_strict() -> Any:
    k = Builder()
    out = k.array("out")
    return k.kernel(b.store(out, 0, 7)), [zeros(1)]


@plant("DataRace", grid=2)
def race_identical_bits_that_another_thread_reads() -> Any:
    k = Builder()
    out = k.array("out")
    return k.kernel(
        b.store(out, 0, 7),
        b.if_(b.eq(gid(), 9), [b.store(out, 1, b.read(out, 0))]),
    ), [zeros(2)]


@plant("DataRace")
def race_different_bits_at_different_statements() -> Any:
    k = Builder()
    out = k.array("out")
    return k.kernel(
        b.if_(b.eq(tid(), 3), [b.store(out, 0, 1)]),
        b.if_(b.eq(tid(), 5), [b.store(out, 0, 2)]),
    ), [zeros(1)]


@plant(None)
def race_none_when_one_thread_writes_twice() -> Any:
    k = Builder()
    out = k.array("out")
    return k.kernel(
        b.if_(b.eq(tid(), 3), [b.store(out, 0, 1)]),
        b.if_(b.eq(tid(), 3), [b.store(out, 0, 2)]),
    ), [zeros(1)]


def _neighbours(shift: int) -> tuple[Kernel, list[Any]]:
    """The same memory under two names and two element types (case 109)."""
    k = Builder()
    words, octets = k.array("words"), k.array("octets", UINT8)
    mine = b.cast(UINT8, tid())
    memory = zeros(16)
    view = memory[shift:].view(np.uint8)
    return k.kernel(
        b.if_(b.eq(tid(), 0), [b.store(words, 0, 1)]),
        b.if_(b.eq(tid(), 1), [b.store(octets, 3, mine)]),
    ), [memory[:8], view]


@plant("DataRace")
def race_overlapping_arguments_of_two_types() -> Any:
    return _neighbours(0)


@plant(None)
def race_none_if_the_bytes_only_touch() -> Any:
    return _neighbours(1)


@plant("DataRace")
def race_same_array_passed_twice() -> Any:
    k = Builder()
    out, src = k.array("out"), k.array("src")
    memory = zeros(9)
    return k.kernel(b.store(out, gid(), b.read(src, b.add(gid(), 1)))), [memory, memory]


@plant(None)
def race_none_if_aliases_are_used_element_by_element() -> Any:
    k = Builder()
    out, src = k.array("out"), k.array("src")
    memory = zeros(9)
    return k.kernel(b.store(out, gid(), b.read(src, gid()))), [memory, memory]


@plant(None)
def race_none_between_neighbouring_bytes() -> Any:
    k = Builder()
    out = k.array("out", UINT8)
    return k.kernel(b.store(out, gid(), b.cast(UINT8, gid()))), [zeros(8, np.uint8)]


@plant("DataRace", grid=3, shared_bytes=64)
def race_between_views_of_the_dynamic_region() -> Any:
    k = Builder()
    low, high = k.shared("low", None), k.shared("high", None, UINT8, offset=28)
    return k.kernel(b.store(low, tid(), 1), b.if_(b.eq(tid(), 0), [b.store(high, 1, 1)])), []


@plant(None, grid=3, shared_bytes=64)
def race_none_between_views_that_do_not_overlap() -> Any:
    k = Builder()
    low, high = k.shared("low", None), k.shared("high", None, UINT8, offset=32)
    return k.kernel(b.store(low, tid(), 1), b.if_(b.eq(tid(), 0), [b.store(high, 1, 1)])), []


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


@pytest.mark.parametrize("name", PLANTS)
def test_plant(name: str) -> None:
    """Each bug is found, by its own check and no other; each near miss is silent."""
    planted = PLANTS[name]
    kernel, arguments = planted.build()
    report = run(kernel, planted.grid, planted.block, *arguments, **planted.options)
    expected = set() if planted.error is None else {planted.error}
    assert set(errors(report)) == expected, str(report)
    if planted.error is not None:
        with pytest.raises(getattr(sarek_errors, planted.error)) as raised:
            report.raise_first()
        assert raised.value.findings == report.findings


def test_the_corpus_has_both_sides() -> None:
    """At least twelve bugs and twelve near misses, and every oracle error that can occur."""
    bugs = {plant.error for plant in PLANTS.values()} - {None}
    every = {cls.__name__ for cls in sarek_errors.OracleError.__subclasses__()}
    assert bugs == every - {"WarpDivergence"}
    assert sum(plant.error is not None for plant in PLANTS.values()) >= 12
    assert sum(plant.error is None for plant in PLANTS.values()) >= 12


def test_memory_beyond_an_array_stays_untouched() -> None:
    """A store out of range is suppressed, and a read there gives 0."""
    k = Builder()
    out, src = k.array("out"), k.array("src")
    memory = np.arange(100, 112, dtype=np.int32)
    kernel = k.kernel(b.store(out, gid(), b.read(src, b.add(gid(), 4))))
    report = run(kernel, 1, 8, memory[2:8], memory[8:12].copy())
    assert errors(report) == ["OutOfBounds", "OutOfBounds"]
    assert memory.tolist() == [100, 101, 0, 0, 0, 0, 0, 0, 108, 109, 110, 111]


def test_a_failed_subscript_suppresses_an_access_that_is_inside_the_buffer() -> None:
    k = Builder()
    out = k.array("out")
    column = b.subscript(out, 1, tid(), b.const_int(2))
    kernel = k.kernel(b.store(out, column, 1))
    data = zeros(8)
    report = run(kernel, 1, 8, data)
    assert errors(report) == ["OutOfBounds"]
    assert report.findings[0].threads == 6
    assert data.tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
