"""Cases from the field about arrays, indices and strides (section G), on every executor.

Cases 95, 100 and 109 are in `test_arrays`.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import sarek_numba as sarek
from tests.executors import EMULATION, executors, run
from tests.kernels.case import Launch, poison

pytestmark = pytest.mark.parametrize("executor", executors())


@sarek.kernel
def sliced(out, a):
    if sarek.global_idx.x == 0:
        for j in range(5):
            out[0, j] = a[::-1][j]
        for j in range(3):
            out[1, j] = a[::-2][j]
            out[2, j] = a[-3:][j]
        out[3, 0] = a[-3:3][0]
        out[4, 0] = len(a[5:2])
        out[4, 1] = len(a[::-2])
        out[4, 2] = len(a[-3:3])
        out[4, 3] = len(a[3:0:-1])
        out[4, 4] = a[3:0:-1][2]


def test_case_92_slices(executor):
    """Negative steps and bounds of slices are Python's."""
    a = np.array([10, 20, 30, 40, 50], np.int32)
    out = np.zeros((5, 5), np.int32)
    run(executor, sliced, Launch(1, 1, (out, a), ()))
    assert out[0].tolist() == a[::-1].tolist()
    assert out[1, :3].tolist() == a[::-2].tolist()
    assert out[2, :3].tolist() == a[-3:].tolist()
    assert out[3, 0] == a[-3:3][0]
    assert out[4].tolist() == [0, 3, 1, 3, 20]


@sarek.kernel
def zero_step(out, a):
    out[0] = a[::0][0]


def test_case_92_step(executor):
    """A step of zero is an error."""
    with pytest.raises((sarek.CompileError, ValueError), match="step"):
        run(executor, zero_step, Launch(1, 1, (np.zeros(1), np.zeros(3)), ()))


@sarek.kernel
def run_time_slices(out, a, start, stop, step):
    part = a[start:stop:step]
    i = sarek.global_idx.x
    if i == 0:
        out[0] = len(part)
        total = 0
        for j in range(len(part)):
            total += int(part[j]) * (j + 1)
        out[1] = total


def test_case_92_bounds(executor):
    """Bounds and steps known at run time, in and out of range."""
    a = np.arange(1, 8, dtype=np.int64)
    for start in (-9, -3, 0, 2, 7, 11):
        for stop in (-8, -1, 3, 7, 20):
            for step in (1, 2, -1, -3):
                out = poison(2, np.int64)
                run(executor, run_time_slices, Launch(1, 1, (out, a, start, stop, step), ()))
                part = a[start:stop:step]
                total = int((part * np.arange(1, len(part) + 1)).sum())
                assert out.tolist() == [len(part), total], (start, stop, step)


@sarek.kernel
def weighted(out, a, b, c):
    i, j = sarek.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = a[i, j] * 100 + b[i, j] * 10 + c[i, j]


def test_case_94_orders(executor):
    """Operands of different memory orders are combined by index."""
    base = np.arange(35, dtype=np.float32).reshape(5, 7)
    orders = {
        "c": np.ascontiguousarray(base),
        "fortran": np.asfortranarray(base),
        "strided": np.repeat(np.repeat(base, 2, 0), 3, 1)[::2, ::3],
        "transposed": base.T.copy().T,
        "broadcast": np.broadcast_to(base[1], (5, 7)),
    }
    names = list(orders)
    for k in range(len(names)):
        a, b, c = (orders[names[(k + step) % len(names)]] for step in (0, 1, 3))
        for order in "CF":
            out = np.full((5, 7), np.nan, np.float32, order=order)
            run(executor, weighted, Launch((2, 2), (4, 4), (out, a, b, c), ()))
            assert np.array_equal(out, a * 100 + b * 10 + c), (names[k], order)


@sarek.kernel
def summed(out, a):
    i = sarek.global_idx.x
    if i < len(out):
        out[i, 0] = len(a)
        total = 0.0
        for row in range(a.shape[0]):
            for column in range(a.shape[1]):
                total += a[row, column]
        out[i, 1] = total
        nothing = a[1:1]
        out[i, 2] = len(nothing) + nothing.size


