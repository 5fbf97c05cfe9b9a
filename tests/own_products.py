"""Kernels that are products, and matrices for them, for devices with kernels of their own."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import sarek_numba as sarek
from sarek_numba import accept, policy
from sarek_numba.matrix import Specialised
from sarek_numba.matrix.rewrite.form import Own

CONSENT = accept.relaxed_accumulation("sums of small whole numbers are exact in any order")
BLOCK = (8, 8)
BF16: Any = ml_dtypes.bfloat16
F16, F32, I8, U8, I32 = np.float16, np.float32, np.int8, np.uint8, np.int32
SENTINEL = 77


@sarek.kernel
def multiply(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += np.float32(a[i, k]) * np.float32(b[k, j])
        c[i, j] = total


@sarek.kernel
def multiply_bytes(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.int32(0)
        for k in range(a.shape[1]):
            total += np.int32(a[i, k]) * np.int32(b[k, j])
        c[i, j] = total


@sarek.kernel
def layer(c, a, b, bias, alpha, beta):
    """The result is of halves; columns of the grid's first axis."""
    j, i = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += np.float32(a[i, k]) * np.float32(b[k, j])
        value = alpha * total + beta * np.float32(c[i, j]) + bias[j] + np.float32(i)
        c[i, j] = np.float16(max(value, np.float32(0)))


@sarek.kernel
def batched(c, a, b):
    i, j, p = sarek.grid(3)
    if p < c.shape[0] and i < c.shape[1] and j < c.shape[2]:
        total = np.float32(0)
        for k in range(a.shape[2]):
            total += np.float32(a[p, i, k]) * np.float32(b[k, j])
        c[p, i, j] = total


class Room:
    """A matrix of small whole numbers whose lines begin at multiples of 16 bytes, within memory
    that is full of no numbers, or of a sentinel.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: Any, seed: int = 0, *, turned: bool = False
    ) -> None:
        *outer, rows, columns = shape
        if turned:
            rows, columns = columns, rows
        line = 16 // np.dtype(dtype).itemsize
        space = np.empty((*outer, rows + 2, -(-columns // line) * line + line), dtype)
        space[:] = SENTINEL if np.dtype(dtype).kind in "iu" else np.nan
        matrix = space[..., 1 : 1 + rows, :columns]
        low = 0 if np.dtype(dtype).kind == "u" else -4
        matrix[:] = np.random.default_rng(seed).integers(low, 5, matrix.shape)
        self.memory = space
        self.matrix = matrix.swapaxes(-1, -2) if turned else matrix

    def is_whole(self) -> bool:
        """Whether nothing around the matrix was written; the matrix is lost."""
        self.matrix[:] = SENTINEL if self.memory.dtype.kind in "iu" else np.nan
        same = self.memory == SENTINEL if self.memory.dtype.kind in "iu" else np.isnan(self.memory)
        return bool(same.all())


def run(kernel: Any, args: Any, device: Any, grid: tuple[int, ...]) -> Any:
    """With a thread for each element of a grid of blocks."""
    block = (*BLOCK, *(1 for _ in grid[2:]))
    blocks = tuple(-(-size // edge) for size, edge in zip(grid, block, strict=True))
    with policy.grant(CONSENT):
        return sarek.matrix.run(kernel, *args, grid=blocks, block=block, device=device)


def is_own(outcome: Any) -> bool:
    assert isinstance(outcome, Specialised), outcome
    return isinstance(outcome.variant, Own)


def wide(matrix: Any) -> Any:
    return matrix.astype(np.float64 if matrix.dtype.kind not in "iu" else np.int64)
