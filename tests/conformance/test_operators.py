"""Every operator on every pair of types, with run-time boundary values, on every executor.

One kernel for each left operand's type holds all operators with all right operands' types, so that
devices compile few of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance import numbers, operations
from tests.conformance.columns import (
    asked,
    check_columns,
    column_kernel,
    differences,
    reading,
)
from tests.conformance.declared import every_nth
from tests.conformance.generated import kernel
from tests.conformance.numbers import KINDS, OPERATORS, Column
from tests.executors import EMULATION, device_of, executors, run
from tests.kernels.case import Launch

# float64 is meant here
pytestmark = pytest.mark.filterwarnings("ignore::sarek_numba.errors.CompileWarning")

# each of these kernels has columns of float64, which Metal has not
WITH_FLOAT64 = [name for name in executors() if name != "shim:metal"]


@lru_cache
def _binary(left: str, every: int = 1) -> tuple[Any, list[Column], list[np.ndarray]]:
    """All operations, or every so many of them, others for each type."""
    columns, inputs = [], [np.repeat(numbers.boundary(left), numbers.ROWS)]
    for right in KINDS:
        a, b = numbers.operands(left, right)
        inputs.append(b)
        for operator in OPERATORS:
            text = operations.text(operator, "x", f"y_{right}")
            column = numbers.binary(text, operator, left, right, a, b)
            columns += [] if column is None else [column]
    columns = columns[KINDS.index(left) % every :: every]
    names = [("x", left), *((f"y_{right}", right) for right in KINDS)]
    return column_kernel(f"operators_of_{left}", names, columns), columns, inputs


@pytest.mark.parametrize("executor", WITH_FLOAT64)
@pytest.mark.parametrize("left", KINDS)
def test_binary(left: str, executor: str) -> None:
    """The type and every bit of each operation, at each pair of boundary values."""
    record = None if executor == EMULATION else device_of(executor).record
    made, columns, inputs = _binary(left, every_nth(record))
    check_columns(executor, made, columns, inputs)


@lru_cache
def _unary(kind: str) -> tuple[Any, list[Column], list[np.ndarray]]:
    a = numbers.boundary(kind)
    columns = [*operations.unary(kind, a), *operations.with_constants(kind, a)]
    return column_kernel(f"operations_on_{kind}", [("x", kind)], columns), columns, [a]


@pytest.mark.parametrize("executor", WITH_FLOAT64)
@pytest.mark.parametrize("kind", KINDS)
def test_unary_and_constants(kind: str, executor: str) -> None:
    """Signs, truth, rounding, and each operator with a constant on either side."""
    made, columns, inputs = _unary(kind)
    check_columns(executor, made, columns, inputs)


def _refused(kind: str) -> list[str]:
    texts = operations.refused_unary(kind)
    for right in KINDS:
        texts += [
            operations.text(operator, "x", f"y_{right}")
            for operator in OPERATORS
            if numbers.result(operator, kind, right) is None
        ]
    return texts


@pytest.mark.parametrize("kind", KINDS)
def test_refused(kind: str) -> None:
    """What has no type is refused, each at its own line, and nothing else is."""
    texts = _refused(kind)
    readings = [("x", kind), *((f"y_{right}", right) for right in KINDS)]
    body = [f"{name} = {reading(each, f'{name}_in')}" for name, each in readings]
    first = len(body) + 2  # after the line with `def`
    body = ["i = 0", *body, *(f"out[{k}] = {text}" for k, text in enumerate(texts))]
    made = kernel(f"refused_for_{kind}", ["out", *(f"{name}_in" for name, _ in readings)], body)
    arrays = [np.ones(1, numbers.DTYPES[each]) for _, each in readings]
    with pytest.raises(sarek.CompileError) as caught:
        made.ir(np.zeros(len(texts)), *arrays)
    lines = sorted({d.span.line for d in caught.value.diagnostics if d.span is not None})
    expected = [first + 1 + k for k in range(len(texts))]
    missed = [texts[line - first - 1] for line in sorted(set(expected) - set(lines))]
    assert not missed, f"not refused: {missed}"
    assert lines == expected


def test_a_wrong_value_is_found() -> None:
    """The comparison itself: one bit off in one row is told with its operation."""
    made, columns, inputs = _unary("int8")
    values = columns[0].values.copy()
    values[3] += 1
    wrong = [replace(columns[0], values=values), *columns[1:]]
    with pytest.raises(AssertionError, match=r"1 columns differ.*\n-x -> int8: 1 rows, first 3 "):
        check_columns("emulation", made, wrong, inputs)


def _augmented_rights(left: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((left, "weak_int", "float32", "int64")))


@lru_cache
def _augmented(left: str) -> tuple[Any, list[tuple[Column, int]], list[str]]:
    """A kernel of `element op= y`, its columns with their right operand, and those operands."""
    rights = _augmented_rights(left)
    columns = []
    body = ["i = sarek.global_idx.x", "if i < len(ask):"]
    body += [f"    y_{right} = {reading(right, f'y_{right}_in')}" for right in rights]
    for which, right in enumerate(rights):
        for operator in numbers.IN_PLACE:
            text = f"x[i, {len(columns)}] {operator}= y_{right}"
            column = numbers.binary(text, operator, left, right, *numbers.operands(left, right))
            if column is not None:
                guard = f"if ask[i, {len(columns)}]: " if column.guarded else ""
                body.append(f"    {guard}{text}")
                columns.append((column, which))
    parameters = ["x", "ask", *(f"y_{right}_in" for right in rights)]
    return kernel(f"augmented_{left}", parameters, body), columns, list(rights)


@pytest.mark.parametrize("executor", WITH_FLOAT64)
@pytest.mark.parametrize("left", numbers.STRONG)
def test_augmented_assignment(left: str, executor: str) -> None:
    """`a[i] op= v` is `a[i] = a[i] op v`, converted to the element's type once, by the store."""
    made, pairs, rights = _augmented(left)
    columns = [column for column, _ in pairs]
    ask = asked(executor, columns)
    x, _ = numbers.operands(left, left)
    element = np.repeat(x[:, None], len(columns), axis=1)
    expected = element.copy()
    for k, column in enumerate(columns):
        expected[:, k] = np.where(ask[:, k], numbers.stored(column, left), x)
    inputs = [numbers.operands(left, right)[1] for right in rights]
    with np.errstate(all="ignore"):
        run(executor, made, Launch(4, 64, (element, ask, *inputs), ()))
    wrong = []
    for k, (column, which) in enumerate(pairs):
        given = [x, inputs[which]]
        wrong += differences(executor, column, element[:, k], expected[:, k], given)
    assert not wrong, "\n".join(wrong)
