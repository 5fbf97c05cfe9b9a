"""The width of a warp that a kernel is being compiled for, and whether anything asked for it.

A kernel that never asks serves devices of every width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

DEFAULT_WIDTH = 32


@dataclass(slots=True)
class Asked:
    """`width` of the target; `used` once a rule has taken it."""

    width: int = DEFAULT_WIDTH
    used: bool = False


_current: ContextVar[Asked | None] = ContextVar("warp_width", default=None)


@contextmanager
def compiling_for(width: int) -> Iterator[Asked]:
    """Compile for warps of so many threads."""
    asked = Asked(width)
    token = _current.set(asked)
    try:
        yield asked
    finally:
        _current.reset(token)


def width() -> int:
    """The width of a warp of the target."""
    asked = _current.get() or Asked()
    asked.used = True
    return asked.width
