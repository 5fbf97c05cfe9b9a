"""Source text, rewriting and refusals from the syntax tree."""

from __future__ import annotations

import ast
import importlib
import linecache
import zipfile
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from sarek_numba.errors import Diagnostic
from sarek_numba.frontend import language as sarek
from sarek_numba.frontend import syntax
from sarek_numba.frontend.source import read
from sarek_numba.frontend.tree import parse


def from_text(text: str, name: str = "k", **names: Any) -> FunctionType:
    file = f"<source {abs(hash(text))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"sarek": sarek, **names}
    exec(compile(text, file, "exec"), scope)
    function: FunctionType = scope[name]
    return function


def refusals(text: str, **names: Any) -> list[Diagnostic]:
    return syntax.check(read(from_text(text, **names)))


CONSTRUCTS = {
    "x[0] = (y := 3)": ("the walrus `:=`", 8),
    "a, *b = (1, 2, 3)": ("`*` before an expression", 3),
    "x[0] = f'{n}'": ("an f-string", 7),
    "y = [i for i in range(3)]": ("a list comprehension", 4),
    "y = {i for i in range(3)}": ("a set comprehension", 4),
    "y = {i: i for i in range(3)}": ("a dict comprehension", 4),
    "y = max(i for i in range(3))": ("a generator expression", 7),
    "y = [1, 2]": ("a list", 4),
    "y = {1, 2}": ("a set", 4),
    "y = {}": ("a dict", 4),
    "f = lambda a: a": ("a lambda", 4),
    "def g(): pass": ("a function inside a kernel", 0),
    "class C: pass": ("a class inside a kernel", 0),
    "raise ValueError": ("`raise`", 0),
    "global q": ("`global`", 0),
    "import math": ("`import`", 0),
    "from math import pi": ("`import`", 0),
    "del n": ("`del`", 0),
    "x[0] = n @ n": ("the operator `@`", 7),
    "n @= n": ("the operator `@`", 0),
    "yield n": ("`yield`", 0),
    "with open('f'): pass": ("this `with`", 0),
    "with sarek.superstep() as s: pass": ("this `with`", 0),
}


@pytest.mark.parametrize("line", CONSTRUCTS)
def test_a_construct_outside_the_language_is_named_with_its_column(line: str) -> None:
    (finding,) = refusals(f"def k(x, n):\n    {line}\n")
    name, column = CONSTRUCTS[line]
    assert finding.message == f"{name} is not part of the kernel language"
    assert finding.span is not None
    assert (finding.span.line, finding.span.column) == (2, column + 4)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("try:\n        pass\n    except: pass", "`try`"),
        ("match n:\n        case {1: _}: pass", "a mapping pattern"),
    ],
)
def test_compound_statements_are_named(text: str, name: str) -> None:
    (finding,) = refusals(f"def k(x, n):\n    {text}\n")
    assert finding.message.startswith(name)


def test_all_refusals_come_at_once_in_order() -> None:
    found = refusals("def k(x, *n):\n    y = [1]\n    if x:\n        z = {}\n    del y\n")
    assert [each.span.line for each in found if each.span] == [1, 2, 4, 5]


def test_everything_in_the_subset_passes() -> None:
    assert not refusals(
        "def k(x, n):\n"
        "    'docstring'\n"
        "    a, (b, c) = 1, (2, 3)\n"
        "    for i in range(n):\n"
        "        if i in (1, 2): continue\n"
        "        elif 0 < i <= 3: break\n"
        "    else:\n"
        "        x[0] = a if b else c\n"
        "    while not n: n += 1\n"
        "    assert n, 'text'\n"
        "    with sarek.superstep():\n"
        "        for j in range(2):\n"
        "            break\n"
        "    return\n"
    )


@pytest.mark.parametrize("jump", ["return", "break", "continue"])
def test_jumps_over_the_barrier_of_a_superstep_are_refused(jump: str) -> None:
    (finding,) = refusals(
        f"def k(x):\n    for i in range(2):\n        with sarek.superstep():\n            {jump}\n"
    )
    assert finding.message == f"`{jump}` leaves a superstep before its barrier"


def barriers(function: FunctionType) -> list[str]:
    """What a function does, with barriers recorded."""
    done: list[str] = []

    class Context:
        def barrier(self) -> None:
            done.append("barrier")

    with sarek.emulating(Context()):  # type: ignore[arg-type]
        function(done)
    return done


def test_a_superstep_is_rewritten_to_its_body_and_a_barrier() -> None:
    text = "def k(x):\n    with sarek.superstep():\n        x.append('a')\n    x.append('b')\n"
    function = from_text(text)
    rewritten = read(function).function
    assert rewritten is not function
    assert barriers(rewritten) == barriers(function) == ["a", "barrier", "b"]


