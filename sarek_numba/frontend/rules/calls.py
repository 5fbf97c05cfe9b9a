"""Arguments of calls that no rule describes: of device functions and of named tuples.

In: the arguments as a kernel writes them. Out: one for each parameter or field, in order, the
defaults included; a `Refusal` where they do not fit.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from numba.core import ir

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend.context import type_of_value
from sarek_numba.frontend.extensions import FragmentType
from sarek_numba.frontend.rules.registry import bind_to
from sarek_numba.frontend.typed import Argument, Default, Type
from sarek_numba.frontend.weak import Refusal, operand

Given = tuple[ir.Var, ...]
Named = Mapping[str, ir.Var]


def bound_arguments(
    function: FunctionType, args: Given, kws: Named, name: str | None = None
) -> tuple[Argument, ...]:
    """The arguments of a device function; `name` is what kernels call it, if not by its own."""
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise Refusal(
                f"{function.__name__}() takes `*{parameter.name}`, which a kernel cannot give it",
                "name each of its parameters",
            )
    return _bound(name or function.__name__, signature, args, kws)


def is_named_tuple(callee: Any) -> bool:
    """Whether an object is a class made by `namedtuple` or `typing.NamedTuple`."""
    is_tuple = isinstance(callee, type) and issubclass(callee, tuple)
    return is_tuple and hasattr(callee, "_fields") and hasattr(callee, "_field_defaults")


def bound_fields(named: Any, args: Given, kws: Named) -> tuple[Argument, ...]:
    """The items of a named tuple that is constructed."""
    maker = next(each for each in named.__mro__ if "__new__" in vars(each))
    if maker.__bases__ != (tuple,) or "_field_defaults" not in vars(maker):
        raise Refusal(
            f"{named.__name__} constructs its items by code of its own",
            "name the items in a plain namedtuple, and compute them in a @sarek.function",
        )
    defaults = named._field_defaults
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter(name, kind, default=defaults.get(name, inspect.Parameter.empty))
        for name in named._fields
    ]
    return _bound(named.__name__, inspect.Signature(parameters), args, kws)


def _bound(
    name: str, signature: inspect.Signature, args: Given, kws: Named
) -> tuple[Argument, ...]:
    bound = bind_to(name, signature, args, kws).arguments
    return tuple(
        bound[each] if each in bound else _default(parameter.default)
        for each, parameter in signature.parameters.items()
    )


def _default(value: Any) -> Default:
    return Default(value, type_of_value(value))


def check_passed(operands: tuple[Type, ...], name: str) -> None:
    """Refuse an argument of a device function that no function takes."""
    for position, each in enumerate(operands):
        if isinstance(each, FragmentType):
            with operand(position):
                raise Refusal(
                    f"a fragment is passed to {name}()",
                    "call the functions of sarek.coopmat in the kernel itself",
                    UnsupportedConstruct,
                )
