"""Single records as arguments: what is taken, what is refused, and what the numbers are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import errors
from sarek_numba.ir.parse import parse
from sarek_numba.ir.records import numbers_of, record_of
from sarek_numba.ir.text import text
from sarek_numba.ir.types import NumberOf

POINT = np.dtype([("x", np.float32), ("y", np.int16)])
PACKED = np.dtype([("a", np.uint8), ("points", POINT, (2,)), ("z", np.float64)])
LONG = np.dtype([("cells", np.float32, (65,))])
Point = sarek.record(POINT)
Maybe = sarek.variant("Maybe", Some=sarek.int32, Two=(sarek.int16, sarek.float32), Nothing=None)
HOLDER = np.dtype([("id", np.int8), ("maybe", Maybe.dtype, (2,))])
OUT = np.zeros(4, np.float64)
VALUE = np.array((1.5, -2), POINT)


@sarek.kernel
def first(out, r):
    out[0] = r.x


@sarek.kernel
def stated(out, r: Point):
    out[0] = r.x + r.y


@sarek.kernel
def stated_variant(out, m: Maybe):
    match m:
        case Maybe.Some(n):
            out[0] = n
        case _:
            out[0] = -1.0


@sarek.kernel
def stated_array(out, r: Point[:]):
    out[0] = r[0].x


@sarek.kernel
def of_long(out, r):
    out[0] = r.cells[3]


def test_numbers_of_a_packed_record() -> None:
    """In the order of the fields, arrays of records field by field."""
    value = np.array((7, [(1.5, 2), (2.5, 3)], -4.0), PACKED)
    assert numbers_of(record_of(PACKED), value) == (7, 1.5, 2.5, 2, 3, -4.0)


def test_numbers_of_cases_that_are_not_there_are_zero() -> None:
    value = np.zeros((), HOLDER)
    value["id"] = 9
    value["maybe"] = Maybe.array([Maybe.Two(3, 4.5), Maybe.Some(6)])
    numbers = numbers_of(record_of(HOLDER), value)
    assert numbers == (9, 1, 0, 0, 6, 3, 0, 4.5, 0)
    assert [n.dtype.name for n in numbers[-4:]] == ["int16", "int16", "float32", "float32"]


def test_each_number_is_a_parameter() -> None:
    """Of its own type; the text of the kernel reads back the same."""
    kernel = stated.ir(sarek.float64[:], Point)
    roles = [param.role for param in kernel.params if isinstance(param.role, NumberOf)]
    assert roles == [NumberOf(1, 0), NumberOf(1, 1)]
    assert "= number 1 1" in text(kernel)
    assert text(parse(text(kernel))) == text(kernel)


def test_another_layout_of_the_stated_record_is_taken() -> None:
    """The fields count, not where they lie."""
    spread = np.dtype(
        {"names": ["x", "y"], "formats": ["f4", "i2"], "offsets": [8, 1], "itemsize": 20}
    )
    out = np.zeros(1)
    stated[1, 1](out, np.array((2.5, 4), spread))
    assert out[0] == 6.5


def test_a_change_stays_in_the_kernel() -> None:
    @sarek.kernel
    def change(out, r):
        r.x += sarek.global_idx.x + 1
        out[sarek.global_idx.x] = r.x

    for launch in (change[1, 3], sarek.emulate(change)[1, 3]):
        out, value = np.zeros(3), VALUE.copy()
        launch(out, value)
        assert out.tolist() == [2.5, 3.5, 4.5]
        assert value == VALUE


@pytest.mark.parametrize("annotation", [Point, POINT, Any], ids=["record", "dtype", "any"])
def test_annotations(annotation: Any) -> None:
    def body(out, r):  # type: ignore[no-untyped-def] # the annotation is what is tested
        out[0] = r.y

    body.__annotations__["r"] = annotation
    out = np.zeros(1)
    sarek.kernel(body)[1, 1](out, VALUE[()])
    assert out[0] == -2


def _over(dtype: Any) -> Any:
    return np.zeros((), dtype)


REFUSED: dict[str, tuple[type[Exception], Callable[[], Any], str]] = {
    "other fields": (
        errors.ArgumentTypeError,
        lambda: stated[1, 1](OUT, _over([("x", np.float32), ("z", np.int16)])),
        "kernel 'stated': argument 'r' is a record (x, z), and the kernel states a record (x, y)\n"
        "  hint: pass a record of these fields and types, as in numpy.zeros((), dtype)",
    ),
    "an array of it": (
        errors.ArgumentTypeError,
        lambda: stated[1, 1](OUT, np.zeros(3, POINT)),
        "kernel 'stated': argument 'r' is a 1-D array of records (x, y), and the kernel states "
        "a record (x, y)\n  hint: pass one element, as in r[0]",
    ),
    "a number": (
        errors.ArgumentTypeError,
        lambda: stated[1, 1](OUT, 3),
        "kernel 'stated': argument 'r' is the Python int 3, and the kernel states "
        "a record (x, y)\n"
        "  hint: pass a record of these fields and types, as in numpy.zeros((), dtype)",
    ),
    "no array": (
        errors.ArgumentTypeError,
        lambda: stated_array[1, 1](OUT, VALUE),
        "kernel 'stated_array': argument 'r' is a record (x, y), and the kernel states a 1-D "
        "array of records (x, y)\n  hint: pass an array of one record, as in numpy.array([r])",
    ),
    "no variant": (
        errors.ArgumentTypeError,
        lambda: stated_variant[1, 1](OUT, VALUE),
        "kernel 'stated_variant': argument 'm' is a record (x, y), and the kernel states "
        "a value of Maybe\n  hint: pass a value of Maybe",
    ),
    "a text": (
        errors.ArgumentTypeError,
        lambda: first[1, 1](OUT, _over([("x", "f4"), ("name", "S3")])),
        "kernel 'first': argument 'r' is a record: field 'name' is |S3, no type of a kernel\n"
        "  hint: use numbers",
    ),
    "fields that overlap": (
        errors.ArgumentTypeError,
        lambda: first[1, 1](
            OUT, _over({"names": ["x", "y"], "formats": ["f4", "f4"], "offsets": [0, 2]})
        ),
        "kernel 'first': argument 'r' is a record: the fields 'x' and 'y' overlap\n"
        "  hint: give each field bytes of its own",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    kind, launch, wanted = REFUSED[name]
    for _ in range(2):
        with pytest.raises(kind) as caught:
            launch()
        assert str(caught.value) == wanted


def test_many_numbers_are_refused() -> None:
    """At the definition of the kernel, with what to pass instead; one less is taken."""
    with pytest.raises(errors.UnsupportedConstruct) as caught:
        of_long[1, 1](OUT, np.zeros((), LONG))
    assert "a record of 65 numbers as the argument 'r' (at most 64)" in str(caught.value)
    assert "hint: pass an array of one record, as in numpy.array([r])" in str(caught.value)
    assert caught.value.span is not None
    out, shorter = np.zeros(1), np.zeros((), [("cells", np.float32, (64,))])
    shorter["cells"][3] = 2.5
    of_long[1, 1](out, shorter)
    assert out[0] == 2.5
