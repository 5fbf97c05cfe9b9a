"""Arguments that are records in columns: an array for each number of a record.

A kernel counts records, and has one offset and one shape for all columns of an argument. So the
buffers of its columns begin at one record. `lowered_starts` sees to that where a column is merged
with another argument that begins before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Merged = list[tuple[int, int, tuple[int, ...]]]
"""First and past-the-end address of stretches of memory, each with the arrays in it."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an array lies in its region.

    `offset` is the index of element (0, …, 0) from the start of the bound buffer; it and `strides`
    count elements. `layout` is "C" or "F" only where the array starts its buffer and is contiguous.
    """

    region: int
    offset: int
    layout: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    length: int


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one argument: `first` is the position of the first among the values.

    `counts` says how many numbers of a column one record has, `ndim` how many axes the records
    have. `member` is the place of the first among the arrays of the launch.
    """

    first: int
    counts: tuple[int, ...]
    ndim: int
    member: int

    @property
    def positions(self) -> range:
        """The positions of all columns among the values."""
        return range(self.first, self.first + len(self.counts))

    @property
    def members(self) -> range:
        """The places of all columns among the arrays of the launch."""
        return range(self.member, self.member + len(self.counts))

    def placement(self, first: Placement) -> Placement:
        """The placement of the records, out of that of the first column."""
        each = self.counts[0]
        return Placement(
            first.region,
            first.offset // each,
            first.layout,
            first.shape[: self.ndim],
            tuple(stride // each for stride in first.strides[: self.ndim]),
            first.length // each,
        )


def lowered_starts(
    merge: Callable[[Mapping[int, int]], Merged],
    arrays: Sequence[npt.NDArray[Any]],
    origins: Sequence[int],
    split: Sequence[Columns],
) -> Mapping[int, int]:
    """Where columns begin that begin lower than their records do, as addresses by array.

    `merge` merges the arrays, given such starts. Columns of one argument have equal shapes, so what
    is before a record of one is before that record in all, and it is theirs.
    """
    lowered: dict[int, int] = {}
    while True:
        starts = {member: start for start, _, members in merge(lowered) for member in members}
        changed = False
        for columns in split:
            widths = {
                member: count * arrays[member].itemsize
                for member, count in zip(columns.members, columns.counts, strict=True)
            }
            ahead = {m: origins[m] - starts[m] for m in columns.members}
            records = max(-(-ahead[m] // widths[m]) for m in columns.members)
            for member, width in widths.items():
                if ahead[member] != records * width:
                    lowered[member] = origins[member] - records * width
                    changed = True
        if not changed:
            return lowered


def described_records(
    shape: tuple[int, ...], first: npt.NDArray[Any], count: int
) -> npt.NDArray[np.uint8]:
    """Shape and order of records, as an array of bytes that nobody reads or writes."""
    step = count * first.itemsize
    strides = [stride // step for stride in first.strides[: len(shape)]]
    nothing = np.empty(1, np.uint8)
    return np.lib.stride_tricks.as_strided(nothing, shape, strides, writeable=False)
