"""`for` over constant tuples: items of any types, jumps, nesting, captured tuples."""

from __future__ import annotations

import math

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()
N = 70


@sarek.function
def twice(v):
    return 2 * v


@sarek.function
def square(v):
    return v * v


class Filters:
    """Captured by their class."""

    KERNEL = ((-1, np.float32(0.25)), (0, np.float32(0.5)), (1, np.float32(0.25)))


STEPS = (twice, square, math.sqrt)
NOTHING = ()


@sarek.kernel
def functions_one_by_one(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        v = x[i]
        for step in STEPS:
            v = step(v)
        for weight, step in ((1, twice), (0.5, square)):
            v += weight * step(x[i])
        for _ in NOTHING:
            v = 0.0
        out[i] = v


@corpus.add(functions_one_by_one)
def functions_in_a_tuple(rng):
    x = rng.random(N)
    expected = np.sqrt((2 * x) * (2 * x))
    expected = expected + 1 * (2 * x)
    expected = expected + 0.5 * (x * x)
    return Launch(2, 64, (poison(N, np.float64), x), (expected, None))


@sarek.kernel
def arrays_one_by_one(count, a, b, c):
    """Arrays of three types; what breaks out of one pass leaves the loop."""
    i = sarek.global_idx.x
    n = 0
    for x in (a, b, c):
        if x[i] < 0:
            continue
        if x[i] > 8:
            n += 100
            break
        for j in range(4):
            if j > x[i]:
                break
            n += 1
    else:
        n += 1000
    count[i] = n


def _arrays_one_by_one(*values):
    n = 0
    for v in values:
        if v < 0:
            continue
        if v > 8:
            return n + 100
        n += sum(j <= v for j in range(4))
    return n + 1000


@corpus.add(arrays_one_by_one)
def arrays_in_a_tuple(rng):
    a, b, c = (rng.integers(-3, 11, 64).astype(t) for t in (np.int8, np.float32, np.int64))
    expected = [_arrays_one_by_one(*v) for v in zip(a, b, c, strict=True)]
    return Launch(
        1, 64, (poison(64, np.int32), a, b, c), (np.array(expected, np.int32), None, None, None)
    )


@sarek.kernel
def smooth(out, x):
    """Nested tuples, shared memory and a barrier in each pass."""
    tile = sarek.shared.array(64, sarek.float32)
    t = sarek.thread_idx.x
    v = x[t]
    for first in (True, False):
        with sarek.superstep():
            tile[t] = v
        v = sarek.float32(0)
        for offset, weight in Filters.KERNEL:
            j = t + offset
            if j < 0 or j > 63:
                if not first:
                    break
                continue
            v += weight * tile[j]
        sarek.barrier()
    out[t] = v


@corpus.add(smooth)
def nested_tuples_and_barriers(rng):
    x = rng.random(64).astype(np.float32)
    v = x.copy()
    for first in (True, False):
        tile, v = v, np.zeros(64, np.float32)
        for t in range(64):
            for offset, weight in Filters.KERNEL:
                if not 0 <= t + offset <= 63:
                    if not first:
                        break
                    continue
                v[t] += weight * tile[t + offset]
    return Launch(1, 64, (poison(64, np.float32), x), (v, None))


@sarek.kernel
def in_other_statements(out, x):
    """In a loop, in `match`, with a return; the name keeps the last item."""
    i = sarek.global_idx.x
    if i >= len(x):
        return
    total = 0
    for j in range(3):
        for k in (1, 10, 100):
            match x[i]:
                case 0:
                    break
                case 1:
                    continue
                case 7:
                    out[i] = -k
                    return
                case _:
                    total += k * j
        else:
            total += 5
    out[i] = total * 1000 + k


def _in_other_statements(v):
    total = 0
    for j in range(3):
        for k in (1, 10, 100):
            if v == 0:
                break
            if v == 1:
                continue
            if v == 7:
                return -k
            total += k * j
        else:
            total += 5
    return total * 1000 + k


@corpus.add(in_other_statements)
def tuple_loops_in_other_statements(rng):
    x = rng.integers(0, 9, N).astype(np.int32)
    expected = np.array([_in_other_statements(int(v)) for v in x], np.int64)
    return Launch(2, 64, (poison(N, np.int64), x), (expected, None))


@sarek.kernel
def evaluated_first(out, x):
    """The body changes what the items are made of; the items are those of the beginning."""
    i = sarek.global_idx.x
    if i < len(x):
        a, total = 3, 0
        for k, step in ((2, twice), (a % 2, twice), (x[i], square), (-a, twice), (a, abs)):
            total = total * 10 + k + int(step(1.0))
            a += 5
            x[i] = -1
        for v in (a, a + 1, total % 7):
            a = 2 * v
        out[i] = total * 100 + a


@corpus.add(evaluated_first)
def items_that_a_body_would_change(rng):
    x = rng.integers(0, 9, N).astype(np.int32)
    expected = []
    for v in x.tolist():
        total = 0
        for k, made in ((2, 2), (1, 2), (v, 1), (-3, 2), (3, 1)):
            total = total * 10 + k + made
        expected.append(total * 100 + 2 * (total % 7))
    arguments = (poison(N, np.int64), x)
    return Launch(2, 64, arguments, (np.array(expected), np.full(N, -1, np.int32)))
