"""Every kernel of the corpus on every executor, against its NumPy meaning."""

from __future__ import annotations

import pytest

from tests.executors import EMULATION, check, executors
from tests.kernels.corpus import CASES


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case, executor):
    """Outputs equal NumPy's, bit for bit or within the stated ULP; inputs are untouched."""
    if executor == EMULATION and not case.emulated:
        pytest.skip(f"not emulated: {case.why}")
    check(executor, case)
