"""Variants on the host: layout, values, arrays, and what survives NumPy and pickling."""

from __future__ import annotations

import copy
import ctypes
import pickle
import random

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.frontend.variants import variant_of
from sarek_numba.ir.layout import layout_of, payload_offsets
from sarek_numba.ir.records import bases, element_named, leaves, record_of
from sarek_numba.ir.types import Record, Scalar, Variant
from sarek_numba.ir.variants import canonical, guards, is_variant, made, payload, variant_name
from tests.variant_shapes import SHAPES, fill, random_variant

VECTOR = np.dtype([("x", np.float32), ("y", np.float32)])
Color = sarek.variant("Color", Gray=sarek.uint8, Mixed=(sarek.uint8,) * 3)
Shape = sarek.variant(
    "Shape",
    Circle=sarek.float32,
    Rect=(sarek.float32, sarek.float64),
    Point=None,
    Body=(VECTOR, sarek.bool_),
    Painted=Color,
)
Vector = sarek.record(VECTOR)
VALUES = [
    Shape.Circle(2.5),
    Shape.Point(),
    Shape.Rect(1, 2),
    Shape.Body(Vector(1, 2), True),
    Shape.Painted(Color.Mixed(1, 2, 3)),
]
SHAPES_ARRAY = Shape.array(VALUES)

# --- layout ---------------------------------------------------------------------------------------


