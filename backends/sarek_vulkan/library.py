"""Functions that a module has of its own, written in Sarek IR.

What SPIR-V leaves inexact, or has not, is written here in the text form of the IR (`docs/ir.md`) on
integers and exact float operations, and emitted as any helper. `FUNCTIONS` has the text of each by
its name, which ends in the type of its operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sarek_numba.ir.nodes import HelperFunction
from sarek_numba.ir.parse import parse

FUNCTIONS: Mapping[str, str] = {}


def has(name: str) -> bool:
    """Whether there is a function of this name."""
    return name in FUNCTIONS


@cache
def functions_of(name: str) -> tuple[HelperFunction, ...]:
    """A function, behind all those that it calls. Raises KeyError."""
    kernel = parse(f"kernel library index 32 {{\n{FUNCTIONS[name]}\n}}\n")
    return kernel.functions


def function(name: str) -> HelperFunction:
    """A function by its name."""
    return functions_of(name)[-1]
