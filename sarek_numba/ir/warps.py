"""Facts about warps that everyone shares."""

from __future__ import annotations

from sarek_numba.ir.nodes import (
    Binary,
    BinOp,
    CMDecl,
    Coopmat,
    Coordinate,
    Expr,
    Index,
    Kernel,
    Warp,
    WarpBarrier,
    WarpOp,
    constant,
)
from sarek_numba.ir.types import INT64, Scalar
from sarek_numba.ir.walk import bodies_of_kernel, walk_stmts
from sarek_numba.span import Span

WARP_WIDTHS = (1, 2, 4, 8, 16, 32, 64)


def mask_type(width: int) -> Scalar:
    """The type of a mask of the lanes of a warp of so many threads."""
    return Scalar.UINT32 if width <= 32 else Scalar.UINT64


def uses_warps(kernel: Kernel) -> bool:
    """Whether every block of a kernel must be a whole number of warps."""
    return any(isinstance(s, WarpBarrier) or _is_collective(s) for s in _statements(kernel))


def has_meetings(kernel: Kernel) -> bool:
    """Whether a kernel has any warp operation but `lane` and `size`."""
    return any(isinstance(s, Warp | WarpBarrier | Coopmat) for s in _statements(kernel))


def _is_collective(stmt: object) -> bool:
    match stmt:
        case Warp(op=op):
            return op is not WarpOp.ACTIVE_MASK
        case Coopmat(op=op):
            return not isinstance(op, CMDecl)
        case _:
            return False


def _statements(kernel: Kernel) -> list[object]:
    bodies = bodies_of_kernel(kernel)
    return [stmt for body in bodies for stmt in walk_stmts(body)]


def lane_of(width: int, span: Span | None = None) -> Expr:
    """A thread's lane: its linear index in the block, x fastest, modulo the width."""

    def index(coordinate: Coordinate, axis: int) -> Expr:
        return Index(coordinate, axis, INT64, span=span)

    def scaled(high: Expr, axis: int) -> Expr:
        size = index(Coordinate.BLOCK_DIM, axis)
        low = index(Coordinate.THREAD_IDX, axis)
        return Binary(BinOp.ADD, low, Binary(BinOp.MUL, high, size, weak=True), weak=True)

    linear = scaled(scaled(index(Coordinate.THREAD_IDX, 2), 1), 0)
    return Binary(BinOp.BITAND, linear, constant(INT64, width - 1), span=span)
