"""Numba types that Numba does not have: arrays outside global memory, iterators, fragments, and
things known only while compiling (functions, modules, types, strings).
"""

from __future__ import annotations

from types import MethodType, ModuleType
from typing import Any

import numpy as np
from numba.core import types

from sarek_numba.frontend.matrices import Config
from sarek_numba.frontend.weak import WEAK_INT, Type
from sarek_numba.ir.types import MemSpace


class PlacedArray(types.Array):  # type: ignore[misc] # Numba ships no types
    """An array in shared, local or constant memory, or a view of one.

    `extents` is the constant shape of a whole array, None for a view or the dynamic region.
    """

    def __init__(
        self,
        dtype: Type,
        ndim: int,
        layout: str,
        space: MemSpace,
        extents: tuple[int, ...] | None = None,
        aligned: bool = True,
    ) -> None:
        self.space = space
        self.extents = extents
        readonly = space is MemSpace.CONSTANT
        name = f"{space.value} array({dtype}, {ndim}d, {layout}, {extents})"
        super().__init__(dtype, ndim, layout, readonly=readonly, name=name, aligned=aligned)

    @property
    def key(self) -> Any:
        return (super().key, self.space, self.extents)

    def copy(
        self,
        dtype: Type = None,
        ndim: int | None = None,
        layout: str | None = None,
        readonly: bool | None = None,
    ) -> PlacedArray:
        """A view of the array: it keeps the space and loses the constant shape."""
        return PlacedArray(
            self.dtype if dtype is None else dtype,
            self.ndim if ndim is None else ndim,
            self.layout if layout is None else layout,
            self.space,
            aligned=self.aligned,
        )


def space_of(array: Type) -> MemSpace:
    """Where an array lives."""
    if not isinstance(array, PlacedArray):
        return MemSpace.GLOBAL
    space: MemSpace = array.space
    return space


class RangeType(types.Opaque):  # type: ignore[misc] # Numba ships no types
    """A `range`; its items are weak ints, as in CPython."""

    described = "a range"

    def __init__(self) -> None:
        super().__init__("range")


RANGE = RangeType()


class IteratorType(types.Opaque):  # type: ignore[misc] # Numba ships no types
    """An iterator over a range or a tuple, and the type of its items."""

    def __init__(self, source: Type, item: Type) -> None:
        self.source = source
        self.item = item
        super().__init__(f"iterator of {source} as {item}")


RANGE_ITERATOR = IteratorType(RANGE, WEAK_INT)


class SliceType(types.Opaque):  # type: ignore[misc] # Numba ships no types
    """A slice, by the types of its start, stop and step: whole numbers or None."""

    described = "a slice"

    def __init__(self, start: Type, stop: Type, step: Type) -> None:
        self.parts = (start, stop, step)
        super().__init__(f"slice({start}, {stop}, {step})")

    @property
    def is_whole(self) -> bool:
        """Whether it takes the axis as it is: `:`."""
        return all(isinstance(part, types.NoneType) for part in self.parts)

    @property
    def has_unit_step(self) -> bool:
        return isinstance(self.parts[2], types.NoneType)


class FragmentType(types.Opaque):  # type: ignore[misc] # Numba ships no types
    """A fragment: its configuration and its use there."""

    def __init__(self, config: Config, use: str) -> None:
        self.config = config
        self.use = use
        self.described = f"a fragment {use!r}"
        super().__init__(f"fragment {use} of {config!r}")

    @property
    def key(self) -> Any:
        return (self.config, self.use)

    @property
    def shape(self) -> tuple[int, int]:
        config = self.config
        rows = config.k if self.use == "b" else config.m
        return rows, config.k if self.use == "a" else config.n

    @property
    def component(self) -> str:
        """The name of the component's type."""
        return str(getattr(self.config, self.use))


class CompileTime(types.Opaque):  # type: ignore[misc] # Numba ships no types
    """A Python object that takes part in compiling only: a function, module, type or string.

    Equal if the objects are the same.
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        self.described = _described(value)
        super().__init__(getattr(value, "__name__", None) or repr(value))

    @property
    def key(self) -> Any:
        # keeping the object in the key keeps its id from being used again
        return _Identity(self.value)


def _described(value: Any) -> str:
    """An object in the words of an error message."""
    name = getattr(value, "__name__", None) or repr(value)
    if isinstance(value, str):
        return f"the string {value!r}"
    if isinstance(value, np.ndarray):
        return "a NumPy array from around the kernel"
    if isinstance(value, ModuleType):
        return f"the module {name}"
    if isinstance(value, type):
        return f"the type {name}"
    if callable(value):
        return f"the function {name}()"
    if " at 0x" in name:
        return f"an object of class {type(value).__name__}"
    return name


class _Identity:
    """A key by identity, but for strings and bound methods, of which Python makes new ones."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.by_value = isinstance(value, (str, MethodType))

    def __hash__(self) -> int:
        return hash(self.value) if self.by_value else id(self.value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Identity):
            return False
        if self.by_value and other.by_value:
            return bool(self.value == other.value)
        return self.value is other.value
