"""Integer and bool operators against Python's exact integers, at the boundaries of every type."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import COMPARISONS, BinOp, UnOp, constant
from sarek_numba.ir.types import Scalar

INTEGERS = [scalar for scalar in Scalar if scalar.is_integer]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def boundary(type: Scalar) -> list[int]:
    near = {0, 1, 2, 3, 7, 8, 10, 100, -1, -2, -3, -7, -8, -10}
    near |= {type.minimum + k for k in range(3)} | {type.maximum - k for k in range(3)}
    near |= {type.maximum // 2 + k for k in (-1, 0, 1)}
    return sorted(value for value in near if type.minimum <= value <= type.maximum)


def wrap(type: Scalar, value: int) -> int:
    value &= (1 << type.bits) - 1
    return value - (1 << type.bits) if value > type.maximum else value


def pairs(type: Scalar) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    both = list(itertools.product(boundary(type), repeat=2))
    dtype = semantics.dtype_of(type)
    return np.array([a for a, _ in both], dtype), np.array([b for _, b in both], dtype), both


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


EXACT = {
    BinOp.ADD: lambda a, b: a + b,
    BinOp.SUB: lambda a, b: a - b,
    BinOp.MUL: lambda a, b: a * b,
    BinOp.FLOORDIV: lambda a, b: a // b if b else 0,
    BinOp.FLOORMOD: lambda a, b: a % b if b else 0,
    BinOp.DIV: lambda a, b: truncated(a, b) if b else 0,
    BinOp.MOD: lambda a, b: a - b * truncated(a, b) if b else 0,
    BinOp.BITAND: lambda a, b: a & b,
    BinOp.BITOR: lambda a, b: a | b,
    BinOp.BITXOR: lambda a, b: a ^ b,
    BinOp.EQ: lambda a, b: a == b,
    BinOp.NE: lambda a, b: a != b,
    BinOp.LT: lambda a, b: a < b,
    BinOp.LE: lambda a, b: a <= b,
    BinOp.GT: lambda a, b: a > b,
    BinOp.GE: lambda a, b: a >= b,
}


@pytest.mark.parametrize("type", INTEGERS, ids=lambda t: t.value)
@pytest.mark.parametrize("op", EXACT, ids=lambda op: op.name)
def test_binary_is_exact_modulo_the_width(op: BinOp, type: Scalar) -> None:
    """Every operator equals Python's, wrapped; division by zero is 0 (cases 16, 17, 19)."""
    a, b, both = pairs(type)
    result = semantics.binary(op, type)(a, b)
    expected = [EXACT[op](x, y) for x, y in both]
    if op in COMPARISONS:
        assert result.dtype == np.bool_
    else:
        assert result.dtype == a.dtype
        expected = [wrap(type, value) for value in expected]
    assert result.tolist() == expected


@pytest.mark.parametrize("type", INTEGERS, ids=lambda t: t.value)
@pytest.mark.parametrize("count_type", INTEGERS, ids=lambda t: t.value)
def test_shift_counts_out_of_range(type: Scalar, count_type: Scalar) -> None:
    """A count outside 0…w-1 gives 0, or -1 for a negative value shifted right (case 25)."""
    counts = [-1, 0, 1, type.bits - 1, type.bits, type.bits + 1, 63, 64, 100, count_type.minimum]
    counts = [c for c in counts if count_type.minimum <= c <= count_type.maximum]
    both = list(itertools.product(boundary(type), counts))
    a = np.array([x for x, _ in both], semantics.dtype_of(type))
    b = np.array([y for _, y in both], semantics.dtype_of(count_type))
    kept = a.copy(), b.copy()
    left = semantics.binary(BinOp.SHL, type)(a, b)
    right = semantics.binary(BinOp.SHR, type)(a, b)
    inside = [0 <= y < type.bits for _, y in both]
    assert left.dtype == right.dtype == a.dtype
    assert left.tolist() == [
        wrap(type, x << y) if ok else 0 for (x, y), ok in zip(both, inside, strict=True)
    ]
    assert right.tolist() == [
        x >> y if ok else (-1 if x < 0 else 0) for (x, y), ok in zip(both, inside, strict=True)
    ]
    assert (a == kept[0]).all()
    assert (b == kept[1]).all()


@pytest.mark.parametrize("type", INTEGERS, ids=lambda t: t.value)
def test_unary(type: Scalar) -> None:
    values = boundary(type)
    a = np.array(values, semantics.dtype_of(type))
    assert semantics.unary(UnOp.NEG, type)(a).tolist() == [wrap(type, -v) for v in values]
    assert semantics.unary(UnOp.BITNOT, type)(a).tolist() == [wrap(type, ~v) for v in values]
    assert semantics.intrinsic("abs", type)(a).tolist() == [wrap(type, abs(v)) for v in values]


@pytest.mark.parametrize("type", INTEGERS, ids=lambda t: t.value)
def test_power_is_exact_modulo_the_width(type: Scalar) -> None:
    """Never through floats; a negative exponent gives 0, ±1 for bases ±1 (cases 26, 29)."""
    both = [
        (x, y)
        for x, y in itertools.product(boundary(type), [*range(12), 31, 63, -1, -2, -3, -100])
        if type.minimum <= y <= type.maximum
    ]
    a = np.array([x for x, _ in both], semantics.dtype_of(type))
    b = np.array([y for _, y in both], semantics.dtype_of(type))

    def exact(x: int, y: int) -> int:
        if y >= 0:
            return wrap(type, x**y)
        return x ** (y & 1) if x in (1, -1) else 0

    result = semantics.intrinsic("ipow", type)(a, b)
    assert result.dtype == a.dtype
    assert result.tolist() == [exact(x, y) for x, y in both]


