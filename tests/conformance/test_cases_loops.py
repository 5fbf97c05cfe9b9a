"""Cases from the field: ends of ranges, dead code, guards and votes in loops (section E)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.everywhere import everywhere, gives
from tests.conformance.made import made
from tests.executors import EMULATION, executors, has_warps, run
from tests.kernels.case import Launch

devices = pytest.mark.parametrize("device", [name for name in executors() if name != EMULATION])


@sarek.kernel
def odd_threads_return(out):
    i = sarek.global_idx.x
    if i % 2 == 1:
        return
    if i < len(out):
        out[i] = i


@devices
def test_case_59_million(device):
    """Of a million threads the odd ones return early; every even one writes."""
    out = np.full(1_000_000, -1, np.int32)
    run(device, odd_threads_return, Launch(3907, 256, (out,), ()))
    assert np.array_equal(out[::2], np.arange(0, 1_000_000, 2))
    assert (out[1::2] == -1).all()


@sarek.function
def after_every_exit(n):
    for i in range(4):
        if n == i:
            return i * 10
            n += 1000
        continue
        n += 2000
        n += 3000
    while n > 0:
        if n > 6:
            break
            n = -1
        n += 1
        continue
        n = -2
    return n
    return 4000


@sarek.kernel
def dead_code(out):
    t = sarek.thread_idx.x
    total = 0
    for i in range(4):
        total += after_every_exit(t)
        if i == 2:
            break
            total += 500
        for _ in range(3):
            break
            total += 600
        while True:
            total += 1
            break
            continue
    out[t] = total
    return
    out[t] = 700
    for _ in range(3):
        out[t] += 1


@everywhere
def test_case_62_dead(executor):
    """What follows `break`, `continue` and `return` is dead, in every kind of block."""
    expected = [3 * (t * 10 if t < 4 else max(t, 7)) + 2 for t in range(9)]
    gives(executor, dead_code, expected)


@sarek.kernel
def last_of_two_loops(out, n, x):
    t = sarek.thread_idx.x
    for j in range(3):
        out[t, 0] = j
    for j in range(t, n):
        out[t, 1] = j
    out[t, 2] = j
    total = 0
    for j in range(n):
        j = j * 2 + x[t]
        for k in range(j):
            k = k + j
            total += k
        total += j
    out[t, 3] = total


@everywhere
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_case_64_last(executor, dtype):
    """After an empty second loop its variable has what the first gave; a body may assign it."""
    x = np.array([1, 0, 2, 1], dtype)
    expected = []
    for t in range(4):
        total = 0
        for j in range(2):
            j = j * 2 + int(x[t])
            total += sum(k + j for k in range(j)) + j
        expected.append([2, 1 if t < 2 else 91, 1 if t < 2 else 2, total])
    gives(executor, last_of_two_loops, expected, 2, x, dtype=dtype)


@sarek.kernel
def argument_takes_an_element(out, x, s):
    t = sarek.thread_idx.x
    total = 0
    for k in range(3):
        total = total * 10 + s
        s = x[t] + k
    out[t] = total + 1000 * s


@everywhere
def test_case_65_element(executor):
    """An argument that was 1 or 2 takes the value of an array's element in a loop."""
    x = np.array([4, 7], np.int32)
    for s in (1, 2, np.int32(1)):
        expected = [100 * s + 10 * v + v + 1 + 1000 * (v + 2) for v in (4, 7)]
        gives(executor, argument_takes_an_element, expected, x, s)


@sarek.kernel
def passes_between(out, starts, stops, step):
    i, j = sarek.grid(2)
    if i >= len(starts) or j >= len(stops):
        return
    passes = 0
    for _ in range(starts[i], stops[j]):
        passes += 1
    for _ in range(starts[i], stops[j], step):
        passes += 100
    out[i, j] = passes


@everywhere
@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8"])
def test_case_67_types(executor, dtype):
    """Starts beyond stops, at the ends of each integer type, in two dimensions, any step."""
    info = np.iinfo(dtype)
    for low, high in ((info.min, info.min + 9), (info.max - 9, info.max)):
        starts = np.array([low, low + 3, high - 3, high], dtype)
        stops = np.array([low + 1, high, low, high - 4, low + 3], dtype)
        for step in (4, 1, -1, -3):
            out = np.zeros((4, 5), np.int64)
            run(executor, passes_between, Launch((2, 2), (2, 4), (out, starts, stops, step), ()))
            expected = [
                [len(range(a, b)) + 100 * len(range(a, b, step)) for b in stops.tolist()]
                for a in starts.tolist()
            ]
            assert out.tolist() == expected


@sarek.kernel
def early_exit(out, start, stop, step, most):
    t = sarek.thread_idx.x
    seen, last = 0, 0
    for i in range(start, stop, step):
        if seen >= most + t:
            break
        seen += 1
        last = i
    out[t, 0] = seen
    out[t, 1] = last


@everywhere
def test_case_68_ends(executor):
    """Ranges that end at either end of int32 and int64 end; a huge one may be left early."""
    for bits, step, sign in itertools.product((31, 63), (1, 2, 3, 2**29), (1, -1)):
        end = 2**bits - 1 if sign > 0 else -(2**bits)
        for start in (end - sign * (2 * step + 1), 0, end, -end - (sign < 0)):
            passes = range(start, end, sign * step)
            expected = []
            for t in range(3):
                seen = min(_length(start, end, sign * step), 4 + t)
                expected.append([seen, passes[seen - 1] if seen else 0])
            gives(executor, early_exit, expected, start, end, sign * step, 4, dtype=np.int64)


