"""What a device's compiler says of a kernel with texts of the user's own, with their places."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sarek_numba.codegen.target import Target
from sarek_numba.errors import SourceCompilationError, excerpt
from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.texts import picked, without_fallbacks


@contextmanager
def explained(kernel: Kernel, device: str, target: Target | None) -> Iterator[None]:
    """Name the kernel, and where the texts are given, in a SourceCompilationError from within."""
    try:
        yield
    except SourceCompilationError as error:
        framework = "" if target is None else target.framework
        lines = _texts(kernel, framework)
        if not lines:
            raise
        message = f"kernel '{kernel.name}': {device} does not build it with"
        raise SourceCompilationError(
            "\n".join([message, *lines]), error.source, error.log
        ) from error


def _texts(kernel: Kernel, framework: str) -> list[str]:
    """The texts of the framework that the kernel is built with."""
    lines = []
    for helper in without_fallbacks(picked(kernel, framework)).functions:
        for stmt in helper.body[:1]:
            if framework in dict(getattr(stmt, "texts", ())):
                place = f"{stmt.span}: " if stmt.span else ""
                lines.append(f"  {place}the {framework} text of '{helper.name}'")
                lines += excerpt(stmt.span)
    return lines
