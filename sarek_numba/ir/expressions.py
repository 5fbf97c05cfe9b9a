"""Expressions, patterns and l-values of Sarek IR; see `ir.nodes`."""

from __future__ import annotations

from dataclasses import dataclass

from sarek_numba.ir.operators import BinOp, Coordinate, UnOp
from sarek_numba.ir.types import ElementType, MemSpace, Scalar
from sarek_numba.ir.values import Const, Var, span_field
from sarek_numba.span import Span


@dataclass(frozen=True, slots=True)
class VarRef:
    """The value of a variable."""

    var: Var
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Binary:
    op: BinOp
    left: Expr
    right: Expr
    weak: bool = False
    unguarded: bool = False
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Unary:
    op: UnOp
    operand: Expr
    weak: bool = False
    unguarded: bool = False
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class ArrayRead:
    """Element `index` (flat, in elements from the start of the buffer) of an array."""

    array: Var
    index: Expr
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class ArrayReadExpr:
    """An element of an array that is itself an expression (an array field of a record)."""

    base: Expr
    index: Expr
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Field:
    record: Expr
    name: str
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A named function of `ir.intrinsics`: module path, name, arguments, result type."""

    path: tuple[str, ...]
    name: str
    args: tuple[Expr, ...]
    type: Scalar
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Index:
    """A coordinate of the thread along an axis (0 is x). `type` is INT64 as lowered, or INT32."""

    coordinate: Coordinate
    axis: int
    type: Scalar = Scalar.INT64
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Subscript:
    """One subscript along one axis of a view of `array`: `index`, checked against `extent`.

    With `wrap` a negative index counts from the end (index + extent). The oracle reports a value
    outside 0 ≤ value < extent; devices compute the value without a check. `extent` and `index` have
    one type. `part` is 0 or 1 where the access is to the real or the imaginary part of a complex
    element: the elements of `array` are then parts, and the oracle names the whole element.
    """

    array: Var
    axis: int
    index: Expr
    extent: Expr
    wrap: bool
    part: int | None = None
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Cast:
    """Conversion: integers modulo 2^n, float to integer saturating with NaN giving 0, to bool != 0.

    With `weak` the operand is a weak int: the oracle reports a value outside the target's range.
    """

    type: Scalar
    operand: Expr
    weak: bool = False
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class TupleExpr:
    items: tuple[Expr, ...]
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class App:
    """A call of a helper that is proven pure and returns one scalar."""

    function: str
    args: tuple[Expr, ...]
    type: ElementType
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class RecordExpr:
    name: str
    fields: tuple[tuple[str, Expr], ...]
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class VariantExpr:
    type: str
    constructor: str
    args: tuple[Expr, ...]
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class ArrayLen:
    """Number of elements of an array; `passes.legalise` turns it into the length parameter."""

    array: Var
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class ArrayCreate:
    """A new local or shared array; stands only as the initial value of a declaration or a Let."""

    element: ElementType
    size: Expr
    space: MemSpace
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class IfExpr:
    condition: Expr
    then: Expr
    orelse: Expr
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class PConstr:
    """Pattern: a constructor and the variables bound to its payload."""

    constructor: str
    bound: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class PWild:
    """Pattern: anything."""


Pattern = PConstr | PWild


@dataclass(frozen=True, slots=True)
class MatchExpr:
    scrutinee: Expr
    cases: tuple[tuple[Pattern, Expr], ...]
    span: Span | None = span_field()


Expr = (
    Const
    | VarRef
    | Binary
    | Unary
    | ArrayRead
    | ArrayReadExpr
    | Field
    | Intrinsic
    | Index
    | Subscript
    | Cast
    | TupleExpr
    | App
    | RecordExpr
    | VariantExpr
    | ArrayLen
    | ArrayCreate
    | IfExpr
    | MatchExpr
)


@dataclass(frozen=True, slots=True)
class LVar:
    var: Var
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class LElement:
    """Element `index` (flat) of an array."""

    array: Var
    index: Expr
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class LElementExpr:
    base: Expr
    index: Expr
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class LField:
    record: LValue
    name: str
    span: Span | None = span_field()


LValue = LVar | LElement | LElementExpr | LField
