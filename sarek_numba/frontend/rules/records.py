"""Rules of records: fields, whole records, construction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from sarek_numba.errors import ReadOnlyWrite, TypingError, UnknownName, UnsupportedConstruct
from sarek_numba.frontend import language
from sarek_numba.frontend.complexes import is_complex
from sarek_numba.frontend.extensions import CompileTime
from sarek_numba.frontend.halves import value_type
from sarek_numba.frontend.language import RecordConstructor
from sarek_numba.frontend.records import (
    RecordMethod,
    RecordType,
    field_of,
    field_view,
    is_variant_type,
    value_of,
)
from sarek_numba.frontend.rules import fills
from sarek_numba.frontend.rules.captured import refuse_change
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.rules.variants import check_variant, refused_read
from sarek_numba.frontend.typed import (
    BindMethod,
    Constant,
    CopyRecord,
    FieldView,
    GetField,
    MakeRecord,
    Operation,
    SetField,
    SetRecord,
    Type,
)
from sarek_numba.frontend.weak import Refusal, describe, is_number, operand
from sarek_numba.ir.records import InvalidRecord, alike, record_of
from sarek_numba.ir.types import Record
from sarek_numba.ir.variants import is_variant

METHODS = ("copy", "dtype")


def record_type(dtype: np.dtype[Any]) -> RecordType:
    """The element type of a structured dtype; raises a `Refusal` that names the field at fault."""
    try:
        return RecordType(record_of(dtype))
    except InvalidRecord as error:
        raise Refusal(error.message, error.hint, UnsupportedConstruct) from None


# --- fields ---------------------------------------------------------------------------------------


def require_field(owner: RecordType, name: str) -> None:
    """Refuse a name that no field has, and what is no field but a case."""
    if is_variant_type(owner):
        raise refused_read(owner)
    if name not in owner.names:
        from sarek_numba.frontend.context import closest

        hint = closest(name, owner.names) or f"its fields are {', '.join(owner.names)}"
        raise Refusal(f"a record has no field {name!r}", hint, UnknownName)


def attribute(owner: RecordType, name: str) -> Operation:
    """`r.x`, where methods hide fields as in NumPy."""
    if is_variant_type(owner):
        raise refused_read(owner)
    if name == "copy":
        return Operation(BindMethod(), (owner,), RecordMethod(owner))
    if name == "dtype":
        return Operation(Constant(None), (), CompileTime(owner.dtype))
    return item(owner, name)


def item(owner: RecordType, name: str) -> Operation:
    """`r['x']`."""
    require_field(owner, name)
    return Operation(GetField(name), (owner,), value_type(field_of(owner, name)))


def view(array: Type, name: str) -> Operation:
    """`p['x']`."""
    with operand(1):
        require_field(array.dtype, name)
        found = field_view(array, name)
        if found is None:
            raise Refusal(
                f"the field {name!r} of all elements is an array of arrays of records",
                f"name an element first, as in p[i][{name!r}]",
                UnsupportedConstruct,
            )
    return Operation(FieldView(name), (array,), found)


def text_of(index: Type) -> str | None:
    """The name that an index is, or None."""
    value = index.value if isinstance(index, CompileTime) else None
    return value if isinstance(value, str) else None


def field_item(owner: RecordType, index: Type) -> Operation:
    """`r[...]`, read: only names of fields stand there."""
    with operand(1):
        return item(owner, _name_of(owner, index))


def set_field_item(owner: RecordType, index: Type, value: Type) -> Operation:
    """`r['x'] = value`."""
    with operand(1):
        name = _name_of(owner, index)
        require_field(owner, name)
    return set_field(owner, name, value, 2)


def _name_of(owner: RecordType, index: Type) -> str:
    name = text_of(index)
    if name is None:
        first = owner.names[0]
        raise Refusal(
            f"a field is chosen by its name, not by {describe(index)}",
            f"write r.{first} or r[{first!r}]",
        )
    return name


def set_attribute(owner: Type, name: str, value: Type) -> Operation:
    """`r.x = value`."""
    if not isinstance(owner, RecordType):
        raise Refusal(
            "a store into an attribute is not part of the kernel language",
            "store into an element of an array, or into a field of a record",
            UnsupportedConstruct,
        )
    if name in METHODS and not is_variant_type(owner):
        raise Refusal(f"{name!r} is an attribute of every record", f"write r[{name!r}]")
    require_field(owner, name)
    return set_field(owner, name, value, 1)


def set_field(owner: RecordType, name: str, value: Type, position: int) -> Operation:
    with operand(0):
        refuse_change(owner)
    if owner.readonly:
        with operand(0):
            raise Refusal(
                "this record is in a read-only array",
                "pass a writable array, or change a copy: r = p[i].copy()",
                ReadOnlyWrite,
            )
    kind = dict(owner.record.fields)[name]
    with operand(position):
        fills.check_value(value, kind, f"the field {name!r}")
    return Operation(SetField(name), (owner, fills.wanted(value, kind)), types.none)


def check_part(value: Type, kind: Type, where: str) -> None:
    """Refuse what is no record, variant or number of a kind."""
    if isinstance(kind, RecordType):
        check_record(value, kind.record, where)
        return
    if not is_number(value) and not is_complex(value):
        raise Refusal(
            f"{describe(value)} cannot be stored in {where}, a {kind}",
            "store a number",
        )
    from sarek_numba.frontend.rules.arrays import check_stored  # arrays know of records

    check_stored(value, kind)


# --- whole records --------------------------------------------------------------------------------


def check_record(value: Type, record: Record, where: str) -> None:
    """Refuse what is no record with the fields of `record`, or of its variant."""
    if is_variant(record):
        check_variant(value, record, where)
        return
    names = ", ".join(name for name, _ in record.fields)
    if not isinstance(value, RecordType) or is_variant_type(value):
        raise Refusal(
            f"{describe(value)} cannot be stored in {where}, a record of {names}",
            "store a record, as sarek.record(dtype)(...) makes one",
        )
    if not alike(value.record, record):
        raise Refusal(
            f"{where} is a record of other fields than what is stored there",
            "store a record of the same fields and types, or field by field",
        )


def set_record(array: Type, index: Type, value: Type) -> Operation:
    """`p[i] = r`."""
    with operand(2):
        fills.check_value(value, array.dtype.record, "an element")
    return Operation(SetRecord(), (array, index, value), types.none)


def copy(method: RecordMethod) -> Operation:
    """`r.copy()`."""
    return Operation(CopyRecord(), (method,), value_of(method.record.record))


@rule(language.record)
def record(dtype: Type) -> Operation:
    value = dtype.value if isinstance(dtype, CompileTime) else None
    given = value.dtype if isinstance(value, RecordConstructor) else value
    if not isinstance(given, np.dtype) or given.names is None:
        with operand(0):
            raise Refusal(
                f"sarek.record() takes a structured dtype, not {describe(dtype)}",
                "define the dtype outside the kernel, with numpy.dtype([...])",
            )
    record_type(given)
    return Operation(Constant(None), (), CompileTime(language.record(given)))


def make(constructor: RecordConstructor, values: dict[str, Type]) -> Operation:
    """A record of the values of some fields."""
    made = value_of(record_type(constructor.dtype).record)
    wanted: list[Type] = []
    for name, value in values.items():
        kind = dict(made.record.fields)[name]
        fills.check_value(value, kind, f"the field {name!r}")
        wanted.append(fills.wanted(value, kind))
    return Operation(MakeRecord(tuple(values)), tuple(wanted), made)


def constructed(constructor: RecordConstructor, args: tuple[Any, ...], kws: Any) -> dict[str, Any]:
    """What a call gives each field, in order."""
    try:
        return constructor.given(args, kws)
    except TypeError as error:
        names = ", ".join(constructor.dtype.names or ())
        kind = UnknownName if "has no field" in str(error) else TypingError
        raise Refusal(str(error), f"its fields are {names}", kind) from None
