"""Short constructors for places: numbers that are never negative, divided by positive ones."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from sarek_numba.ir.build import Operand, add, bitand, const_int, expr, mul, shr
from sarek_numba.ir.nodes import Binary, BinOp, Const, Expr
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.typing import scalar_of


def quotient(value: Operand, by: Operand | int) -> Expr:
    """value // by; of powers of two a shift."""
    shift = _power(by)
    if shift is not None:
        return shr(value, shift) if shift else expr(value)
    return Binary(BinOp.DIV, expr(value), _like(value, by), unguarded=True)


def remainder(value: Operand, by: Operand | int) -> Expr:
    """value % by; of powers of two a mask."""
    shift = _power(by)
    if shift is not None:
        return bitand(value, (1 << shift) - 1)
    return Binary(BinOp.MOD, expr(value), _like(value, by), unguarded=True)


def _power(by: Operand | int) -> int | None:
    is_power = isinstance(by, int) and by > 0 and not by & (by - 1)
    return by.bit_length() - 1 if is_power and isinstance(by, int) else None


def _like(value: Operand, other: Operand | int) -> Expr:
    if isinstance(other, int):
        return const_int(other, scalar_of(expr(value)))
    return expr(other)


def times(left: Operand, right: Operand | int) -> Expr:
    """left * right, without a multiplication by one."""
    if isinstance(right, int):
        return expr(left) if right == 1 else mul(left, right)
    if isinstance(right, Const) and right.value == 1:
        return expr(left)
    return mul(left, right)


def total(parts: Iterable[Expr]) -> Expr:
    """The sum of some expressions, of which there is at least one."""
    return reduce(add, parts)


def index(type: Scalar, value: int) -> Expr:
    return const_int(value, type)
