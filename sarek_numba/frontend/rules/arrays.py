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
from sarek_numba.frontend.halves import value_type
from sarek_numba.frontend.hints import current
from sarek_numba.frontend.language import Axes
from sarek_numba.frontend.records import RecordType, element_type, is_variant_type
from sarek_numba.frontend.rules import records
from sarek_numba.frontend.rules.complexes import part_view, storable
from sarek_numba.frontend.rules.exact import check_exact
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
    operand,
    tuple_of,
)

# --- indexing -------------------------------------------------------------------------------------


def index_items(index: Type) -> tuple[Type, ...]:
    """The subscripts that an index is made of."""
    return tuple(index.types) if isinstance(index, types.BaseTuple) else (index,)


def indexed(array: Type, index: Type) -> Type:
    """The element type, or the type of the view, that an index names."""
    items = index_items(index)
    for position, item in enumerate(items):
        with operand(position):
            _check_subscript(item)
    if len(items) > array.ndim:
        raise Refusal(
            f"{describe(array)} takes {_indices(array.ndim)}, and {len(items)} are given",
            "write one index for each axis",
        )
    slices = sum(isinstance(item, SliceType) for item in items)
    ndim = array.ndim - len(items) + slices
    if ndim == 0:
        return element_type(array)
    return array.copy(ndim=ndim, layout=_layout_of_view(array, items))


def _indices(count: int) -> str:
    return "1 index" if count == 1 else f"at most {count} indices"


def _check_subscript(item: Type) -> None:
    place = constant_of(item)
    if place is not None and place < 0 and is_whole(item) and not current().wraparound:
        raise Refusal(
            f"index {place} counts from the end, and the kernel states wraparound=False",
            f"write the extent minus {-place}, as in a[len(a) - {-place}]",
        )
    if is_whole(item) or isinstance(item, SliceType):
        return
    hint = "write int(...) around it" if is_number(item) else "index with integers and slices"
    if isinstance(item, CompileTime) and isinstance(item.value, Axes):
        hint = f"name an axis, as in {item.value!r}.x"
    elif isinstance(item, CompileTime) and item.value is Ellipsis:
        hint = "write a colon for each axis"
    elif isinstance(item, types.NoneType):
        hint = "a view has no new axes"
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
    if isinstance(container, RecordType):
        return records.field_item(container, index)
    if isinstance(container, types.Array):
        name = records.text_of(index)
        if name is not None and isinstance(container.dtype, RecordType):
            return records.view(container, name)
        with operand(1):
            element = value_type(indexed(container, index))
            return Operation(GetItem(), (container, index), element)
    if isinstance(container, types.BaseTuple):
        with operand(1):
            return _tuple_item(container, index)
    hint = "index arrays and tuples alone"
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
        hint = "write int(...) around it" if is_number(index) else "write an integer"
        raise Refusal(f"the index of a tuple is an integer, not {describe(index)}", hint)
    position = constant_of(index)
    if position is not None:
        if not -len(items) <= position < len(items):
            hint = f"its indices go from 0 to {len(items) - 1}" if len(items) else "it has no items"
            raise Refusal(f"index {position} is outside a tuple of {len(items)}", hint)
        position = int(position) % len(items)
        return Operation(TupleItem(position), (items,), items.types[position])
    common = common_item(items)
    return Operation(TuplePick(), (items, WEAK_INT), common)


def _constant_part(part: Type) -> int | None:
    value = constant_of(part)
    if value is None and not isinstance(part, types.NoneType):
        raise Refusal(
            f"a tuple is sliced by constants, not {describe(part)}", "choose an item with t[i]"
        )
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
    if isinstance(array, RecordType):
        return records.set_field_item(array, index, value)
    if not isinstance(array, types.Array):
        what, hint = "has no elements to store into", "store into arrays"
        if isinstance(array, types.BaseTuple):
            what, hint = "cannot be changed", "build a new tuple"
        elif is_captured_array(array):
            what, hint = "cannot be written to", "pass the array as an argument"
        with operand(0):
            raise Refusal(f"{describe(array)} {what}", hint)
    with operand(0):
        require_writable(array)
    with operand(1):
        target = indexed(array, index)
    if isinstance(target, types.Array):
        raise Refusal(
            f"this is {describe(target)}, and a store goes into one element",
            "write an index for each axis, or a loop over the elements",
        )
    if isinstance(target, RecordType):
        return records.set_record(array, index, value)
    with operand(2):
        check_stored(value, target)
    return Operation(SetItem(), (array, index, target), types.none)


def require_writable(array: Type) -> None:
    """Refuse a read-only array."""
    if array.mutable:
        return
    if isinstance(array, PlacedArray):
        raise Refusal(
            "a constant array is read-only", "copy it into a sarek.local.array", ReadOnlyWrite
        )
    raise Refusal(
        "this array is read-only", "pass a writable array, or a copy of it", ReadOnlyWrite
    )


def check_stored(value: Type, element: Type) -> None:
    """Refuse what is no number, and a constant that does not fit the elements."""
    if storable(value, element):
        if current().strict:
            check_exact(value, element)
        return
    if not is_number(value):
        hint = "store numbers alone"
        if isinstance(value, types.Array):
            hint = "name an element of it, as in a[i]"
        elif isinstance(value, types.BaseTuple):
            hint = "store its items one by one"
        elif is_variant_type(value):
            hint = "match it, and store a part of it"
        raise Refusal(f"{describe(value)} cannot be stored in an array of {element}", hint)
    check_fit(value, element)
    if current().strict:
        check_exact(value, element)
    if is_integer(element) and is_real(value):
        number = constant_of(value)
        if number is not None and number == number and abs(number) != float("inf"):
            _check_truncated(number, element)


def _check_truncated(number: float, element: Type) -> None:
    if not element.minval <= int(number) <= element.maxval:
        message = f"the Python float {number!r} does not fit {element}"
        raise Refusal(message, "use a wider type", ConstantOverflow)


@rule(operator.delitem)
def delete_item(container: Type, index: Type) -> Operation:
    raise Refusal(
        "`del` is not part of the kernel language",
        "leave the name alone, or store zero into the element",
        UnsupportedConstruct,
    )


# --- iteration ------------------------------------------------------------------------------------


@rule("getiter")
def get_iterator(iterable: Type) -> Operation:
    if isinstance(iterable, RangeType):
        return Operation(Iterate(), (iterable,), RANGE_ITERATOR)
    if isinstance(iterable, types.BaseTuple):
        return Operation(Iterate(), (iterable,), IteratorType(iterable, common_item(iterable)))
    hint = "write for i in range(...)"
    if isinstance(iterable, types.Array) or is_captured_array(iterable):
        hint = "write for i in range(len(a))"
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
    if read is None:
        return part_view(array, name)
    return None if read is None else read(array)
