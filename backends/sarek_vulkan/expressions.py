"""Expressions of Sarek IR as SPIR-V.

In: an expression of verified, legalised IR, the places of its variables. Out: a `Value`, its
instructions appended to the present block. What `and`, `or` and a conditional expression guard is
evaluated in a block of its own, unless evaluating it anyway costs little and can do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sarek_numba.errors import InvalidIR
from sarek_numba.ir.nodes import (
    LOGICAL,
    App,
    ArrayRead,
    Binary,
    BinOp,
    Cast,
    Const,
    Expr,
    HelperFunction,
    IfExpr,
    Index,
    Intrinsic,
    Subscript,
    Unary,
    Var,
    VarRef,
)
from sarek_numba.ir.types import BOOL, Array, Scalar, Vec
from sarek_numba.ir.walk import walk_exprs
from sarek_vulkan import division, functions, operators
from sarek_vulkan.arrays import ArrayPlace
from sarek_vulkan.code import Code, Value, signed
from sarek_vulkan.conversions import cast

if TYPE_CHECKING:
    from sarek_vulkan.program import Program

_CHEAP_NODES = 12
_DIVISIONS = frozenset({BinOp.DIV, BinOp.MOD, BinOp.FLOORDIV, BinOp.FLOORMOD})


class Expressions:
    """Emits the expressions of one function."""

    def __init__(
        self, program: Program, code: Code, helpers: Callable[[str], HelperFunction]
    ) -> None:
        self.program = program
        self.code = code
        self.helpers = helpers  # those that this function may call, by name
        self.values: dict[int, Value] = {}  # by id of an immutable variable
        self.variables: dict[int, int] = {}  # pointers, by id of a mutable variable
        self.arrays: dict[int, ArrayPlace] = {}
        self.fragments: dict[str, tuple[int, int]] = {}  # variable and type, by name

    def expression(self, expr: Expr) -> Value:
        """The value of an expression. One frame for each level, for expressions are deep."""
        code = self.code
        match expr:
            case Const():
                return Value(code.types.const(expr), expr.type)
            case VarRef(var=var):
                return self._variable(var)
            case Binary(op=op, left=left, right=right) if op in LOGICAL:
                return self._logical(op, left, right)
            case Binary(left=left, right=right):
                return self._binary(expr, self.expression(left), self.expression(right))
            case ArrayRead(array=array, index=index):
                place = self.expression(index)
                return self.program.memory.load(code, self.array(array), place)
            case Subscript(index=index, extent=extent, wrap=wrap):
                inner = self.expression(index)
                if not wrap or not signed(inner.type):
                    return inner
                wrapped = code.add(inner, self.expression(extent))
                return code.select(code.negative(inner), wrapped, inner)
            case Unary(op=op, operand=operand):
                return operators.unary(code, op, self.expression(operand))
            case Cast(type=type, operand=operand):
                return cast(code, self.expression(operand), type, self.library)
            case Index(coordinate=coordinate, axis=axis, type=type):
                return self.program.coordinates.value(code, coordinate, axis, type)
            case IfExpr(condition=condition, then=then, orelse=orelse):
                return self._choice(self.expression(condition), then, orelse)
            case Intrinsic(name=name, args=args, type=type):
                values = [self.expression(arg) for arg in args]
                return functions.intrinsic(self, name, values, type)
            case App(function=function, args=args, type=Scalar() as type):
                return Value(self.call(function, args), type)
            case _:
                raise InvalidIR(f"SPIR-V has no spelling for {kind_of(expr)}")

    def library(self, name: str, *values: Value) -> Value:
        """What a function of `library` gives."""
        return self.program.library_call(self.code, name, values)

    def array(self, array: Var) -> ArrayPlace:
        return self.arrays.get(array.id) or self.program.arrays[array.id]

    def call(self, function: str, args: Sequence[Expr]) -> int:
        """Call a helper; the id of its result, a structure for a tuple."""
        given: list[Value | ArrayPlace] = []
        for arg in args:
            if isinstance(arg, VarRef) and isinstance(arg.var.type, Vec | Array):
                given.append(self.array(arg.var))
            else:
                given.append(self.expression(arg))
        return self.program.call(self.code, self.helpers(function), given, self.helpers)

    def _variable(self, var: Var) -> Value:
        if var.id in self.values:
            return self.values[var.id]
        assert isinstance(var.type, Scalar)
        return self.code.value("OpLoad", var.type, self.variables[var.id])

    def _binary(self, node: Binary, left: Value, right: Value) -> Value:
        if node.op in _DIVISIONS and left.type.is_float:
            return division.float_division(self, node.op, left, right)
        return operators.binary(self.code, node.op, left, right, node.unguarded)

    def _logical(self, op: BinOp, left: Expr, right: Expr) -> Value:
        first = self.expression(left)
        name = "and" if op is BinOp.AND else "or"
        if _is_cheap(right):
            return self.code.bitwise(name, first, self.expression(right))
        decided = self.code.constant(BOOL, op is BinOp.OR)
        if op is BinOp.AND:
            return self.code.choose(first, lambda: self.expression(right), lambda: decided)
        return self.code.choose(first, lambda: decided, lambda: self.expression(right))

    def _choice(self, condition: Value, then: Expr, orelse: Expr) -> Value:
        if _is_cheap(then) and _is_cheap(orelse):
            return self.code.select(condition, self.expression(then), self.expression(orelse))
        return self.code.choose(
            condition, lambda: self.expression(then), lambda: self.expression(orelse)
        )


def _is_cheap(root: Expr) -> bool:
    """Whether an expression may be evaluated for nothing: few instructions, no memory, no edges."""
    for number, expr in enumerate(walk_exprs(root)):
        if number >= _CHEAP_NODES:
            return False
        match expr:
            case Const() | VarRef() | Index() | Unary() | Subscript() | Cast() | IfExpr():
                pass
            case Binary(op=op):
                if op in _DIVISIONS:
                    return False
            case _:
                return False
    return True


def kind_of(node: object) -> str:
    """The kind of an IR node, for messages."""
    return type(node).__name__
