"""The discrete Fourier transform along the last axis, for lengths that are powers of two.

The autosort method of T. G. Stockham (1966): log2(n) launches, each of one butterfly a thread,
between two buffers. Complex arrays are passed as arrays of (real, imaginary) pairs; the factors
come from a table that is computed in float64 and rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.errors import InvalidArgument
from sarek_numba.stdlib.arguments import Array, Where, check_array, constant, room

THREADS = 128
_COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128))


@sarek.kernel
def butterfly(out: Any, x: Any, factors: Any, done: Any, threads: Any) -> None:
    """One step: `done` is the length of the transforms that the steps before have finished."""
    half = len(factors)
    g = sarek.global_idx.x
    if g < threads:
        row = g // half
        j = g - row * half
        length = int(done)
        k = j % length
        first = row * half * 2
        a_re = x[first + j, 0]
        a_im = x[first + j, 1]
        b_re = x[first + j + half, 0]
        b_im = x[first + j + half, 1]
        w = k * (half // length)
        w_re = factors[w, 0]
        w_im = factors[w, 1]
        t_re = b_re * w_re - b_im * w_im
        t_im = b_re * w_im + b_im * w_re
        place = first + (j - k) * 2 + k
        out[place, 0] = a_re + t_re
        out[place, 1] = a_im + t_im
        out[place + length, 0] = a_re - t_re
        out[place + length, 1] = a_im - t_im


@sarek.kernel
def scale(x: Any, factor: Any) -> None:
    i = sarek.global_idx.x
    if i < x.shape[0]:
        x[i, 0] *= factor
        x[i, 1] *= factor


def fft(x: Array, *, device: Where = None) -> Array:
    """The discrete Fourier transform of each row of x, complex of shape (…, n), n a power of two.

    As `np.fft.fft`, at the type of x: complex64 is computed in float32.
    """
    return _transform("fft", x, -1, device)


def ifft(x: Array, *, device: Where = None) -> Array:
    """The inverse of `fft`: of shape (…, n), scaled by 1 / n, as `np.fft.ifft`."""
    return _transform("ifft", x, 1, device)


def _transform(function: str, x: Any, sign: int, device: Where) -> Array:
    given = check_array(function, "x", x, _COMPLEX, ndim=None)
    if given.ndim == 0:
        raise InvalidArgument(f"{function}(): 'x' has no axis\n  hint: pass one of shape (n,)")
    n = given.shape[-1]
    if n & (n - 1) or (n == 0 and given.ndim == 1):
        raise InvalidArgument(
            f"{function}(): 'x' has rows of {n} elements, which is no power of two\n"
            "  hint: pad it with zeros, or transform by np.fft"
        )
    real = np.dtype(np.float32 if given.dtype == np.complex64 else np.float64)
    source = given.copy()
    if n < 2 or not given.size:
        return source
    source_pairs = source.view(real).reshape(-1, 2)
    target_pairs = room(source_pairs.shape, real)
    angle = np.arange(n // 2) * (2 * np.pi / n)
    factors = constant(np.stack([np.cos(angle), sign * np.sin(angle)], 1).astype(real))
    threads = len(source_pairs) // 2
    blocks = -(-threads // THREADS)
    done = 1
    while done < n:
        butterfly.launch(
            target_pairs, source_pairs, factors, np.uint32(done), threads,
            grid=blocks, block=THREADS, device=device,
        )  # fmt: skip
        source_pairs, target_pairs = target_pairs, source_pairs
        done *= 2
    if sign > 0:
        scale.launch(source_pairs, real.type(1 / n), grid=2 * blocks, block=THREADS, device=device)
    return source_pairs.reshape(-1).view(given.dtype).reshape(given.shape)
