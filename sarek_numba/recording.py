"""Which source lines of kernels ran: what the oracle counts while somebody records.

`current()` is the recording that launches of this thread or task add to, None for none: then
nothing is counted, and kernels are compiled without anything to count.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

Place = tuple[str, int]  # file and line


@dataclass(slots=True)
class LineCount:
    """One statement: how often a thread came to it, how many threads did, of how many."""

    hits: int = 0
    threads: int = 0
    launched: int = 0


@dataclass(slots=True)
class Recording:
    """The counts of several launches, by the line that a statement starts in."""

    lines: dict[Place, LineCount] = field(default_factory=dict)
    launches: int = 0
    threads: int = 0
    unread: int = 0  # launches of kernels without a line: their text is not to be had
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, launched: int, counts: Mapping[Place, tuple[int, int]]) -> None:
        """Add a launch of so many threads: hits and threads of each line of its kernel."""
        with self._lock:
            self.launches += 1
            self.threads += launched
            self.unread += not counts
            for place, (hits, threads) in counts.items():
                line = self.lines.setdefault(place, LineCount())
                line.hits += hits
                line.threads += threads
                line.launched += launched


_current: ContextVar[Recording | None] = ContextVar("sarek_recording", default=None)


def current() -> Recording | None:
    """The recording that is under way."""
    return _current.get()


@contextmanager
def into(recording: Recording) -> Iterator[None]:
    """Have launches within add to a recording."""
    token = _current.set(recording)
    try:
        yield
    finally:
        _current.reset(token)
