"""Votes and reductions of a warp as shuffles, for a target that has nothing else.

A reduction exchanges with the lane at half the width, then a quarter, and so on. Where operands
must not change places, which is where a minimum or maximum of floats meets two zeros, the value of
the lower lane is the left one, so that every lane computes what the IR says of one tree.
"""

from __future__ import annotations

from sarek_numba.ir.build import Fresh
from sarek_numba.ir.nodes import (
    SHUFFLES,
    Binary,
    BinOp,
    Body,
    Cast,
    Expr,
    IfExpr,
    Intrinsic,
    Kernel,
    Let,
    Stmt,
    Var,
    VarRef,
    Warp,
    WarpOp,
    constant,
)
from sarek_numba.ir.types import BOOL, INT64, Scalar
from sarek_numba.ir.walk import map_body
from sarek_numba.ir.warps import lane_of, mask_type
from sarek_numba.passes.common import Target, map_bodies


def shuffles_only(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with shuffles as its only collectives, if the target asks for that."""
    if not target.shuffles_only or kernel.warp_width is None:
        return kernel
    writer = _Writer(kernel.warp_width, Fresh.beyond(kernel))
    return map_bodies(kernel, lambda body: map_body(body, writer.statement))


class _Writer:
    def __init__(self, width: int, fresh: Fresh) -> None:
        self.width = width
        self.fresh = fresh
        self.mask = mask_type(width)

    def statement(self, stmt: Stmt) -> Stmt | Body:
        if not isinstance(stmt, Warp) or stmt.op in SHUFFLES or stmt.value is None:
            return stmt
        body: list[Stmt] = []
        match stmt.op:
            case WarpOp.SUM | WarpOp.MIN | WarpOp.MAX:
                value = self.reduced(body, stmt, stmt.value)
            case _:
                value = self.voted(body, stmt, stmt.value)
        return (*body, Let(stmt.result, value, span=stmt.span))

    def let(self, body: list[Stmt], name: str, type: Scalar, value: Expr) -> VarRef:
        var = self.fresh(name, type)
        body.append(Let(var, value))
        return VarRef(var)

    def partner(self, body: list[Stmt], stmt: Warp, value: VarRef, distance: int) -> VarRef:
        """The value of the lane at a distance."""
        var: Var = self.fresh("other", _scalar(value))
        lane = constant(INT64, distance)
        body.append(Warp(WarpOp.SHUFFLE_XOR, var, self.width, value, lane, span=stmt.span))
        return VarRef(var)

    def voted(self, body: list[Stmt], stmt: Warp, condition: Expr) -> Expr:
        """The ballot, and from it the answer."""
        bit = Binary(BinOp.SHL, constant(self.mask, 1), Cast(self.mask, lane_of(self.width)))
        vote = IfExpr(condition, bit, constant(self.mask, 0))
        bits = self.let(body, "votes", self.mask, vote)
        for distance in self.distances():
            other = self.partner(body, stmt, bits, distance)
            bits = self.let(body, "votes", self.mask, Binary(BinOp.BITOR, bits, other))
        match stmt.op:
            case WarpOp.ALL:
                return Binary(BinOp.EQ, bits, constant(self.mask, (1 << self.width) - 1))
            case WarpOp.ANY:
                return Binary(BinOp.NE, bits, constant(self.mask, 0))
            case _:
                return bits

    def reduced(self, body: list[Stmt], stmt: Warp, value: Expr) -> Expr:
        type = stmt.result.type
        assert isinstance(type, Scalar)
        is_symmetric = type.is_integer or stmt.op is WarpOp.SUM
        part = self.let(body, "part", type, value)
        lane = part if is_symmetric else self.let(body, "lane", INT64, lane_of(self.width))
        for distance in self.distances():
            other = self.partner(body, stmt, part, distance)
            if is_symmetric:
                part = self.let(body, "part", type, _joined(stmt.op, part, other, type))
                continue
            bit = Binary(BinOp.BITAND, lane, constant(INT64, distance))
            upper = self.let(body, "upper", BOOL, Binary(BinOp.NE, bit, constant(INT64, 0)))
            left, right = IfExpr(upper, other, part), IfExpr(upper, part, other)
            part = self.let(body, "part", type, _joined(stmt.op, left, right, type))
        return part

    def distances(self) -> list[int]:
        found, distance = [], self.width // 2
        while distance:
            found.append(distance)
            distance //= 2
        return found


def _scalar(value: VarRef) -> Scalar:
    assert isinstance(value.var.type, Scalar)
    return value.var.type


def _joined(op: WarpOp, left: Expr, right: Expr, type: Scalar) -> Expr:
    if op is WarpOp.SUM:
        return Binary(BinOp.ADD, left, right)
    return Intrinsic((), "fmin" if op is WarpOp.MIN else "fmax", (left, right), type)
