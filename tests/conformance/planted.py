"""The registry of planted bugs and near misses: Python kernels and what the oracle must say.

The line of a finding is the one that ends in the comment `# BUG`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.errors import OracleError

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Expected:
    """What one finding must say. What is None is not asked for."""

    error: type[OracleError]
    place: Triple | None = None  # the block
    thread: Triple | None = None
    threads: int | None = None
    array: str | None = None
    index: int | tuple[int, ...] | None = None
    says: str = ""


@dataclass(frozen=True)
class Plant:
    """A kernel, its launch, and the one finding it must give, or None."""

    name: str
    kernel: Any
    arguments: Callable[[], tuple[Any, ...]]
    expected: Expected | None
    grid: Any = 1
    block: Any = 8
    options: dict[str, Any] = field(default_factory=dict)
    shared_bytes: int = 0

    def line(self) -> int:
        """The line that is wrong."""
        lines, first = inspect.getsourcelines(self.kernel.py_func)
        marked = [first + n for n, line in enumerate(lines) if line.rstrip().endswith("# BUG")]
        assert len(marked) == 1, f"{self.name} marks {len(marked)} lines"
        return marked[0]


PLANTS: list[Plant] = []


def bug(error: type[OracleError], arguments: Any, **options: Any) -> Callable[..., Any]:
    """Register the decorated function as a kernel in which the oracle must find one fault."""
    said = {name: options.pop(name) for name in Expected.__slots__ if name in options}
    return _registering(Expected(error, **said), arguments, options)


def silent(arguments: Any, **options: Any) -> Callable[..., Any]:
    """Register the decorated function as a kernel in which the oracle must find nothing."""
    return _registering(None, arguments, options)


def _registering(expected: Expected | None, arguments: Any, options: dict[str, Any]) -> Any:
    launch = {
        name: options.pop(name) for name in ("grid", "block", "shared_bytes") if name in options
    }

    def register(function: Callable[..., None]) -> Any:
        kernel = sarek.kernel(function)
        PLANTS.append(
            Plant(function.__name__, kernel, arguments, expected, options=options, **launch)
        )
        return kernel

    return register


def zeros(*shape: int, dtype: Any = np.int32) -> Callable[[], tuple[Any, ...]]:
    """Arguments: one array of zeros."""
    return lambda: (np.zeros(shape, dtype),)