def _ctype(kind):
    """A type of ctypes, laid out by the C compiler's rules that ctypes has of its own."""
    if isinstance(kind, Scalar):
        return np.ctypeslib.as_ctypes_type(np.dtype(kind.value))
    if not isinstance(kind, Record):
        return _ctype(kind.element) * int(np.prod(kind.shape))
    if is_variant(kind):
        cases = [(name, _ctype(part)) for name, part in kind.fields[1:]]
        union = type("Union", (ctypes.Union,), {"_fields_": cases})
        fields = [("tag", ctypes.c_int32), ("cases", union)]
        return type("Tagged", (ctypes.Structure,), {"_fields_": fields})
    if kind.offsets is not None:  # a packed record, here so many bytes
        layout = layout_of(kind)
        unit = np.ctypeslib.as_ctypes_type(np.dtype(f"u{layout.alignment}"))
        return unit * (layout.size // layout.alignment)
    fields = [(name, _ctype(part)) for name, part in kind.fields]
    return type("Structure", (ctypes.Structure,), {"_fields_": fields})


def test_layout_is_that_of_c():
    """A tag and a union of structures, for random variants against ctypes."""
    for seed in range(SHAPES):
        record = canonical(record_of(random_variant(random.Random(seed)).dtype))
        made = _ctype(record)
        layout = layout_of(record)
        assert ctypes.sizeof(made) == layout.size, (seed, record)
        assert {made.cases.offset} == set(layout.offsets[1:]), (seed, record)


def test_layout_is_that_of_the_ir():
    """A record of a variant lies as the variant of the IR does."""
    cases = (("A", (Scalar.BOOL,)), ("B", (Scalar.INT8, Scalar.INT64)), ("C", ()))
    record, variant = made("V", cases), Variant("V", cases)
    assert layout_of(record).size == layout_of(variant).size
    assert layout_of(record).alignment == layout_of(variant).alignment
    paths = {leaf.path: leaf.offset for leaf in leaves(record)}
    assert (paths["B", "f0"], paths["B", "f1"]) == payload_offsets(variant, "B")


def test_dtype_has_the_tag_and_a_field_for_each_case():
    assert Shape.dtype.names == ("tag", "Circle", "Rect", "Point", "Body", "Painted")
    assert SHAPES_ARRAY["tag"].tolist() == [0, 2, 1, 3, 4]
    assert SHAPES_ARRAY["Circle"][0] == 2.5
    assert SHAPES_ARRAY["Rect"]["f1"][2] == 2.0
    assert np.dtype(Shape) == Shape.dtype
    assert Shape.dtype.itemsize == 24


def test_record_of_a_variant():
    """A dtype tells its variant, and what its numbers depend on."""
    record = record_of(Shape.dtype)
    assert variant_name(record) == "Shape"
    assert payload(record, 2) == ()
    painted = [(("tag",), 4), (("Painted", "tag"), 1)]
    assert list(guards(record, ("Painted", "Mixed", "f1"))) == painted
    assert element_named(record, 8) == ".Circle or .Rect.f0 or .Body.f0.x or .Painted.tag"
    assert Scalar.BOOL in bases(record)
    assert variant_name(record_of(np.dtype([("tag", "i4"), ("a", "f4")]))) is None


# --- values ---------------------------------------------------------------------------------------


def test_values_return():
    assert Shape.values(SHAPES_ARRAY) == VALUES
    assert Shape.values(SHAPES_ARRAY[:4].reshape(2, 2)) == [VALUES[:2], VALUES[2:4]]
    assert Shape.values(SHAPES_ARRAY[1:2]) == [Shape.Point()]


def test_values_look_like_their_construction():
    shown = "Shape.Circle(2.5) Shape.Point() Shape.Rect(1.0, 2.0) Shape.Body((x=1.0, y=2.0), True)"
    assert " ".join(map(repr, VALUES[:4])) == shown
    assert repr(VALUES[4]) == "Shape.Painted(Color.Mixed(1, 2, 3))"
    assert repr(Shape) == "Shape"


def test_values_are_equal_by_case_and_parts():
    assert Shape.Circle(1) == Shape.Circle(1.0)
    assert Shape.Circle(1) != Shape.Circle(2)
    assert Shape.Circle(np.nan) != Shape.Circle(np.nan)
    assert Shape.Point() != Color.Gray(0)
    assert Shape.Point() != 3
    assert Shape.Body(Vector(1, 2), True) != Shape.Body(Vector(1, 3), True)
    assert len({Shape.Circle(1), Shape.Circle(1.0), Shape.Point(), Shape.Point()}) == 2


def test_values_are_matched_by_python():
    match VALUES[3]:
        case Shape.Body(at, True):
            at.x = 7
    match VALUES[4]:
        case Shape.Painted(Color.Mixed(r, g, _)):
            assert (r, g) == (1, 2)
            assert type(r) is np.uint8
    assert VALUES[3].f0.x == 1, "a record is given as a copy"


def test_values_do_not_change():
    with pytest.raises(AttributeError, match="a value of Shape does not change"):
        VALUES[0].radius = 3


def test_the_same_declaration_is_the_same_variant():
    again = sarek.variant("Color", [("Gray", np.uint8)], Mixed=(np.dtype("u1"), "u1", sarek.uint8))
    assert again is Color
    assert sarek.variant("Colour", Gray=sarek.uint8, Mixed=(sarek.uint8,) * 3) is not Color


def test_numpy_keeps_the_variant():
    """Slices, copies, pickles and records keep it; so do joined arrays, in another layout."""
    kept = [
        SHAPES_ARRAY[::-2].copy(),
        np.empty_like(SHAPES_ARRAY),
        pickle.loads(pickle.dumps(SHAPES_ARRAY)),
        np.zeros(2, [("id", np.int8), ("shape", Shape)])["shape"],
        np.concatenate([SHAPES_ARRAY, SHAPES_ARRAY]),
        np.stack([SHAPES_ARRAY, SHAPES_ARRAY]),
    ]
    assert all(variant_of(array.dtype) is Shape for array in kept)
    assert Shape.values(kept[2]) == VALUES
    assert Shape.values(kept[4]) == VALUES * 2
    assert Shape.array(kept[4]).dtype == Shape.dtype
    assert Shape.values(Shape.array(kept[4])) == VALUES * 2


@pytest.mark.xfail(
    np.lib.NumpyVersion(np.__version__) < "2.5.5",
    strict=True,
    reason="NumPy 2.4 to 2.5.2: the common type of sub-arrays is too short",
)
def test_numpy_has_room_for_arrays_of_variants_in_records():
    """NumPy lays the cases out one behind the other, and counts the bytes of the first layout."""
    packed = {"names": ["a", "b"], "formats": ["i8", "i8"], "offsets": [0, 0], "itemsize": 8}
    record = np.dtype([("v", np.dtype(packed), (2,))])
    kind = np.result_type(record, record)["v"]  # as of np.concatenate, which writes behind the end
    assert kind.itemsize == 2 * kind.subdtype[0].itemsize


def test_variants_and_values_are_pickled():
    assert pickle.loads(pickle.dumps(Shape)) is Shape
    assert copy.deepcopy(Shape) is Shape
    assert pickle.loads(pickle.dumps(VALUES)) == VALUES


def test_values_are_stored_by_numpy():
    array = SHAPES_ARRAY.copy()
    array[1:3] = Shape.Circle(4)
    assert Shape.values(array[1:3]) == [Shape.Circle(4)] * 2
    record = sarek.record(np.dtype([("shape", Shape.dtype)]))(shape=Shape.Painted(Color.Gray(3)))
    assert Shape.values(np.asarray(record)["shape"]) == [Shape.Painted(Color.Gray(3))]


def test_records_with_variants_are_compared_by_their_values():
    """Bytes of another case do not count."""
    box = np.dtype([("shape", Shape.dtype), ("id", np.int8)])
    held = sarek.variant("Held", Box=box)
    first, second = np.zeros((2, 1), box)
    second["shape"] = Shape.Rect(8, 9)
    second["shape"]["tag"] = 2
    first["shape"]["tag"] = 2
    assert held.Box(first[0]) == held.Box(second[0])
    second["id"] = 1
    assert held.Box(first[0]) != held.Box(second[0])


def test_random_values_return():
    """Arrays of random variants give their values back, in another layout too."""
    for seed in range(SHAPES // 10):
        variant = random_variant(random.Random(seed), depth=2)
        array = np.zeros(5, variant.dtype)
        fill(np.random.default_rng(seed), array)
        values = variant.values(array)
        assert variant.values(variant.array(values)) == values
        assert variant.values(np.concatenate([array, array])) == values * 2


Earlier = sarek.variant("Shape", Circle=sarek.float32)
Owner = sarek.variant("Owner", One=Shape)


def store(value):
    """Store as NumPy takes no value."""
    array = np.zeros(2, type(value).variant)
    array[1] = value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shape.Circle(), "Shape.Circle has 1 part, and 0 are given"),
        (lambda: Shape.Circle("wide"), "part 0 of Shape.Circle is float32, not 'wide'"),
        (lambda: Color.Gray(2.5), "part 0 of Color.Gray is uint8, not 2.5"),
        (lambda: Color.Gray(300), "part 0 of Color.Gray is uint8, not 300"),
        (lambda: Shape.Body(Vector(1, 2), 3), "part 1 of Shape.Body is bool, not 3"),
        (lambda: Shape.Body(7, True), "part 0 of Shape.Body is a record of x, y"),
        (lambda: Shape.Painted(Shape.Point()), "part 0 of Shape.Painted is a Color"),
        (lambda: Shape(3), r"Shape has cases, which are called: Shape.Circle\(f0\), "),
        (lambda: Shape.array([Color.Gray(3)]), r"Color.Gray\(3\) is no value of Shape"),
        (lambda: Shape.values(np.zeros(2, np.int32)), "takes an array of Shape$"),
        (lambda: Earlier.values(np.zeros(2, Shape)), "an array of Shape; these are two decl"),
        (lambda: Shape.array([Earlier.Circle(3)]), r"Painted\(f0\); these are two decl"),
        (lambda: Owner.One(Earlier.Circle(3)), r"Circle\(3.0\) is none; these are two decl"),
        (lambda: int(Shape.Point()), "a value of Shape is no number"),
        (
            lambda: store(Shape.Point()),
            r"store it as a\[i, ...\] = value, and make",
        ),
        (lambda: np.array([Shape.Point()], Shape), "make arrays by Shape.array"),
    ],
)
def test_host_values_are_checked(make, message):
    with pytest.raises((TypeError, OverflowError), match=message):
        make()


