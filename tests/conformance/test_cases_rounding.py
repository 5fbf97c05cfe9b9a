"""Cases from the field about NaN, rounding, casts and accuracy (section C), on every executor."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.cases import launch, same
from tests.conformance.generated import kernel
from tests.executors import executors
from tests.kernels.case import poison

pytestmark = [
    pytest.mark.parametrize("executor", executors()),
    pytest.mark.filterwarnings("ignore::sarek_numba.errors.CompileWarning"),
]


@sarek.kernel
def extremes(out, a, b):
    i = sarek.global_idx.x
    if i < len(a):
        out[i, 0] = min(a[i], b[i])
        out[i, 1] = max(a[i], b[i])
        out[i, 2] = np.minimum(a[i], b[i])
        out[i, 3] = np.maximum(a[i], b[i])
        out[i, 4] = np.fmin(a[i], b[i])
        out[i, 5] = np.fmax(a[i], b[i])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_case_31_extremes(dtype, executor):
    """min and max are Python's, np.minimum and np.fmin NumPy's, on NaN and on signed zeros."""
    values = np.array([1, np.nan, 0.0, -0.0, np.inf], dtype)
    a, b = np.repeat(values, 5), np.tile(values, 5)
    out = poison((25, 6), dtype)
    launch(executor, extremes, out, a, b)
    expected = [
        np.where(b < a, b, a),
        np.where(b > a, b, a),
        np.where((a <= b) | np.isnan(a), a, b),
        np.where((a >= b) | np.isnan(a), a, b),
        np.where((a <= b) | np.isnan(b), a, b),
        np.where((a >= b) | np.isnan(b), a, b),
    ]
    assert same(out, np.stack(expected, 1))


@sarek.kernel
def reduced(out, x):
    i = sarek.global_idx.x
    if i < x.shape[0]:
        low = x[i, 0]
        high = x[i, 0]
        first = 0
        total = x[i, 0]
        for j in range(1, x.shape[1]):
            low = min(low, x[i, j])
            high = np.maximum(high, x[i, j])
            if x[i, j] > x[i, first]:
                first = j
            total += x[i, j]
        out[i, 0] = low
        out[i, 1] = high
        out[i, 2] = first
        out[i, 3] = total


def test_case_32_reductions(executor):
    """A NaN first, in the middle and last is treated by a loop as by CPython."""
    nan = np.nan
    x = np.array([[nan, 6, 8], [6, nan, 8], [6, 8, nan], [8, 6, 7]], np.float32)
    out = poison((4, 4), np.float32)
    launch(executor, reduced, out, x)
    assert same(out, [[nan, nan, 0, nan], [6, nan, 2, nan], [6, nan, 1, nan], [6, 8, 0, 21]])


@sarek.kernel
def truncated(out32, out8, outu, x):
    i = sarek.global_idx.x
    if i < len(x):
        out32[i] = np.int32(x[i])
        out8[i] = np.int8(x[i])
        outu[i] = np.uint64(x[i])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_case_34_range(dtype, executor):
    """A float out of range saturates, and NaN gives 0."""
    x = np.array([np.inf, -np.inf, np.nan, 2.0**31, -(2.0**31), 127.9, -128.9, 2.0**64, -1], dtype)
    out32, out8, outu = poison(9, np.int32), poison(9, np.int8), poison(9, np.uint64)
    launch(executor, truncated, out32, out8, outu, x)
    top, low = 2**31 - 1, -(2**31)
    assert out32.tolist() == [top, low, 0, top, low, 127, -128, top, -1]
    assert out8.tolist() == [127, -128, 0, 127, -128, 127, -128, 127, -1]
    assert outu.tolist() == [2**64 - 1, 0, 0, 2**31, 0, 127, 0, 2**64 - 1, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_case_35_digits(dtype, executor):
    """round(x, n) is np.round at x's type, for few and for absurdly many digits."""
    digits = range(-5, 31)
    body = ["i = sarek.global_idx.x", "if i < len(x):"]
    body += [f"    out[i, {k}] = round(x[i], {n})" for k, n in enumerate(digits)]
    x = np.array(
        [2e-5, 0.5, 1.5, 2.5, -2.675, 12345.678, 1e20, -0.0, np.inf, np.nan, 99999.5], dtype
    )
    out = poison((len(x), len(digits)), dtype)
    launch(executor, kernel(f"round_{dtype}", ["out", "x"], body), out, x)
    with np.errstate(all="ignore"):
        assert same(out, np.stack([np.round(x, n) for n in digits], 1))


@sarek.function
def steps(x):
    count = 0
    for j in range(int(x)):
        count += j + 1
    return count


@sarek.kernel
def stepped(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i] = steps(x[i])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_case_37_range(dtype, executor):
    """range(int(x)) has exactly int(x) steps."""
    x = np.array([1.0, 2.0, 3.0, 4.0, 2.999999, 0.999, -1.5], dtype)
    out = poison(7, np.int32)
    launch(executor, stepped, out, x)
    assert out.tolist() == [sum(range(1, int(v) + 1)) for v in x.tolist()]


@sarek.kernel
def divided(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i, 0] = x[i] / 3.5
        out[i, 1] = x[i] / 3
        out[i, 2] = x[i] / 10
        out[i, 3] = x[i] / 0.1
        out[i, 4] = 1 / x[i]
        out[i, 5] = math.sqrt(x[i])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_case_38_40_division(dtype, executor):
    """Division by constants, reciprocals and square roots are correctly rounded."""
    rng = np.random.default_rng(38)
    x = np.exp(rng.normal(size=256) * 20).astype(dtype)
    out = poison((256, 6), dtype)
    launch(executor, divided, out, x, threads=256)
    divisors = map(np.dtype(dtype).type, (3.5, 3, 10, 0.1))
    expected = [*(x / d for d in divisors), 1 / x, np.sqrt(x)]
    assert same(out, np.stack(expected, 1))
