"""The sentences of the language's meaning that concern types, one test each."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest
from numba.core import types

from sarek_numba.errors import ConstantOverflow, TypingError
from sarek_numba.frontend import language as sarek
from sarek_numba.frontend import mathematics
from sarek_numba.frontend.context import find_rule
from sarek_numba.frontend.typed import Binary, Constant, RoundToInt
from sarek_numba.frontend.weak import (
    WEAK_FLOAT,
    WEAK_INT,
    Refusal,
    WeakFloat,
    WeakInt,
    join,
    tuple_of,
    type_of,
)
from sarek_numba.ir.nodes import BinOp
from sarek_numba.ir.types import Scalar

SCALARS = [s for s in Scalar if s not in (Scalar.FLOAT16, Scalar.BFLOAT16)]
INTEGERS = [s for s in SCALARS if s.is_integer]
f32, f64 = types.float32, types.float64
u8, i32, u32, i64, u64 = types.uint8, types.int32, types.uint32, types.int64, types.uint64
boolean = types.boolean


def result(function: Any, *args: Any) -> Any:
    """The result type of a rule; Python numbers stand for constants."""
    return find_rule(function)(*map(typed, args)).result


def what(function: Any, *args: Any) -> Any:
    return find_rule(function)(*map(typed, args)).what


def typed(arg: Any) -> Any:
    if isinstance(arg, int):
        return WeakInt.of(arg)
    return WeakFloat(arg) if isinstance(arg, float) else arg


def refusal(function: Any, *args: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        result(function, *args)
    return caught.value


ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)


@pytest.mark.parametrize("function", [*ARITHMETIC, operator.truediv])
def test_strong_types_promote_as_numpy(function: Any) -> None:
    """Two strong types promote as NumPy's own operation on such scalars does."""
    for left in SCALARS:
        for right in SCALARS:
            if left is right is Scalar.BOOL:
                continue
            a, b = np.dtype(left.value).type(1), np.dtype(right.value).type(1)
            expected = function(a, b).dtype
            actual = result(function, type_of(left), type_of(right))
            if expected == np.float16:
                expected = np.dtype("float32")
            assert np.dtype(actual.name) == expected, (left, right)


@pytest.mark.parametrize("weak", [3, 2.5])
@pytest.mark.parametrize("function", ARITHMETIC)
def test_weak_operands_promote_as_numpy(function: Any, weak: Any) -> None:
    """A constant meets every strong type as NumPy 2 has it, on both sides."""
    for scalar in SCALARS:
        strong = np.dtype(scalar.value).type(7)
        for pair in ((strong, weak), (weak, strong)):
            args = [type_of(scalar) if each is strong else each for each in pair]
            actual = result(function, *args)
            if scalar is Scalar.BOOL:  # NumPy makes an int64 or float64 of it, here it stays weak
                assert actual == (WEAK_INT if isinstance(weak, int) else f64)
                continue
            with np.errstate(all="ignore"):
                expected = function(*pair).dtype
            assert np.dtype(actual.name) == expected, (scalar, pair)


def test_weak_results_stay_weak() -> None:
    """Two weak numbers give a weak number: an int unless one is a float or they are divided."""
    assert result(operator.add, WEAK_INT, WEAK_INT) == WEAK_INT
    assert result(operator.add, WEAK_INT, WEAK_FLOAT) == WEAK_FLOAT
    assert result(operator.truediv, WEAK_INT, WEAK_INT) == WEAK_FLOAT
    assert result(operator.floordiv, WEAK_INT, WEAK_INT) == WEAK_INT
    assert result(operator.mul, boolean, WEAK_INT) == WEAK_INT


def test_run_time_weak_numbers_take_the_strong_type() -> None:
    """`x_f32[j] * j` is float32."""
    assert result(operator.mul, f32, WEAK_INT) == f32
    assert result(operator.mul, WEAK_FLOAT, f32) == f32
    assert result(operator.add, i32, WEAK_INT) == i32
    assert result(operator.add, i32, WEAK_FLOAT) == f64
    assert result(operator.add, boolean, WEAK_FLOAT) == f64


@pytest.mark.parametrize("constant", [300, -1, 256])
def test_a_constant_that_does_not_fit_is_refused(constant: int) -> None:
    """`u8 + 300` is a compile error."""
    assert refusal(operator.add, u8, constant).error is ConstantOverflow
    assert refusal(np.uint8, constant).error is ConstantOverflow


