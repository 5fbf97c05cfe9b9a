"""`match` over numbers, bools and tuples of them."""

from __future__ import annotations

import enum

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()
N = 97


class Op(enum.IntEnum):
    ADD = 0
    SUB = 1
    MUL = 2


@sarek.kernel
def calculator(out, ops, a, b):
    i = sarek.global_idx.x
    if i < len(out):
        match ops[i]:
            case Op.ADD:
                out[i] = a[i] + b[i]
            case Op.SUB:
                out[i] = a[i] - b[i]
            case Op.MUL:
                out[i] = a[i] * b[i]
            case _:
                out[i] = -1


@corpus.add(calculator)
def match_dotted_names(rng):
    ops = rng.integers(0, 5, N).astype(np.int8)
    a, b = (rng.integers(-99, 99, N).astype(np.int32) for _ in range(2))
    expected = np.select([ops == 0, ops == 1, ops == 2], [a + b, a - b, a * b], -1)
    return Launch(4, 32, (poison(N, np.int32), ops, a, b), (expected.astype(np.int32), *[None] * 3))


@sarek.kernel
def fizz_buzz(out, start):
    i = sarek.global_idx.x
    if i < len(out):
        n = start + i
        match n % 3 == 0, n % 5 == 0:
            case True, True:
                out[i] = 15
            case True, _:
                out[i] = 3
            case _, True:
                out[i] = 5
            case False, False:
                out[i] = n


def _fizz_buzz(n):
    return 15 if n % 15 == 0 else 3 if n % 3 == 0 else 5 if n % 5 == 0 else n


@corpus.add(fizz_buzz)
def match_several_bools(rng):
    expected = np.array([_fizz_buzz(7 + i) for i in range(N)], np.int64)
    return Launch(4, 32, (poison(N, np.int64), 7), (expected, None))


@sarek.kernel
def steps(out, values, limit):
    """Or-patterns, captures, guards, negative and float literals, a match in a loop."""
    i = sarek.global_idx.x
    if i >= len(values):
        return
    total = 0
    n = values[i]
    while True:
        match n % 7:
            case 0:
                break
            case 1 | 2 | 3 as small if n < limit:
                total += small
            case 5:
                n -= 5
                continue
            case odd if odd % 2 == 1:
                total += 10 * odd
            case _:
                total += 1
        n -= 3
    match n:
        case 0 | -7:
            total = -total
    out[i] = total


def _steps(n, limit):
    total = 0
    while n % 7 != 0:
        r = n % 7
        if r in (1, 2, 3) and n < limit:
            total += r
        elif r == 5:
            n -= 5
            continue
        elif r % 2 == 1:
            total += 10 * r
        else:
            total += 1
        n -= 3
    return -total if n in (0, -7) else total


@corpus.add(steps)
def match_in_a_loop(rng):
    values = rng.integers(-20, 200, N)
    expected = np.array([_steps(int(v), 60) for v in values], np.int64)
    return Launch(4, 32, (poison(N, np.int64), values, 60), (expected, None, None))


@sarek.function
def classify(pair, scale):
    match pair:
        case (0.0, y):
            return y
        case (x, 0.0 | 1.0) if x > scale:
            return x * scale
        case (x, y):
            return x - y


@sarek.kernel
def classified(out, x, y, scale):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = classify((x[i], y[i]), scale)


@corpus.add(classified)
def match_tuple_in_a_function(rng):
    x, y = (rng.integers(-1, 4, N).astype(np.float32) for _ in range(2))
    guarded = ((y == 0) | (y == 1)) & (x > 1.5)
    scale = np.float32(1.5)
    expected = np.where(x == 0, y, np.where(guarded, x * scale, x - y)).astype(np.float32)
    return Launch(4, 32, (poison(N, np.float32), x, y, scale), (expected, *[None] * 3))


@sarek.kernel
def outlived(out, values):
    """A name that a failed guard leaves bound, and one that takes the subject's own name."""
    i = sarek.global_idx.x
    if i < len(values):
        n = values[i]
        last = -5
        match n:
            case 3:
                last = 33
            case last if last > 10:
                last = 1000
            case 7 | 8:
                last += 1
        out[i, 0] = last
        a = n
        b = 2 * n
        match a, b:
            case b, a if b > 4:
                out[i, 1] = a - b
            case _:
                out[i, 1] = a


@corpus.add(outlived)
def match_names_that_outlive_it(rng):
    values = rng.integers(0, 15, N)
    last = np.select(
        [values == 3, values > 10, (values == 7) | (values == 8)], [33, 1000, values + 1], values
    )
    second = np.where(values > 4, values, 2 * values)
    expected = np.stack([last, second], axis=1)
    return Launch(4, 32, (poison((N, 2), np.int64), values), (expected, None))


@sarek.kernel
def with_flags(out, flags, more):
    i = sarek.global_idx.x
    if i < len(flags):
        match flags[i]:
            case True:
                result = 1
            case False:
                result = 2
        match more:
            case None:
                pass
            case _:
                result += more
        out[i] = result


@corpus.add(with_flags)
def match_bools_of_an_array(rng):
    flags = rng.random(N) < 0.5
    return Launch(
        4,
        32,
        (poison(N, np.int32), flags, None),
        (np.where(flags, 1, 2).astype(np.int32), None, None),
    )


@corpus.add(with_flags)
def match_an_optional_argument(rng):
    flags = rng.random(N) < 0.5
    expected = np.where(flags, 6, 7).astype(np.int32)
    return Launch(4, 32, (poison(N, np.int32), flags, 5), (expected, None, None))
