"""Kernels, IR, source and reports show themselves: as text, and in a notebook as HTML."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import display
from sarek_numba.ir.parse import parse
from sarek_numba.ir.text import text
from sarek_numba.verify.compare import Comparison, Difference, Row
from tests.kernels.corpus import CASES

X = np.zeros(4, np.float32)


@sarek.function
def doubled(x: float) -> float:
    return x * 2


@sarek.kernel(wraparound=False, debug=True)
def guarded(out, x, scale=2.5):
    i = sarek.global_idx.x
    if i < len(out) and 1 < 2 & 3:
        out[i] = doubled(x[i]) * scale


class _Reader(HTMLParser):
    """The text that a browser shows, the tags, and the classes of spans."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.open, self.classes, self.tags = "", [], {}, set()
        self.feed(html)
        assert self.open == [], "a tag is not closed"

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "br":
            return
        self.open.append((tag, dict(attributes).get("class", "")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open and self.open[-1][0] == "style":
            return
        self.text += data
        if self.open and self.open[-1][0] == "span":
            self.classes.setdefault(self.open[-1][1], set()).add(data)


def test_ir_prints_its_text_and_reads_back():
    """`print(k.ir(...))` is the text form, and parsing it gives the kernel again."""
    kernel = guarded.ir(X, X, 1.5)
    assert str(kernel) == text(kernel)
    assert str(kernel).startswith("kernel guarded index 32 {\n  param out: vec<f32> = argument 0")
    assert parse(str(kernel)) == kernel


@pytest.mark.parametrize("case", CASES[::4], ids=lambda case: case.name)
def test_ir_in_colour_is_the_same_text(case):
    """Highlighting loses nothing and escapes everything; the lexer knows each word of IR."""
    launch = case.launch(np.random.default_rng(1))
    kernel = case.kernel.ir(*launch.arguments)
    shown = _Reader(kernel._repr_html_())
    assert shown.text == str(kernel)
    assert "s-wrong" not in shown.classes
    assert {"kernel", "param"} <= shown.classes["s-keyword"]


def test_kinds_of_words():
    """Types, functions, coordinates, numbers and strings are told apart."""
    shown = _Reader(display.words(_IR, "sarek_numba.ir.highlight:IRLexer")).classes
    assert {"vec", "f32", "i64", "i32"} <= shown["s-type"]
    assert shown["s-function"] == {"sqrt", "half", "add", "range"}
    assert shown["s-builtin"] == {"global_idx", "at"}
    assert shown["s-number"] >= {"0", "32", "1.5"}
    assert shown["s-string"] == {'"<b>"'}
    assert "index" in shown["s-variable"]  # a name, where it is no word of the first line
    assert "index" in shown["s-keyword"]


_IR = """kernel k index 32 {
  param x: vec<f32> = argument 0 array(f32, global, 1, C)
  let index: i64 = global_idx.x
  for j: i64 in range(0, 4, 1) {
    x[at(x, 0, index, 4)] = sqrt.f32(1.5) + @half:f32(x[0])
  }
  print("<b>", 3i32)
  atomic add(x[0], 1.5f32)
}
"""


def test_no_word_of_ir_is_an_error_token():
    """Positive control: what the parser does not know is marked, and kept."""
    shown = _Reader(display.words("let ☃ = 1 & 2\n", "sarek_numba.ir.highlight:IRLexer"))
    assert shown.classes["s-wrong"] == {"☃"}
    assert shown.text == "let ☃ = 1 & 2\n"


@pytest.mark.parametrize("device", [device.name for device in sarek.devices()])
def test_source_shows_itself(device):
    """It is a `str`, prints as text, and is shown in the colours of its language."""
    source = guarded.source(device, X, X, 1.5)
    assert isinstance(source, str)
    assert str(source) == source == f"{source}" == repr(source)
    shown = _Reader(source._repr_html_())
    assert shown.text == source
    if not device.startswith("vulkan"):  # SPIR-V is shown as it is
        assert "s-keyword" in shown.classes
    assert "guarded" in source


def test_opencl_words():
    """Qualifiers and types of OpenCL C are words of their own, which C does not know."""
    text = "__kernel void k(__global float4 *x) { x[get_global_id(0)] = (uint)1; }"
    shown = _Reader(display.words(text, "sarek_numba.runtime.opencl_c:OpenCLLexer")).classes
    assert {"__kernel", "__global"} <= shown["s-keyword"]
    assert {"float4", "uint"} <= shown["s-type"]
    assert "get_global_id" in shown["s-builtin"]


def test_plain_without_pygments(monkeypatch):
    """Pygments is imported when something is shown; without it the text is plain and escaped."""
    imported = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("pygments"):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    shown = _Reader(display.code("a < b && c", "c"))
    assert shown.text == "a < b && c"
    assert not shown.classes


def test_pygments_is_not_loaded_by_a_launch():
    """Importing the package, compiling and launching load no highlighter."""
    code = (
        "import sys, numpy as np, sarek_numba as sarek\n"
        "from tests.unit.test_display import guarded\n"
        "[sys.modules.pop(m) for m in list(sys.modules) if m.split('.')[0] == 'pygments']\n"
        "guarded[1, 4](np.zeros(4), np.zeros(4)); str(guarded.ir(np.zeros(4), np.zeros(4)))\n"
        "print([m for m in sys.modules if m.startswith('pygments')])"
    )
    root = Path(__file__).resolve().parents[2]
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert shown.stdout.strip() == "[]"


# --- legibility -----------------------------------------------------------------------------------


def _luminance(colour: str) -> float:
    channels = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(ink: str, ground: str) -> float:
    bright, dark = sorted((_luminance(ink), _luminance(ground)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_colour_is_legible(theme):
    """At least 4.5 to 1 (WCAG AA) on the ground that code brings along in that theme."""
    inks = [display.INK[theme], *(row[theme + 1] for row in display.PALETTE.values())]
    assert min(_contrast(ink, display.GROUND[theme]) for ink in inks) >= 4.5


def test_contrast_can_be_too_low():
    """Positive control: the colours of one theme on the ground of the other."""
    inks = [row[1] for row in display.PALETTE.values()]
    assert min(_contrast(ink, display.GROUND[1]) for ink in inks) < 4.5


# --- kernels and reports --------------------------------------------------------------------------


def test_a_kernel_shows_what_it_is_compiled_for():
    """Signature, place, options; for each specialisation types, width of indices, needs."""

    @sarek.kernel(max_threads=64)
    def k(out, n: sarek.int32 = 3):
        out[sarek.global_idx.x] = sarek.warp.sum(n)

    assert repr(k) == "<sarek kernel k(out, n)>"
    first, second = str(k).splitlines()
    assert first.startswith("kernel k(out, n: sarek.int32 = 3) at ")
    assert first.endswith(
        f"{Path(__file__).name}:{k.py_func.__code__.co_firstlineno}, max_threads=64"
    )
    assert second == "not compiled yet"
    k[1, 32](np.zeros(32, np.float64))
    k[1, 32](np.zeros(64, np.int32)[::2])
    lines = str(k).splitlines()
    assert lines[1].split() == ["compiled", "for", "indices", "needs"]
    assert lines[2].startswith("float64[:] C, int32  32-bit, warps of 32  ")
    assert "float64" in lines[2]
    assert lines[3].startswith("int32[:] A, int32")
    assert "warp operations" in lines[3]
    shown = _Reader(k._repr_html_())
    assert {"table", "details"} <= shown.tags
    assert "def k(out, n: sarek.int32 = 3):" in shown.text
    assert "int32[:] A, int32" in shown.text


def test_a_kernel_without_source_shows_itself():
    """What is not to be had is left out."""
    space = {"sarek": sarek}
    exec("@sarek.kernel\ndef made(out):\n    out[0] = 5\n", space)
    shown = _Reader(space["made"]._repr_html_())
    assert shown.text.startswith("kernel made(out) at <string>:1")
    assert "not compiled yet" in shown.text
    assert "details" not in shown.tags


def test_reports_escape_what_they_show():
    """Names and texts of the user are text."""
    found = Difference("<i>", 1.0, (0,), np.float32(1), np.float32(2))
    shown = _Reader(Comparison("<k>", (Row("<dev>", (found,)),))._repr_html_())
    assert "<k> compared with" in shown.text
    assert "<dev>" in shown.text
    assert not {"i", "k", "dev"} & shown.tags

    @sarek.kernel
    def beyond(out):
        out[sarek.global_idx.x] = 1 if 2 < 3 else 0

    report = sarek.sanitize(beyond)[1, 4](np.zeros(2, np.int32))
    assert repr(report) == str(report)
    shown = _Reader(report._repr_html_())
    assert "OutOfBounds" in shown.text
    assert "out[sarek.global_idx.x] = 1 if 2 < 3 else 0" in shown.text
    assert "^^^^" in shown.text


def test_a_notebook_cell_is_named_as_ipython_names_it(monkeypatch):
    """Not by the temporary file that holds its text."""
    from sarek_numba.span import Span

    class Compile:
        @staticmethod
        def format_code_name(name):
            return ("Cell", "In[3]") if name == "/tmp/7.py" else None

    class Shell:
        compile = Compile

    ipython = type(sys)("IPython")
    ipython.get_ipython = lambda: Shell
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert str(Span("/tmp/7.py", 2, 4)) == "Cell In[3]:2:5"
    assert str(Span("/tmp/8.py", 2)) == "/tmp/8.py:2"
    ipython.get_ipython = lambda: None
    assert str(Span("/tmp/7.py", 2)) == "/tmp/7.py:2"


def test_the_lexer_is_found_by_pygments():
    """The entry point names it: `pygmentize -l sarek-ir`."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    (entry,) = project["project"]["entry-points"]["pygments.lexers"].values()
    module, name = entry.split(":")
    assert getattr(import_module(module), name).aliases == ["sarek-ir"]


def test_every_pre_has_its_style():
    """The style travels with each output: outputs are cleared and moved one by one."""
    html = guarded.ir(X, X, 1.0)._repr_html_()
    assert re.match(r"<style>.*</style><pre class=\"sarek-code\">", html, re.DOTALL)
