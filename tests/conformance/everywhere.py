"""One launch with a fresh output on one executor, and the parameter that names every executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.executors import executors, run
from tests.kernels.case import Launch

everywhere = pytest.mark.parametrize("executor", executors())


def gives(
    executor: str,
    kernel: Any,
    expected: Any,
    *arguments: Any,
    grid: Any = 1,
    block: Any = None,
    dtype: Any = np.int32,
) -> None:
    """Launch with an output before the arguments, one thread for each row of `expected`."""
    expected = np.asarray(expected, dtype)
    out = np.full(expected.shape, 91, dtype)
    run(executor, kernel, Launch(grid, block or len(expected), (out, *arguments), ()))
    assert out.tolist() == expected.tolist()
