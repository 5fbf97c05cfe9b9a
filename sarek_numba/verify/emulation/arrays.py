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
from sarek_numba.frontend.variants import VariantValue, copy_record, decode, encode, variant_of
from sarek_numba.verify.emulation.numbers import convert, widened


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
        index = self._placed(index)
        item = self.array[index]
        if isinstance(item, np.void):  # NumPy would give a view in some cases, a copy in others
            subscripts = index if isinstance(index, tuple) else (index,)
            return structured(self.array[(*subscripts, ...)], self.hints)
        return EmulatedArray(item, self.hints) if isinstance(item, np.ndarray) else widened(item)

    def __setitem__(self, index: Any, value: Any) -> None:
        index = self._placed(index)
        if isinstance(value, EmulatedRecord | VariantValue | tuple):
            subscripts = index if isinstance(index, tuple) else (index,)
            fill(self.array[(*subscripts, ...)], held(value))
            return
        self.array[index] = convert(value, self.array.dtype)

    def _placed(self, index: Any) -> Any:
        """The index as the kernel's hints have it: NumPy's own without any."""
        if isinstance(index, str) or (self.hints.wraparound and self.hints.bounds is None):
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


def structured(place: npt.NDArray[Any], hints: Hints = NONE) -> Any:
    """What is in a place: a record, which is a reference, or the value of a variant."""
    return EmulatedRecord(place, hints) if variant_of(place.dtype) is None else decode(place)


def store(value: EmulatedRecord | VariantValue, place: npt.NDArray[Any]) -> None:
    """Store a record or a variant into a place."""
    if isinstance(value, EmulatedRecord):
        copy_record(place, value.array.copy())
    else:
        encode(value, place)


def held(value: Any) -> Any:
    """A value that is stored, as it is before any of it is written."""
    if isinstance(value, EmulatedArray):
        return EmulatedArray(value.array.copy(), value.hints)
    if isinstance(value, tuple):
        return tuple(map(held, value))
    return own(value)


def fill(place: npt.NDArray[Any], value: Any) -> None:
    """Store a value into a place: a tuple item by item, a number into every element."""
    if isinstance(value, EmulatedRecord | VariantValue):
        store(value, place)
    elif isinstance(value, tuple):
        names = place.dtype.names or ()
        places = [place[name] for name in names] if place.ndim == 0 else list(_rows(place))
        if len(places) != len(value):
            raise ValueError(f"{len(value)} values are stored where {len(places)} are")
        for inner, item in zip(places, value, strict=True):
            fill(inner, item)
    elif isinstance(value, EmulatedArray):
        if value.shape != place.shape:
            raise ValueError(f"an array of {value.shape} is stored in one of {place.shape}")
        for index in np.ndindex(place.shape):
            fill(place[(*index, ...)], value[index])
    elif place.ndim:
        for index in np.ndindex(place.shape):
            fill(place[(*index, ...)], value)
    else:
        place[()] = convert(value, place.dtype)


def _rows(place: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    return [place[k, ...] for k in range(len(place))]


class EmulatedRecord:
    """A record: a view of an element of an array, or of memory of its own."""

    __slots__ = ("array", "hints")

    def __init__(self, array: npt.NDArray[Any], hints: Hints = NONE) -> None:
        object.__setattr__(self, "array", array)
        object.__setattr__(self, "hints", hints)

    def copy(self) -> EmulatedRecord:
        """A record of its own."""
        return EmulatedRecord(self.array.copy(), self.hints)

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    def __getitem__(self, name: str) -> Any:
        field = self.array[name]
        if field.ndim:
            return EmulatedArray(field, self.hints)
        return structured(field, self.hints) if field.dtype.names else widened(field[()])

    def __setitem__(self, name: str, value: Any) -> None:
        fill(self.array[name], held(value))

    def __getattr__(self, name: str) -> Any:
        if name not in (self.array.dtype.names or ()):
            raise AttributeError(f"a record has no field {name!r}")
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in (self.array.dtype.names or ()):
            raise AttributeError(f"a record has no field {name!r}")
        self[name] = value


def made_record(constructor: Any) -> Any:
    """`sarek.record(dtype)` as an emulated kernel calls it; still a dtype."""

    def make(*values: Any, **named: Any) -> EmulatedRecord:
        made = EmulatedRecord(np.zeros((), constructor.dtype))
        for name, value in constructor.given(values, named).items():
            made[name] = value
        return made

    make.dtype = constructor.dtype  # type: ignore[attr-defined] # NumPy asks it for its dtype
    return make


def own(value: Any) -> Any:
    """A value as a device function gets or gives it: records are copied."""
    if isinstance(value, EmulatedRecord):
        return value.copy()
    if isinstance(value, tuple):
        items = map(own, value)
        return type(value)._make(items) if hasattr(value, "_make") else tuple(items)
    return value


def poisoned(shape: Any, dtype: Any, hints: Hints = NONE) -> EmulatedArray:
    """New shared or local memory: a pattern that no kernel should ever read."""
    array = np.empty(shape, np.dtype(dtype))
    array.view(np.uint8).fill(0xA5) if array.ndim else array.fill(0)
    return EmulatedArray(array, hints)
