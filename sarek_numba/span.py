"""Source positions.

A `Span` says where in the user's file something was written. It rides on IR nodes and errors,
takes no part in their equality, and is never part of a content hash.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one source file; lines count from 1, columns from 0, the end is exclusive."""

    file: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None

    def surrounds(self, other: Span) -> bool:
        """Whether another span is a part of this one, and not all of it."""
        ours, theirs = self._ends(), other._ends()
        if ours is None or theirs is None or ours == theirs or self.file != other.file:
            return False
        return ours[0] <= theirs[0] and theirs[1] <= ours[1]

    def _ends(self) -> tuple[tuple[int, int], tuple[int, int]] | None:
        if self.column is None or self.end_line is None or self.end_column is None:
            return None
        return (self.line, self.column), (self.end_line, self.end_column)

    def __str__(self) -> str:
        column = "" if self.column is None else f":{self.column + 1}"
        return f"{shown_file(self.file)}:{self.line}{column}"


def shown_file(file: str) -> str:
    """A file as messages name it: a cell of a notebook as IPython does, not by its file."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    words = named(file) if named is not None else None
    return file if words is None else " ".join(words)
