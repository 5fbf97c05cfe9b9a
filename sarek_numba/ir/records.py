"""Records of NumPy: from a structured dtype to a `Record` and back, and what a record is made of.

A dtype says where each field is. Where that is what `ir.layout` gives for a C structure the record
says no more than its fields; otherwise it carries the offsets. All code computes addresses from
`layout_of` of the record, so there is one table of offsets for the host and every device.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from sarek_numba.ir.layout import field_offset, layout_of
from sarek_numba.ir.pairs import PAIR_RECORDS, pair_of
from sarek_numba.ir.semantics.arrays import dtype_of as scalar_dtype
from sarek_numba.ir.types import ElementType, FixedArray, Record, Scalar
from sarek_numba.ir.variants import (
    TAG_FIELD,
    bundle,
    guards,
    is_bundle,
    name_of_dtype,
    parts_of_dtype,
    title,
    titles,
)

_NAME = "dtype"
_SCALARS = {scalar_dtype(scalar): scalar for scalar in Scalar}


class InvalidRecord(ValueError):
    """A dtype that is no record of a kernel: `message` says which field is at fault, and why."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@lru_cache(maxsize=1024)
def record_of(dtype: np.dtype[Any]) -> Record:
    """The record of a structured dtype. Raises InvalidRecord."""
    record = _record(dtype, "")
    if not record.fields:
        raise InvalidRecord("a record without fields", "give it a field")
    return record


def kind_of(dtype: np.dtype[Any]) -> ElementType:
    """The type of a number, record or variant, as a field of another. Raises InvalidRecord."""
    return _field(dtype, "")


def _record(dtype: np.dtype[Any], path: str) -> Record:
    assert dtype.names is not None
    assert dtype.fields is not None
    places = [(name, *dtype.fields[name][:2]) for name in dtype.names]
    if name_of_dtype(dtype) is not None:
        return _variant(dtype, tuple(offset for _, _, offset in places), path)
    fields = tuple((name, _field(kind, f"{path}{name}")) for name, kind, _ in places)
    _check_apart(places, path)
    return _placed(Record(_NAME, fields), dtype)


def _variant(dtype: np.dtype[Any], offsets: tuple[int, ...], path: str) -> Record:
    """A variant; its cases may lie where they like, since only one of them has a value."""
    assert dtype.fields is not None
    fields: list[tuple[str, ElementType]] = [(TAG_FIELD, Scalar.INT32)]
    for case, parts in parts_of_dtype(dtype):
        kind = bundle(tuple(_field(part, f"{path}{case}") for part in parts))
        if is_bundle(kind):
            kind = _placed(kind, dtype.fields[case][0])
        fields.append((case, kind))
    return Record(title(name_of_dtype(dtype) or ""), tuple(fields), offsets, dtype.itemsize)


def _placed(plain: Record, dtype: np.dtype[Any]) -> Record:
    """A record with the offsets of a dtype, where these are not those of a C structure."""
    fields: Any = dtype.fields
    offsets = tuple(fields[name][1] for name in dtype.names or ())
    layout = layout_of(plain)
    if layout.offsets == offsets and layout.size == dtype.itemsize:
        return plain
    return Record(plain.name, plain.fields, offsets, dtype.itemsize)


def _field(dtype: np.dtype[Any], path: str) -> ElementType:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        if 0 in shape:
            raise InvalidRecord(f"field '{path}' has the shape {shape}", "leave the field out")
        return FixedArray(_field(base, path), shape)
    if dtype.names is not None:
        if not dtype.names:
            raise InvalidRecord(f"{_at(path)} is a record without fields", "leave it out")
        return _record(dtype, f"{path}." if path else "")
    if not dtype.isnative:
        hint = "convert it with a.astype(a.dtype.newbyteorder('='))"
        order = dtype.byteorder
        raise InvalidRecord(f"{_at(path)} is {dtype.name} in the byte order {order!r}", hint)
    scalar = _SCALARS.get(dtype) or PAIR_RECORDS.get(dtype)
    if scalar is None:
        raise InvalidRecord(f"{_at(path)} is {dtype}, no type of a kernel", "use numbers")
    return scalar


def _at(path: str) -> str:
    return f"field '{path}'" if path else "it"


def _check_apart(places: list[tuple[str, np.dtype[Any], int]], path: str) -> None:
    """Fields that share bytes would be two names of one value."""
    for (name, kind, offset), (other, _, start) in pairwise(sorted(places, key=lambda p: p[2])):
        if offset + kind.itemsize > start:
            raise InvalidRecord(
                f"the fields '{path}{name}' and '{path}{other}' overlap",
                "give each field bytes of its own",
            )


@lru_cache(maxsize=1024)
def dtype_of(record: Record) -> np.dtype[Any]:
    """The structured dtype of a record, offsets and size included."""
    layout = layout_of(record)
    return np.dtype(
        {
            "names": [name for name, _ in record.fields],
            "formats": [_format(kind) for _, kind in record.fields],
            "offsets": list(layout.offsets),
            "itemsize": layout.size,
            "titles": titles(record),
        },
        align=layout.alignment > 1,
    )


def _format(kind: ElementType) -> Any:
    pair = pair_of(kind)
    match kind:
        case Record() if pair is not None:
            return np.dtype(pair.value)
        case Record():
            return dtype_of(kind)
        case FixedArray(element=element, shape=shape):
            return (_format(element), shape)
        case Scalar():
            return scalar_dtype(kind)
        case _:
            raise AssertionError(f"a field of type {kind}")


