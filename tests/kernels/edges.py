"""Kernels whose constants compilers of devices are known to fold wrongly."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()


@sarek.kernel
def constant_zeros(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i, 0] = x[i] * 0.0
        out[i, 1] = 0.0 + x[i]
        out[i, 2] = 0.0 - x[i]
        out[i, 3] = 0.0 / x[i]
        out[i, 4] = x[i] / 0.0
        out[i, 5] = x[i] * -0.0
        out[i, 6] = x[i] / -0.0
        out[i, 7] = x[i] - 0.0
        out[i, 8] = np.rint(x[i])
        out[i, 9] = np.ceil(x[i])
        out[i, 10] = np.trunc(x[i])
        out[i, 11] = np.floor(x[i])


def _constant_zeros(dtype):
    x = np.array([0.0, -0.0, 0.25, -0.25, 1.5, -2.5, 3, -3, 1e30, np.inf, -np.inf, np.nan], dtype)
    zero = dtype(0)
    with np.errstate(all="ignore"):
        expected = [
            x * zero, zero + x, zero - x, zero / x, x / zero, x * -zero, x / -zero, x - zero,
            np.rint(x), np.ceil(x), np.trunc(x), np.floor(x),
        ]  # fmt: skip
    made = (poison((len(x), len(expected)), dtype), x)
    return Launch(1, 32, made, (np.stack(expected, 1), None))


@corpus.add(constant_zeros)
def constant_zeros_of_float32(rng):
    return _constant_zeros(np.float32)


@corpus.add(constant_zeros)
def constant_zeros_of_float64(rng):
    return _constant_zeros(np.float64)


@sarek.kernel
def widened_comparisons(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        wide = np.int64(x[i])
        out[i, 0] = wide < 4
        out[i, 1] = wide <= -4
        out[i, 2] = wide > 4
        out[i, 3] = wide >= -4
        out[i, 4] = wide < 2**40
        out[i, 5] = wide > -(2**40)
        out[i, 6] = wide * 3 < 2**31


def _widened_comparisons(dtype):
    limits = np.iinfo(dtype)
    x = np.array([-5, -4, -3, 0, 3, 4, 5, limits.min, limits.max], dtype)
    wide = x.astype(np.int64)
    expected = [
        wide < 4, wide <= -4, wide > 4, wide >= -4, wide < 2**40, wide > -(2**40),
        wide * 3 < 2**31,
    ]  # fmt: skip
    return Launch(1, 32, (poison((len(x), 7), np.bool_), x), (np.stack(expected, 1), None))


@corpus.add(widened_comparisons)
def comparisons_of_widened_int32(rng):
    return _widened_comparisons(np.int32)


@corpus.add(widened_comparisons)
def comparisons_of_widened_int16(rng):
    return _widened_comparisons(np.int16)


@corpus.add(widened_comparisons)
def comparisons_of_widened_int8(rng):
    return _widened_comparisons(np.int8)
