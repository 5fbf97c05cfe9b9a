"""`SAREK_DUMP=stage,…`: print what a stage made to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable

from sarek_numba import settings

STAGES = ("numba", "typed", "ir", "optimised", "source")


def dump(stage: str, name: str, text: Callable[[], str]) -> None:
    """Print the text of a stage under a heading if the user asked for it; else make no text."""
    wanted = settings.dump_stages()
    if stage in wanted or "all" in wanted:
        print(f"---- {stage}: {name}\n{text().rstrip()}", file=sys.stderr)
