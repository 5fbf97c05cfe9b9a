"""What a kernel that is a product of matrices computes: data between recogniser and rewriter.

For each batch, each row i and column j within the axes' ranges the kernel stores

    C[i, j] = epilogue(start + factor * sum over k of A[i, k] * B[k, j])

and nothing else. All expressions are IR over the kernel's scalar parameters, the uniform
coordinates of a launch (block_dim, grid_dim) and the variables of this product: those of the axes,
`result` for the finished sum and `before` for what the element of C held. A launch must also
meet `conditions`, `ranges` and `spare`, which `bind` checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sarek_numba.ir.nodes import Const, Expr, Var
from sarek_numba.ir.types import Scalar
from sarek_numba.span import Span


@dataclass(frozen=True, slots=True)
class Axis:
    """One index: `first` <= `var` < `stop`, both int64 expressions without axes."""

    var: Var
    first: Expr
    stop: Expr


@dataclass(frozen=True, slots=True)
class Linear:
    """An index into a buffer: `offset` plus each axis' variable times its stride, in elements."""

    offset: Expr
    strides: tuple[tuple[Var, Expr], ...]

    def stride(self, axis: Axis) -> Expr | None:
        """The stride along an axis; None where the index does not depend on it."""
        return dict(self.strides).get(axis.var)


@dataclass(frozen=True, slots=True)
class Operand:
    """Elements of an array parameter; `argument` is its position among the user's arguments.

    `type` is that of its elements, which the kernel converts to the type of the sum.
    """

    array: Var
    argument: int
    type: Scalar
    index: Linear
    span: Span | None = None

    def contiguous(self, axis: Axis) -> bool | None:
        """Whether neighbours along the axis are neighbours in memory; None if the launch knows."""
        stride = self.index.stride(axis)
        if stride is None:
            return False
        return stride.value == 1 if isinstance(stride, Const) else None


@dataclass(frozen=True, slots=True)
class Condition:
    """A bool expression that must be true in the launch; `text` says what it is."""

    expr: Expr
    text: str
    span: Span | None = None
    of_grid: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """A sum that must stay in `low` <= sum < `stop`, for all indices at once.

    The sum is `offset` plus, for each of `parts`, a coefficient times a variable of its own that
    runs from a first value to before a stop. `array` is the one whose subscript it is, None for an
    integer narrower than int64.
    """

    offset: Expr
    parts: tuple[tuple[Expr, Expr, Expr], ...]
    low: Expr
    stop: Expr
    array: Var | None = None
    span: Span | None = None


class Case(Enum):
    """What is multiplied and added up: the rows of the tables in `choose`."""

    INT8 = "int8"  # int8 and uint8, summed modulo 2^32
    INT32 = "int32"  # any other integers of up to 32 bits, summed modulo 2^32
    FLOAT16 = "float16"  # summed in float32
    BFLOAT16 = "bfloat16"  # summed in float32
    FLOAT32 = "float32"


@dataclass(frozen=True, slots=True)
class Product:
    """See the module. `accumulator` is int32, uint32 or float32, the type of `start`, of `factor`
    and of `result`; the epilogue has the type of C's elements.

    `k.var` runs over the sum, which may be longer than the user's loop has passes where that was
    unrolled. `others` are further arrays that the epilogue reads. `alpha` and `beta` are the
    factors in C = alpha * (A @ B) + beta * C where the kernel is one of these, else None. `spare`
    are extents of the launch that choose no element: they may be other than 1 only where the old
    elements of C are not used. `in_place` says that the kernel adds up in C itself.
    """

    m: Axis
    n: Axis
    k: Axis
    batch: tuple[Axis, ...]
    a: Operand
    b: Operand
    c: Operand
    accumulator: Scalar
    case: Case
    start: Expr
    factor: Expr | None
    epilogue: Expr
    result: Var
    before: Var
    others: tuple[Operand, ...]
    conditions: tuple[Condition, ...]
    ranges: tuple[Range, ...]
    spare: tuple[Expr, ...]
    uses_before: bool
    in_place: bool
    alpha: Expr | None
    beta: Expr | None
    span: Span | None = None
