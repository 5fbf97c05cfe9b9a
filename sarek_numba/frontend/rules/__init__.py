"""The rules of typing: what each operator, function and attribute means for which types."""

from sarek_numba.frontend.rules import arrays, builtins, functions, kernel, operators, types
from sarek_numba.frontend.rules.registry import Rule, lookup

__all__ = [
    "Rule",
    "arrays",
    "builtins",
    "functions",
    "kernel",
    "lookup",
    "operators",
    "types",
]
