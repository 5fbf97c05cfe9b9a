"""Operators on integers and bools. Everything wraps modulo 2^n in its own width and nothing traps.

`x // 0` and `x % 0` are 0, `INT_MIN // -1` is INT_MIN and `INT_MIN % -1` is 0, rounding down or to
zero alike. A shift count outside 0…w-1, of whatever integer type, gives 0, or -1 for a negative
value shifted right.
"""

from __future__ import annotations

import numpy as np

from sarek_numba.ir.semantics.arrays import Lanes, Mask, Operator, silent

floor_divide = silent(np.floor_divide)
floor_modulo = silent(np.remainder)
truncated_modulo = silent(np.fmod)


def truncated_divide(a: Lanes, b: Lanes) -> Lanes:
    """The quotient rounded to zero: one above the floor where signs differ and a rest is left."""
    quotient = floor_divide(a, b)
    if a.dtype.kind == "u":
        return quotient
    rounded_away = ((a < 0) != (b < 0)) & (floor_modulo(a, b) != 0)
    truncated: Lanes = quotient + rounded_away.astype(a.dtype)
    return truncated


def _counts(a: Lanes, count: Lanes) -> tuple[Lanes, Mask]:
    """Counts that are safe to shift by, and where the real count is out of range."""
    width = 8 * a.dtype.itemsize
    outside = count >= width
    if count.dtype.kind == "i":
        outside |= count < 0
    return np.where(outside, 0, count).astype(a.dtype), outside


def shift_left(a: Lanes, count: Lanes) -> Lanes:
    safe, outside = _counts(a, count)
    return np.where(outside, a.dtype.type(0), np.left_shift(a, safe))


def shift_right(a: Lanes, count: Lanes) -> Lanes:
    safe, outside = _counts(a, count)
    sign = a >> a.dtype.type(8 * a.dtype.itemsize - 1) if a.dtype.kind == "i" else a.dtype.type(0)
    return np.where(outside, sign, np.right_shift(a, safe))


def power(base: Lanes, exponent: Lanes) -> Lanes:
    """`base ** exponent` modulo 2^n by squaring; a negative exponent keeps bases 1 and -1 alone."""
    base, exponent = np.broadcast_arrays(base, exponent)
    negative = exponent < 0
    one = base.dtype.type(1)
    result = np.ones_like(base)
    factor = base
    rest = np.where(negative, exponent & one, exponent)  # (±1) ** -e is (±1) ** (e mod 2)
    while rest.any():
        result = np.where(rest & one != 0, result * factor, result)
        factor = factor * factor
        rest = rest >> one
    if base.dtype.kind == "u":
        return result
    return np.where(negative & (base != 1) & (base != -1), base.dtype.type(0), result)


def _unsigned(a: Lanes) -> Lanes:
    return a.view(f"u{a.dtype.itemsize}")


def population_count(a: Lanes) -> Lanes:
    return np.bitwise_count(_unsigned(a)).astype(a.dtype)


def leading_zeros(a: Lanes) -> Lanes:
    """Zero bits above the highest one; the width for 0."""
    rest = _unsigned(a)
    width = 8 * rest.dtype.itemsize
    unsigned = rest.dtype.type
    count = np.full(rest.shape, width, rest.dtype)
    step = width // 2
    while step:
        high = rest >> unsigned(step)
        found = high != 0
        count = np.where(found, count - unsigned(step), count)
        rest = np.where(found, high, rest)
        step //= 2
    return (count - rest).astype(a.dtype)


OPERATORS: dict[str, Operator] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": truncated_divide,
    "mod": truncated_modulo,
    "floordiv": floor_divide,
    "floormod": floor_modulo,
    "shl": shift_left,
    "shr": shift_right,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
}
