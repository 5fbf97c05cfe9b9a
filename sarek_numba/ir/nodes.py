"""Sarek IR: the grammar on one screen.

Frozen, slotted dataclasses in three unions (`Expr`, `LValue`, `Stmt`), walked with `match`. The
seed `Sarek_ir_types` is the contract; `docs/ir.md` maps each of its constructors to a class here.

Rules that every producer keeps and `ir.verify` checks:
- Expressions are pure: they read memory but never write it. `And`, `Or` and `IfExpr` evaluate only
  the operand that is needed, thread by thread, so a guarded read is legal.
- A body is a tuple of statements. `Let` and `LetMut` bring a variable into scope for the rest
  of the body they stand in (and the bodies nested in that rest).
- Both operands of a binary operator have one type, except the count of a shift. A comparison,
  `And`, `Or` and `Not` give bool. Conversions are always explicit `Cast`s.
- Every operator is total: what it gives at its edges (division by zero, shift counts out of range,
  overflow) is fixed by `ir.semantics`. `unguarded=True` is a promise, made by passes, that the edge
  is never met, so a device needs no guard.
- An integer that the user's program holds as a Python int ("weak") is computed in int64;
  `weak=True` marks such operators and conversions so that the oracle can report a value that
  leaves its type.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sarek_numba.ir.native import NativeFunction
from sarek_numba.ir.types import (
    ArrayInfo,
    ElementType,
    MemSpace,
    Role,
    Scalar,
)
from sarek_numba.span import Span


def _span() -> Any:
    return field(default=None, compare=False, repr=False, kw_only=True)


# --- variables and constants ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var:
    """A variable: an object with a unique id in its kernel. Text sees names, passes see ids.

    An array parameter, a shared, local or constant array is a Var of type `Vec` or `Array`.
    """

    name: str
    id: int
    type: ElementType
    mutable: bool = False


@dataclass(frozen=True, slots=True)
class Const:
    """A scalar constant, kept as its bit pattern so that 0.0, -0.0 and NaNs stay apart.

    No constant has type float16 or bfloat16: such values come from a `Cast`.
    """

    type: Scalar
    bits: int
    span: Span | None = _span()

    @property
    def value(self) -> bool | int | float:
        """The value as a Python number."""
        return _unpack(self.type, self.bits)


_FLOAT_FORMAT = {Scalar.FLOAT32: ("<f", "<I"), Scalar.FLOAT64: ("<d", "<Q")}


def constant(type: Scalar, value: Any, span: Span | None = None) -> Const:
    """A `Const` of a Python or NumPy number; a float is rounded once to float32 where asked.

    Raises OverflowError if an integer does not fit the type.
    """
    if type in _FLOAT_FORMAT:
        float_format, bits_format = _FLOAT_FORMAT[type]
        packed = _pack_float(float_format, float(value))
        return Const(type, struct.unpack(bits_format, packed)[0], span=span)
    assert not type.is_float, "halves have no constants"
    number = int(value)
    if not type.minimum <= number <= type.maximum:
        raise OverflowError(f"{number} does not fit {type.value}")
    return Const(type, number & ((1 << type.bits) - 1), span=span)


def _pack_float(float_format: str, value: float) -> bytes:
    try:
        return struct.pack(float_format, value)
    except OverflowError:  # a float64 beyond float32 rounds to infinity
        return struct.pack(float_format, float("inf") if value > 0 else float("-inf"))


def _unpack(type: Scalar, bits: int) -> bool | int | float:
    if type in _FLOAT_FORMAT:
        float_format, bits_format = _FLOAT_FORMAT[type]
        value: float = struct.unpack(float_format, struct.pack(bits_format, bits))[0]
        return value
    if type is Scalar.BOOL:
        return bool(bits)
    return bits - (1 << type.bits) if bits > type.maximum else bits


# --- operators ------------------------------------------------------------------------------------


class BinOp(Enum):
    """Binary operators. Div and Mod truncate (C); FloorDiv and FloorMod floor (Python)."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    MOD = "%"
    FLOORDIV = "//"
    FLOORMOD = "%%"
    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    AND = "and"
    OR = "or"
    SHL = "<<"
    SHR = ">>"
    BITAND = "&"
    BITOR = "|"
    BITXOR = "^"


COMPARISONS = frozenset({BinOp.EQ, BinOp.NE, BinOp.LT, BinOp.LE, BinOp.GT, BinOp.GE})
LOGICAL = frozenset({BinOp.AND, BinOp.OR})
SHIFTS = frozenset({BinOp.SHL, BinOp.SHR})


class UnOp(Enum):
    """Unary operators. BITNOT of a bool is logical."""

    NEG = "-"
    NOT = "not"
    BITNOT = "~"


class Coordinate(Enum):
    """A thread's place in the launch. GLOBAL_IDX is block_idx * block_dim + thread_idx."""

    THREAD_IDX = "thread_idx"
    BLOCK_IDX = "block_idx"
    BLOCK_DIM = "block_dim"
    GRID_DIM = "grid_dim"
    GLOBAL_IDX = "global_idx"
    GRID_SIZE = "grid_size"  # block_dim * grid_dim of the axis: threads in the launch along it


