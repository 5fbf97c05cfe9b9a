"""Halves on every executor: what they are read as, how they are stored, and their bits."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.verify.ulp import ulp_distance
from tests.conformance import halves
from tests.conformance.generated import kernel
from tests.conformance.halves import HALVES, assert_same_bits, patterns
from tests.executors import EMULATION, device_of, executors, run
from tests.kernels.case import Launch, poison

BLOCK = 64
EXECUTORS = executors()
SLOW = ("emulation", "shim")  # these take a part of the patterns
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def launched(executor: str, made: Any, *arguments: Any) -> None:
    count = max(len(a) for a in arguments if isinstance(a, np.ndarray))
    run(executor, made, Launch(-(-count // BLOCK), BLOCK, arguments, ()))


def some(executor: str, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """All rows; of CPython, which is slow, each 61st."""
    step = 61 if executor.startswith(EMULATION) else 1
    return tuple(np.ascontiguousarray(array[::step]) for array in arrays)


def same(actual: np.ndarray, expected: np.ndarray, what: str) -> None:
    wrong = np.flatnonzero(ulp_distance(actual, expected) > 0)
    shown = [(int(k), actual[k], expected[k]) for k in wrong[:3]]
    assert not len(wrong), f"{what}: {len(wrong)} differ, first (index, is, expected) {shown}"


@sarek.kernel
def copied(y, x, wide):
    i = sarek.global_idx.x
    if i < len(x):
        y[i] = x[i]
        wide[i] = x[i]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("half", HALVES)
def test_every_pattern_survives(half: str, executor: str) -> None:
    """Read, kept and stored again, each pattern is the same; as a float32 it is its value."""
    (x,) = some(executor, patterns(half))
    y, wide = poison(len(x), HALVES[half]), poison(len(x), np.float32)
    launched(executor, copied, y, x, wide)
    assert_same_bits(y, x, "copied")
    same(wide, x.astype(np.float32), "read")


@sarek.kernel
def through_everything(y, x, held):
    tile = sarek.shared.array(64, held.dtype)
    mine = sarek.local.array(2, held.dtype)
    i = sarek.global_idx.x
    t = sarek.thread_idx.x
    tile[t] = x[i]
    sarek.barrier()
    mine[1] = tile[63 - t]
    held[i] = mine[1]
    sarek.barrier()
    tile[63 - t] = held[i]
    sarek.barrier()
    y[i] = tile[t]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("half", HALVES)
def test_every_pattern_through_shared_and_local_memory(half: str, executor: str) -> None:
    """Shared and local arrays of halves keep each pattern."""
    x = patterns(half)
    x = x[: 1024 if executor.startswith(EMULATION) else None]
    y, held = (poison(len(x), HALVES[half]) for _ in range(2))
    launched(executor, through_everything, y, x, held)
    assert_same_bits(y, x)
    assert_same_bits(held, x.reshape(-1, 64)[:, ::-1].reshape(-1))


def _rounding(half: str) -> Any:
    constructor = {"float16": "np.float16", "bfloat16": "sarek.bfloat16"}[half]
    return kernel(
        f"rounded_to_{half}",
        ["y", "x", "wide"],
        [
            "i = sarek.global_idx.x",
            "if i < len(x):",
            "    y[i] = x[i]",
            f"    wide[i] = {constructor}(x[i])",
        ],
    )


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("half", HALVES)
def test_floats_are_rounded_once(half: str, source: str, executor: str) -> None:
    """Case 47: at and beside each point where it changes; to nearest even, overflow to infinity."""
    x, expected = some(executor, *halves.boundaries(half, source))
    y, wide = poison(len(x), HALVES[half]), poison(len(x), np.float32)
    launched(executor, _rounding(half), y, x, wide)
    assert_same_bits(y, expected, "store")
    same(wide, expected.astype(np.float32), "constructor")


@sarek.kernel(fastmath="what is stored is a half anyway")
def relaxed(y, x, wide):
    i = sarek.global_idx.x
    if i < len(x):
        y[i] = x[i]
        wide[i] = y[i]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("half", HALVES)
def test_conversions_are_exact_under_fastmath(half: str, executor: str) -> None:
    """The grant is of the user's operations: where subnormals are flushed, halves are not."""
    x, expected = some(executor, *halves.boundaries(half, "float32"))
    y, wide = poison(len(x), HALVES[half]), poison(len(x), np.float32)
    launched(executor, relaxed, y, x, wide)
    assert_same_bits(y, expected, "store")
    same(wide, expected.astype(np.float32), "read")


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("half", HALVES)
def test_integers_are_rounded_once(half: str, source: str, executor: str) -> None:
    """An integer of any width becomes the nearest half, not that of the nearest float32."""
    x, expected = some(executor, *halves.integers(half, source))
    y, wide = poison(len(x), HALVES[half]), poison(len(x), np.float32)
    launched(executor, _rounding(half), y, x, wide)
    assert_same_bits(y, expected, "store")
    same(wide, expected.astype(np.float32), "constructor")


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("half", HALVES)
def test_bools_become_halves(half: str, executor: str) -> None:
    """A bool is 0 or 1."""
    x = np.array([False, True] * 40)
    y, wide = poison(len(x), HALVES[half]), poison(len(x), np.float32)
    launched(executor, _rounding(half), y, x, wide)
    assert_same_bits(y, x.astype(HALVES[half]))
    assert np.array_equal(wide, x)


