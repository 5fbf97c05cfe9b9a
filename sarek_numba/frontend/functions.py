"""`@sarek.function`: device functions. Imports no Numba."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from sarek_numba.errors import UnsupportedConstruct


class DeviceFunction:
    """A function that kernels and other device functions call; plain Python may call it too.

    Each tuple of argument types makes one specialisation of it.
    """

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def emulated(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What an emulation calls: `function` is this one with its surroundings replaced."""
        return function

    def __repr__(self) -> str:
        return f"<sarek function {self.function.__qualname__}>"


def function(definition: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Mark a device function. It takes no options in this version."""
    for name in options:
        raise UnsupportedConstruct(f"@sarek.function({name}=...) is not in this version")
    if definition is None:
        return DeviceFunction
    plain = definition.__func__ if isinstance(definition, staticmethod) else definition
    if not isinstance(plain, FunctionType):
        raise TypeError(f"@sarek.function marks a function, not {definition!r}")
    return DeviceFunction(plain)
