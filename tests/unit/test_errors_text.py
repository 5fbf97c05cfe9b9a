"""docs/errors.md is complete, and its examples are the texts that users see."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import capability, errors
from sarek_numba.ir.needs import Need
from sarek_numba.ir.types import Scalar
from sarek_numba.span import Span
from tests.unit.fake_backend import fake_device, record

__all__ = ["fake_device"]

PAGE = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.SarekError)
}
OUT = np.zeros(8, np.float32)


@sarek.kernel
def scale(out, x, factor=2.0):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i] * factor


def _refuse_float64() -> None:
    need = Need("arithmetic", Scalar.FLOAT64, span=Span("kernels.py", 3, 10, 3, 20))
    capability.refuse(capability.check("scale", [need], record()))


def _refuse_operation() -> None:
    message, hint = "x << 1 needs integers, and x is float32", "cast it, as in int(x)"
    span = Span("kernels.py", 7, 4, 7, 10)
    errors.raise_diagnostics([errors.Diagnostic(errors.TypingError, message, span, hint)])


def _write_broadcast() -> None:
    broadcast = np.lib.stride_tricks.as_strided(OUT, (3, 8), (0, 4))[:, 0]
    scale[1, 8](broadcast, OUT)


EXAMPLES: dict[str, Callable[[], Any]] = {
    "ArgumentCountError": lambda: scale[1, 8](OUT),
    "ArgumentTypeError": lambda: scale[1, 8](OUT, OUT.astype(">f4")),
    "InvalidDimensions": lambda: scale[1, (16, 17)](OUT, OUT),
    "InvalidArgument": _write_broadcast,
    "StreamError": lambda: scale[1, 8, 7](OUT, OUT),
    "UnknownDevice": lambda: sarek.device("fake:2"),
    "CapabilityError": _refuse_float64,
    "TypingError": _refuse_operation,
}


def examples_in_page() -> dict[str, str]:
    blocks = re.findall(r"```text\n(\w+): (.*?)\n```", PAGE, re.DOTALL)
    return dict(blocks)


def test_every_example_has_its_cause_here() -> None:
    """No example in the page goes unchecked."""
    assert examples_in_page().keys() == EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_the_text(name: str, fake_device: Any) -> None:
    """Word for word."""
    with pytest.raises(CLASSES[name]) as raised:
        EXAMPLES[name]()
    assert str(raised.value) == examples_in_page()[name]


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - {"SarekError"}))
def test_every_error_is_in_the_page_with_its_python_class(name: str) -> None:
    """Each class is public, has a line, and derives from the class that the line names."""
    assert name in sarek.__all__
    [line] = [row for row in PAGE.splitlines() if row.startswith(f"| `{name}`")]
    kind = re.findall(r"`(\w+)`", line.split("|")[2])
    if kind:
        assert issubclass(CLASSES[name], getattr(builtins, kind[0]))
    else:
        assert CLASSES[name].__bases__[0] in CLASSES.values()


def test_several_findings_make_one_error() -> None:
    """All of a stage, of the class of the first, in the order found."""
    found = [
        errors.Diagnostic(errors.UnknownName, "no name 'a'", Span("k.py", 1, 0)),
        errors.Diagnostic(errors.TypingError, "no sum", Span("k.py", 2, 4)),
    ]
    with pytest.raises(errors.UnknownName) as raised:
        errors.raise_diagnostics(found)
    assert raised.value.diagnostics == tuple(found)
    assert str(raised.value) == "k.py:1:1: no name 'a'\nk.py:2:5: no sum"


def test_diagnostic_shows_line_caret_note_and_hint(tmp_path: Path) -> None:
    """Columns count characters, tabs are widened, the caret is below what is meant."""
    source = tmp_path / "k.py"
    source.write_text("def k(é):\n\té = é + 'ü'\n")
    finding = errors.Diagnostic(
        errors.TypingError,
        "no sum",
        Span(str(source), 2, 6, 2, 15),
        hint="add numbers",
        notes=((Span(str(source), 1, 6, 1, 8), "defined here"),),
    )
    assert str(finding) == (
        f"{source}:2:7: no sum\n"
        "  2 |     é = é + 'ü'\n"
        "    |         ^^^^^^^\n"
        f"  note: {source}:1:7: defined here\n"
        "  1 | def k(é):\n"
        "    |       ^\n"
        "  hint: add numbers"
    )


def test_finding_without_source_text_shows_its_place_alone() -> None:
    """As of a kernel made by exec."""
    finding = errors.Diagnostic(errors.TypingError, "no sum", Span("<string>", 2, 4))
    assert str(finding) == "<string>:2:5: no sum"


def test_out_of_memory_and_source_errors_have_their_fields() -> None:
    """Bytes asked and available; the source and the log."""
    full = errors.OutOfMemory("no room", 10, 5)
    assert (full.asked, full.available, str(full)) == (10, 5, "no room")
    rejected = errors.SourceCompilationError("rejected", "void k();", "line 1: no")
    assert (rejected.source, rejected.log) == ("void k();", "line 1: no")
    assert str(rejected) == "rejected\nline 1: no"
