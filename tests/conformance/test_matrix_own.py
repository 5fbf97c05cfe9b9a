"""Products that devices compute by kernels of their own: exact, accurate, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.matrix import testing
from sarek_numba.runtime.products import MakesProducts
from tests.executors import devices
from tests.own_products import (
    BF16,
    F16,
    F32,
    I8,
    I32,
    U8,
    Room,
    batched,
    is_own,
    layer,
    multiply,
    multiply_bytes,
    run,
    wide,
)

DEVICES = [
    name
    for name in devices()
    if isinstance(sarek.device(name).driver, MakesProducts)
    and ("architecture", "sm_90") in sarek.device(name).record.identity
]
on_devices = pytest.mark.parametrize("device", DEVICES)
SIZES = [
    (64, 64, 64),
    (1, 8, 16),
    (65, 67, 65),
    (129, 257, 100),
    (300, 513, 1000),
    (1111, 777, 333),
]
EACH = [(True, True), (False, False), (True, False), (False, True)]


@on_devices
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [F16, BF16])
def test_floats(device: str, dtype: Any, size: tuple[int, int, int]) -> None:
    """Any orders of indices; nothing around C is written, nothing around A and B is read."""
    m, n, k = size
    for turned in EACH:
        a, b = Room((m, k), dtype, 1, turned=turned[0]), Room((k, n), dtype, 2, turned=turned[1])
        c = Room((m, n), F32, 3)
        with testing.small_ones_too():
            assert is_own(
                run(multiply, (c.matrix, a.matrix, b.matrix), sarek.device(device), (m, n))
            )
        assert (c.matrix == wide(a.matrix) @ wide(b.matrix)).all()
        assert c.is_whole()


@on_devices
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_bytes(device: str, size: tuple[int, int, int]) -> None:
    m, n, k = size
    for types in ((I8, I8), (U8, I8), (I8, U8), (U8, U8)):
        a, b, c = (
            Room((m, k), types[0], 1),
            Room((k, n), types[1], 2, turned=True),
            Room((m, n), I32),
        )
        with testing.small_ones_too():
            args = c.matrix, a.matrix, b.matrix
            assert is_own(run(multiply_bytes, args, sarek.device(device), (m, n)))
        assert (c.matrix == wide(a.matrix) @ wide(b.matrix)).all()
        assert c.is_whole()


@on_devices
def test_what_becomes_of_a_sum(device: str) -> None:
    m, n, k = 300, 190, 170
    a, b, c = Room((m, k), F16, 1), Room((k, n), F16, 2), Room((m, n), F16, 3)
    bias = np.arange(n, dtype=F32)
    ours = 2 * (wide(a.matrix) @ wide(b.matrix)) - 3 * wide(c.matrix) + bias
    ours = np.maximum(ours + np.arange(m)[:, None], 0)
    args = c.matrix, a.matrix, b.matrix, bias, F32(2), F32(-3)
    assert is_own(run(layer, args, sarek.device(device), (n, m)))
    assert (c.matrix == ours.astype(F16)).all()
    assert c.is_whole()


@on_devices
def test_batches(device: str) -> None:
    a, b, c = Room((5, 165, 140), F16, 1), Room((140, 270), F16, 2), Room((5, 165, 270), F32, 3)
    args = c.matrix, a.matrix, b.matrix
    assert is_own(run(batched, args, sarek.device(device), (165, 270, 5)))
    assert (c.matrix == wide(a.matrix) @ wide(b.matrix)).all()
    assert c.is_whole()


@on_devices
@pytest.mark.parametrize("dtype", [F16, BF16])
@pytest.mark.parametrize("k", [64, 1000, 4096])
def test_accuracy(device: str, dtype: Any, k: int) -> None:
    """The contract of sums in float32; sums in float16 and a sum that lacks a term break it."""
    m, n = 256, 512
    rng = np.random.default_rng(k)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), F32)
    assert is_own(run(multiply, (c, a, b), sarek.device(device), (m, n)))
    exact = wide(a) @ wide(b)
    bound = k * 2.0**-24 * (np.abs(wide(a)) @ np.abs(wide(b)))

    def keeps(result: Any) -> bool:
        return bool((np.abs(result.astype(np.float64) - exact) <= bound).all())

    assert keeps(c)
    halves = np.zeros((m, n), F16)
    for at in range(0, k, 16):
        part = wide(a[:, at : at + 16]) @ wide(b[at : at + 16])
        halves = (halves.astype(np.float64) + part).astype(F16)
    assert not keeps(halves)
    assert not keeps((exact - wide(a[:, :1]) @ wide(b[:1])).astype(F32))
