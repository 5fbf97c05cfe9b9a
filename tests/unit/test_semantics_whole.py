"""Integer constants are folded to what the functions of lanes give."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import COMPARISONS, SHIFTS, BinOp, Const, UnOp, constant
from sarek_numba.ir.semantics import whole
from sarek_numba.ir.types import BOOL, Scalar

INTEGERS = [scalar for scalar in Scalar if scalar.is_integer]
each_type = pytest.mark.parametrize("type", INTEGERS)


def edges(type: Scalar) -> list[Const]:
    """Ends of the range and around them, around zero, shift counts, and some bits."""
    near = {type.minimum, type.minimum + 1, type.maximum, type.maximum - 1, 0, 1, 2, 3, 7, 16}
    near |= {-1, -2, -7, type.bits - 1, type.bits, type.bits + 1, 0x5A, 0x40200000, -100}
    return [constant(type, n) for n in sorted(near) if type.minimum <= n <= type.maximum]


@each_type
@pytest.mark.parametrize("op", [op for op in BinOp if op not in (BinOp.AND, BinOp.OR)])
def test_operators(op: BinOp, type: Scalar) -> None:
    """The lanes decide; what they know of no such operator is not folded."""
    rights = INTEGERS if op in SHIFTS else [type]
    for right_type in rights:
        for left, right in product(edges(type), edges(right_type)):
            lanes = semantics.binary(op, type)(semantics.as_lane(left), semantics.as_lane(right))
            result = BOOL if op in COMPARISONS else type
            expected = semantics.as_constant(result, lanes)
            assert whole.fold_binary(op, left, right) == expected, (left, right)


@each_type
@pytest.mark.parametrize("op", [UnOp.NEG, UnOp.BITNOT])
def test_unary(op: UnOp, type: Scalar) -> None:
    for value in edges(type):
        lanes = semantics.unary(op, type)(semantics.as_lane(value))
        assert whole.fold_unary(op, value) == semantics.as_constant(type, lanes)


@pytest.mark.parametrize("source", [*INTEGERS, BOOL])
@pytest.mark.parametrize("target", [*INTEGERS, BOOL])
def test_conversions(source: Scalar, target: Scalar) -> None:
    values = [Const(BOOL, 0), Const(BOOL, 1)] if source is BOOL else edges(source)
    for value in values:
        lanes = semantics.cast(source, target)(semantics.as_lane(value))
        assert whole.fold_cast(target, value) == semantics.as_constant(target, lanes)


def test_floats_are_left_to_the_lanes() -> None:
    one = constant(Scalar.FLOAT32, 1.0)
    assert whole.fold_binary(BinOp.ADD, one, one) is None
    assert whole.fold_unary(UnOp.NEG, one) is None
    assert whole.fold_cast(Scalar.INT32, one) is None
    assert whole.fold_cast(Scalar.FLOAT32, constant(Scalar.INT32, 1)) is None


def test_bits_are_reinterpreted() -> None:
    """Those of a NaN too, payload and sign included."""
    for bits in (0x40200000, 0x7FA00001, 0xFFC12345, 1):
        folded = semantics.fold_intrinsic("reinterpret", Scalar.UINT32, Const(Scalar.FLOAT32, bits))
        assert folded == Const(Scalar.UINT32, bits)
    value = semantics.fold_binary(
        BinOp.SHR, Const(Scalar.UINT32, 0x40200000), constant(Scalar.UINT32, 16)
    )
    assert semantics.fold_cast(Scalar.UINT8, value).value == np.uint8(0x20)
