"""Intervals of mathematical integers, and what each operator of the IR does to them.

An interval is a pair (low, high), both ends included; a bool is 0 or 1. The functions are sound:
the result of an operator on any two members is a member of what they give. The second half of an
`Outcome` is True where some pair may meet the edge of the operator: overflow, a zero divisor, a
shift count out of range. `ir.semantics` decides what happens there; its result is inside as well.
"""

from __future__ import annotations

from collections.abc import Callable

from sarek_numba.ir.nodes import BinOp, UnOp
from sarek_numba.ir.types import Kind, Scalar

Interval = tuple[int, int]
Outcome = tuple[Interval, bool]

FALSE: Interval = (0, 0)
TRUE: Interval = (1, 1)
EITHER: Interval = (0, 1)

TYPE_RANGE: dict[Scalar, Interval] = {
    scalar: (scalar.minimum, scalar.maximum) for scalar in Scalar if not scalar.is_float
}


def hull(one: Interval, other: Interval) -> Interval:
    """The smallest interval that holds both."""
    return (min(one[0], other[0]), max(one[1], other[1]))


def within(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def fits(interval: Interval, scalar: Scalar) -> bool:
    """Whether every member is a value of the type."""
    return within(interval, TYPE_RANGE[scalar])


def _wrapped(exact: Interval, scalar: Scalar) -> Outcome:
    """An exact result as the type holds it: anything at all where it may have wrapped."""
    if fits(exact, scalar):
        return exact, False
    return TYPE_RANGE[scalar], True


# --- arithmetic -----------------------------------------------------------------------------------


def _add(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    return _wrapped((x[0] + y[0], x[1] + y[1]), scalar)


def _subtract(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    return _wrapped((x[0] - y[1], x[1] - y[0]), scalar)


def _multiply(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    corners = (x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1])
    return _wrapped((min(corners), max(corners)), scalar)


def _truncated(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _floored(x: int, y: int) -> int:
    return x // y


def _divisor_parts(y: Interval) -> list[Interval]:
    """The negative and the positive divisors."""
    parts = []
    if y[0] < 0:
        parts.append((y[0], min(y[1], -1)))
    if y[1] > 0:
        parts.append((max(y[0], 1), y[1]))
    return parts


def _division_edge(x: Interval, y: Interval, scalar: Scalar) -> bool:
    by_zero = y[0] <= 0 <= y[1]
    minimum_by_minus_one = scalar.kind is Kind.SIGNED and x[0] == scalar.minimum
    return by_zero or (minimum_by_minus_one and y[0] <= -1 <= y[1])


def _divide(divide: Callable[[int, int], int]) -> Callable[[Interval, Interval, Scalar], Outcome]:
    def outcome(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
        values = [0] if y[0] <= 0 <= y[1] else []
        for part in _divisor_parts(y):
            # monotonic in each operand while the divisor keeps its sign: the corners are extreme
            values += [divide(a, b) for a in x for b in part]
        result, _ = _wrapped((min(values), max(values)), scalar)
        return result, _division_edge(x, y, scalar)

    return outcome


def _remainder(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    """The remainder of truncating division has the sign of the dividend."""
    edge = _division_edge(x, y, scalar)
    if x[0] >= 0 and x[1] < y[0]:
        return x, edge
    largest = max(abs(y[0]), abs(y[1]), 1) - 1
    return (max(min(x[0], 0), -largest), min(max(x[1], 0), largest)), edge


def _modulo(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    """The remainder of flooring division has the sign of the divisor."""
    edge = _division_edge(x, y, scalar)
    if x[0] >= 0 and x[1] < y[0]:
        return x, edge
    low = min(y[0] + 1, 0)
    high = max(y[1] - 1, 0)
    if x[0] >= 0 and y[0] >= 0:
        high = min(high, x[1])
    if x[1] <= 0 and y[1] <= 0:
        low = max(low, x[0])
    return (low, high), edge


# --- bits -----------------------------------------------------------------------------------------


def _counts(y: Interval, scalar: Scalar) -> tuple[Interval | None, bool]:
    """The counts in range, and whether there are any others."""
    low, high = max(y[0], 0), min(y[1], scalar.bits - 1)
    return (low, high) if low <= high else None, (low, high) != y


def _shift_left(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    counts, edge = _counts(y, scalar)
    if counts is None:
        return (0, 0), edge
    corners = [a << n for a in x for n in counts]
    result, _ = _wrapped((min(corners), max(corners)), scalar)
    return (hull(result, (0, 0)) if edge else result), edge


def _shift_right(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    counts, edge = _counts(y, scalar)
    corners = [] if counts is None else [a >> n for a in x for n in counts]
    if edge:
        corners += [-1 if a < 0 else 0 for a in x]
    return (min(corners), max(corners)), edge


def _all_bits(*values: int) -> int:
    """2**k - 1 for the smallest k such that every value lies in -2**k … 2**k - 1."""
    length = max(value.bit_length() if value >= 0 else (~value).bit_length() for value in values)
    return (1 << length) - 1


def _bit_and(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    if x[0] >= 0 and y[0] >= 0:
        return (0, min(x[1], y[1])), False
    if x[0] >= 0:
        return (0, x[1]), False
    if y[0] >= 0:
        return (0, y[1]), False
    return (~_all_bits(x[0], y[0]), max(x[1], y[1])), False


def _bit_or(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    low = max(x[0], y[0]) if x[0] >= 0 and y[0] >= 0 else min(x[0], y[0])
    high = -1 if x[1] < 0 or y[1] < 0 else _all_bits(x[1], y[1])
    return (low, high), False


def _bit_xor(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    bits = _all_bits(*x, *y)
    return (0 if x[0] >= 0 and y[0] >= 0 else ~bits, bits), False


# --- comparisons and logic ------------------------------------------------------------------------


def _decided(yes: bool, no: bool) -> Outcome:
    return (TRUE if yes else FALSE if no else EITHER), False


def _equal(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    return _decided(x == y and x[0] == x[1], x[1] < y[0] or y[1] < x[0])


def _different(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    return _decided(x[1] < y[0] or y[1] < x[0], x == y and x[0] == x[1])


def _less(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    return _decided(x[1] < y[0], x[0] >= y[1])


def _less_equal(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    return _decided(x[1] <= y[0], x[0] > y[1])


def _greater(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    return _less(y, x, scalar)


def _greater_equal(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    return _less_equal(y, x, scalar)


def _and(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    return (x[0] & y[0], x[1] & y[1]), False


def _or(x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    return (x[0] | y[0], x[1] | y[1]), False


_BINARY: dict[BinOp, Callable[[Interval, Interval, Scalar], Outcome]] = {
    BinOp.ADD: _add,
    BinOp.SUB: _subtract,
    BinOp.MUL: _multiply,
    BinOp.DIV: _divide(_truncated),
    BinOp.MOD: _remainder,
    BinOp.FLOORDIV: _divide(_floored),
    BinOp.FLOORMOD: _modulo,
    BinOp.EQ: _equal,
    BinOp.NE: _different,
    BinOp.LT: _less,
    BinOp.LE: _less_equal,
    BinOp.GT: _greater,
    BinOp.GE: _greater_equal,
    BinOp.AND: _and,
    BinOp.OR: _or,
    BinOp.SHL: _shift_left,
    BinOp.SHR: _shift_right,
    BinOp.BITAND: _bit_and,
    BinOp.BITOR: _bit_or,
    BinOp.BITXOR: _bit_xor,
}


def binary(op: BinOp, x: Interval, y: Interval, scalar: Scalar) -> Outcome:
    """The result of `op` on operands of type `scalar` (the left one, for a shift)."""
    return _BINARY[op](x, y, scalar)


def unary(op: UnOp, x: Interval, scalar: Scalar) -> Outcome:
    """The result of `op` on an operand of type `scalar`."""
    match op:
        case UnOp.NEG:
            return _wrapped((-x[1], -x[0]), scalar)
        case UnOp.NOT:
            return (1 - x[1], 1 - x[0]), False
        case UnOp.BITNOT:
            top = -1 if scalar.kind is Kind.SIGNED else scalar.maximum
            return (top - x[1], top - x[0]), False


# --- conversions and named functions --------------------------------------------------------------


def cast(x: Interval, scalar: Scalar) -> Interval:
    """An integer or bool converted to an integer type or bool."""
    if scalar is Scalar.BOOL:
        return binary(BinOp.NE, x, (0, 0), scalar)[0]
    return x if fits(x, scalar) else TYPE_RANGE[scalar]


def _absolute(x: Interval, scalar: Scalar) -> Interval:
    low = 0 if x[0] <= 0 <= x[1] else min(abs(x[0]), abs(x[1]))
    return _wrapped((low, max(abs(x[0]), abs(x[1]))), scalar)[0]


def _smaller(x: Interval, y: Interval) -> Interval:
    return (min(x[0], y[0]), min(x[1], y[1]))


def _larger(x: Interval, y: Interval) -> Interval:
    return (max(x[0], y[0]), max(x[1], y[1]))


def _power(x: Interval, y: Interval, scalar: Scalar) -> Interval:
    if x[0] < 0 or y[0] < 0 or y[1] * x[1].bit_length() > 128:
        return TYPE_RANGE[scalar]
    return _wrapped((x[0] ** y[0] if x[0] else 0, max(x[1], 1) ** y[1]), scalar)[0]


_EXTREMES = {
    "min": _smaller,
    "minimum": _smaller,
    "fmin": _smaller,
    "max": _larger,
    "maximum": _larger,
    "fmax": _larger,
}


def intrinsic(name: str, args: tuple[Interval, ...], scalar: Scalar) -> Interval:
    """The result of a named function on integers, all of type `scalar`, as is the result."""
    if name in _EXTREMES:
        return _EXTREMES[name](*args)
    match name:
        case "abs":
            return _absolute(args[0], scalar)
        case "ipow":
            return _power(args[0], args[1], scalar)
        case "popcount" | "clz":
            return (0, scalar.bits)
        case _:
            return TYPE_RANGE[scalar]


# --- loops ----------------------------------------------------------------------------------------

# Where a bound that keeps moving is taken next; an int32 that a program keeps in range stays there.
_LOWER = (0, -1, -(2**15), -(2**31), -(2**32), -(2**63))
_UPPER = (0, 1, 2**15, 2**31 - 1, 2**32 - 1, 2**33, 2**63 - 1, 2**64 - 1)


def widen(old: Interval, new: Interval, whole: Interval) -> Interval:
    """An interval in `whole` that holds both and grows a bounded number of times only."""
    least, most = whole
    low, high = old
    if new[0] < low:
        low = max(next((limit for limit in _LOWER if limit <= new[0]), least), least)
    if new[1] > high:
        high = min(next((limit for limit in _UPPER if limit >= new[1]), most), most)
    return (low, high)
