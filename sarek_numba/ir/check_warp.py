"""The rules of warp collectives, on top of `ir.check_expr`: see `ir.verify`."""

from __future__ import annotations

from sarek_numba.ir.check_expr import Broken, ExprChecker
from sarek_numba.ir.nodes import REDUCTIONS, SHUFFLES, VOTES, Warp, WarpOp
from sarek_numba.ir.types import BOOL, HALVES, INT64, ElementType, Scalar
from sarek_numba.ir.warps import WARP_WIDTHS, mask_type


def check_warp(checker: ExprChecker, warp: int | None, stmt: Warp) -> None:
    """Raises Broken for a collective whose operands, width or result do not fit."""
    if warp is None:
        raise Broken(stmt, "the kernel states no width of a warp")
    segment = stmt.width in WARP_WIDTHS and stmt.width <= warp
    if not (segment if stmt.op in SHUFFLES else stmt.width == warp):
        raise Broken(stmt, f"a width of {stmt.width} does not fit warps of {warp}")
    wanted = (stmt.op is not WarpOp.ACTIVE_MASK, stmt.op in SHUFFLES)
    if (stmt.value is not None, stmt.lane is not None) != wanted:
        raise Broken(stmt, f"warp {stmt.op.value} has other operands")
    type: ElementType = mask_type(warp)
    if stmt.value is not None:
        type = checker.type(stmt.value)
        if not isinstance(type, Scalar) or type in HALVES:
            raise Broken(stmt, "a warp exchanges scalars")
    if stmt.lane is not None:
        checker.expect(stmt.lane, INT64, "the lane")
    if stmt.op in VOTES:
        if type is not BOOL:
            raise Broken(stmt, "a vote is on a bool")
        type = mask_type(warp) if stmt.op is WarpOp.BALLOT else BOOL
    if stmt.op in REDUCTIONS and type is BOOL:
        raise Broken(stmt, f"warp {stmt.op.value} takes numbers")
    if stmt.result.type != type or stmt.result.mutable:
        raise Broken(stmt, f"{stmt.result.name} cannot hold the result")
    checker.declare(stmt.result, stmt)
