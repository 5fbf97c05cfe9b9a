"""Kernels that compute one column for each operation, and the check of what they wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sarek_numba.verify.ulp import ulp_distance
from tests.conformance.generated import kernel
from tests.conformance.numbers import Column, is_real, is_weak
from tests.executors import EMULATION, run
from tests.kernels.case import Launch, poison

ORACLE = "interpreter"
BLOCK = 64


def reading(kind: str, array: str) -> str:
    """The text that reads an operand of a kind at run time."""
    if not is_weak(kind):
        return f"{array}[i]"
    return f"{'int' if kind == 'weak_int' else 'float'}({array}[i])"


def column_kernel(name: str, inputs: Sequence[tuple[str, str]], columns: Sequence[Column]) -> Any:
    """Row i of column k is stored to `whole[i, k]` or `real[i, k]`.

    `inputs` are names of variables with their kinds; the array of variable v is `v_in`. A column
    that some executor must not compute everywhere is guarded by `ask[i, k]`.
    """
    body = ["i = sarek.global_idx.x", "if i < len(ask):"]
    body += [f"    {variable} = {reading(kind, f'{variable}_in')}" for variable, kind in inputs]
    for k, column in enumerate(columns):
        store = f"{'real' if is_real(column.kind) else 'whole'}[i, {k}] = {column.text}"
        body += [f"    if ask[i, {k}]:", f"        {store}"] if column.guarded else [f"    {store}"]
    arrays = [f"{variable}_in" for variable, _ in inputs]
    return kernel(name, ["whole", "real", "ask", *arrays], body)


def asked(executor: str, columns: Sequence[Column]) -> np.ndarray:
    """Which rows an executor computes: devices all of them."""
    rows = [np.ones(len(columns[0].values), bool) for _ in columns]
    if executor == EMULATION:
        rows = [column.emulated for column in columns]
    elif executor == ORACLE:
        rows = [~column.reported for column in columns]
    return np.stack(rows, axis=1)


def check_columns(
    executor: str, made: Any, columns: Sequence[Column], inputs: Sequence[np.ndarray]
) -> None:
    """Run a `column_kernel`; asked rows have their values, all else is as before."""
    ask = asked(executor, columns)
    whole, real = poison(ask.shape, np.int64), poison(ask.shape, np.float64)
    before = [array.copy() for array in inputs]
    grid = -(-len(ask) // BLOCK)
    with np.errstate(all="ignore"):
        run(executor, made, Launch(grid, BLOCK, (whole, real, ask, *inputs), ()))
    untouched_whole, untouched_real = poison(1, np.int64)[0], poison(1, np.float64)[0]
    wrong: list[str] = []
    for k, column in enumerate(columns):
        mine, other, nothing = (
            (real, whole, untouched_real)
            if is_real(column.kind)
            else (whole, real, untouched_whole)
        )
        expected = np.where(ask[:, k], column.values, nothing)
        wrong += differences(executor, column, mine[:, k], expected, inputs)
        assert (other[:, k] == other[0, k]).all(), f"{column.text}: wrote beside its column"
    assert not wrong, "\n".join([f"{len(wrong)} columns differ on {executor}", *wrong[:20]])
    for array, old in zip(inputs, before, strict=True):
        assert array.tobytes() == old.tobytes()


def differences(
    executor: str, column: Column, actual: np.ndarray, expected: np.ndarray,
    inputs: Sequence[np.ndarray],
) -> list[str]:  # fmt: skip
    """One line about the first row that differs, if any does."""
    distance = column_distance(column, actual, expected)
    rows = np.flatnonzero(distance > column.ulp)
    if not len(rows):
        return []
    row = int(rows[0])
    values = ", ".join(dict.fromkeys(f"{array[row]!r}" for array in inputs))
    return [
        f"{column.text} -> {column.kind}: {len(rows)} rows, first {row} of ({values}): "
        f"{actual[row]!r}, expected {expected[row]!r}"
    ]


def column_distance(column: Column, actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """In ULP of the column's own kind; what that kind cannot hold is infinitely far."""
    if column.kind != "float32" or actual.dtype != np.float64:
        return ulp_distance(actual, expected)
    with np.errstate(all="ignore"):
        narrow = ulp_distance(actual.astype(np.float32), expected.astype(np.float32))
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    held = same | (actual.astype(np.float32) == actual)
    return np.where(held, narrow, np.inf)
