"""Expressions too deep for a C compiler: clang reads at most 256 nested brackets.

`split` declares parts of a deep expression, so that what is left of it is shallow. A part is taken
only where it is evaluated whatever happens: what `and`, `or` and a conditional expression guard
stays within them.
"""

from __future__ import annotations

from collections.abc import Callable

from sarek_numba.ir.nodes import LOGICAL, Binary, Expr, IfExpr
from sarek_numba.ir.shape import operands, rebuild

DEEPEST = 120
_PART = 100


def depth_of(expr: Expr) -> int:
    """Levels of the tree below its root."""
    deepest = 0
    stack = [(expr, 0)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack += [(operand, depth + 1) for operand in operands(node)]
    return deepest


def split(expr: Expr, declare: Callable[[Expr], Expr]) -> Expr:
    """The expression, its parts of a hundred levels replaced by what `declare` gives."""
    return _split(expr, declare)[0]


def _split(expr: Expr, declare: Callable[[Expr], Expr]) -> tuple[Expr, int]:
    """The new expression and its depth."""
    below = operands(expr)
    if not below:
        return expr, 0
    guarded = isinstance(expr, IfExpr) or (isinstance(expr, Binary) and expr.op in LOGICAL)
    new, depth = [], 0
    for position, operand in enumerate(below):
        if guarded and position > 0:
            part, levels = operand, depth_of(operand)
        else:
            part, levels = _split(operand, declare)
        new.append(part)
        depth = max(depth, levels + 1)
    result = rebuild(expr, new)
    return (declare(result), 0) if depth >= _PART else (result, depth)
