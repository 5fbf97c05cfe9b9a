"""What the standard library refuses, before anything is launched, and in which words."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import stdlib

X = np.arange(4, dtype=np.int32)
F = np.ones((2, 3), np.float32)
O = np.array([0, 1, 2])  # noqa: E741 - offsets of a graph of two vertices
T = np.array([1, 0])

REFUSALS = {
    "a list": (
        lambda: stdlib.sort([2, 1]),
        sarek.ArgumentTypeError,
        "sort(): 'keys' is a list, not a NumPy array\n  hint: np.asarray(keys)",
    ),
    "complex numbers": (
        lambda: stdlib.sort(np.ones(3, np.complex64)),
        sarek.ArgumentTypeError,
        "sort(): 'keys' has elements of type complex64; it takes bool, int8,",
    ),
    "another byte order": (
        lambda: stdlib.reduce_sum(np.ones(3, ">i4")),
        sarek.ArgumentTypeError,
        "reduce_sum(): 'x' has elements of type >i4; it takes",
    ),
    "a matrix": (
        lambda: stdlib.inclusive_scan(F),
        sarek.InvalidArgument,
        "inclusive_scan(): 'x' has shape (2, 3); it takes an array of 1 axis",
    ),
    "an operation": (
        lambda: stdlib.exclusive_scan(X, "mean"),
        sarek.InvalidArgument,
        "exclusive_scan(): 'op' is 'mean'; it takes 'sum', 'prod', 'min', 'max'",
    ),
    "minimum of nothing": (
        lambda: stdlib.reduce_min(X[:0]),
        sarek.InvalidArgument,
        "reduce_min(): 'x' has no elements, so there is no minimum",
    ),
    "values too short": (
        lambda: stdlib.sort_by_key(X, X[1:]),
        sarek.InvalidArgument,
        "sort_by_key(): 'values' has 3 elements, 'keys' 4",
    ),
    "mask of numbers": (
        lambda: stdlib.compact(X, X),
        sarek.ArgumentTypeError,
        "compact(): 'mask' has elements of type int32; it takes bool",
    ),
    "bins as a float": (
        lambda: stdlib.histogram(X, 2.5),
        sarek.ArgumentTypeError,
        "histogram(): 'bins' is a float, not an integer",
    ),
    "no bins": (
        lambda: stdlib.histogram(X, 0),
        sarek.InvalidArgument,
        "histogram(): 'bins' is 0, which is not in [1, 16777216]",
    ),
    "range backwards": (
        lambda: stdlib.histogram(X, 3, (2, 1)),
        sarek.InvalidArgument,
        "histogram(): the range is (2, 1)",
    ),
    "range of one number": (
        lambda: stdlib.histogram(X, 3, 5),
        sarek.ArgumentTypeError,
        "histogram(): 'range' is 5, not a pair of numbers",
    ),
    "shapes that do not meet": (
        lambda: stdlib.matmul(F, F),
        sarek.InvalidArgument,
        "matmul(): 'a' has shape (2, 3) and 'b' (2, 3), and 3 columns do not meet 2 rows",
    ),
    "two element types": (
        lambda: stdlib.matmul(F, F.T.astype(np.float64)),
        sarek.ArgumentTypeError,
        "matmul(): 'b' has elements of type float64; it takes float32",
    ),
    "no power of two": (
        lambda: stdlib.fft(np.ones(6, np.complex64)),
        sarek.InvalidArgument,
        "fft(): 'x' has rows of 6 elements, which is no power of two",
    ),
    "real numbers": (
        lambda: stdlib.ifft(np.ones(8, np.float32)),
        sarek.ArgumentTypeError,
        "ifft(): 'x' has elements of type float32; it takes complex64, complex128",
    ),
    "a source outside": (
        lambda: stdlib.bfs(O, T, 2),
        sarek.InvalidArgument,
        "bfs(): 'source' is 2, which is not in [0, 1]",
    ),
    "offsets that fall": (
        lambda: stdlib.bfs(np.array([0, 3, 2]), T, 0),
        sarek.InvalidArgument,
        "bfs(): 'offsets' does not rise from 0 to the 2 elements of 'targets'",
    ),
    "a target outside": (
        lambda: stdlib.bfs(O, np.array([1, 7]), 0),
        sarek.InvalidArgument,
        "bfs(): 'targets' holds 1 to 7, and the vertices are 0 to 1",
    ),
    "a device": (lambda: stdlib.sort(X, device="gpu9"), sarek.UnknownDevice, "no device is named"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused(name):
    """The error has the class, names function and argument, and gives a hint."""
    call, error, text = REFUSALS[name]
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)
    assert name == "a device" or "\n  hint: " in str(caught.value)


def test_collectives_outside_of_kernels():
    """A collective called on the host says where it has a meaning."""
    with pytest.raises(sarek.SarekError, match=r"sarek\.block\.reduce_sum has a meaning only"):
        sarek.block.reduce_sum(1)


def test_a_python_number_has_no_dtype():
    """A collective of a Python number is refused, with the conversion as hint."""

    @sarek.kernel
    def weak(out):
        out[0] = sarek.block.reduce_sum(1)

    with pytest.raises(sarek.UnknownName, match="has no dtype") as caught:
        weak[1, 4](np.zeros(1, np.int32))
    assert "hint: convert it first, as in sarek.int32(x)" in str(caught.value)


def test_divergent_collective_is_refused():
    """A collective that only some threads reach is a divergent barrier."""

    @sarek.kernel
    def divergent(out):
        t = sarek.thread_idx.x
        if t < 2:
            out[t] = sarek.block.reduce_sum(out[t])

    with pytest.raises(sarek.DivergentBarrier):
        divergent[1, 4](np.zeros(4, np.int32))
