"""Write the functions of `sarek_numba.stdlib.functions` as Sarek IR, for `passes.functions`.

    python -m tools.numerics.functions_ir

Run it after a change of these functions, or of the front end; a test compares.
"""

from __future__ import annotations

import warnings
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.ir.nodes import HelperFunction
from sarek_numba.passes import functions as stored
from sarek_numba.span import Span
from sarek_numba.stdlib.functions import FUNCTIONS, SINGLE

FOLDER = Path(stored.__file__).parent / "stored_functions"
SINGLES = FOLDER / "float32"
ARITY = dict.fromkeys(("pow", "atan2", "hypot"), 2)


def kernel_of(name: str, dtype: type = np.float64) -> Any:
    """A kernel that stores the function of a type for each thread."""
    function = (SINGLE if dtype is np.float32 else FUNCTIONS)[name]

    @sarek.kernel
    def one(out, x):
        i = sarek.global_idx.x
        if i < len(out):
            out[i] = function(x[i])

    @sarek.kernel
    def two(out, x, y):
        i = sarek.global_idx.x
        if i < len(out):
            out[i] = function(x[i], y[i])

    return two if ARITY.get(name) == 2 else one


def helpers_of(name: str, dtype: type = np.float64) -> tuple[HelperFunction, ...]:
    """The helpers of a function, the function itself last, under its own name."""
    array = np.ones(1, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sarek.CompileWarning)
        ir = kernel_of(name, dtype).ir(*[array] * (ARITY.get(name, 1) + 1))
    *others, last = ir.functions
    assert all(other.name != name for other in others)
    return tuple(map(without_spans, (*others, replace(last, name=name))))


def without_spans(node: Any) -> Any:
    """A node as if it stood nowhere: what is stored does not change when lines move."""
    if isinstance(node, tuple):
        return tuple(map(without_spans, node))
    if isinstance(node, Span):
        return None
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{f.name: without_spans(getattr(node, f.name)) for f in fields(node)})
    return node


def main() -> None:
    SINGLES.mkdir(parents=True, exist_ok=True)
    for folder, functions, dtype in (
        (FOLDER, FUNCTIONS, np.float64),
        (SINGLES, SINGLE, np.float32),
    ):
        for name in functions:
            text = stored.store(helpers_of(name, dtype))
            (folder / f"{name}.json").write_text(text, encoding="utf-8")
            print(dtype.__name__, name)


if __name__ == "__main__":
    main()
