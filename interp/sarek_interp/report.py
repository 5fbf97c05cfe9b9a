"""What a launch on the oracle found: `Finding`s, collected by `Findings`, told by a `Report`.

Findings stand in program order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from sarek_numba.display import code, columns, table
from sarek_numba.errors import Finding, Triple, Writer, raise_findings


class Findings:
    """Collects findings, one for each key, at most `limit` of them."""

    def __init__(self, limit: int = 200) -> None:
        self._found: dict[Any, Finding] = {}
        self._limit = limit
        self.dropped = 0

    def known(self, key: Any, threads: int = 1) -> bool:
        """Whether a fault needs no new finding; if it has one, the threads are counted there."""
        old = self._found.get(key)
        if old is not None:
            self._found[key] = replace(old, threads=old.threads + threads)
            return True
        if len(self._found) >= self._limit:
            self.dropped += 1
            return True
        return False

    def add(self, key: Any, finding: Finding) -> None:
        self._found[key] = finding

    def in_order(self) -> tuple[Finding, ...]:
        """All findings in program order."""
        return tuple(sorted(self._found.values(), key=lambda finding: finding.order))


@dataclass(frozen=True, slots=True)
class Report:
    """What happened in one launch. Prints itself as a table; true when nothing was found."""

    kernel: str
    grid: Triple
    block: Triple
    findings: tuple[Finding, ...]
    seed: int
    seconds: float
    dropped: int = 0
    printed: str = ""
    writer: Writer | None = None

    @property
    def threads(self) -> int:
        """Number of threads of the launch."""
        total = 1
        for extent in (*self.grid, *self.block):
            total *= extent
        return total

    def __bool__(self) -> bool:
        return not self.findings

    def raise_first(self) -> None:
        """Raise the first finding's error, which carries them all; nothing if there are none."""
        raise_findings(self.findings, self.dropped)

    def _headline(self) -> str:
        count = len(self.findings) + self.dropped
        verdict = f"{count} finding{'s' * (count > 1)}" if count else "nothing found"
        return (
            f"kernel '{self.kernel}', grid {self.grid}, block {self.block}: "
            f"{self.threads} threads in {self.seconds:.3f} s, seed {self.seed}: {verdict}"
        )

    def _rows(self) -> Iterable[tuple[str, str, str, str, str]]:
        for finding in self.findings:
            yield (
                finding.error.__name__,
                str(finding.span or ""),
                "" if finding.block is None else str(finding.block),
                "" if finding.thread is None else str(finding.thread),
                finding.message,
            )

    def __str__(self) -> str:
        rows = [_COLUMNS, *self._rows()]
        if len(rows) == 1:
            return self._headline()
        lines = columns(rows)
        lines.insert(
            1, "  ".join("-" * max(map(len, column)) for column in zip(*rows, strict=True))
        )
        details = [f"[{n}] {finding}" for n, finding in enumerate(self.findings, 1)]
        return "\n".join([self._headline(), *lines, "", *details])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self.findings:
            return f"<p>{escape(self._headline())}</p>"
        details = "\n\n".join(f"[{n}] {finding}" for n, finding in enumerate(self.findings, 1))
        return f"{table(_COLUMNS, list(self._rows()), self._headline())}{code(details)}"


_COLUMNS = ("error", "place", "block", "thread", "what")
