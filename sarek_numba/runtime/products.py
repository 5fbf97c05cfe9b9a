"""Products of matrices that a device computes by a kernel of its own, in no language of IR.

The core says what is computed, as a `ProductOrder`; a driver that is a `MakesProducts` gives a
program for it, or says why not. The program is launched as any other. What becomes of a finished
sum is IR: a kernel that stores one element, which the device calls as a function.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.device import Dimensions, Program


@dataclass(frozen=True, slots=True)
class Factor:
    """A matrix that is multiplied: the array parameter that it is in, and where.

    Element (row, column) of batch i is at `offset + row * row_stride + column * column_stride +
    i * batch_stride`, in elements. `is_aligned` says whether element 0 of the array stands at a
    multiple of 16 bytes.
    """

    param: ParamDecl
    type: Scalar
    offset: int
    row_stride: int
    column_stride: int
    batch_stride: int
    is_aligned: bool


@dataclass(frozen=True, slots=True)
class ProductOrder:
    """What is to be computed: for each batch, row and column the sum over k of A times B.

    `element` stores what becomes of one sum. Its parameters are those of the launch, but for the
    last ones, whose places among the arguments begin with `told`: row, column, batch, and the sum,
    of type `accumulator`. `key` is equal only for equal elements. With `any_size` no size is too
    small.
    """

    element: Kernel
    told: int
    key: Hashable
    a: Factor
    b: Factor
    m: int
    n: int
    k: int
    batches: int
    accumulator: Scalar
    any_size: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OwnKernel:
    """A device's kernel for a product: `name` for reports, and how it is launched.

    `shape` are m, n and k of what the matrix units multiply at once.
    """

    name: str
    program: Program
    shape: Dimensions
    grid: Dimensions
    block: Dimensions


@runtime_checkable
class MakesProducts(Protocol):
    """A driver that has kernels of its own for products."""

    def product(self, order: ProductOrder) -> OwnKernel | str:
        """A kernel, or why there is none, at once if it was asked before. Raises BackendError."""
        ...
