"""Kernels made from text, whose source Python's `inspect` can read."""

from __future__ import annotations

import linecache
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

import sarek_numba as sarek


def kernel(name: str, parameters: Iterable[str], body: Iterable[str]) -> Any:
    """A kernel of this name; `body` are its lines, `np`, `math` and `sarek` its globals."""
    source = f"def {name}({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in body)
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    names: dict[str, Any] = {"np": np, "math": math, "sarek": sarek}
    exec(compile(source, filename, "exec"), names)
    return sarek.kernel(names[name])
