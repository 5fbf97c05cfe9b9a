"""`sarek.register_type`: refusals, and what arrays give and take on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import ArgumentTypeError, UnsupportedConstruct
from tests.kernels.registered import SPAN, Ball, Place, Span

POINT = np.dtype([("x", np.float32), ("y", np.float32)])


class Point:
    def __init__(self, x, y=0):
        self.x, self.y = x, y


class Turned:
    def __init__(self, y, x):
        self.x, self.y = x, y


class Bare:
    pass


class Worded:
    x: sarek.float32
    name: str


class Unread:
    x: Nowhere  # noqa: F821 - that is the point


REFUSED: dict[str, tuple[tuple[Any, ...], dict[str, Any], str, str]] = {
    "no class": (
        ("Point", POINT),
        {},
        "sarek.register_type takes a class, not 'Point'",
        "define it with class",
    ),
    "no dtype": ((Point, 3.5), {}, "3.5 is no dtype", "write numpy.dtype([...])"),
    "a number's dtype": (
        (Point, np.float32),
        {},
        "float32 is no structured dtype",
        "write numpy.dtype([...])",
    ),
    "a field of text": (
        (Point, [("x", "U3"), ("y", np.int8)]),
        {},
        "Point: field 'x' is <U3, no type of a kernel",
        "use numbers",
    ),
    "no fields": ((Bare,), {}, "Bare states no fields", "annotate them, or give a dtype"),
    "an annotation of text": (
        (Worded,),
        {},
        "the field 'name' of Worded is annotated with <class 'str'>, no type of a kernel",
        "write it as sarek.float32, or give a dtype",
    ),
    "an unknown annotation": (
        (Unread,),
        {},
        "an annotation of Unread cannot be read: name 'Nowhere' is not defined",
        "give a dtype",
    ),
    "another constructor": (
        (Bare, POINT),
        {},
        "the class cannot be called as Bare(x, y), by the fields of its records",
        "give get=f, a function of a record that makes an instance",
    ),
    "another order": (
        (Turned, POINT),
        {},
        "the class takes its arguments in another order than Turned(x, y)",
        "write the fields of the dtype in the order of the class",
    ),
    "an accessor that is none": (
        (Point, POINT),
        {"get": 3},
        "get=3 is no function",
        "give get=f, or leave it out",
    ),
    "registered otherwise": (
        (Span, POINT),
        {"get": Point},
        "Span is registered already",
        "register a class once",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused(name: str) -> None:
    """With the user's line and one hint; the class stays unregistered."""
    arguments, options, message, hint = REFUSED[name]
    for _ in range(2):
        with pytest.raises(UnsupportedConstruct) as raised:
            sarek.register_type(*arguments, **options)
        first, *_, last = str(raised.value).split("\n")
        assert "test_register_type.py:" in first
        assert first.endswith(f": {message}")
        assert last == f"  hint: {hint}"


def test_the_same_registration_again() -> None:
    """Gives the same type."""
    first = sarek.register_type(Point, POINT)
    assert sarek.register_type(Point, POINT) is first


def test_arrays_give_and_take_instances() -> None:
    """Elements are instances, slices and views are arrays of them, fields plain arrays."""
    balls = Ball.array([Ball(Place(1, 2), 3), Ball(Place(4, 5), 6)])
    assert list(balls) == [Ball(Place(1, 2), 3), Ball(Place(4, 5), 6)]
    assert type(balls[0]) is Ball.python_class
    assert balls[::-1][0] == balls[1]
    balls[0] = Ball(Place(7, 8), 9)
    balls[1:] = [Ball(Place(0, 0), 0)]
    assert list(balls) == [Ball(Place(7, 8), 9), Ball(Place(0, 0), 0)]
    assert type(balls["bounces"]) is np.ndarray
    balls["bounces"] = 4
    assert [ball.bounces for ball in balls] == [4, 4]
    balls[0] = ((1, 2), 3)
    assert balls[0] == Ball(Place(1, 2), 3)
    assert repr(balls[:0]).startswith("Ball.view(array([]")
    assert Ball.array(3)[2] == Ball(Place(0, 0), 0)


def test_a_view_shares_the_memory() -> None:
    """An array of records and its instances are one."""
    records = np.zeros(2, Ball.dtype)
    balls = Ball.view(records)
    balls[1] = Ball(Place(1, 2), 3)
    assert records[1]["bounces"] == 3
    records[0]["bounces"] = 5
    assert balls[0].bounces == 5
    with pytest.raises(TypeError, match="Ball views arrays of"):
        Ball.view(np.zeros(2))


def test_own_accessors() -> None:
    """They decide what an instance is made of."""
    spans = SPAN.array([Span(1, 4)])
    assert np.asarray(spans)["middle"].tolist() == [2.5]
    assert (spans[0].low, spans[0].high) == (1, 4)


def test_other_objects_are_refused() -> None:
    """NumPy would put a number into every field."""
    balls = Ball.array(1)
    for given in (3, Place(1, 2), None):
        with pytest.raises(TypeError, match="an element is a Ball, not"):
            balls[0] = given


def test_the_annotation_is_checked() -> None:
    """An array of other records is refused."""

    @sarek.kernel
    def nothing(balls: Ball[:]):
        balls[0].bounces = 0

    with pytest.raises(ArgumentTypeError, match="'balls'"):
        nothing[1, 1](np.zeros(1, POINT))


def test_a_plain_class_in_python() -> None:
    """A registered class is called as ever, with its defaults."""

    @dataclass
    class Pair:
        left: int
        right: int = 7

    made = sarek.register_type(Pair, [("left", np.int32), ("right", np.int32)])
    assert made(1) == Pair(1, 7)
    assert made.array([Pair(1)])[0] == Pair(1, 7)
    assert np.zeros(2, made).dtype == made.dtype
