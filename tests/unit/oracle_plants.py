"""The registry of planted bugs and near misses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sarek_numba.ir.nodes import Kernel


@dataclass(frozen=True)
class Plant:
    """A kernel with its launch, and the error that the oracle must find, or None."""

    error: str | None
    build: Callable[[], tuple[Kernel, list[Any]]]
    grid: int = 1
    block: int = 8
    options: dict[str, Any] = field(default_factory=dict)


PLANTS: dict[str, Plant] = {}


def plant(error: str | None, grid: int = 1, block: int = 8, **options: Any) -> Callable[..., Any]:
    def register(build: Callable[[], tuple[Kernel, list[Any]]]) -> Callable[..., Any]:
        PLANTS[build.__name__] = Plant(error, build, grid, block, options)
        return build

    return register


def zeros(n: int, dtype: Any = np.int32) -> np.ndarray:
    return np.zeros(n, dtype)
