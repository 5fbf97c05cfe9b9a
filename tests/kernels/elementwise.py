"""One thread, one element: arithmetic, conversions, weak values, index forms."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()
N = 301


def spread(n: int = N, block: int = 64) -> tuple[int, int]:
    return -(-n // block), block


@sarek.kernel
def saxpy(y, x, a, n):
    i = sarek.global_idx.x
    if i < n:
        y[i] = a * x[i] + y[i]


@corpus.add(saxpy)
def saxpy_float32(rng):
    x, y = rng.standard_normal((2, N)).astype(np.float32)
    return Launch(*spread(), (y, x, 2.5, N), (np.float32(2.5) * x + y, None, None, None))


@corpus.add(saxpy)
def saxpy_float64(rng):
    x, y = rng.standard_normal((2, N))
    return Launch(*spread(), (y, x, 2.5, N), (2.5 * x + y, None, None, None))


@corpus.add(saxpy)
def saxpy_int32(rng):
    x, y = rng.integers(-(2**31), 2**31, (2, N)).astype(np.int32)
    return Launch(*spread(), (y, x, 3, N), (np.int32(3) * x + y, None, None, None))


@sarek.kernel
def grid_stride(y, x):
    for i in range(sarek.global_thread_id, len(x), sarek.gridsize(1)):
        y[i] = x[i] * 2 + 1


@corpus.add(grid_stride)
def grid_stride_uint8(rng):
    x = rng.integers(0, 256, N).astype(np.uint8)
    return Launch(2, 32, (poison(N, np.uint8), x), (x * 2 + 1, None))


@corpus.add(grid_stride)
def grid_stride_int64(rng):
    x = rng.integers(-(2**62), 2**62, N)
    return Launch(3, 17, (poison(N, np.int64), x), (x * 2 + 1, None))


@sarek.kernel
def two_dimensions(out, a):
    i, j = sarek.grid(2)
    if j < out.shape[0] and i < out.shape[1]:
        out[j, i] = a[j, i] * i - j


@corpus.add(two_dimensions)
def two_dimensions_float32(rng):
    a = rng.standard_normal((13, 29)).astype(np.float32)
    j, i = np.mgrid[:13, :29].astype(np.float32)
    return Launch((4, 2), (8, 8), (poison(a.shape, np.float32), a), (a * i - j, None))


@corpus.add(two_dimensions)
def two_dimensions_fortran(rng):
    a = np.asfortranarray(rng.standard_normal((13, 29)))
    j, i = np.mgrid[:13, :29]
    return Launch((4, 2), (8, 8), (poison(a.shape, np.float64), a), (a * i - j, None))


@corpus.add(two_dimensions)
def two_dimensions_strided(rng):
    a = rng.integers(-99, 99, (26, 58)).astype(np.int32)[::2, ::-2]
    out = poison((29, 13), np.int32).T
    j, i = np.mgrid[:13, :29].astype(np.int32)
    return Launch((4, 2), (8, 8), (out, a), (a * i - j, None))


@sarek.kernel
def three_dimensions(out):
    x, y, z = sarek.grid(3)
    if z < out.shape[0] and y < out.shape[1] and x < out.shape[2]:
        out[z, y, x] = (z * 100 + y) * 100 + x


@corpus.add(three_dimensions)
def three_dimensions_int32(rng):
    z, y, x = np.mgrid[:3, :5, :7].astype(np.int32)
    return Launch((2, 3, 2), (4, 2, 2), (poison((3, 5, 7), np.int32),), ((z * 100 + y) * 100 + x,))


@sarek.kernel
def floor_division(q, r, a, b):
    i = sarek.global_idx.x
    if i < len(a):
        q[i] = a[i] // b[i]
        r[i] = a[i] % b[i]


def _floor_division(rng, dtype):
    info = np.iinfo(dtype)
    edges = [info.min, info.min + 1, -1, 0, 1, 2, 3, 7, info.max - 1, info.max]
    edges = np.array([e for e in edges if info.min <= e <= info.max], dtype)
    a, b = (v.ravel() for v in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        q, r = a // b, a % b
    return Launch(
        *spread(len(a)), (poison(len(a), dtype), poison(len(a), dtype), a, b), (q, r, None, None)
    )


for _type in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):

    def _launch(rng, dtype=_type):
        return _floor_division(rng, dtype)

    _launch.__name__ = f"floor_division_{_type.__name__}"
    corpus.add(floor_division)(_launch)


def _float_division(rng, dtype):
    edges = np.array(
        [0.0, -0.0, 1, -1, 0.1, 6, -6, 7.5, 1e30, np.inf, -np.inf, np.nan, 5e-324], dtype
    )
    a, b = (v.ravel() for v in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        q, r = a // b, a % b
    return Launch(
        *spread(len(a)), (poison(len(a), dtype), poison(len(a), dtype), a, b), (q, r, None, None)
    )


@corpus.add(floor_division)
def floor_division_float32(rng):
    return _float_division(rng, np.float32)


@corpus.add(floor_division)
def floor_division_float64(rng):
    return _float_division(rng, np.float64)


@sarek.kernel
def shifts(left, right, a, count):
    i = sarek.global_idx.x
    if i < len(a):
        left[i] = a[i] << count[i]
        right[i] = a[i] >> count[i]


@corpus.add(shifts)
def shift_counts_out_of_range(rng):
    a = rng.integers(-(2**31), 2**31, N).astype(np.int32)
    count = rng.integers(-3, 70, N).astype(np.int32)
    inside = (count >= 0) & (count < 32)
    safe = np.where(inside, count, 0)
    left = np.where(inside, a << safe, 0).astype(np.int32)
    right = np.where(inside, a >> safe, np.where(a < 0, -1, 0)).astype(np.int32)
    return Launch(
        *spread(), (poison(N, np.int32), poison(N, np.int32), a, count), (left, right, None, None)
    )


@sarek.kernel
def float_to_int(out32, out8, x):
    i = sarek.global_idx.x
    if i < len(x):
        out32[i] = x[i]
        out8[i] = np.uint8(x[i])


@corpus.add(float_to_int)
def float_to_int_saturates(rng):
    x = np.array(
        [0.5, -0.5, 1e20, -1e20, np.inf, -np.inf, np.nan, 255.9, 256, -1, 2147483520], np.float32
    )
    clean = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300)
    to = lambda t: np.trunc(np.clip(clean, np.iinfo(t).min, np.iinfo(t).max)).astype(t)  # noqa: E731
    return Launch(
        *spread(len(x)),
        (poison(len(x), np.int32), poison(len(x), np.uint8), x),
        (to(np.int32), to(np.uint8), None),
    )


@sarek.kernel
def exact_float(out, x, y):
    i = sarek.global_idx.x
    if i < len(x):
        out[i, 0] = math.sqrt(abs(x[i]))
        out[i, 1] = x[i] / y[i]
        out[i, 2] = math.floor(x[i])
        out[i, 3] = np.ceil(y[i])
        out[i, 4] = np.rint(x[i] * 3)
        out[i, 5] = math.fmod(x[i], y[i])
        out[i, 6] = np.copysign(x[i], y[i])
        out[i, 7] = min(x[i], y[i]) + max(x[i], 0)
        out[i, 8] = np.minimum(x[i], y[i])
        out[i, 9] = np.fmax(x[i], y[i])
        out[i, 10] = x[i] * y[i] + x[i]


def _exact_float(rng, dtype):
    x, y = (rng.standard_normal((2, N)) * 10).astype(dtype)
    zero = dtype(0)
    expected = [
        np.sqrt(abs(x)), x / y, np.floor(x), np.ceil(y), np.rint(x * dtype(3)), np.fmod(x, y),
        np.copysign(x, y), np.where(y < x, y, x) + np.where(x < zero, zero, x),
        np.minimum(x, y), np.fmax(x, y), x * y + x,
    ]  # fmt: skip
    return Launch(*spread(), (poison((N, 11), dtype), x, y), (np.stack(expected, 1), None, None))


@corpus.add(exact_float)
def exact_float32(rng):
    return _exact_float(rng, np.float32)


@corpus.add(exact_float)
def exact_float64(rng):
    return _exact_float(rng, np.float64)


@sarek.kernel
def transcendental(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        v = abs(x[i]) + 0.1
        out[i, 0] = math.exp(x[i])
        out[i, 1] = math.log(v)
        out[i, 2] = np.sin(x[i])
        out[i, 3] = np.cos(x[i])
        out[i, 4] = math.tanh(x[i])
        out[i, 5] = v**1.5
        out[i, 6] = np.arctan2(x[i], v)
        out[i, 7] = math.erf(x[i])


def _transcendental(rng, dtype):
    x = rng.standard_normal(N).astype(dtype)
    w = x.astype(np.float64)
    v = (abs(x) + dtype(0.1)).astype(np.float64)
    expected = [np.exp(w), np.log(v), np.sin(w), np.cos(w), np.tanh(w), v**1.5, np.arctan2(w, v),
                np.vectorize(math.erf)(w)]  # fmt: skip
    return Launch(
        *spread(), (poison((N, 8), dtype), x), (np.stack(expected, 1).astype(dtype), None)
    )


@corpus.add(transcendental, ulp=16)
def transcendental_float32(rng):
    return _transcendental(rng, np.float32)


@corpus.add(transcendental, ulp=16)
def transcendental_float64(rng):
    return _transcendental(rng, np.float64)


@sarek.kernel
def mixed_signs(out, a, b):
    i = sarek.global_idx.x
    if i < len(a):
        out[i] = a[i] < b[i]


@corpus.add(mixed_signs)
def comparison_int64_uint64(rng):
    a = np.array([-1, 0, 1, 2**62, -(2**63), 2**63 - 1], np.int64).repeat(6)
    b = np.tile(np.array([0, 1, 2**62, 2**63, 2**64 - 1, 5], np.uint64), 6)
    return Launch(*spread(36), (poison(36, bool), a, b), (np.less(a, b), None, None))


@sarek.kernel
def bools(out, a, b):
    i = sarek.global_idx.x
    if i < len(a):
        out[i, 0] = a[i] & b[i]
        out[i, 1] = a[i] | (not b[i])
        out[i, 2] = a[i] ^ b[i]
        out[i, 3] = a[i] < b[i]
        out[i, 4] = int(a[i]) + 1 > 1


@corpus.add(bools)
def bool_operators(rng):
    a = np.array([0, 0, 1, 1], bool)
    b = np.array([0, 1, 0, 1], bool)
    return Launch(
        1,
        4,
        (poison((4, 5), bool), a, b),
        (np.stack([a & b, a | ~b, a ^ b, a < b, a], 1), None, None),
    )


@sarek.kernel
def magnitudes(shifted, thirds, x):
    i = sarek.global_idx.x
    if i < len(x):
        shifted[i] = abs(x[i]) >> 3
        thirds[i] = abs(x[i]) // 3


for _narrow in (np.int8, np.int16, np.int32, np.int64):

    def _launch_magnitudes(rng, dtype=_narrow):
        least = np.iinfo(dtype).min
        x = np.array([least, least + 1, -1, 0, 1, np.iinfo(dtype).max], dtype)
        size = np.array([least, *np.abs(x[1:])], dtype)
        expected = size >> dtype(3), size // dtype(3)
        return Launch(1, 8, (poison(6, dtype), poison(6, dtype), x), (*expected, None))

    _launch_magnitudes.__name__ = f"magnitudes_{_narrow.__name__}"
    corpus.add(magnitudes)(_launch_magnitudes)


@sarek.function
def _negated(x):
    return -x


@sarek.kernel
def negations(out, x, bound):
    """Negation that is then widened, in every way that a program may write it."""
    i = sarek.global_idx.x
    if i < len(x):
        v = x[i]
        kept = sarek.local.array(1, sarek.int16)
        kept[0] = -v
        w = -v
        s = sarek.int16(0)
        for _ in range(1):
            s -= v
        out[i, 0] = -v
        out[i, 1] = sarek.int16(0) - v
        out[i, 2] = v * sarek.int16(-1)
        out[i, 3] = v // sarek.int16(-1)
        out[i, 4] = ~v + sarek.int16(1)
        out[i, 5] = _negated(v)
        out[i, 6] = kept[0]
        out[i, 7] = w if w < bound else v
        out[i, 8] = s
        out[i, 9] = sarek.int16(-sarek.int32(v))


@corpus.add(negations)
def _launch_negations(rng):
    least = np.iinfo(np.int16).min
    x = np.array([least, least + 1, -1, 0, 1, np.iinfo(np.int16).max], np.int16)
    expected = np.repeat((-x).astype(np.int64)[:, None], 10, axis=1)
    expected[1, 7] = x[1]  # its negation is the bound
    return Launch(1, 8, (poison((6, 10), np.int64), x, np.int16(32767)), (expected, None, None))


# --- bits -----------------------------------------------------------------------------------------


def _reinterpreting(target):
    @sarek.kernel
    def reinterpreted(out, back, x):
        i = sarek.global_idx.x
        if i < len(x):
            bits = sarek.math.reinterpret(x[i], target)
            out[i] = bits
            back[i] = sarek.math.reinterpret(bits, x.dtype)

    return reinterpreted


def _bits(rng, source, target):
    """Numbers of all sizes and signs; NaN is left out, whose payload a device may change."""
    x = rng.integers(0, 256, N * source.itemsize, np.uint8).view(source)
    x[:3] = [0, 1, np.finfo(source).max if source.kind == "f" else np.iinfo(source).max]
    with np.errstate(invalid="ignore"):
        keep = ~(np.isnan(x.view(f"f{source.itemsize}")) if source.itemsize >= 4 else x != x)
    x = np.where(keep, x, 1).astype(source)
    made = (poison(N, target), poison(N, source), x)
    return Launch(*spread(), made, (x.view(target), x, None))


for _names in ("int8 uint8", "int16 uint16", "int32 uint32 float32", "int64 uint64 float64"):
    for _source, _target in itertools.permutations(_names.split(), 2):
        _launch = functools.partial(_bits, source=np.dtype(_source), target=np.dtype(_target))
        functools.update_wrapper(_launch, _bits)
        _launch.__name__ = f"bits_of_{_source}_as_{_target}"
        corpus.add(_reinterpreting(np.dtype(_target)))(_launch)
