"""Loops on Vulkan: lanes of no thread, and loops that a driver gives up."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import LaunchFailed
from tests.unit.vulkan_kit import driver_of, on_every_vulkan, on_vulkan


@sarek.kernel
def until_beyond(x, n):
    while True:
        x[0] += 1
        if x[0] > 3:
            break
    while True:
        x[1] += 1
        if x[1] > n:
            return


@on_vulkan
@pytest.mark.parametrize("n", [-1, 0, 2, 30])
def test_lanes_of_no_thread_go_round_no_loop(device, n):
    """One thread, whose subgroup has more lanes: each loop ends when its own thread leaves it."""
    x = np.array([-1, -1, 3, 4], np.int32)
    until_beyond.launch(x, n, grid=1, block=1, device=device)
    assert x.tolist() == [4, n + 1, 3, 4]


@sarek.kernel
def adding(out, x, n):
    i = sarek.global_idx.x
    total = 0
    for k in range(n):
        total += x[k % 4]
    out[i] = total


@sarek.function
def _left_at(x, n):
    k = 0
    while True:
        if k >= n:
            return k
        k += 1 + x[k % 4] * 0


@sarek.kernel
def within_a_function(out, x, n):
    out[sarek.global_idx.x] = _left_at(x, n)


@sarek.kernel
def nested(out, x, n):
    i = sarek.global_idx.x
    total = 0
    for j in range(300):
        for k in range(n // 300):
            total += x[(j + k) % 4]
            if total < 0:
                break
    out[i] = total


@on_every_vulkan
@pytest.mark.parametrize("kernel", [adding, within_a_function, nested], ids=lambda k: k.__name__)
def test_a_loop_that_is_given_up_fails_the_launch(device, kernel):
    """Right, or an error that names the kernel; never wrong. The device works on."""
    x = np.array([1, 1, 1, 1], np.int32)
    for n in (300, 60000, 90000, 600):
        out = np.zeros(5, np.int32)
        if n == 90000 and driver_of(device).abilities.gives_up_loops:
            with pytest.raises(LaunchFailed, match=f"'{kernel.__name__}'.*more than 65535 passes"):
                kernel.launch(out, x, n, grid=1, block=5, device=device)
            continue
        kernel.launch(out, x, n, grid=1, block=5, device=device)
        assert out.tolist() == [n] * 5


@on_vulkan
def test_a_loop_that_is_given_up_on_a_stream(device):
    """Who waits is told."""
    out, x = sarek.zeros(8, np.int32), sarek.ones(4, np.int32)
    with sarek.use_device(device):
        stream = device.stream()
    adding.launch(out, x, 90000, grid=1, block=8, stream=stream, device=device)
    if driver_of(device).abilities.gives_up_loops:
        with pytest.raises(LaunchFailed, match="more than 65535 passes"):
            stream.synchronize()
    stream.synchronize()
    adding.launch(out, x, 90, grid=1, block=8, stream=stream, device=device)
    stream.synchronize()
    assert out.tolist() == [90] * 8
