"""Cases from the field about arrays, indices and strides (section G), on every executor.

Cases 95, 100 and 109 are in `test_arrays`.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import sarek_numba as sarek
from tests.executors import EMULATION, device_of, executors, run
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
def step_of_an_argument(out, a, step):
    out[0] = len(a[::step])


@sarek.kernel(debug=True)
def checked_step_of_an_argument(out, a, step):
    out[0] = len(a[::step])


def test_case_92_step_at_run_time(executor):
    """A step that is zero at run time: the oracle reports it, as CPython does, on the line;
    so does a device with debug=True, and without it the slice is empty there.
    """
    a, out = np.zeros(3, np.int32), np.full(1, 7, np.int32)
    run(executor, step_of_an_argument, Launch(1, 1, (out, a, -2), ()))
    assert out[0] == 2
    launch = Launch(1, 1, (out, a, 0), ())
    if executor == EMULATION:
        with pytest.raises(ValueError, match="step cannot be zero"):
            run(executor, step_of_an_argument, launch)
        return
    with pytest.raises(sarek.AssertionFailed, match="the step of a slice is zero"):
        run(executor, checked_step_of_an_argument, launch)
    if executor == "interpreter":
        with pytest.raises(sarek.AssertionFailed, match=rf"{__file__}:\d+:\d+: .*: the step of"):
            run(executor, step_of_an_argument, launch)
    else:
        run(executor, step_of_an_argument, launch)
        assert out[0] == 0


@sarek.kernel
def views_in_two_axes(out, a, b):
    i, j = sarek.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        part = a[::-1, 4:0:-2]
        out[i, j] = part[i, j] * 100 + a[-1:-4:-1][i, j] + b[-1 - i, -2 - j]


def test_case_92_views(executor):
    """Views that the host made, sliced again in the kernel, in two axes."""
    base = np.arange(60, dtype=np.int32).reshape(6, 10)
    for a in (base[1:4, :5], base[::-2, ::-2], base[-3:, -5:], base.T[5:2:-1, -2::-1][:, :5]):
        b = base[-3:][::-1, 2:]
        out = poison((3, 2), np.int32)
        run(executor, views_in_two_axes, Launch(1, (4, 4), (out, a, b), ()))
        expected = a[::-1, 4:0:-2] * 100 + a[-1:-4:-1][:, :2] + b[::-1, -2:-4:-1]
        assert out.tolist() == expected.tolist()


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
def rows_and_columns(out, a):
    i, j = sarek.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        out[i, j] = a[i, j] + a[i, :][j] * 10 + a[:, j][i] * 100
        a[i, j] = -1 - a[i, j]


def test_case_95_size_one(executor):
    """The stride of an axis of size one is never used, whatever it is."""
    for shape in ((1, 6), (6, 1), (1, 1)):
        for junk in (0, 4, -4, 3, 12344, -(2**40), 2**62):
            memory = np.arange(8, dtype=np.int32)
            strides = tuple(junk if n == 1 else 4 for n in shape)
            a = as_strided(memory[1:], shape, strides)
            values, out = a.astype(np.int64), poison(shape, np.int64)
            run(executor, rows_and_columns, Launch((1, 1), (8, 8), (out, a), ()))
            assert out.tolist() == (values * 111).tolist()
            written = memory[1 : 1 + a.size].tolist()
            assert written == (-1 - values).ravel().tolist()
            assert memory[0] == 0
            assert memory[1 + a.size :].tolist() == list(range(1 + a.size, 8))


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
def empty_parts(out, a, start):
    i = sarek.global_idx.x
    nothing = a[start:start]
    if i < len(a):
        a[i] = len(a) + 1000
    total, most = 0, -5
    for k in range(len(nothing)):
        total += int(nothing[k])
        most = max(most, int(nothing[k]))
    if i == 0:
        out[0] = total + len(nothing) + nothing.size
        out[1] = most
        out[2] = len(a)


def test_case_97_one_axis(executor):
    """An array of shape (0,) and a[i:i]: no pass, no element, a reduction keeps its start."""
    for a in (np.zeros(0, np.int32), np.arange(5, dtype=np.int32)[3:3]):
        for start in (0, 2, -1):
            out = poison(3, np.int64)
            run(executor, empty_parts, Launch(1, 4, (out, a, start), ()))
            assert out.tolist() == [0, -5, 0]
    a, out = np.arange(4, dtype=np.int32), poison(3, np.int64)
    run(executor, empty_parts, Launch(1, 4, (out, a, 2), ()))
    assert (out.tolist(), a.tolist()) == ([0, -5, 4], [1004] * 4)


def test_case_97_no_threads(executor):
    """`forall(0)` runs nothing, and raises nothing; a grid with an axis of 0 is refused."""
    a = np.zeros(0, np.int32)
    out = np.full(3, 7, np.int64)
    if executor == EMULATION:
        return  # has no forall
    with sarek.use_device(device_of(executor)):
        empty_parts.forall(len(a), block=32)(out, a, 0)
    with pytest.raises(sarek.InvalidDimensions, match="axis of 0"):
        run(executor, empty_parts, Launch((0, 1), 4, (out, a, 0), ()))
    assert out.tolist() == [7] * 3


@sarek.kernel
def block_sum(out, x):
    i = sarek.global_idx.x
    total = sarek.block.reduce_sum(x[i] if i < len(x) else np.float32(0))
    if sarek.thread_idx.x == 0:
        out[sarek.block_idx.x] = total


def test_case_97_reductions(executor):
    """A block's sum over nothing is zero."""
    out = poison(2, np.float32)
    run(executor, block_sum, Launch(2, 16, (out, np.zeros(0, np.float32)), ()))
    assert out.tolist() == [0, 0]


