"""Short ways to write kernels for the tests of the oracle, and to run them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sarek_interp import Report, execute
from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import Expr, HelperFunction, Kernel, Stmt, Var, make_kernel
from sarek_numba.ir.types import INT32, INT64, Scalar


class Builder:
    """Collects the parameters and locals of one kernel."""

    def __init__(self, name: str = "k") -> None:
        self.name = name
        self.fresh = b.Fresh()
        self.params: list[Any] = []
        self.locals: list[Any] = []
        self.functions: list[HelperFunction] = []

    def array(self, name: str, element: Scalar = INT32) -> Var:
        self.params.append(b.array_param(self.fresh, name, element, len(self.params)))
        return self.params[-1].var

    def scalar(self, name: str, type: Scalar = INT32) -> Var:
        self.params.append(b.scalar_param(self.fresh, name, type, len(self.params)))
        return self.params[-1].var

    def shared(self, name: str, size: int | None, element: Scalar = INT32, offset: int = 0) -> Var:
        self.locals.append(b.shared_decl(self.fresh, name, element, size, offset))
        return self.locals[-1].var

    def local(self, name: str, size: int, element: Scalar = INT32) -> Var:
        self.locals.append(b.local_decl(self.fresh, name, element, size))
        return self.locals[-1].var

    def const(self, name: str, values: list[int], element: Scalar = INT32) -> Var:
        self.locals.append(b.const_decl(self.fresh, name, element, values))
        return self.locals[-1].var

    def var(self, name: str, type: Scalar = INT64, mutable: bool = False) -> Var:
        return self.fresh(name, type, mutable)

    def kernel(self, *body: Stmt) -> Kernel:
        return make_kernel(
            self.name,
            body,
            params=tuple(self.params),
            locals=tuple(self.locals),
            functions=tuple(self.functions),
        )


def tid() -> Expr:
    return b.coordinate("thread_idx")


def bid() -> Expr:
    return b.coordinate("block_idx")


def gid() -> Expr:
    return b.coordinate("global_idx")


def int32(operand: Any) -> Expr:
    return b.cast(INT32, operand)


def run(
    kernel: Kernel,
    grid: int | tuple[int, int, int],
    block: int | tuple[int, int, int],
    *arguments: Any,
    shared_bytes: int = 0,
    **options: Any,
) -> Report:
    """Run a kernel; arrays are given as NumPy arrays, scalars as NumPy scalars."""
    given = [a.reshape(-1).view(np.uint8) if isinstance(a, np.ndarray) else a for a in arguments]
    return execute(kernel, _triple(grid), _triple(block), given, shared_bytes, **options)


def _triple(extent: int | tuple[int, int, int]) -> tuple[int, int, int]:
    return (extent, 1, 1) if isinstance(extent, int) else extent


def errors(report: Report) -> list[str]:
    """Names of the errors found, in program order."""
    return [finding.error.__name__ for finding in report.findings]
