"""Rules of stores into fields, of whatever NumPy can store there: also a sub-array at once."""

from __future__ import annotations

from numba.core import types

from sarek_numba.frontend.complexes import is_complex
from sarek_numba.frontend.records import (
    RecordType,
    element_type,
    is_record_array,
    number_type,
    value_of,
)
from sarek_numba.frontend.typed import Type
from sarek_numba.frontend.weak import Refusal, describe, is_number
from sarek_numba.ir.types import ElementType, FixedArray, Record
from sarek_numba.ir.variants import is_variant


def check_value(value: Type, kind: ElementType, where: str) -> None:
    """Refuse what cannot be stored in a place of a kind.

    A tuple is stored into a record field by field, into a fixed array element by element; a number
    fills a fixed array.
    """
    from sarek_numba.frontend.rules.records import check_part, check_record  # which call this

    if isinstance(kind, FixedArray):
        _check_array(value, kind.element, kind.shape, where)
        return
    number = number_type(kind)
    if number is not None:
        check_part(value, number, where)
        return
    assert isinstance(kind, Record)
    if not isinstance(value, types.BaseTuple) or is_variant(kind):
        check_record(value, kind, where)
        return
    if len(value) != len(kind.fields):
        names = ", ".join(name for name, _ in kind.fields)
        raise Refusal(
            f"a tuple of {len(value)} cannot be stored in {where}, a record of {names}",
            "give each field a value, in their order",
        )
    for item, (name, part) in zip(value.types, kind.fields, strict=True):
        check_value(item, part, f"the field {name!r}")


def _check_array(value: Type, element: ElementType, shape: tuple[int, ...], where: str) -> None:
    number = number_type(element)
    shown = f"an array of {' x '.join(map(str, shape))}"
    if isinstance(value, types.BaseTuple):
        if len(value) != shape[0]:
            raise Refusal(
                f"a tuple of {len(value)} cannot be stored in {where}, {shown}",
                f"give it {shape[0]} items",
            )
        for item in value.types:
            if shape[1:] and number is not None and not isinstance(item, _SEVERAL):
                raise Refusal(
                    f"{describe(item)} is one of the items of {where}, {shown}",
                    f"write a tuple of {shape[1]} for each of its rows",
                )
            inner = FixedArray(element, shape[1:]) if shape[1:] else element
            check_value(item, inner, where)
        return
    if isinstance(value, types.Array):
        _check_elements(value, element, len(shape), where)
        return
    if number is None:
        raise Refusal(
            f"{describe(value)} cannot be stored in {where}, {shown} records",
            "store an array of such records, or a tuple of them",
        )
    if not is_number(value) and not is_complex(value):
        raise Refusal(
            f"{describe(value)} cannot be stored in {where}, {shown}",
            "store an array of the same shape, a tuple, or a number for all of them",
        )
    check_value(value, element, where)


_SEVERAL = (types.BaseTuple, types.Array)


def _check_elements(value: Type, element: ElementType, ndim: int, where: str) -> None:
    """Refuse an array of other axes or of other elements; its extents are known to lowering."""
    if value.ndim != ndim:
        raise Refusal(
            f"{describe(value)} cannot be stored in {where}, an array of {ndim} "
            f"ax{'i' if ndim == 1 else 'e'}s",
            "store an array of the same shape",
        )
    if is_record_array(value) and number_type(element) is None:
        if value.layout != "C":
            raise Refusal(
                f"these records are a part of an array, and {where} takes a whole one",
                "store them one by one in a loop",
            )
        check_value(value_of(value.dtype.record), element, where)
        return
    check_value(element_type(value), element, where)


def wanted(value: Type, kind: ElementType) -> Type:
    """The type that a value is converted to before it is stored in a place of a kind.

    A number becomes what the place has; of all else each number is converted for itself.
    """
    if isinstance(value, (RecordType, *_SEVERAL)):
        return value
    number = number_type(kind.element if isinstance(kind, FixedArray) else kind)
    return value if number is None else number
