"""Kernels outside the language are refused with file, line, column, a caret and one hint."""

from __future__ import annotations

import inspect
import types

import numpy as np
import pytest

import sarek_numba as sarek
from tests.errors import refused

FUNCTIONS = [
    function
    for function in vars(refused).values()
    if isinstance(function, types.FunctionType)
    and function.__module__ == refused.__name__
    and function is not refused.plain
]


def arguments(function):
    """Arguments by parameter name: arrays of several types, a Python int, a read-only array."""
    fixed = np.arange(1, 9, dtype=np.float32)
    fixed.flags.writeable = False
    made = {
        "x": np.arange(1, 9, dtype=np.float32),
        "n": 3,
        "small": np.arange(1, 9, dtype=np.uint8),
        "big": np.arange(1, 9, dtype=np.uint64),
        "fixed": fixed,
    }
    return [made[name] for name in inspect.signature(function).parameters]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_refusal(function, golden):
    """The error names file, line and column; data are untouched; every launch raises it again."""
    kernel = sarek.kernel(function)
    given = arguments(function)
    before = [np.copy(value) for value in given]
    texts = []
    for _ in range(2):
        with pytest.raises(sarek.CompileError) as caught:
            kernel[1, 32](*given)
        texts.append(f"{type(caught.value).__name__}\n{caught.value}\n")
    for value, kept in zip(given, before, strict=True):
        assert np.array_equal(value, kept)
    assert texts[0] == texts[1]
    shown = texts[0].replace(refused.__file__, "refused.py")
    assert "refused.py:" in shown
    assert "^" in shown
    assert "hint:" in shown
    golden(shown, function.__name__)


def test_the_process_goes_on():
    """After all refusals a good kernel still runs."""
    x = np.zeros(4, np.float32)

    @sarek.kernel
    def fill(x):
        x[sarek.thread_idx.x] = sarek.thread_idx.x

    fill[1, 4](x)
    assert x.tolist() == [0, 1, 2, 3]
