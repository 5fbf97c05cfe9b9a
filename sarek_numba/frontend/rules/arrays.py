"""Rules of arrays and tuples: indexing, storing, views, attributes, iteration."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba.core import types

from sarek_numba.errors import ConstantOverflow, ReadOnlyWrite, UnsupportedConstruct
from sarek_numba.frontend.extensions import (
    RANGE_ITERATOR,
    CompileTime,
    IteratorType,
    PlacedArray,
    RangeType,
    SliceType,
)
from sarek_numba.frontend.rules.operators import constant
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.typed import (
    Constant,
    GetItem,
    Iterate,
    Next,
    Operation,
    SetItem,
    Shape,
    Size,
    Transpose,
    TupleItem,
    TuplePick,
    TupleSlice,
    Type,
)
from sarek_numba.frontend.weak import (
    WEAK_INT,
    Refusal,
    WeakInt,
    check_fit,
    constant_of,
    describe,
    is_integer,
    is_number,
    is_real,
    is_whole,
    join,
    tuple_of,
)

# --- indexing -------------------------------------------------------------------------------------


def index_items(index: Type) -> tuple[Type, ...]:
    """The subscripts that an index is made of."""
    return tuple(index.types) if isinstance(index, types.BaseTuple) else (index,)


def indexed(array: Type, index: Type) -> Type:
    """The element type, or the type of the view, that an index names."""
    items = index_items(index)
    for item in items:
        _check_subscript(item)
    if len(items) > array.ndim:
        raise Refusal(f"{len(items)} indices for {describe(array)}")
    slices = sum(isinstance(item, SliceType) for item in items)
    ndim = array.ndim - len(items) + slices
    if ndim == 0:
        return array.dtype
    return array.copy(ndim=ndim, layout=_layout_of_view(array, items))


def _check_subscript(item: Type) -> None:
    if is_whole(item) or isinstance(item, SliceType):
        return
    hint = "write int(...) around it" if is_number(item) else None
    if isinstance(item, CompileTime) and item.value is Ellipsis:
        hint = "write a colon for each axis"
    elif isinstance(item, types.NoneType):
        hint = "views keep the axes of their array"
    elif isinstance(item, types.Array):
        hint = "write a loop over the indices"
    raise Refusal(f"an index is an integer or a slice, not {describe(item)}", hint)


def _layout_of_view(array: Type, items: tuple[Type, ...]) -> str:
    """C (or F) where the view is one stretch of such an array, else A."""
    full = [*items, *([None] * (array.ndim - len(items)))]
    if array.layout == "C":
        return "C" if _is_stretch(full) else "A"
    if array.layout == "F":
        return "F" if _is_stretch(full[::-1]) else "A"
    return "A"


def _is_stretch(items: list[Any]) -> bool:
    """Integers on the slowest axes, then at most one plain slice, then whole axes."""
    rest = list(items)
    while rest and rest[0] is not None and not isinstance(rest[0], SliceType):
        rest.pop(0)
    if rest and isinstance(rest[0], SliceType) and rest[0].has_unit_step:
        rest.pop(0)
    return all(item is None or (isinstance(item, SliceType) and item.is_whole) for item in rest)


@rule(operator.getitem)
def get_item(container: Type, index: Type) -> Operation:
    if isinstance(container, types.Array):
        return Operation(GetItem(), (container, index), indexed(container, index))
    if isinstance(container, types.BaseTuple):
        return _tuple_item(container, index)
    hint = None
    if is_captured_array(container):
        hint = "write sarek.const.array_like(a) in the kernel, or pass the array as an argument"
    raise Refusal(f"{describe(container)} cannot be indexed", hint)


def is_captured_array(type: Type) -> bool:
    """Whether a compile-time object is a NumPy array of the program around the kernel."""
    return isinstance(type, CompileTime) and hasattr(type.value, "__array_interface__")


def _tuple_item(items: Type, index: Type) -> Operation:
    if isinstance(index, SliceType):
        parts = [_constant_part(part) for part in index.parts]
        chosen = tuple(items.types)[slice(*parts)]
        return Operation(TupleSlice(*parts), (items,), tuple_of(chosen))
    if not is_whole(index):
        raise Refusal(f"the index of a tuple is an integer, not {describe(index)}")
    position = constant_of(index)
    if position is not None:
        if not -len(items) <= position < len(items):
            raise Refusal(f"index {position} is outside a tuple of {len(items)}")
        position = int(position) % len(items)
        return Operation(TupleItem(position), (items,), items.types[position])
    common = common_item(items)
    return Operation(TuplePick(), (items, WEAK_INT), common)


def _constant_part(part: Type) -> int | None:
    value = constant_of(part)
    if value is None and not isinstance(part, types.NoneType):
        raise Refusal("a tuple is sliced by constants")
    return None if value is None else int(value)


def common_item(items: Type) -> Type:
    """The join of a tuple's items, for an item chosen at run time."""
    if len(items) == 0:
        return WEAK_INT  # of an empty tuple nothing is ever read
    common = items.types[0]
    for other in items.types[1:]:
        joined = join(common, other)
        if joined is None:
            raise Refusal(
                f"the items of this tuple have no common type: {describe(common)} and "
                f"{describe(other)}",
                "name the items one by one, or convert them",
            )
        common = joined
    return common


