"""Vectors as arrays of libraries of CUDA, on every CUDA device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.execute import Language
from sarek_numba.runtime.cache import counters

DEVICES = [d.name for d in sarek.devices() if d.record.backend == "cuda"]
on_cuda = pytest.mark.parametrize("device", DEVICES)
FILL = """
extern "C" __global__ void fill(float *const *given, float value) {
    (*given)[threadIdx.x] = value;
}
"""
NUMBERS = np.arange(8, dtype=np.float32)


@sarek.kernel
def double(x):
    i = sarek.global_idx.x
    if i < len(x):
        x[i] += x[i]


def written(device: str, found: dict[str, Any], value: float) -> None:
    """Have somebody else write 8 elements at an address."""
    addresses = np.array([found["data"][0]], np.uint64)
    given = [sarek.vector(addresses), np.float32(value)]
    execute.run_source(device, FILL, Language.CUDA, "fill", given, 8, 1, inject_lengths=False)
    sarek.device(device).synchronize()


@on_cuda
@pytest.mark.parametrize("enabled", [True, False], ids=["window", "at once"])
def test_what_another_library_writes_is_seen(device: str, enabled: bool) -> None:
    """It finds what launches wrote, without a copy to the host; the host sees what it writes."""
    execute.window.configure(enabled=enabled)
    try:
        x = sarek.vector(NUMBERS)
        double.launch(x, grid=1, block=8, device=device)
        downloads = counters.downloads
        found = x.__cuda_array_interface__
        assert counters.downloads == downloads
        assert not x.is_current()
        assert {k: found[k] for k in ("version", "shape", "typestr", "strides", "stream")} == {
            "version": 3,
            "shape": (8,),
            "typestr": "<f4",
            "strides": None,
            "stream": None,
        }
        assert found["data"] == (execute.device_buffer(x, device), False)
        assert (x == 2 * NUMBERS).all()
        written(device, found, 7)
        execute.mark_stale([x], device)
        assert (x == 7).all()
    finally:
        execute.window.configure(enabled=True)


@on_cuda
def test_parts_strides_and_read_only(device: str) -> None:
    """A part begins where it does; what can be read only leaves the host current."""
    whole = sarek.vector(np.arange(24, dtype=np.float32).reshape(4, 6))
    part = whole[1:, ::2].__cuda_array_interface__
    base = execute.device_buffer(whole, device)
    assert part["data"][0] == base + 6 * 4
    assert part["strides"] == (24, 8)
    assert part["shape"] == (3, 3)
    assert whole.T.__cuda_array_interface__["strides"] == (4, 24)
    x = sarek.vector(NUMBERS)
    frozen = sarek.Vector(x._storage, np.asarray(x))
    assert frozen.__cuda_array_interface__["data"][1]
    assert x.is_current()
    assert sarek.zeros(0, np.float32).__cuda_array_interface__["data"][0] == 0


@on_cuda
def test_elements_without_a_name(device: str) -> None:
    """Records are no elements of the protocol."""
    assert hasattr(sarek.zeros(3, np.complex64), "__cuda_array_interface__")
    assert not hasattr(sarek.zeros(3, [("a", "f4")]), "__cuda_array_interface__")


def test_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no such attribute, so that nobody takes a vector for memory of CUDA."""
    monkeypatch.setenv("SAREK_DISABLE", "cuda")
    assert not hasattr(sarek.zeros(3, np.float32), "__cuda_array_interface__")


@on_cuda
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_libraries(device: str, library: str) -> None:
    """Without a copy: what they write, the vector has."""
    module = pytest.importorskip(library)
    if sarek.device(device).record.description.startswith("Fake"):
        pytest.skip("its memory is the host's")
    x = sarek.vector(NUMBERS)
    double.launch(x, grid=1, block=8, device=device)
    theirs = module.asarray(x) if library == "cupy" else module.as_tensor(x, device="cuda")
    assert theirs.sum().item() == 2 * NUMBERS.sum()
    theirs += 1
    (module.cuda.Stream.null if library == "cupy" else module.cuda).synchronize()
    execute.mark_stale([x], device)
    assert (x == 2 * NUMBERS + 1).all()
