"""Arrays that grow: columns to which rows are appended, and tables sorted by an integer key."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


class Columns:
    """Columns of int64 of one length; `self[c]` is what column c holds now."""

    def __init__(self, columns: int, first: int = 0) -> None:
        """`first` rows of zeros stand at the start."""
        self.size = first
        self._data = np.zeros((columns, max(64, first)), np.int64)

    def __getitem__(self, column: int) -> Numbers:
        return self._data[column, : self.size]

    def append(self, *values: Numbers) -> Numbers:
        """Append rows, one array for each column; gives their numbers."""
        start, end = self.size, self.size + values[0].size
        if end > self._data.shape[1]:
            wider = np.zeros((len(self._data), max(end, 2 * self._data.shape[1])), np.int64)
            wider[:, :start] = self._data[:, :start]
            self._data = wider
        for column, given in enumerate(values):
            self._data[column, start:end] = given
        self.size = end
        return np.arange(start, end)


class Table:
    """Rows of int64 found by key; a row that was never set holds zeros."""

    def __init__(self, columns: int) -> None:
        self.keys: Numbers = np.zeros(0, np.int64)
        self.values = np.zeros((columns, 0), np.int64)

    def rows(self, keys: Numbers) -> Numbers:
        """Positions of rows, made where they are missing; valid until the next call."""
        wanted = np.unique(keys)
        where = np.searchsorted(self.keys, wanted)
        missing = where == self.keys.size
        missing[~missing] = self.keys[where[~missing]] != wanted[~missing]
        if missing.any():
            self.keys = np.insert(self.keys, where[missing], wanted[missing])
            self.values = np.insert(self.values, where[missing], 0, axis=1)
        return np.searchsorted(self.keys, keys)

    def between(self, low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
        """Rows with low <= key < high: for each, which range it is of, and its position."""
        first, last = np.searchsorted(self.keys, low), np.searchsorted(self.keys, high)
        return spread(first, last - first)


def spread(starts: Numbers, lengths: Numbers) -> tuple[Numbers, Numbers]:
    """The members of ranges: for each, which range it is of, and its number."""
    which = np.repeat(np.arange(lengths.size), lengths)
    before = np.cumsum(lengths) - lengths
    return which, np.arange(which.size) - np.repeat(before - starts, lengths)
