"""HIP C++ that others wrote, by text and by file, on every HIP device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.errors import InvalidArgument, SourceCompilationError
from sarek_numba.execute import Language

on_hip = pytest.mark.parametrize(
    "device", [d.name for d in sarek.devices() if d.record.backend == "hip"]
)
SAXPY = """
extern "C" __global__ void saxpy(float *y, int y_length, const float *x, int x_length, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < y_length && i < x_length) y[i] += a * x[i];
}
extern "C" __global__ void scaled(float *y, double by) {
    extern __shared__ float row[];
    row[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = by * row[blockDim.x - 1 - threadIdx.x];
}
"""
NUMBERS = np.arange(100, dtype=np.float32)


@on_hip
@pytest.mark.parametrize("make", [np.array, sarek.vector])
def test_hip(device: str, make: Any) -> None:
    """A length follows each array; a Python number is an int32 or a float32."""
    y, x = make(np.ones(100, np.float32)), make(NUMBERS)
    for _ in range(3):
        execute.run_source(device, SAXPY, Language.HIP, "saxpy", [y, x, 2.0], 64, 2)
    assert (np.asarray(y) == 1 + 6 * NUMBERS).all()


@on_hip
def test_dynamic_shared_memory(device: str) -> None:
    """`shared_bytes` is no parameter; all that the device has may be dynamic."""
    for size in (400, sarek.device(device).limits.shared_bytes):
        y, given = sarek.vector(NUMBERS), {"shared_bytes": size, "inject_lengths": False}
        arguments = [y, np.float64(0.5)]
        execute.run_source(device, SAXPY, Language.HIP, "scaled", arguments, 100, 1, **given)
        assert (y == NUMBERS[::-1] / 2).all()


@on_hip
def test_files(device: str, tmp_path: Path) -> None:
    """By the suffix."""
    path = tmp_path / "kernels.hip"
    path.write_text(SAXPY)
    y, x = sarek.ones(100, np.float32), sarek.vector(NUMBERS)
    execute.run_source_file(device, path, "saxpy", [y, x, 2.0], 64, 2)
    assert (y == 1 + 2 * NUMBERS).all()


@on_hip
def test_refusals(device: str) -> None:
    """A kernel that is not there, and text that is wrong, with the compiler's log."""
    with pytest.raises(InvalidArgument, match=r"no kernel 'daxpy'\n  hint: it has saxpy, scaled"):
        execute.run_source(device, SAXPY, Language.HIP, "daxpy", [], 1, 1)
    with pytest.raises(SourceCompilationError, match="error") as error:
        execute.run_source(device, "__global__ void k( {", Language.HIP, "k", [], 1, 1)
    assert "error" in error.value.log
