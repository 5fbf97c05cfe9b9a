"""Transposition and multiplication of matrices, tile by tile through shared memory."""

from __future__ import annotations

from typing import Any

import sarek_numba as sarek
from sarek_numba.errors import InvalidArgument
from sarek_numba.stdlib.arguments import (
    FLOATS,
    Array,
    Where,
    accumulator,
    as_bits,
    check_array,
    room,
)

TILE = 16


@sarek.kernel
def transpose_tiles(out: Any, a: Any) -> None:
    tile = sarek.shared.array((TILE, TILE + 1), out.dtype)  # the odd row length avoids conflicts
    tx, ty = sarek.thread_idx.x, sarek.thread_idx.y
    column = sarek.block_idx.x * TILE + tx
    row = sarek.block_idx.y * TILE + ty
    if row < a.shape[0] and column < a.shape[1]:
        tile[ty, tx] = a[row, column]
    sarek.barrier()
    column = sarek.block_idx.y * TILE + tx
    row = sarek.block_idx.x * TILE + ty
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = tile[tx, ty]


@sarek.kernel
def multiply_tiles(out: Any, a: Any, b: Any) -> None:
    left = sarek.shared.array((TILE, TILE), out.dtype)
    right = sarek.shared.array((TILE, TILE), out.dtype)
    tx, ty = sarek.thread_idx.x, sarek.thread_idx.y
    column = sarek.block_idx.x * TILE + tx
    row = sarek.block_idx.y * TILE + ty
    total = out.dtype.type(0)
    for start in range(0, a.shape[1], TILE):
        left[ty, tx] = 0
        right[ty, tx] = 0
        if row < a.shape[0] and start + tx < a.shape[1]:
            left[ty, tx] = a[row, start + tx]
        if start + ty < b.shape[0] and column < b.shape[1]:
            right[ty, tx] = b[start + ty, column]
        sarek.barrier()
        for k in range(TILE):
            total += left[ty, k] * right[k, tx]
        sarek.barrier()
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = total


def transpose(a: Array, *, device: Where = None) -> Array:
    """The transpose, of shape (n, m) and in C order, of a matrix of shape (m, n)."""
    given = check_array("transpose", "a", a, ndim=2)
    rows, columns = given.shape
    out = room((columns, rows), given.dtype)
    if out.size:
        transpose_tiles.launch(
            as_bits(out), as_bits(given), grid=_tiles(rows, columns), block=(TILE, TILE),
            device=device,
        )  # fmt: skip
    return out


def matmul(a: Array, b: Array, *, device: Where = None) -> Array:
    """The product, of shape (m, n), of float matrices of shapes (m, k) and (k, n) and one type.

    Each element is summed in the order of k, at the element type, of halves in float32, of which
    the product then is.
    """
    left = check_array("matmul", "a", a, FLOATS, ndim=2)
    right = check_array("matmul", "b", b, (left.dtype,), ndim=2)
    if left.shape[1] != right.shape[0]:
        raise InvalidArgument(
            f"matmul(): 'a' has shape {left.shape} and 'b' {right.shape}, and "
            f"{left.shape[1]} columns do not meet {right.shape[0]} rows\n"
            "  hint: a has as many columns as b has rows"
        )
    out = room((left.shape[0], right.shape[1]), accumulator(left.dtype))
    if out.size:
        grid = _tiles(*out.shape)
        multiply_tiles.launch(out, left, right, grid=grid, block=(TILE, TILE), device=device)
    return out


def _tiles(rows: int, columns: int) -> tuple[int, int]:
    return -(-columns // TILE), -(-rows // TILE)
