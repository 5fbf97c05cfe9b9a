"""Operators, conversions and exact functions at their edges on every OpenCL driver, by bits."""

from __future__ import annotations

import numpy as np
import pytest
from opencl_kernels import (
    FLOATS,
    INTEGERS,
    SCALARS,
    Pair,
    boundary_values,
    check,
    drivers,
    operators,
    pairs,
)

from sarek_numba.ir.nodes import Binary, BinOp, Cast, Intrinsic, VarRef
from sarek_numba.ir.types import Scalar

pytestmark = [
    pytest.mark.skipif(not drivers(), reason="no OpenCL device"),
    pytest.mark.parametrize("device", sorted(drivers())),
]


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: s.value)
def test_operators(device: str, scalar: Scalar) -> None:
    """All operators and exact functions of a type on all pairs of its boundary values."""
    pair = Pair(scalar, scalar)
    values = boundary_values(scalar)
    check(drivers()[device], pair, operators(scalar, pair), *pairs(values, values))


@pytest.mark.parametrize("source", SCALARS, ids=lambda s: s.value)
def test_conversions(device: str, source: Scalar) -> None:
    """Each conversion from a type, and each reinterpretation of its bits."""
    pair = Pair(source, source)
    values = boundary_values(source)
    a = VarRef(pair.a)
    named = {f"to {target.value}": Cast(target, a) for target in SCALARS}
    if source is not Scalar.BOOL:
        named |= {
            f"bits as {target.value}": Intrinsic(("bits",), "reinterpret", (a,), target)
            for target in SCALARS
            if target.bits == source.bits and target is not Scalar.BOOL
        }
    check(drivers()[device], pair, named, values, values)


@pytest.mark.parametrize("count", [Scalar.INT8, Scalar.UINT8, Scalar.INT64, Scalar.UINT64])
def test_shift_counts(device: str, count: Scalar) -> None:
    """A shift by any count of any integer type."""
    for scalar in (Scalar.INT32, Scalar.UINT64):
        pair = Pair(scalar, count)
        named = {
            op.name: Binary(op, VarRef(pair.a), VarRef(pair.b)) for op in (BinOp.SHL, BinOp.SHR)
        }
        check(
            drivers()[device],
            pair,
            named,
            *pairs(boundary_values(scalar), boundary_values(count)),
        )


@pytest.mark.parametrize("scalar", INTEGERS, ids=lambda s: s.value)
def test_unguarded(device: str, scalar: Scalar) -> None:
    """Without guards, operators are right wherever they meet no edge."""
    pair = Pair(scalar, scalar)
    a, b = VarRef(pair.a), VarRef(pair.b)
    ops = (op for op in BinOp if op not in (BinOp.AND, BinOp.OR))
    named = {op.name: Binary(op, a, b, unguarded=True) for op in ops}
    low = 0 if scalar.minimum == 0 else -7
    left = np.arange(max(low, 7) if low == 0 else low, 12)
    right = np.array([1, 2, 3, 4, 5, 7])
    if low:
        shifts = {name: named.pop(name) for name in ("SHL", "SHR")}
        signed = np.concatenate((-right, right))
        check(drivers()[device], pair, named, *_of(scalar, left, signed))
        named = shifts
        right = np.array([0, 1, 2, 3])
    check(drivers()[device], pair, named, *_of(scalar, left, right))


def _of(scalar: Scalar, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return pairs(left.astype(scalar.value), right.astype(scalar.value))


@pytest.mark.parametrize("scalar", FLOATS, ids=lambda s: s.value)
def test_exact_arithmetic(device: str, scalar: Scalar) -> None:
    """Operators and exact functions on a hundred thousand random bit patterns."""
    pair = Pair(scalar, scalar)
    generator = np.random.default_rng(7)
    count = 100_000
    bits = np.dtype(f"u{scalar.bits // 8}")
    left, right = (
        generator.integers(0, np.iinfo(bits).max, count, bits, endpoint=True).view(scalar.value)
        for _ in range(2)
    )
    # half of them of like magnitude, where rounding is decided by the last bits
    near = generator.uniform(0.5, 100.0, (2, count // 2)).astype(scalar.value)
    left[: count // 2], right[: count // 2] = near
    named = operators(scalar, pair)
    if scalar is Scalar.FLOAT64:
        del named["fma"]  # exact arithmetic in Python, one element at a time
    # a compiler that contracts gives these another last bit
    product = Binary(BinOp.MUL, VarRef(pair.a), VarRef(pair.b))
    named["a * b + a"] = Binary(BinOp.ADD, product, VarRef(pair.a))
    named["a * b - b"] = Binary(BinOp.SUB, product, VarRef(pair.b))
    check(drivers()[device], pair, named, left, right)


def test_a_missing_guard_is_found(device: str) -> None:
    """The comparison fails where a guard is left out: a count of 32 is not 0 on its own."""
    pair = Pair(Scalar.INT32, Scalar.INT32)
    bare = {"SHL": Binary(BinOp.SHL, VarRef(pair.a), VarRef(pair.b), unguarded=True)}
    left, right = (np.array(v, np.int32) for v in ([5, 7], [32, 2]))
    with pytest.raises(AssertionError, match=r"SHL: a=np.int32\(5\) b=np.int32\(32\)"):
        check(drivers()[device], pair, bare, left, right)
