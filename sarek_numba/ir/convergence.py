"""Barriers that only some threads of their block reach, told in the user's terms."""

from __future__ import annotations

import linecache
from dataclasses import replace

from sarek_numba.errors import Diagnostic, DivergentBarrier
from sarek_numba.ir.nodes import (
    Barrier,
    Call,
    CMDecl,
    CMFill,
    CMLoad,
    CMMulAdd,
    CMStore,
    Coopmat,
    CoopmatOp,
    Expr,
    Kernel,
    Unary,
    UnOp,
    Warp,
)
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
from sarek_numba.ir.variance import Meeting
from sarek_numba.span import Span

_REACHED = {
    Way.HOLDS: "is reached only by threads for which {} holds",
    Way.FAILS: "is reached only by threads for which {} does not hold",
    Way.PASSES: "is reached a different number of times by threads for which {} differs",
}
_MATRIX: dict[type[CoopmatOp], str] = {
    CMDecl: "fragment", CMLoad: "load", CMStore: "store", CMMulAdd: "muladd", CMFill: "fill"
}  # fmt: skip
_HINT = (
    "every thread of the {} must reach it, those with nothing to do too: move it out of the "
    "branch or loop"
)


def check_convergence(kernel: Kernel, uniformity: Uniformity | None = None) -> list[Diagnostic]:
    """One diagnostic for each barrier, or call that reaches one, in flow that is not uniform."""
    found: list[Diagnostic] = []
    _check((uniformity or analyse(kernel, ordered=True)).main, None, found, set())
    return [replace(d, function=d.function or kernel.name) for d in found]


def _check(function: Function, call: Call | None, found: list[Diagnostic], seen: set[int]) -> None:
    if id(function) in seen:
        return
    seen.add(id(function))
    for sync in function.synchronisations:
        meetings = [sync.stmt] if not isinstance(sync.stmt, Call) else _meetings(sync)
        divergent = [each for each in meetings if sync.control.level > _allowed(each)]
        if divergent:
            found.append(_diagnostic(sync, divergent[0], call))
        elif isinstance(sync.stmt, Call) and sync.callee is not None:
            _check(sync.callee, sync.stmt, found, seen)


def _meetings(sync: Synchronisation) -> list[Meeting]:
    return [] if sync.callee is None else sync.callee.meetings()


def _allowed(meeting: Meeting) -> int:
    return BLOCK if isinstance(meeting, Barrier) else WARP


def _name(meeting: Meeting) -> str:
    if isinstance(meeting, Warp):
        return f"warp.{meeting.op.value}()"
    if isinstance(meeting, Coopmat):
        return f"coopmat.{_MATRIX[type(meeting.op)]}()"
    return "barrier()" if isinstance(meeting, Barrier) else "warp_barrier()"


def _diagnostic(sync: Synchronisation, meeting: Meeting, call: Call | None) -> Diagnostic:
    name = _name(meeting)
    what = f"{name} in {sync.stmt.function}()" if isinstance(sync.stmt, Call) else name
    control = _as_written(sync.control)
    condition = "a condition" if control.condition is None else _quoted(control.condition)
    notes: list[tuple[Span, str]] = []
    if control.condition is not None and control.condition.span is not None:
        notes.append((control.condition.span, _note(meeting)))
    if isinstance(sync.stmt, Call) and meeting.span is not None:
        word = "collective" if isinstance(meeting, Warp | Coopmat) else "barrier"
        notes.append((meeting.span, f"the {word} is here"))
    if call is not None and call.span is not None:
        notes.append((call.span, f"{call.function}() is called here"))
    message = f"{what} {_REACHED[control.way].format(condition)}"
    function = None if call is None else call.function
    hint = _HINT.format(_group(meeting))
    return Diagnostic(DivergentBarrier, message, sync.stmt.span, hint, tuple(notes), function)


def _group(meeting: Meeting) -> str:
    return "block" if _allowed(meeting) == BLOCK else "warp"


def _note(meeting: Meeting) -> str:
    return f"this is not the same for all threads of a {_group(meeting)}"


def _as_written(control: Control) -> Control:
    """A negation that the compiler has made is told of the condition in the source."""
    condition = control.condition
    if isinstance(condition, Unary) and condition.op is UnOp.NOT and condition.span is None:
        return _as_written(Control(control.level, condition.operand, control.way).others())
    return control


def _quoted(condition: Expr) -> str:
    """The condition as the user wrote it, where the source is to be had on one line."""
    span = condition.span
    if span is not None and span.column is not None and span.end_line in (None, span.line):
        line = linecache.getline(span.file, span.line).encode()
        source = line[span.column : span.end_column].decode(errors="replace").strip()
        if source:
            return f"`{source}`"
    return f"`{expr_text(condition)}`"
