"""Counting which lines ran: marks of a covered kernel, and what its lanes did at each.

A mark is an `Empty` statement with a place (`frontend.covering` puts them there). Marks of one line
share a number, so that a thread which comes to it in two helpers is one thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sarek_interp.machine import Machine, Mask, Selection
from sarek_numba.recording import Place, Recording
from sarek_numba.span import Span


class Marks:
    """The lines of one kernel that have marks."""

    def __init__(self) -> None:
        self.numbers: dict[Place, int] = {}

    def number(self, span: Span) -> int:
        return self.numbers.setdefault((span.file, span.line), len(self.numbers))


class LinesRun:
    """The marks that the lanes of one chunk came to."""

    def __init__(self, marks: int, lanes: int) -> None:
        self.hits = [0] * marks
        self._lanes = lanes
        self._seen: dict[int, Mask] = {}

    def ran(self, number: int, lanes: Selection | None) -> None:
        """Some lanes of the chunk are at a mark; None for all."""
        self.hits[number] += self._lanes if lanes is None else lanes.size
        seen = self._seen.get(number)
        if seen is None:
            seen = self._seen[number] = np.zeros(self._lanes, np.bool_)
        seen[slice(None) if lanes is None else lanes] = True

    def threads(self, number: int) -> int:
        """How many lanes came to a mark."""
        seen = self._seen.get(number)
        return 0 if seen is None else int(np.count_nonzero(seen))


def count_lanes(machine: Machine, number: int) -> None:
    """Count the live lanes at a mark, if somebody records."""
    lines = machine.chunk.lines
    if lines is not None:
        lines.ran(number, machine.chunk_lanes(machine.selected()))


def settle(
    recording: Recording, launched: int, numbers: Mapping[Place, int], chunks: Sequence[LinesRun]
) -> None:
    """Add a launch to a recording."""
    counts = {
        place: (
            sum(chunk.hits[number] for chunk in chunks),
            sum(chunk.threads(number) for chunk in chunks),
        )
        for place, number in numbers.items()
    }
    recording.add(launched, counts)
