"""The hints of `@sarek.kernel`, each with its effect on every executor."""

from __future__ import annotations

import re

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import ConstantOverflow, InvalidDimensions, OutOfBounds, TypingError
from tests.conformance.everywhere import everywhere
from tests.executors import EMULATION, run
from tests.kernels.case import Launch

DEVICES = [device.name for device in sarek.devices()]
on_devices = pytest.mark.parametrize("device", DEVICES)
PRINTED = [name for name in DEVICES if name.startswith("opencl")]


# --- bounds="clamp", wraparound=False -------------------------------------------------------------


def around(out, x, at):
    i = sarek.global_idx.x
    if i < len(at):
        out[i] = x[at[i]]


@sarek.function
def neighbour(row, k):
    return row[k]


def around_rows(out, x, at):
    """Rows, elements of rows, shared memory and a device function."""
    tile = sarek.shared.array(4, sarek.int32)
    i = sarek.global_idx.x
    if i < 4:
        tile[i] = 100 + i
    sarek.barrier()
    if i < len(at):
        row = x[at[i]]
        out[i, 0] = row[at[i] + 1]
        out[i, 1] = tile[at[i]]
        out[i, 2] = neighbour(x[1], at[i])
        out[i, 3] = x[at[i], 2]


AT = np.array([-20, -6, -5, -4, -1, 0, 2, 3, 4, 5, 99], np.int64)


def placed(at, extent, wraparound):
    """What an index means with bounds="clamp"."""
    at = np.where(at < 0, at + extent, at) if wraparound else at
    return np.clip(at, 0, extent - 1)


@everywhere
@pytest.mark.parametrize("wraparound", [True, False])
def test_an_index_is_clamped(executor, wraparound):
    """To the nearest element, after it has counted from the end where it does that."""
    kernel = sarek.kernel(bounds="clamp", wraparound=wraparound)(around)
    x = np.arange(5, dtype=np.int32) * 10
    out = np.full(len(AT), -1, np.int32)
    run(executor, kernel, Launch(1, 16, (out, x, AT), ()))
    assert out.tolist() == x[placed(AT, 5, wraparound)].tolist()