def test_a_run_time_int_meeting_a_narrow_type_is_refused() -> None:
    """It may not fit 8 or 16 bits; 32 and 64 are taken."""
    for scalar in INTEGERS:
        if scalar.bits < 32:
            assert "run-time Python int" in refusal(operator.add, type_of(scalar), WEAK_INT).message
        else:
            assert result(operator.add, type_of(scalar), WEAK_INT) == type_of(scalar)


def test_constants_are_folded_with_pythons_arithmetic() -> None:
    """An expression of constants is a constant, however wide."""
    assert what(operator.mul, 2**40, 2**40) == Constant(2**80)
    assert what(operator.floordiv, -7, 2) == Constant(-4)
    assert what(operator.truediv, 1, 4) == Constant(0.25)
    assert what(operator.lt, 3, 5) == Constant(True)
    assert "divides by zero" in refusal(operator.mod, 1, 0).message
    assert refusal(operator.pow, 10, 10**9).error is ConstantOverflow


def test_a_constant_beyond_int64_is_refused_at_run_time() -> None:
    """Run-time Python ints compute in int64."""
    assert refusal(operator.add, WEAK_INT, 2**63).error is ConstantOverflow
    assert result(operator.xor, u64, 2**63) == u64


COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("function", COMPARISONS)
def test_comparisons_with_constants_out_of_range_are_decided(function: Any) -> None:
    """They are decided exactly, as Python compares."""
    for scalar in INTEGERS:
        for constant in (scalar.minimum - 1, scalar.maximum + 1):
            value = scalar.minimum  # any value gives the same answer
            expected = function(value, constant)
            assert what(function, type_of(scalar), constant) == Constant(expected)
            assert what(function, constant, type_of(scalar)) == Constant(function(constant, value))


def test_integers_compare_by_value_and_with_floats_in_the_promoted_type() -> None:
    """The operands of a comparison of integers keep their types."""
    compare = find_rule(operator.lt)
    assert compare(i32, u64).operands == (i32, u64)
    assert compare(u8, WEAK_INT).operands == (u8, WEAK_INT)
    assert compare(u8, WeakInt.of(3)).operands == (u8, u8)
    assert compare(i32, f32).operands == (f64, f64)
    assert compare(f32, WEAK_INT).operands == (f32, f32)
    assert compare(boolean, boolean).operands == (boolean, boolean)


def test_shifts_keep_the_type_under_a_weak_count() -> None:
    """A weak count never changes the type, and a uint64 keeps uint64 with any integer count."""
    for scalar in INTEGERS:
        assert result(operator.lshift, type_of(scalar), WEAK_INT) == type_of(scalar)
        assert result(operator.rshift, type_of(scalar), 300) == type_of(scalar)
        assert result(operator.rshift, u64, type_of(scalar)) == u64
    assert result(operator.lshift, u8, i32) == i32
    assert refusal(operator.lshift, f32, 1).hint == "write int(...) around the float"


def test_bits_of_uint64_with_signed_are_refused() -> None:
    """No integer type holds both; the hint names the cast."""
    for function in (operator.and_, operator.or_, operator.xor):
        assert "sarek.uint64" in (refusal(function, u64, i32).hint or "")
        assert result(function, u64, u32) == u64
        assert result(function, boolean, boolean) == boolean


def test_powers_of_integers() -> None:
    """A negative constant exponent is an error for an integer base, and exact for a float."""
    assert "negative power" in refusal(operator.pow, i32, -1).message
    assert result(operator.pow, f32, -1) == f32
    assert result(operator.pow, i32, i64) == i64
    assert result(operator.pow, f32, i32) == f64
    assert what(operator.pow, i32, 3).name == "ipow"
    assert what(operator.pow, f32, 3).name == "pow"


@pytest.mark.parametrize("function", [*ARITHMETIC, operator.truediv, operator.pow])
def test_arithmetic_on_two_bools_is_refused(function: Any) -> None:
    """The hint says how to count or to combine."""
    assert "two bools" in refusal(function, boolean, boolean).message


