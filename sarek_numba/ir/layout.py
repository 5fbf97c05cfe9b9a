"""Sizes, alignments and offsets of every element type: the C ABI, for the host and every device.

A record is laid out as a C structure, unless it says where its fields are. A variant is a structure
of an int32 tag, which is the position of the constructor in the declaration, and a union of the
payloads, each a structure of its own. An array is as many elements side by side; where an array
stands as a value, it is its 64-bit address.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import assert_never

from sarek_numba.ir.types import (
    Array,
    ElementType,
    FixedArray,
    Record,
    Scalar,
    TupleType,
    Unit,
    Variant,
    Vec,
)

TAG = Scalar.INT32
ADDRESS_BYTES = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """In bytes; `offsets` of a record's fields, a tuple's items, or a variant's two parts."""

    size: int
    alignment: int
    offsets: tuple[int, ...] = ()


@cache
def layout_of(type: ElementType) -> Layout:
    """The layout of a value of a type."""
    match type:
        case Scalar():
            return Layout(type.bits // 8, type.bits // 8)
        case Unit():
            return Layout(0, 1)
        case Vec() | Array():
            return Layout(ADDRESS_BYTES, ADDRESS_BYTES)
        case Record(fields=fields, offsets=None):
            return _structure(layout_of(part) for _, part in fields)
        case Record():
            return _placed(type)
        case FixedArray(element=element, shape=shape):
            return array_layout(element, math.prod(shape))
        case TupleType(items=items):
            return _structure(map(layout_of, items))
        case Variant():
            return _structure((layout_of(TAG), _union(type)))
        case _:
            assert_never(type)


def array_layout(element: ElementType, count: int) -> Layout:
    """The layout of `count` elements side by side."""
    one = layout_of(element)
    return Layout(one.size * count, one.alignment)


def packed(name: str, fields: tuple[tuple[str, ElementType], ...]) -> Record:
    """A record whose fields follow each other without room between or behind them."""
    ends = [0]
    for _, part in fields:
        ends.append(ends[-1] + layout_of(part).size)
    return Record(name, fields, tuple(ends[:-1]), ends[-1])


def field_offset(record: Record, name: str) -> int:
    """Where a field of a record begins; raises KeyError for an unknown one."""
    names = (field for field, _ in record.fields)
    return dict(zip(names, layout_of(record).offsets, strict=True))[name]


def tag_of(variant: Variant, constructor: str) -> int:
    """The tag of a constructor; raises ValueError for an unknown one."""
    return [name for name, _ in variant.constructors].index(constructor)


def payload_offsets(variant: Variant, constructor: str) -> tuple[int, ...]:
    """Where the values of a constructor's payload begin, from the start of the variant."""
    _, start = layout_of(variant).offsets
    _, payload = variant.constructors[tag_of(variant, constructor)]
    return tuple(start + offset for offset in _structure(map(layout_of, payload)).offsets)


def _structure(parts: Iterable[Layout]) -> Layout:
    end, alignment = 0, 1
    offsets: list[int] = []
    for part in parts:
        start = _aligned(end, part.alignment)
        offsets.append(start)
        end = start + part.size
        alignment = max(alignment, part.alignment)
    return Layout(_aligned(end, alignment), alignment, tuple(offsets))


def _placed(record: Record) -> Layout:
    """A record that states its offsets: as aligned as all its fields are, or not at all."""
    assert record.offsets is not None
    assert record.size is not None
    parts = [layout_of(part) for _, part in record.fields]
    alignment = max((part.alignment for part in parts), default=1)
    aligned = record.size % alignment == 0 and not any(
        offset % part.alignment for offset, part in zip(record.offsets, parts, strict=True)
    )
    return Layout(record.size, alignment if aligned else 1, record.offsets)


def _union(variant: Variant) -> Layout:
    payloads = [_structure(map(layout_of, payload)) for _, payload in variant.constructors]
    alignment = max((payload.alignment for payload in payloads), default=1)
    size = max((payload.size for payload in payloads), default=0)
    return Layout(_aligned(size, alignment), alignment)


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
