"""Modes: what all programs of one kernel have in common, its hints and its blocks.

The programs of a batch are one kernel, so programs of ten seeds in a row share their mode. Programs
with warp operations have one block of two warps; all others have two blocks of four threads.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

TOGETHER = 10  # seeds in a row that have one mode
WARP = 32


@dataclass(frozen=True, slots=True)
class Mode:
    """Hints of a kernel, and whether it has warp operations."""

    wraparound: bool = True
    bounds: str | None = None
    strict: bool = False
    warps: bool = False

    @property
    def grid(self) -> int:
        """Blocks of a group."""
        return 1 if self.warps else 2

    @property
    def block(self) -> int:
        """Threads of a block."""
        return 2 * WARP if self.warps else 4

    @property
    def threads(self) -> int:
        return self.grid * self.block

    @property
    def rounds(self) -> int:
        """Sets of arguments for each program; more threads take more of CPython's time."""
        return 2 if self.warps else 3

    @property
    def outside(self) -> tuple[str, ...]:
        """Indices, out of range at times, of an array that a thread has alone."""
        if self.bounds is None:
            return ()
        # a constant that counts from the end is refused where nothing does
        return ("<i>", "<i> - 3", "(<int>)", "9") if self.wraparound else ("<i> % 20", "9")

    @property
    def options(self) -> dict[str, Any]:
        """What `@sarek.kernel` is given."""
        return {"wraparound": self.wraparound, "bounds": self.bounds, "strict": self.strict}


PLAIN = Mode()


def mode_of(seed: int) -> Mode:
    """The mode of a seed's program."""
    rng = random.Random(f"mode {seed // TOGETHER}")
    return Mode(
        wraparound=rng.random() < 0.75,
        bounds="clamp" if rng.random() < 0.25 else None,
        strict=rng.random() < 0.25,
        warps=rng.random() < 0.3,
    )
