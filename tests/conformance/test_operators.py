"""Every operator on every pair of types, with run-time boundary values, on every executor.

One kernel for each left operand's type holds all operators with all right operands' types, so that
devices compile few of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from tests.conformance import numbers
from tests.conformance.columns import check_columns, column_kernel
from tests.conformance.numbers import KINDS, OPERATORS, Column
from tests.executors import executors

# float64 is meant here
pytestmark = pytest.mark.filterwarnings("ignore::sarek_numba.errors.CompileWarning")


def _text(operator: str, x: str, y: str) -> str:
    if operator in numbers.EXTREMES:
        return f"{operator}({x}, {y})"
    if operator.startswith("divmod"):
        return f"divmod({x}, {y})[{operator[-1]}]"
    return f"{x} {operator} {y}"


@lru_cache
def _binary(left: str) -> tuple[Any, list[Column], list[np.ndarray]]:
    columns, inputs = [], [np.repeat(numbers.boundary(left), numbers.ROWS)]
    for right in KINDS:
        a, b = numbers.operands(left, right)
        inputs.append(b)
        for operator in OPERATORS:
            text = _text(operator, "x", f"y_{right}")
            column = numbers.binary(text, operator, left, right, a, b)
            columns += [] if column is None else [column]
    names = [("x", left), *((f"y_{right}", right) for right in KINDS)]
    return column_kernel(f"operators_of_{left}", names, columns), columns, inputs


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("left", KINDS)
def test_binary(left: str, executor: str) -> None:
    """The type and every bit of each operation, at each pair of boundary values."""
    made, columns, inputs = _binary(left)
    check_columns(executor, made, columns, inputs)
