"""Records of NumPy: one layout for dtypes, ctypes and the IR; what their numbers are called."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
import pytest

from sarek_numba.ir.layout import layout_of, packed
from sarek_numba.ir.parse import parse
from sarek_numba.ir.records import (
    InvalidRecord,
    alike,
    bases,
    dtype_of,
    element_named,
    leaves,
    numbers_of,
    record_of,
    unit_alignment,
)
from sarek_numba.ir.text import text
from sarek_numba.ir.types import FixedArray, Record, Scalar
from tests.record_shapes import NUMBERS, SHAPES, random_dtype
from tests.unit.test_ir_layout import C_TYPES


def _c_type(kind: np.dtype[Any], pack: bool) -> Any:
    if kind.subdtype is not None:
        base, shape = kind.subdtype
        made = _c_type(base, pack)
        for extent in reversed(shape):
            made = made * extent
        return made
    if kind.names is None and kind.kind != "c":
        return C_TYPES[Scalar(kind.name)]
    if kind.names is None:  # in C a complex number is laid out as an array of two
        part = ctypes.c_float if kind.itemsize == 8 else ctypes.c_double
        fields: list[tuple[str, Any]] = [("real", part), ("imag", part)]
    else:
        fields = [(name, _c_type(kind[name], pack)) for name in kind.names]
    body: dict[str, Any] = {"_fields_": fields}
    if pack:
        body = {"_pack_": 1, "_layout_": "ms", **body}
    return type("R", (ctypes.Structure,), body)


def _check(record: Record, c_type: Any, pack: bool) -> None:
    layout = layout_of(record)
    assert layout.size == ctypes.sizeof(c_type)
    if not pack:  # a packed record may happen to be laid out as an aligned one
        assert layout.alignment == ctypes.alignment(c_type)
    for (name, kind), offset in zip(record.fields, layout.offsets, strict=True):
        assert offset == getattr(c_type, name).offset
        inner = dict(c_type._fields_)[name]
        while isinstance(kind, FixedArray):
            for _ in kind.shape:
                inner = inner._type_
            kind = kind.element
        if isinstance(kind, Record):
            _check(kind, inner, pack)


@pytest.mark.parametrize("pack", [False, True], ids=["aligned", "packed"])
def test_two_thousand_shapes_as_ctypes(pack: bool) -> None:
    """Sizes, alignments and offsets of all records in a record are those of the C compiler."""
    rng = random.Random(2026)
    for _ in range(SHAPES):
        dtype = random_dtype(rng, align=not pack, scalars=NUMBERS)
        record = record_of(dtype)
        _check(record, _c_type(dtype, pack), pack)
        assert (record.offsets is None) or pack
        assert dtype_of(record) == dtype
        for leaf in leaves(record):
            assert leaf.is_aligned or pack


def test_packed_is_what_numpy_packs() -> None:
    rng = random.Random(5)
    for _ in range(200):
        record = record_of(random_dtype(rng, align=False, scalars=NUMBERS))
        made = packed(record.name, record.fields)
        assert layout_of(made).size == layout_of(record).size
        assert layout_of(made).offsets == layout_of(record).offsets


DTYPE = np.dtype([("a", "u1"), ("b", [("x", "f4"), ("y", "i2")], (2,)), ("c", "f8", (2, 3))])


def test_leaves_and_their_names() -> None:
    record = record_of(DTYPE)
    assert [(leaf.path, leaf.offset, leaf.counts, leaf.strides) for leaf in leaves(record)] == [
        (("a",), 0, (), ()),
        (("b", "x"), 1, (2,), (6,)),
        (("b", "y"), 5, (2,), (6,)),
        (("c",), 13, (6,), (8,)),
    ]
    assert bases(record) == (Scalar.UINT8,)
    named = [element_named(record, byte) for byte in (0, 1, 4, 5, 7, 12, 13, 60)]
    assert named == [".a", ".b.x[0]", ".b.x[0]", ".b.y[0]", ".b.x[1]", ".b.y[1]", ".c[0]", ".c[5]"]


def test_bases_are_the_types_of_aligned_numbers() -> None:
    record = record_of(np.dtype([("a", "f4"), ("b", "i4"), ("c", "f4"), ("d", "u1")], align=True))
    assert bases(record) == (Scalar.FLOAT32, Scalar.INT32, Scalar.UINT8)
    assert unit_alignment(record) == 4
    assert element_named(record, 13) == ""


REFUSED = {
    "big-endian": (np.dtype([("a", [("b", ">f4")])]), "field 'a.b' is float32 in the byte order"),
    "text": (np.dtype([("a", "S5")]), "field 'a' is |S5, no type of a kernel"),
    "objects": (np.dtype([("a", object)]), "field 'a' is object, no type of a kernel"),
    "empty": (np.dtype([]), "a record without fields"),
    "empty field": (np.dtype([("a", [])]), "field 'a' is a record without fields"),
    "no elements": (np.dtype([("a", "f4", (0,))]), "field 'a' has the shape (0,)"),
    "overlap": (
        np.dtype({"names": ["a", "b"], "formats": ["f4", "f4"], "offsets": [4, 0], "itemsize": 9}),
        None,
    ),
    "name clash": (
        np.dtype({"names": ["a", "b"], "formats": ["f4", "f4"], "offsets": [2, 0], "itemsize": 9}),
        "the fields 'b' and 'a' overlap",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    dtype, message = REFUSED[name]
    if message is None:
        assert layout_of(record_of(dtype)).offsets == (4, 0)
        return
    with pytest.raises(InvalidRecord) as caught:
        record_of(dtype)
    assert str(caught.value).startswith(message)


TEXT = """kernel k index 32 {
  param p: vec<u8> = argument 0 array(u8, global, 1, C, readonly, in record dtype(\
a at 0: u8, b at 1: fixed<record v(x: f32), 2>, `at` at 9: fixed<i16, 2, 3>) @ 21)
  param q: vec<f32> = argument 1 array(f32, global, 2, A, in record dtype(x: f32))
}
"""


def test_text_and_back() -> None:
    """The text of a base of records says how they are laid out, and reads back the same."""
    made = parse(TEXT)
    assert text(made) == TEXT
    assert parse(text(made)) == made


def test_a_complex_number_is_a_record_of_its_parts() -> None:
    """Its dtype is NumPy's, and its parts are the leaves; two equal floats are something else."""
    dtype = np.dtype([("a", "u1"), ("z", "c8"), ("zs", "c16", (2,))], align=True)
    record = record_of(dtype)
    assert dtype_of(record) == dtype
    assert [(leaf.path, leaf.offset, leaf.scalar, leaf.counts) for leaf in leaves(record)] == [
        (("a",), 0, Scalar.UINT8, ()),
        (("z", "real"), 4, Scalar.FLOAT32, ()),
        (("z", "imag"), 8, Scalar.FLOAT32, ()),
        (("zs", "real"), 16, Scalar.FLOAT64, (2,)),
        (("zs", "imag"), 24, Scalar.FLOAT64, (2,)),
    ]
    assert element_named(record, 41) == ".zs.imag[1]"
    value = np.array((1, 2 - 3j, [4j, 5]), dtype)
    assert numbers_of(record, value) == (1, 2, -3, 0, 5, 4, 0)
    parts = np.dtype([("real", "f4"), ("imag", "f4")])
    other = record_of(np.dtype([("a", "u1"), ("z", parts), ("zs", "c16", (2,))], align=True))
    assert not alike(record, other)
    assert alike(record, record_of(np.dtype([("a", "u1"), ("z", "c8"), ("zs", "c16", (2,))])))
