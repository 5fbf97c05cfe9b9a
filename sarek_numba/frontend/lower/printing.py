"""Lowering of `print`: constant texts between values, neighbours joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sarek_numba.frontend import typed as t
from sarek_numba.frontend.extensions import CompileTime
from sarek_numba.frontend.lower.values import NOTHING, Value
from sarek_numba.ir.nodes import Expr, Print
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering


def lower_print(
    lowering: FunctionLowering, operation: t.Operation, what: t.Print, span: Span
) -> Value:
    """Emit the print; its value is None."""
    parts: list[str | Expr] = []
    for place, (argument, type) in enumerate(
        zip(operation.arguments, operation.operands, strict=True)
    ):
        if place:
            parts.append(what.separator)
        is_text = isinstance(type, CompileTime)
        parts.append(type.value if is_text else lowering.number(argument, type))
    parts.append(what.end)
    lowering.emitter.emit(Print(_joined(parts), span=span))
    return NOTHING


def _joined(parts: list[str | Expr]) -> tuple[str | Expr, ...]:
    result: list[str | Expr] = []
    for part in parts:
        if isinstance(part, str) and result and isinstance(result[-1], str):
            result[-1] += part
        elif part != "":
            result.append(part)
    return tuple(result)
