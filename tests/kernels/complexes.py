"""Complex numbers: arithmetic, functions, arrays of every kind, fractals and a Fourier transform.

What is expected is computed part by part in real arithmetic: NumPy multiplies whole complex arrays
with fused operations, whose results depend on the processor.
"""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()
N = 203


def spread(n: int = N, block: int = 32) -> tuple[int, int]:
    return -(-n // block), block


def numbers(rng, n: int = N, dtype=np.complex64):
    """Complex numbers of many magnitudes."""
    size = 2.0 ** rng.integers(-9, 9, (2, n))
    real, imag = rng.standard_normal((2, n)) * size
    return (real + 1j * imag).astype(dtype)


def one_by_one(function, *arrays):
    """NumPy's scalar arithmetic, element by element."""
    with np.errstate(all="ignore"):
        results = [function(*values) for values in zip(*arrays, strict=True)]
    return np.array(results)


# --- arithmetic -----------------------------------------------------------------------------------


@sarek.kernel
def four(sums, differences, products, quotients, a, b):
    i = sarek.global_idx.x
    if i < len(a):
        sums[i] = a[i] + b[i]
        differences[i] = a[i] - b[i]
        products[i] = a[i] * b[i]
        quotients[i] = a[i] / b[i]


def _four(a, b):
    common = np.result_type(a, b)
    outs = tuple(poison(len(a), common) for _ in range(4))
    expected = (
        one_by_one(lambda x, y: x + y, a, b),
        one_by_one(lambda x, y: x - y, a, b),
        one_by_one(lambda x, y: x * y, a, b),
        one_by_one(lambda x, y: x / y, a, b),
    )
    return Launch(*spread(len(a)), (*outs, a, b), (*expected, None, None))


@corpus.add(four)
def four_complex64(rng):
    return _four(numbers(rng), numbers(rng))


@corpus.add(four)
def four_complex128(rng):
    return _four(numbers(rng, dtype=np.complex128), numbers(rng, dtype=np.complex128))


@corpus.add(four)
def four_mixed(rng):
    return _four(numbers(rng), numbers(rng, dtype=np.complex128))


@corpus.add(four)
def four_with_float32(rng):
    return _four(numbers(rng), rng.standard_normal(N).astype(np.float32))


@corpus.add(four)
def four_with_int32(rng):
    return _four(numbers(rng), rng.integers(-99, 99, N).astype(np.int32))


SPECIAL = [0.0, -0.0, 1.0, -2.5, 1e38, -1e-40, np.inf, -np.inf, np.nan]


@corpus.add(four)
def four_of_special_values(rng):
    every = np.array([complex(x, y) for x in SPECIAL for y in SPECIAL], np.complex64)
    a, b = (side.ravel() for side in np.meshgrid(every, every))
    return _four(np.ascontiguousarray(a), np.ascontiguousarray(b))


@sarek.kernel
def compares(equal, differ, true, real_equal, a, b):
    i = sarek.global_idx.x
    if i < len(a):
        equal[i] = a[i] == b[i]
        differ[i] = a[i] != b[i]
        true[i] = 1 if a[i] else 0
        real_equal[i] = a[i] == 1


@corpus.add(compares)
def compares_special_values(rng):
    every = np.array([complex(x, y) for x in SPECIAL for y in SPECIAL], np.complex64)
    a, b = (np.ascontiguousarray(side.ravel()) for side in np.meshgrid(every, every))
    outs = tuple(poison(len(a), np.int8) for _ in range(4))
    expected = (a == b, a != b, a != 0, a == 1)
    return Launch(
        *spread(len(a)), (*outs, a, b), (*(e.astype(np.int8) for e in expected), None, None)
    )


@sarek.kernel
def powers(out, z):
    i = sarek.global_idx.x
    if i < len(z):
        out[i, 0] = z[i] ** 0
        out[i, 1] = z[i] ** 1
        out[i, 2] = z[i] ** 2
        out[i, 3] = z[i] ** 3
        out[i, 4] = z[i] ** 7
        out[i, 5] = z[i] ** -1
        out[i, 6] = z[i] ** -4
        out[i, 7] = z[i] ** 5.0


def _powers(z):
    exponents = (0, 1, 2, 3, 7, -1, -4, 5.0)
    expected = np.stack([one_by_one(lambda x, n=n: x**n, z) for n in exponents], axis=1)
    return Launch(*spread(len(z)), (poison((len(z), 8), z.dtype), z), (expected, None))


@corpus.add(powers)
def powers_complex64(rng):
    return _powers(numbers(rng))


@corpus.add(powers)
def powers_complex128(rng):
    return _powers(numbers(rng, dtype=np.complex128))


@corpus.add(powers)
def powers_of_zeros(rng):
    zeros = [complex(x, y) for x in (0.0, -0.0) for y in (0.0, -0.0)]
    return _powers(np.array(zeros, np.complex64))


@sarek.kernel
def parts(real, imag, conjugate, negated, rebuilt, z):
    i = sarek.global_idx.x
    if i < len(z):
        w = z[i]
        real[i] = w.real
        imag[i] = np.imag(w)
        conjugate[i] = w.conjugate()
        negated[i] = -np.conj(w)
        rebuilt[i] = np.complex64(complex(w.imag, w.real))


@corpus.add(parts)
def parts_complex64(rng):
    z = numbers(rng)
    outs = (poison(N, np.float32), poison(N, np.float32), *(poison(N, z.dtype) for _ in "abc"))
    swapped = (z.imag + 1j * z.real).astype(np.complex64)
    return Launch(*spread(), (*outs, z), (z.real, z.imag, z.conj(), -z.conj(), swapped, None))


# --- weak numbers ---------------------------------------------------------------------------------


@sarek.kernel
def weak(out, wide, x, s, shift=0.5 - 0.25j):
    i = sarek.global_idx.x
    if i < len(x):
        out[i] = (x[i] + s) * (2 + 1j) - shift
        z = complex(x[i], i) * 1j + s
        z = z / (1 + 2j) - 3
        wide[i] = z**3


def _weak(x, i, s):
    z = complex(x, i) * 1j + s
    z = z / (1 + 2j) - 3
    return (x + s) * (2 + 1j) - (0.5 - 0.25j), z**3


@corpus.add(weak)
def weak_complex(rng):
    x = rng.standard_normal(N).astype(np.float32)
    s = 1.25 + 0.75j
    both = [_weak(value, i, s) for i, value in enumerate(x)]
    narrow = np.array([a for a, _ in both], np.complex64)
    wide = np.array([b for _, b in both])
    outs = poison(N, np.complex64), poison(N, np.complex128)
    return Launch(*spread(), (*outs, x, s), (narrow, wide, None, None))


# --- arrays ---------------------------------------------------------------------------------------


@sarek.kernel
def transpose_conjugate(out, z):
    i, j = sarek.grid(2)
    if i < z.shape[0] and j < z.shape[1]:
        out[j, i] = z[i, j].conjugate()


def _matrix(rng, z):
    out = poison(z.shape[::-1], z.dtype)
    return Launch((4, 4), (8, 8), (out, z), (z.T.conj(), None))


@corpus.add(transpose_conjugate)
def conjugate_of_c_order(rng):
    return _matrix(rng, numbers(rng, 26 * 31).reshape(26, 31))


@corpus.add(transpose_conjugate)
def conjugate_of_fortran_order(rng):
    return _matrix(rng, np.asfortranarray(numbers(rng, 26 * 31, np.complex128).reshape(26, 31)))


@corpus.add(transpose_conjugate)
def conjugate_of_strided(rng):
    return _matrix(rng, numbers(rng, 52 * 62).reshape(52, 62)[::-2, 1::2])


@corpus.add(transpose_conjugate)
def conjugate_of_unaligned(rng):
    """Elements that start at four bytes: they go through a copy."""
    floats = rng.standard_normal(2 * 26 * 31 + 1).astype(np.float32)
    return _matrix(rng, floats[1:].view(np.complex64).reshape(26, 31))


@sarek.kernel
def scale_parts(z, factor):
    i = sarek.global_idx.x
    real, imag = z.real, z.imag
    if i < len(z):
        real[i] *= factor
        imag[-1 - i] += real[i]


@corpus.add(scale_parts)
def views_of_parts(rng):
    z = numbers(rng, 31)
    real = z.real * np.float32(3)
    imag = z.imag + real[::-1]
    return Launch(1, 32, (z, np.float32(3)), ((real + 1j * imag).astype(np.complex64), None))


@sarek.kernel
def swap_in_place(z):
    i = sarek.global_idx.x
    if i < len(z):
        z[i] = np.complex64(z[i].imag, z[i].real)
        z[i] += z[i].conjugate() * 2


@corpus.add(swap_in_place)
def swapped_parts(rng):
    """Both parts are computed before the first is stored."""
    z = numbers(rng)
    swapped = (z.imag + 1j * z.real).astype(np.complex64)
    return Launch(*spread(), (z,), (one_by_one(lambda w: w + w.conjugate() * 2, swapped),))


@sarek.function
def rotated(z, turns):
    if turns == 0:
        return z, 0
    return z * 1j, turns - 1


@sarek.function
def total(row):
    acc = 0j
    for k in range(len(row)):
        acc += row[k]
    return acc


TABLE = np.array([1 + 2j, 3 - 1j, -2j], np.complex64)


@sarek.kernel
def memories(out, z, n):
    tile = sarek.shared.array((2, 16), np.complex64)
    own = sarek.local.array(3, sarek.complex64)
    table = sarek.const.array_like(TABLE)
    t = sarek.thread_idx.x
    tile[0, t] = z[t]
    tile[1, t] = z[t].conjugate()
    sarek.barrier()
    value, left = rotated(tile[1, (t + 1) % 16], n)
    for k in range(3):
        own[k] = value + table[k]
    best = own[0] if t % 2 == 0 else tile[0, -1 - t]
    out[t] = best + total(own) + total(tile[0, 2:5]) - left


@corpus.add(memories)
def complex_in_every_memory(rng):
    z = numbers(rng, 16)
    expected = []
    for t in range(16):
        value = z[(t + 1) % 16].conjugate() * 1j
        own = [value + entry for entry in TABLE]
        best = own[0] if t % 2 == 0 else z[-1 - t]
        expected.append(best + sum(own, 0j) + sum(z[2:5], 0j) - 1)
    return Launch(1, 16, (poison(16, np.complex64), z, 2), (np.array(expected), None, None))


@sarek.kernel
def dynamic(out, z):
    region = sarek.shared.array(0, np.complex128)
    t = sarek.thread_idx.x
    region[t] = z[t]
    sarek.barrier()
    out[t] = region[len(region) - 1 - t]


@corpus.add(dynamic)
def complex_in_dynamic_memory(rng):
    z = numbers(rng, 24, np.complex128)
    return Launch(1, 24, (poison(24, z.dtype), z), (z[::-1].copy(), None), 24 * 16)


# --- whole programs -------------------------------------------------------------------------------


@sarek.kernel
def mandelbrot(counts, centre, width, limit):
    y, x = sarek.grid(2)
    height, columns = counts.shape
    if y < height and x < columns:
        step = width / columns
        c = centre + np.complex64(complex((x - columns // 2) * step, (y - height // 2) * step))
        z = np.complex64(0)
        n = 0
        while n < limit and z.real * z.real + z.imag * z.imag <= 4:
            z = z * z + c
            n += 1
        counts[y, x] = n


def _escape(z, c, limit):
    n = 0
    while n < limit and z.real * z.real + z.imag * z.imag <= 4:
        z = z * z + c
        n += 1
    return n


@corpus.add(mandelbrot)
def mandelbrot_set(rng):
    height, columns, limit = 21, 34, 60
    width = 3.0
    centre = np.complex64(-0.6 + 0.02j)
    step = width / columns
    expected = np.empty((height, columns), np.int32)
    with np.errstate(all="ignore"):
        for y in range(height):
            for x in range(columns):
                offset = complex((x - columns // 2) * step, (y - height // 2) * step)
                c = centre + np.complex64(offset)
                expected[y, x] = _escape(np.complex64(0), c, limit)
    assert len(np.unique(expected)) > 10
    out = poison((height, columns), np.int32)
    return Launch((3, 5), (8, 8), (out, centre, width, limit), (expected, None, None, None))


@sarek.kernel
def julia(counts, points, c: complex):
    i = sarek.global_idx.x
    if i < len(points):
        z = points[i]
        for n in range(50):
            if abs(z) > 2:
                counts[i] = n
                break
            z = z**2 + c
        else:
            counts[i] = 50


@corpus.add(julia)
def julia_set(rng):
    c = -0.8 + 0.156j
    points = (rng.uniform(-1.5, 1.5, N) + 1j * rng.uniform(-1, 1, N)).astype(np.complex64)
    expected = []
    with np.errstate(all="ignore"):
        for z in points:
            n = 0
            while n < 50 and abs(z) <= 2:
                z = z**2 + c
                n += 1
            expected.append(n)
    assert len(set(expected)) > 10
    return Launch(*spread(), (poison(N, np.int32), points, c), (np.int32(expected), None, None))


@sarek.kernel
def butterflies(out, z, twiddles):
    """A Fourier transform of a power of two in shared memory, one block."""
    tile = sarek.shared.array(64, np.complex64)
    t = sarek.thread_idx.x
    bits, source = 0, t
    for _ in range(6):
        bits = bits * 2 + source % 2
        source //= 2
    tile[bits] = z[t]
    sarek.barrier()
    half = 1
    while half < 64:
        if t < 32:
            k = t % half
            first = (t - k) * 2 + k
            even, odd = tile[first], tile[first + half] * twiddles[k * (32 // half)]
            tile[first] = even + odd
            tile[first + half] = even - odd
        sarek.barrier()
        half *= 2
    out[t] = tile[t]


def _transformed(z, twiddles):
    tile = [z[int(f"{t:06b}"[::-1], 2)] for t in range(64)]
    half = 1
    while half < 64:
        for t in range(32):
            k = t % half
            first = (t - k) * 2 + k
            odd = tile[first + half] * twiddles[k * (32 // half)]
            tile[first], tile[first + half] = tile[first] + odd, tile[first] - odd
        half *= 2
    return np.array(tile)


@corpus.add(butterflies)
def fourier_transform(rng):
    z = numbers(rng, 64)
    twiddles = np.exp(-2j * np.pi * np.arange(32) / 64).astype(np.complex64)
    expected = _transformed(z, twiddles)
    exact = np.fft.fft(z.astype(np.complex128))
    assert np.abs(expected - exact).max() <= 1e-5 * np.abs(exact).max()
    return Launch(1, 64, (poison(64, np.complex64), z, twiddles), (expected, None, None))
