"""`@sarek.function`: device functions. Imports no Numba."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from sarek_numba.errors import Diagnostic, UnsupportedConstruct
from sarek_numba.frontend.shipped import reduced
from sarek_numba.span import Span

DEEPEST = 16  # of `inline_depth`: each level is one more function in the device's program


class DeviceFunction:
    """A function that kernels and other device functions call; plain Python may call it too.

    Each tuple of argument types makes one specialisation of it. With `inline` its calls are
    replaced by its body on devices. `inline_depth` is how deep its calls may nest in a call of it;
    None if it does not call itself, or only as the last thing that it does.
    """

    def __init__(
        self, function: FunctionType, inline: bool = False, inline_depth: int | None = None
    ) -> None:
        self.function = function
        self.inline = inline
        self.inline_depth = inline_depth
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """The name that devices see."""
        return self.function.__name__

    @property
    def key(self) -> Any:
        """What tells it from other functions; its specialisations are shared by equal keys."""
        return self.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def emulated(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What an emulation calls: `function` is this one with its surroundings replaced."""
        return function

    def __reduce__(self) -> Any:
        return reduced(self, (_blank, (type(self),), vars(self)))

    def __repr__(self) -> str:
        return f"<sarek function {self.function.__qualname__}>"


def _blank(kind: type[DeviceFunction]) -> DeviceFunction:
    return kind.__new__(kind)


def function(definition: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Mark a device function: `@sarek.function`.

    `inline=True` puts its body in place of each call. `inline_depth=N`, N from 1 to 16, lets it
    call itself: up to N calls nested in the first one. A function that calls itself only as the
    last thing that it does needs no bound: it becomes a loop.
    """
    if definition is None:
        return functools.partial(function, **options)
    plain = definition.__func__ if isinstance(definition, staticmethod) else definition
    if not isinstance(plain, FunctionType):
        raise TypeError(f"@sarek.function marks a function, not {definition!r}")
    _check(plain, options)
    return DeviceFunction(plain, **options)


def _check(function: FunctionType, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name == "inline":
            if not isinstance(value, bool):
                raise _refused(function, name, f"inline={value!r} is no bool", "write inline=True")
        elif name == "inline_depth":
            if type(value) is not int or not 1 <= value <= DEEPEST:
                message = f"inline_depth={value!r} is no int from 1 to {DEEPEST}"
                hint = "write deeper recursion as a loop"
                raise _refused(function, name, message, hint)
        else:
            message = f"@sarek.function has no option {name!r}"
            raise _refused(function, name, message, "its options are inline and inline_depth")
    if options.get("inline") and "inline_depth" in options:
        message = "a function that calls itself cannot be inlined"
        raise _refused(function, "inline", message, "leave out inline, or inline_depth")


def _refused(function: FunctionType, option: str, message: str, hint: str) -> UnsupportedConstruct:
    """The refusal of an option, at its place in the decorator where there is the text."""
    code = function.__code__
    for line in range(code.co_firstlineno, code.co_firstlineno + _DECORATOR_LINES):
        column = linecache.getline(code.co_filename, line).find(f"{option}=")
        if column >= 0:
            end = column + len(option)
            span = Span(code.co_filename, line, column, line, end)
            return UnsupportedConstruct(Diagnostic(UnsupportedConstruct, message, span, hint))
    span = Span(code.co_filename, code.co_firstlineno)
    return UnsupportedConstruct(Diagnostic(UnsupportedConstruct, message, span, hint))


_DECORATOR_LINES = 4  # that are searched for an option