def _length(start, stop, step):
    """`len` of a range, which CPython refuses beyond 2^63."""
    distance = stop - start if step > 0 else start - stop
    return max(-(-distance // abs(step)), 0)


FAR = """
@sarek.kernel
def k(out):
    t = sarek.thread_idx.x
    seen = 0
    for i in range({}):
        seen += 1
        if seen > t:
            break
    out[t] = seen
"""


BOUNDS = {
    "2147483647": 2147483647,
    "0, 2147483647, 2": 1073741824,
    "65536 * 65535 // 2 + 1": 2147450881,
    "-2147483648, 2147483647": 4294967295,
    "2147483647, -2147483649, -1": 4294967296,
    "2147483646, 2147483648": 2,
    "9223372036854775807": 2**63 - 1,
}


@everywhere
@pytest.mark.parametrize("bounds", BOUNDS)
def test_case_68_constants(executor, bounds):
    """Constant bounds up to and beyond the ends of int32."""
    expected = [min(t + 1, BOUNDS[bounds]) for t in range(4)]
    gives(executor, made(FAR.format(bounds), "k"), expected)


@sarek.function
def counted(count, result):
    sarek.atomic.add(count, 0, 1)
    return result


@sarek.kernel
def guards_in_loops(out, x, calls):
    t = sarek.thread_idx.x
    i = t
    while i < len(x) and x[i] > 0:
        i += 1
    out[t, 0] = i
    value = x[t] if t < len(x) else -1
    out[t, 1] = value
    rounds = 0
    while rounds < t and not (rounds == 2 or counted(calls, rounds) > 3):
        rounds += 1
    out[t, 2] = rounds
    some = (t > 1 and counted(calls, t)) or counted(calls, 5)
    out[t, 3] = some
    out[t, 4] = counted(calls, 1) if t % 2 == 0 else counted(calls, 2) + counted(calls, 3)


def _guards_in_loops(x, t):
    i, calls = t, 0
    while i < len(x) and x[i] > 0:
        i += 1
    rounds = 0
    while rounds < t and rounds != 2:
        calls += 1
        rounds += 1
    calls += 1 + (1 if t % 2 == 0 else 2)
    row = [i, x[t] if t < len(x) else -1, rounds, t if t > 1 else 5, 1 if t % 2 == 0 else 5]
    return row, calls


@everywhere
def test_case_70_loops(executor):
    """Guards of loops, of values and of conditional expressions; each call is counted."""
    x = np.array([3, 1, 0, 5], np.int32)
    calls = np.zeros(1, np.int32)
    rows, counts = zip(*(_guards_in_loops(x.tolist(), t) for t in range(7)), strict=True)
    gives(executor, guards_in_loops, rows, x, calls)
    assert calls[0] == sum(counts)


@sarek.kernel
def atomic_in_the_middle(out, counter, limit):
    t = sarek.thread_idx.x
    out[t, 0] = 0 <= sarek.atomic.add(counter, t, 1) < limit
    passes = 0
    while 0 < sarek.atomic.add(counter, t, 1) <= sarek.atomic.add(counter, 4, 0) + limit < 9:
        passes += 1
    out[t, 1] = passes
    if t < sarek.atomic.add(counter, t, 1) != limit < 7:
        out[t, 2] = 1
    else:
        out[t, 2] = 0


@everywhere
def test_case_71_atomic(executor):
    """An atomic in the middle of a chain happens once, of a condition and of a loop too."""
    counter = np.array([0, 2, 1, 3, 0], np.int32)
    expected = []
    for t in range(4):
        start = int(counter[t])
        value, passes = start + 1, 0
        while 0 < value <= 3:
            value, passes = value + 1, passes + 1
        value += 1
        expected.append([0 <= start < 3, passes, t < value != 3 < 7])
    after = [max(int(v) + 2, 5) + 1 for v in counter[:4]]
    gives(executor, atomic_in_the_middle, expected, counter, 3)
    assert counter.tolist() == [*after, 0]


@sarek.kernel
def vote_in_the_condition(out, x):
    t = sarek.thread_idx.x
    value = x[t]
    rounds = 0
    while sarek.block.reduce_max(value) > 0:
        rounds += 1
        if value % 2 == 1:
            value -= 1
            continue
        if value > 0:
            value //= 2
    out[t] = rounds * 100 + value


def _rounds(v):
    count = 0
    while v > 0:
        v = v - 1 if v % 2 else v // 2
        count += 1
    return count


@everywhere
def test_case_74_vote(executor):
    """A vote of the block as the condition of a `while`, which CPython's bytecode has twice."""
    x = np.array([0, 1, 5, 12, 3, 7, 2, 9], np.int32)
    gives(executor, vote_in_the_condition, [max(map(_rounds, x.tolist())) * 100] * 8, x)


@sarek.kernel
def warp_vote_in_the_condition(out, x):
    i = sarek.global_idx.x
    value = x[i]
    rounds = 0
    while sarek.warp.any(value > 0):
        rounds += 1
        if value % 2 == 1:
            value -= 1
            continue
        if value > 0:
            value //= 2
    out[i] = rounds


@pytest.mark.parametrize("executor", [name for name in executors() if has_warps(name)])
def test_case_74_warp(executor):
    """The same by a vote of a warp: warps of one block make different numbers of rounds."""
    x = np.random.default_rng(4).integers(0, 60, 64).astype(np.int32)
    x[32:] %= 9
    each = np.array([_rounds(int(v)) for v in x]).reshape(2, 32)
    expected = np.repeat(each.max(1), 32)
    gives(executor, warp_vote_in_the_condition, expected, x)
