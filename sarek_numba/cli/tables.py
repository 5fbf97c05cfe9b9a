"""The console that commands print to: as wide as the terminal, wide enough where there is none."""

from __future__ import annotations

from rich.console import Console

_WIDTH = 120  # of a table in a file or a pipe


def console() -> Console:
    """A console for standard output."""
    made = Console()
    return made if made.is_terminal else Console(width=_WIDTH)
