"""Constant folding: operators of constants become the constant that `ir.semantics` gives.

Constants and copies bound by a `Let` reach their uses; branches and loops with a constant condition
become what is left of them. Functions that devices round differently are not folded, nor is a weak
int whose value leaves its range, which the oracle must see.
"""

from __future__ import annotations

from sarek_numba.ir import semantics
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import (
    LOGICAL,
    Binary,
    BinOp,
    Body,
    Cast,
    Const,
    Expr,
    For,
    If,
    IfExpr,
    Intrinsic,
    Kernel,
    Let,
    Stmt,
    Unary,
    VarRef,
    While,
)
from sarek_numba.ir.types import HALVES, Scalar
from sarek_numba.ir.walk import map_body, map_expr, map_expressions
from sarek_numba.passes.common import Target, map_bodies
from sarek_numba.passes.ranges import loop_values


def fold(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with everything computed that is known."""
    return map_bodies(kernel, _Folder().body)


class _Folder:
    def __init__(self) -> None:
        self.known: dict[int, Const | VarRef] = {}  # immutable variables by id

    def body(self, body: Body) -> Body:
        return map_body(body, self.statement)

    def statement(self, stmt: Stmt) -> Stmt | Body:
        stmt = map_expressions(stmt, self.expression)
        match stmt:
            case Let(var=var, value=Const() as value):
                self.known[var.id] = value
            case Let(var=var, value=VarRef(var=source) as value) if not source.mutable:
                self.known[var.id] = value
            case If(condition=Const(bits=bits), then=then, orelse=orelse):
                return then if bits else orelse
            case While(condition=Const(bits=0)):
                return ()
            case For(first=Const(), stop=Const(), step=Const()) if _never_runs(stmt):
                return ()
            case _:
                pass
        return stmt

    def expression(self, expr: Expr) -> Expr:
        return map_expr(expr, self.node)

    def node(self, expr: Expr) -> Expr:
        """A node whose operands are folded."""
        match expr:
            case VarRef(var=var):
                return _at(self.known.get(var.id, expr), expr)
            case Binary():
                return fold_operator(expr)
            case Unary(op=op, operand=Const() as operand, weak=weak):
                if weak and _leaves(semantics.unary_overflows(op, semantics.as_lane(operand))):
                    return expr
                return _at(semantics.fold_unary(op, operand), expr)
            case Cast(type=type, operand=Const() as operand, weak=weak):
                if type in HALVES:
                    return expr
                if weak and _outside(type, operand):
                    return expr
                return _at(semantics.fold_cast(type, operand), expr)
            case Intrinsic(name=name, args=args, type=type) if INTRINSICS[name].exact:
                constants = [arg for arg in args if isinstance(arg, Const)]
                if len(constants) < len(args) or type in HALVES:
                    return expr
                return _at(semantics.fold_intrinsic(name, type, *constants), expr)
            case IfExpr(condition=Const(bits=bits), then=then, orelse=orelse):
                return then if bits else orelse
            case _:
                return expr


def fold_operator(expr: Binary) -> Expr:
    """A binary operator, computed where its operands decide it."""
    left, right = expr.left, expr.right
    if expr.op in LOGICAL:
        return _fold_logical(expr)
    if not (isinstance(left, Const) and isinstance(right, Const)):
        return expr
    if expr.weak:
        lanes = semantics.as_lane(left), semantics.as_lane(right)
        if _leaves(semantics.binary_overflows(expr.op, *lanes)):
            return expr
    return _at(semantics.fold_binary(expr.op, left, right), expr)


def _fold_logical(expr: Binary) -> Expr:
    """`and` and `or` with one operand known; the other is pure, so it may go."""
    settling = expr.op is BinOp.OR  # the operand that decides the result by itself
    for one, other in ((expr.left, expr.right), (expr.right, expr.left)):
        if isinstance(one, Const):
            return one if bool(one.bits) is settling else other
    return expr


def _at(value: Expr, place: Expr) -> Expr:
    """A constant or a reference to a variable, with the span of what it replaces."""
    match value:
        case Const(type=type, bits=bits):
            return Const(type, bits, span=place.span)
        case VarRef(var=var) if value is not place:
            return VarRef(var, span=place.span)
        case _:
            return value


def _leaves(mask: semantics.Mask | None) -> bool:
    return mask is not None and bool(mask.any())


def _outside(type: Scalar, operand: Const) -> bool:
    return operand.type is Scalar.INT64 and _leaves(
        semantics.outside_of(type, semantics.as_lane(operand))
    )


def _never_runs(loop: For) -> bool:
    bounds = [
        (int(bound.value), int(bound.value))
        for bound in (loop.first, loop.stop, loop.step)
        if isinstance(bound, Const)
    ]
    return bounds[2] == (0, 0) or loop_values(loop.direction, *bounds) is None
