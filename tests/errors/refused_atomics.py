"""Atomic operations on elements and values that they do not take."""
# ruff: noqa

import numpy as np

import sarek_numba as sarek

FIXED = np.arange(4, dtype=np.int32)


def atomic_and_on_float(x, n):
    sarek.atomic.and_(x, 0, 1)


def atomic_inc_on_float(x, n):
    sarek.atomic.inc(x, 0)


def atomic_dec_on_float_with_a_wrap(x, n):
    sarek.atomic.dec(x, 0, 7)


def atomic_inc_wraps_at_none(x, n, ints):
    sarek.atomic.inc(ints, 0, None)


def atomic_inc_wraps_too_high(x, n, ints):
    sarek.atomic.inc(ints, 0, 2**31)


def atomic_dec_wraps_below_zero(x, n, big):
    sarek.atomic.dec(big, 0, -1)


def atomic_or_of_too_big(x, n, longs):
    sarek.atomic.or_(longs, 0, 2**63)


def atomic_and_without_value(x, n, ints):
    sarek.atomic.and_(ints, 0)


def atomic_inc_of_two_values(x, n, ints):
    sarek.atomic.inc(ints, 0, 1, 2)


def atomic_inc_on_local(x, n):
    mine = sarek.local.array(2, sarek.uint64)
    sarek.atomic.inc(mine, 0, 9)


def atomic_or_on_constant(x, n):
    table = sarek.const.array_like(FIXED)
    sarek.atomic.or_(table, 0, 1)


def atomic_sub_on_a_row(x, n, m):
    sarek.atomic.sub(m, 1, 1)


def unroll_a_number(x, n):
    for k in sarek.unroll(n):
        x[k] = k


def unroll_an_array(x, n):
    for k in sarek.unroll(x, 2):
        x[0] = k


def unroll_by_a_variable(x, n):
    for k in sarek.unroll(range(4), n):
        x[k] = k


def unroll_by_zero(x, n):
    for k in sarek.unroll(range(4), 0):
        x[k] = k


def unroll_by_a_float(x, n):
    for k in sarek.unroll(range(4), 2.0):
        x[k] = k


def unroll_without_a_range(x, n):
    for k in sarek.unroll():
        x[k] = k


def unroll_of_three(x, n):
    for k in sarek.unroll(range(4), 2, 3):
        x[k] = k


def atomic_and_of_python_spelling(x, n, ints):
    sarek.atomic.bitand(ints, 0, 1)
