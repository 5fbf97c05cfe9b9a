"""float16 and bfloat16: elements, fields, arguments, shared, local and constant arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()

F16, BF16, F32 = np.float16, ml_dtypes.bfloat16, np.float32


def some(generator: np.random.Generator, count: int, dtype: type) -> np.ndarray:
    """Numbers of all sizes, subnormal ones among them, none that is no number."""
    wide = generator.standard_normal(count) * 2.0 ** generator.integers(-24, 12, count)
    return wide.astype(F32).astype(dtype)


@sarek.kernel
def axpy(y, x, a):
    i = sarek.global_idx.x
    if i < len(x):
        y[i] = a * x[i] + y[i]


@corpus.add(axpy)
def half_axpy(generator: np.random.Generator) -> Launch:
    x, y, a = some(generator, 500, F16), some(generator, 500, F16), F16(1.7)
    with np.errstate(all="ignore"):
        expected = (F32(a) * x.astype(F32) + y.astype(F32)).astype(F16)
    return Launch(8, 64, (y, x, a), (expected, None, None))


@corpus.add(axpy)
def bfloat16_axpy(generator: np.random.Generator) -> Launch:
    x, y, a = some(generator, 500, BF16), some(generator, 500, F16), BF16(-3)
    with np.errstate(all="ignore"):
        expected = (F32(a) * x.astype(F32) + y.astype(F32)).astype(F16)
    return Launch(8, 64, (y, x, a), (expected, None, None))


@corpus.add(axpy)
def half_axpy_with_a_python_float(generator: np.random.Generator) -> Launch:
    x, y = some(generator, 500, F16), some(generator, 500, BF16)
    expected = (F32(0.1) * x.astype(F32) + y.astype(F32)).astype(BF16)
    return Launch(8, 64, (y, x, 0.1), (expected, None, None))


@sarek.function
def twice(value):
    return value + value


@sarek.kernel
def in_place(x, kept):
    i = sarek.global_idx.x
    if i < len(x):
        x[i] += 0.1
        x[i] *= 3
        x[i] = twice(x[i])
        v = np.float16(x[i] / 7)
        kept[i] = v * 3
        x[i] -= sarek.bfloat16(v)


@corpus.add(in_place)
def halves_round_at_each_store(generator: np.random.Generator) -> Launch:
    x = some(generator, 300, F16)
    with np.errstate(all="ignore"):
        step = (x.astype(F32) + F32(0.1)).astype(F16)
        step = (step.astype(F32) * F32(3)).astype(F16)
        step = (step.astype(F32) + step.astype(F32)).astype(F16)
        v = (step.astype(F32) / F32(7)).astype(F16).astype(F32)
        last = (step.astype(F32) - v.astype(BF16).astype(F32)).astype(F16)
    return Launch(5, 64, (x, poison(300, F32)), (last, v * F32(3)))


@sarek.kernel
def block_sums(total, x):
    tile = sarek.shared.array(64, np.float16)
    t = sarek.thread_idx.x
    tile[t] = x[sarek.global_idx.x]
    sarek.barrier()
    stride = 32
    while stride > 0:
        if t < stride:
            tile[t] += tile[t + stride]
        sarek.barrier()
        stride //= 2
    if t == 0:
        total[sarek.block_idx.x] = tile[0]


@corpus.add(block_sums)
def half_sums_in_shared_memory(generator: np.random.Generator) -> Launch:
    x = some(generator, 256, F16)
    part = x.reshape(4, 64)
    while part.shape[1] > 1:
        middle = part.shape[1] // 2
        with np.errstate(all="ignore"):
            part = (part[:, :middle].astype(F32) + part[:, middle:].astype(F32)).astype(F16)
    return Launch(4, 64, (poison(4, F16), x), (part[:, 0], None))


@sarek.kernel
def through_dynamic(y, x):
    halves = sarek.shared.array(0, sarek.bfloat16)
    floats = sarek.shared.dynamic(128, sarek.float32)
    t = sarek.thread_idx.x
    halves[t] = x[t]
    floats[t] = halves[t] * 2
    sarek.barrier()
    y[t] = halves[63 - t] + floats[63 - t]


@corpus.add(through_dynamic)
def bfloat16_in_dynamic_memory(generator: np.random.Generator) -> Launch:
    x = generator.standard_normal(64)
    half = np.array([sarek.bfloat16(v) for v in x]).astype(F32)[::-1]
    return Launch(1, 64, (poison(64, F32), x), (half + half * 2, None), 384)


TABLE = np.array([0.1, -2.5, 65504, 6e-8, np.inf], F16)
SMALL = ml_dtypes.bfloat16(0.3)


@sarek.kernel
def table(y, at):
    i = sarek.global_idx.x
    if i < len(at):
        values = sarek.const.array_like(TABLE)
        mine = sarek.local.array(3, sarek.bfloat16)
        for k in range(3):
            mine[k] = values[(at[i] + k) % 5]
        y[i, 0] = values[at[i]]
        y[i, 1] = mine[2]
        y[i, 2] = SMALL


@corpus.add(table)
def half_constants_and_locals(generator: np.random.Generator) -> Launch:
    at = generator.integers(0, 5, 100)
    expected = np.stack(
        [TABLE[at], TABLE[(at + 2) % 5].astype(BF16), np.full(100, SMALL)], axis=1, dtype=F32,
        casting="unsafe",
    )  # fmt: skip
    return Launch(2, 64, (poison((100, 3), F32), at), (expected, None))


MIXED = np.dtype([("h", F16), ("n", np.int32), ("b", BF16, (3,)), ("x", np.float64)], align=True)
PACKED = np.dtype([("t", np.uint8), ("h", F16), ("b", BF16, (3,)), ("n", np.int16)])


@sarek.function
def moved(r, amount):
    r.h = r.h + amount
    return r


@sarek.kernel
def records(out, given):
    i = sarek.global_idx.x
    if i < len(given):
        r = moved(given[i].copy(), 0.1)
        out[i] = r
        out[i].b[1] = r.h * r.n
        out[i].b[2] = given[i].b[0] if r.h > 0 else given[i].b[1]


def _records(generator: np.random.Generator, dtype: np.dtype) -> Launch:
    given = np.zeros(100, dtype)
    given["h"], given["n"] = some(generator, 100, F16), generator.integers(-100, 100, 100)
    given["b"] = some(generator, 300, BF16).reshape(100, 3)
    expected = given.copy()
    with np.errstate(all="ignore"):
        expected["h"] = (given["h"].astype(F32) + F32(0.1)).astype(F16)
        wide = np.float64 if given["n"].dtype.itemsize == 4 else F32
        product = expected["h"].astype(wide) * given["n"].astype(wide)
    expected["b"][:, 1] = [sarek.bfloat16(v) for v in product]
    chosen = expected["h"].astype(F32) > 0
    expected["b"][:, 2] = np.where(chosen, given["b"][:, 0], given["b"][:, 1])
    return Launch(2, 64, (np.zeros(100, dtype), given), (expected, None))


@corpus.add(records)
def halves_in_aligned_records(generator: np.random.Generator) -> Launch:
    return _records(generator, MIXED)


@corpus.add(records)
def halves_in_packed_records(generator: np.random.Generator) -> Launch:
    return _records(generator, PACKED)


@sarek.kernel
def by_value(y, r, scale):
    i = sarek.global_idx.x
    if i < len(y):
        y[i] = r.h * scale + r.b[i % 3]


@corpus.add(by_value)
def a_record_of_halves_as_argument(generator: np.random.Generator) -> Launch:
    r = np.zeros((), MIXED)
    r["h"], r["b"] = F16(1.5), np.array([0.1, 2, -3], BF16)
    scale = BF16(0.7)
    expected = (F32(r["h"]) * F32(scale) + r["b"].astype(F32)[np.arange(60) % 3]).astype(F16)
    return Launch(1, 64, (poison(60, F16), r, scale), (expected, None, None))


@sarek.kernel
def whole_records(out, given):
    i = sarek.global_idx.x
    if i < len(given):
        tile = sarek.shared.array(64, out.dtype)
        tile[sarek.thread_idx.x] = given[i]
        out[i] = tile[sarek.thread_idx.x]
        out[i]["b"] = (1, given[i].h, 0.1)


@corpus.add(whole_records)
def records_of_halves_in_shared_memory(generator: np.random.Generator) -> Launch:
    given = np.zeros(64, MIXED)
    given["h"], given["n"], given["x"] = some(generator, 64, F16), 3, 0.1
    expected = given.copy()
    expected["b"][:, 0], expected["b"][:, 2] = 1, sarek.bfloat16(0.1)
    expected["b"][:, 1] = given["h"].astype(F32).astype(BF16)
    return Launch(1, 64, (np.zeros(64, MIXED), given), (expected, None))


Shape = sarek.variant(
    "Rounded", Small=sarek.float16, Pair=(sarek.bfloat16, sarek.int32), None_=None
)


@sarek.kernel
def variants(y, given, out):
    i = sarek.global_idx.x
    if i < len(given):
        match given[i]:
            case Shape.Small(h):
                y[i] = h * 2
                out[i] = Shape.Pair(h + 0.1, i)
            case Shape.Pair(b, n):
                y[i] = b + n
                out[i] = Shape.Small(b * n)
            case Shape.None_():
                y[i] = 0.1
                out[i] = Shape.None_()


@corpus.add(variants)
def halves_in_variants(generator: np.random.Generator) -> Launch:
    values = [Shape.Small(0.3), Shape.Pair(1.7, 9), Shape.None_()]
    given = Shape.array(values * 10)
    y = np.array([F32(F16(0.3)) * 2, F32(BF16(1.7)) + 9, 0.1] * 10).astype(F32)
    made = []
    for i in range(10):
        made += [Shape.Pair(float(F32(F16(0.3)) + F32(0.1)), 3 * i),
                 Shape.Small(float(BF16(1.7)) * 9), Shape.None_()]  # fmt: skip
    return Launch(1, 64, (poison(30, F32), given, Shape.array([Shape.None_()] * 30)),
                  (y, None, Shape.array(made)))  # fmt: skip


@sarek.kernel
def pictures(out, image, weights):
    y, x = sarek.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        total = 0.0
        for j in range(3):
            row = image[y + j]
            for i in range(3):
                total += row[x + i] * weights[j, i]
        out[y, x] = total


@corpus.add(pictures)
def half_pictures(generator: np.random.Generator) -> Launch:
    image = some(generator, 20 * 22, F16).reshape(22, 20).T
    weights = np.asfortranarray(some(generator, 9, BF16).reshape(3, 3))
    total = np.zeros((18, 20), F32)
    wide, factors = image.astype(F32), weights.astype(F32)
    with np.errstate(all="ignore"):
        for j in range(3):
            for i in range(3):
                total = total + wide[j : j + 18, i : i + 20] * factors[j, i]
        expected = total.astype(BF16)
    out = poison((18, 40), BF16)[:, ::2]
    return Launch((3, 3), (8, 8), (out, image, weights), (expected, None, None))
