"""CUDA graphs on the fake driver: which calls are made for them, and what they compute."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_cuda.graph_calls import GraphCalls
from sarek_cuda.runtime import CudaDriver
from sarek_numba import errors
from sarek_numba.execute import window
from sarek_numba.runtime.registry import Device
from tests.fake_cuda import FakeApi
from tests.unit.realize_kit import N, floats, scale


@sarek.kernel
def add(out: Any, x: Any) -> None:
    i = sarek.global_idx.x
    if i < len(out) and i < len(x):
        out[i] += x[i]


@pytest.fixture
def api():
    return FakeApi()


@pytest.fixture
def device(api):
    """A device of its own, which is the default."""
    which = Device(CudaDriver(api, 0, "cuda:fake"))
    with sarek.use_device(which):
        yield which


def called(api, *names):
    """What was called since the last time, of some names."""
    found = [each for each in api.graphs.log if each[0] in (names or (each[0],))]
    api.graphs.log.clear()
    return found


def diamond():
    """A fill, two launches that need it and not each other, and a copy that needs both."""
    x, left, right = floats(), sarek.zeros(N, np.float32), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, left=left, right=right) as g:
        a = g.variable("a", 2.0)
        x.fill(3.0)
        scale[4, 16](left, x, N, a)
        scale[4, 16](right, x, N, 5.0)
        left[: N // 2] = right[N // 2 :]
    return g, x, left, right


def test_nodes_are_behind_those_that_they_conflict_with(api, device):
    """And behind no others; a replay is one call."""
    g, _, left, right = diamond()
    g.replay()
    assert called(api) == [
        ("create",),
        ("add", "fill", 0, ()),
        ("add", "launch", 1, (0,)),
        ("add", "launch", 2, (0,)),
        ("add", "copy", 3, (1, 2)),
        ("instantiate",),
        ("launch",),
    ]
    assert np.array_equal(left, [15.0] * (N // 2) + [6.0] * (N // 2))
    assert np.array_equal(right, np.full(N, 15))


def test_nothing_is_updated_when_nothing_changed(api, device):
    """Only a node with other parameters is told of them."""
    g, x, left, _ = diamond()
    g.replay()
    called(api)
    uploads = api.calls["copy_in"]
    for _ in range(3):
        g.replay()
    assert called(api) == [("launch",)] * 3
    g.replay(a=4.0)
    assert called(api) == [("set", "launch", 1), ("launch",)]
    g.replay(a=4.0)
    g.replay(a=4.0, x=x)
    assert called(api) == [("launch",)] * 2
    g.replay(a=4.0, x=floats(1))
    assert called(api) == [
        ("set", "fill", 0),
        ("set", "launch", 1),
        ("set", "launch", 2),
        ("launch",),
    ]
    assert left[N - 1] == 12
    assert api.calls["copy_in"] == uploads + 1  # of the other input
    assert api.calls["launch"] == 0, "the launches are in the graph"


def test_replays_that_were_begun_keep_what_they_had(api, device):
    """Streams are lazy here: three replays wait when the first of them is done."""
    x, out = floats(), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, out=out) as g:
        a = g.variable("a", 1.0)
        half = sarek.zeros(N, np.float32)
        scale[4, 16](half, x, N, a)
        add[4, 16](out, half)
    for a in (1.0, 10.0, 100.0):
        g.replay(a=a, x=floats())
    del g, half, x
    gc.collect()
    assert np.array_equal(out, 111.0 * np.arange(N))


def test_a_graph_waits_its_turn(api, device):
    """Launches before it are in front, others behind it, and streams wait where they must."""
    x, out = floats(), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, out=out) as g:
        add[4, 16](out, x)
    stream = device.stream()
    expected = np.zeros(N)
    now = np.arange(N, dtype=np.float64)
    for enabled in (True, False):
        window.configure("cuda", enabled=enabled)
        try:
            for _ in range(2):
                add[4, 16](x, out)
                g.replay()
                add.launch(x, out, grid=4, block=16, stream=stream)
                g.replay(wait=True)
                for _ in range(2):
                    now += expected
                    expected += now
        finally:
            window.configure("cuda", enabled=True)
    assert np.array_equal(out, expected)


def test_words_of_eight_bytes_are_copied(api, device):
    """The driver fills with words of four bytes at most."""
    out = sarek.zeros(16, np.float64)
    with sarek.capture(out=out) as g:
        out.fill(1.5)
        out[:4] = 0.0
        out[4:6] = -1.5
    g.replay()
    assert np.array_equal(out, [0.0] * 4 + [-1.5] * 2 + [1.5] * 10)
    assert [kind for _, kind, *_ in called(api, "add")] == ["copy", "fill", "copy"]


def test_arrays_of_the_host_are_read_as_they_are_at_each_replay(api, device):
    """They are brought again only if they changed; one that is begun has what it was begun with."""
    array, out = np.ones(N, np.float32), sarek.zeros(N, np.float32)
    with sarek.capture(array=array, out=out) as g:
        add[4, 16](out, array)
    g.replay()
    uploads = api.calls["copy_in"]
    g.replay()
    assert api.calls["copy_in"] == uploads
    array[:] = 10
    g.replay()
    array[:] = 1000
    assert api.calls["copy_in"] == uploads + 1
    assert np.array_equal(out, np.full(N, 12))


def test_a_node_that_becomes_another_has_the_graph_made_anew(api, device):
    """So has one that the driver does not change, and the old graph is given up."""
    out = sarek.zeros(N, np.float64)
    with sarek.capture(out=out) as g:
        a = g.variable("a", 0.0, -10.0, 10.0)
        out.fill(a)
    g.replay()
    called(api)
    g.replay(a=1.5)
    assert ("add", "copy", 0, ()) in called(api)
    assert out[N - 1] == 1.5
    api.fail("graph set", 1, "CUDA_ERROR_INVALID_VALUE")
    g.replay(out=sarek.zeros(N, np.float64), a=1.5)
    # the other vector has another buffer, so the copy's node is set, which fails
    assert [each[0] for each in called(api, "set", "create")] == ["set", "create"]
    assert api.calls["graph set"] == 1
    device.synchronize()
    gc.collect()
    assert api.graphs.alive == 2


def test_failures_are_told(api, device):
    """A graph that cannot be made or launched says so, and works the next time."""
    g, _, left, _ = diamond()
    api.fail("graph instantiate", 2, "CUDA_ERROR_OUT_OF_MEMORY")
    with pytest.raises(errors.OutOfMemory, match="recording a graph on cuda:fake failed"):
        g.replay()
    api.fail("graph launch", 1, "CUDA_ERROR_INVALID_VALUE")
    with pytest.raises(errors.LaunchFailed, match="a launch of a graph on cuda:fake failed"):
        g.replay()
    g.replay()
    assert left[0] == 15
    api.fail("graph set", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    with pytest.raises(errors.DeviceLost):
        g.replay(a=7.0)
    with pytest.raises(errors.DeviceLost):
        g.replay()


def test_graphs_go_when_nobody_has_them(api, device):
    """With what was instantiated of them."""
    g, _, left, _ = diamond()
    g.replay()
    assert api.graphs.alive == 2
    del g
    device.synchronize()
    gc.collect()
    assert api.graphs.alive == 0
    assert left[0] == 15


def test_blocks_that_a_kernel_cannot_have_are_refused(api, device):
    """As those of launches are, where the graph is made."""
    x, out = floats(), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, out=out) as g:
        add[4, 16](out, x)
    api.attributes["MAX_THREADS_PER_BLOCK"] = 1024
    limit = "this kernel takes at most 8 threads"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sarek_numba.runtime.cudalike.function.Function.check", _limited(limit))
        with pytest.raises(errors.InvalidDimensions, match=limit):
            g.replay()
    g.replay()
    assert out[3] == 3


def test_parameters_are_as_the_bindings_have_them():
    """Structures of the real bindings, which need no driver."""
    cuda = pytest.importorskip("cuda.bindings.driver")
    calls = GraphCalls(cuda, lambda result: result)
    words = np.zeros(2, np.uint64)
    launch = calls.launch_of(cuda.CUfunction(64), (1, 2, 3), (4, 5, 6), 7, words.ctypes.data)
    assert int(launch.func) == 64
    assert (launch.gridDimX, launch.gridDimY, launch.gridDimZ) == (1, 2, 3)
    assert (launch.blockDimX, launch.blockDimY, launch.blockDimZ) == (4, 5, 6)
    assert (launch.sharedMemBytes, launch.kernelParams) == (7, words.ctypes.data)
    copy = calls.copy_of(1024, 2048, 100)
    device = cuda.CUmemorytype.CU_MEMORYTYPE_DEVICE
    assert (copy.srcMemoryType, copy.dstMemoryType) == (device, device)
    assert (int(copy.dstDevice), int(copy.srcDevice)) == (1024, 2048)
    assert (copy.WidthInBytes, copy.Height, copy.Depth) == (100, 1, 1)
    fill = calls.fill_of(4096, 0x3F800000, 4, 25)
    assert (int(fill.dst), fill.value, fill.elementSize) == (4096, 0x3F800000, 4)
    assert (fill.width, fill.height) == (25, 1)


def _limited(text):
    def check(self, block):
        raise errors.InvalidDimensions(text)

    return check
