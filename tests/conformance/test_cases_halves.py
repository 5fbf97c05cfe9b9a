"""Cases 43 to 53 from the field: faults of halves in other kernel compilers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.everywhere import everywhere
from tests.executors import EMULATION, run
from tests.kernels.case import Launch, poison

HALVES = [np.float16, ml_dtypes.bfloat16]
halves = pytest.mark.parametrize("half", HALVES, ids=["float16", "bfloat16"])
F32 = np.float32


@sarek.kernel
def spread(single, whole, double, x):
    i = sarek.global_idx.x
    if i < len(x):
        single[i] = x[i]
        whole[i] = x[i]
        double[i] = x[i]


@everywhere
@halves
def test_case_43_values_not_bits(executor, half):
    """Ones become 1, not 15360, in float32, int32 and float64."""
    x = np.array([1, 1, -2, 0.5], half)
    outputs = poison(4, F32), poison(4, np.int32), poison(4, np.float64)
    run(executor, spread, Launch(1, 32, (*outputs, x), ()))
    assert outputs[0].tolist() == outputs[2].tolist() == [1, 1, -2, 0.5]
    assert outputs[1].tolist() == [1, 1, -2, 0]


@sarek.kernel
def compared(out, h, x, n):
    i = sarek.global_idx.x
    if i < len(h):
        out[i, 0] = h[i] < x[i]
        out[i, 1] = h[i] == x[i]
        out[i, 2] = h[i] < n[i]
        out[i, 3] = h[i] + x[i] == x[i]
        out[i, 4] = h[i] * n[i] > 0
        out[i, 5] = x[i] <= h[i]


@everywhere
@halves
def test_case_44_comparisons_are_of_the_wider_type(executor, half):
    """A half beside a float32 or an integer is widened; nothing else becomes a half."""
    h = np.array([1, 1, 2048, 60000, -1], half)
    x = np.array([1 + 2.0**-20, 1, 2049, 60001, -1 - 2.0**-20], F32)
    n = np.array([2, 1, 2049, 2**24 + 1, -2], np.int32)
    out = poison((5, 6), bool)
    run(executor, compared, Launch(1, 32, (out, h, x, n), ()))
    wide, exact = h.astype(F32), h.astype(np.float64)
    expected = [wide < x, wide == x, exact < n, wide + x == x, exact * n > 0, x <= wide]
    assert out.tolist() == np.stack(expected, axis=1).tolist()


@sarek.kernel
def multiplied(out, x, y):
    i = sarek.global_idx.x
    if i < len(x):
        out[i] = x[i] * y[i]


@everywhere
def test_case_46_products_are_rounded(executor):
    """2^16 random products of bfloat16, against integers that are exact: to nearest even."""
    generator = np.random.default_rng(46)
    count = 1 << (10 if executor.startswith(EMULATION) else 16)
    a, b = generator.integers(128, 256, (2, count))
    x, y = (np.ldexp(v, generator.integers(-20, 20, count)) for v in (a, b))
    out = poison(count, ml_dtypes.bfloat16)
    given = [v.astype(ml_dtypes.bfloat16) for v in (x, y)]
    run(executor, multiplied, Launch(-(-count // 64), 64, (out, *given), ()))
    product = a * b  # of 15 or 16 bits, of which 8 are kept
    shift = np.where(product >= 1 << 15, 8, 7)
    kept, rest, middle = product >> shift, product & ((1 << shift) - 1), 1 << (shift - 1)
    kept += (rest > middle) | ((rest == middle) & (kept & 1 == 1))
    expected = (x / a) * (y / b) * np.ldexp(kept.astype(np.float64), shift)
    assert np.array_equal(out.astype(np.float64), expected)


@sarek.kernel
def stored(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i] = x[i]


@everywhere
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_case_47_ties(executor, source):
    """Ties go to even, 65520 to infinity, and half of the least half to zero."""
    pairs = [
        (1 + 2.0**-11, 1), (1 + 3 * 2.0**-11, 1 + 2.0**-9), (1 + 2.0**-11 + 2.0**-23, 1 + 2.0**-10),
        (65519.99, 65504), (65520, np.inf), (65504, 65504), (1e30, np.inf),
        (2.0**-25, 0), (2.0**-25 + 2.0**-45, 2.0**-24), (3 * 2.0**-26, 2.0**-24),
        (3 * 2.0**-25, 2.0**-23), (2.0**-14 - 2.0**-25, 2.0**-14), (2.0**-26, 0),
    ]  # fmt: skip
    x = np.array([sign * a for a, _ in pairs for sign in (1, -1)], source)
    expected = np.array([sign * float(b) for _, b in pairs for sign in (1, -1)])
    out = poison(len(x), np.float16)
    run(executor, stored, Launch(1, 32, (out, x), ()))
    assert out.tolist() == expected.tolist()
    assert np.array_equal(np.signbit(out), np.signbit(expected))


@everywhere
def test_case_49_subnormal_numbers(executor):
    """Subnormal halves and float32 are neither flushed nor lost on the way."""
    h = np.array([2.0**-24, 3 * 2.0**-24, 1023 * 2.0**-24, 2.0**-14, -(2.0**-24)], np.float16)
    out, back = poison(5, F32), poison(5, np.float16)
    run(executor, stored, Launch(1, 32, (out, h), ()))
    assert out.tolist() == h.astype(np.float64).tolist()
    run(executor, stored, Launch(1, 32, (back, out), ()))
    assert back.tolist() == h.tolist()
    small = np.ldexp(1.0, np.arange(-149, -125)).astype(F32)
    wide, kept = poison(len(small), ml_dtypes.bfloat16), poison(len(small), np.float16)
    run(executor, stored, Launch(1, 32, (wide, small), ()))
    expected = np.where(np.arange(-149, -125) >= -133, small, 0)
    expected[np.arange(-149, -125) == -134] = 0  # half of the least bfloat16, to even
    assert wide.astype(F32).tolist() == expected.tolist()
    run(executor, stored, Launch(1, 32, (kept, small), ()))
    assert not kept.any()


@sarek.kernel
def everywhere_at_once(out, x, chosen):
    tile = sarek.shared.array(32, x.dtype)
    mine = sarek.local.array(2, x.dtype)
    t = sarek.thread_idx.x
    tile[t] = x[t]
    sarek.barrier()
    mine[0] = 0.1
    mine[1] = tile[31 - t]
    value = mine[0]
    if t > 3:
        value = mine[1]
    for k in range(3):
        value = value * 2 if k < t else tile[k]
    picked = tile[t] if chosen[t] else mine[1]
    out[t, 0] = value
    out[t, 1] = picked
    out[t, 2] = np.where(chosen[t], tile[t], mine[0])


@everywhere
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.uint8, np.int8])
def test_case_50_constants_joins_choices(executor, dtype):
    """Constants, values joined by branches and loops, conditional expressions, in all memories."""
    generator = np.random.default_rng(50)
    x = generator.integers(0, 20, 32).astype(dtype)
    chosen = generator.integers(0, 2, 32).astype(bool)
    out = poison((32, 3), F32)
    run(executor, everywhere_at_once, Launch(1, 32, (out, x, chosen), ()))
    wide = x.astype(F32) if np.dtype(dtype).kind not in "iu" else x
    constant = np.array([0.1]).astype(dtype).astype(wide.dtype)[0]
    for t in range(32):
        value = wide[31 - t] if t > 3 else constant
        for k in range(3):
            value = value * wide.dtype.type(2) if k < t else wide[k]
        picked = wide[t] if chosen[t] else wide[31 - t]
        where = wide[t] if chosen[t] else constant
        assert out[t].tolist() == [value, picked, where]


@sarek.kernel
def to_bytes(out, signed, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i] = np.uint8(x[i])
        signed[i] = np.int8(x[i])


@everywhere
@halves
def test_case_52_bytes(executor, half):
    """A half becomes an 8-bit integer: truncated, saturated, NaN 0."""
    x = np.array([0.9, -0.9, 1.5, 127.5, 200, 255.9, 300, -1, -128.5, -200, np.nan, np.inf], half)
    out, signed = poison(len(x), np.uint8), poison(len(x), np.int8)
    run(executor, to_bytes, Launch(1, 32, (out, signed, x), ()))
    whole = [0 if v != v else v for v in x.astype(float)]
    assert out.tolist() == [int(min(max(v, 0), 255)) for v in whole]
    assert signed.tolist() == [int(min(max(v, -128), 127)) for v in whole]


@sarek.kernel
def at_once(out, x, y):
    i = sarek.global_idx.x
    if i < len(x):
        out[i] = sarek.bfloat16(x[i] * y[i]) + x[i]


@sarek.kernel
def first(middle, x, y):
    i = sarek.global_idx.x
    if i < len(x):
        middle[i] = x[i] * y[i]


@sarek.kernel
def second(out, middle, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i] = middle[i] + x[i]


@everywhere
def test_case_53_one_kernel_or_two(executor):
    """The same expression by a kernel, and by two with the middle in memory."""
    generator = np.random.default_rng(53)
    x, y = (generator.standard_normal(500).astype(F32) for _ in range(2))
    out, other = poison(500, ml_dtypes.bfloat16), poison(500, ml_dtypes.bfloat16)
    middle = poison(500, ml_dtypes.bfloat16)
    run(executor, at_once, Launch(8, 64, (out, x, y), ()))
    run(executor, first, Launch(8, 64, (middle, x, y), ()))
    run(executor, second, Launch(8, 64, (other, middle, x), ()))
    assert out.view(np.uint16).tolist() == other.view(np.uint16).tolist()