def test_case_97_empty(executor):
    """Arrays without elements have their shapes; sums over them are zero."""
    for shape in ((0, 5), (5, 0), (0, 0)):
        out = poison((3, 3), np.float64)
        run(executor, summed, Launch(1, 4, (out, np.zeros(shape)), ()))
        assert out.tolist() == [[shape[0], 0, 0]] * 3
    nothing = np.zeros((0, 3))
    run(executor, summed, Launch(1, 4, (nothing, np.ones((2, 2))), ()))


@sarek.kernel
def copied(target, source):
    i = sarek.global_idx.x
    if i < len(target):
        target[i] = source[i]


@sarek.kernel
def copied_by_slices(target, source):
    to = target[3:20:4]
    given = source[1:11:2]
    i = sarek.global_idx.x
    if i < len(to):
        to[i] = given[i]


def test_case_98_offsets(executor):
    """A copy between strided parts writes those elements alone."""
    source = np.arange(100, 120, dtype=np.int16)
    expected = np.full(24, -1, np.int16)
    expected[3:20:4] = source[1:11:2]
    outside, inside = np.full(24, -1, np.int16), np.full(24, -1, np.int16)
    run(executor, copied, Launch(1, 8, (outside[3:20:4], source[1:11:2]), ()))
    run(executor, copied_by_slices, Launch(1, 8, (inside, source), ()))
    assert outside.tolist() == inside.tolist() == expected.tolist()


@sarek.kernel
def incremented(b):
    i = sarek.global_idx.x
    if i < len(b):
        b[i] += 1


def test_case_101_broadcast(executor):
    """Writing to a broadcast array is refused, read-only or not, and nothing changes."""
    one = np.ones(1, np.float32)
    with pytest.raises(ValueError, match="read-only"):
        run(executor, incremented, Launch(1, 8, (np.broadcast_to(one, 8),), ()))
    if executor != EMULATION:  # which runs thread after thread, as NumPy would
        with pytest.raises(ValueError, match="'b'"):
            run(executor, incremented, Launch(1, 8, (as_strided(one, (8,), (0,)),), ()))
    assert one.tolist() == [1]


@sarek.kernel
def far_offsets(out, index, stride, rows):
    i = sarek.global_idx.x
    if i < len(index):
        out[i, 0] = int(index[i]) * stride
        out[i, 1] = int(index[i]) * 7864320
        out[i, 2] = (i + 319) * stride
        out[i, 3] = rows * stride
        out[i, 4] = np.int64(index[i]) * 7864320


def test_case_106_offsets(executor):
    """Products of Python ints do not wrap at 2^31, whatever their factors came from."""
    index = np.array([319, 1, 2**31 - 1], np.int32)
    out = poison((3, 5), np.int64)
    run(executor, far_offsets, Launch(1, 4, (out, index, 7864320, 65536), ()))
    assert out.tolist() == [
        [v * 7864320, v * 7864320, (i + 319) * 7864320, 65536 * 7864320, v * 7864320]
        for i, v in enumerate(index.tolist())
    ]


@sarek.kernel
def space(out, n, m):
    i = sarek.global_idx.x
    if i < 3:
        row = i + 65535
        out[i, 0] = n * m
        out[i, 1] = row * m + (m - 1)
        out[i, 2] = (row * m + (m - 1)) // m
        out[i, 3] = sarek.block_dim.x * 65536 * n


def test_case_107_space(executor):
    """The size of a space of indices, and an index into it, may exceed 2^31."""
    out = poison((3, 4), np.int64)
    run(executor, space, Launch(1, 4, (out, 65536, 65537), ()))
    m = 65537
    assert out.tolist() == [
        [65536 * m, (i + 65535) * m + m - 1, i + 65535, 4 * 2**32] for i in range(3)
    ]
