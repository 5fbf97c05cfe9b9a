"""Graphs on Vulkan devices: what is recorded when, in which order, and what it computes."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_vulkan import graphs
from sarek_vulkan.graphs import levels_of
from tests.unit.realize_kit import N, floats, scale
from tests.unit.test_vulkan_memory import many
from tests.unit.vulkan_kit import driver_of, on_every_vulkan


@sarek.kernel
def add(out: Any, x: Any) -> None:
    i = sarek.global_idx.x
    if i < len(out) and i < len(x):
        out[i] += x[i]


@pytest.fixture
def recordings(monkeypatch):
    """Which graphs were recorded, and how often."""
    found = []
    original = graphs.VulkanGraph._recorded

    def recorded(self, lane):
        found.append(self)
        return original(self, lane)

    monkeypatch.setattr(graphs.VulkanGraph, "_recorded", recorded)
    return found


@pytest.mark.parametrize(
    ("behind", "levels"),
    [
        ([], []),
        ([[], [], []], [[0, 1, 2]]),
        ([[], [0], [1]], [[0], [1], [2]]),
        ([[], [], [0], [0, 1], [2, 3], []], [[0, 1, 5], [2, 3], [4]]),
    ],
)
def test_nodes_of_a_level_are_independent(behind, levels):
    """And each is behind one of the level before."""
    assert levels_of(list(map(frozenset, behind))) == levels


@on_every_vulkan
def test_a_command_buffer_is_recorded_when_something_changed(device, recordings):
    """Not for a replay of the same, nor of equal numbers; fills and copies are in it."""
    with sarek.use_device(device):
        x, out = floats(), sarek.zeros(N, np.float32)
        wide = sarek.zeros(N, np.float64)
        with sarek.capture(x=x, out=out, wide=wide) as g:
            a = g.variable("a", 2.0)
            half = sarek.zeros(N, np.float32)
            scale[4, 16](half, x, N, a)
            add[4, 16](out, half)
            out[: N // 2] = half[N // 2 :]
            wide.fill(2.5)
            wide[:8] = -1.0
        total = np.zeros(N, np.float32)
        for a, times in [(2.0, 1), (2.0, 1), (3.0, 2), (3.0, 2), (2.0, 3)]:
            g.replay(a=a)
            half = np.float32(a) * np.arange(N, dtype=np.float32)
            total += half
            total[: N // 2] = half[N // 2 :]
            assert np.array_equal(out, total)
            assert len(recordings) == times
        assert np.array_equal(wide, [-1.0] * 8 + [2.5] * (N - 8))
        assert g.mechanism == "device"


@on_every_vulkan
def test_replays_that_are_under_way_keep_what_they_had(device):
    """Another command buffer is recorded, as many as there must be."""
    with sarek.use_device(device):
        n = 1 << 16
        x, out = sarek.ones(n, np.float32), sarek.zeros(n, np.float32)
        with sarek.capture(x=x, out=out) as g:
            a = g.variable("a", 1.0)
            half = sarek.zeros(n, np.float32)
            scale[n // 64, 64](half, x, n, a)
            add[n // 64, 64](out, half)
        for k in range(8):
            g.replay(a=float(10 ** (k % 4)))
        del g, half, x
        gc.collect()
        assert np.array_equal(out, np.full(n, 2222.0))


@on_every_vulkan
def test_arguments_that_are_no_push_constants(device):
    """Each command buffer has a block for those that are spilled."""
    with sarek.use_device(device):
        out = sarek.zeros(N, np.float64)
        with sarek.capture(out=out) as g:
            a = g.variable("a", 1.0)
            many[4, 16](out, *[a] * 34)
        driver = driver_of(device)
        assert driver.physical.limits["maxPushConstantsSize"] < 8 * 36
        for a in (1.0, 2.0, 2.0, 0.5):
            g.replay(a=a)
            assert np.array_equal(out, np.full(N, 34 * a))


@on_every_vulkan
def test_what_a_graph_made_goes_with_it(device, monkeypatch):
    """When its work is done; then it is nobody's."""
    gone = []
    original = graphs._destroy
    monkeypatch.setattr(graphs, "_destroy", lambda *a: (gone.append(1), original(*a)))
    with sarek.use_device(device):
        x, out = floats(), sarek.zeros(N, np.float32)
        with sarek.capture(x=x, out=out) as g:
            add[4, 16](out, x)
        g.replay()
        g.replay()
        del g
        device.synchronize()
        gc.collect()
        assert gone == [1]
        assert np.array_equal(out, 2 * np.arange(N))
