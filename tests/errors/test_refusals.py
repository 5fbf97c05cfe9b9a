"""Kernels outside the language are refused with file, line, column, a caret and one hint."""

from __future__ import annotations

import inspect
import types
from pathlib import Path

import numpy as np
import pytest

import sarek_numba as sarek
from tests.errors import (
    refused,
    refused_atomics,
    refused_complex,
    refused_escapes,
    refused_functions,
    refused_halves,
    refused_language,
    refused_later,
    refused_match,
    refused_matrices,
    refused_memory,
    refused_record_stores,
    refused_records,
    refused_registered,
    refused_texts,
    refused_variants,
    refused_warps,
)

MODULES = (
    refused,
    refused_atomics,
    refused_complex,
    refused_escapes,
    refused_functions,
    refused_halves,
    refused_language,
    refused_later,
    refused_match,
    refused_matrices,
    refused_memory,
    refused_record_stores,
    refused_records,
    refused_registered,
    refused_texts,
    refused_variants,
    refused_warps,
)
PARTS = np.dtype(
    [
        ("kind", np.uint8),
        ("pos", refused_records.POINT),
        ("id", np.int32),
        ("cells", np.int16, (2, 3)),
        ("inner", [("cells", np.int16, (2, 2))], (2,)),
    ]
)
HELPERS = ("plain", "adder", "undecorated")

FUNCTIONS = [
    function
    for module in MODULES
    for name, function in vars(module).items()
    if isinstance(function, types.FunctionType)
    and function.__module__ == module.__name__
    and name not in HELPERS
    and not name.startswith("_")
]


def arguments(function):
    """Arguments by parameter name: arrays of several types, a Python int, a read-only array."""
    fixed = np.arange(1, 9, dtype=np.float32)
    fixed.flags.writeable = False
    fixed_z = fixed.astype(np.complex64)
    fixed_z.flags.writeable = False
    fixed_points = np.zeros(8, refused_records.POINT)
    fixed_points.flags.writeable = False
    fixed_shapes = np.zeros(8, refused_variants.Shape.dtype)
    fixed_shapes.flags.writeable = False
    made = {
        "x": np.arange(1, 9, dtype=np.float32),
        "n": 3,
        "m": np.ones((4, 4), np.float32),
        "ints": np.arange(1, 9, dtype=np.int32),
        "longs": np.arange(1, 9, dtype=np.int64),
        "small": np.arange(1, 9, dtype=np.uint8),
        "big": np.arange(1, 9, dtype=np.uint64),
        "fixed": fixed,
        "z": np.arange(1, 9).astype(np.complex64),
        "fixed_z": fixed_z,
        "nothing": None,
        "points": np.zeros(8, refused_records.POINT),
        "fixed_points": fixed_points,
        "parts": np.zeros(8, PARTS),
        "shapes": np.zeros(8, refused_variants.Shape.dtype),
        "fixed_shapes": fixed_shapes,
        "colors": np.zeros(8, refused_variants.Color.dtype),
        "things": np.zeros(8, [("shape", refused_variants.Shape.dtype)]),
    }
    parameters = inspect.signature(function).parameters.values()
    return [made[p.name] for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]


def refusal(function, given):
    """The error of a launch as text, with the file's name alone."""
    with pytest.raises(sarek.CompileError) as caught:
        sarek.kernel(function)[1, 32](*given)
    file = function.__code__.co_filename
    return f"{type(caught.value).__name__}\n{caught.value}\n".replace(file, Path(file).name)


def test_names_are_unique():
    """No two kernels share a golden file."""
    names = [function.__name__ for function in FUNCTIONS]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_refusal(function, golden):
    """The error names file, line and column; data are untouched; every launch raises it again."""
    given = arguments(function)
    before = [np.copy(value) for value in given]
    shown = refusal(function, given)
    assert refusal(function, given) == shown
    for value, kept in zip(given, before, strict=True):
        assert np.array_equal(value, kept)
    assert f"{Path(function.__code__.co_filename).name}:" in shown
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
