"""Cases from the field: control flow (section E of the list of cases)."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.conformance.everywhere import everywhere, gives


@sarek.kernel
def continue_then_stop(out):
    t = sarek.thread_idx.x
    total = 0
    for i in range(10):
        if i % 2 == 0:
            continue
        total += i
        if total > t * 4:
            break
    out[t] = total


@everywhere
def test_case_55_continue(executor):
    """`continue` goes on with the next value of the range."""
    gives(executor, continue_then_stop, [1, 9, 9, 16, 25, 25])


@sarek.kernel
def store_before_continue(out):
    t = sarek.thread_idx.x
    x = 0
    effects = 0
    for s in range(3):
        if s == 0:
            x = 1
            out[t, 1] = 5
            continue
        if s != 0:
            effects += 1
    out[t, 0] = x + 10 * effects


@everywhere
def test_case_56_store(executor):
    """What stands before `continue` takes effect."""
    gives(executor, store_before_continue, [[21, 5]] * 4)


@sarek.function
def first_multiple(limit, n):
    for a in range(2, limit):
        for b in range(2, limit):
            if a * b == n:
                return a * 100 + b
        if a > n:
            return -1
    return -2


@sarek.function
def halvings(n):
    count = 0
    while True:
        if n <= 1:
            return count
        n = n // 2
        count += 1


@sarek.kernel
def returns(out):
    t = sarek.thread_idx.x
    out[t, 0] = first_multiple(10, t)
    out[t, 1] = halvings(t)
    for i in range(5):
        for j in range(5):
            if i * j == t:
                out[t, 2] = i * 10 + j
                return
    out[t, 2] = -1


def _found(n, starts, none):
    pairs = ((a, b) for a in starts for b in starts if a * b == n)
    return next(pairs, none)


@everywhere
def test_case_58_return(executor):
    """`return` in an inner loop ends the function, and what follows the loops does not run."""
    expected = []
    for t in range(16):
        pair = _found(t, range(2, 10), None)
        first = pair[0] * 100 + pair[1] if pair else -1 if t < 9 else -2
        inner = _found(t, range(5), None)
        expected.append(
            (first, t.bit_length() - 1 if t else 0, inner[0] * 10 + inner[1] if inner else -1)
        )
    gives(executor, returns, expected)


@sarek.kernel
def grid_stride(out):
    for i in range(sarek.global_idx.x, len(out), sarek.gridsize(1)):
        if i % 2 == 1:
            continue
        out[i] = i


@sarek.kernel
def odd_threads_return(out):
    i = sarek.global_idx.x
    if i % 2 == 1 or i >= len(out):
        return
    out[i] = i


@everywhere
def test_case_59_early(executor):
    """A thread that returns early keeps no other from its element, in a grid-stride loop too."""
    expected = [i if i % 2 == 0 else 91 for i in range(1001)]
    gives(executor, odd_threads_return, expected, grid=16, block=64)
    gives(executor, grid_stride, expected, grid=3, block=32)


@sarek.kernel
def nested_break(out, k):
    t = sarek.thread_idx.x
    res = 0
    for _ in range(10):
        for j in range(10):
            if j >= t:
                break
        res += 1
    if k:
        for i in range(10):
            res += i
            break
    out[t] = res


@everywhere
def test_case_61_break(executor):
    """`break` leaves its own loop only."""
    gives(executor, nested_break, [10] * 4, 1)


@sarek.kernel
def bare_exits(out):
    t = sarek.thread_idx.x
    total = 0
    for i in range(4):
        total += i
        continue
        total += 100
    for i in range(4):
        total += 10 + i
        break
    while True:
        break
    out[t] = total


@everywhere
def test_case_62_bare(executor):
    """`continue` and `break` that nothing guards; what follows them is dead."""
    gives(executor, bare_exits, [16] * 3)


@sarek.kernel
def one_variable_for_two_loops(out, n, off):
    t = sarek.thread_idx.x
    total = 0
    for j in range(3):
        total += j
    for j in range(n):
        total += 10 * j
    for i in range(n):
        i = i + off
        total += 1000 * i
    out[t, 0] = total
    out[t, 1] = j


@everywhere
def test_case_64_rebound(executor):
    """A loop's variable may serve a second loop, and may be assigned in its body."""
    gives(executor, one_variable_for_two_loops, [[3 + 60 + 1000 * 14, 3]] * 2, 4, 2)


@sarek.kernel
def argument_assigned(out, s):
    t = sarek.thread_idx.x
    for k in range(3):
        out[t, k] = s
        s = t + s


@everywhere
def test_case_65_argument(executor):
    """An argument can be assigned, whatever number it is."""
    for s in (1, 2, 0, np.int32(1)):
        gives(executor, argument_assigned, [[s, s + t, s + 2 * t] for t in range(3)], s)


@sarek.kernel
def empty_ranges(out, n):
    t = sarek.thread_idx.x
    passes = 0
    for _ in range(5, 2):
        passes += 1
    for _ in range(-3):
        passes += 1
    for _ in range(0):
        passes += 1
    for a in range(t):
        for _ in range(a, n - t):
            passes += 100
    out[t] = passes


