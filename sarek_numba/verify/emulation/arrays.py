"""The arrays of an emulated kernel: NumPy arrays whose stores convert as the language says.

Reading, slicing and index errors are NumPy's own. A store of a float into an integer array
truncates and saturates; a store of a Python int that does not fit raises OverflowError, as NumPy
does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.verify.emulation.numbers import convert


class EmulatedArray:
    """A NumPy array as a kernel sees it; a view is an EmulatedArray too."""

    __slots__ = ("array",)

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array

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
        return EmulatedArray(self.array.T)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Any:
        item = self.array[index]
        return EmulatedArray(item) if isinstance(item, np.ndarray) else item

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[index] = convert(value, self.array.dtype)


def poisoned(shape: Any, dtype: Any) -> EmulatedArray:
    """New shared or local memory: a pattern that no kernel should ever read."""
    array = np.empty(shape, np.dtype(dtype))
    array.view(np.uint8).fill(0xA5) if array.ndim else array.fill(0)
    return EmulatedArray(array)
