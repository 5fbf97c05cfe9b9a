"""Control flow: loops with else, break, continue, early returns, short circuits."""

from __future__ import annotations

import itertools

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()
N = 137


@sarek.kernel
def collatz(steps, start):
    i = sarek.global_idx.x
    if i >= len(start):
        return
    value = start[i]
    count = 0
    while value != 1:
        if value % 2 == 0:
            value //= 2
        else:
            value = 3 * value + 1
        count += 1
    steps[i] = count


def _collatz(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


@corpus.add(collatz)
def collatz_int64(rng):
    start = rng.integers(1, 5000, N)
    return Launch(
        5,
        32,
        (poison(N, np.int32), start),
        (np.array([_collatz(int(v)) for v in start], np.int32), None),
    )


@sarek.kernel
def first_prime_factor(out, values):
    i = sarek.global_idx.x
    if i < len(values):
        n = values[i]
        for d in range(2, 60):
            if d * d > n:
                continue
            if n % d == 0:
                out[i] = d
                break
        else:
            out[i] = n


@corpus.add(first_prime_factor)
def for_else(rng):
    values = rng.integers(2, 3000, N).astype(np.int32)
    expected = [next((d for d in range(2, 60) if d * d <= v and v % d == 0), v) for v in values]
    return Launch(3, 64, (poison(N, np.int32), values), (np.array(expected, np.int32), None))


@sarek.kernel
def nested_exits(out, m):
    i = sarek.global_idx.x
    if i >= len(out):
        return
    total = 0
    for a in range(i % 5 + 3):
        b = 0
        while True:
            b += 1
            if b > a:
                break
            if (a + b + i) % 3 == 0:
                continue
            if a * b > m:
                out[i] = -total
                return
            total += a * b
        else:
            total += 1000
        if total > 40:
            break
    out[i] = total


def _nested_exits(i, m):
    total = 0
    for a in range(i % 5 + 3):
        b = 0
        while True:
            b += 1
            if b > a:
                break
            if (a + b + i) % 3 == 0:
                continue
            if a * b > m:
                return -total
            total += a * b
        if total > 40:
            break
    return total


@corpus.add(nested_exits)
def nested_loops_with_every_exit(rng):
    return Launch(
        3,
        50,
        (poison(N, np.int32), 11),
        (np.array([_nested_exits(i, 11) for i in range(N)], np.int32), None),
    )


@sarek.kernel
def guarded_values(out, x, n):
    i = sarek.global_idx.x
    if i < len(x):
        out[i, 0] = (i > 20 and x[i]) or n
        out[i, 1] = (x[i] > 0 and x[i] < 20 and x[i]) or (i > 9 and -1) or 8
        out[i, 2] = (not (i > 40 or x[i] > 0) and 0.5) or (0 < i < x[i] and 1.5) or n
        out[i, 3] = 4 if ((i % 2 == 0 and x[i]) or not (n and i % 3)) and i > 5 else 7
        steps = 0
        while ((x[i] > steps and 3) or (steps < i and 5) or 0) > steps:
            steps += 1
        out[i, 4] = steps + ((x[i] < 0 and 0) or n)


def _guarded_values(i, x, n):
    steps = 0
    while (3 if x > steps else 5 if steps < i else 0) > steps:
        steps += 1
    return (
        x if i > 20 and x else n,
        x if 0 < x < 20 else -1 if i > 9 else 8,
        0.5 if i <= 40 and x <= 0 else 1.5 if 0 < i < x else n,
        4 if i > 5 and ((i % 2 == 0 and x != 0) or n == 0 or i % 3 == 0) else 7,
        steps + n,
    )


@corpus.add(guarded_values)
def guards_and_values_of_different_types(rng):
    """Only the values that an `and` or `or` can give have a type in common, not what it tests."""
    x = rng.integers(-30, 30, N).astype(np.int32)
    expected = [_guarded_values(i, int(x[i]), 3) for i in range(N)]
    return Launch(3, 50, (poison((N, 5), np.float64), x, 3), (np.array(expected), None, None))


@sarek.kernel
def short_circuit(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        left = x[i - 1] if i > 0 else 0
        if (i + 1 < len(x) and x[i + 1] > x[i]) or left > x[i]:
            out[i] = left
        else:
            out[i] = x[i]


@corpus.add(short_circuit)
def guarded_neighbours(rng):
    x = rng.integers(-50, 50, N).astype(np.int32)
    left = np.concatenate([[0], x[:-1]]).astype(np.int32)
    right = np.concatenate([x[1:], [-1000]])
    return Launch(
        5,
        32,
        (poison(N, np.int32), x),
        (np.where((right > x) | (left > x), left, x).astype(np.int32), None),
    )


@sarek.kernel
def range_ends(out, start, stop, step):
    i = sarek.global_idx.x
    if i < len(out):
        passes = 0
        last = 0
        for k in range(start[i], stop[i], step[i]):
            passes += 1
            last = k
            if passes == 5:
                break
        out[i, 0] = passes
        out[i, 1] = last


@corpus.add(range_ends)
def ranges_at_the_ends_of_int64(rng):
    big = 2**63 - 1
    rows = [
        (0, 10, 3), (10, 0, -3), (5, 2, 1), (2, 5, -1), (0, 0, 1), (big - 2, big, 1),
        (-big - 1, -big + 3, 2), (big, -big - 1, -(2**62)), (-big, big, 2**62),
        (big - 1, big, 2**40),
    ]  # fmt: skip
    start, stop, step = (np.array(v, np.int64) for v in zip(*rows, strict=True))
    expected = []
    for row in rows:
        seen = list(itertools.islice(range(*row), 5))
        expected.append((len(seen), seen[-1] if seen else 0))
    return Launch(
        1,
        16,
        (poison((10, 2), np.int64), start, stop, step),
        (np.array(expected), None, None, None),
    )


@sarek.kernel
def swaps(out, n):
    i = sarek.global_idx.x
    if i < len(out):
        a, b = 0, 1
        for _ in range((i + n) % 40):
            a, b = b, a + b
        out[i] = a


@corpus.add(swaps)
def fibonacci_by_tuple_assignment(rng):
    f = [0, 1]
    while len(f) < 41:
        f.append(f[-1] + f[-2])
    return Launch(
        2, 96, (poison(N, np.int64), 7), (np.array([f[(i + 7) % 40] for i in range(N)]), None)
    )


@sarek.kernel
def chained(out, lo, hi):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = lo < i <= hi


@corpus.add(chained)
def chained_comparison(rng):
    i = np.arange(N)
    return Launch(2, 96, (poison(N, bool), 20, 90), ((i > 20) & (i <= 90), None, None))


@sarek.kernel
def tuple_loop(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        total = 0
        for k in (1, 2, 4, 8):
            if x[i] == k:
                continue
            if i % 16 in (3, 5):
                break
            total += k * x[i]
        out[i] = total


def _tuple_loop(i, v):
    total = 0
    for k in (1, 2, 4, 8):
        if v == k:
            continue
        if i % 16 in (3, 5):
            break
        total += k * v
    return total


@corpus.add(tuple_loop)
def loop_over_a_constant_tuple(rng):
    x = rng.integers(0, 9, N).astype(np.int32)
    expected = np.array([_tuple_loop(i, int(v)) for i, v in enumerate(x)], np.int32)
    return Launch(3, 64, (poison(N, np.int32), x), (expected, None))


@sarek.kernel
def sometimes_assigned(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        if x[i] > 0:
            scale = x[i] * 2
        out[i] = scale if x[i] > 0 else -1


@corpus.add(sometimes_assigned)
def assigned_on_one_path(rng):
    x = rng.integers(-9, 9, N).astype(np.int32)
    return Launch(
        3, 64, (poison(N, np.int32), x), (np.where(x > 0, x * 2, -1).astype(np.int32), None)
    )


@sarek.kernel
def step_is_a_sum(out, n, m):
    i = sarek.global_idx.x
    if i < len(out):
        total = 0
        for k in range(m - 1, 20 + i, n + 2):
            total = total * 3 + k
        out[i] = total % 1000


@corpus.add(step_is_a_sum)
def bounds_and_step_of_several_terms(rng):
    def total(i):
        result = 0
        for k in range(4, 20 + i, 3):
            result = result * 3 + k
        return result % 1000

    expected = np.array([total(i) for i in range(20)], np.int32)
    return Launch(1, 32, (poison(20, np.int32), 1, 5), (expected, None, None))


@sarek.kernel
def choice_in_a_while_with_else(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        n = i % 4
        while x[i] > n if n % 2 else x[i] > 3 * n:
            n += 1
            if n > 15:
                break
        else:
            if n > 3:
                out[i, 1] = n * 2
            else:
                out[i, 1] = -1
        out[i, 0] = n


def _choice_in_a_while(i, value):
    n = i % 4
    second = None
    while value > n if n % 2 else value > 3 * n:
        n += 1
        if n > 15:
            break
    else:
        second = n * 2 if n > 3 else -1
    return n, second


@corpus.add(choice_in_a_while_with_else)
def break_and_else_meet_behind_a_loop(rng):
    x = rng.integers(0, 40, N).astype(np.int32)
    out = poison((N, 2), np.int32)
    expected = out.copy()
    for i in range(N):
        first, second = _choice_in_a_while(i, int(x[i]))
        expected[i, 0] = first
        if second is not None:
            expected[i, 1] = second
    return Launch(3, 64, (out, x), (expected, None))


@sarek.function
def _steps(limit):
    steps = sarek.int32(0)
    while steps < 8 and limit > 3:
        steps += 1
    return steps


@sarek.kernel
def counters_outlive_a_loop_left_apart(numbers, reals, flags, steps, x):
    t = sarek.thread_idx.x
    shared = sarek.shared.array(32, sarek.int32)
    byte = sarek.int8(0)
    short = sarek.uint16(0)
    word = sarek.int32(0)
    long = sarek.uint64(0)
    single = sarek.float32(0)
    double = 0.0
    flag = False
    limit = x[t]
    while word < 8 and limit > 3:
        byte += sarek.int8(1)
        short += sarek.uint16(2)
        word += sarek.int32(3)
        long += sarek.uint64(4)
        single += sarek.float32(0.5)
        double += 0.25
        flag = not flag
    taken = _steps(x[t])
    shared[t] = word
    sarek.barrier()
    word += shared[31 - t]
    sarek.barrier()
    numbers[t, 0] = byte
    numbers[t, 1] = short
    numbers[t, 2] = word
    numbers[t, 3] = long
    reals[t, 0] = single
    reals[t, 1] = double
    flags[t] = flag
    steps[t] = taken


@corpus.add(counters_outlive_a_loop_left_apart)
def values_left_apart_live_across_a_barrier(rng):
    x = rng.integers(-2, 12, 32).astype(np.int32)
    passes = np.where(x > 3, 3, 0)
    word = 3 * passes
    numbers = np.stack([passes, 2 * passes, word + word[::-1], 4 * passes], axis=1)
    reals = np.stack([passes / 2, passes / 4], axis=1)
    return Launch(
        1,
        32,
        (
            poison((32, 4), np.int64),
            poison((32, 2), np.float64),
            np.zeros(32, np.bool_),
            poison(32, np.int32),
            x,
        ),
        (
            numbers.astype(np.int64),
            reals,
            passes % 2 == 1,
            np.where(x > 3, 8, 0).astype(np.int32),
            None,
        ),
    )


@sarek.kernel
def counter_outlives_an_all_or_nothing_loop(out, x):
    t = sarek.thread_idx.x
    shared = sarek.shared.array(32, sarek.int32)
    count = 0
    least = x[t]
    while count < 8 and least <= 3:
        count += 1
    shared[t] = t
    sarek.barrier()
    other = shared[t ^ 1]
    sarek.barrier()
    out[t, 0] = other
    out[t, 1] += count


@corpus.add(counter_outlives_an_all_or_nothing_loop)
def count_of_a_loop_taken_whole_or_not(rng):
    x = rng.integers(0, 8, 32).astype(np.float32)
    t = np.arange(32, dtype=np.int32)
    expected = np.stack([t ^ 1, 5 + np.where(x <= 3, 8, 0).astype(np.int32)], axis=1)
    return Launch(1, 32, (np.full((32, 2), 5, np.int32), x), (expected, None))


@sarek.kernel
def ordered_sums_and_products(sums, products, x, n):
    i = sarek.global_idx.x
    total = np.float32(0)
    product = np.float32(1)
    for _j in range(n):
        total += x[i]
    for j in range(n):
        product *= x[i] + j
    sums[i] = total
    products[i] = product


def _ordered(block):
    def launch(rng):
        x = (rng.random(12) + 0.5).astype(np.float32)
        total, product = np.zeros(12, np.float32), np.ones(12, np.float32)
        for j in range(25):
            total += x
            product *= x + np.float32(j)
        out = poison(12, np.float32), poison(12, np.float32)
        return Launch(12 // block, block, (*out, x, 25), (total, product, None, None))

    launch.__name__ = f"order_of_float_operations_in_blocks_of_{block}"
    return launch


for _block in (1, 4, 12):
    corpus.add(ordered_sums_and_products)(_ordered(_block))
