"""Algorithms of `sarek.stdlib` inside captures and functions of `sarek.jit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import GraphError, stdlib
from sarek_numba.runtime import recorders

DEVICES = ["native", "opencl", "interpreter"]
SIZES = (1, 100, 40_000)  # one segment, and several


def first_line(refused):
    return str(refused.value).splitlines()[0]


def numbers(size, dtype, seed=0):
    """Numbers of which all sums and products are exact."""
    made = np.random.default_rng(seed).integers(0, 2 if np.dtype(dtype).kind == "b" else 5, size)
    return made.astype(dtype)


def complexes(size, seed=0):
    return numbers(size, np.float32, seed) + 1j * numbers(size, np.float32, seed + 1)


CALLS: dict[str, Any] = {
    "sum": (stdlib.reduce_sum, lambda size, seed: [numbers(size, np.float32, seed)]),
    "sum of int8": (stdlib.reduce_sum, lambda size, seed: [numbers(size, np.int8, seed)]),
    "prod": (
        stdlib.reduce_prod,
        lambda size, seed: [1 + numbers(size, np.uint16, seed) * (np.arange(size) < 9)],
    ),
    "min": (stdlib.reduce_min, lambda size, seed: [numbers(size, np.float64, seed) - 2]),
    "max": (stdlib.reduce_max, lambda size, seed: [numbers((size, 2), np.int32, seed)]),
    "max of bools": (stdlib.reduce_max, lambda size, seed: [numbers(size, bool, seed)]),
    "inclusive": (stdlib.inclusive_scan, lambda size, seed: [numbers(size, np.float32, seed)]),
    "exclusive": (
        lambda x: stdlib.exclusive_scan(x, "max"),
        lambda size, seed: [numbers(size, np.int64, seed)],
    ),
    "fft": (stdlib.fft, lambda size, seed: [complexes((3, 1 << size.bit_length()), seed)]),
    "ifft": (stdlib.ifft, lambda size, seed: [complexes(1 << size.bit_length(), seed)]),
    "matmul": (
        stdlib.matmul,
        lambda size, seed: [
            numbers((7, size // 40 + 1), np.float32, seed),
            numbers((size // 40 + 1, 5), np.float32, seed + 1),
        ],
    ),
    "transpose": (stdlib.transpose, lambda size, seed: [numbers((size, 3), np.int16, seed)]),
    "histogram": (
        lambda x: stdlib.histogram(x, 7, (-1, 5))[0],
        lambda size, seed: [numbers(size, np.float32, seed)],
    ),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CALLS)
def test_replays_give_what_calls_give(name, device):
    """A vector, of one element where a call gives a number; other elements in each replay."""
    function, make = CALLS[name]
    for size in SIZES if device != "interpreter" else SIZES[:2]:
        with sarek.use_device(device):
            captured = [sarek.vector(array) for array in make(size, 0)]
            with sarek.capture() as g:
                result = function(*captured)
            assert isinstance(result, sarek.Vector)
            for seed in (0, 3, 5):
                arrays = make(size, seed)
                for vector, array in zip(captured, arrays, strict=True):
                    vector[...] = array
                g.replay()
                expected = np.asarray(function(*arrays))
                assert result.dtype == expected.dtype
                assert result.shape == (expected.shape or (1,))
                assert np.asarray(result).tobytes() == expected.tobytes(), (size, seed)


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_jit_have_vectors_from_the_first_call_on(name):
    """Run, captured or replayed."""
    function, make = CALLS[name]
    step = sarek.jit(lambda *given: function(*given))
    for seed in range(4):
        arrays = make(300, seed)
        result = step(*map(sarek.vector, arrays))
        assert isinstance(result, sarek.Vector)
        assert np.asarray(result).tobytes() == np.asarray(function(*arrays)).tobytes()
    assert len(step.graphs) == 1
    assert not recorders.gives_vectors()


@sarek.kernel
def normalise(out, x, total):
    i = sarek.global_idx.x
    if i < len(x):
        out[i] = x[i] / total[0]


def test_results_go_on_to_kernels():
    """A sum on the device divides the elements that it is of, with no read between."""

    @sarek.jit
    def step(x):
        out = sarek.empty(len(x), np.float32)
        normalise.forall(len(x))(out, x, stdlib.reduce_sum(x))
        return out

    for k in range(1, 5):
        assert step(sarek.full(64, k, np.float32))[63] == 1 / 64


def test_reversed_vectors_are_put_in_order():
    """A copy is part of the graph."""
    x = sarek.arange(10, dtype=np.int64)
    with sarek.capture() as g:
        result = stdlib.inclusive_scan(x[::-1])
    for _ in range(2):
        g.replay()
        assert np.array_equal(result, np.cumsum(np.asarray(x)[::-1]))
        x[3] = 50


X = np.arange(12, dtype=np.float32)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: stdlib.sort(x), "sort() is called inside a capture, and what it launches"),
        (lambda x: stdlib.sort_by_key(x, x), "sort_by_key() is called inside a capture, and"),
        (lambda x: stdlib.compact(x, x), "compact() is called inside a capture, and what it"),
        (lambda x: stdlib.bfs(x, x, 0), "bfs() is called inside a capture, and what it"),
        (lambda x: stdlib.histogram(x), "histogram() is called inside a capture, and what it"),
        (
            lambda x: stdlib.inclusive_scan(sarek.zeros(3, bool), "min"),
            "inclusive_scan() is given bools inside a capture",
        ),
        (
            lambda x: stdlib.inclusive_scan(X[::2]),
            "inclusive_scan() is given an array of NumPy inside a capture that is not in C order",
        ),
    ],
)
def test_what_depends_on_elements_is_refused(call, text):
    """In a capture, and in the first call of a function of `sarek.jit`."""
    x = sarek.vector(X)
    with sarek.capture(), pytest.raises(GraphError) as refused:
        call(x)
    assert first_line(refused).startswith(text)
    with pytest.raises(GraphError) as refused:
        sarek.jit(lambda given: call(given))(x)
    assert first_line(refused).startswith(text)
