"""Intervals hold what the operators of `ir.semantics` give, and know where edges are."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import COMPARISONS, BinOp, UnOp
from sarek_numba.ir.types import BOOL, Scalar
from sarek_numba.passes import interval
from sarek_numba.passes.interval import Interval, hull, widen

TYPES = (Scalar.INT8, Scalar.UINT8)
OPERATORS = [op for op in BinOp if op not in (BinOp.AND, BinOp.OR)]

EXACT: dict[BinOp, Callable[[int, int], int]] = {
    BinOp.ADD: lambda x, y: x + y,
    BinOp.SUB: lambda x, y: x - y,
    BinOp.MUL: lambda x, y: x * y,
    BinOp.FLOORDIV: lambda x, y: x // y,
    BinOp.FLOORMOD: lambda x, y: x % y,
}


def intervals(scalar: Scalar, count: int) -> list[Interval]:
    """Random intervals of a type, small and large ones, and those at its ends."""
    random_ = random.Random(scalar.value)
    low, high = scalar.minimum, scalar.maximum
    found = [(low, high), (low, low), (high, high), (0, 0), (0, high), (1, 3)]
    for _ in range(count):
        start = random_.randint(low, high)
        found.append((start, min(high, start + random_.choice((0, 1, 5, 40, 200)))))
    return found


def members(x: Interval) -> np.ndarray:
    """The ends of an interval and a spread of what is between."""
    return np.unique(np.linspace(x[0], x[1], 9).astype(int))


@pytest.mark.parametrize("scalar", TYPES, ids=lambda s: s.value)
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_binary_is_sound(op: BinOp, scalar: Scalar) -> None:
    """Every result of members is a member of the result, and no edge goes unnoticed."""
    function = semantics.binary(op, scalar)
    dtype = semantics.dtype_of(scalar)
    for x in intervals(scalar, 25):
        for y in intervals(scalar, 25):
            left, right = np.meshgrid(members(x), members(y))
            with np.errstate(all="ignore"):
                values = function(left.ravel().astype(dtype), right.ravel().astype(dtype))
            (low, high), edge = interval.binary(op, x, y, scalar)
            assert low <= values.min(), (x, y)
            assert values.max() <= high, (x, y)
            if not edge:
                _assert_exact(op, left.ravel(), right.ravel(), values, scalar)


def _assert_exact(
    op: BinOp, left: np.ndarray, right: np.ndarray, values: np.ndarray, scalar: Scalar
) -> None:
    if op in ir_shifts():
        assert ((right >= 0) & (right < scalar.bits)).all()
    elif op in EXACT:
        exact = [EXACT[op](int(x), int(y)) for x, y in zip(left, right, strict=True)]
        assert values.astype(int).tolist() == exact


def ir_shifts() -> tuple[BinOp, BinOp]:
    return (BinOp.SHL, BinOp.SHR)


@pytest.mark.parametrize("scalar", TYPES, ids=lambda s: s.value)
@pytest.mark.parametrize("op", [UnOp.NEG, UnOp.BITNOT], ids=lambda op: op.name)
def test_unary_is_sound(op: UnOp, scalar: Scalar) -> None:
    """Every result of members is a member of the result."""
    for x in intervals(scalar, 200):
        values = semantics.unary(op, scalar)(members(x).astype(semantics.dtype_of(scalar)))
        (low, high), _ = interval.unary(op, x, scalar)
        assert low <= values.min()
        assert values.max() <= high


@pytest.mark.parametrize("scalar", TYPES, ids=lambda s: s.value)
@pytest.mark.parametrize(
    "name", ["min", "max", "minimum", "maximum", "fmin", "fmax", "ipow", "abs", "popcount", "clz"]
)
def test_intrinsic_is_sound(name: str, scalar: Scalar) -> None:
    """Every result of members is a member of the result."""
    function = semantics.intrinsic(name, scalar)
    dtype = semantics.dtype_of(scalar)
    for x in intervals(scalar, 25):
        for y in intervals(scalar, 25) if name not in ("abs", "popcount", "clz") else [x]:
            left, right = np.meshgrid(members(x), members(y))
            args = (left.ravel().astype(dtype), right.ravel().astype(dtype))
            one = name in ("abs", "popcount", "clz")
            values = function(*(args[:1] if one else args))
            low, high = interval.intrinsic(name, (x,) if one else (x, y), scalar)
            assert low <= values.min(), (x, y)
            assert values.max() <= high, (x, y)


@pytest.mark.parametrize("target", [Scalar.INT8, Scalar.UINT8, Scalar.INT16, BOOL])
def test_cast_is_sound(target: Scalar) -> None:
    """Conversions wrap or keep what they are given."""
    for x in intervals(Scalar.INT16, 100):
        values = semantics.cast(Scalar.INT16, target)(members(x).astype(np.int16)).astype(int)
        low, high = interval.cast(x, target)
        assert low <= values.min()
        assert values.max() <= high


def test_results_are_tight() -> None:
    """The bounds are those of the operands, not those of the type, where nothing wraps."""
    binary = interval.binary
    assert binary(BinOp.ADD, (1, 2), (10, 20), Scalar.INT32) == ((11, 22), False)
    assert binary(BinOp.MUL, (-3, 2), (4, 5), Scalar.INT32) == ((-15, 10), False)
    assert binary(BinOp.FLOORDIV, (-7, 9), (2, 2), Scalar.INT32) == ((-4, 4), False)
    assert binary(BinOp.FLOORMOD, (-7, 9), (4, 4), Scalar.INT32) == ((0, 3), False)
    assert binary(BinOp.MOD, (-7, 9), (4, 4), Scalar.INT32) == ((-3, 3), False)
    assert binary(BinOp.BITAND, (-100, 100), (7, 7), Scalar.INT32) == ((0, 7), False)
    assert binary(BinOp.SHR, (0, 100), (2, 2), Scalar.INT32) == ((0, 25), False)


def test_edges_are_seen() -> None:
    """Overflow, a zero divisor, the least number by -1 and a count out of range are edges."""
    binary = interval.binary
    assert binary(BinOp.ADD, (0, 2**31 - 1), (0, 1), Scalar.INT32)[1]
    assert binary(BinOp.DIV, (1, 2), (0, 4), Scalar.INT32)[1]
    assert binary(BinOp.FLOORMOD, (-(2**31), 0), (-1, 4), Scalar.INT32)[1]
    assert binary(BinOp.SHL, (1, 1), (0, 32), Scalar.INT32)[1]
    assert not binary(BinOp.SHL, (1, 1), (0, 31), Scalar.INT32)[1]
    assert interval.unary(UnOp.NEG, (-(2**31), 0), Scalar.INT32)[1]


def test_comparisons_decide_only_what_is_decided() -> None:
    """A comparison is a constant only if it is the same for all members."""
    for op in COMPARISONS:
        assert interval.binary(op, (0, 5), (3, 9), Scalar.INT32)[0] == (0, 1)
    assert interval.binary(BinOp.LT, (0, 2), (3, 9), Scalar.INT32)[0] == (1, 1)
    assert interval.binary(BinOp.GE, (0, 2), (3, 9), Scalar.INT32)[0] == (0, 0)


def test_widening_ends() -> None:
    """A bound that always grows reaches the end of its type in a few steps, and holds both."""
    whole = interval.TYPE_RANGE[Scalar.INT64]
    held, steps = (0, 0), 0
    while held != whole:
        grown = hull(held, (max(held[0] - 1, whole[0]), min(held[1] + 1, whole[1])))
        held = widen(held, grown, whole)
        assert held[0] <= grown[0]
        assert grown[1] <= held[1]
        steps += 1
    assert steps < 12
