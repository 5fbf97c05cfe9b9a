"""The parameters of a kernel, and how the arguments of a call meet them.

Python's own rules for positional, keyword and default arguments, with errors that name the kernel
and the parameter. The words in `RESERVED` are keywords of launches, so a parameter of that name is
passed by position.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from sarek_numba.errors import ArgumentCountError, Diagnostic, UnsupportedConstruct
from sarek_numba.span import Span

RESERVED = frozenset({"grid", "block", "device", "stream", "shared_bytes", "precision"})

DEVICE_NUMBER = "_device_num"
"""The parameter that is the position of the device where a launch is on several; else it is 0."""

_EMPTY = inspect.Parameter.empty
_VARIADIC = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


@dataclass(frozen=True, slots=True)
class Signature:
    """Names of the parameters in the order of the function, how many may be given by position, and
    the defaults by name.
    """

    kernel: str
    names: tuple[str, ...]
    positional: int
    keywords: frozenset[str]
    defaults: Mapping[str, Any]

    def bind(self, given: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """One value for each parameter, in order. Raises ArgumentCountError."""
        if not named and len(given) == len(self.names) == self.positional:
            return given
        if len(given) > self.positional:
            raise ArgumentCountError(
                f"kernel '{self.kernel}' takes {_count(self.positional)}"
                f"{' by position' if self.positional < len(self.names) else ''}, "
                f"and {len(given)} {'was' if len(given) == 1 else 'were'} given\n"
                f"  note: its parameters are {self._listed()}"
            )
        values = dict(zip(self.names, given, strict=False))
        for name, value in named.items():
            self._check_keyword(name, values)
            values[name] = value
        missing = [n for n in self.names if n not in values and n not in self.defaults]
        if missing:
            listed = ", ".join(f"'{name}'" for name in missing)
            raise ArgumentCountError(
                f"kernel '{self.kernel}' misses argument{'s' if missing[1:] else ''} {listed}\n"
                f"  note: its parameters are {self._listed()}"
            )
        return [values[n] if n in values else self.defaults[n] for n in self.names]

    def _check_keyword(self, name: str, values: Mapping[str, Any]) -> None:
        if name in self.names and name in RESERVED:
            raise ArgumentCountError(
                f"kernel '{self.kernel}': '{name}' is a word of the launch itself\n"
                f"  hint: pass the parameter '{name}' by position"
            )
        if name not in self.keywords:
            raise ArgumentCountError(
                f"kernel '{self.kernel}' has no parameter '{name}' to be given by name\n"
                f"  note: its parameters are {self._listed()}{self._hint(name)}"
            )
        if name in values:
            raise ArgumentCountError(
                f"kernel '{self.kernel}': argument '{name}' is given by position and by name"
            )

    def _hint(self, name: str) -> str:
        if name in RESERVED:
            return f"\n  hint: {self.kernel}.launch(..., grid=, block=) takes {name}="
        from difflib import get_close_matches

        near = get_close_matches(name, self.names, n=1)
        return f"\n  hint: did you mean '{near[0]}'?" if near else ""

    def _listed(self) -> str:
        return f"({', '.join(self.names)})"


def signature_of(function: FunctionType) -> Signature:
    """The parameters of a kernel's function. Raises UnsupportedConstruct for *args and **kwargs."""
    parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    for parameter in parameters:
        if parameter.kind in _VARIADIC:
            raise UnsupportedConstruct(
                Diagnostic(
                    UnsupportedConstruct,
                    f"parameter '{_VARIADIC[parameter.kind]}{parameter.name}' of kernel "
                    f"'{function.__name__}' takes any number of arguments",
                    place_of(function),
                    hint="name every parameter",
                )
            )
    return Signature(
        kernel=function.__name__,
        names=tuple(p.name for p in parameters),
        positional=sum(p.kind is not inspect.Parameter.KEYWORD_ONLY for p in parameters),
        keywords=frozenset(
            p.name for p in parameters if p.kind is not inspect.Parameter.POSITIONAL_ONLY
        ),
        defaults={
            p.name: 0 if p.default is _EMPTY else p.default
            for p in parameters
            if p.default is not _EMPTY or p.name == DEVICE_NUMBER
        },
    )


def place_of(function: FunctionType) -> Span:
    """Where a function is defined."""
    return Span(function.__code__.co_filename, function.__code__.co_firstlineno)


def _count(number: int) -> str:
    return f"{number} argument{'' if number == 1 else 's'}"
