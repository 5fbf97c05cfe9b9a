"""Vectors as arguments of `numba.njit`: their elements on the host, read and written."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import TransferFailed

DEVICES = [device.name for device in sarek.devices()]


@numba.njit
def add_and_sum(x, n):
    total = x.dtype.type(0)
    for i in range(len(x)):
        x[i] += n
        total += x[i]
    return total


@numba.njit
def total(x):
    return x.sum()


@numba.njit
def rows(x):
    return x[1:] * 2, x.shape, x[0]


@sarek.kernel
def double(x):
    i = sarek.global_idx.x
    if i < len(x):
        x[i] *= 2


@pytest.mark.parametrize("device", DEVICES)
def test_functions_and_kernels_take_turns(device):
    """Each sees what the other wrote."""
    x = sarek.arange(10, dtype=np.int64)
    double.launch(x, grid=1, block=16, device=device)
    assert add_and_sum(x, 1) == 2 * 45 + 10
    double.launch(x, grid=1, block=16, device=device)
    assert total(x) == 2 * 100
    assert (x == 2 * (2 * np.arange(10) + 1)).all()


@pytest.mark.parametrize("device", DEVICES)
def test_parts(device):
    """A part is an array of its own layout, and the whole is written through it."""
    x = sarek.arange(10, dtype=np.float32).to(device)
    assert add_and_sum(x[1::2], 1) == 30
    double.launch(x, grid=1, block=16, device=device)
    assert x.tolist() == [0, 4, 4, 8, 8, 12, 12, 16, 16, 20]


def test_results_are_arrays():
    """Of NumPy: views of the vector and new ones."""
    x = sarek.vector(np.arange(6, dtype=np.float64).reshape(3, 2))
    doubled, shape, first = rows(x)
    assert type(doubled) is type(first) is np.ndarray
    assert doubled.tolist() == [[4, 6], [8, 10]]
    assert shape == (3, 2)
    assert first.tolist() == [0, 1]


def test_a_stated_signature():
    """It takes arrays alone: Numba refuses a vector, and takes its elements."""

    @numba.njit("float64(float64[::1])")
    def first(x):
        return x[0]

    with pytest.raises(TypeError, match="No matching definition"):
        first(sarek.ones(3))
    with sarek.ones(3).host() as array:
        assert first(array) == 1


def test_a_failed_transfer_is_raised(monkeypatch):
    """An error on the way to the host ends the call with it, and nothing is run."""

    def fail(storage, first, last):
        raise TransferFailed("planted")

    x = sarek.ones(3)
    monkeypatch.setattr("sarek_numba.runtime.storage.Storage.fetch", fail)
    with pytest.raises(TransferFailed, match="planted"):
        total(x)