class Direction(Enum):
    """Sign of a loop's step; RUNTIME when only the launch knows it."""

    UPTO = "upto"
    DOWNTO = "downto"
    RUNTIME = "runtime"


class AtomicOp(Enum):
    """Atomic operations; each but STORE may give the old value."""

    LOAD = "load"
    STORE = "store"
    ADD = "add"
    SUB = "sub"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    EXCH = "exch"
    CAS = "cas"
    INC = "inc"
    DEC = "dec"


class FenceScope(Enum):
    BLOCK = "block"
    DEVICE = "device"


# --- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VarRef:
    """The value of a variable."""

    var: Var
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Binary:
    op: BinOp
    left: Expr
    right: Expr
    weak: bool = False
    unguarded: bool = False
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Unary:
    op: UnOp
    operand: Expr
    weak: bool = False
    unguarded: bool = False
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class ArrayRead:
    """Element `index` (flat, in elements from the start of the buffer) of an array."""

    array: Var
    index: Expr
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class ArrayReadExpr:
    """An element of an array that is itself an expression (an array field of a record)."""

    base: Expr
    index: Expr
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Field:
    record: Expr
    name: str
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A named function of `ir.intrinsics`: module path, name, arguments, result type."""

    path: tuple[str, ...]
    name: str
    args: tuple[Expr, ...]
    type: Scalar
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Index:
    """A coordinate of the thread along an axis (0 is x). `type` is INT64 as lowered, or INT32."""

    coordinate: Coordinate
    axis: int
    type: Scalar = Scalar.INT64
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Subscript:
    """One subscript along one axis of a view of `array`: `index`, checked against `extent`.

    With `wrap` a negative index counts from the end (index + extent). The oracle reports a value
    outside 0 ≤ value < extent; devices compute the value without a check. `extent` and `index` have
    one type.
    """

    array: Var
    axis: int
    index: Expr
    extent: Expr
    wrap: bool
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Cast:
    """Conversion: integers modulo 2^n, float to integer saturating with NaN giving 0, to bool != 0.

    With `weak` the operand is a weak int: the oracle reports a value outside the target's range.
    """

    type: Scalar
    operand: Expr
    weak: bool = False
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class TupleExpr:
    items: tuple[Expr, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class App:
    """A call of a helper that is proven pure and returns one scalar."""

    function: str
    args: tuple[Expr, ...]
    type: ElementType
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class RecordExpr:
    name: str
    fields: tuple[tuple[str, Expr], ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class VariantExpr:
    type: str
    constructor: str
    args: tuple[Expr, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class ArrayLen:
    """Number of elements of an array; `passes.legalise` turns it into the length parameter."""

    array: Var
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class ArrayCreate:
    """A new local or shared array; stands only as the initial value of a declaration or a Let."""

    element: ElementType
    size: Expr
    space: MemSpace
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class IfExpr:
    condition: Expr
    then: Expr
    orelse: Expr
    span: Span | None = _span()


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
    span: Span | None = _span()


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


# --- l-values -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LVar:
    var: Var
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class LElement:
    """Element `index` (flat) of an array."""

    array: Var
    index: Expr
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class LElementExpr:
    base: Expr
    index: Expr
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class LField:
    record: LValue
    name: str
    span: Span | None = _span()


LValue = LVar | LElement | LElementExpr | LField


# --- statements -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Let:
    """Bind an immutable variable for the rest of the body."""

    var: Var
    value: Expr
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class LetMut:
    """Bind a mutable variable for the rest of the body.

    Without a value it is unbound until assigned: devices read zero, the oracle reports the read.
    """

    var: Var
    value: Expr | None = None
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Assign:
    target: LValue
    value: Expr
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Seq:
    body: Body
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Empty:
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Block:
    """A scope of its own."""

    body: Body
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: Body
    orelse: Body = ()
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class While:
    condition: Expr
    body: Body
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class For:
    """`for var in range(first, stop, step)`: bounds evaluated once, `stop` exclusive.

    `var` is a fresh immutable variable of each pass. The number of passes is exact at the ends
    of the type. `unguarded` promises that first + passes * step does not overflow, so the plain
    loop of a C programmer is right. A step of zero runs no pass on a device and is an oracle
    error.
    """

    var: Var
    first: Expr
    stop: Expr
    step: Expr
    direction: Direction
    body: Body
    unguarded: bool = False
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Break:
    """Leave the innermost While or For."""

    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Continue:
    """Next pass of the innermost While or For."""

    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Match:
    scrutinee: Expr
    cases: tuple[tuple[Pattern, Body], ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Return:
    """Leave the kernel (no value) or the helper."""

    value: Expr | None = None
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Barrier:
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class WarpBarrier:
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class MemFence:
    scope: FenceScope = FenceScope.DEVICE
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class ExprStmt:
    """An expression evaluated for nothing; kept because the seed has it."""

    value: Expr
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """Call a helper. `results` is empty, one variable, or one for each item of a tuple result.

    The results are declared by the call, as by Let. An array argument is a `VarRef` of an array
    Var.
    """

    results: tuple[Var, ...]
    function: str
    args: tuple[Expr, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Atomic:
    """One relaxed atomic operation on element `index` (flat) of an array.

    `result` is declared by the statement and holds the old value. `value` is None for LOAD;
    `compare` is given for CAS alone.
    """

    op: AtomicOp
    result: Var | None
    array: Var
    index: Expr
    value: Expr | None = None
    compare: Expr | None = None
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Assert:
    """Checked by the oracle (and by debug builds); other devices pass over it."""

    condition: Expr
    message: str
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Pragma:
    """Hints for the statements within, as words: ("unroll",) or ("max_threads", "256")."""

    hints: tuple[str, ...]
    body: Body
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Native:
    """Source text by framework, with the body that a backend without a text runs instead."""

    texts: tuple[tuple[str, str], ...]
    fallback: Body
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Fragment:
    """What a cooperative-matrix fragment holds: its use, component type and shape."""

    use: str  # "a", "b", "c" or "result"
    component: Scalar
    rows: int
    columns: int
    scope: str = "subgroup"


@dataclass(frozen=True, slots=True)
class CoopmatConfig:
    """One multiply-add: D[m, n] = A[m, k] @ B[k, n] + C[m, n]."""

    m: int
    n: int
    k: int
    a: Scalar
    b: Scalar
    c: Scalar
    result: Scalar
    saturating: bool = False
    scope: str = "subgroup"

    @property
    def accumulation_is_exact(self) -> bool:
        return self.result.is_integer


@dataclass(frozen=True, slots=True)
class CMDecl:
    name: str
    fragment: Fragment


@dataclass(frozen=True, slots=True)
class CMLoad:
    target: str
    fragment: Fragment
    source: Var
    index: Expr
    stride: Expr
    column_major: bool = False


@dataclass(frozen=True, slots=True)
class CMStore:
    source: str
    fragment: Fragment
    target: Var
    index: Expr
    stride: Expr
    column_major: bool = False


@dataclass(frozen=True, slots=True)
class CMMulAdd:
    target: str
    a: str
    b: str
    c: str
    config: CoopmatConfig


@dataclass(frozen=True, slots=True)
class CMFill:
    target: str
    fragment: Fragment
    value: Expr


CoopmatOp = CMDecl | CMLoad | CMStore | CMMulAdd | CMFill


@dataclass(frozen=True, slots=True)
class Coopmat:
    op: CoopmatOp
    span: Span | None = _span()


Stmt = (
    Let
    | LetMut
    | Assign
    | Seq
    | Empty
    | Block
    | If
    | While
    | For
    | Break
    | Continue
    | Match
    | Return
    | Barrier
    | WarpBarrier
    | MemFence
    | ExprStmt
    | Call
    | Atomic
    | Assert
    | Pragma
    | Native
    | Coopmat
)
Body = tuple[Stmt, ...]


# --- declarations and kernels ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """A parameter; `array` is given for arrays. `role` says what the launch fills it with."""

    var: Var
    array: ArrayInfo | None
    role: Role


@dataclass(frozen=True, slots=True)
class LocalDecl:
    """A local of the whole kernel or helper; `value` is an ArrayCreate for an array per thread."""

    var: Var
    value: Expr | None = None
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class SharedDecl:
    """A shared array of `size` elements; without a size it views the dynamic region.

    `offset` (bytes from the start of the dynamic region) counts only without a size.
    """

    var: Var
    element: ElementType
    size: Expr | None
    offset: int = 0
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class ConstDecl:
    """A constant array, its values as bit patterns in C order."""

    var: Var
    element: Scalar
    bits: tuple[int, ...]
    span: Span | None = _span()


Decl = ParamDecl | LocalDecl | SharedDecl | ConstDecl


@dataclass(frozen=True, slots=True)
class HelperFunction:
    """A device function: its array parameters are base buffers, all else is scalar."""

    name: str
    params: tuple[Var, ...]
    result: ElementType
    body: Body
    locals: tuple[LocalDecl, ...] = ()
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel. `name` and all spans are tags: they take no part in the content hash.

    `index_bits` is 32 when every array of the launch has fewer than 2^31 elements and block ×
    grid is below 2^31 along each axis, else 64; length, offset, shape and stride parameters have
    that width.
    """

    name: str
    body: Body
    params: tuple[ParamDecl, ...] = ()
    locals: tuple[LocalDecl | SharedDecl | ConstDecl, ...] = ()
    types: tuple[tuple[str, tuple[tuple[str, ElementType], ...]], ...] = ()
    variants: tuple[tuple[str, tuple[tuple[str, tuple[ElementType, ...]], ...]], ...] = ()
    functions: tuple[HelperFunction, ...] = ()
    native_function: NativeFunction | None = None
    index_bits: int = 32
    span: Span | None = _span()


default_kernel = Kernel("", ())


def make_kernel(name: str, body: Body, **fields: Any) -> Kernel:
    """A kernel from its name and body, every other field at its default unless given."""
    return Kernel(name, body, **fields)