@pytest.mark.parametrize("type", INTEGERS, ids=lambda t: t.value)
def test_bit_counts(type: Scalar) -> None:
    values = boundary(type)
    bits = [v & ((1 << type.bits) - 1) for v in values]
    a = np.array(values, semantics.dtype_of(type))
    count = semantics.intrinsic("popcount", type)(a)
    zeros = semantics.intrinsic("clz", type)(a)
    assert count.dtype == zeros.dtype == a.dtype
    assert count.tolist() == [wrap(type, v.bit_count()) for v in bits]
    assert zeros.tolist() == [wrap(type, type.bits - v.bit_length()) for v in bits]


@pytest.mark.parametrize("type", INTEGERS, ids=lambda t: t.value)
@pytest.mark.parametrize("name", ["min", "minimum", "fmin"])
def test_minimum_and_maximum(name: str, type: Scalar) -> None:
    a, b, both = pairs(type)
    assert semantics.intrinsic(name, type)(a, b).tolist() == [min(p) for p in both]
    largest = semantics.intrinsic(name.replace("min", "max"), type)(a, b)
    assert largest.tolist() == [max(p) for p in both]
    assert largest.dtype == a.dtype


def test_bools_are_logical() -> None:
    """Comparisons and `& | ^ ~` on bools, over all pairs (case 10)."""
    a = np.array([False, False, True, True])
    b = np.array([False, True, False, True])
    table = {
        BinOp.EQ: [1, 0, 0, 1],
        BinOp.NE: [0, 1, 1, 0],
        BinOp.LT: [0, 1, 0, 0],
        BinOp.LE: [1, 1, 0, 1],
        BinOp.GT: [0, 0, 1, 0],
        BinOp.GE: [1, 0, 1, 1],
        BinOp.BITAND: [0, 0, 0, 1],
        BinOp.BITOR: [0, 1, 1, 1],
        BinOp.BITXOR: [0, 1, 1, 0],
        BinOp.AND: [0, 0, 0, 1],
        BinOp.OR: [0, 1, 1, 1],
    }
    for op, expected in table.items():
        result = semantics.binary(op, Scalar.BOOL)(a, b)
        assert result.dtype == np.bool_
        assert result.tolist() == [bool(v) for v in expected], op
    assert semantics.unary(UnOp.NOT, Scalar.BOOL)(a).tolist() == [True, True, False, False]
    assert semantics.unary(UnOp.BITNOT, Scalar.BOOL)(a).tolist() == [True, True, False, False]
    assert semantics.intrinsic("min", Scalar.BOOL)(a, b).tolist() == (a & b).tolist()
    assert semantics.intrinsic("max", Scalar.BOOL)(a, b).tolist() == (a | b).tolist()


def test_weak_overflow_is_where_python_leaves_int64() -> None:
    """`binary_overflows` agrees with exact integers for every operator that can overflow."""
    values = [*boundary(Scalar.INT64), 2**31, -(2**31), 2**32, 3037000499, 3037000500, -3037000500]
    both = list(itertools.product(values, repeat=2))
    a = np.array([x for x, _ in both], np.int64)
    b = np.array([y for _, y in both], np.int64)
    for op in (BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.FLOORDIV):
        expected = [not -(2**63) <= EXACT[op](x, y) < 2**63 for x, y in both]
        assert semantics.binary_overflows(op, a, b).tolist() == expected, op
    shifts = [(x, y) for x in values for y in (0, 1, 31, 62, 63, 64)]
    a = np.array([x for x, _ in shifts], np.int64)
    b = np.array([y for _, y in shifts], np.int64)
    expected = [not -(2**63) <= x << y < 2**63 for x, y in shifts]
    assert semantics.binary_overflows(BinOp.SHL, a, b).tolist() == expected
    assert semantics.binary_overflows(BinOp.FLOORMOD, a, b) is None


def test_constants_fold_by_the_same_functions() -> None:
    minimum = constant(Scalar.INT32, -(2**31))
    folded = semantics.fold_binary(BinOp.FLOORDIV, minimum, constant(Scalar.INT32, -1))
    assert folded == minimum
    assert semantics.fold_binary(
        BinOp.SHL, constant(Scalar.UINT8, 255), constant(Scalar.INT64, 1)
    ) == constant(Scalar.UINT8, 254)
    assert semantics.fold_cast(Scalar.UINT8, constant(Scalar.INT64, 300)).value == 44
    assert semantics.fold_unary(UnOp.NEG, constant(Scalar.FLOAT64, 0.0)).bits == 1 << 63
    one = semantics.fold_intrinsic("reinterpret", Scalar.INT32, constant(Scalar.FLOAT32, 1.0))
    assert one.bits == 0x3F800000
    less = semantics.fold_binary(
        BinOp.LT, constant(Scalar.FLOAT32, 1.0), constant(Scalar.FLOAT32, 2.0)
    )
    assert less == constant(Scalar.BOOL, True)
