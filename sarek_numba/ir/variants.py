"""Variants: tagged unions as records, whose first field is the tag and the others are the cases.

The field of a case holds its payload: the value itself where there is one, else a record of its
parts `f0`, `f1`, …. All cases begin at the same byte, as `ir.layout` places a `Variant`, and the
tag is the position of the case in the declaration. So whatever is known of records holds of
variants too, but for one thing: only the case that the tag names has a value.

A dtype is that of a variant if its field `tag` has a title that says so. NumPy keeps titles in
slices, copies and pickles. (`np.concatenate` does too, but lays the cases out one behind the other;
that is the same variant with other offsets.)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeGuard

import numpy as np

from sarek_numba.ir.layout import TAG, layout_of
from sarek_numba.ir.types import ElementType, FixedArray, Record, Scalar

TAG_FIELD = "tag"
_TITLE = "variant "  # what the title of a tag begins with, and the name of such a record


def title(name: str) -> str:
    """What marks the tag of a variant of this name."""
    return _TITLE + name


def name_of_dtype(dtype: np.dtype[Any]) -> str | None:
    """The name of the variant that a dtype is of, or None."""
    if not dtype.names or dtype.names[0] != TAG_FIELD or dtype.fields is None:
        return None
    field = dtype.fields[TAG_FIELD]
    text = field[2] if len(field) == 3 else None
    if not isinstance(text, str) or not text.startswith(_TITLE) or field[0] != np.dtype(np.int32):
        return None
    return text.removeprefix(_TITLE)


def parts_of_dtype(dtype: np.dtype[Any]) -> list[tuple[str, tuple[np.dtype[Any], ...]]]:
    """The cases of a variant's dtype, each with the dtypes of its parts."""
    assert dtype.names is not None
    assert dtype.fields is not None
    found = []
    for name in dtype.names[1:]:
        kind, _, *titled = dtype.fields[name]
        if titled == [_title_of_parts(name)]:
            found.append((name, tuple(kind[part] for part in kind.names or ())))
        else:
            found.append((name, (kind,)))
    return found


def titles(record: Record) -> list[str | None]:
    """The titles of a record's fields in its dtype."""
    if not is_variant(record):
        return [None] * len(record.fields)
    cases = (_title_of_parts(name) if is_bundle(kind) else None for name, kind in record.fields[1:])
    return [record.name, *cases]


def _title_of_parts(case: str) -> str:
    return f"parts of {case}"


def variant_name(record: Record) -> str | None:
    """The name of the variant that a record is, or None for any other record."""
    return record.name.removeprefix(_TITLE) if record.name.startswith(_TITLE) else None


def is_variant(kind: ElementType) -> bool:
    """Whether a type is a variant."""
    return isinstance(kind, Record) and kind.name.startswith(_TITLE)


def case_names(record: Record) -> tuple[str, ...]:
    """The cases of a variant, in the order of their tags."""
    return tuple(name for name, _ in record.fields[1:])


def payload(record: Record, case: int) -> tuple[ElementType, ...]:
    """The types of the parts of a case."""
    _, kind = record.fields[1 + case]
    return tuple(part for _, part in kind.fields) if is_bundle(kind) else (kind,)


def part_path(record: Record, case: int, part: int) -> tuple[str, ...]:
    """The fields that lead from a variant to a part of a case."""
    name, kind = record.fields[1 + case]
    return (name, f"f{part}") if is_bundle(kind) else (name,)


_BUNDLE = "parts"


def is_bundle(kind: ElementType) -> TypeGuard[Record]:
    """Whether the field of a case holds several parts, or none, rather than one value."""
    return isinstance(kind, Record) and kind.name == _BUNDLE


def bundle(parts: tuple[ElementType, ...]) -> ElementType:
    """The field of a case with these parts."""
    if len(parts) == 1:
        return parts[0]
    return Record(_BUNDLE, tuple((f"f{k}", part) for k, part in enumerate(parts)))


def made(name: str, cases: tuple[tuple[str, tuple[ElementType, ...]], ...]) -> Record:
    """A variant with its cases side by side in the same bytes."""
    fields = tuple((case, bundle(parts)) for case, parts in cases)
    return _placed(title(name), fields)


def _placed(name: str, fields: tuple[tuple[str, ElementType], ...]) -> Record:
    layouts = [layout_of(kind) for _, kind in fields]
    alignment = max((layout.alignment for layout in layouts), default=1)
    start = _aligned(layout_of(TAG).size, alignment)
    end = start + _aligned(max((layout.size for layout in layouts), default=0), alignment)
    size = _aligned(end, max(alignment, layout_of(TAG).alignment))
    offsets = (0, *(start for _ in fields))
    return Record(name, ((TAG_FIELD, Scalar.INT32), *fields), offsets, size)


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def other_declaration(ours: Record, theirs: Record) -> str | None:
    """What to say where two variants have one name and differ; None for any other two records.

    So it is when a declaration is changed and run again, and arrays of the one before are still
    there.
    """
    name = variant_name(ours)
    if name is None or name != variant_name(theirs) or canonical(ours) == canonical(theirs):
        return None
    how = "whose parts differ"
    if case_names(ours) != case_names(theirs):
        how = f"of {', '.join(case_names(ours))} and of {', '.join(case_names(theirs))}"
    return f"these are two declarations of {name}, {how}: make its values anew after a change"


@lru_cache(maxsize=1024)
def canonical(record: Record) -> Record:
    """A record as C lays it out if there is a variant in it: the type of its values.

    So a variant has one type of values, wherever its fields lie in memory.
    """
    made = _canonical(record) if has_variants(record) else record
    assert isinstance(made, Record)
    return made


def _canonical(kind: ElementType) -> ElementType:
    match kind:
        case FixedArray(element=element, shape=shape):
            return FixedArray(_canonical(element), shape)
        case Record(name=name, fields=fields) if has_variants(kind) or is_bundle(kind):
            inner = tuple((each, _canonical(part)) for each, part in fields)
            return _placed(name, inner[1:]) if is_variant(kind) else Record(name, inner)
        case _:
            return kind


@lru_cache(maxsize=1024)
def has_variants(kind: ElementType) -> bool:
    """Whether a type is a variant, or has one in it."""
    match kind:
        case FixedArray(element=element):
            return has_variants(element)
        case Record(fields=fields):
            return is_variant(kind) or any(has_variants(part) for _, part in fields)
        case _:
            return False


@lru_cache(maxsize=4096)
def guards(record: Record, path: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], int], ...]:
    """When the number at a path has a value: for each tag on the way its path and what it must be.

    The outermost comes first.
    """
    found = []
    kind: ElementType = record
    for depth, name in enumerate(path):
        while isinstance(kind, FixedArray):
            kind = kind.element
        assert isinstance(kind, Record)
        if is_variant(kind) and name != TAG_FIELD:
            case = case_names(kind).index(name)
            found.append(((*path[:depth], TAG_FIELD), case))
        kind = dict(kind.fields)[name]
    return tuple(found)


def is_tag(record: Record, path: tuple[str, ...]) -> bool:
    """Whether the number at a path is the tag of a variant."""
    if path[-1] != TAG_FIELD:
        return False
    kind: ElementType = record
    for name in (*path[:-1], None):
        while isinstance(kind, FixedArray):
            kind = kind.element
        assert isinstance(kind, Record)
        if name is not None:
            kind = dict(kind.fields)[name]
    return is_variant(kind)
