"""Device functions, captured values, defaults, tuples."""

from __future__ import annotations

import enum

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()
N = 90
SCALE = 3
SHAPE = (5, 7)


class Mode(enum.IntEnum):
    PLAIN = 0
    DOUBLE = 2


@sarek.function
def clamp(value, low=0, high=10):
    if value < low:
        return low
    if value > high:
        return high
    return value


@sarek.function
def quotient_and_rest(a, b):
    return a // b, a % b


@sarek.function
def find(row, wanted):
    for k in range(len(row)):
        if row[k] == wanted:
            return k
    return -1


@sarek.function
def swap_ends(row):
    last = len(row) - 1
    row[0], row[last] = row[last], row[0]


@sarek.kernel
def helpers(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        q, r = quotient_and_rest(x[i], 7)
        out[i, 0] = clamp(x[i])
        out[i, 1] = clamp(x[i], high=SCALE)
        out[i, 2] = q * 100 + r
        out[i, 3] = clamp(x[i], -2, 2) + clamp(low=-5, value=x[i])


@corpus.add(helpers)
def positional_keyword_default(rng):
    x = rng.integers(-30, 30, N).astype(np.int32)
    columns = [
        np.clip(x, 0, 10),
        np.clip(x, 0, 3),
        x // 7 * 100 + x % 7,
        np.clip(x, -2, 2) + np.clip(x, -5, 10),
    ]
    return Launch(
        2, 64, (poison((N, 4), np.int32), x), (np.stack(columns, 1).astype(np.int32), None)
    )


@sarek.kernel
def array_helpers(found, a, wanted):
    i = sarek.global_idx.x
    if i < len(a):
        found[i] = find(a[i], wanted)
        swap_ends(a[i, 1:])


@corpus.add(array_helpers)
def views_into_helpers(rng):
    a = rng.integers(0, 9, (40, 6)).astype(np.int32)
    found = [next((k for k, v in enumerate(row) if v == 4), -1) for row in a]
    after = a.copy()
    after[:, [1, 5]] = a[:, [5, 1]]
    return Launch(2, 32, (poison(40, np.int32), a, 4), (np.array(found, np.int32), after, None))


@sarek.function
def block_total(values, t):
    buffer = sarek.shared.array(32, sarek.int32)
    buffer[t] = values
    sarek.barrier()
    total = 0
    for k in range(32):
        total += buffer[k]
    sarek.barrier()
    return total


@sarek.kernel
def barrier_in_helper(out, x):
    t = sarek.thread_idx.x
    i = sarek.global_idx.x
    out[i] = block_total(x[i], t) + block_total(x[i] * 2, t)


@corpus.add(barrier_in_helper)
def shared_memory_and_barrier_in_a_helper(rng):
    x = rng.integers(0, 99, 96).astype(np.int32)
    sums = x.reshape(3, 32).sum(1, dtype=np.int32) * 3
    return Launch(3, 32, (poison(96, np.int32), x), (sums.repeat(32), None))


def make_power(exponent):
    @sarek.kernel
    def power(out, x):
        i = sarek.global_idx.x
        if i < len(x):
            out[i] = x[i] ** exponent + SHAPE[1]

    return power


square = make_power(2)
cube = make_power(3)


@corpus.add(square)
def closure_of_two(rng):
    x = rng.integers(-9, 9, N).astype(np.int64)
    return Launch(2, 64, (poison(N, np.int64), x), (x**2 + 7, None))


@corpus.add(cube)
def closure_of_three(rng):
    x = rng.integers(-9, 9, N).astype(np.int64)
    return Launch(2, 64, (poison(N, np.int64), x), (x**3 + 7, None))


@sarek.kernel
def captured_enum(out, mode):
    i = sarek.global_idx.x
    if i < len(out):
        if mode == Mode.DOUBLE:
            out[i] = i * 2
        else:
            out[i] = i


@corpus.add(captured_enum)
def enum_and_scalar_argument(rng):
    return Launch(2, 64, (poison(N, np.int32), 2), (np.arange(N, dtype=np.int32) * 2, None))


@sarek.kernel
def optional_argument(out, bias=None, scale: sarek.float32 = 2.0):
    i = sarek.global_idx.x
    if i < len(out):
        if bias is None:
            out[i] = i * scale
        else:
            out[i] = i * scale + bias[i]


@corpus.add(optional_argument)
def without_bias(rng):
    return Launch(2, 64, (poison(N, np.float32),), (np.arange(N, dtype=np.float32) * 2,))


@corpus.add(optional_argument)
def with_bias(rng):
    bias = rng.standard_normal(N).astype(np.float32)
    return Launch(
        2,
        64,
        (poison(N, np.float32), bias, 3),
        (np.arange(N, dtype=np.float32) * 3 + bias, None, None),
    )
