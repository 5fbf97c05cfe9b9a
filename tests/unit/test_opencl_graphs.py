"""Graphs on OpenCL devices with command buffers, as Intel's: what is recorded and changed when."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_opencl import graphs
from sarek_opencl.command_buffers import driver as command_buffers
from tests.unit.realize_kit import N, floats, scale


@sarek.kernel
def add(out: Any, x: Any) -> None:
    i = sarek.global_idx.x
    if i < len(out) and i < len(x):
        out[i] += x[i]


@sarek.kernel
def shared_sum(out: Any, x: Any) -> None:
    """Sums of blocks, through dynamic shared memory."""
    parts = sarek.shared.dynamic(0, sarek.float32)
    t = sarek.thread_idx.x
    parts[t] = x[sarek.global_idx.x]
    sarek.barrier()
    if t == 0:
        total = sarek.float32(0)
        for k in range(len(parts)):
            total += parts[k]
        out[sarek.block_idx.x] = total


@pytest.fixture
def device():
    """A device that has them."""
    for each in sarek.devices():
        if each.name.startswith("opencl") and hasattr(each.driver, "graphs"):
            with sarek.use_device(each):
                yield each
            return
    pytest.skip("no OpenCL device here has command buffers")


@pytest.fixture
def calls(monkeypatch):
    """How often something was recorded, changed, given up."""
    gc.collect()  # graphs of other tests
    found = {"create": 0, "change": 0, "release": 0}
    for name in found:
        original = getattr(command_buffers.Calls, name)

        def counted(self, *given, name=name, original=original):
            found[name] += 1
            return original(self, *given)

        monkeypatch.setattr(command_buffers.Calls, name, counted)
    return found


def test_launches_are_changed_where_they_are_recorded(device, calls):
    """Numbers, grids and vectors; nothing is done for a replay of the same."""
    x, out = floats(), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, out=out) as g:
        n, a = g.variable("n", N), g.variable("a", 2.0)
        scale.forall(n)(out, x, n, a)
        add[4, 16](out, x)
    for given, changes in [({}, 0), ({}, 0), ({"a": 3.0}, 1), ({"a": 3.0, "n": 20}, 2), ({}, 3)]:
        out.fill(0.0)
        g.replay(**given)
        count = given.get("n", N)
        expected = np.zeros(N)
        expected[:count] = given.get("a", 2.0) * np.arange(count)
        assert np.array_equal(out, expected + np.arange(N))
        assert (calls["create"], calls["change"]) == (1, changes)
        assert g.mechanism == "device"
    g.replay(x=floats(5), out=out)
    assert out[1] == 18
    assert (calls["create"], calls["change"]) == (1, 4)


def test_what_cannot_be_changed_is_recorded_anew(device, calls):
    """A fill of another number; what was recorded before is given up."""
    out = sarek.zeros(N, np.float32)
    with sarek.capture(out=out) as g:
        a = g.variable("a", 1.0)
        out.fill(a)
        add[4, 16](out, out)
    for a, times in [(1.0, 1), (1.0, 1), (2.5, 2), (4.0, 3)]:
        g.replay(a=a)
        assert np.array_equal(out, np.full(N, 2 * a))
        assert calls == {"create": times, "change": 0, "release": times - 1}


def test_replays_that_are_under_way_keep_what_they_had(device):
    """Another command buffer takes the place of one that is under way."""
    n = 1 << 18
    x, out = sarek.ones(n, np.float32), sarek.zeros(n, np.float32)
    with sarek.capture(x=x, out=out) as g:
        a = g.variable("a", 1.0)
        half = sarek.zeros(n, np.float32)
        scale[n // 64, 64](half, x, n, a)
        add[n // 64, 64](out, half)
    for k in range(12):
        g.replay(a=float(10 ** (k % 4)))
    del g, half, x
    gc.collect()
    assert np.array_equal(out, np.full(n, 3333.0))


def test_parts_that_no_buffer_may_begin_at_are_copied(device):
    """And brought back, within the command buffer."""
    out, x = sarek.zeros(N + 3, np.float32), floats(0, N + 5)
    with sarek.capture(out=out, x=x) as g:
        a = g.variable("a", 1.0)
        scale[4, 16](out[3:], x[5:], N, a)
        add[4, 16](out[1 : N + 1], x[5:])
    total = np.zeros(N + 3, np.float32)
    for a in (1.0, 1.0, 2.0):
        g.replay(a=a)
        total[3:] = a * np.arange(5, N + 5)
        total[1 : N + 1] += np.arange(5, N + 5)
        assert np.array_equal(out, total)
        assert g.mechanism == "device"


def test_dynamic_shared_memory_follows_the_block(device, calls):
    """A launch is given another block and other shared memory where it is recorded."""
    x, out = floats(), sarek.zeros(8, np.float32)
    with sarek.capture(x=x, out=out) as g:
        threads = g.variable("threads", 16)
        shared_sum.launch(out, x, grid=N // threads, block=threads, shared_bytes=4 * threads)
    for threads in (16, 32, 8):
        out.fill(0.0)
        g.replay(threads=threads)
        expected = np.arange(N).reshape(-1, threads).sum(1)
        assert np.array_equal(np.array(out)[: len(expected)], expected)
    assert (calls["create"], calls["change"]) == (1, 2)


def test_what_a_graph_made_goes_with_it(device, calls):
    """When it goes."""
    x, out = floats(), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, out=out) as g:
        add[4, 16](out, x)
    g.replay()
    del g
    device.synchronize()
    gc.collect()
    assert calls == {"create": 1, "change": 0, "release": 1}
    assert np.array_equal(out, np.arange(N))


def test_without_mutable_dispatches_all_is_recorded_anew(device, calls, monkeypatch):
    """With the same results."""
    monkeypatch.setattr(device.driver.graphs._calls, "is_mutable", False)
    x, out = floats(), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, out=out) as g:
        a = g.variable("a", 1.0)
        scale[4, 16](out, x, N, a)
    for a in (1.0, 2.0, 2.0):
        g.replay(a=a)
        assert np.array_equal(out, a * np.arange(N, dtype=np.float32))
    assert calls == {"create": 2, "change": 0, "release": 1}


def test_errors_of_the_driver_are_told(device):
    """By the function that failed."""
    calls = device.driver.graphs._calls
    with (
        pytest.raises(sarek.BackendError, match="clFinalizeCommandBufferKHR failed"),
        graphs.driver.check("recording a graph", device.driver.device),
    ):
        calls.finalize(0)


@pytest.mark.parametrize("version", [(0, 9, 4), None])
def test_devices_without_the_extension_have_no_graphs(device, version, monkeypatch):
    """Nor those whose version of it has other parameters."""
    found = []
    if version is not None:
        major, minor, patch = version
        number = major << 22 | minor << 12 | patch
        found = [SimpleNamespace(name="cl_khr_command_buffer", version=number)]
    monkeypatch.setattr(command_buffers, "_extensions", lambda device: found)
    assert command_buffers.calls_of.__wrapped__(device.driver.device) is None
