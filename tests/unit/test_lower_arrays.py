"""Arrays, device functions and numbers through lowering: the oracle does what CPython does."""

# ruff: noqa: F841, SIM108 # kernels name things as users do

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba.frontend.language as sarek
from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend.functions import function
from sarek_numba.frontend.weak import WEAK_FLOAT, WEAK_INT
from tests.unit.lower_kit import (
    FLOAT32,
    FLOAT32_2D,
    FLOAT64,
    INT32,
    check,
    kernel_of,
    run,
    text_of,
)

TABLE = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int32)


def ramp(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def slices_of_one_axis(x, out, i, j):
    n = 0
    out[0] = len(x[i:j])
    out[1] = x[::-1][i]
    out[2] = x[-3:][0]
    out[3] = len(x[i::2])
    out[4] = len(x[j:i:-1])
    out[5] = len(x[:j:-2])
    out[6] = len(x[5:2])
    out[7] = x[1:7][1:][::2][1]


@pytest.mark.parametrize("bounds", [(0, 8), (2, 5), (5, 2), (-3, -1), (-20, 20), (3, -9)])
def test_slices_of_one_axis(bounds):
    """Bounds of a slice count from the end and are clamped, in both directions."""
    start = bounds[0] if -8 <= bounds[0] < 8 else 0
    check(slices_of_one_axis, ramp(8), np.zeros(8, np.float32), start, bounds[1])

    def lengths(x, out, i, j):
        out[0] = len(x[i:j])
        out[1] = len(x[i::2])
        out[2] = len(x[j:i:-1])
        out[3] = len(x[:j:-2])
        out[4] = len(x[i:j:3])

    check(lengths, ramp(8), np.zeros(8, np.float32), *bounds)


@pytest.mark.parametrize("step", [-3, -1, 1, 2])
def test_step_known_at_run_time_only(step):
    """The sign of a step may be known to the launch alone."""

    def kernel(x, out, step):
        view = x[::step]
        out[0] = len(view)
        out[1] = view[1]

    check(kernel, ramp(8), np.zeros(2, np.float32), step)


def views_of_two_axes(a, i):
    row = a[i]
    row[0] = row[-1] + 100
    column = a[:, 1]
    column[0] += row[1]
    block = a[1:, ::-1]
    block[0, 0] = block[1, 2] * 2
    part = block[1]
    part[1:3][0] = 7
    a[-1, -1] = a.shape[0] * 10 + row.size


@pytest.mark.parametrize("order", ["C", "F", "strided", "reversed"])
def test_views_of_any_layout(order):
    """Views compose, whatever the strides of the argument."""
    base = ramp(4, 4)
    argument = {
        "C": base,
        "F": np.asfortranarray(base),
        "strided": ramp(8, 8)[1::2, ::2],
        "reversed": base[::-1, ::-1],
    }[order]
    check(views_of_two_axes, argument, 2)


def test_view_made_anew_in_a_loop():
    """A name may stand for another view in each pass."""

    def kernel(a, n):
        for i in range(n):
            row = a[i]
            for j in range(row.size):
                row[j] = row[j] + i
            row = row[::-1]
            row[0] = -1

    check(kernel, ramp(3, 3), 3)


def test_array_that_flow_decides():
    """One array or another is refused, naming the variable."""

    def kernel(a, b, i):
        if i > 0:
            row = a
        else:
            row = b
        row[1] = 5

    with pytest.raises(Exception, match="row"):
        kernel_of(kernel, FLOAT32, FLOAT32, WEAK_INT)


def test_constant_array():
    """A captured array is a constant of the kernel."""

    def kernel(x, i):
        table = sarek.const.array_like(TABLE)
        x[0] = table[1, i]
        x[1] = table.shape[1]

    check(kernel, np.zeros(2, np.int32), 2)


def test_local_and_shared_arrays():
    """Arrays of a thread and of a block."""

    def kernel(x):
        t = sarek.thread_idx.x
        own = sarek.local.array(3, np.float32)
        tile = sarek.shared.array((2, 4), np.float32)
        for i in range(3):
            own[i] = x[t] + i
        tile[t // 4, t % 4] = own[2] - own[0]
        sarek.barrier()
        x[t] = tile[1 - t // 4, 3 - t % 4] + own[1]

    check(kernel, ramp(8), block=8)


def test_dynamic_shared_array():
    """The region sized at launch; its length is known there alone."""

    def kernel(x):
        t = sarek.thread_idx.x
        s = sarek.shared.array(0, np.float32)
        s[t] = x[t]
        sarek.barrier()
        x[t] = s[len(s) - 1 - t]

    x = ramp(4)
    assert run(kernel, x, block=4, shared_bytes=16) == []
    assert list(x) == [3, 2, 1, 0]


# --- device functions -----------------------------------------------------------------------------


@function
def clamped(value, low=0.0, high=1.0):
    if value < low:
        return low
    return min(value, high)


@function
def total(row):
    result = 0.0
    for i in range(row.size):
        result += row[i]
    return result


@function
def sum_and_count(row, start):
    count = 0
    result = total(row)
    for i in range(start, row.size):
        if row[i] > 1.0:
            count += 1
    return result, (count, start + 1)


@function
def reversed_in_block(x, t):
    s = sarek.shared.array(4, np.float32)
    s[t] = x[t]
    sarek.barrier()
    result = s[3 - t]
    sarek.barrier()
    return result


def calls(a, out):
    out[0] = clamped(a[0, 1] - 0.25) + clamped(a[1, 1], high=3.0)
    value, (count, following) = sum_and_count(a[1], 0)
    out[1] = value
    out[2] = count * 10 + following
    out[3] = total(a[:, 0]) - total(a[0, ::-1])


def test_device_functions():
    """Defaults, keywords, views as arguments, nested tuples as results, calls in calls."""
    check(calls, ramp(3, 3), np.zeros(4, np.float32))


def test_shared_array_of_a_device_function():
    """A shared array in a device function is declared by the kernel."""

    def kernel(x):
        t = sarek.thread_idx.x
        x[t] = reversed_in_block(x, t) + reversed_in_block(x, t)

    check(kernel, ramp(4), block=4)
    kernel_text = text_of(kernel, FLOAT32)
    assert kernel_text.count("  shared s") == 1


def test_helpers_have_unique_names():
    """One function for two kinds of arguments is two helpers."""

    def kernel(a, x, out):
        out[0] = total(a[0]) + total(x)

    names = [helper.name for helper in kernel_of(kernel, FLOAT32_2D, FLOAT32, FLOAT32).functions]
    assert len(names) == len(set(names)) == 2


# --- atomics --------------------------------------------------------------------------------------


def test_atomics_give_the_old_value():
    """Every thread gets its own slot (case 121)."""

    def kernel(x, counter):
        slot = sarek.atomic.add(counter, 0, 1)
        x[slot] = slot
        sarek.atomic.max(counter, 1, np.int32(slot))
        if sarek.atomic.cas(counter, 2, 0, 7) == 0:
            counter[3] = 1

    check(kernel, np.zeros(8, np.int32), np.zeros(4, np.int32), block=4, grid=2)
    assert "let slot: i32 = atomic add" in text_of(kernel, INT32, INT32)


# --- numbers --------------------------------------------------------------------------------------


def test_mixed_integers_compare_as_mathematical_values():
    """int64 with uint64 has no common type; the comparison is exact all the same."""

    def kernel(s, u, out):
        for i in range(s.size):
            for j in range(u.size):
                bits = 0
                if s[i] < u[j]:
                    bits |= 1
                if s[i] <= u[j]:
                    bits |= 2
                if s[i] == u[j]:
                    bits |= 4
                if u[j] < s[i]:
                    bits |= 8
                if s[i] != u[j]:
                    bits |= 16
                if s[i] >= u[j]:
                    bits |= 32
                out[i, j] = bits

    signed = np.array([-(2**63), -1, 0, 5, 2**63 - 1], dtype=np.int64)
    unsigned = np.array([0, 5, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    _, _, out = check(kernel, signed, unsigned, np.zeros((5, 5), np.int32))
    for i, a in enumerate(signed.tolist()):
        for j, b in enumerate(unsigned.tolist()):
            assert bool(out[i, j] & 1) == (a < b)
            assert bool(out[i, j] & 4) == (a == b)


def test_constants_meet_their_operand():
    """A weak constant takes the type of the operand it meets: no casts."""

    def kernel(x, i):
        x[i] = x[i] * 2.0 + 1

    assert text_of(kernel, FLOAT32, WEAK_INT) == (
        "  x[wrap(x, 0, i, i64(x_length))] = x[wrap(x, 0, i, i64(x_length))] * 2.0f32 + 1.0f32"
    )


def test_weak_float_argument_is_narrow_where_all_uses_are():
    """A Python float is a float32 parameter only where it meets nothing but float32."""

    def narrow(a, x):
        x[0] = a * x[1]

    def wide(a, x, y):
        x[0] = a * x[1]
        y[0] = a * y[1]

    assert kernel_of(narrow, WEAK_FLOAT, FLOAT32).params[0].var.type.value == "float32"
    assert kernel_of(wide, WEAK_FLOAT, FLOAT32, FLOAT64).params[0].var.type.value == "float64"


def test_python_int_as_int32():
    """The launch may say that a Python int travels as int32; it computes as int64."""

    def kernel(x, n):
        x[0] = n + 1

    shown = text_of(kernel, INT32, WEAK_INT, int32_arguments=frozenset((1,)))
    assert shown == "  x[at(x, 0, 0, i64(x_length))] = i32.w(i64(n) +.w 1)"


def powers(x, k):
    x[0] = x[1] ** 2
    x[1] = x[2] ** 1
    x[2] = x[3] ** 0
    x[3] = k**3 + (k + 1) ** 2
    x[4], x[5] = divmod(x[6], 3)
    x[6] = abs(-x[7]) + min(k, 3, x[7])
    x[7] = x[5] if k in (1, 3, 7) else 9


def test_powers_and_builtins():
    """Constant exponents are exact; divmod is a pair; `in` compares."""
    for k in (2, 3):
        check(powers, np.arange(3, 11, dtype=np.int32), k)


def test_rounding():
    """`round` to a Python int, and to digits."""

    def kernel(x, k):
        k[0] = round(x[0])
        k[1] = int(x[1] * 2.0)
        x[2] = round(x[3], 1)

    check(kernel, np.array([2.5, -1.75, 0, 1.26], np.float32), np.zeros(2, np.int32))


def test_unsupported_store_is_named():
    """A store into a slice is refused."""

    def kernel(x):
        x[1:3] = 0.0

    with pytest.raises((UnsupportedConstruct, TypeError)):
        kernel_of(kernel, FLOAT32)
