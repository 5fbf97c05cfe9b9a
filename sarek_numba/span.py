"""Source positions.

A `Span` says where in the user's file something was written. It rides on IR nodes and errors,
takes no part in their equality, and is never part of a content hash.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one source file; lines count from 1, columns from 0, the end is exclusive."""

    file: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None

    def __str__(self) -> str:
        column = "" if self.column is None else f":{self.column + 1}"
        return f"{self.file}:{self.line}{column}"
