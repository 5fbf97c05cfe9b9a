"""The rules of typing: what each operator, function and attribute means for which types."""

from sarek_numba.frontend.rules import (
    arrays,
    atomics,
    builtins,
    captured,
    complexes,
    covering,
    functions,
    kernel,
    loops,
    matching,
    matrices,
    operators,
    records,
    types,
    variants,
    warps,
)
from sarek_numba.frontend.rules.registry import Rule, lookup

__all__ = [
    "Rule",
    "arrays",
    "atomics",
    "builtins",
    "captured",
    "complexes",
    "covering",
    "functions",
    "kernel",
    "lookup",
    "loops",
    "matching",
    "matrices",
    "operators",
    "records",
    "types",
    "variants",
    "warps",
]
