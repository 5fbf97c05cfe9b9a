"""Accesses to complex elements, which the IR has as accesses to their parts.

Arrays of complex numbers are arrays of floats here, element k being floats 2k and 2k + 1. What is
found at an access is told of the whole element, by the user's index, and once for both parts.
"""

from __future__ import annotations

from sarek_numba.ir.nodes import Expr, Subscript, Var
from sarek_numba.ir.walk import walk_exprs


def part_of(array: Var, index: Expr) -> int | None:
    """The part that an access to an array with this flat index is to; None for a whole element."""
    for expr in walk_exprs(index):
        if isinstance(expr, Subscript) and expr.array == array and expr.part is not None:
            return expr.part
    return None
