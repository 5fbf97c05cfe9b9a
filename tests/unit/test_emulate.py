"""The CPython reference: what a thread sees, barriers, and the conversions of the language."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sarek_numba as sarek


def run(function, *arguments, grid=1, block=1, shared_bytes=0):
    sarek.emulate(function)[grid, block, None, shared_bytes](*arguments)


def test_coordinates():
    """Every coordinate along every axis."""

    def kernel(out):
        x, y, z = sarek.grid(3)
        out[z, y, x] = (
            sarek.thread_idx.x
            + 10 * sarek.block_idx.y
            + 100 * sarek.block_dim.z
            + 1000 * sarek.grid_dim.x
            + 10000 * sarek.gridsize(3)[1]
        )

    out = np.zeros((2, 6, 4), np.int64)
    run(kernel, out, grid=(2, 3, 1), block=(2, 2, 2))
    z, y, x = np.mgrid[:2, :6, :4]
    assert (out == x % 2 + 10 * (y // 2) + 200 + 2000 + 60000 + 0 * z).all()


def test_barrier_orders_shared_memory():
    """Every thread sees what the others wrote before the barrier; blocks do not share."""

    def kernel(out):
        tile = sarek.shared.array(4, sarek.int32)
        t = sarek.thread_idx.x
        tile[t] = t + 10 * sarek.block_idx.x
        sarek.barrier()
        out[sarek.global_idx.x] = tile[3 - t]

    out = np.zeros(8, np.int32)
    run(kernel, out, grid=2, block=4)
    assert out.tolist() == [3, 2, 1, 0, 13, 12, 11, 10]


def test_divergent_barrier_is_reported():
    """A thread that ends while others wait is an error, not a hang."""

    def kernel(out):
        if sarek.thread_idx.x > 0:
            sarek.barrier()

    with pytest.raises(sarek.BarrierDivergence, match="1 of 3 threads"):
        run(kernel, np.zeros(1), block=3)


def test_stores_convert():
    """Floats saturate, NaN gives 0; a Python int that does not fit raises, as in NumPy."""

    def kernel(out, x, k):
        out[0] = x[0]
        out[1] = x[1]
        out[2] = np.int32(x[2])
        if k:
            out[3] = k

    out = np.full(4, 7, np.uint8)
    run(kernel, out, np.array([300.7, np.nan, -5]), 0)
    assert out.tolist() == [255, 0, 251, 7]
    with pytest.raises(OverflowError):
        run(kernel, out, np.array([1.0, 1.0, 1.0]), 300)


def test_functions_keep_types():
    """math and NumPy functions compute at the type of their operand; weak values stay weak."""
    seen = []

    def kernel(x):
        seen.append(math.sqrt(x[0]))
        seen.append(math.sqrt(2))
        seen.append(np.sqrt(2))
        seen.append(np.sqrt(np.int8(4)))
        seen.append(x[0] * 2.0)
        seen.append(math.floor(x[0]))
        seen.append(math.log(0.0))
        seen.append(sarek.math.rsqrt(x[0]))

    run(kernel, np.array([4.5], np.float32))
    kinds = [type(value) for value in seen]
    assert kinds == [
        np.float32, float, np.float64, np.float32, np.float32, int, float, np.float32,
    ]  # fmt: skip
    assert seen[5] == 4
    assert seen[6] == -math.inf


def test_annotation_states_the_type():
    """A number given for a stated parameter has that type."""
    seen = []

    def kernel(n: sarek.int32, s: sarek.float32, w):
        seen.extend([n, s, w])

    run(kernel, 3, 2, 5)
    assert [type(value) for value in seen] == [np.int32, np.float32, int]


def test_atomics_return_the_old_value():
    """Each operation, in order of threads."""

    def kernel(a, old):
        t = sarek.thread_idx.x
        old[t] = sarek.atomic.add(a, 0, 2)
        sarek.atomic.max(a, 1, t)
        sarek.atomic.cas(a, 2, 0, t + 1)
        sarek.atomic.store(a, 3, sarek.atomic.load(a, 3) + 1)

    a, old = np.zeros(4, np.int32), np.zeros(3, np.int32)
    run(kernel, a, old, block=3)
    assert a.tolist() == [6, 2, 1, 3]
    assert old.tolist() == [0, 2, 4]


def test_the_original_function_is_untouched():
    """Emulation works on a copy: the module's names keep their meaning."""
    before = dict(test_functions_keep_types.__globals__)

    def kernel(x):
        x[0] = max(x[0], 3)

    x = np.ones(1, np.int32)
    run(kernel, x)
    assert x[0] == 3
    assert kernel.__globals__["math"] is math
    assert test_functions_keep_types.__globals__["np"] is before["np"]
