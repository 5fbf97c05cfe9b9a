"""A corpus of kernels that the convergence checker must accept, and of ones that it must refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sarek_numba as sarek


@dataclass
class Corpus:
    """Kernels in order of registration; a refused one with the condition that its error shows."""

    accepted: list[Any] = field(default_factory=list)
    refused: list[tuple[Any, str]] = field(default_factory=list)

    def accept(self, function: Callable[..., None]) -> Any:
        """Register the decorated function as a kernel that must compile."""
        self.accepted.append(sarek.kernel(function))
        return self.accepted[-1]

    def refuse(self, condition: str) -> Callable[..., Any]:
        """Register the decorated function as a kernel that is refused for this condition."""

        def register(function: Callable[..., None]) -> Any:
            kernel = sarek.kernel(function)
            self.refused.append((kernel, condition))
            return kernel

        return register
