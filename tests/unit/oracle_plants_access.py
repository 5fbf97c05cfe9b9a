"""Planted bugs and near misses: bounds and races."""

from __future__ import annotations

from typing import Any

import numpy as np

from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import (
    Barrier,
    Kernel,
)
from sarek_numba.ir.types import INT32, Scalar
from tests.unit.oracle_kit import Builder, gid, int32, tid
from tests.unit.oracle_plants import plant, zeros

UINT8 = Scalar.UINT8


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
