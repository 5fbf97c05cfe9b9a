"""Statements of Sarek IR; see `ir.nodes`."""

from __future__ import annotations

from dataclasses import dataclass

from sarek_numba.ir.expressions import Expr, LValue, Pattern
from sarek_numba.ir.operators import AtomicOp, Direction, FenceScope, WarpOp
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.values import Var, span_field
from sarek_numba.span import Span


@dataclass(frozen=True, slots=True)
class Let:
    """Bind an immutable variable for the rest of the body."""

    var: Var
    value: Expr
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class LetMut:
    """Bind a mutable variable for the rest of the body.

    Without a value it is unbound until assigned: devices read zero, the oracle reports the read.
    """

    var: Var
    value: Expr | None = None
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Assign:
    target: LValue
    value: Expr
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Seq:
    body: Body
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Empty:
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Block:
    """A scope of its own."""

    body: Body
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: Body
    orelse: Body = ()
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class While:
    condition: Expr
    body: Body
    span: Span | None = span_field()


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
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Break:
    """Leave the innermost While or For."""

    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Continue:
    """Next pass of the innermost While or For."""

    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Match:
    scrutinee: Expr
    cases: tuple[tuple[Pattern, Body], ...]
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Return:
    """Leave the kernel (no value) or the helper."""

    value: Expr | None = None
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Barrier:
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class WarpBarrier:
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class MemFence:
    scope: FenceScope = FenceScope.DEVICE
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class ExprStmt:
    """An expression evaluated for nothing; kept because the seed has it."""

    value: Expr
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Call:
    """Call a helper. `results` is empty, one variable, or one for each item of a tuple result.

    The results are declared by the call, as by Let. An array argument is a `VarRef` of an array
    Var.
    """

    results: tuple[Var, ...]
    function: str
    args: tuple[Expr, ...]
    span: Span | None = span_field()


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
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Warp:
    """One collective of all threads of a warp; `result` is declared by the statement.

    `value` is None for ACTIVE_MASK alone, a bool for votes. A shuffle has `lane` (int64: the source
    lane of SHUFFLE, the distance of UP and DOWN, the mask of XOR) and works within segments of
    `width` lanes, a power of two; a source outside of the segment gives the lane's own value. Every
    other collective has the width of the kernel's warp. BALLOT and ACTIVE_MASK give a uint32 up to
    that width of 32, else a uint64; SUM wraps, MIN and MAX are fmin and fmax.
    """

    op: WarpOp
    result: Var
    width: int
    value: Expr | None = None
    lane: Expr | None = None
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Assert:
    """Checked by the oracle (and by debug builds); other devices pass over it."""

    condition: Expr
    message: str
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Print:
    """One call of print: constant text and scalar values, written one behind the other.

    What threads print appears after the launch, in the order of blocks, then of threads, then of
    each thread's program; `ir.printing` says how a value is written.
    """

    parts: tuple[str | Expr, ...]
    span: Span | None = span_field()

    @property
    def values(self) -> tuple[Expr, ...]:
        """The parts that are computed."""
        return tuple(part for part in self.parts if not isinstance(part, str))


@dataclass(frozen=True, slots=True)
class Pragma:
    """Hints for the statements within, as words: ("unroll",) or ("max_threads", "256")."""

    hints: tuple[str, ...]
    body: Body
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class Native:
    """Source text by framework, with the body that a backend without a text runs instead."""

    texts: tuple[tuple[str, str], ...]
    fallback: Body
    span: Span | None = span_field()


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
    span: Span | None = span_field()


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
    | Warp
    | Assert
    | Print
    | Pragma
    | Native
    | Coopmat
)
Body = tuple[Stmt, ...]