@sarek.kernel
def field_of_records(out, records):
    i = sarek.global_idx.x
    if i < len(records):
        out[i] = records[i].b


def test_case_100_records(executor):
    """A record with one field in the other byte order is refused, in nested records too."""
    if executor == EMULATION:  # NumPy swaps the bytes
        return
    big = [("a", "<i2"), ("b", ">f4")]
    nested = [("b", "<i4"), ("inner", [("x", "<f8"), ("y", ">i2", (2,))], (3,))]
    for fields in (big, nested):
        records, out = np.ones(5, fields), np.zeros(5, np.float64)
        with pytest.raises(TypeError, match="byte"):
            run(executor, field_of_records, Launch(1, 8, (out, records), ()))
        assert not out.any()
    for dtype in (">f4", ">i2"):
        swapped, out = np.ones(5, dtype), np.zeros(5, np.float64)
        with pytest.raises(TypeError, match=r"byteorder\('='\)"):
            run(executor, incremented, Launch(1, 8, (swapped,), ()))
        assert swapped.tolist() == [1] * 5
        assert not out.any()


INNER = [("u", "<i4"), ("cells", "<i2", (2, 3)), ("deep", [("p", "<f8"), ("q", "i1")])]
FIELDS = [("flag", "u1"), ("inner", INNER), ("many", INNER, (2,)), ("tail", "<f4")]
PADDED = np.dtype(
    {
        "names": ["tail", "inner", "many", "flag"],
        "formats": ["<f4", np.dtype(INNER, align=True), (np.dtype(INNER, align=True), (2,)), "u1"],
        "offsets": [4, 16, 64, 200],
        "itemsize": 208,
    }
)


@sarek.kernel
def nested_fields(out, p):
    i = sarek.global_idx.x
    if i < len(p):
        total = p[i].inner.u + p[i]["inner"]["cells"][1, 2] + p[i].inner.deep.q
        for k in range(2):
            part = p[i].many[k]
            total += part.u + part.cells[k, 1] + part.deep.q
            part.deep.p = part.deep.p * 2 + k
            p[i]["many"][k].cells[0, k] -= 5
        out[i] = total + p[i].flag
        p[i].inner.deep = p[i].many[1].deep
        p[i].tail += p[i].inner.deep.p


@pytest.mark.parametrize("dtype", [np.dtype(FIELDS), np.dtype(FIELDS, align=True), PADDED],
                         ids=["packed", "aligned", "padded"])  # fmt: skip
