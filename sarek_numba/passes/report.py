"""What threads print and find, as stores into a report buffer that the host reads afterwards.

In: a kernel as lowered. Out: a `Reporting`: a kernel that any device with 32-bit atomics runs, and
the table of its sites. `Print` statements become records (`passes.records`); a debug build checks
subscripts and assertions as well (`passes.debug`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from sarek_numba.ir.build import Fresh
from sarek_numba.ir.depth import deep_recursion
from sarek_numba.ir.nodes import Body, ExprStmt, Kernel, Let, Print, Stmt
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.typing import scalar_of, type_of
from sarek_numba.ir.walk import bodies_of, bodies_of_kernel, map_body, walk_stmts, with_bodies
from sarek_numba.passes.common import Target, map_bodies
from sarek_numba.passes.debug import DebugChecks
from sarek_numba.passes.inline import inline
from sarek_numba.passes.legalise import flatten
from sarek_numba.passes.records import CAPACITY, FOR_FAULTS, PrintSite, Recorder, Site


@dataclass(frozen=True, slots=True)
class Reporting:
    """A kernel that fills a report, and what the numbers in its records stand for."""

    kernel: Kernel
    sites: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class _Inlining:
    """A target without calls, so that the report is at hand wherever something is written to it."""

    name: str = "report"
    address_bits: int = 64
    calls: bool = False
    inline_barriers: bool = False
    shuffles_only: bool = False
    framework: str = ""
    coarsening: int = 0
    own_functions: frozenset[tuple[str, Scalar]] = frozenset()
    own_operations: frozenset[tuple[str, Scalar]] = frozenset()


def prints(kernel: Kernel) -> bool:
    """Whether a kernel or one of its helpers prints."""
    bodies = bodies_of_kernel(kernel)
    return any(isinstance(stmt, Print) for body in bodies for stmt in walk_stmts(body))


def reporting(kernel: Kernel, *, debug: bool) -> Reporting | None:
    """The kernel that reports; None where it would have nothing to report."""
    if not debug and not prints(kernel):
        return None
    target: Target = _Inlining()
    with deep_recursion():
        plain = inline(flatten(_keep_evaluations(kernel), target), target)
        recorder = Recorder(plain)
        checks = DebugChecks(recorder) if debug else _NoChecks()
        body = (*checks.start(), *_body(plain.body, checks, recorder))
        params = (*plain.params, recorder.parameter())
        made = replace(plain, params=params, body=body)
    return Reporting(made, tuple(recorder.sites))


def _keep_evaluations(kernel: Kernel) -> Kernel:
    """Expressions that are evaluated for nothing get a name, so that their subscripts stay."""
    fresh = Fresh.beyond(kernel)

    def named(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, ExprStmt):
            return stmt
        return Let(fresh("unused", type_of(stmt.value)), stmt.value, span=stmt.span)

    return map_bodies(kernel, lambda body: map_body(body, named))


class _Checks(Protocol):
    def start(self) -> Body:
        """What stands before the kernel's body."""
        ...

    def statement(self, stmt: Stmt, made: Body) -> Body:
        """What stands for a statement whose nested bodies are done; `made` without checks."""
        ...


class _NoChecks:
    """A build that checks nothing."""

    def start(self) -> Body:
        return ()

    def statement(self, stmt: Stmt, made: Body) -> Body:
        return made


def _body(body: Body, checks: _Checks, recorder: Recorder) -> Body:
    result: list[Stmt] = []
    for stmt in body:
        nested = bodies_of(stmt)
        if nested:
            stmt = with_bodies(stmt, [_body(inner, checks, recorder) for inner in nested])
        result += checks.statement(stmt, _printed(stmt, recorder))
    return tuple(result)


def _printed(stmt: Stmt, recorder: Recorder) -> Body:
    """A print as the record that it leaves; any other statement as it is."""
    if not isinstance(stmt, Print):
        return (stmt,)
    parts = tuple(p if isinstance(p, str) else scalar_of(p) for p in stmt.parts)
    limit = CAPACITY - FOR_FAULTS
    return recorder.record(PrintSite(parts), stmt.values, stmt.span, limit)