# --- what a record is made of ---------------------------------------------------------------------

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A number in a record, or as many as `counts` gives along the fixed arrays on its way.

    It begins at byte `offset`; `strides`, in bytes, belong to `counts`. A fixed array of several
    axes counts as one. `is_aligned` tells whether each of them is at a multiple of its size, if the
    record is at a multiple of `unit_alignment`.
    """

    path: Path
    scalar: Scalar
    offset: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    is_aligned: bool

    @property
    def count(self) -> int:
        return math.prod(self.counts)


@lru_cache(maxsize=1024)
def leaves(record: Record) -> tuple[Leaf, ...]:
    """The numbers of a record, in the order of its fields."""
    return tuple(_leaves(record, layout_of(record).size, (), 0, (), ()))


def _leaves(
    kind: ElementType,
    size: int,
    path: Path,
    offset: int,
    counts: tuple[int, ...],
    strides: tuple[int, ...],
) -> Iterator[Leaf]:
    match kind:
        case Scalar():
            width = kind.bits // 8
            is_aligned = not any(n % width for n in (size, offset, *strides))
            yield Leaf(path, kind, offset, counts, strides, is_aligned)
        case Record(fields=fields):
            for name, part in fields:
                start = offset + field_offset(kind, name)
                yield from _leaves(part, size, (*path, name), start, counts, strides)
        case FixedArray(element=element, shape=shape):
            step = layout_of(element).size
            inner = (*counts, math.prod(shape)), (*strides, step)
            yield from _leaves(element, size, path, offset, *inner)
        case _:
            raise AssertionError(f"a field of type {kind}")


@lru_cache(maxsize=1024)
def leaf_at(record: Record, path: Path) -> Leaf:
    """The leaf at a path of field names."""
    return next(leaf for leaf in leaves(record) if leaf.path == path)


def type_at(record: Record, path: Path) -> ElementType:
    """The type at a path of field names, fixed arrays on the way indexed, the last one not."""
    kind: ElementType = record
    for name in path:
        while isinstance(kind, FixedArray):
            kind = kind.element
        assert isinstance(kind, Record)
        kind = dict(kind.fields)[name]
    return kind


@lru_cache(maxsize=1024)
def bases(record: Record) -> tuple[Scalar, ...]:
    """The types through which an array of such records is accessed, each once.

    A number that may be unaligned is read and written byte by byte.
    """
    found = [leaf.scalar if leaf.is_aligned else Scalar.UINT8 for leaf in leaves(record)]
    return tuple(dict.fromkeys(found))


def unit_alignment(record: Record) -> int:
    """What the address of an array of such records must be a multiple of."""
    return max(scalar.bits // 8 for scalar in bases(record))


def element_named(record: Record, offset: int) -> str:
    """The number that holds a byte of a record, as the user writes it: `.pos.x`, `.v[2]`.

    Of a variant several cases may have a number there.
    """
    found: list[str] = []
    for leaf in leaves(record):
        rest, text = offset - leaf.offset, ""
        for count, stride in zip(leaf.counts, leaf.strides, strict=True):
            at, rest = divmod(rest, stride)
            text += f"[{at}]" if 0 <= at < count else "?"
        if 0 <= rest < leaf.scalar.bits // 8 and "?" not in text:
            found.append(f".{'.'.join(leaf.path)}{text}")
    return " or ".join(found)


# --- two records, one record ---------------------------------------------------------------------


def alike(left: Record, right: Record) -> bool:
    """Whether two records have the same fields, wherever these lie."""
    if left.name != right.name or len(left.fields) != len(right.fields):
        return False
    pairs = zip(left.fields, right.fields, strict=True)
    return all(a == b and _alike(first, second) for (a, first), (b, second) in pairs)


def _alike(left: ElementType, right: ElementType) -> bool:
    if isinstance(left, FixedArray) and isinstance(right, FixedArray):
        return left.shape == right.shape and _alike(left.element, right.element)
    if isinstance(left, Record) and isinstance(right, Record):
        return alike(left, right)
    return left is right


def numbers_of(record: Record, place: np.ndarray[Any, Any]) -> tuple[np.generic, ...]:
    """Every number of one record of the host, in the order of `leaves`, arrays one by one.

    A number of a case that a variant does not have is zero, as in a value in a kernel.
    """
    held = np.ascontiguousarray(place).reshape(1).view(np.uint8)
    found = []
    for leaf in leaves(record):
        wanted = [(leaf_at(record, tag), case) for tag, case in guards(record, leaf.path)]
        for index in itertools.product(*map(range, leaf.counts)):
            has_value = all(_number_at(held, tag, index) == case for tag, case in wanted)
            zero = scalar_dtype(leaf.scalar).type(0)
            found.append(_number_at(held, leaf, index) if has_value else zero)
    return tuple(found)


def _number_at(held: np.ndarray[Any, Any], leaf: Leaf, index: tuple[int, ...]) -> np.generic:
    """A number of a leaf; a tag on the way to another number has fewer indices than that."""
    start = leaf.offset + sum(k * stride for k, stride in zip(index, leaf.strides, strict=False))
    number: np.generic = held[start : start + leaf.scalar.bits // 8].view(
        scalar_dtype(leaf.scalar)
    )[0]
    return number
