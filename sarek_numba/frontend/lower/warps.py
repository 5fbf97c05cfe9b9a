"""Lowering of warp operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sarek_numba.frontend import typed as t
from sarek_numba.frontend.lower.arrays import result_var
from sarek_numba.frontend.lower.convert import cast
from sarek_numba.frontend.lower.values import NOTHING, Cell, Value
from sarek_numba.frontend.weak import scalar_of
from sarek_numba.ir.nodes import Expr, VarRef, Warp, WarpBarrier
from sarek_numba.ir.warps import lane_of

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering
    from sarek_numba.frontend.regions import Statement


def lower_warp(lowering: FunctionLowering, operation: t.Operation, statement: Statement) -> Value:
    """The value of a warp operation; a collective is emitted."""
    span = lowering.span(statement)
    match operation.what:
        case t.WarpLane(width):
            return Cell(lane_of(width, span))
        case t.WarpBarrier():
            lowering.emitter.settle_memory()
            lowering.emitter.emit(WarpBarrier(span=span))
            return NOTHING
        case t.Warp(op, width):
            operands: list[Expr | None] = [
                cast(lowering.number(argument, type), scalar_of(type))
                for argument, type in zip(
                    operation.arguments, operation.operands, strict=False
                )  # the width stands in the operation
            ]
            value, lane = (*operands, None, None)[:2]
            result = result_var(lowering, statement, scalar_of(operation.result), op.value)
            if result is None:  # the oracle checks a collective whose result nobody reads
                result = lowering.ids.var("unused", scalar_of(operation.result))
            lowering.emitter.emit(Warp(op, result, width, value, lane, span=span))
            return Cell(VarRef(result, span=span))
        case what:
            raise AssertionError(what)
