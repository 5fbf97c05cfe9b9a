"""Facts of a kernel's loops, by identity, that a dialect works around a compiler's faults with."""

from __future__ import annotations

from collections.abc import Iterator

from sarek_numba.ir.nodes import Assign, For, Kernel, LVar, Var, While
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.uniformity import BLOCK, analyse
from sarek_numba.ir.walk import bodies_of_kernel, declared_by, walk_stmts


def left_apart(kernel: Kernel) -> dict[int, tuple[Var, ...]]:
    """Loops that the threads of a block leave in different passes, with what they hand on."""
    uniformity = analyse(kernel)
    return {
        id(loop): _handed_on(loop) for loop in _loops(kernel) if uniformity.of_loop(loop) > BLOCK
    }


def accumulating(kernel: Kernel) -> frozenset[int]:
    """Loops that hand a float on from pass to pass: the order of their operations matters."""
    return frozenset(
        id(loop)
        for loop in _loops(kernel)
        if any(isinstance(v.type, Scalar) and v.type.is_float for v in _handed_on(loop))
    )


def _loops(kernel: Kernel) -> Iterator[For | While]:
    for body in bodies_of_kernel(kernel):
        for stmt in walk_stmts(body):
            if isinstance(stmt, For | While):
                yield stmt


def _handed_on(loop: For | While) -> tuple[Var, ...]:
    """Variables that a loop assigns and that live longer than a pass."""
    stmts = tuple(walk_stmts(loop.body))
    inside = {var.id for stmt in stmts for var in declared_by(stmt)}
    targets = [stmt.target for stmt in stmts if isinstance(stmt, Assign)]
    assigned = {t.var.id: t.var for t in targets if isinstance(t, LVar)}
    return tuple(var for key, var in assigned.items() if key not in inside)
