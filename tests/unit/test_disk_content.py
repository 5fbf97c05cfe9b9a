"""The content of a function: every value that it reaches counts, by its type and its bits."""

from __future__ import annotations

import enum
import math
from collections import namedtuple
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.frontend.content import Undigestable, content_of

RECORD = np.dtype([("x", np.float32), ("y", np.float32)])

Point = namedtuple("Point", "x y")
Reversed = namedtuple("Point", "y x")


class Colour(enum.IntEnum):
    """Numbers with names."""

    RED = 1
    BLUE = 2


class Shifted(enum.IntEnum):
    """The same names, other numbers."""

    RED = 2
    BLUE = 1


def _function(text: str, **scope: Any) -> FunctionType:
    """A function without text on file, whose surroundings are given."""
    held: dict[str, Any] = {"sarek": sarek, "np": np, "math": math} | scope
    exec(compile(f"def made(x):\n    return {text}\n", "<made>", "exec"), held)
    made: FunctionType = held["made"]
    return made


def _device(text: str, **scope: Any) -> Any:
    return sarek.function(_function(text, **scope))


def _texts(opencl: str, text: str = "x") -> Any:
    return sarek.inline_source({"opencl": opencl}, _function(text))


def _module(**held: Any) -> ModuleType:
    made = ModuleType("settings_of_the_user")
    vars(made).update(held)
    return made


_NAN = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
VALUES: dict[str, tuple[Any, Any]] = {
    "an int": (3, 4),
    "an int and a float": (3, 3.0),
    "an int and a bool": (1, True),
    "a large int": (1 << 70, (1 << 70) + 1),
    "a float": (0.1, 0.1000001),
    "zeros": (0.0, -0.0),
    "NaNs": (float("nan"), float(_NAN)),
    "a complex": (1j, complex(-0.0, 1)),
    "None": (None, 0),
    "a str": ("a", "b"),
    "a str and bytes": ("a", b"a"),
    "a surrogate": ("\ud800", "\ud801"),
    "a tuple": ((1, 2), (2, 1)),
    "how tuples nest": (((1,), 2), ((1, 2),)),
    "a tuple and its item": ((1,), 1),
    "a slice": (slice(1, 2), slice(2, 1)),
    "a named tuple": (Point(1, 2), Point(2, 1)),
    "a named tuple and a tuple": (Point(1, 2), (1, 2)),
    "the fields of a named tuple": (Point(1, 2), Reversed(1, 2)),
    "the class of a named tuple": (Point, Reversed),
    "a member": (Colour.RED, Colour.BLUE),
    "a member and its number": (Colour.RED, 1),
    "a NumPy scalar": (np.int32(3), np.int32(4)),
    "its type": (np.int32(3), np.int64(3)),
    "a NumPy bool": (np.True_, True),
    "an element": (np.array([1, 2, 3]), np.array([1, 2, 4])),
    "the type of elements": (np.array([1, 0], np.int32), np.array([1], np.int64)),
    "a shape": (np.zeros((2, 3)), np.zeros((3, 2))),
    "an array and a scalar": (np.zeros((), np.float32), np.float32(0)),
    "a record": (np.array((1, 2), RECORD)[()], np.array((1, 3), RECORD)[()]),
    "the fields of a record": (RECORD, np.dtype([("x", np.float32), ("z", np.float32)])),
    "the offsets of a record": (
        np.dtype({"names": ["x"], "formats": ["f4"], "offsets": [0], "itemsize": 8}),
        np.dtype({"names": ["x"], "formats": ["f4"], "offsets": [4], "itemsize": 8}),
    ),
    "a dtype": (np.dtype("i4"), np.dtype("u4")),
    "a NumPy type": (np.float32, np.float64),
    "a NumPy function": (np.sin, np.cos),
    "a function of math": (math.sin, math.cos),
    "a builtin": (min, max),
    "a type of the language": (sarek.float32, sarek.float64),
    "an index": (sarek.thread_idx, sarek.block_idx),
    "an operation": (sarek.atomic.add, sarek.atomic.sub),
    "a record type": (sarek.record(RECORD), sarek.record([("x", np.float64)])),
    "a variant": (sarek.variant("A", B=sarek.int32), sarek.variant("A", B=sarek.int64)),
    "the name of a variant": (sarek.variant("A", B=None), sarek.variant("C", B=None)),
    "a case": (sarek.variant("D", E=None, F=None).E, sarek.variant("D", E=None, F=None).F),
    "a value of a variant": (
        sarek.variant("G", H=sarek.int32).H(1),
        sarek.variant("G", H=sarek.int32).H(2),
    ),
    "a device function": (_device("x + 1"), _device("x + 2")),
    "inline": (_device("x"), sarek.function(_function("x"), inline=True)),
    "inline_depth": (_device("x"), sarek.function(_function("x"), inline_depth=2)),
    "what a device function captures": (_device("x + N", N=1), _device("x + N", N=2)),
    "two calls away": (
        _device("f(x)", f=_device("x + N", N=1)),
        _device("f(x)", f=_device("x + N", N=2)),
    ),
    "an attribute": (_device("x + m.N", m=_module(N=1)), _device("x + m.N", m=_module(N=2))),
    "an attribute of a module of a module": (
        _device("x + m.n.N", m=_module(n=_module(N=1))),
        _device("x + m.n.N", m=_module(n=_module(N=2))),
    ),
    "a function in a module": (
        _device("m.f(x)", m=_module(f=_device("x + 1"))),
        _device("m.f(x)", m=_module(f=_device("x + 2"))),
    ),
    "a member by name": (_device("x + C.RED", C=Colour), _device("x + C.RED", C=Shifted)),
    "a function of Numba": (numba.njit(_function("x + 1")), numba.njit(_function("x + 2"))),
    "its options": (
        numba.njit(_function("x")),
        numba.njit(_function("x"), inline="always"),
    ),
    "a device function or one of Numba": (_device("x"), numba.njit(_function("x"))),
    "a text": (_texts("$x + 1"), _texts("$x + 2")),
    "its fallback": (_texts("$x + 1"), _texts("$x + 1", "x + 2")),
    "a name of the language": (_device("sarek.thread_idx.x"), _device("sarek.thread_idx.y")),
}  # fmt: skip