@everywhere
@pytest.mark.parametrize("wraparound", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
def test_each_axis_is_clamped(executor, wraparound, order):
    """By its own extent, in views, shared memory and device functions too."""
    kernel = sarek.kernel(bounds="clamp", wraparound=wraparound)(around_rows)
    x = np.asarray(np.arange(15, dtype=np.int32).reshape(5, 3), order=order)
    out = np.full((len(AT), 4), -1, np.int32)
    run(executor, kernel, Launch(1, 16, (out, x, AT), ()))
    rows = placed(AT, 5, wraparound)
    expected = np.stack(
        [
            x[rows, placed(AT + 1, 3, wraparound)],
            100 + placed(AT, 4, wraparound),
            x[1, placed(AT, 3, wraparound)],
            x[rows, 2],
        ],
        axis=1,
    )
    assert out.tolist() == expected.tolist()


@everywhere
def test_a_store_and_an_atomic_are_clamped(executor):
    @sarek.kernel(bounds="clamp", wraparound=False)
    def count(counts, last, values):
        i = sarek.global_idx.x
        if i < len(values):
            sarek.atomic.add(counts, (0, values[i]), 1)
            last[values[i] + 100] = 7

    counts, last = np.zeros((2, 4), np.int32), np.zeros(3, np.int32)
    values = np.array([-3, -1, 0, 1, 2, 3, 4, 50], np.int32)
    run(executor, count, Launch(1, 8, (counts, last, values), ()))
    assert counts.tolist() == [[3, 1, 1, 3], [0, 0, 0, 0]]
    assert last.tolist() == [0, 0, 7]


@everywhere
def test_without_wraparound_indices_in_range_are_as_ever(executor):
    kernel = sarek.kernel(wraparound=False)(around)
    x = np.arange(5, dtype=np.int32) * 10
    at = np.array([4, 0, 2], np.int64)
    out = np.full(3, -1, np.int32)
    run(executor, kernel, Launch(1, 4, (out, x, at), ()))
    assert out.tolist() == [40, 0, 20]


def test_without_wraparound_a_negative_index_is_out_of_bounds():
    """The oracle and emulation report what counted from the end before."""
    x, out, at = np.arange(5, dtype=np.int32), np.zeros(1, np.int32), np.array([-1], np.int64)
    kernel = sarek.kernel(wraparound=False)(around)
    with sarek.use_device("interpreter"):
        sarek.kernel(around)[1, 1](out, x, at)
        assert out.tolist() == [4]
        with pytest.raises(OutOfBounds, match="index -1 is out of range for axis 0 of 'x'"):
            kernel[1, 1](out, x, at)
    with pytest.raises(IndexError, match="index -1 is out of range for an axis of 5 elements"):
        run(EMULATION, kernel, Launch(1, 1, (out, x, at), ()))


@on_devices
def test_without_wraparound_the_code_has_no_wrap(device):
    """The subscript of the source is plain; with wraparound it is not."""
    arguments = np.zeros(1, np.int32), np.zeros(5, np.int32), np.zeros(1, np.int64)
    plain = sarek.kernel(wraparound=False)(around).source(device, *arguments)
    wrapping = sarek.kernel(around).source(device, *arguments)
    assert plain != wrapping
    if device in PRINTED:  # the index is cast to 32 bits on a GPU
        assert re.search(r"x\[(\(int\)at\[i\]|narrow_int\(at\[i\]\)|at\[i\])\]", plain)
        assert not re.search(r"x\[(\(int\))?at\[i\]\]", wrapping)
    if device == "interpreter":
        assert "wrap(x" in wrapping
        assert "wrap(x" not in plain


def test_clamping_an_empty_array_is_out_of_bounds():
    """There is no nearest element."""
    kernel = sarek.kernel(bounds="clamp")(around)
    out, x, at = np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(1, np.int64)
    with sarek.use_device("interpreter"), pytest.raises(OutOfBounds):
        kernel[1, 1](out, x, at)


# --- max_threads ----------------------------------------------------------------------------------


@sarek.kernel(max_threads=64)
def reversed_in_block(out, x):
    """A barrier, and a return before it."""
    tile = sarek.shared.array(64, sarek.float32)
    t = sarek.thread_idx.x
    n = sarek.block_dim.x
    i = sarek.global_idx.x
    tile[t] = x[i]
    sarek.barrier()
    if t >= n - 1:
        return
    out[i] = tile[n - 1 - t]


@everywhere
def test_a_kernel_of_few_threads_runs(executor):
    x = np.arange(128, dtype=np.float32)
    out = np.full(128, -1, np.float32)
    run(executor, reversed_in_block, Launch(2, 64, (out, x), ()))
    expected = x.reshape(2, 64)[:, ::-1].copy()
    expected[:, 63] = -1
    assert out.tolist() == expected.ravel().tolist()


@on_devices
@pytest.mark.parametrize("block", [65, (8, 9, 1), (4, 4, 8)])
def test_more_threads_than_stated_are_refused(device, block):
    """Before anything is touched; the next launch runs."""
    x, out = np.arange(128, dtype=np.float32), np.full(128, -1, np.float32)
    with sarek.use_device(device):
        with pytest.raises(InvalidDimensions) as raised:
            reversed_in_block[1, block](out, x)
        assert "the kernel states max_threads=64" in str(raised.value)
        assert "hint: launch more blocks of at most 64 threads" in str(raised.value)
        assert (out == -1).all()
        reversed_in_block[1, 64](out, x)
    assert out[0] == 63


def test_the_number_of_threads_stands_in_the_ir():
    from sarek_numba.ir.text import text

    x = np.zeros(4, np.float32)
    assert 'pragma "max_threads" "64" {' in text(reversed_in_block.ir(x, x))


# --- strict ---------------------------------------------------------------------------------------

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TYPES += ["float16", "bfloat16", "float32", "float64"]


def copied(out, x):
    out[0] = x[0]


def _all_values_fit(source, target):
    """By NumPy where it is right: it takes int64 to float64 as safe."""
    if (source, target) in (("int64", "float64"), ("uint64", "float64")):
        return False
    return np.can_cast(source, target, "safe")


@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("source", TYPES)
def test_strict_refuses_what_loses_information(source, target):
    """Every pair of types, as NumPy's safe casts; refused at the line of the store."""
    kernel = sarek.kernel(strict=True)(copied)
    x, out = np.ones(1, source), np.zeros(1, target)
    if _all_values_fit(source, target):
        with sarek.use_device("interpreter"):
            kernel[1, 1](out, x)
        assert out[0] == 1
        return
    with pytest.raises(TypingError) as raised:
        kernel[1, 1](out, x)
    assert re.search(r"test_hints.py:\d+:14: storing \w+ in an array", str(raised.value))
    sarek.kernel(copied)[1, 1](out, x)  # without the hint it is a conversion
    assert out[0] == 1


@sarek.function
def put(out, k, value):
    out[k] = value


def strict_kernels():
    def loop_variable(out):
        for k in range(4):
            out[k] = k

    def augmented(out):
        out[0] += np.float64(0.5)

    def half(out):
        out[0] = 2.5

    def in_a_function(out):
        put(out, 0, sarek.global_idx.x)

    def atomically(out):
        sarek.atomic.add(out, 0, sarek.global_idx.x)

    return (loop_variable, augmented, half, in_a_function, atomically)


@pytest.mark.parametrize("function", strict_kernels(), ids=lambda f: f.__name__)
def test_strict_reaches_every_store(function):
    out = np.zeros(4, np.int32)
    with pytest.raises(TypingError, match="the kernel states strict=True"):
        sarek.kernel(strict=True)(function)[1, 1](out)
    assert out.tolist() == [0] * 4
    sarek.kernel(function)[1, 1](out)


def strict_half_kernels():
    def float32_of_halves(out):
        out[0] = out[0] + out[1]

    def constant(out):
        out[0] = np.float32(0.1)

    def through_a_name(out):
        value = np.float16(0.3) * out[0]
        out[1] = value

    return (float32_of_halves, constant, through_a_name)


@pytest.mark.parametrize("function", strict_half_kernels(), ids=lambda f: f.__name__)
def test_strict_refuses_float32_in_halves(function):
    """A float32 is a half only where it comes straight from one."""
    out = np.zeros(4, np.float16)
    with pytest.raises(TypingError, match="storing float32 in an array of float16 can lose"):
        sarek.kernel(strict=True)(function)[1, 1](out)
    assert out.tolist() == [0] * 4
    sarek.kernel(function)[1, 1](out)


@everywhere
def test_strict_takes_halves_in_halves(executor):
    @sarek.kernel(strict=True)
    def exact(out, x):
        i = sarek.thread_idx.x
        out[i] = x[i]
        if i == 0:
            out[0] = 0.1
        if i == 1:
            out[1] = sarek.float16(x[1] * 0.1)
        if i == 2:
            out[2] = np.float32(0.5)

    x, out = np.arange(4).astype(np.float16), np.zeros(4, np.float16)
    run(executor, exact, Launch(1, 4, (out, x), ()))
    assert out.tolist() == [*np.array([0.1, 0.1, 0.5, 3]).astype(np.float16)]


@everywhere
def test_strict_takes_casts_and_constants(executor):
    @sarek.kernel(strict=True)
    def exact(out, x, longs):
        i = sarek.thread_idx.x
        out[i] = np.float32(x[i]) + 1
        if i == 0:
            out[0] = 0.1
        longs[i] = i
        sarek.atomic.add(longs, i, np.int32(2))

    x, out, longs = np.arange(4), np.zeros(4, np.float32), np.zeros(4, np.int64)
    run(executor, exact, Launch(1, 4, (out, x, longs), ()))
    expected = x.astype(np.float32) + np.float32(1)
    expected[0] = 0.1
    assert out.tolist() == expected.tolist()
    assert longs.tolist() == [2, 3, 4, 5]


# --- misuse ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wraparound": 1}, "wraparound=...) is True or False, not 1"),
        ({"strict": None}, "strict=...) is True or False, not None"),
        ({"bounds": "wrap"}, "bounds=...) is 'clamp' or None, not 'wrap'"),
        ({"bounds": True}, "bounds=...) is 'clamp' or None, not True"),
        ({"max_threads": 0}, "max_threads=...) is a positive int or None, not 0"),
        ({"max_threads": 2.5}, "max_threads=...) is a positive int or None, not 2.5"),
        ({"max_threads": True}, "max_threads=...) is a positive int or None, not True"),
    ],
)
def test_bad_hints_are_refused_where_they_are_written(options, message):
    with pytest.raises(sarek.UnsupportedConstruct, match=re.escape(f"@sarek.kernel({message}")):
        sarek.kernel(**options)(copied)


def test_a_constant_that_counts_from_the_end_is_refused_without_wraparound():
    def last(x):
        x[-1] = 2

    with pytest.raises(TypingError) as raised:
        sarek.kernel(wraparound=False)(last)[1, 1](np.zeros(4, np.int32))
    text = str(raised.value)
    assert ":11: index -1 counts from the end, and the kernel states wraparound=False" in text
    assert "hint: write the extent minus 1, as in a[len(a) - 1]" in text


def test_constants_out_of_range_are_still_refused_by_strict():
    def large(x):
        x[0] = 300

    with pytest.raises(ConstantOverflow):
        sarek.kernel(strict=True)(large)[1, 1](np.zeros(1, np.uint8))
