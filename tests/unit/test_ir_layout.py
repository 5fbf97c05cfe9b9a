"""Layouts are those of the C compiler, as ctypes gives them."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sarek_numba.ir.layout import (
    Layout,
    array_layout,
    field_offset,
    layout_of,
    payload_offsets,
    tag_of,
)
from sarek_numba.ir.types import (
    FLOAT32,
    FLOAT64,
    INT32,
    UNIT,
    ElementType,
    Record,
    Scalar,
    TupleType,
    Variant,
    Vec,
)

C_TYPES: dict[Scalar, Any] = {
    Scalar.BOOL: ctypes.c_bool,
    Scalar.INT8: ctypes.c_int8,
    Scalar.INT16: ctypes.c_int16,
    Scalar.INT32: ctypes.c_int32,
    Scalar.INT64: ctypes.c_int64,
    Scalar.UINT8: ctypes.c_uint8,
    Scalar.UINT16: ctypes.c_uint16,
    Scalar.UINT32: ctypes.c_uint32,
    Scalar.UINT64: ctypes.c_uint64,
    Scalar.FLOAT16: ctypes.c_uint16,
    Scalar.BFLOAT16: ctypes.c_uint16,
    Scalar.FLOAT32: ctypes.c_float,
    Scalar.FLOAT64: ctypes.c_double,
}


@pytest.mark.parametrize("scalar", list(Scalar))
def test_scalar(scalar: Scalar) -> None:
    c_type = C_TYPES[scalar]
    assert layout_of(scalar) == Layout(ctypes.sizeof(c_type), ctypes.alignment(c_type))


def _record(parts: list[ElementType]) -> Record:
    return Record("R", tuple((f"f{i}", part) for i, part in enumerate(parts)))


records = st.recursive(
    st.sampled_from(list(Scalar)),
    lambda inner: st.lists(inner, min_size=1, max_size=5).map(_record),
    max_leaves=12,
)


def c_type_of(element: ElementType) -> Any:
    if isinstance(element, Scalar):
        return C_TYPES[element]
    assert isinstance(element, Record)
    fields = [(name, c_type_of(part)) for name, part in element.fields]
    return type("R", (ctypes.Structure,), {"_fields_": fields})


@given(records)
def test_record_as_ctypes(element: ElementType) -> None:
    expected = c_type_of(element)
    found = layout_of(element)
    assert (found.size, found.alignment) == (ctypes.sizeof(expected), ctypes.alignment(expected))
    if isinstance(element, Record):
        offsets = [getattr(expected, name).offset for name, _ in element.fields]
        assert [field_offset(element, name) for name, _ in element.fields] == offsets


SHAPE = Variant("Shape", (("Circle", (FLOAT32,)), ("Box", (Scalar.INT8, FLOAT64)), ("Point", ())))


def test_variant_is_a_tag_and_a_union() -> None:
    assert layout_of(SHAPE) == Layout(24, 8, (0, 8))
    assert payload_offsets(SHAPE, "Circle") == (8,)
    assert payload_offsets(SHAPE, "Box") == (8, 16)
    assert payload_offsets(SHAPE, "Point") == ()
    assert [tag_of(SHAPE, name) for name, _ in SHAPE.constructors] == [0, 1, 2]


def test_variant_without_payloads_is_its_tag() -> None:
    assert layout_of(Variant("Colour", (("Red", ()), ("Blue", ())))) == Layout(4, 4, (0, 4))


def test_others() -> None:
    assert layout_of(TupleType((INT32, FLOAT64))) == Layout(16, 8, (0, 8))
    assert layout_of(UNIT) == Layout(0, 1)
    assert layout_of(Vec(INT32)) == Layout(8, 8)
    assert array_layout(_record([Scalar.INT8, INT32]), 3) == Layout(24, 4)
