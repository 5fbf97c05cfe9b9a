"""What drivers have of compiled kernels goes with these: modules of CUDA and HIP, on fakes, and
pipelines of Vulkan. Nothing goes that a device may still run."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_cuda.runtime import CudaDriver
from sarek_hip.runtime import HipDriver
from sarek_numba import execute
from sarek_numba.runtime import cache
from sarek_numba.runtime.cache import clear_launch_cache
from sarek_numba.runtime.registry import Device
from sarek_vulkan import pipelines
from sarek_vulkan.logical import Logical
from tests import fake_hip
from tests.conformance.generated import kernel
from tests.fake_cuda import FakeApi
from tests.unit import vulkan_kit

MOST = 2


def added(number: int) -> Any:
    """A kernel like no other."""
    body = ["i = sarek.global_idx.x", f"out[i] = out[i] + {number}"]
    return kernel(f"let_go_{number}", ["out"], body)


def launched(device: Device, number: int) -> None:
    """One launch of a kernel that nobody has behind it."""
    out = np.zeros(8, np.int32)
    added(number).launch(out, grid=1, block=8, device=device)
    assert out.tolist() == [number] * 8


@pytest.fixture(params=["cuda", "hip", *vulkan_kit.devices()])
def counted(request: Any, monkeypatch: Any) -> Any:
    """A device, and `living()`: how many kernels its driver has of those made from now on."""
    clear_launch_cache()
    gc.collect()
    monkeypatch.setattr(cache, "MOST_KEPT", MOST)
    if request.param == "cuda":
        api = FakeApi()
        device, calls = Device(CudaDriver(api, 0, "cuda:fake")), api.calls
    elif request.param == "hip":
        library = fake_hip.Library()
        device = Device(HipDriver(fake_hip.api(library), 0, "hip:fake"))
        calls = library.fake.calls
    else:
        device, calls = vulkan_kit.devices()[request.param], Counter()
        device.synchronize()
        launched(device, 0)  # what was made before is gone
        clear_launch_cache()
        gc.collect()
        watch(monkeypatch, calls)
    before = calls["load"] - calls["unload"]
    yield device, lambda: calls["load"] - calls["unload"] - before
    clear_launch_cache()


def watch(monkeypatch: Any, calls: Counter[str]) -> None:
    """Count pipelines of Vulkan that are made and destroyed."""
    make, destroy = Logical.pipeline, pipelines._destroy

    def making(self: Logical, *given: Any) -> Any:
        calls["load"] += 1
        return make(self, *given)

    def destroying(logical: Any, module: Any, kept: Any, made: Any) -> None:
        calls["unload"] += len(made)
        destroy(logical, module, kept, made)

    monkeypatch.setattr(Logical, "pipeline", making)
    monkeypatch.setattr(pipelines, "_destroy", destroying)


def test_code_goes_with_its_kernel(counted: Any) -> None:
    """However many kernels are made one after the other, the driver has some of them."""
    device, living = counted
    numbers = []
    for number in range(1, 16):
        launched(device, number)
        gc.collect()
        numbers.append(living())
    assert numbers[0] == 1
    assert max(numbers) <= MOST + 2  # one is noted, and one may be in a command buffer


def test_code_stays_while_it_may_run(counted: Any) -> None:
    """Launches in a stream have their kernels until they are done, and not longer than that."""
    device, living = counted
    vector, stream = sarek.zeros(8, np.int32), device.stream()
    for number in (101, 102):
        added(number).launch(vector, grid=1, block=8, device=device, stream=stream)
    clear_launch_cache()
    gc.collect()
    if device.record.backend != "vulkan":  # which may have done them by now
        assert living() == 2
    assert np.asarray(vector).tolist() == [203] * 8
    stream.synchronize()
    for number in (104, 105):
        clear_launch_cache()
        gc.collect()
        launched(device, number)
    assert living() <= 2


@pytest.mark.parametrize("streamed", [True, False])
def test_no_module_goes_while_a_device_is_busy(streamed: bool) -> None:
    """Unloading may wait for what the host holds back: it comes when there is nothing to do."""
    api = FakeApi()
    device = Device(CudaDriver(api, 0, "cuda:fake"))
    driver: Any = device.driver
    vector, stream = sarek.zeros(8, np.int32), device.stream() if streamed else None
    launched(device, 301)
    made = added(302)
    made.launch(vector, grid=1, block=8, device=device, stream=stream)
    device.synchronize()
    raw = driver.stream.raw if stream is None else stream.queue.handle.raw
    open_gate = api.gate(raw)
    made.launch(vector, grid=1, block=8, device=device, stream=stream)
    execute.window.flush()
    del made
    clear_launch_cache()
    gc.collect()
    noted = len(driver.retired)
    assert noted > 0
    driver.retired.let_go(driver)
    assert (api.calls["unload"], len(driver.retired)) == (0, noted)
    open_gate()
    assert np.asarray(vector).tolist() == [604] * 8
    clear_launch_cache()
    gc.collect()
    driver.retired.let_go(driver)
    assert (api.calls["unload"], len(driver.retired)) == (2, 0)


@vulkan_kit.on_vulkan
def test_command_buffers_have_their_pipelines(device: Device, monkeypatch: Any) -> None:
    """Until the device has done them."""
    calls: Counter[str] = Counter()
    watch(monkeypatch, calls)
    driver, memory = vulkan_kit.driver_of(device), np.zeros(8, np.int32)
    buffer = driver.bind(memory.view(np.uint8), read=True, written=True)
    program = driver.prepare(added(401).ir(sarek.int32[:]))
    mark = program.enqueue(driver.lane, (1, 1, 1), (8, 1, 1), 0, [buffer])
    del program
    gc.collect()
    assert (calls["load"], calls["unload"]) == (1, 0)
    driver.lane.wait(mark)
    gc.collect()
    assert (calls["load"], calls["unload"]) == (1, 1)
    driver.unbind(buffer)
    assert memory.tolist() == [401] * 8


def test_graphs_have_their_kernels(counted: Any) -> None:
    """Also those that they had before, while a replay of these may be under way."""
    device, living = counted
    vector = sarek.zeros(8, np.int32)
    with sarek.use_device(device), sarek.capture() as g:
        added(201)[1, 8](vector)
        added(202)[1, 8](vector)
    for k in range(1, 4):
        clear_launch_cache()
        gc.collect()
        g.replay()
        launched(device, 210 + k)
        assert np.asarray(vector).tolist() == [403 * k] * 8
    del g
    for number in (221, 222, 223):
        clear_launch_cache()
        gc.collect()
        launched(device, number)
    assert living() <= 3
