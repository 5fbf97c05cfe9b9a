"""Debug builds: devices find what the oracle finds, say it in the same words, and live on."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.dispatcher import Dispatcher
from tests.executors import EMULATION, check, device_of, executors
from tests.kernels.corpus import CASES

DEVICES = [name for name in executors() if name != EMULATION]
everywhere = pytest.mark.parametrize("device", DEVICES)


def found(device, kernel, error, *arguments, grid=1, block=8):
    """The error of a launch, which leaves the device usable."""
    with pytest.raises(error) as caught:
        kernel.launch(*arguments, grid=grid, block=block, device=device_of(device))
    return caught.value


@sarek.kernel(debug=True)
def gather(out, x, indices):
    i = sarek.global_idx.x
    out[i] = x[indices[i]]


@everywhere
def test_an_index_out_of_range(device):
    """Kernel, line, thread, index and array; the threads that fail store nothing."""
    x = np.arange(16, dtype=np.float32)
    indices = np.arange(16)
    indices[[5, 9, 3]] = 99, -17, -1
    out = np.full(16, -1, np.float32)
    error = found(device, gather, sarek.OutOfBounds, out, x, indices, grid=2)
    (finding,) = error.findings
    line = gather.py_func.__code__.co_firstlineno + 3
    assert (finding.kernel, finding.span.line, finding.array) == ("gather", line, "x")
    assert (finding.block, finding.thread, finding.index) == ((0, 0, 0), (5, 0, 0), 99)
    assert finding.threads == 2
    assert "index 99 is out of range for axis 0 of 'x', whose extent is 16" in str(error)
    expected = np.where(np.isin(np.arange(16), (5, 9)), -1, x)
    expected[3] = 15
    if device != "interpreter":
        assert out.tolist() == expected.tolist()
    gather.launch(out, x, np.arange(16), grid=2, block=8, device=device_of(device))
    assert out.tolist() == x.tolist()


@sarek.kernel(debug=True)
def tiles(out, x, n):
    tile = sarek.shared.array(8, sarek.float32)
    t = sarek.thread_idx.x
    for step in range(n):
        tile[(t + step) % 8] = x[t + step]
        sarek.barrier()
        out[t] += tile[0]
        sarek.barrier()


@everywhere
def test_threads_that_fail_still_meet_barriers(device):
    """Only some threads fail, within a loop that holds barriers; the launch ends."""
    out = np.zeros(8, np.float32)
    error = found(device, tiles, sarek.OutOfBounds, out, np.ones(10, np.float32), 6)
    assert [f.array for f in error.findings] == ["x"]
    assert error.findings[0].index == 10


@sarek.kernel(debug=True)
def checked(out, x, limit):
    i = sarek.global_idx.x
    assert x[i] < limit, "x stays below its limit"
    out[i] = 1


@everywhere
def test_assertions(device):
    """The message, the first thread, how many; who fails stores nothing."""
    out = np.zeros(8, np.int32)
    error = found(device, checked, sarek.AssertionFailed, out, np.arange(8.0), 5)
    assert "assertion failed: x stays below its limit" in str(error)
    (finding,) = error.findings
    assert (finding.thread, finding.threads) == ((5, 0, 0), 3)
    if device != "interpreter":
        assert out.tolist() == [1] * 5 + [0] * 3


@sarek.kernel(debug=True)
def count(counts, places, out):
    i = sarek.global_idx.x
    before = sarek.atomic.add(counts, places[i], 1)
    out[i] = before


@everywhere
def test_atomics(device):
    """An atomic out of range is not done, and what it would give is zero."""
    counts, out = np.zeros(4, np.int32), np.full(4, -1, np.int32)
    error = found(device, count, sarek.OutOfBounds, counts, np.array([0, 3, 4, 1]), out, block=4)
    assert [(f.array, f.index) for f in error.findings] == [("counts", 4)]
    assert counts.tolist() == [1, 1, 0, 1]


@sarek.function
def looked_up(table, place):
    if place == 7:
        return table[0]
    return table[place]


@sarek.kernel(debug=True)
def through_a_function(out, table):
    i = sarek.global_idx.x
    row = table[1]
    local = sarek.local.array(3, np.int32)
    local[i % 3] = looked_up(row, i)
    out[i] = local[i % 3]


@everywhere
def test_views_in_device_functions(device):
    """A view is checked against its own extent, not its base's."""
    out = np.zeros(8, np.int32)
    table = np.arange(15, dtype=np.int32).reshape(3, 5)
    error = found(device, through_a_function, sarek.OutOfBounds, out, table)
    assert [(f.index, f.threads) for f in error.findings] == [(5, 2)]
    if device != "interpreter":
        assert out.tolist() == [5, 6, 7, 8, 9, 0, 0, 5]


