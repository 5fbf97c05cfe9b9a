"""The arrays of an emulated kernel: NumPy arrays whose stores convert as the language says.

Reading, slicing and index errors are NumPy's own. A store of a float into an integer array
truncates and saturates; a store of a Python int that does not fit raises OverflowError, as NumPy
does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.frontend.hints import NONE, Hints
from sarek_numba.verify.emulation.numbers import convert


class EmulatedArray:
    """A NumPy array as a kernel sees it; a view is an EmulatedArray too."""

    __slots__ = ("array", "hints")

    def __init__(self, array: npt.NDArray[Any], hints: Hints = NONE) -> None:
        self.array = array
        self.hints = hints

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def size(self) -> int:
        return int(self.array.size)

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def T(self) -> EmulatedArray:  # noqa: N802 - NumPy's name
        return EmulatedArray(self.array.T, self.hints)

    @property
    def real(self) -> EmulatedArray:
        return EmulatedArray(self.array.real, self.hints)

    @property
    def imag(self) -> EmulatedArray:
        return EmulatedArray(self.array.imag, self.hints)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Any:
        item = self.array[self._placed(index)]
        return EmulatedArray(item, self.hints) if isinstance(item, np.ndarray) else item

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[self._placed(index)] = convert(value, self.array.dtype)

    def _placed(self, index: Any) -> Any:
        """The index as the kernel's hints have it: NumPy's own without any."""
        if self.hints.wraparound and self.hints.bounds is None:
            return index
        items = index if isinstance(index, tuple) else (index,)
        return tuple(map(self._along, items, self.array.shape))

    def _along(self, item: Any, extent: int) -> Any:
        if isinstance(item, slice):
            return item
        place = int(item)
        if place < 0 and self.hints.wraparound:
            place += extent
        if self.hints.bounds == "clamp":
            place = max(0, min(place, extent - 1))
        if not 0 <= place < extent:
            raise IndexError(f"index {item} is out of range for an axis of {extent} elements")
        return place


def poisoned(shape: Any, dtype: Any, hints: Hints = NONE) -> EmulatedArray:
    """New shared or local memory: a pattern that no kernel should ever read."""
    array = np.empty(shape, np.dtype(dtype))
    array.view(np.uint8).fill(0xA5) if array.ndim else array.fill(0)
    return EmulatedArray(array, hints)
