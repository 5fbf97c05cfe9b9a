"""Operators of integer constants, on Python's integers: what the functions of lanes give, sooner.

The constant folder meets these more often than all others, and Python's integers are exact
whatever a library has made of the process. `tests/unit/test_semantics_whole.py` compares them with
the lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from sarek_numba.ir.operators import BinOp, UnOp
from sarek_numba.ir.types import BOOL, Scalar
from sarek_numba.ir.values import Const


def wrapped(type: Scalar, value: int) -> Const:
    """The constant of an integer type that is `value` modulo 2^n."""
    return Const(type, value & ((1 << type.bits) - 1))


def _quotient(a: int, b: int) -> int:
    """Rounded towards zero; 0 where b is 0."""
    if b == 0:
        return 0
    magnitude = abs(a) // abs(b)
    return -magnitude if (a < 0) != (b < 0) else magnitude


_ARITHMETIC: dict[BinOp, Callable[[int, int], int]] = {
    BinOp.ADD: lambda a, b: a + b,
    BinOp.SUB: lambda a, b: a - b,
    BinOp.MUL: lambda a, b: a * b,
    BinOp.DIV: _quotient,
    BinOp.MOD: lambda a, b: a - b * _quotient(a, b) if b else 0,
    BinOp.FLOORDIV: lambda a, b: a // b if b else 0,
    BinOp.FLOORMOD: lambda a, b: a % b if b else 0,
    BinOp.BITAND: lambda a, b: a & b,
    BinOp.BITOR: lambda a, b: a | b,
    BinOp.BITXOR: lambda a, b: a ^ b,
}
_COMPARISONS: dict[BinOp, Callable[[int, int], bool]] = {
    BinOp.EQ: lambda a, b: a == b,
    BinOp.NE: lambda a, b: a != b,
    BinOp.LT: lambda a, b: a < b,
    BinOp.LE: lambda a, b: a <= b,
    BinOp.GT: lambda a, b: a > b,
    BinOp.GE: lambda a, b: a >= b,
}


def fold_binary(op: BinOp, left: Const, right: Const) -> Const | None:
    """What an operator of two integers gives; None for other operands and operators."""
    type = left.type
    if not (type.is_integer and right.type.is_integer):
        return None
    a, b = int(left.value), int(right.value)
    if op in (BinOp.SHL, BinOp.SHR):
        return _shifted(op, type, a, b)
    if compare := _COMPARISONS.get(op):
        return Const(BOOL, int(compare(a, b)))
    compute = _ARITHMETIC.get(op)
    return None if compute is None else wrapped(type, compute(a, b))


def _shifted(op: BinOp, type: Scalar, a: int, count: int) -> Const:
    """A count outside of the width leaves nothing but the sign of what is shifted right."""
    if not 0 <= count < type.bits:
        return wrapped(type, -1 if op is BinOp.SHR and a < 0 else 0)
    return wrapped(type, a << count if op is BinOp.SHL else a >> count)


def fold_unary(op: UnOp, operand: Const) -> Const | None:
    """The negative or the complement of an integer; None for others."""
    if not operand.type.is_integer:
        return None
    value = int(operand.value)
    match op:
        case UnOp.NEG:
            return wrapped(operand.type, -value)
        case UnOp.BITNOT:
            return wrapped(operand.type, ~value)
        case _:
            return None


def fold_cast(target: Scalar, operand: Const) -> Const | None:
    """A conversion between integers and bools; None for others."""
    if operand.type.is_float or target.is_float:
        return None
    value = int(operand.value)
    return Const(BOOL, int(value != 0)) if target is BOOL else wrapped(target, value)
