"""Kernels made from text: large ones, and ones with given names."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np

import sarek_numba as sarek

_numbers = itertools.count()


def made(text: str, name: str, **names: Any) -> Any:
    """The object called `name` after running a text in a module of its own."""
    file = f"<made {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"sarek": sarek, "np": np, "__name__": "made", **names}
    exec(compile(text, file, "exec"), scope)
    return scope[name]


def kernel_of(parameters: str, lines: list[str]) -> Any:
    """A kernel `large` with a body."""
    text = "\n    ".join([f"@sarek.kernel\ndef large({parameters}):", *lines])
    return made(text + "\n", "large")


def straight(count: int) -> Any:
    """A kernel with `count` statements of int32 arithmetic and stores, in a row."""
    lines = ["i = sarek.global_idx.x", "a = x[i]", "b = a + 1"]
    for k in range((count - len(lines)) // 4):
        lines += [f"a = a * {k % 7 + 2} + b", f"b = b ^ (a >> {k % 5})"]
        lines += [f"c{k % 100} = a - b", f"a = a + c{k % 100} * 3"]
    lines.append("out[i] = a + b")
    return kernel_of("out, x", lines)


def branching(count: int) -> Any:
    """A kernel with `count` statements of which every fifth is an `if`."""
    lines = ["i = sarek.global_idx.x", "a = x[i]", "b = a + 1"]
    for k in range((count - len(lines)) // 5):
        lines += [f"if a > b + {k % 11}:", f"    a = a - {k + 1}", "else:", "    b = b + a"]
        lines += [f"a = a ^ {k % 17}", f"b = b + {k % 3}"]
    lines.append("out[i] = a + b")
    return kernel_of("out, x", lines)