def test_a_tag_without_a_case_is_refused():
    array = np.zeros(1, Shape.dtype)
    array["tag"] = 9
    with pytest.raises(ValueError, match="the tag 9 is of no case of Shape"):
        Shape.values(array)


# --- launches -------------------------------------------------------------------------------------


@sarek.kernel
def is_point(out, shapes: Shape[:]):
    i = sarek.global_idx.x
    match shapes[i]:
        case Shape.Point():
            out[i] = 1
        case _:
            out[i] = 0


@sarek.kernel
def half_written(shapes):
    tile = sarek.shared.array(4, Shape)
    i = sarek.thread_idx.x
    if i < 3:
        tile[i] = Shape.Circle(i)
    sarek.barrier()
    shapes[i] = tile[i]


def launched(kernel, *arguments):
    with sarek.use_device("interpreter"):
        kernel[1, 4](*arguments)


def test_the_oracle_reports_a_tag_without_a_case():
    """Where the host left other bytes; a good array is not reported."""
    shapes, out = np.zeros(4, Shape.dtype), np.zeros(4, np.int32)
    launched(is_point, out, shapes)
    shapes["tag"][2] = -1
    with pytest.raises(sarek.AssertionFailed, match="the tag of a Shape names none of its cases"):
        launched(is_point, out, shapes)
    shapes["tag"][2] = 5
    with pytest.raises(sarek.AssertionFailed, match=r"thread \(2, 0, 0\)"):
        launched(is_point, out, shapes)


def test_the_oracle_reports_a_variant_that_nothing_wrote():
    """The tag, which counts as the first case; parts of other cases are not read."""
    with pytest.raises(sarek.UninitialisedRead, match=r"'tile.tag\[3\]'") as caught:
        launched(half_written, np.zeros(4, Shape.dtype))
    assert [each.array for each in caught.value.findings] == ["tile.tag", "tile.Circle"]


def test_a_stated_variant_is_checked():
    """By name and layout."""
    out = np.zeros(4, np.int32)
    with pytest.raises(sarek.ArgumentTypeError, match="array of Color, and the kernel states"):
        launched(is_point, out, np.zeros(4, Color.dtype))
    loose = np.concatenate([np.zeros(2, Shape.dtype)] * 2)
    with pytest.raises(sarek.ArgumentTypeError, match=r"hint: .* Shape.dtype, as Shape.array"):
        launched(is_point, out, loose)
    launched(is_point, out, Shape.array(loose))
    with pytest.raises(sarek.ArgumentTypeError, match="two declarations of Shape, of Circle and"):
        launched(is_point, out, np.zeros(4, Earlier))