def test_a_rewritten_function_keeps_cells_defaults_and_lines() -> None:
    text = (
        "def outer():\n"
        "    v = 1\n"
        "    def k(x, n=5, *, m=6):\n"
        "        with sarek.superstep():\n"
        "            x.append((v, n, m))\n"
        "    def change():\n"
        "        nonlocal v\n"
        "        v = 2\n"
        "    return k, change\n"
        "k, change = outer()\n"
    )
    function = from_text(text)
    rewritten = read(function).function
    function.__globals__["change"]()
    assert barriers(rewritten)[0] == (2, 5, 6)
    lines = {line for _, _, line in rewritten.__code__.co_lines() if line}
    assert lines <= set(range(3, 6))


def test_a_decorated_function_is_found_without_its_decorators() -> None:
    text = (
        "def same(f): return f\n"
        "@same\n"
        "@same\n"
        "def k(x):\n"
        "    with sarek.superstep():\n"
        "        x.append(1)\n"
    )
    assert barriers(read(from_text(text)).function) == [1, "barrier"]


def test_a_method_keeps_its_columns() -> None:
    text = "class C:\n    @staticmethod\n    def k(x):\n        x[0] = (y := 3)\nk = C.k\n"
    (finding,) = syntax.check(read(from_text(text)))
    assert finding.span is not None
    assert (finding.span.line, finding.span.column) == (4, 16)


def test_missing_text_is_no_fault() -> None:
    scope: dict[str, Any] = {}
    exec("def k(x): x[0] = 1", scope)
    source = read(scope["k"])
    assert source.tree is None
    assert source.function is scope["k"]


def test_text_of_another_function_is_not_taken() -> None:
    """A file that changed after it was imported."""
    function = from_text("def k(x, n):\n    x[0] = n\n")
    file = function.__code__.co_filename
    text = "def k(other):\n    pass\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    assert parse(function) is None


ENDS = {
    "a dedented line in brackets": "    x[0] = (\n1\n)\n",
    "a dedented line in a string": "    '''\ntext\n'''\n    x[0] = 1\n",
    "a string at the end": "    x[0] = 1\n    '''\ntext\n    '''\n",
    "a comment at the margin": "    if n:\n        pass\n# remark\n    x[0] = 1\n",
    "statements without code": "    x[0] = 1\n    if 0:\n        n = 2\n    else:\n        pass\n",
    "a continued line": "    x[0] = \\\n1\n",
}


@pytest.mark.parametrize("case", ENDS)
@pytest.mark.parametrize("before", ["", "import math\n", "@deco(\n1\n)\n"])
def test_a_definition_is_read_to_its_end(case: str, before: str) -> None:
    """The tree has all statements of the function, and none of what follows."""
    text = f"{before}def k(x, n):\n{ENDS[case]}"
    after = "x = 3\ndef k2(x, n):\n    pass\n"
    tree = parse(from_text(text + after, deco=lambda _: lambda function: function))
    whole = ast.parse(text).body[-1]
    assert tree is not None
    assert ast.dump(tree, include_attributes=True) == ast.dump(whole, include_attributes=True)


def test_an_indented_first_line_keeps_its_columns() -> None:
    """The text of a block, of which a tool compiled the definition alone."""
    function = from_text("def k(x):\n    x[0] = 1\n")
    file = function.__code__.co_filename
    lines = ["    def k(x):\n", "        x[0] = 1\n"]
    linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    tree = parse(function)
    assert tree is not None
    assert (tree.lineno, tree.col_offset) == (1, 4)


def test_text_of_a_loader_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module in an archive has no file of its own: its loader has the text."""
    archive = tmp_path / "kernels.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped_kernels.py", "N = 1\n\ndef k(x):\n    x[0] = N\n")
    monkeypatch.syspath_prepend(str(archive))
    tree = parse(importlib.import_module("zipped_kernels").k)
    assert tree is not None
    assert tree.lineno == 3


def test_a_deep_expression_is_rewritten() -> None:
    total = "+".join(["1"] * 1000)
    text = f"def k(x):\n    with sarek.superstep():\n        x.append({total})\n"
    assert barriers(read(from_text(text)).function) == [1000, "barrier"]


def test_a_shadowed_name_is_no_superstep() -> None:
    class Other:
        def superstep(self) -> None:
            return None

    (finding,) = refusals("def k(x):\n    with sarek.superstep():\n        pass\n", sarek=Other())
    assert finding.message.startswith("this `with`")