@pytest.mark.parametrize("offset", [0, 3])
def test_case_104_nested(executor, dtype, offset):
    """Fields of structures in sub-arrays of structures; what lies between them keeps its bytes."""
    rng = np.random.default_rng(104)
    memory = rng.integers(0, 256, 7 * dtype.itemsize + 8, dtype=np.uint8)
    p = np.ndarray(7, dtype, memory.data, offset)
    for part in (p["inner"], p["many"]):
        part["u"] = rng.integers(-99, 99, part.shape)
        part["cells"] = rng.integers(-99, 99, part["cells"].shape)
        part["deep"]["p"] = rng.integers(-99, 99, part.shape)
        part["deep"]["q"] = rng.integers(-9, 9, part.shape)
    p["tail"], p["flag"] = rng.integers(-99, 99, 7), 200
    out, expected = np.zeros(7, np.int64), memory.copy()
    e = np.ndarray(7, dtype, expected.data, offset)
    inner, many = e["inner"], e["many"]
    total = inner["u"] + inner["cells"][:, 1, 2] + inner["deep"]["q"] + 200
    for k in range(2):
        total = total + many["u"][:, k] + many["cells"][:, k, k, 1] + many["deep"]["q"][:, k]
        many["deep"]["p"][:, k] = many["deep"]["p"][:, k] * 2 + k
        many["cells"][:, k, 0, k] -= 5
    inner["deep"]["p"], inner["deep"]["q"] = many["deep"]["p"][:, 1], many["deep"]["q"][:, 1]
    e["tail"] += inner["deep"]["p"].astype(np.float32)
    run(executor, nested_fields, Launch(1, 8, (out, p), ()))
    assert out.tolist() == total.tolist()
    assert memory.tobytes() == expected.tobytes()


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
def ends_of_a_long_array(a, out):
    i = sarek.global_idx.x
    n = len(a)
    if i < 8:
        out[i] = a[n - 8 + i]
        a[i - 8] = 100 + i
        a[i - n] = 50 + i
        middle = a[2**31 - 20 :: 2]
        middle[i] = i + 1


@pytest.mark.skipif(
    os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 8 * 2**30,
    reason="needs a machine with 8 GiB of memory",
)
def test_case_106_long_array(executor):
    """Indices beyond 2^31 into an array of bytes, from its start, its end, and through a view."""
    a = np.zeros(2**31 + 8, np.uint8)
    a[-8:] = np.arange(8) + 20
    out = poison(8, np.int64)
    try:
        run(executor, ends_of_a_long_array, Launch(1, 32, (a, out), ()))
    except sarek.OutOfMemory as error:  # PoCL: a part of the machine's memory
        if error.available is None or error.available >= a.nbytes:
            raise
        pytest.skip(f"{executor} has no buffers above {error.available} bytes here")
    assert out.tolist() == list(range(20, 28))
    assert a[:9].tolist() == [*range(50, 58), 0]
    assert a[-8:].tolist() == list(range(100, 108))
    assert a[2**31 - 21 : 2**31 - 3].tolist() == [
        0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 0
    ]  # fmt: skip


@sarek.kernel
def threads_beyond(count, ids):
    g = sarek.global_idx.x
    if 2**31 - 3 <= g < 2**31 + 2:
        sarek.atomic.add(count, 0, 1)
        ids[g - (2**31 - 3)] = g


@sarek.kernel
def threads_of_three_axes(count, ids):
    x, y, z = sarek.grid(3)
    width, height, _ = sarek.gridsize(3)
    g = (z * height + y) * width + x
    if 2**31 - 3 <= g < 2**31 + 2:
        sarek.atomic.add(count, 0, 1)
        ids[g - (2**31 - 3)] = g


@pytest.mark.parametrize(
    ("kernel", "grid"), [(threads_beyond, 2**23 + 1), (threads_of_three_axes, (1025, 64, 128))]
)
def test_case_107_grid(executor, kernel, grid):
    """More than 2^31 threads, along one axis and in the product of three: each runs once."""
    if executor in (EMULATION, "interpreter"):
        pytest.skip("2^31 threads take hours there; the arithmetic is in test_case_107_space")
    count, ids = np.zeros(1, np.int64), np.zeros(5, np.int64)
    run(executor, kernel, Launch(grid, 256, (count, ids), ()))
    assert count[0] == 5
    assert ids.tolist() == [2**31 - 3 + k for k in range(5)]


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