@rule(operator.setitem)
def set_item(array: Type, index: Type, value: Type) -> Operation:
    if not isinstance(array, types.Array):
        hint = "build a new tuple" if isinstance(array, types.BaseTuple) else None
        if is_captured_array(array):
            hint = "pass the array as an argument"
        raise Refusal(f"{describe(array)} cannot be written to", hint)
    require_writable(array)
    target = indexed(array, index)
    if isinstance(target, types.Array):
        raise Refusal(
            "a store into a view, which is more than one element", "write a loop over its elements"
        )
    check_stored(value, target)
    return Operation(SetItem(), (array, index, target), types.none)


def require_writable(array: Type) -> None:
    """Refuse a read-only array."""
    if array.mutable:
        return
    if isinstance(array, PlacedArray):
        raise Refusal("a constant array is read-only", None, ReadOnlyWrite)
    raise Refusal(
        "this array is read-only", "pass a writable array, or a copy of it", ReadOnlyWrite
    )


def check_stored(value: Type, element: Type) -> None:
    """Refuse what is no number, and a constant that does not fit the elements."""
    if not is_number(value):
        hint = "name an element of it" if isinstance(value, types.Array) else None
        raise Refusal(f"{describe(value)} cannot be stored in an array of {element}", hint)
    check_fit(value, element)
    if is_integer(element) and is_real(value):
        number = constant_of(value)
        if number is not None and number == number and abs(number) != float("inf"):
            _check_truncated(number, element)


def _check_truncated(number: float, element: Type) -> None:
    if not element.minval <= int(number) <= element.maxval:
        raise Refusal(f"{number!r} does not fit {element}", None, ConstantOverflow)


@rule(operator.delitem)
def delete_item(container: Type, index: Type) -> Operation:
    raise Refusal("`del` of an element", None, UnsupportedConstruct)


# --- iteration ------------------------------------------------------------------------------------


@rule("getiter")
def get_iterator(iterable: Type) -> Operation:
    if isinstance(iterable, RangeType):
        return Operation(Iterate(), (iterable,), RANGE_ITERATOR)
    if isinstance(iterable, types.BaseTuple):
        return Operation(Iterate(), (iterable,), IteratorType(iterable, common_item(iterable)))
    hint = "write for i in range(len(a))" if isinstance(iterable, types.Array) else None
    raise Refusal(f"a loop runs over a range or a tuple, not {describe(iterable)}", hint)


@rule("iternext")
def next_item(iterator: Type) -> Operation:
    assert isinstance(iterator, IteratorType)
    return Operation(Next(), (iterator,), types.Pair(iterator.item, types.boolean))


# --- attributes -----------------------------------------------------------------------------------


def _shape(array: Type) -> Operation:
    extents = getattr(array, "extents", None)
    if extents is not None:
        shape = tuple_of(tuple(map(WeakInt.of, extents)))
        return Operation(Constant(extents), (), shape)
    return Operation(Shape(), (array,), tuple_of((WEAK_INT,) * array.ndim))


def _size(array: Type) -> Operation:
    extents = getattr(array, "extents", None)
    if extents is not None:
        size = 1
        for extent in extents:
            size *= extent
        return constant(size)
    return Operation(Size(), (array,), WEAK_INT)


def _transpose(array: Type) -> Operation:
    layout = {"C": "F", "F": "C"}.get(array.layout, "A") if array.ndim > 1 else array.layout
    return Operation(Transpose(), (array,), array.copy(layout=layout))


_ARRAY_ATTRIBUTES: dict[str, Callable[[Type], Operation]] = {
    "shape": _shape,
    "size": _size,
    "T": _transpose,
    "ndim": lambda array: constant(array.ndim),
}


def array_attribute(array: Type, name: str) -> Operation | None:
    """The operation of reading an attribute of an array; None if there is none of the name."""
    read = _ARRAY_ATTRIBUTES.get(name)
    return None if read is None else read(array)
