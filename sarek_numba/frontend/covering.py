"""Marks before statements, so that the oracle can count which lines ran.

While `covering()`, a function is compiled anew from its tree (`source.recompile`) with a call of
`mark` before each statement, on the statement's line; it becomes an `Empty` statement of the IR.
Statements are marked and not lines, because `pass`, `continue` or an array's declaration leave
nothing behind that could be counted. A function whose text is not to be had has no marks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_current: ContextVar[bool] = ContextVar("sarek_covering", default=False)


def mark() -> None:
    """Stands before each statement of a covered function, and computes nothing."""


FUNCTIONS: dict[str, Callable[..., Any]] = {"<mark>": mark}


def covering() -> bool:
    """Whether functions are compiled with marks."""
    return _current.get()


@contextmanager
def compiling_covered(covered: bool) -> Iterator[None]:
    """Compile functions with marks, or without."""
    token = _current.set(covered)
    try:
        yield
    finally:
        _current.reset(token)


def is_counted(statement: ast.stmt) -> bool:
    """Whether a statement does anything: a docstring, or another constant, does not."""
    return not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


def mark_of(statement: ast.stmt) -> list[ast.stmt]:
    """What stands before a statement while covering."""
    if not covering() or not is_counted(statement):
        return []

    def on(node: Any) -> Any:
        node.lineno, node.end_lineno = statement.lineno, statement.lineno
        node.col_offset, node.end_col_offset = statement.col_offset, statement.col_offset
        return node

    name = on(ast.Name("<mark>", ast.Load()))
    return [on(ast.Expr(on(ast.Call(func=name, args=[], keywords=[]))))]