def test_extremes_have_the_join_of_their_operands() -> None:
    """`min` and `max` of any number of arguments."""
    assert result(min, f32, 0, 1) == f32
    assert result(max, i32, i64) == i64
    assert result(max, u8, 3) == u8
    assert result(min, WEAK_INT, 3) == WEAK_INT
    assert "no common type" in refusal(min, i32, f32).message
    assert what(max, 3, 5) == Constant(5)


def test_rounding() -> None:
    """`round(x)` is a weak int; `round(x, n)` and NumPy's functions keep the type."""
    assert result(round, f32) == WEAK_INT
    assert what(round, f32) == RoundToInt("rint")
    assert result(round, f32, 2) == f32
    assert result(math.floor, f64) == WEAK_INT
    assert result(np.floor, f32) == f32
    assert result(np.floor, i32) == i32


def test_functions_of_weak_values() -> None:
    """NumPy's give float64, those of `math` stay weak."""
    assert result(np.sqrt, 2) == f64
    assert result(math.sqrt, WEAK_INT) == WEAK_FLOAT
    assert result(mathematics.rsqrt, WEAK_FLOAT) == WEAK_FLOAT
    assert result(np.add, 2, 3) == i64


def test_functions_of_integers_compute_as_numpy() -> None:
    """float64, or float32 where NumPy would compute in float16."""
    for scalar in [Scalar.BOOL, *INTEGERS]:
        kind = np.sqrt(np.dtype(scalar.value).type(1)).dtype
        kind = np.dtype("float32") if kind == np.float16 else kind
        assert np.dtype(result(np.sqrt, type_of(scalar)).name) == kind
        assert result(math.sqrt, type_of(scalar)) == result(np.sqrt, type_of(scalar))


def test_conversions_of_python_are_weak_and_those_of_numpy_strong() -> None:
    """`int(x)` and `float(x)` give Python numbers."""
    assert result(int, f32) == WEAK_INT
    assert result(float, i32) == WEAK_FLOAT
    assert result(bool, f32) == boolean
    assert result(sarek.int32, f32) == i32
    assert result(np.float32, WEAK_INT) == f32
    assert result(int, 2.7) == WeakInt.of(2)


def test_joins_that_are_allowed() -> None:
    """Equal, weak with strong of its kind or higher, wider ints, wider floats, tuples by item."""
    assert join(f32, f32) == f32
    assert join(WeakInt.of(0), f32) == f32
    assert join(WEAK_FLOAT, f32) == f32
    assert join(WEAK_INT, i32) == i32
    assert join(WEAK_INT, WEAK_FLOAT) == WEAK_FLOAT
    assert join(i32, i64) == i64
    assert join(u8, i32) == i32
    assert join(f32, f64) == f64
    assert join(WeakInt.of(1), WeakInt.of(2)) == WeakInt(frozenset((1, 2)))
    assert join(tuple_of((WEAK_INT, f32)), tuple_of((i32, f64))) == tuple_of((i32, f64))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (i32, f32),
        (WEAK_FLOAT, i32),
        (u64, i32),
        (boolean, i32),
        (boolean, WEAK_INT),
        (types.none, i32),
        (tuple_of((i32,)), tuple_of((i32, i32))),
    ],
)
def test_joins_that_are_refused(left: Any, right: Any) -> None:
    """Int with float, uint64 with signed, bool with number, None with a value."""
    assert join(left, right) is None
    assert join(right, left) is None


def test_a_constant_that_does_not_fit_does_not_join() -> None:
    """Whichever Python version put it on the edge of a phi."""
    with pytest.raises(Refusal) as caught:
        join(WeakInt.of(-6), u32)
    assert caught.value.error is ConstantOverflow


def test_alternatives_are_few() -> None:
    """A loop that counts is a run-time int soon, so inference ends."""
    kind: Any = WeakInt.of(0)
    for value in range(1, 20):
        kind = join(kind, WeakInt.of(value))
    assert kind == WEAK_INT


def test_division_of_weak_ints_is_true_division() -> None:
    operation = find_rule(operator.truediv)(WEAK_INT, WEAK_INT)
    assert operation.what == Binary(BinOp.DIV)
    assert operation.operands == (WEAK_FLOAT, WEAK_FLOAT)


def test_ranges_take_whole_numbers() -> None:
    """`range(1.5)` is refused with a text."""
    assert "integers" in refusal(range, 1.5).message
    assert "step" in refusal(range, 0, 5, 0).message
    assert refusal(range).error is TypingError
