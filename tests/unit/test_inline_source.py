"""`sarek.inline_source`: refusals where it is made, what runs where, and what compilers say."""

from __future__ import annotations

import linecache
import re
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import SourceCompilationError, UnsupportedConstruct
from sarek_numba.ir.hash import content_hash
from sarek_numba.ir.needs import needs
from sarek_numba.ir.parse import parse
from sarek_numba.ir.text import text
from sarek_numba.ir.texts import picked, without_fallbacks
from sarek_numba.ir.types import Scalar

DEVICES = [device.name for device in sarek.devices()]
on_devices = pytest.mark.parametrize("device", DEVICES)


def framework_of(device: str) -> str:
    return device.partition(":")[0]


def average(left, right):
    return (left + right) / 2


def made(texts: Any, fallback: Any = average) -> Any:
    return sarek.inline_source(texts, fallback=fallback)


MADE: dict[str, tuple[tuple[Any, ...], str, str]] = {
    "nothing": (
        ({}, None),
        "sarek.inline_source has neither a text nor a fallback",
        "give fallback=f, the Python function that the texts stand for",
    ),
    "no fallback": (
        ({"opencl": "$left"}, None),
        "sarek.inline_source has no fallback",
        "give fallback=f, the Python function that the texts stand for",
    ),
    "no text": (
        ({},),
        "sarek.inline_source has no text for any framework",
        "decorate the fallback with @sarek.function, and call that",
    ),
    "no text from a function": (
        (lambda framework: None,),
        "sarek.inline_source has no text for any framework",
        "decorate the fallback with @sarek.function, and call that",
    ),
    "unknown framework": (({"openCL": "1"},), "'openCL' is no framework", "did you mean 'opencl'?"),
    "framework unlike any": (
        ({"interpreter": "1"},),
        "'interpreter' is no framework",
        "there are cuda, hip, metal, native, opencl, vulkan",
    ),
    "unknown parameter": (
        ({"native": "$left", "opencl": "$lefty"},),
        "$lefty of the opencl text is no parameter of the fallback average(left, right)",
        "did you mean '$left'?",
    ),
    "the result as a value": (
        ({"opencl": "$return + 1"},),
        "$return of the opencl text is no parameter of the fallback average(left, right)",
        "give it as an argument",
    ),
    "bare dollar": (({"opencl": "a $ b"},), "a $ of the opencl text has no name", "write $$ for $"),
    "text of another type": (
        ({"opencl": 3},),
        "the opencl text is 3",
        "leave the framework out, or write text",
    ),
    "empty text": (
        ({"opencl": " "},),
        "the opencl text is ' '",
        "leave the framework out, or write text",
    ),
    "fallback of another type": (
        ({"opencl": "1"}, 3),
        "the fallback is no Python function, but 3",
        "define it with def",
    ),
    "source of another type": (
        ("1",),
        "the source is a dict of texts, or a function of a framework's name, not '1'",
        'write {"opencl": "$x + 1"}',
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_what_has_no_meaning_is_refused_where_it_is_made(name: str) -> None:
    """With the user's line, and one hint."""
    arguments, message, hint = MADE[name]
    with pytest.raises(UnsupportedConstruct) as raised:
        made(*arguments)
    line, shown, caret, last = str(raised.value).split("\n")
    place, _, said = line.partition(": ")
    assert said == message
    number = int(place.split(":")[-2])
    assert "test_inline_source.py:" in place
    assert linecache.getline(__file__, number).strip() in shown
    assert caret.strip(" |") == "^" * len("inline_source")
    assert last == f"  hint: {hint}"


# --- what runs ------------------------------------------------------------------------------------

WRONG = {
    "opencl": "$left",
    "native": "fadd $left.type $left, 0.0",
    "vulkan": "OpReturnValue $left",
}
wrong = made(WRONG)


@sarek.kernel
def averages(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = wrong(x[i], x[0])


@on_devices
def test_a_text_runs_where_there_is_one(device: str) -> None:
    """A wrong text gives a wrong result, so the text is what runs; the oracle has the fallback."""
    x = np.arange(20, dtype=np.float32) + 1
    out = np.zeros(20, np.float32)
    averages.launch(out, x, grid=1, block=32, device=device)
    expected = x if framework_of(device) in WRONG else (x + x[0]) / 2
    assert out.tolist() == expected.tolist()


def test_compare_shows_a_wrong_text() -> None:
    """Each device whose text is wrong stands in the table with the first difference."""
    x = np.arange(20, dtype=np.float32) + 1
    found = sarek.compare(averages)[1, 32](np.zeros(20, np.float32), x)
    assert not found.agrees
    for row in found.rows:
        assert (row.ulp > 0) == (framework_of(row.device) in WRONG)
    assert "out[1] is 2.0, the oracle has 1.5" in str(found)


def test_in_python_the_fallback_runs() -> None:
    """Outside of kernels and in emulation."""
    assert wrong(1.0, right=2.0) == 1.5
    out = np.zeros(2, np.float32)
    sarek.emulate(averages)[1, 2](out, np.array([1, 4], np.float32))
    assert out.tolist() == [1, 2.5]


def test_texts_are_part_of_the_kernel() -> None:
    """Another text is another kernel, for every memo; the text form of the IR keeps them."""

    def kernel_with(function: Any) -> Any:
        @sarek.kernel
        def whole(out, x):
            out[0] = function(x[0], x[1])

        return whole.ir(*(np.ones(2, np.float32),) * 2)

    first, second = kernel_with(made({"native": "$$1"})), kernel_with(made({"native": "$$2"}))
    assert content_hash(first) != content_hash(second)
    assert content_hash(first) == content_hash(kernel_with(made({"native": "$$1"})))
    assert parse(text(first)) == first
    assert '"$$1"' in text(first)


@on_devices
def test_a_rebound_text_is_compiled_anew(device: str) -> None:
    """What the name stands for at the launch counts."""
    space: dict[str, Any] = {}
    out = np.zeros(1, np.float32)
    for number in (1, 2):
        texts = {
            "opencl": f"$left + {number}",
            "native": f"fadd float $left, {number}.0",
            "vulkan": f"%n = OpConstant $left.type {number}\n%r = OpFAdd $left.type $left %n",
        }

        def plus(left, number=number):
            return left + number

        space["step"] = made(texts, plus)
        exec("def run(out):\n    out[0] = step(out[0])", space)
        sarek.kernel(space["run"]).launch(out, grid=1, block=1, device=device)
    assert out.tolist() == [3]


BROKEN = {
    "opencl": "return $left +;",
    "native": "ret $left.type %missing",
    "vulkan": "OpReturnValue %missing",
}


@pytest.mark.parametrize("device", [d for d in DEVICES if framework_of(d) in BROKEN])
def test_a_text_that_does_not_build(device: str) -> None:
    """The compiler's message with the kernel and the line that gives the text; each time again."""
    broken = sarek.inline_source(BROKEN, fallback=average)

    @sarek.kernel
    def averaging(out, x):
        out[0] = broken(x[0], x[1])

    out, x = np.full(1, 7, np.float32), np.ones(2, np.float32)
    for _ in range(2):
        with pytest.raises(SourceCompilationError) as raised:
            averaging.launch(out, x, grid=1, block=1, device=device)
        lines = str(raised.value).split("\n")
        assert lines[0] == f"kernel 'averaging': {device} does not build it with"
        assert re.search(r"test_inline_source.py:\d+:\d+: the \w+ text of 'average'$", lines[1])
        assert "broken = sarek.inline_source(BROKEN, fallback=average)" in lines[2]
        assert raised.value.log.rstrip() in str(raised.value)
        assert "missing" in raised.value.log or "expected expression" in raised.value.log
    assert out.tolist() == [7]


def test_ill_formed_llvm_is_an_error_and_no_crash() -> None:
    """What parses may still use a value before it is there."""
    bad = made({"native": "%b = fadd float %a, 1.0\n%a = fadd float %b, 1.0\nret float %a"})

    @sarek.kernel
    def using(out, x):
        out[0] = bad(x[0], x[1])

    with pytest.raises(SourceCompilationError, match="dominate"):
        using.launch(
            np.ones(1, np.float32), np.ones(2, np.float32), grid=1, block=1, device="native"
        )


# --- what a device must have ----------------------------------------------------------------------


def through_double(left, right):
    return np.float32(np.float64(left) * np.float64(right))


def test_a_device_with_a_text_needs_nothing_of_the_fallback() -> None:
    """And one without needs all of it."""
    multiply = made({"opencl": "$left * $right"}, through_double)

    @sarek.kernel
    def products(out, x):
        out[0] = multiply(x[0], x[1])

    kernel = products.ir(*(np.ones(2, np.float32),) * 2)

    def needed(framework: str) -> set[Scalar | None]:
        return {need.scalar for need in needs(without_fallbacks(picked(kernel, framework)))}

    assert Scalar.FLOAT64 not in needed("opencl")
    assert Scalar.FLOAT64 in needed("native")
    assert Scalar.FLOAT64 in {need.scalar for need in needs(kernel)}


def test_a_kernel_without_texts_stays_itself() -> None:
    """Nothing is rebuilt for it."""

    @sarek.kernel
    def plain(out):
        out[0] = 3

    kernel = plain.ir(np.ones(1, np.float32))
    assert picked(kernel, "opencl") is kernel
    assert without_fallbacks(kernel) is kernel


# --- debug builds and prints ----------------------------------------------------------------------


def picked_element(row, at):
    return row[at]


@on_devices
def test_debug_builds(device: str) -> None:
    """What the kernel does is checked, and a fallback that runs; a text is left alone."""
    pick = made({"native": "%p = getelementptr float, ptr $row, i64 $at\nload float, ptr %p"},
                picked_element)  # fmt: skip

    @sarek.kernel(debug=True)
    def checked(out, x, n):
        i = sarek.global_idx.x
        out[i] = pick(x, n) + x[i]

    out, x = np.zeros(4, np.float32), np.arange(4, dtype=np.float32)
    checked.launch(out, x, 2, grid=1, block=4, device=device)
    assert out.tolist() == [2, 3, 4, 5]
    with pytest.raises(sarek.OutOfBounds, match="'x'"):
        checked.launch(out, x, 0, grid=1, block=5, device=device)
    if device != "native":
        with pytest.raises(sarek.OutOfBounds, match="index 4"):
            checked.launch(out, x, 4, grid=1, block=4, device=device)


def telling(value):
    print("got", value)
    return value


@on_devices
def test_a_fallback_that_prints(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints where it runs."""
    tell = made({"native": "add i32 $value, 0"}, telling)

    @sarek.kernel
    def kernel(out):
        out[0] = tell(out[0])

    kernel.launch(np.full(1, 5, np.int32), grid=1, block=1, device=device)
    assert capsys.readouterr().out == ("" if device == "native" else "got 5\n")
