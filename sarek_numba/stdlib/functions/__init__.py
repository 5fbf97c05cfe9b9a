"""The inexact functions of float64, and some of float32, written in the kernel language.

For devices whose own are missing or too far off, and wherever the same bits are wanted everywhere:
they are made of exactly rounded operations, so every device gives the same result. Their errors
are in docs/numerics.md. `passes.functions` has them as Sarek IR, which
`python -m tools.numerics.functions_ir` writes.

A pair (high, low) stands for the sum of two floats of which the second is at most half a unit in
the last place of the first. Coefficients are those of `tools/numerics/polynomials.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sarek_numba.stdlib.functions import (
    circular,
    error,
    exponential,
    factorial,
    inverse,
    logarithm,
    root,
    single,
)

SINGLE: dict[str, Callable[..., Any]] = {
    "exp": single.exp,
    "exp2": single.exp2,
    "tanh": single.tanh,
    "log": single.log,
    "log2": single.log2,
    "log10": single.log10,
    "rsqrt": single.rsqrt,
}
"""Intrinsics of float32 that have a function of float32; others go through float64."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "tanh": exponential.tanh,
    "log": logarithm.log,
    "log2": logarithm.log2,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "asinh": logarithm.asinh,
    "acosh": logarithm.acosh,
    "atanh": logarithm.atanh,
    "pow": logarithm.power,
    "sin": circular.sin,
    "cos": circular.cos,
    "tan": circular.tan,
    "sinpi": circular.sinpi,
    "cospi": circular.cospi,
    "asin": inverse.asin,
    "acos": inverse.acos,
    "atan": inverse.atan,
    "atan2": inverse.atan2,
    "erf": error.erf,
    "erfc": error.erfc,
    "gamma": factorial.gamma,
    "lgamma": factorial.lgamma,
    "cbrt": root.cbrt,
    "rsqrt": root.rsqrt,
    "hypot": root.hypot,
}
"""Each inexact intrinsic and the function that computes it."""
