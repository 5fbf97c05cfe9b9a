"""The table of rules: one for each function, operator and type that a kernel may call.

A rule takes the types of its arguments, under Python's names for them, and gives an `Operation`
(without `arguments`, which inference fills in: operand k is the k-th argument). It raises a
`Refusal` where the types have no meaning. What a rule does not mention has no meaning in a kernel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from sarek_numba.frontend.typed import Operation
from sarek_numba.frontend.weak import Refusal

Rule = Callable[..., Operation]

_RULES: dict[Any, Rule] = {}
_SIGNATURES: dict[Rule, inspect.Signature] = {}


def rule(*callables: Any) -> Callable[[Rule], Rule]:
    """Register a rule for each of the callables."""

    def register(function: Rule) -> Rule:
        for each in callables:
            assert each not in _RULES, each
            _RULES[each] = function
        return function

    return register


def lookup(callee: Any) -> Rule | None:
    """The rule for a Python object, or None."""
    try:
        return _RULES.get(callee)
    except TypeError:  # not hashable: nothing that can be called by a rule
        return None


def bind(
    callee_name: str, rule: Rule, args: tuple[Any, ...], kws: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The arguments of a call in the order of the rule's parameters, without those not given.

    It orders whatever the arguments are given as: types, or the variables that hold them.
    """
    signature = _SIGNATURES.get(rule)
    if signature is None:
        signature = _SIGNATURES[rule] = inspect.signature(rule)
    try:
        bound = signature.bind(*args, **kws)
    except TypeError as error:
        raise Refusal(f"{callee_name}() {error}") from None
    if not bound.kwargs:
        return bound.args
    raise Refusal(f"{callee_name}() takes no keyword after an argument left out")
