"""Where a kernel was written: what its content leaves out, and messages need."""

from __future__ import annotations

from hashlib import sha256

from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.walk import bodies_of_kernel, expressions_of, walk_exprs, walk_stmts
from sarek_numba.span import Span


def places_of(kernel: Kernel) -> str:
    """A digest of the places of a kernel and of everything in it.

    Two kernels of equal content and equal places get the same messages.
    """
    spans: list[Span | None] = [kernel.span]
    for body in bodies_of_kernel(kernel):
        for stmt in walk_stmts(body):
            spans.append(stmt.span)
            spans += [getattr(each, "span", None) for each in walk_exprs(*expressions_of(stmt))]
    return sha256("\n".join(map(repr, spans)).encode("utf-8", "surrogatepass")).hexdigest()
