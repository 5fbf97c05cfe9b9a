"""Where a weak int, computed in int64, leaves the range that its exact value would have.

The results themselves wrap (`binary`, `unary`); these functions say for which lanes that happened.
"""

from __future__ import annotations

import numpy as np

from sarek_numba.ir.nodes import BinOp, UnOp
from sarek_numba.ir.semantics.arrays import Lanes, Mask, silent
from sarek_numba.ir.semantics.integers import shift_left, shift_right
from sarek_numba.ir.types import Scalar

_LEAST = np.int64(np.iinfo(np.int64).min)


def binary_overflows(op: BinOp, a: Lanes, b: Lanes) -> Mask | None:
    """Lanes whose exact int64 result does not fit; None for an operator that cannot overflow."""
    overflows: Mask
    match op:
        case BinOp.ADD:
            total = a + b
            overflows = ((a ^ total) & (b ^ total)) < 0
        case BinOp.SUB:
            overflows = ((a ^ b) & (a ^ (a - b))) < 0
        case BinOp.MUL:
            overflows = _product_overflows(a, b)
        case BinOp.DIV | BinOp.FLOORDIV:
            overflows = (a == _LEAST) & (b == -1)
        case BinOp.SHL:
            outside = (b < 0) | (b > 63)
            overflows = (a != 0) & (outside | (shift_right(shift_left(a, b), b) != a))
        case _:
            return None
    return overflows


def unary_overflows(op: UnOp, a: Lanes) -> Mask | None:
    """Lanes whose exact int64 result does not fit; None for an operator that cannot overflow."""
    if op is not UnOp.NEG:
        return None
    overflows: Mask = a == _LEAST
    return overflows


def outside_of(target: Scalar, a: Lanes) -> Mask | None:
    """Lanes of int64 whose value is not one of the integer type `target`; None if all are."""
    if not target.is_integer or target is Scalar.INT64:
        return None
    outside: Mask = a < np.int64(target.minimum)
    if target is not Scalar.UINT64:
        outside |= a > np.int64(target.maximum)
    return outside


@silent
def _product_overflows(a: Lanes, b: Lanes) -> Mask:
    """A rounded product decides all but the products next to the limit; division decides those."""
    estimate = np.abs(a.astype(np.float64) * b.astype(np.float64))
    overflows: Mask = estimate > 2.0**62
    near = overflows & (estimate < 2.0**64)
    if near.any():
        product = a * b
        exact = (product // b != a) | ((a == _LEAST) & (b == -1)) | ((b == _LEAST) & (a == -1))
        overflows = np.where(near, exact, overflows)
    return overflows
