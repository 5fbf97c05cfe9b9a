"""Copies between devices of one kind, without the host: fakes of two CUDA and two HIP devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_cuda.runtime import CudaDriver
from sarek_hip.runtime import HipDriver
from sarek_numba import execute
from sarek_numba.realize import copies, several
from sarek_numba.runtime.registry import Device
from tests import fake_hip
from tests.fake_cuda import FakeApi

N = 1000


@sarek.kernel
def double(x: Any, _device_num: Any) -> None:
    i = sarek.global_idx.x
    if i < len(x):
        x[i] = 2 * x[i] + _device_num


@pytest.fixture(params=["cuda", "hip"])
def pair(request: pytest.FixtureRequest) -> Iterator[list[Device]]:
    """Two devices of their own, which no enumeration shows."""
    if request.param == "cuda":
        api = FakeApi(devices=2)
        drivers: list[Any] = [CudaDriver(api, k, f"cuda:fake{k}") for k in range(2)]
    else:
        library = fake_hip.Library(devices=2)
        hip = fake_hip.api(library)
        drivers = [HipDriver(hip, k, f"hip:fake{k}") for k in range(2)]
        api = library.fake
    yield [Device(driver) for driver in drivers]
    execute.window.configure(enabled=True)


def calls_of(device: Device) -> Any:
    """How often the fake's functions were called."""
    api = device.driver.access.api
    return (api if isinstance(api, FakeApi) else api._hip.fake).calls


@pytest.mark.parametrize("same", [False, True])
def test_bytes_go_from_device_to_device(pair, same):
    """What a kernel wrote on one is copied to the other, in part too; no byte is downloaded."""
    here, there = pair[0], pair[0 if same else 1]
    x, y = sarek.arange(N, dtype=np.float32), sarek.zeros(N, np.float32)
    double.launch(x, grid=4, block=256, device=here)
    copies.statistics.reset()
    downloads, calls = execute.counters.downloads, calls_of(there)["copy_between"]
    copies.copy(there, y[100:300], x[50:250])
    assert (copies.statistics.native, copies.statistics.through_host) == (1, 0)
    assert execute.counters.downloads == downloads
    assert calls_of(there)["copy_between"] == calls + 1
    assert y[100:300].is_current(there)
    expected = np.zeros(N)
    expected[100:300] = 2 * np.arange(50, 250)
    assert np.array_equal(y, expected)


def test_parts_are_reduced_by_copies_between_peers(pair):
    """A launch on both, and the sum of the parts, which touches the host with no byte."""
    x = sarek.shard(np.arange(N, dtype=np.float32), pair, axis=None)
    double.forall(x)(x)
    copies.statistics.reset()
    downloads = execute.counters.downloads
    sarek.all_reduce(x)
    assert execute.counters.downloads == downloads
    assert copies.statistics.through_host == 0
    for part, device in zip(x.parts, pair, strict=True):
        assert part.is_current(device)
        assert np.array_equal(part, 4 * np.arange(N) + 1)


def test_devices_of_another_kind_go_through_the_host(pair):
    """The memory of the destination cannot read it."""
    x = sarek.shard(np.arange(N, dtype=np.float32), [pair[0], "opencl"], axis=None)
    y = sarek.shard(np.zeros(N, np.float32), ["opencl", pair[1]], axis=None)
    double.forall(x)(x)
    copies.statistics.reset()
    several.copy_shards(y, x)
    assert (copies.statistics.native, copies.statistics.through_host) == (0, 2)
    assert y.parts[1][1] == 3
    assert y.parts[0][1] == 2
