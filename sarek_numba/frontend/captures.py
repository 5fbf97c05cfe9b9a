"""Values that a function takes from its surroundings: reading them, and remembering them."""

from __future__ import annotations

import builtins
from types import FunctionType
from typing import Any

import numpy as np

from sarek_numba.frontend.typed import Captured

MISSING = object()


def read_captured(function: FunctionType, name: str, path: tuple[str, ...]) -> Any:
    """The value that a function would find under a name and attributes now, or MISSING."""
    code = function.__code__
    try:
        if name in code.co_freevars:
            value = (function.__closure__ or ())[code.co_freevars.index(name)].cell_contents
        elif name in function.__globals__:
            value = function.__globals__[name]
        else:
            value = getattr(builtins, name)
        for each in path:
            value = getattr(value, each)
    except (AttributeError, KeyError, ValueError):
        return MISSING
    return value


def captured(function: FunctionType, name: str, path: tuple[str, ...], value: Any) -> Captured:
    """A value that was found; of an array it is a copy, which the program cannot change."""
    if isinstance(value, (np.ndarray, np.void)):
        value = value.copy()

    def read() -> Any:
        return read_captured(function, name, path)

    return Captured(function, name, path, value, read)
