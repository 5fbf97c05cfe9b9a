"""The array zoo through a launch, on every device present: what is read and written, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import sarek_numba as sarek

DEVICES = [device.name for device in sarek.devices()]


@sarek.kernel
def twice_1d(out, x):
    i = sarek.global_idx.x
    if i < out.size:
        out[i] = x[i] + x[i]


@sarek.kernel
def twice_2d(out, x):
    i, j = sarek.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = x[i, j] + x[i, j]


@sarek.kernel
def twice_3d(out, x):
    i, j, k = sarek.grid(3)
    if i < out.shape[0] and j < out.shape[1] and k < out.shape[2]:
        out[i, j, k] = x[i, j, k] + x[i, j, k]


KERNELS = {1: twice_1d, 2: twice_2d, 3: twice_3d}


def _unaligned(count: int) -> Any:
    return np.zeros(count * 4 + 1, np.uint8)[1:].view(np.float32)


def _packed_field(count: int) -> Any:
    return np.zeros(count, np.dtype([("flag", "u1"), ("value", "<f4")]))["value"]


ZOO: dict[str, Callable[[], Any]] = {
    "contiguous": lambda: np.zeros(24, np.float32),
    "offset": lambda: np.zeros(30, np.float32)[5:29],
    "every third": lambda: np.zeros(72, np.float32)[::3],
    "reversed": lambda: np.zeros(24, np.float32)[::-1],
    "reversed by two": lambda: np.zeros(60, np.float32)[50:2:-2],
    "empty": lambda: np.zeros(0, np.float32),
    "empty slice": lambda: np.zeros(9, np.float32)[4:4],
    "one element": lambda: np.zeros(1, np.float32),
    "unaligned": lambda: _unaligned(24),
    "packed field": lambda: _packed_field(24),
    "two axes": lambda: np.zeros((4, 6), np.float32),
    "fortran": lambda: np.zeros((4, 6), np.float32, order="F"),
    "transposed view": lambda: np.zeros((9, 9), np.float32)[2:8, 1:5].T,
    "columns reversed": lambda: np.zeros((4, 6), np.float32)[:, ::-1],
    "both reversed": lambda: np.zeros((8, 12), np.float32)[::-2, ::-2],
    "no rows": lambda: np.zeros((0, 6), np.float32),
    "no columns": lambda: np.zeros((4, 0), np.float32),
    "single axes with odd strides": lambda: as_strided(np.zeros(6, np.float32), (1, 6), (12344, 4)),
    "three axes": lambda: np.zeros((2, 3, 4), np.float32),
    "axes permuted": lambda: np.zeros((4, 2, 3), np.float32).transpose(1, 2, 0),
    "matrix": lambda: np.matrix(np.zeros((4, 6), np.float32)),
}


def launch(device: str, out: Any, x: Any) -> None:
    block = (8, 8, 4)[: out.ndim]
    kernel = KERNELS[out.ndim]
    kernel.launch(out, x, grid=(3, 1, 1)[: out.ndim], block=block, device=device)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ZOO)
def test_zoo(name: str, device: str) -> None:
    """Every element is read where it lies and written where it lies, and nothing else is."""
    x, out = ZOO[name](), ZOO[name]()
    x[...] = np.arange(1, x.size + 1).reshape(x.shape)
    base = out
    while isinstance(base.base, np.ndarray):
        base = base.base
    untouched = base.copy()
    launch(device, out, x)
    assert np.array_equal(out, x + x)
    out[...] = 0
    assert base.tobytes() == untouched.tobytes()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", "?bBhHiIlLqQfd")
def test_element_types(dtype: str, device: str) -> None:
    """Each width goes there and back."""
    x = np.array([0, 1, 1, 0, 1], dtype)
    out = np.zeros_like(x)
    copy.launch(out, x, grid=1, block=8, device=device)
    assert np.array_equal(out, x)


@sarek.kernel
def copy(out, x):
    i = sarek.global_idx.x
    if i < out.size:
        out[i] = x[i]


@pytest.mark.parametrize("device", DEVICES)
def test_same_array_twice(device: str) -> None:
    """In place."""
    x = np.arange(24, dtype=np.float32)
    launch(device, x, x)
    assert x.tolist() == [2 * i for i in range(24)]


@pytest.mark.parametrize("device", DEVICES)
def test_interleaved_views_of_one_array(device: str) -> None:
    """Writing the odd elements leaves the even ones."""
    base = np.arange(24, dtype=np.float32)
    launch(device, base[1::2], base[::2])
    assert base.tolist() == [2 * (i - i % 2) if i % 2 else i for i in range(24)]


@pytest.mark.parametrize("device", DEVICES)
def test_shifted_views_of_one_array(device: str) -> None:
    """Two arguments with a common stretch of memory, of which each uses its own half."""
    base = np.arange(32, dtype=np.float32)
    launch(device, base[16:], base[:20][:16])
    assert base.tolist() == [*range(16), *(2 * i for i in range(16))]


@pytest.mark.parametrize("device", DEVICES)
def test_broadcast_array_is_an_input(device: str) -> None:
    """A stride of 0 repeats a row."""
    row = np.arange(6, dtype=np.float32)
    out = np.zeros((4, 6), np.float32)
    launch(device, out, np.broadcast_to(row, (4, 6)))
    assert np.array_equal(out, np.broadcast_to(2 * row, (4, 6)))


@pytest.mark.parametrize("device", DEVICES)
def test_read_only_and_mapped_arrays(device: str, tmp_path: Any) -> None:
    """A read-only file is an input, a writable one an output."""
    np.arange(24, dtype=np.float32).tofile(tmp_path / "x")
    x = np.memmap(tmp_path / "x", np.float32, "r", shape=(24,))
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=(24,))
    launch(device, out, x)
    out.flush()
    assert np.array_equal(np.fromfile(tmp_path / "out", np.float32), 2 * x)


@sarek.kernel
def scalars(out, a, b, c, d, e):
    out[0] = a
    out[1] = b
    out[2] = c
    out[3] = d
    if e:
        out[4] = 1


@pytest.mark.parametrize("device", DEVICES)
def test_scalars_of_each_kind(device: str) -> None:
    """Python and NumPy numbers, wide and narrow, arrive whole."""
    out = np.zeros(5, np.float64)
    scalars.launch(out, 7, 2**40 + 1, 0.1, np.uint64(2**53), True, grid=1, block=1, device=device)
    assert out.tolist() == [7, 2**40 + 1, 0.1, 2**53, 1]
    scalars.launch(out, -(2**31), np.int8(-3), np.float32(0.1), -1e300, np.False_, grid=1, block=1,
                   device=device)  # fmt: skip
    assert out.tolist() == [-(2**31), -3, float(np.float32(0.1)), -1e300, 1]
