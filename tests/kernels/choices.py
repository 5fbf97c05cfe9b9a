"""Threads that go apart to different elements of arrays of their own."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison
from tests.kernels.variants import evaluated, nodes_and_values

corpus = Corpus()
N = 48
LENGTH = 12


@sarek.function
def this_or_next(values, k, x):
    if x > 0:
        return values[k]
    return values[k + 1]


def make_reading(dtype):
    @sarek.kernel
    def reading(out, given, count):
        values = sarek.local.array(LENGTH, dtype)
        i = sarek.global_idx.x
        x = given[i]
        for k in range(LENGTH):
            values[k] = x + k
        for k in range(count):
            values[k] = this_or_next(values, k, x)
        out[i] = values[count - 1]

    return reading


def _read(rng, dtype):
    x = rng.integers(-9, 9, N).astype(dtype)
    expected = x + 4 + (x <= 0)
    return Launch(2, 24, (poison(N, dtype), x, 5), (expected.astype(dtype), None, None))


@corpus.add(make_reading(np.int32))
def one_of_two_elements_read_int32(rng):
    return _read(rng, np.int32)


@corpus.add(make_reading(np.int64))
def one_of_two_elements_read_int64(rng):
    return _read(rng, np.int64)


@corpus.add(make_reading(np.float32))
def one_of_two_elements_read_float32(rng):
    return _read(rng, np.float32)


@sarek.kernel
def writing(out, given, places, count):
    """Places are read ahead, so that both ways end in a write through an address known before."""
    values = sarek.local.array(LENGTH, sarek.int32)
    i = sarek.global_idx.x
    for k in range(LENGTH):
        values[k] = k
    for k in range(count):
        here, there = places[k], places[k + 1]
        values[here] += given[i]
        values[there] -= 1
        if given[i] > k:
            values[here] = k + 100
        else:
            values[there] = k + 100
    for k in range(LENGTH):
        out[i, k] = values[k]


@corpus.add(writing)
def one_of_two_elements_written(rng):
    places = rng.integers(0, LENGTH, 9).astype(np.int32)
    given = rng.integers(-9, 9, N).astype(np.int32)
    values = np.tile(np.arange(LENGTH, dtype=np.int32), (N, 1))
    for k in range(8):
        values[:, places[k]] += given
        values[:, places[k + 1]] -= 1
        where = np.where(given > k, places[k], places[k + 1])
        values[np.arange(N), where] = k + 100
    return Launch(2, 24, (poison((N, LENGTH), np.int32), given, places, 8), (values, *[None] * 3))


@sarek.kernel
def evaluate_apart(out, nodes, arguments):
    """As `variants.evaluate`, with an array of the thread for the values."""
    values = sarek.local.array(LENGTH, sarek.float64)
    i = sarek.global_idx.x
    if i < len(arguments):
        for k in range(len(nodes)):
            values[k] = evaluated(nodes, values, k, arguments[i])
        out[i] = values[len(nodes) - 1]


@corpus.add(evaluate_apart)
def an_expression_of_nodes_in_an_array_of_the_thread(rng):
    nodes, x, values = nodes_and_values(rng)
    return Launch(2, 16, (poison(len(x), np.float64), nodes, x), (values[:, -1], None, None))


@sarek.function
def counted(values, places, k, x, n):
    if n & 1 == 0:
        return values[places[k & 15]]
    for j in range(n):
        if places[k & 15] > 1:
            here = values[(j + 6) & 7] + values[places[k & 15]]
            return here + (values[places[j & 15]] - values[k & 7])
    return values[6]


@sarek.kernel
def alike(out, given, places, n):
    """All threads choose alike, under a mask: the process ended on Intel's runtime."""
    values = sarek.local.array(8, sarek.int32)
    i = sarek.global_idx.x
    if i < len(given):
        x = given[i]
        for k in range(8):
            values[k] = x + k * 5
        s = x
        if places[n & 15] > 1:
            values[n & 7] = counted(values, places, n, x, n)
            values[n & 7] = counted(values, places, n, x, n)
        elif places[n & 15] > 1:
            for _ in range(n):
                s += counted(values, places, n, x, n)
        values[n & 7] = counted(values, places, n, x, n)
        s += (values[n & 7] + values[2]) - values[0]
        for k in range(8):
            s = s * 3 + values[k]
        out[i] = s


@corpus.add(alike)
def elements_chosen_alike_under_a_mask(rng):
    x = rng.integers(-9, 9, N).astype(np.int32)
    places = rng.integers(0, 2, 16).astype(np.int32)
    values = x[:, None] + np.arange(8, dtype=np.int32) * 5
    values[:, 3] = values[:, 6]
    s = x + values[:, 3] + values[:, 2] - values[:, 0]
    for k in range(8):
        s = s * 3 + values[:, k]
    return Launch(2, 24, (poison(N, np.int32), x, places, 3), (s, None, None, None))


ROW = np.dtype([("name", np.int32), ("entries", np.float32, 6)])


@sarek.function
def entry(row, k, x):
    if x > row.entries[k]:
        return row.entries[k + 1]
    return row.entries[k]


@sarek.kernel
def of_records(out, rows, xs):
    i = sarek.global_idx.x
    row = rows[i].copy()
    for k in range(len(row.entries) - 1):
        row.entries[k] = entry(row, k, xs[i])
    total = np.float32(0)
    for k in range(len(row.entries)):
        total = total * np.float32(2) + row.entries[k]
    out[i] = total


@corpus.add(of_records)
def one_of_two_elements_of_an_array_in_a_record(rng):
    rows = np.zeros(N, ROW)
    rows["entries"] = rng.integers(0, 9, (N, 6))
    x = rng.integers(0, 9, N).astype(np.float32)
    entries = rows["entries"].copy()
    entries[:, :5] = np.where(x[:, None] > entries[:, :5], entries[:, 1:], entries[:, :5])
    expected = (entries @ 2 ** np.arange(5, -1, -1)).astype(np.float32)
    return Launch(2, 24, (poison(N, np.float32), rows, x), (expected, None, None))
