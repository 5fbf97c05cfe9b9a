"""What can be read of a vector on the host, in the manner of NumPy, through `numpy.asarray`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np


class Readable:
    """Reads as NumPy's arrays have them, for classes with `__array__`."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment] # compared element by element, as arrays are
    __array_priority__ = 100.0  # NumPy leaves operators to these classes

    def __contains__(self, value: object) -> bool:
        return value in np.asarray(self)

    def tolist(self) -> Any:
        """The elements as Python numbers in lists."""
        return np.asarray(self).tolist()

    def item(self, *index: int) -> Any:
        """One element as a Python number."""
        return np.asarray(self).item(*index)

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __str__(self) -> str:
        return str(np.asarray(self))

    def _compared(self, other: Any, by: Callable[[Any, Any], Any]) -> Any:
        return by(np.asarray(self), np.asarray(other) if isinstance(other, Readable) else other)

    def __eq__(self, other: object) -> Any:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, operator.ge)
