"""A product in one launch: its numbers, and whether the launch is what the product counts on.

A rewrite reads and writes the same elements as the kernel only if the grid covers the result, no
subscript wraps or leaves its array, two elements of the result have two places, and nothing that is
read shares bytes with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sarek_numba.ir.nodes import Coordinate, Expr, Index, Kernel, VarRef
from sarek_numba.ir.semantics import Lanes, dtype_of
from sarek_numba.ir.types import Role, Scalar
from sarek_numba.matrix.evaluate import Leaf, evaluate, integer
from sarek_numba.matrix.product import Axis, Operand, Product, Range
from sarek_numba.matrix.reasons import NotAProduct, Reason

Dimensions = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Launch:
    """What is known of a launch: dimensions, scalar parameters by what fills them, and for each
    array argument the address of its buffer's element 0 and the size of an element in bytes.
    """

    grid: Dimensions
    block: Dimensions
    values: Mapping[Role, int | float | bool]
    buffers: Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Placement:
    """A matrix in a buffer: element (row, column) of batch (i, …) is at
    `offset + row * row_stride + column * column_stride + i * batch_strides[0] + …`, in elements.
    """

    offset: int
    row_stride: int
    column_stride: int
    batch_strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """The numbers of a product: counts m, n, k and of each batch axis, where the matrices are (A of
    m by k, B of k by n, C of m by n), and the first value of each axis' variable by its id.

    `extents` are the first element and the one past the last of C, A, B and the product's `others`.
    """

    m: int
    n: int
    k: int
    batch: tuple[int, ...]
    a: Placement
    b: Placement
    c: Placement
    firsts: tuple[tuple[int, int], ...]
    extents: tuple[tuple[int, int], ...]


def bind(kernel: Kernel, product: Product, launch: Launch) -> Bound | NotAProduct:
    """The numbers of a product in a launch, or why the launch is none.

    `kernel` is the one that the product was found in. Raises KeyError for facts that are missing.
    """
    found = numbers(kernel, product, launch)
    return found if isinstance(found, NotAProduct) else aliased(product, found, launch) or found


def numbers(kernel: Kernel, product: Product, launch: Launch) -> Bound | NotAProduct:
    """`bind` without a look at addresses: the same for all launches of equal sizes."""
    binder = _Binder(kernel, product, launch)
    refused = binder.refused()
    return binder.bound() if refused is None else refused


def aliased(product: Product, bound: Bound, launch: Launch) -> NotAProduct | None:
    """Why memory that the result shares with what is read rules a rewrite out; None if none is."""
    operands = (product.c, product.a, product.b, *product.others)
    written, *reads = (
        _addresses(launch.buffers[operand.argument], extent)
        for operand, extent in zip(operands, bound.extents, strict=True)
    )
    for other, read in zip(operands[1:], reads, strict=True):
        if max(written[0], read[0]) < min(written[1], read[1]):
            names = (product.c.array.name, other.array.name)
            return NotAProduct(Reason.ALIAS, names, other.span)
    return None


def _addresses(buffer: tuple[int, int], extent: tuple[int, int]) -> tuple[int, int]:
    address, size = buffer
    return address + extent[0] * size, address + extent[1] * size


class _Binder:
    def __init__(self, kernel: Kernel, product: Product, launch: Launch) -> None:
        self.product = product
        self.launch = launch
        self.leaf = leaves(kernel, launch)
        axes = (product.m, product.n, product.k, *product.batch)
        self.axes = {axis.var.id: axis for axis in axes}
        self.spans = {key: self._span(axis) for key, axis in self.axes.items()}

    def _span(self, axis: Axis) -> tuple[int, int]:
        return self._integer(axis.first), self._integer(axis.stop)

    def _integer(self, expr: Expr) -> int:
        return integer(expr, self.leaf)

    def _count(self, axis: Axis) -> int:
        first, stop = self.spans[axis.var.id]
        return stop - first

    # --- checks -----------------------------------------------------------------------------------

    def refused(self) -> NotAProduct | None:
        product = self.product
        for condition in product.conditions:
            if not evaluate(condition.expr, self.leaf).all():
                if condition.of_grid:
                    return NotAProduct(Reason.GRID, span=condition.span)
                return NotAProduct(Reason.CONDITION, (condition.text,), condition.span)
        if any(self._count(axis) <= 0 for axis in self.axes.values()):
            return NotAProduct(Reason.EMPTY, span=product.span)
        once = product.uses_before or product.in_place
        if once and any(self._integer(extent) != 1 for extent in product.spare):
            return NotAProduct(Reason.REPEATED, span=product.c.span)
        for need in product.ranges:
            if not self._stays(need):
                name = "" if need.array is None else need.array.name
                reason = Reason.WIDTH if need.array is None else Reason.OUTSIDE
                return NotAProduct(reason, (name,), need.span)
        if not self._is_injective():
            return NotAProduct(Reason.OVERLAP, span=product.c.span)
        return None

    def _stays(self, need: Range) -> bool:
        low = high = self._integer(need.offset)
        for coefficient, first, stop in need.parts:
            begin, last = self._integer(first), self._integer(stop) - 1
            if last < begin:
                return True  # nothing is accessed
            ends = [self._integer(coefficient) * begin, self._integer(coefficient) * last]
            low, high = low + min(ends), high + max(ends)
        return self._integer(need.low) <= low and high < self._integer(need.stop)

    def _is_injective(self) -> bool:
        """Whether each index of the result has an element of its own: every stride is beyond what
        the smaller ones reach.
        """
        strides = [
            (abs(self._integer(stride)), self._count(self.axes[var.id]))
            for var, stride in self.product.c.index.strides
        ]
        reach = 0
        for stride, count in sorted(strides):
            if count > 1 and stride <= reach:
                return False
            reach += stride * (count - 1)
        return True

    def _extent(self, operand: Operand) -> tuple[int, int]:
        """The elements that an operand lies between, the last excluded."""
        low = high = self._integer(operand.index.offset)
        for var, stride in operand.index.strides:
            first, stop = self.spans[var.id]
            ends = [self._integer(stride) * at for at in (first, stop - 1)]
            low, high = low + min(ends), high + max(ends)
        return low, high + 1

    # --- numbers ----------------------------------------------------------------------------------

    def bound(self) -> Bound:
        product = self.product
        return Bound(
            m=self._count(product.m),
            n=self._count(product.n),
            k=self._count(product.k),
            batch=tuple(self._count(axis) for axis in product.batch),
            a=self._placement(product.a, product.m, product.k),
            b=self._placement(product.b, product.k, product.n),
            c=self._placement(product.c, product.m, product.n),
            firsts=tuple((key, first) for key, (first, _) in self.spans.items()),
            extents=tuple(
                self._extent(one) for one in (product.c, product.a, product.b, *product.others)
            ),
        )

    def _placement(self, operand: Operand, rows: Axis, columns: Axis) -> Placement:
        offset = self._integer(operand.index.offset)
        for var, stride in operand.index.strides:
            offset += self._integer(stride) * self.spans[var.id][0]
        return Placement(
            offset,
            self._stride(operand, rows),
            self._stride(operand, columns),
            tuple(self._stride(operand, axis) for axis in self.product.batch),
        )

    def _stride(self, operand: Operand, axis: Axis) -> int:
        stride = operand.index.stride(axis)
        return 0 if stride is None else self._integer(stride)


def leaves(kernel: Kernel, launch: Launch) -> Leaf:
    """What parameters and uniform coordinates are in a launch."""
    roles = {decl.var.id: decl.role for decl in kernel.params if decl.array is None}

    def leaf(expr: Expr) -> Lanes:
        match expr:
            case VarRef(var=var) if isinstance(var.type, Scalar):
                return np.array([launch.values[roles[var.id]]], dtype_of(var.type))
            case Index(coordinate=Coordinate.BLOCK_DIM, axis=axis):
                return np.array([launch.block[axis]], np.int64)
            case Index(coordinate=Coordinate.GRID_DIM, axis=axis):
                return np.array([launch.grid[axis]], np.int64)
            case Index(coordinate=Coordinate.GRID_SIZE, axis=axis):
                return np.array([launch.block[axis] * launch.grid[axis]], np.int64)
        raise KeyError(type(expr).__name__)

    return leaf


__all__ = ["Bound", "Launch", "Placement", "aliased", "bind", "leaves", "numbers"]
