"""A function whose source text is missing is refused as well, by function, line and construct."""

from __future__ import annotations

import sys
import textwrap

import numpy as np
import pytest

import sarek_numba as sarek

REFUSED = {
    "if (v := x[0]) > 0:\n    x[1] = v": (2, "the walrus `:=`"),
    "while (v := x[0]) > 9:\n    x[1] = v": (2, "the walrus `:=`"),
    "x[0] = sum([k for k in range(3)])": (2, "a list comprehension"),
    "s = f'{n}'": (2, "an f-string"),
    "try:\n    x[0] = 1\nfinally:\n    x[1] = 2": (3, "`try`"),
    "try:\n    x[0] = 1\nexcept ValueError:\n    x[1] = 2": (3, "`try`"),
    "yield x[0]": (2, "`yield`"),
    "def f(a):\n    return a\nx[0] = f(1)": (2, "a function inside a kernel"),
    "f = lambda a: a\nx[0] = f(1)": (2, "a lambda"),
    "v = [1, 2]\nx[0] = v[0]": (2, "a list"),
    "x[0] = {1: 2}[1]": (2, "a dict"),
    "x[0] = n in {1, n}": (2, "a set"),
    "a, *b = (1, 2, 3)\nx[0] = a": (2, "`*` before an expression"),
    "match (n, 1):\n    case (a, b):\n        x[0] = a": (
        3,
        "this `match` in a function without source text",
    ),
    "if n > 3:\n    raise ValueError('n')": (3, "`raise`"),
    "with open('f'):\n    x[0] = 1": (2, "a `with` in a function without source text"),
    "with sarek.superstep():\n    x[0] = 1": (2, "a `with` in a function without source text"),
    "import math as m\nx[0] = m.pi": (2, "`import`"),
    "global F\nF = 4": (3, "`global`"),
    "t = 1\ndel t": (3, "`del`"),
    "del x[0]": (2, "`del`"),
    "class A: pass": (2, "a class inside a kernel"),
    "x[0] = x @ x": (2, "the operator `@`"),
}


def made(body, head="def k(x, n):"):
    """The function `k` of this body, as `exec` makes it."""
    scope = {"sarek": sarek, "np": np}
    exec(f"{head}\n{textwrap.indent(body, '    ')}", scope)
    return scope["k"]


def refusal(function):
    """The error of a launch, its data untouched."""
    x = np.arange(1, 9, dtype=np.float32)
    with pytest.raises(sarek.CompileError) as caught:
        sarek.kernel(function)[1, 32](x, 3)
    assert x.tolist() == list(range(1, 9))
    return caught.value


@pytest.mark.parametrize("body", REFUSED)
def test_construct_outside_the_language(body):
    """Each is refused by name, once, at its line and in its function."""
    line, name = REFUSED[body]
    (diagnostic,) = refusal(made(body)).diagnostics
    shown = str(diagnostic)
    assert shown.startswith(f"<string>:{line}:")
    assert f": in k(): {name} is not part of the kernel language\n  hint: " in shown


def test_coroutine():
    """`async def` is no kernel; its line is that of the definition."""
    function = made("x[0] = 1", "async def k(x, n):")
    assert str(refusal(function)) == (
        "<string>:1: in k(): an `async def` cannot be a kernel\n  hint: write a plain `def`"
    )


def test_types():
    """An error of types has the columns that the bytecode has, and no excerpt."""
    assert str(refusal(made("x[0] = 1\nx[1] = np.cosine(n)"))) == (
        "<string>:3:12: in k(): numpy has no attribute 'cosine'\n  hint: did you mean 'cos'?"
    )


def test_computed_message_of_an_assertion():
    """It is refused as such, not as the `raise` that it is made of."""
    assert "the message of an `assert` is a constant string" in str(refusal(made("assert n, n")))


def test_divergent_barrier():
    """A barrier that some threads miss names the function."""
    shown = str(refusal(made("if sarek.thread_idx.x < n:\n    sarek.barrier()")))
    assert shown.startswith("<string>:3:9: in k(): barrier() is reached only by threads for which ")


def test_device_function():
    """An error inside a device function names that function, and the call's."""
    scope = {"sarek": sarek}
    exec("@sarek.function\ndef f(a):\n    return a + None", scope)
    exec("def k(x, n):\n    x[0] = f(n)", scope)
    first, second = str(refusal(scope["k"])).splitlines()[:2]
    assert first == "<string>:3:12: in f(): + is not defined for a Python int and None"
    assert second == "  note: <string>:2:12: called here"


CHAINED = {
    "a = b = n\nx[0] = a + b": 6,
    "a = x[0] = n + 1\nx[0] = a": 4,
    "a = b, c = (n, 1)\nx[0] = a[0] + b + c": 7,
    "while (n > 0) and x[0] < 5:\n    a = x[0] = x[0] + 1": 5,
    "match n:\n    case 1:\n        x[0] = 9\n    case _:\n        x[0] = 7": 7,
    "assert n > 0, 'positive'\nx[0] = 2": 2,
    "a: int = n\nx[0] = a": 3,
}


@pytest.mark.parametrize("body", CHAINED)
def test_what_is_near_and_allowed(body):
    """Chained assignments and the like look alike in bytecode, and compile."""
    x = np.arange(1, 9, dtype=np.float32)
    sarek.kernel(made(body))[1, 1](x, 3)
    assert x[0] == CHAINED[body]


@pytest.mark.skipif(sys.version_info < (3, 13), reason="earlier REPLs keep no source")
def test_source_of_the_new_repl_is_read():
    """A REPL that puts its text into linecache gives carets."""
    import linecache

    text = "def k(x, n):\n    x[0] = np.cosine(n)\n"
    name = "<python-input-7>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"np": np}
    exec(compile(text, name, "exec"), scope)
    assert str(refusal(scope["k"])).splitlines()[1:3] == [
        "  2 |     x[0] = np.cosine(n)",
        "    |            ^^^^^^^^^",
    ]