@sarek.kernel(debug=True)
def guarded(out, x, n):
    i = sarek.global_idx.x
    j = i
    while j < len(x) and x[j] > 0:
        j += 1
    value = x[i + n] if i + n < len(x) else -1
    if i >= len(x) or x[i] == 0:
        value += 1
    if i < len(out):
        out[i] = value + j


@everywhere
def test_no_alarm_where_nothing_is_evaluated(device):
    """The sides of and, or and conditional expressions that are not taken are not checked."""
    x, out = np.array([1, 0, 3, 4, 5], np.int32), np.zeros(8, np.int32)
    guarded.launch(out, x, 2, grid=1, block=8, device=device_of(device))
    assert out.tolist() == [4, 6, 10, 4, 4, 5, 6, 7]


@sarek.kernel(debug=True)
def follow(out, next):
    i = sarek.global_idx.x
    place = next[i]
    while place != 0:
        out[i] += 1
        place = next[place]


@everywhere
def test_loops_end(device):
    """A thread that has failed leaves a loop whose end its own stores were to bring about."""
    out = np.zeros(4, np.int32)
    error = found(device, follow, sarek.OutOfBounds, out, np.array([1, 2, 9, 0]), block=4)
    assert error.findings[0].index == 9


@sarek.kernel(debug=True)
def unused(x, n):
    x[n]
    x[0] = 1.0


@everywhere
def test_an_element_read_for_nothing(device):
    """It is read in Python, so it is checked."""
    found(device, unused, sarek.OutOfBounds, np.zeros(3), 3, block=1)


@everywhere
def test_an_empty_array(device):
    """No element of it may be read, not even the first."""
    found(device, gather, sarek.OutOfBounds, np.zeros(1), np.zeros(0), np.zeros(1, int), block=1)


def test_two_kernels_on_other_lines_say_their_own():
    """Equal programs on other lines share no build: the report names lines."""
    scope = {"sarek": sarek}
    text = "@sarek.kernel(debug=True)\ndef k(x, n):\n{}    x[n] = 1\n"
    for blank in ("", "\n\n"):
        exec(compile(text.format(blank), "<kernel>", "exec"), scope)
        error = found("native", scope["k"], sarek.OutOfBounds, np.zeros(3), 5, block=1)
        assert error.findings[0].span.line == 3 + len(blank)


def test_without_debug_nothing_is_checked():
    """The control: the same kernel without the option runs to its end on a device."""
    plain = Dispatcher(checked.py_func)
    out = np.zeros(8, np.int32)
    plain.launch(out, np.arange(8.0), 5, grid=1, block=8, device="native")
    assert out.tolist() == [1] * 8


def test_debug_is_a_bool():
    """Anything else is refused where the kernel is made."""
    with pytest.raises(sarek.UnsupportedConstruct, match="is True or False, not 'yes'"):
        sarek.kernel(debug="yes")


_BUILDS = [
    *((case, "native") for case in CASES[::6]),  # LLVM takes seconds for one
    *((case, "opencl:pocl:0") for case in CASES[1::3]),
]


@pytest.mark.parametrize(
    ("case", "device"), _BUILDS, ids=[f"{case.name}-{device}" for case, device in _BUILDS]
)
def test_the_corpus(case, device):
    """Kernels without a fault give the same results in a debug build, and no alarm."""
    if device not in DEVICES:
        pytest.skip(f"no {device}")
    kernel = Dispatcher(case.kernel.py_func, case.kernel.hints, debug=True)
    check(device, dataclasses.replace(case, kernel=kernel))
