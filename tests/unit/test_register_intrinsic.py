"""`sarek.register_intrinsic`: refusals where it is called, names, types, and what runs where."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import TypingError, UnsupportedConstruct
from sarek_numba.frontend import mathematics

DEVICES = [device.name for device in sarek.devices()]
on_devices = pytest.mark.parametrize("device", DEVICES)
TEXTS = {"opencl": "$x + 1", "native": "fadd $x.type $x, 1.0"}
ONE = "float32(float32)"


def plus_one(x):
    return x + 1


@pytest.fixture(autouse=True)
def names():
    """What a test registers is gone after it."""
    before = dict(vars(mathematics))
    yield
    for name in set(vars(mathematics)) - set(before):
        delattr(mathematics, name)


REFUSED: dict[str, tuple[tuple[Any, ...], str, str]] = {
    "no identifier": (
        ("plus one", ONE, TEXTS, plus_one),
        "'plus one' is no name of a function",
        "use letters, digits and _",
    ),
    "a keyword": (
        ("lambda", ONE, TEXTS, plus_one),
        "'lambda' is no name of a function",
        "use letters, digits and _",
    ),
    "underscore": (("_p", ONE, TEXTS, plus_one), "'_p' begins with _", "leave the underscore out"),
    "a function of sarek.math": (
        ("hypot", ONE, TEXTS, plus_one),
        "sarek.math has a hypot of its own",
        "use another name",
    ),
    "no reference": (
        ("plus_one", ONE, TEXTS),
        "the intrinsic 'plus_one' has no reference",
        "give python=f, the Python function that says what it means",
    ),
    "no function": (
        ("plus_one", ONE, TEXTS, 1),
        "the reference is no Python function, but 1",
        "define it with def",
    ),
    "no text": (
        ("plus_one", ONE, {}, plus_one),
        "the intrinsic 'plus_one' has no text for any framework",
        "decorate the reference with @sarek.function, and call that",
    ),
    "unknown framework": (
        ("plus_one", ONE, {"natve": "1"}, plus_one),
        "'natve' is no framework",
        "did you mean 'native'?",
    ),
    "unknown parameter": (
        ("plus_one", ONE, {"native": "$y"}, plus_one),
        "$y of the native text is no parameter of the reference plus_one(x)",
        "give it as an argument",
    ),
    "no signature": (
        ("plus_one", "float32", TEXTS, plus_one),
        "'float32' is no signature",
        'write it as "float32(float32, int32)"',
    ),
    "none of several": (
        ("plus_one", (), TEXTS, plus_one),
        "the intrinsic 'plus_one' has no signature",
        'write one, as "float32(float32)"',
    ),
    "unknown type": (
        ("plus_one", "float32(flaot32)", TEXTS, plus_one),
        "'flaot32' in a signature is no type",
        "did you mean 'float32'?",
    ),
    "another number of arguments": (
        ("plus_one", "float32(float32, int32)", TEXTS, plus_one),
        "the signature 'float32(float32, int32)' has 2 arguments, and the reference plus_one() "
        "takes 1",
        "state a type for each parameter",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused(name: str) -> None:
    """With the user's line and one hint, and nothing is registered."""
    arguments, message, hint = REFUSED[name]
    before = dict(vars(mathematics))
    with pytest.raises(UnsupportedConstruct) as raised:
        sarek.register_intrinsic(*arguments)
    first, *_, last = str(raised.value).split("\n")
    assert "test_register_intrinsic.py:" in first
    assert first.endswith(f": {message}")
    assert last == f"  hint: {hint}"
    assert dict(vars(mathematics)) == before


def test_two_of_one_name_are_refused() -> None:
    """The message says where the first one is; the same definition again takes its place."""

    def other(x):
        return x + 2

    first = sarek.register_intrinsic("test_step", ONE, TEXTS, plus_one)
    with pytest.raises(UnsupportedConstruct, match=r"registered already at .*intrinsic.py:\d+"):
        sarek.register_intrinsic("test_step", ONE, TEXTS, other)
    assert sarek.math.test_step is first
    again = sarek.register_intrinsic("test_step", ONE, TEXTS, plus_one)
    assert sarek.math.test_step is again


@on_devices
def test_a_new_definition_counts_at_the_next_launch(device: str) -> None:
    """As a rebound name does: no specialisation keeps the old text or reference."""

    @sarek.kernel
    def step(out):
        out[0] = sarek.math.test_moved(out[0])

    out = np.zeros(1, np.float32)
    for number in (1, 10):
        code = f"def moved(x):\n    return x + {number}"
        module = types.ModuleType("cell")
        exec(code, module.__dict__)
        texts = {"opencl": f"$x + {number}", "native": f"fadd float $x, {number}.0"}
        sarek.register_intrinsic("test_moved", ONE, texts, module.moved)
        step.launch(out, grid=1, block=1, device=device)
    assert out.tolist() == [11]


def test_compare_shows_a_wrong_text() -> None:
    """The oracle has the reference."""
    wrong = {"opencl": "$x + 2", "native": "fadd float $x, 2.0"}
    sarek.register_intrinsic("test_wrong", ONE, wrong, plus_one)

    @sarek.kernel
    def step(out, x):
        out[0] = sarek.math.test_wrong(x[0])

    x = np.ones(1, np.float32)
    found = sarek.compare(step)[1, 1](np.zeros(1, np.float32), x)
    assert {row.device for row in found.rows if row.ulp} == {
        name for name in DEVICES if name.partition(":")[0] in wrong
    }


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.float32(2), np.float32),
        (np.int16(2), np.float32),
        (2, np.float32),
        (2.0, np.float32),
        (np.float64(2), np.float64),
        (np.int32(2), np.float64),
    ],
)
def test_the_first_signature_that_holds_the_arguments(value: Any, kind: type) -> None:
    """In plain Python, in emulation, and on the oracle: one rule."""
    signatures = ["float32(float32)", "float64(float64)"]
    function = sarek.register_intrinsic("test_kinds", signatures, TEXTS, plus_one)
    assert type(function(value)) is kind

    @sarek.kernel
    def kinds(out, x):
        out[0] = function(x[0]) * (1 + 2.0**-30)

    @sarek.kernel
    def weak_kinds(out, x):
        out[0] = function(x) * (1 + 2.0**-30)

    expected = float(kind(3) * kind(1 + 2.0**-30))
    given = np.array([value]) if isinstance(value, np.generic) else value
    kernel = kinds if isinstance(value, np.generic) else weak_kinds
    for executor in ("emulation", "interpreter"):
        out = np.zeros(1)
        if executor == "emulation":
            sarek.emulate(kernel)[1, 1](out, given)
        else:
            kernel.launch(out, given, grid=1, block=1, device=executor)
        assert out.tolist() == [expected], executor


def test_an_argument_that_no_signature_holds() -> None:
    """Refused when compiling, and a TypeError in Python."""
    function = sarek.register_intrinsic("test_narrow", ONE, TEXTS, plus_one)

    @sarek.kernel
    def narrow(out):
        out[0] = function(out[0])

    with pytest.raises(TypingError, match=r"takes float32\(float32\), not \(float64\)"):
        narrow[1, 1](np.zeros(1))
    with pytest.raises(TypeError, match="not \\(float64\\)"):
        function(np.float64(1))
    with pytest.raises(TypeError, match="not \\(bool\\)"):
        function(True)