@sarek.kernel
def to_all(x, b, i8, i16, i32, i64, u8, u16, u32, u64, f64):
    i = sarek.global_idx.x
    if i < len(x):
        b[i] = x[i]
        i8[i] = x[i]
        i16[i] = x[i]
        i32[i] = x[i]
        i64[i] = x[i]
        u8[i] = x[i]
        u16[i] = x[i]
        u32[i] = x[i]
        u64[i] = x[i]
        f64[i] = x[i]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("half", HALVES)
def test_halves_become_every_type(half: str, executor: str) -> None:
    """Case 52: truncated, saturated, NaN 0, bool whether it is not zero; all patterns."""
    (x,) = some(executor, patterns(half))
    outputs = [poison(len(x), t) for t in ("bool", *INTEGERS, "float64")]
    launched(executor, to_all, x, *outputs)
    wide = x.astype(np.float64)
    same(outputs[-1], wide, "float64")
    assert np.array_equal(outputs[0], wide != 0)
    for actual, name in zip(outputs[1:-1], INTEGERS, strict=True):
        info = np.iinfo(name)
        whole = np.trunc(np.where(np.isnan(wide), 0, wide))
        high = whole > float(info.max)
        inside = np.where(np.isinf(whole) | high | (whole < float(info.min)), 0, whole)
        expected = np.where(whole < float(info.min), info.min, inside.astype(name))
        expected = np.where(whole >= 2.0 ** (info.bits - (name[0] == "i")), info.max, expected)
        assert np.array_equal(actual, expected.astype(name)), name


@sarek.kernel
def wholes(out, kept, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i, 0] = int(x[i])
        out[i, 1] = math.floor(x[i])
        out[i, 2] = math.ceil(x[i])
        out[i, 3] = math.trunc(x[i])
        out[i, 4] = round(x[i])
        kept[i, 0] = np.floor(x[i])
        kept[i, 1] = np.ceil(x[i])
        kept[i, 2] = np.trunc(x[i])
        kept[i, 3] = np.rint(x[i])


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("half", HALVES)
def test_every_rounding_to_whole_numbers(half: str, executor: str) -> None:
    """All patterns: integers saturate, NaN 0; whole numbers that stay halves are exact."""
    (x,) = some(executor, patterns(half))
    out, kept = poison((len(x), 5), np.int64), poison((len(x), 4), HALVES[half])
    launched(executor, wholes, out, kept, x)
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
        rounded = [np.trunc(wide), np.floor(wide), np.ceil(wide), np.trunc(wide), np.rint(wide)]
    limits = np.iinfo(np.int64)
    for column, whole in enumerate(rounded):
        fits = np.abs(whole) < 2.0**63
        expected = np.where(fits, whole, 0).astype(np.int64)
        expected[whole >= 2.0**63], expected[whole < -(2.0**63)] = limits.max, limits.min
        expected[whole == -(2.0**63)] = limits.min
        assert np.array_equal(out[:, column], expected), column
    for column, whole in enumerate(rounded[1:]):
        actual = np.ascontiguousarray(kept[:, column])
        assert_same_bits(actual, whole.astype(HALVES[half]), str(column))


@sarek.kernel
def bits(out, wide, x, b, given):
    i = sarek.global_idx.x
    if i < len(x):
        out[i, 0] = sarek.half_bits(x[i])
        out[i, 1] = sarek.half_bits(b[i], sarek.bfloat16)
        wide[i, 0] = sarek.half_from_bits(given[i])
        wide[i, 1] = sarek.half_from_bits(given[i], ml_dtypes.bfloat16)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_bits_are_reached(executor: str) -> None:
    """`half_bits` and `half_from_bits` are each other's inverse on all patterns but NaN's."""
    x, b = some(executor, patterns("float16"), patterns("bfloat16"))
    given = x.view(np.uint16).copy()
    out, wide = poison((len(x), 2), np.uint16), poison((len(x), 2), np.float32)
    launched(executor, bits, out, wide, x, b, given)
    assert_same_bits(np.ascontiguousarray(out[:, 0]).view(np.float16), x)
    assert_same_bits(np.ascontiguousarray(out[:, 1]).view(ml_dtypes.bfloat16), b)
    same(wide[:, 0].copy(), x.astype(np.float32), "float16")
    same(wide[:, 1].copy(), b.astype(np.float32), "bfloat16")


