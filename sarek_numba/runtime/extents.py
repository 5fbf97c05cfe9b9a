"""Sets of bytes as stretches: sorted, apart, each from its first byte to past its last."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

Span = tuple[int, int]


class Extents:
    """Some of the bytes of one piece of memory."""

    __slots__ = ("_spans",)

    def __init__(self, *spans: Span) -> None:
        self._spans: list[Span] = []
        for first, last in spans:
            self.add(first, last)

    def __bool__(self) -> bool:
        return bool(self._spans)

    def __iter__(self) -> Iterator[Span]:
        return iter(tuple(self._spans))

    def __repr__(self) -> str:
        return f"Extents({', '.join(map(str, self._spans))})"

    def add(self, first: int, last: int) -> None:
        """Take in bytes; what touches becomes one stretch."""
        if first >= last:
            return
        low = bisect_left(self._spans, first, key=lambda span: span[1])
        high = bisect_right(self._spans, last, key=lambda span: span[0])
        if low < high:
            first = min(first, self._spans[low][0])
            last = max(last, self._spans[high - 1][1])
        self._spans[low:high] = [(first, last)]

    def remove(self, first: int, last: int) -> None:
        """Leave out bytes."""
        low, high = self._meeting(first, last)
        if low == high:
            return
        start, end = self._spans[low][0], self._spans[high - 1][1]
        rest = [(start, first)] if start < first else []
        rest += [(last, end)] if last < end else []
        self._spans[low:high] = rest

    def within(self, first: int, last: int) -> list[Span]:
        """The stretches of these bytes that are in the set."""
        low, high = self._meeting(first, last)
        return [(max(a, first), min(b, last)) for a, b in self._spans[low:high]]

    def missing(self, first: int, last: int) -> list[Span]:
        """The stretches of these bytes that are not in the set."""
        found, at = [], first
        for start, end in self.within(first, last):
            if at < start:
                found.append((at, start))
            at = end
        if at < last:
            found.append((at, last))
        return found

    def covers(self, first: int, last: int) -> bool:
        """Whether all of these bytes are in the set."""
        return first >= last or self.within(first, last) == [(first, last)]

    def _meeting(self, first: int, last: int) -> tuple[int, int]:
        """The stretches that share a byte with these: from an index to past one."""
        if first >= last:
            return 0, 0
        low = bisect_right(self._spans, first, key=lambda span: span[1])
        return low, max(low, bisect_left(self._spans, last, key=lambda span: span[0]))
