"""Short constructors for passes and for IR written by hand.

Nothing is inserted or folded: each call makes the one node that it names. Where an expression is
asked for, a `Var` stands for its value, and a Python number beside an operand is a constant of that
operand's type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import (
    ArrayCreate,
    ArrayRead,
    Assign,
    Atomic,
    AtomicOp,
    Binary,
    BinOp,
    Body,
    Cast,
    Const,
    ConstDecl,
    Coordinate,
    Direction,
    Expr,
    For,
    HelperFunction,
    If,
    IfExpr,
    Index,
    Intrinsic,
    Kernel,
    LElement,
    Let,
    LetMut,
    LocalDecl,
    LVar,
    ParamDecl,
    SharedDecl,
    Stmt,
    Subscript,
    TupleExpr,
    Unary,
    UnOp,
    Var,
    VarRef,
    While,
    constant,
)
from sarek_numba.ir.types import (
    INT32,
    INT64,
    Array,
    ArrayInfo,
    ElementType,
    LengthOf,
    MemSpace,
    Role,
    Scalar,
    UserArgument,
    Vec,
)
from sarek_numba.ir.typing import scalar_of, type_of
from sarek_numba.ir.walk import bound_within, declared_by, walk_stmts
from sarek_numba.span import Span

Operand = Expr | Var
Number = bool | int | float

# --- variables ------------------------------------------------------------------------------------


class Fresh:
    """A supply of variables with ids not used before."""

    def __init__(self, first: int = 0) -> None:
        self._next = first

    @classmethod
    def beyond(cls, kernel: Kernel) -> Fresh:
        """A supply for a kernel that already has variables."""
        return cls(1 + max((var.id for var in all_vars(kernel)), default=-1))

    def __call__(self, name: str, type: ElementType, mutable: bool = False) -> Var:
        var = Var(name, self._next, type, mutable)
        self._next += 1
        return var

    def like(self, var: Var) -> Var:
        """A new variable of the same name, type and mutability."""
        return self(var.name, var.type, var.mutable)


def all_vars(kernel: Kernel) -> list[Var]:
    """Every variable that a kernel and its helpers declare, in order of declaration."""
    found = [decl.var for decl in (*kernel.params, *kernel.locals)]
    for function in kernel.functions:
        found += [*function.params, *(decl.var for decl in function.locals)]
        found += _declared_in(function.body)
    return found + _declared_in(kernel.body)


def _declared_in(body: Body) -> list[Var]:
    return [v for stmt in walk_stmts(body) for v in (*declared_by(stmt), *bound_within(stmt))]


# --- declarations ---------------------------------------------------------------------------------


def array_param(
    fresh: Fresh, name: str, element: ElementType, argument: int, **info: Any
) -> ParamDecl:
    """An array argument of a kernel; `info` are further fields of `ArrayInfo`."""
    described = ArrayInfo(element, **info)
    return ParamDecl(fresh(name, Vec(element)), described, UserArgument(argument))


def scalar_param(fresh: Fresh, name: str, type: Scalar, role: Role | int) -> ParamDecl:
    """A scalar parameter; a number as `role` is the position of the user's argument."""
    filled = UserArgument(role) if isinstance(role, int) else role
    return ParamDecl(fresh(name, type), None, filled)


def length_param(fresh: Fresh, name: str, argument: int, type: Scalar = INT32) -> ParamDecl:
    """The length of an array argument."""
    return scalar_param(fresh, name, type, LengthOf(argument))


def shared_decl(
    fresh: Fresh, name: str, element: ElementType, size: int | None, offset: int = 0
) -> SharedDecl:
    """A shared array of `size` elements, or a view of the dynamic region."""
    var = fresh(name, Array(element, MemSpace.SHARED))
    return SharedDecl(var, element, None if size is None else const_int(size), offset)


def local_decl(fresh: Fresh, name: str, element: ElementType, size: int) -> LocalDecl:
    """An array of `size` elements for each thread."""
    var = fresh(name, Array(element, MemSpace.LOCAL))
    return LocalDecl(var, ArrayCreate(element, const_int(size), MemSpace.LOCAL))


def const_decl(fresh: Fresh, name: str, element: Scalar, values: Sequence[Number]) -> ConstDecl:
    """A constant array of the given values."""
    var = fresh(name, Array(element, MemSpace.CONSTANT))
    return ConstDecl(var, element, tuple(constant(element, value).bits for value in values))


def helper(name: str, params: Sequence[Var], result: ElementType, *body: Stmt) -> HelperFunction:
    return HelperFunction(name, tuple(params), result, tuple(body))


# --- expressions ----------------------------------------------------------------------------------


def expr(operand: Operand) -> Expr:
    """The operand itself, or the value of a variable."""
    return VarRef(operand) if isinstance(operand, Var) else operand


def lit(type: Scalar, value: Number, span: Span | None = None) -> Const:
    return constant(type, value, span)


def const_int(value: int, type: Scalar = INT64) -> Const:
    return constant(type, value)


def _pair(left: Operand | Number, right: Operand | Number) -> tuple[Expr, Expr]:
    if isinstance(left, bool | int | float):
        assert not isinstance(right, bool | int | float), "one operand must have a type"
        other = expr(right)
        return constant(scalar_of(other), left), other
    known = expr(left)
    if isinstance(right, bool | int | float):
        return known, constant(scalar_of(known), right)
    return known, expr(right)


