"""What tests of cases share: launches of one block, and equality of bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.executors import run
from tests.kernels.case import Launch


def launch(executor: str, made: Any, *arguments: Any, threads: int = 64) -> None:
    """One block."""
    with np.errstate(all="ignore"):
        run(executor, made, Launch(1, threads, arguments, ()))


def same(actual: np.ndarray, expected: Any) -> bool:
    """Equal bit for bit, one NaN like another."""
    expected = np.asarray(expected, actual.dtype)
    signs = True
    if actual.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        signs = np.array_equal(np.signbit(actual[numbers]), np.signbit(expected[numbers]))
    return signs and np.array_equal(actual, expected, equal_nan=actual.dtype.kind == "f")