@everywhere
def test_case_67_empty(executor):
    """A range whose start is beyond its stop has no pass."""
    expected = [sum(100 for a in range(t) for _ in range(a, 2 - t)) for t in range(4)]
    gives(executor, empty_ranges, expected, 2)


@sarek.kernel
def far_ranges(out, stop):
    t = sarek.thread_idx.x
    seen = 0
    for i in range(2147483644, stop):
        seen += i - 2147483640
    for i in range(0, 65536 * 65535 // 2 + 1, 2):
        seen += 1
        if i > 6 * t:
            break
    for _ in range(2147483646, stop, 2):
        seen += 1000
    out[t] = seen


@everywhere
def test_case_68_far(executor):
    """A range up to the end of int32 ends, with any step."""
    expected = [(4 + 5 + 6) + (3 * t + 2) + 1000 for t in range(4)]
    gives(executor, far_ranges, expected, 2147483647)


@sarek.function
def counted(count, result):
    sarek.atomic.add(count, 0, 1)
    return result


@sarek.kernel
def short_circuits(out, x, calls):
    t = sarek.thread_idx.x
    total = 0
    if t < len(x) and x[t] > 0:
        total += 1
    if t >= len(x) or 12 // x[t] > 3:
        total += 10
    if t % 2 == 1 and counted(calls, t) > 0:
        total += 100
    value = t % 3 == 0 or counted(calls, t) > 4
    total += 1000 if value else 2000
    out[t] = total


@everywhere
def test_case_70_short(executor):
    """`and` and `or` evaluate their right side only where it decides; effects are counted."""
    x = np.array([3, 0, 5], np.int32)
    calls = np.zeros(1, np.int32)
    expected, count = [], 0
    for t in range(8):
        total = int(t < 3 and x[t] > 0)
        total += 10 * (t >= 3 or (x[t] != 0 and 12 // int(x[t]) > 3))
        total += 100 * (t % 2)
        count += t % 2 + (t % 3 != 0)
        expected.append(total + (1000 if t % 3 == 0 or t > 4 else 2000))
    if executor == "emulation":
        x = np.array([3, 1, 5], np.int32)  # CPython has no quotient by zero
        expected[1] = 1 + 10 + 100 + 2000
    gives(executor, short_circuits, expected, x, calls)
    assert calls[0] == count


@sarek.kernel
def chains(out, x, counter):
    t = sarek.thread_idx.x
    if 0 < x[t] < 1:
        out[t, 0] = 1
    else:
        out[t, 0] = 0
    out[t, 1] = 0 <= counted(counter, t) < 2


@everywhere
def test_case_71_chain(executor):
    """A chained comparison is a conjunction, its middle evaluated once."""
    counter = np.zeros(1, np.int32)
    x = np.array([0.5, -1, 2], np.float32)
    gives(executor, chains, [[1, 1], [0, 1], [0, 0]], x, counter)
    assert counter[0] == 3


@sarek.kernel
def break_in_nested_if(out):
    t = sarek.thread_idx.x
    n = t
    steps = 0
    while n > 0:
        steps += 1
        if n > 2:
            if n % 3 == 0:
                if n == 9:
                    steps += 100
                    break
                n -= 3
                continue
            n -= 1
        else:
            n -= 2
            if n < 0:
                steps += 10
    else:
        steps += 1000
    out[t] = steps


def _break_in_nested_if(n):
    steps = 0
    while n > 0:
        steps += 1
        if n > 2:
            if n % 3 == 0:
                if n == 9:
                    return steps + 100
                n -= 3
                continue
            n -= 1
        else:
            n -= 2
            if n < 0:
                steps += 10
    return steps + 1000


@everywhere
def test_case_73_nested(executor):
    """`break` and `continue` inside nested ifs inside a `while` with `else`."""
    gives(executor, break_in_nested_if, [_break_in_nested_if(n) for n in range(16)])


@sarek.kernel
def loop_around_a_barrier(out, x):
    t = sarek.thread_idx.x
    any_left = sarek.shared.array(1, sarek.int32)
    value = x[t]
    rounds = 0
    while True:
        if t == 0:
            any_left[0] = 0
        sarek.barrier()
        if value > 0:
            sarek.atomic.max(any_left, 0, 1)
        sarek.barrier()
        left = any_left[0]
        sarek.barrier()
        if left == 0:
            break
        rounds += 1
        if value % 2 == 1:
            value -= 1
            continue
        value //= 2
    out[t] = rounds


@everywhere
def test_case_74_barrier(executor):
    """A loop that a vote ends, with `if` and `continue` after its barriers, ends."""
    x = np.array([0, 1, 5, 12, 3, 7, 2, 9], np.int32)

    def rounds(v):
        count = 0
        while v > 0:
            v = v - 1 if v % 2 else v // 2
            count += 1
        return count

    gives(executor, loop_around_a_barrier, [max(map(rounds, map(int, x)))] * 8, x)