def binary(
    op: BinOp, left: Operand | Number, right: Operand | Number, weak: bool = False
) -> Binary:
    return Binary(op, *_pair(left, right), weak)


def _binary(op: BinOp) -> Callable[[Operand | Number, Operand | Number], Binary]:
    def make(left: Operand | Number, right: Operand | Number) -> Binary:
        return Binary(op, *_pair(left, right))

    make.__name__ = op.name.lower()
    make.__doc__ = f"`left {op.value} right`."
    return make


add = _binary(BinOp.ADD)
sub = _binary(BinOp.SUB)
mul = _binary(BinOp.MUL)
div = _binary(BinOp.DIV)
mod = _binary(BinOp.MOD)
floordiv = _binary(BinOp.FLOORDIV)
floormod = _binary(BinOp.FLOORMOD)
eq = _binary(BinOp.EQ)
ne = _binary(BinOp.NE)
lt = _binary(BinOp.LT)
le = _binary(BinOp.LE)
gt = _binary(BinOp.GT)
ge = _binary(BinOp.GE)
and_ = _binary(BinOp.AND)
or_ = _binary(BinOp.OR)
shl = _binary(BinOp.SHL)
shr = _binary(BinOp.SHR)
bitand = _binary(BinOp.BITAND)
bitor = _binary(BinOp.BITOR)
bitxor = _binary(BinOp.BITXOR)


def neg(operand: Operand) -> Unary:
    return Unary(UnOp.NEG, expr(operand))


def not_(operand: Operand) -> Unary:
    return Unary(UnOp.NOT, expr(operand))


def bitnot(operand: Operand) -> Unary:
    return Unary(UnOp.BITNOT, expr(operand))


def cast(type: Scalar, operand: Operand, weak: bool = False) -> Cast:
    return Cast(type, expr(operand), weak)


def select(condition: Operand, then: Operand | Number, orelse: Operand | Number) -> IfExpr:
    return IfExpr(expr(condition), *_pair(then, orelse))


def tuple_(*items: Operand) -> TupleExpr:
    return TupleExpr(tuple(map(expr, items)))


def read(array: Var, index: Operand | int) -> ArrayRead:
    return ArrayRead(array, _index(index))


def subscript(
    array: Var, axis: int, index: Operand, extent: Operand, wrap: bool = False
) -> Subscript:
    return Subscript(array, axis, expr(index), expr(extent), wrap)


def coordinate(name: str, axis: int = 0, type: Scalar = INT64) -> Index:
    """A coordinate by its name, such as "global_idx"."""
    return Index(Coordinate(name), axis, type)


def intrinsic(name: str, *args: Operand, type: Scalar | None = None) -> Intrinsic:
    """A function of `ir.intrinsics`; `type` where the operands do not give the result's."""
    values = tuple(expr(arg) for arg in args)
    if type is None:
        type = Scalar.BOOL if INTRINSICS[name].result == "bool" else scalar_of(values[0])
    return Intrinsic((), name, values, type)


def _index(index: Operand | int) -> Expr:
    return const_int(index) if isinstance(index, int) else expr(index)


# --- statements -----------------------------------------------------------------------------------


def let(var: Var, value: Operand | Number) -> Let:
    return Let(var, _value(var.type, value))


def let_mut(var: Var, value: Operand | Number | None = None) -> LetMut:
    return LetMut(var, None if value is None else _value(var.type, value))


def assign(var: Var, value: Operand | Number) -> Assign:
    return Assign(LVar(var), _value(var.type, value))


def store(array: Var, index: Operand | int, value: Operand | Number) -> Assign:
    assert isinstance(array.type, Vec | Array)
    return Assign(LElement(array, _index(index)), _value(array.type.element, value))


def _value(type: ElementType, value: Operand | Number) -> Expr:
    if isinstance(value, bool | int | float):
        assert isinstance(type, Scalar)
        return constant(type, value)
    return expr(value)


def if_(condition: Operand, then: Sequence[Stmt], orelse: Sequence[Stmt] = ()) -> If:
    return If(expr(condition), tuple(then), tuple(orelse))


def while_(condition: Operand, *body: Stmt) -> While:
    return While(expr(condition), tuple(body))


def for_(
    var: Var,
    first: Operand | int,
    stop: Operand | int,
    *body: Stmt,
    step: Operand | int = 1,
    direction: Direction | None = None,
) -> For:
    """A loop; the direction is that of a constant step, or RUNTIME, unless given."""
    if direction is None:
        direction = Direction.RUNTIME
        if isinstance(step, int):
            direction = Direction.UPTO if step > 0 else Direction.DOWNTO
    first, stop, step = (_value(var.type, bound) for bound in (first, stop, step))
    return For(var, first, stop, step, direction, tuple(body))


def atomic(
    op: str,
    array: Var,
    index: Operand | int,
    value: Operand | Number | None = None,
    *,
    compare: Operand | Number | None = None,
    result: Var | None = None,
) -> Atomic:
    """An atomic operation by its name, such as "add"."""
    element = type_of(ArrayRead(array, _index(index)))
    given = [None if v is None else _value(element, v) for v in (value, compare)]
    return Atomic(AtomicOp(op), result, array, _index(index), given[0], given[1])
