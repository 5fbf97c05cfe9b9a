"""Columns of operations on one operand: signs, truth, rounding, and operators with constants.

Constants matter beside run-time operands: passes drop guards and replace operations for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.conformance import numbers
from tests.conformance.numbers import DTYPES, FLOATS, INTEGERS, Column, as_int64, is_real


def text(operator: str, x: str, y: str) -> str:
    """An operation of `numbers.OPERATORS` as Python writes it."""
    if operator in numbers.EXTREMES:
        return f"{operator}({x}, {y})"
    if operator.startswith("divmod"):
        return f"divmod({x}, {y})[{operator[-1]}]"
    return f"{x} {operator} {y}"


# --- one operand ----------------------------------------------------------------------------------


def unary(kind: str, a: np.ndarray) -> list[Column]:
    """Every operation on one operand x of a kind."""
    columns = list(_signs(kind, a))
    listed = a.tolist()
    truth = [value != 0 for value in listed]
    columns += [
        _whole("not x", "bool", [not value for value in truth]),
        _whole("bool(x)", "bool", truth),
        _whole("1 if x else 2", "weak_int", [1 if value else 2 for value in truth]),
        _real("float(x)", "weak_float", a.astype(np.float64)),
    ]
    rounded = [_nearest(value) for value in listed]
    truncated = [
        numbers.to_int(value, "int64") if is_real(kind) else int(value) for value in listed
    ]
    columns.append(_whole("int(x)", "weak_int", truncated))
    if kind != "bool":
        columns.append(_whole("round(x)", "weak_int", rounded))
    return columns


def _signs(kind: str, a: np.ndarray) -> Iterator[Column]:
    if is_real(kind):
        yield _real("-x", kind, -a)
        yield _real("+x", kind, a)
        yield _real("abs(x)", kind, np.abs(a))
        return
    listed = [int(value) for value in a.tolist()]
    if kind == "bool":
        yield _whole("~x", "bool", [1 - value for value in listed])
        return
    yield _whole("-x", kind, [-value for value in listed])
    yield _whole("+x", kind, listed)
    yield _whole("~x", kind, [~value for value in listed])
    yield _whole("abs(x)", kind, [abs(value) for value in listed])


def refused_unary(kind: str) -> list[str]:
    """The operations on one operand that the language refuses for a kind."""
    if kind == "bool":
        return ["-x", "+x", "abs(x)", "round(x)", "round(x, 1)"]
    return ["~x"] if is_real(kind) else ["round(x, -1)"]


def _nearest(value: Any) -> int:
    return numbers.to_int(float(np.rint(value)), "int64") if type(value) is float else int(value)


def _whole(text: str, kind: str, values: Iterable[int]) -> Column:
    exact = [int(value) for value in values]
    leaves = np.array([kind == "weak_int" and not numbers.fits(v, "int64") for v in exact])
    return Column(text, kind, as_int64(exact, kind), ~leaves, leaves)


def _real(text: str, kind: str, values: np.ndarray) -> Column:
    always = np.ones(len(values), bool)
    return Column(text, kind, values.astype(np.float64), always, ~always)


# --- constants ------------------------------------------------------------------------------------


def with_constants(kind: str, a: np.ndarray) -> list[Column]:
    """Operators on x and a constant, on either side."""
    if is_real(kind):
        return [*_float_constants(kind, a), *_exact_powers(kind, a)]
    return [*_int_constants(kind, a), *_compared_constants(kind, a)]


def _int_constants(kind: str, a: np.ndarray) -> Iterator[Column]:
    other = kind if kind in INTEGERS else "weak_int"
    low, high = numbers.ends(other)
    width = DTYPES[other].itemsize * 8
    divisors = [v for v in (0, 1, 2, 3, 7, 8, 10, high, -1, -2, -3, -7, -8, low) if v >= low]
    right: dict[str, list[int]] = {
        "+": [1, high], "-": [1, high], "*": [3, high], "/": [3, 10],
        "//": divisors, "%": divisors, "divmod 0": [4], "divmod 1": [4],
        "**": [0, 1, 2, 3, 5], "<<": [0, 1, width - 1, width, width + 1],
        ">>": [0, 1, width - 1, width, width + 1], "&": [15, high], "|": [1], "^": [high],
        "min": [5], "max": [5],
    }  # fmt: skip
    left = {"-": [1], "*": [5], "//": [100, high], "%": [100, high], "**": [0, 1, 2, 3],
            "<<": [1, high], ">>": [1, high], "/": [1]}  # fmt: skip
    for operator, x, y, b, reverse in _sides(right, left, a, DTYPES[other]):
        operands = (b, a) if reverse else (a, b)
        kinds = (other, kind) if reverse else (kind, other)
        column = numbers.binary(text(operator, x, y), operator, *kinds, *operands)
        if column is not None and not (kind == "weak_int" and operator in ("//", "%") and y == "0"):
            yield column


def _float_constants(kind: str, a: np.ndarray) -> Iterator[Column]:
    divisors: list[float] = [2, 3, 3.5, 10, 0.1, -3, 1e30]
    right = {"+": [0.1, 1], "-": [0.1, 0], "*": [0.1, 2, 0], "/": divisors, "//": divisors,
             "%": divisors, "min": [0, 0.1], "max": [0, 0.1], "**": [3, 0.5, -2, 1.5],
             "<": [0.1], "==": [0.1, 16777217, 0], "!=": [0.1], ">=": [0]}  # fmt: skip
    left = {"-": [1, 0], "/": [1, 0.1], "//": [7.5], "%": [7.5], "+": [0], "<": [0.1], "**": [2]}
    if kind == "weak_float":
        left = {key: left[key] for key in ("-", "+", "<")}  # CPython raises for a zero divisor
    for operator, x, y, b, reverse in _sides(right, left, a, a.dtype):
        operands = (b, a) if reverse else (a, b)
        column = numbers.binary(text(operator, x, y), operator, kind, kind, *operands)
        if column is not None:
            yield column


def _exact_powers(kind: str, a: np.ndarray) -> Iterator[Column]:
    one = a.dtype.type(1)
    with np.errstate(all="ignore"):
        exact: dict[str, Callable[[], np.ndarray]] = {
            "x ** 0": lambda: np.full_like(a, one),
            "x ** 1": lambda: a,
            "x ** 2": lambda: a * a,
            "x ** -1": lambda: one / a,
        }
        for written, values in exact.items():
            if kind in FLOATS:
                yield _real(written, kind, values())


def _compared_constants(kind: str, a: np.ndarray) -> Iterator[Column]:
    low, high = numbers.ends(kind)
    for operator in numbers.COMPARISONS:
        for value in (0, 1, high, low, high + 1, low - 1):
            if kind == "weak_int" and not numbers.fits(value, "int64"):
                continue
            b = np.full(len(a), value, object)
            for x, y, reverse in (("x", str(value), False), (str(value), "x", True)):
                pair = (b, a) if reverse else (a, b)
                kinds = ("weak_int", kind) if reverse else (kind, "weak_int")
                column = numbers.binary(text(operator, x, y), operator, *kinds, *pair)
                assert column is not None
                yield replace(column, emulated=np.ones(len(a), bool))


def _sides(
    right: dict[str, list[Any]], left: dict[str, list[Any]], a: np.ndarray, dtype: np.dtype[Any]
) -> Iterator[tuple[str, str, str, np.ndarray, bool]]:
    for reverse, table in ((False, right), (True, left)):
        for operator, values in table.items():
            for value in values:
                with np.errstate(all="ignore"):
                    b = np.full(len(a), value, dtype)
                sides = (str(value), "x") if reverse else ("x", str(value))
                yield operator, *sides, b, reverse
