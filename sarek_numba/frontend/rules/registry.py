"""The table of rules: one for each function, operator and type that a kernel may call.

A rule takes the types of its arguments, under Python's names for them, and gives an `Operation`
(without `arguments`, which inference fills in: operand k is the k-th argument). It raises a
`Refusal` where the types have no meaning. What a rule does not mention has no meaning in a kernel.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any

import numpy as np

from sarek_numba.frontend.complexes import is_complex
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


def extend(*callables: Any) -> Callable[[Rule], Rule]:
    """Register a rule beside that of each of the callables: for calls with a complex argument."""

    def register(function: Rule) -> Rule:
        for each in callables:
            _RULES[each] = _either(_RULES[each], function)
        return function

    return register


def _either(general: Rule, of_complex: Rule) -> Rule:
    @functools.wraps(general)  # its signature is that of both
    def resolve(*args: Any) -> Operation:
        return of_complex(*args) if any(map(is_complex, args)) else general(*args)

    return resolve


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
    bound = bind_to(callee_name, signature, args, kws)
    if not bound.kwargs:
        return bound.args
    raise Refusal(
        f"{callee_name}() takes no keyword after an argument left out",
        _shown(callee_name, signature),
    )


def bind_to(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kws: Mapping[str, Any]
) -> inspect.BoundArguments:
    """The arguments of a call by parameter; a `Refusal` that shows how the function is called."""
    try:
        return signature.bind(*args, **kws)
    except TypeError:
        message = _mismatch(name, signature, args, kws)
    raise Refusal(message, _shown(name, signature))


def _mismatch(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kws: Mapping[str, Any]
) -> str:
    """Why a call does not fit, in one sentence."""
    parameters = signature.parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(args) > len(positional):
        count = f"{len(positional)} argument{'' if len(positional) == 1 else 's'}"
        most = "at most " if any(p.default is not p.empty for p in positional) else ""
        takes = f"{most}{count}" if positional else "no arguments"
        return f"{name}() takes {takes}, and {len(args)} {'is' if len(args) == 1 else 'are'} given"
    keywords = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    for keyword in kws:
        if keyword not in keywords:
            return f"{name}() has no argument {keyword!r}"
        if keyword in [p.name for p in positional[: len(args)]]:
            return f"{name}() is given its argument {keyword!r} twice"
    missing = next(
        p.name
        for p in parameters
        if p.default is p.empty and p.name not in kws and p not in positional[: len(args)]
    )
    return f"{name}() lacks its argument {missing!r}"


def _shown(name: str, signature: inspect.Signature) -> str:
    names = [
        p.name if p.default is p.empty else f"[{p.name}]" for p in signature.parameters.values()
    ]
    return f"write {name}({', '.join(names)})"


_PREFIXES = {
    "math": "math",
    "numpy": "np",
    "sarek_numba.frontend.language": "sarek",
    "sarek_numba.frontend.mathematics": "sarek.math",
}


def name_of(callee: Any) -> str:
    """A callable as the user writes it."""
    name = getattr(callee, "__name__", None)
    if not isinstance(name, str):
        return repr(callee)
    if isinstance(callee, MethodType):
        return f"{callee.__self__!r}.{name}"
    module = "numpy" if isinstance(callee, np.ufunc) else getattr(callee, "__module__", None)
    prefix = _PREFIXES.get(module or "")
    return name if prefix is None else f"{prefix}.{name}"
