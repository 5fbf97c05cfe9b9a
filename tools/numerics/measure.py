"""Runs each function on a device, in a kernel, and finds the worst error and what is special there.

A function is run in blocks of 64 threads and in blocks of one: drivers have other code for a
single thread than for many side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import sarek_numba as sarek
from tests.conformance.generated import kernel
from tools.numerics.functions import Function
from tools.numerics.reference import Exact, errors, kinds
from tools.numerics.sample import Arguments

TYPES = (np.dtype(np.float32), np.dtype(np.float64))
_BLOCKS = (64, 1)
_SHOWN = 3


@dataclass(frozen=True)
class Deviation:
    """A result that is not the one of IEEE 754 and C's Annex F; `at` are the first arguments."""

    expected: str
    actual: str
    count: int
    at: tuple[str, ...]

    @property
    def case(self) -> tuple[str, str]:
        return self.expected, self.actual


@dataclass(frozen=True)
class Measured:
    """The largest error in ULP, with the arguments, and every kind of deviation."""

    ulp: float
    at: str
    deviations: tuple[Deviation, ...]


@cache
def function_kernel(text: str, arity: int) -> Any:
    """The kernel that stores a function of `x` and `y` for each thread."""
    operands = ("x", "y")[:arity]
    arrays = [f"{name}_in" for name in operands]
    body = ["i = sarek.global_idx.x", "if i < len(out):"]
    body += [f"    {name} = {array}[i]" for name, array in zip(operands, arrays, strict=True)]
    return kernel("function", ["out", *arrays], [*body, f"    out[i] = {text}"])


def results(device: str, function: Function, rows: Arguments) -> Iterator[np.ndarray]:
    """What a device computes, once for each size of block."""
    made = function_kernel(function.names[0], function.arity)
    for block in _BLOCKS:
        out = np.empty_like(rows[0])
        with sarek.use_device(device), np.errstate(all="ignore"):
            made[-(-len(out) // block), block](out, *rows)
        yield out


def measure(device: str, function: Function, rows: Arguments, expected: Exact) -> Measured:
    """Compare a device with the exact results at the rows."""
    return judge(rows, expected, *results(device, function, rows))


def judge(rows: Arguments, expected: Exact, *actual: np.ndarray) -> Measured:
    """The worst of several arrays of results."""
    distance = np.max([errors(one, expected) for one in actual], axis=0)
    worst = int(np.argmax(distance))
    found: dict[tuple[str, str], dict[int, None]] = {}
    for one in actual:
        kind = kinds(one)
        for row in np.flatnonzero(_deviates(kind, expected)):
            case = (str(expected.kind[row]), str(kind[row]))
            found.setdefault(case, {})[int(row)] = None
    deviations = tuple(
        Deviation(*case, len(at), tuple(_shown(rows, row) for row in sorted(at)[:_SHOWN]))
        for case, at in sorted(found.items())
    )
    return Measured(float(distance[worst]), _shown(rows, worst), deviations)


def _deviates(kind: np.ndarray, expected: Exact) -> np.ndarray:
    """Another kind where only the kind counts, a NaN, or a zero of the other sign."""
    differs = kind != expected.kind
    zeros = np.isin(kind, ("0.0", "-0.0")) & np.isin(expected.kind, ("0.0", "-0.0"))
    return np.asarray(differs & (expected.singular | (kind == "nan") | zeros))


def _shown(rows: Arguments, row: int) -> str:
    return ", ".join(str(column[row]) for column in rows)
