"""What the tests of cases from the field share: one launch on one executor, against NumPy."""

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
    """Launch with a fresh output before the arguments, one thread for each row of `expected`."""
    expected = np.asarray(expected, dtype)
    out = np.full(expected.shape, 91, dtype)
    run(executor, kernel, Launch(grid, block or len(expected), (out, *arguments), ()))
    assert out.tolist() == expected.tolist()
