"""What the front end finds and does not refuse: warnings that are useful, and few."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import sarek_numba as sarek

F32 = np.ones(8, np.float32)
F64 = np.ones(8, np.float64)
I32 = np.ones(8, np.int32)
U8 = np.ones(8, np.uint8)


def warnings_of(function, *given):
    """What compiling says, with the file's name alone."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sarek.kernel(function)[1, 1](*given)
    assert all(each.category is sarek.CompileWarning for each in caught)
    return [str(each.message).replace(__file__, "test_notes.py") for each in caught]


def saxpy(y, x, a):
    i = sarek.global_idx.x
    if i < len(y):
        y[i] = a * x[i] + y[i]


def mean(y, x):
    total = 0.0
    for j in range(len(x)):
        total += x[j]
    y[0] = total / len(x)


def coordinates(y, x):
    i = sarek.global_idx.x
    position = -2.0 + 3.0 * i / len(y)
    y[i] = math.sqrt(position * position + x[i]) * 0.5


def converted(y, n):
    y[0] = np.float32(n[0]) * 0.5 + float(n[1])


def doubles(y, x):
    y[0] = x[0] * 0.5 + y[1]


def largest(y, x):
    best = 0
    for j in range(len(x)):
        best = max(best, x[j])
    y[0] = best


def chosen(y, x):
    value = 0
    if x[0] > 3:
        value = x[1]
    y[0] = value


QUIET = [
    (saxpy, (F32, F32, 2.0)),
    (mean, (F32, F32)),
    (coordinates, (F32, F32)),
    (converted, (F32, I32)),
    (doubles, (F32, F64)),
    (largest, (U8, U8)),
    (chosen, (U8, U8)),
]


@pytest.mark.parametrize(
    ("function", "given"), QUIET, ids=lambda each: getattr(each, "__name__", "")
)
def test_quiet(function, given):
    """Ordinary float32 code, code that asks for float64, and small integers that never add up."""
    assert warnings_of(function, *given) == []


def integer_and_float(y, n):
    y[0] = y[1] * n[0]


def ratio(y, n):
    y[0] = n[0] / n[1]


def scaled(y, n):
    t = n[0] * 0.5
    y[0] = math.sin(t) * y[2]


def narrow_sum(y, x):
    total = 0
    for j in range(len(x)):
        if x[j] > 0:
            total += x[j]
    y[0] = total


NOTED = [
    (integer_and_float, (F32, I32)),
    (ratio, (F32, I32)),
    (scaled, (F32, I32)),
    (narrow_sum, (U8, U8)),
]


@pytest.mark.parametrize(
    ("function", "given"), NOTED, ids=lambda each: getattr(each, "__name__", "")
)
def test_noted(function, given, golden):
    """A float64 that nobody asked for, where it begins, and a sum that wraps: one warning each."""
    (text,) = warnings_of(function, *given)
    golden(f"{text}\n", f"note_{function.__name__}")


def test_where():
    """The warning stands at the kernel's own line, so that filters by file and line work."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sarek.kernel(ratio)[1, 1](F32, I32)
    (warning,) = caught
    assert (warning.filename, warning.lineno) == (__file__, ratio.__code__.co_firstlineno + 1)
