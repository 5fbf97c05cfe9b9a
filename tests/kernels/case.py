"""A kernel of the corpus, how to make its inputs, and what NumPy says of its outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Launch:
    """One launch: `expected[k]` is what argument k must hold afterwards, None for one not written.

    A case makes a fresh launch from an equal generator for every executor, so arrays are never
    shared between executors and overlapping arguments stay so.
    """

    grid: Any
    block: Any
    arguments: tuple[Any, ...]
    expected: tuple[Any, ...]
    shared_bytes: int = 0


@dataclass(frozen=True)
class Case:
    """`ulp` is 0 for bit equality on every executor, else the bound for inexact functions.

    `warps` is True for a kernel with warp operations, which a device may refuse by capability.
    `emulated` is False for a kernel whose size makes CPython too slow, with the reason in `why`.
    """

    name: str
    kernel: Any
    launch: Callable[[np.random.Generator], Launch]
    ulp: int = 0
    warps: bool = False
    emulated: bool = True
    why: str = ""


@dataclass
class Corpus:
    """Cases in order of registration; names are unique."""

    cases: list[Case] = field(default_factory=list)

    def add(
        self, kernel: Any, **options: Any
    ) -> Callable[[Callable[..., Launch]], Callable[..., Launch]]:
        """Register the decorated launch generator as a case of `kernel`, named after itself."""

        def register(launch: Callable[[np.random.Generator], Launch]) -> Callable[..., Launch]:
            name = launch.__name__
            assert name not in {case.name for case in self.cases}, f"two cases named {name}"
            self.cases.append(Case(name, kernel, launch, **options))
            return launch

        return register

    def __iter__(self) -> Any:
        return iter(self.cases)


def poison(shape: Any, dtype: Any) -> np.ndarray:
    """An output array that no kernel would produce by chance; never zeros."""
    array = np.empty(shape, dtype)
    array.view(np.uint8 if array.dtype != bool else bool).fill(
        0x5B if array.dtype != bool else True
    )
    return array
