"""Where the elements of an array argument lie in the buffer that it was bound to.

A launch binds buffers, which may be larger than the user's array and hold it in any layout. The
parameters that carry its offset, shape and strides say how to name an element as the user does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sarek_numba.ir.layout import layout_of
from sarek_numba.ir.nodes import ParamDecl
from sarek_numba.ir.records import element_named, leaves
from sarek_numba.ir.types import OffsetOf, Record, Role, ShapeOf, StrideOf, UserArgument

Subscripts = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class View:
    """Offset, and shape and strides of each axis, in elements."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def named(self, name: str, element: int) -> tuple[Subscripts, str]:
        """The subscripts of an element of the array `name`, and the element in words."""
        index = self.subscripts(element)
        return index, f"{name}[{in_words(index)}]"

    def subscripts(self, element: int) -> Subscripts:
        """The subscripts that name an element of the buffer; its own number where none do."""
        rest = element - self.offset
        for extent, stride in zip(self.shape, self.strides, strict=True):
            if stride < 0:
                rest -= (extent - 1) * stride
        found = [0] * len(self.shape)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -abs(self.strides[axis])):
            extent, stride = self.shape[axis], abs(self.strides[axis])
            if stride == 0 or extent <= 1:
                continue
            at, rest = divmod(rest, stride)
            if not 0 <= at < extent:
                return element
            found[axis] = extent - 1 - at if self.strides[axis] < 0 else at
        if rest:
            return element
        return found[0] if len(found) == 1 else tuple(found)


@dataclass(frozen=True, slots=True)
class RecordView:
    """A view of records through a base whose elements have `width` bytes."""

    view: View
    record: Record
    width: int

    def named(self, name: str, element: int) -> tuple[Subscripts, str]:
        """The subscripts of the record, and the number that an element of the base is."""
        at, byte = divmod(element * self.width, layout_of(self.record).size)
        index, words = self.view.named(name, at)
        return index, f"{words}{element_named(self.record, byte)}"


@dataclass(frozen=True, slots=True)
class ColumnView:
    """A view of records through the array of one number of each."""

    view: View
    record: Record
    column: int

    def named(self, name: str, element: int) -> tuple[Subscripts, str]:
        """The subscripts of the record, and the number that an element of the column is."""
        leaf = leaves(self.record)[self.column]
        at, inner = divmod(element, leaf.count)
        index, words = self.view.named(name, at)
        numbers = zip(np.unravel_index(inner, leaf.counts), leaf.strides, strict=True)
        byte = leaf.offset + sum(int(number) * stride for number, stride in numbers)
        return index, f"{words}{element_named(self.record, byte)}"


def whole_name(name: str) -> str:
    """The user's name of an array: a base or a field of its records is named behind a point."""
    return name.partition(".")[0]


def in_words(index: Subscripts) -> str:
    """Subscripts as they stand between brackets."""
    return str(index) if isinstance(index, int) else ", ".join(map(str, index))


def view_of(
    param: ParamDecl, size: int, values: Mapping[Role, int]
) -> View | RecordView | ColumnView | None:
    """The view of an array parameter in a buffer of `size` bytes; None where its shape is not told.

    `values` are those of the launch's scalar parameters by role.
    """
    if param.array is None or not isinstance(param.role, UserArgument):
        return None
    width = layout_of(param.array.element).size
    if param.array.record is None:
        return _plain_view(param, size // (width * (1 + param.array.pairs)), values)
    column = param.role.column
    if column is not None:
        each = width * leaves(param.array.record)[column].count
        view = _plain_view(param, size // each, values)
        return None if view is None else ColumnView(view, param.array.record, column)
    view = _plain_view(param, size // layout_of(param.array.record).size, values)
    return None if view is None else RecordView(view, param.array.record, width)


def _plain_view(param: ParamDecl, elements: int, values: Mapping[Role, int]) -> View | None:
    assert param.array is not None
    assert isinstance(param.role, UserArgument)
    argument, axes = param.role.argument, range(param.array.ndim)
    offset = values.get(OffsetOf(argument), 0)
    told = [values.get(ShapeOf(argument, axis)) for axis in axes]
    if param.array.ndim == 1 and told[0] is None:
        told = [elements - offset]
    shape = tuple(extent for extent in told if extent is not None)
    if len(shape) != param.array.ndim:
        return None
    strides = _contiguous(shape, param.array.layout)
    return View(
        offset,
        shape,
        tuple(values.get(StrideOf(argument, axis), strides[axis]) for axis in axes),
    )


def _contiguous(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """The strides of a contiguous array, in elements."""
    strides = [1] * len(shape)
    axes = range(len(shape)) if layout == "F" else reversed(range(len(shape)))
    step = 1
    for axis in axes:
        strides[axis] = step
        step *= max(1, shape[axis])
    return tuple(strides)