@sarek.kernel
def arithmetic(total, product, quotient, x, y):
    i = sarek.global_idx.x
    if i < len(x):
        total[i] = x[i] + y[i]
        product[i] = x[i] * y[i]
        quotient[i] = x[i] / y[i]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_one_operation_is_numpys(executor: str) -> None:
    """One operation and a store give NumPy's float16, bit for bit."""
    generator = np.random.default_rng(11)
    count = 1000 if executor.startswith(EMULATION) else 20000
    x, y = generator.integers(0, 1 << 16, (2, count)).astype(np.uint16).view(np.float16)
    outputs = [poison(count, np.float16) for _ in range(3)]
    launched(executor, arithmetic, *outputs, x, y)
    with np.errstate(all="ignore"):
        expected = (x + y, x * y, x / y)
    for actual, right, name in zip(outputs, expected, ("+", "*", "/"), strict=True):
        assert_same_bits(actual, right, name)


PACKED = np.dtype([("tag", np.uint8), ("h", np.float16), ("b", ml_dtypes.bfloat16, (2,))])
ALIGNED = np.dtype(
    [("h", np.float16), ("n", np.int32), ("b", ml_dtypes.bfloat16, (2,))], align=True
)


@sarek.kernel
def fields(out, given):
    i = sarek.global_idx.x
    if i < len(given):
        r = given[i].copy()
        out[i].h = given[i].h
        out[i].b[0] = given[i].b[1]
        out[i].b[1] = r.b[0]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", [PACKED, ALIGNED], ids=["packed", "aligned"])
def test_fields_keep_every_pattern(dtype: np.dtype, executor: str) -> None:
    """Fields of records, packed ones byte by byte, in copies too."""
    x, b = some(executor, patterns("float16"), patterns("bfloat16"))
    given, out = np.zeros(len(x), dtype), np.zeros(len(x), dtype)
    given["h"], given["b"][:, 0], given["b"][:, 1] = x, b, b[::-1]
    launched(executor, fields, out, given)
    assert_same_bits(out["h"].copy(), x)
    assert_same_bits(out["b"][:, 0].copy(), b[::-1].copy())
    assert_same_bits(out["b"][:, 1].copy(), b)


@sarek.kernel
def scaled(y, a, b):
    i = sarek.global_idx.x
    if i < len(y):
        y[i, 0] = a
        y[i, 1] = a * b


@pytest.mark.parametrize("executor", EXECUTORS)
def test_scalar_arguments(executor: str) -> None:
    """A half that is passed is its float32, at each launch, by a plan of earlier ones too."""
    for a in (np.float16(0.1), np.float16(-65504), np.float16(6e-8), np.float16(np.inf)) * 2:
        b = ml_dtypes.bfloat16(3.14159)
        y = poison((3, 2), np.float32)
        launched(executor, scaled, y, a, b)
        with np.errstate(all="ignore"):
            expected = [np.float32(a), np.float32(a) * np.float32(b)]
        assert np.array_equal(y, [expected] * 3)


@sarek.kernel
def stated(y: sarek.float32[:], a: sarek.float16, b: sarek.bfloat16):
    i = sarek.global_idx.x
    if i < len(y):
        y[i] = a + b


@pytest.mark.parametrize("executor", EXECUTORS)
def test_stated_scalars_round_python_numbers(executor: str) -> None:
    """A Python number that is stated to be a half is rounded, once."""
    between = 1 + 2.0**-11 + 2.0**-40  # as a float32 it is the middle of two halves
    for a, b in ((0.1, 3), (between, 1 + 2.0**-8 + 2.0**-40), (1, 0.1)) * 4:
        y = poison(3, np.float32)
        launched(executor, stated, y, a, b)
        expected = np.float32(np.float16(a)) + np.float32(sarek.bfloat16(b))
        assert np.array_equal(y, [expected] * 3)
    assert sarek.bfloat16(1 + 2.0**-8 + 2.0**-40) == 1 + 2.0**-7


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("half", HALVES)
def test_strided_views_and_columns(half: str, executor: str) -> None:
    """Views with any strides, of several axes."""
    base = patterns(half)[:4096].reshape(64, 64)
    out = np.zeros((64, 128), HALVES[half])
    views = kernel("views", ["y", "x"], [
        "i = sarek.global_idx.x",
        "if i < x.shape[0]:",
        "    row = x[i]",
        "    for j in range(row.size):",
        "        y[i, j] = row[-1 - j]",
    ])  # fmt: skip
    run(executor, views, Launch(1, 64, (out[::-1, ::2], base.T), ()))
    assert_same_bits(out[::-1, ::2].copy(), base.T[:, ::-1].copy())
    assert not out[:, 1::2].astype(np.float32).any()


@pytest.mark.parametrize("executor", [e for e in EXECUTORS if e != EMULATION])
def test_vectors(executor: str) -> None:
    """Vectors of halves, written by a launch and read on the host."""
    if executor.startswith("shim:"):
        pytest.skip("vectors are of devices")
    for half in HALVES:
        x = sarek.vector(patterns(half))
        y, wide = sarek.zeros(1 << 16, HALVES[half]), sarek.zeros(1 << 16, np.float32)
        with sarek.use_device(device_of(executor)):
            for _ in range(4):
                copied[1024, 64](y, x, wide)
        assert_same_bits(np.asarray(y), patterns(half))
        same(np.asarray(wide), patterns(half).astype(np.float32), half)
