"""The Numba types of records: as elements of arrays, as references to elements, and as values.

As in NumPy `q = p[i]` names the element: a reference, through which fields are read and written
where they lie. `.copy()`, a construction, a parameter and the result of a device function are
values. A name may stand for a value that another name stands for too, as in Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from sarek_numba.frontend.extensions import PlacedArray, space_of
from sarek_numba.frontend.weak import Type, class_of, tuple_of, type_of
from sarek_numba.ir.pairs import pair_of
from sarek_numba.ir.records import dtype_of, leaf_at, leaves, type_at
from sarek_numba.ir.types import (
    PART_NAMES,
    ElementType,
    FixedArray,
    MemSpace,
    Record,
    Scalar,
)
from sarek_numba.ir.variants import canonical, is_variant, variant_name


class RecordType(types.Type):  # type: ignore[misc] # Numba ships no types
    """A record that is `held` as "element" of an array, "reference" to an element, or "value".

    `by_bytes` is memory in which the fields lie as the record's layout says: global memory and the
    dynamic shared region. Elsewhere each field has an array or a variable of its own. `path` leads
    from the record of the array to this one.
    """

    def __init__(
        self,
        root: Record,
        held: str = "element",
        space: MemSpace = MemSpace.GLOBAL,
        readonly: bool = False,
        by_bytes: bool = True,
        path: tuple[str, ...] = (),
    ) -> None:
        self.root = root
        self.held = held
        self.space = space
        self.readonly = readonly
        self.by_bytes = by_bytes
        self.path = path
        name = variant_name(self.record)
        super().__init__(name or f"record({', '.join(name for name, _ in self.record.fields)})")

    @property
    def record(self) -> Record:
        found = type_at(self.root, self.path)
        while isinstance(found, FixedArray):
            found = found.element
        assert isinstance(found, Record)
        return found

    @property
    def key(self) -> Any:
        return (self.root, self.held, self.space, self.readonly, self.by_bytes, self.path)

    @property
    def described(self) -> str:
        """The record in the words of an error message."""
        name = variant_name(self.record)
        if name is not None:
            return f"a value of the variant {name}"
        if self.held != "reference":
            return "a record"
        if self.is_captured:
            return "a record from around the kernel"
        return f"a reference to a {'read-only ' if self.readonly else ''}record"

    @property
    def is_captured(self) -> bool:
        """Whether the record is a constant from around the kernel."""
        return self.readonly and self.space is MemSpace.LOCAL

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.record.fields)

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self.record)

    def within(self, name: str, held: str) -> RecordType:
        """The record in a field of this one."""
        path = (*self.path, name)
        return RecordType(self.root, held, self.space, self.readonly, self.by_bytes, path)

    def held_as(self, held: str, array: Type | None = None) -> RecordType:
        """The same record held otherwise; a reference is to an element of `array`."""
        if array is None:
            return RecordType(self.root, held, self.space, self.readonly, self.by_bytes, self.path)
        return RecordType(
            self.root, held, space_of(array), not array.mutable, self.by_bytes, self.path
        )


class ComplexField(types.Complex):  # type: ignore[misc] # Numba ships no types
    """The complex elements of an array that is a field of records, or a field of all elements.

    Their parts lie as those of the records do: each in an array of its own, unless `by_bytes`.
    """

    def __init__(self, number: Type, by_bytes: bool) -> None:
        self.number = number
        self.by_bytes = by_bytes
        super().__init__(number.name, number.underlying_float)

    @property
    def key(self) -> Any:
        return (self.number, self.by_bytes)


class RecordMethod(types.Opaque):  # type: ignore[misc] # Numba ships no types
    """`r.copy`, before it is called."""

    described = "the method copy() of a record"

    def __init__(self, record: RecordType) -> None:
        self.record = record
        super().__init__(f"copy of {record} {record.key}")


def value_of(record: Record) -> RecordType:
    """The type of a value; that of a variant is one, wherever its cases lie in memory."""
    return RecordType(canonical(record), "value", MemSpace.LOCAL, by_bytes=False)


def is_variant_type(kind: Type) -> bool:
    return isinstance(kind, RecordType) and is_variant(kind.record)


def element_type(array: Type) -> Type:
    """What `a[i]` is of: a variant is a value, any other record a reference."""
    if isinstance(array.dtype, ComplexField):
        return array.dtype.number
    if not isinstance(array.dtype, RecordType):
        return array.dtype
    if is_variant_type(array.dtype):
        return value_of(array.dtype.record)
    return array.dtype.held_as("reference", array)


def passed(kind: Type) -> Type:
    """The type of an argument as a device function sees it, and of its result: a value."""
    if isinstance(kind, RecordType):
        return value_of(kind.record)
    if isinstance(kind, types.BaseTuple):
        return tuple_of(tuple(map(passed, kind.types)), class_of(kind))
    return kind


def is_value(kind: Type) -> bool:
    return isinstance(kind, RecordType) and kind.held == "value"


def is_record_array(kind: Type) -> bool:
    return isinstance(kind, types.Array) and isinstance(kind.dtype, RecordType)


def field_of(owner: RecordType, name: str) -> Type:
    """The type of a field of a record: a number, a record, or an array."""
    path = (*owner.path, name)
    kind = dict(owner.record.fields)[name]
    number = number_type(kind)
    if number is not None:
        return number
    if isinstance(kind, Record) and (is_value(owner) or is_variant(kind)):
        return value_of(kind)
    if isinstance(kind, Record):
        return owner.within(name, owner.held)
    assert isinstance(kind, FixedArray)
    number = number_type(kind.element)
    if number is None:
        return _array(owner.within(name, "element"), len(kind.shape), "C", owner, True)
    return _numbers(number, len(kind.shape), owner, path)


def number_type(kind: ElementType) -> Type | None:
    """The type of a number; None for what is no number."""
    pair = pair_of(kind)
    if pair is not None:
        return from_dtype(np.dtype(pair.value))
    return type_of(kind) if isinstance(kind, Scalar) else None


def _numbers(number: Type, ndim: int, owner: RecordType, path: tuple[str, ...]) -> Type:
    """The type of an array of numbers of records."""
    is_pair = isinstance(number, types.Complex)
    leaf = leaf_at(owner.root, (*path, PART_NAMES[0]) if is_pair else path)
    element = ComplexField(number, owner.by_bytes) if is_pair else number
    return _array(element, ndim, "A", owner, not owner.by_bytes or leaf.is_aligned)


def field_view(array: Type, name: str) -> Type | None:
    """The type of `p['x']`, the field of every element; None for a field of arrays of records."""
    element: RecordType = array.dtype
    owner = element.held_as("reference", array)
    held = dict(owner.record.fields)[name]
    number = number_type(held)
    if number is not None:
        return _numbers(number, array.ndim, owner, (*owner.path, name))
    if isinstance(held, Record):
        return array.copy(dtype=owner.within(name, "element"))
    kind = field_of(owner, name)
    if isinstance(kind.dtype, RecordType):
        return None
    return kind.copy(ndim=array.ndim + kind.ndim)


def _array(element: Type, ndim: int, layout: str, owner: RecordType, aligned: bool) -> Type:
    if owner.space is MemSpace.GLOBAL:
        return types.Array(element, ndim, layout, readonly=owner.readonly, aligned=aligned)
    return PlacedArray(element, ndim, layout, owner.space, aligned=aligned)


def numbers(record: Record) -> tuple[Scalar, ...]:
    """The types of all numbers of a record, each of a fixed array for itself."""
    return tuple(leaf.scalar for leaf in leaves(record) for _ in range(leaf.count))
