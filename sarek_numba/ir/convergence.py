"""Barriers that only some threads of their block reach, told in the user's terms."""

from __future__ import annotations

import linecache
from dataclasses import replace

from sarek_numba.errors import Diagnostic, DivergentBarrier
from sarek_numba.ir.nodes import Barrier, Call, Expr, Kernel, WarpBarrier
from sarek_numba.ir.spelling import expr_text
from sarek_numba.ir.uniformity import (
    BLOCK,
    WARP,
    Control,
    Function,
    Synchronisation,
    Uniformity,
    Way,
    analyse,
)
from sarek_numba.span import Span

_REACHED = {
    Way.HOLDS: "is reached only by threads for which {} holds",
    Way.FAILS: "is reached only by threads for which {} does not hold",
    Way.PASSES: "is reached a different number of times by threads for which {} differs",
}
_HINT = (
    "every thread of the block must reach it, those with nothing to do too: move it out of the "
    "branch or loop"
)


def check_convergence(kernel: Kernel, uniformity: Uniformity | None = None) -> list[Diagnostic]:
    """One diagnostic for each barrier, or call that reaches one, in flow that is not uniform."""
    found: list[Diagnostic] = []
    _check((uniformity or analyse(kernel)).main, None, found, set())
    return [replace(d, function=d.function or kernel.name) for d in found]


def _check(function: Function, call: Call | None, found: list[Diagnostic], seen: set[int]) -> None:
    if id(function) in seen:
        return
    seen.add(id(function))
    for sync in function.synchronisations:
        barriers = [sync.stmt] if not isinstance(sync.stmt, Call) else _barriers(sync)
        divergent = [b for b in barriers if sync.control.level > _allowed(b)]
        if divergent:
            found.append(_diagnostic(sync, divergent[0], call))
        elif isinstance(sync.stmt, Call) and sync.callee is not None:
            _check(sync.callee, sync.stmt, found, seen)


def _barriers(sync: Synchronisation) -> list[Barrier | WarpBarrier]:
    return [] if sync.callee is None else sync.callee.barriers()


def _allowed(barrier: Barrier | WarpBarrier) -> int:
    return BLOCK if isinstance(barrier, Barrier) else WARP


def _diagnostic(
    sync: Synchronisation, barrier: Barrier | WarpBarrier, call: Call | None
) -> Diagnostic:
    name = "barrier()" if isinstance(barrier, Barrier) else "warp_barrier()"
    what = f"{name} in {sync.stmt.function}()" if isinstance(sync.stmt, Call) else name
    control = sync.control
    condition = "a condition" if control.condition is None else _quoted(control.condition)
    notes: list[tuple[Span, str]] = []
    if control.condition is not None and control.condition.span is not None:
        notes.append((control.condition.span, _note(control)))
    if isinstance(sync.stmt, Call) and barrier.span is not None:
        notes.append((barrier.span, "the barrier is here"))
    if call is not None and call.span is not None:
        notes.append((call.span, f"{call.function}() is called here"))
    message = f"{what} {_REACHED[control.way].format(condition)}"
    function = None if call is None else call.function
    return Diagnostic(DivergentBarrier, message, sync.stmt.span, _HINT, tuple(notes), function)


def _note(control: Control) -> str:
    group = "block" if control.level > WARP else "warp"
    return f"this is not the same for all threads of a {group}"


def _quoted(condition: Expr) -> str:
    """The condition as the user wrote it, where the source is to be had on one line."""
    span = condition.span
    if span is not None and span.column is not None and span.end_line in (None, span.line):
        line = linecache.getline(span.file, span.line).encode()
        source = line[span.column : span.end_column].decode(errors="replace").strip()
        if source:
            return f"`{source}`"
    return f"`{expr_text(condition)}`"
