"""Recursion: bounded, mutual, through arguments, in tail position; inlined functions."""

from __future__ import annotations

import math

import numba
import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()
N = 40


def index_launch(*columns):
    """The launch of a kernel that stores one column of integers for each part."""
    expected = np.array(columns, np.int64).T.copy()
    return Launch(2, 32, (poison(expected.shape, np.int64),), (expected,))


@sarek.function(inline_depth=8)
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@sarek.function(inline_depth=16)
def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


@sarek.function(inline_depth=6)
def ackermann(m, n):
    while m > 0:
        n = 1 if n == 0 else ackermann(m, n - 1)
        m -= 1
    return n + 1


@sarek.function(inline_depth=5)
def ping(n, f):
    return f(n - 1, 3) if n > 0 else 0


@sarek.function
def pong(n, weight):
    return ping(n - 1, pong) * 2 + weight if n > 0 else 1


@sarek.kernel
def bounded(out):
    i = sarek.global_idx.x
    if i < len(out):
        out[i, 0] = fibonacci(i % 10)
        out[i, 1] = factorial(i % 18)
        out[i, 2] = ackermann(i % 3, 2)
        out[i, 3] = ping(i % 11, pong)
        out[i, 4] = pong(i % 11, i)


@corpus.add(bounded)
def bounded_recursion(rng):
    fib = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]

    def pinged(n):
        return ponged(n - 1, 3) if n > 0 else 0

    def ponged(n, weight):
        return pinged(n - 1) * 2 + weight if n > 0 else 1

    rows = range(N)
    return index_launch(
        [fib[i % 10] for i in rows],
        [math.factorial(i % 18) for i in rows],
        [(3, 4, 7)[i % 3] for i in rows],
        [pinged(i % 11) for i in rows],
        [ponged(i % 11, i) for i in rows],
    )


@sarek.function(inline_depth=9)
def halvings(n):
    """A recursive function that is compiled from its tree, for its assertion."""
    assert n >= 0, "negative"
    if n < 2:
        return 0
    return 1 + halvings(n // 2)


@sarek.kernel
def logarithms(out):
    i = sarek.global_idx.x
    if i < len(out):
        out[i, 0] = halvings(i)


@corpus.add(logarithms)
def recursion_with_an_assertion(rng):
    return index_launch([max(0, i.bit_length() - 1) for i in range(N)])


@sarek.function(inline_depth=6)
def sort(row, low, high):
    """Quicksort in place: a function without results that calls itself twice."""
    if low >= high:
        return
    pivot = row[high]
    place = low
    for k in range(low, high):
        if row[k] < pivot:
            row[k], row[place] = row[place], row[k]
            place += 1
    row[high], row[place] = row[place], row[high]
    sort(row, low, place - 1)
    sort(row, place + 1, high)


@sarek.kernel
def sorting(a):
    i = sarek.global_idx.x
    if i < len(a):
        sort(a[i], 0, a.shape[1] - 1)


@corpus.add(sorting)
def recursion_on_views_without_result(rng):
    a = rng.integers(0, 50, (N, 7)).astype(np.int32)
    return Launch(2, 32, (a,), (np.sort(a, 1),))


@sarek.function
def divisor(a, b):
    return a if b == 0 else divisor(b, a % b)


@numba.njit
def swapping(a, b, n, total=0):
    """Arguments that are parameters of another name, and a local of its own in each call."""
    if n > 0:
        y = a * 10 + b
        return swapping(n=n - 1, a=b, b=a, total=total * 3 + y)
    return total


@sarek.function
def power(x, n, result=1):
    if n == 0:
        return result
    if n % 2:
        return power(x * x, n // 2, result * x)
    return power(x * x, n // 2, result)


@sarek.function
def count_down(row, k):
    if k >= 0:
        row[k] += k
        if row[k] % 2:
            count_down(row, k - 1)
        else:
            row[k] *= 2
            count_down(row, k - 2)


@sarek.function
def search(row, wanted, low, high, visit):
    """Binary search, a loop within a tail-recursive function, which passes a function on."""
    while low < high and visit(row[low]) < wanted:
        middle = (low + high) // 2
        if visit(row[middle]) < wanted:
            return search(row, wanted, middle + 1, high, visit)
        low, high = low + 1, middle
    return low


@sarek.function
def doubled(v):
    return v * 2


@sarek.kernel
def tails(out, x, a, found):
    i = sarek.global_idx.x
    if i < len(x):
        out[i, 0] = divisor(i * 12, 18)
        out[i, 1] = swapping(1, 2, i % 4)
        count_down(out[i], 1 + i % 2)
        x[i] = power(x[i], i % 6)
        found[i] = search(a, i, 0, len(a), doubled)


@corpus.add(tails)
def tail_recursion(rng):
    x = rng.uniform(-2, 2, N).astype(np.float32)
    a = np.sort(rng.integers(0, 30, 16)).astype(np.int32)
    rows = np.zeros((N, 3), np.int64)
    powers = x.copy()
    for i in range(N):
        rows[i, 0] = math.gcd(i * 12, 18)
        total, pair = 0, (1, 2)
        for _ in range(i % 4):
            total, pair = total * 3 + pair[0] * 10 + pair[1], pair[::-1]
        rows[i, 1] = total
        rows[i, 2] = 5
        k = 1 + i % 2
        while k >= 0:
            rows[i, k] += k
            step = 1 if rows[i, k] % 2 else 2
            rows[i, k] *= step
            k -= step
        base, exponent, result = x[i], i % 6, np.float32(1)
        while exponent:
            result = result * base if exponent % 2 else result
            base, exponent = base * base, exponent // 2
        powers[i] = result
    out = np.full((N, 3), 5, np.int64)
    found = np.searchsorted(a * 2, np.arange(N)).astype(np.int64)
    return Launch(2, 32, (out, x, a, poison(N, np.int64)), (rows, powers, None, found))


@sarek.function(inline=True)
def first_above(row, limit):
    for k in range(len(row)):
        if row[k] > limit:
            return k, row[k]
    return -1, limit


@numba.njit(inline="always")
def offset(v):
    return v + 1


@sarek.kernel
def inlined(out, a):
    i = sarek.global_idx.x
    if i < len(a):
        place, value = first_above(a[i], 20)
        out[i, 0] = offset(place)
        out[i, 1] = offset(value) if place > 2 else offset(i)


@corpus.add(inlined)
def inlined_functions(rng):
    a = rng.integers(0, 50, (N, 6)).astype(np.int64)
    a[3] = 1
    expected = []
    for i, row in enumerate(a.tolist()):
        place = next((k for k, v in enumerate(row) if v > 20), -1)
        value = row[place] if place >= 0 else 20
        expected.append((place + 1, value + 1 if place > 2 else i + 1))
    return Launch(2, 32, (poison((N, 2), np.int64), a), (np.array(expected, np.int64), None))
