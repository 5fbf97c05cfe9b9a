"""Operators on values, exact at every edge as `ir.semantics` fixes them.

SPIR-V leaves a division by zero, one that overflows, and a shift by too much without a meaning;
`unguarded` says that none of these is met. Float division is `division`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sarek_numba.ir.nodes import COMPARISONS, SHIFTS, BinOp, UnOp
from sarek_numba.ir.types import BOOL, Scalar
from sarek_vulkan.code import Code, Value, signed

Division = Callable[[Value, Value], Value]

_ARITHMETIC = {BinOp.ADD: "add", BinOp.SUB: "sub", BinOp.MUL: "mul"}
_BITWISE = {BinOp.BITAND: "and", BinOp.BITOR: "or", BinOp.BITXOR: "xor"}
_ORDER: Mapping[BinOp, str] = {op: op.name.lower() for op in COMPARISONS}
_DIVISIONS = frozenset({BinOp.DIV, BinOp.MOD, BinOp.FLOORDIV, BinOp.FLOORMOD})


def binary(code: Code, op: BinOp, left: Value, right: Value, unguarded: bool) -> Value:
    """`left op right`, but for `and` and `or`, which choose what is evaluated, and float division.

    Integers divide here.
    """
    if op in COMPARISONS:
        return code.compare(_ORDER[op], left, right)
    if op in SHIFTS:
        return _shift(code, op, left, right, unguarded)
    if op in _BITWISE:
        return code.bitwise(_BITWISE[op], left, right)
    if op in _ARITHMETIC:
        return code.arithmetic(_ARITHMETIC[op], left, right)
    assert op in _DIVISIONS
    assert left.type.is_integer
    return _divide(code, op, left, right, unguarded)


def unary(code: Code, op: UnOp, operand: Value) -> Value:
    """`op operand`; `not` of a number is whether it is zero."""
    if op is UnOp.NOT and operand.type is not BOOL:
        return code.is_zero(operand)
    if op is UnOp.NEG:
        return code.negate(operand)
    return code.complement(operand)


def _shift(code: Code, op: BinOp, left: Value, right: Value, unguarded: bool) -> Value:
    direction = "left" if op is BinOp.SHL else "right"
    if unguarded:
        return code.shifted(direction, left, right)
    width = left.type.bits
    count = code.bits_of(right)
    inside = code.compare("lt", count, code.constant(count.type, width))
    if direction == "right" and signed(left.type):  # all bits become the sign
        last = code.constant(count.type, width - 1)
        return code.shifted(direction, left, code.select(inside, count, last))
    nothing = code.constant(count.type, 0)
    result = code.shifted(direction, left, code.select(inside, count, nothing))
    return code.select(inside, result, code.constant(left.type, 0))


def _divide(code: Code, op: BinOp, left: Value, right: Value, unguarded: bool) -> Value:
    """Integer division: by zero gives 0, as does the rest, and the least number by -1 wraps."""
    sign = signed(left.type)
    zero = code.constant(left.type, 0)
    by_zero: Value | None = None
    divisor = right
    if not unguarded:
        by_zero = code.compare("eq", right, zero)
        edge = by_zero
        if sign:
            edge = code.either(by_zero, _overflows(code, left, right))
        divisor = code.select(edge, code.constant(left.type, 1), right)
    quotient = code.value("OpSDiv" if sign else "OpUDiv", left.type, left.id, divisor.id)
    rest = code.sub(left, code.mul(quotient, divisor))
    if sign and op in (BinOp.FLOORDIV, BinOp.FLOORMOD):
        differ = code.negative(code.bitwise("xor", rest, divisor))
        adjust = code.both(code.compare("ne", rest, zero), differ)
        one = code.constant(left.type, 1)
        quotient = code.select(adjust, code.sub(quotient, one), quotient)
        rest = code.select(adjust, code.add(rest, divisor), rest)
    if op in (BinOp.MOD, BinOp.FLOORMOD):
        return rest
    return quotient if by_zero is None else code.select(by_zero, zero, quotient)


def _overflows(code: Code, left: Value, right: Value) -> Value:
    least = code.compare("eq", left, code.constant(left.type, left.type.minimum))
    return code.both(least, code.compare("eq", right, code.constant(left.type, -1)))


def absolute(code: Code, a: Value) -> Value:
    """|a| of an integer, modulo 2^n."""
    if not signed(a.type):
        return a
    return code.select(code.negative(a), code.negate(a), a)


def passes(code: Code, first: Value, stop: Value, step: Value) -> Value:
    """Passes of range(first, stop, step) as an unsigned integer of 32 bits or more.

    Exact at the ends of the type; none for a step of zero.
    """
    wide = Scalar.UINT64 if first.type.bits == 64 else Scalar.UINT32
    up = code.compare("gt", step, code.constant(step.type, 0))
    a, b, s = (code.resized(value, wide) for value in (first, stop, step))
    runs = code.compare("lt", first, stop)
    distance, size = code.sub(b, a), s
    if signed(first.type):
        down = code.negative(step)
        distance = code.select(up, distance, code.sub(a, b))
        size = code.select(down, code.negate(s), s)
        falls = code.both(down, code.compare("gt", first, stop))
        runs = code.either(code.both(up, runs), falls)
    else:
        runs = code.both(up, runs)
    one, zero = code.constant(wide, 1), code.constant(wide, 0)
    size = code.select(code.is_zero(size), one, size)
    count = code.value("OpUDiv", wide, code.sub(distance, one).id, size.id)
    return code.select(runs, code.add(count, one), zero)