def _digest(value: Any) -> bytes:
    return content_of(_function("N", N=value)).digest


@pytest.mark.parametrize("name", VALUES)
def test_captured_values_are_part_of_the_content(name: str) -> None:
    """Each pair differs; an equal function with the same value does not."""
    one, other = VALUES[name]
    assert _digest(one) != _digest(other)
    assert _digest(one) == _digest(one)
    assert _digest((one, other)) != _digest((other, one))


def test_closures_and_defaults_are_part_of_the_content() -> None:
    """Case 76: factories; and defaults, positional and by keyword."""

    def factory(k: Any) -> FunctionType:
        def made(x):
            return x * k

        return made

    assert content_of(factory(1)).digest == content_of(factory(1)).digest
    assert content_of(factory(1)).digest != content_of(factory(2)).digest
    made = factory(1)
    digests = {content_of(made).digest}
    made.__defaults__ = (1,)
    digests.add(content_of(made).digest)
    made.__defaults__ = (2,)
    digests.add(content_of(made).digest)
    made.__kwdefaults__ = {"y": 1}
    digests.add(content_of(made).digest)
    assert len(digests) == 4


def test_a_function_that_calls_itself_has_a_content() -> None:
    """Recursion ends, alone and in pairs."""
    one = _function("f(x) + N", N=1)
    one.__globals__["f"] = sarek.function(one)
    two = _function("f(x) + N", N=2)
    two.__globals__["f"] = sarek.function(two)
    assert content_of(one).digest != content_of(two).digest
    assert content_of(one).functions == (one,)


def test_text_and_lines_are_part_of_the_content(tmp_path: Path) -> None:
    """What the syntax tree has and bytecode has not, and where it is written; not the file."""
    text = "def made(x):\n    y: int = x\n    return y\n"
    changed = {
        "same": (text, "a.py"),
        "moved": (text, "b.py"),
        "an annotation": (text.replace("int", "float"), "c.py"),
        "a line further down": ("\n" + text, "d.py"),
        "a column further right": (text.replace("y: int =", "y:  int ="), "e.py"),
    }
    digests = {}
    for name, (source, file) in changed.items():
        path = tmp_path / file
        path.write_text(source)
        scope: dict[str, Any] = {}
        exec(compile(source, str(path), "exec"), scope)
        digests[name] = content_of(scope["made"]).digest
    assert digests["same"] == digests["moved"]
    assert len(set(digests.values())) == len(digests) - 1


DOUBLED = _device("x * 2")


def _kernel(out):
    out[0] = 1


UNKNOWN = {
    "an object": object(),
    "an instance of a class": SimpleNamespace(n=1),
    "a plain function": _function("x"),
    "a class": SimpleNamespace,
    "a module": _module(N=1),
    "this package": sarek,
    "objects in an array": np.array([None]),
    "a large array": np.zeros(1 << 25, np.int8),
    "within a tuple": (1, (2, object())),
    "a list": [1],
    "a kernel": sarek.kernel(_kernel),
    "a subclass of a number": type("Number", (int,), {})(3),
    "a subclass of a device function": type("Own", (type(DOUBLED),), {})(DOUBLED.function),
    "a method": SimpleNamespace(n=1).__repr__,
    "two calls away": _device("f(x) + N", f=_device("x"), N=object()),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_has_no_content_is_refused(name: str) -> None:
    """Rather than guessed at."""
    with pytest.raises(Undigestable):
        _digest(UNKNOWN[name])
