"""Runs under the Khronos validation layer are silent."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sarek_numba.runtime.device import BackendUnavailable
from sarek_vulkan import driver


def _has_layer() -> bool:
    try:
        driver.load()
    except BackendUnavailable:
        return False
    return driver.VALIDATION_LAYER in driver.layers()


pytestmark = pytest.mark.skipif(not _has_layer(), reason="the validation layer is not installed")

PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import sarek_numba as sarek
from sarek_vulkan import driver
from tests.kernels.corpus import CASES
from tests.unit.vulkan_kit import devices, every_device
{body}
print(len(driver.messages))
for message in dict.fromkeys(driver.messages):
    print(message)
"""
KERNELS = """
wanted = [case for case in CASES if not case.warps][::9]
ran = 0
for name, device in every_device().items():
    for case in wanted if name in devices() else wanted[::5]:
        launch = case.launch(np.random.default_rng(5))
        try:
            with sarek.use_device(device):
                case.kernel[(launch.grid, launch.block, None, launch.shared_bytes)](
                    *launch.arguments
                )
            ran += 1
        except (sarek.SarekError, KeyError):
            pass  # the device lacks what it needs, and the corpus says so
    first, second = device.stream(), device.stream()
    x = sarek.ones(5000, np.float32)

    @sarek.kernel
    def scale(x, a):
        i = sarek.global_idx.x
        if i < len(x):
            x[i] *= a

    for k in range(100):
        scale.launch(x, np.float32(1), grid=20, block=256, device=device)
        stream = (first, second)[k % 2]
        second.wait(first.record())
        scale.launch(x[k:], np.float32(1), grid=20, block=256, device=device, stream=stream)
    assert first.record().elapsed_ms(second.record()) is not None
    assert (x == 1).all()
    x.free()
    device.free_cached()
assert ran > 20, ran
"""
GRAPHS = """
from tests.unit.test_vulkan_memory import many
from tests.unit.realize_kit import N, floats, scale
for name, device in every_device().items():
    with sarek.use_device(device):
        x, out, wide = floats(), sarek.zeros(N, np.float32), sarek.zeros(N, np.float64)
        with sarek.capture(x=x, out=out, wide=wide) as g:
            a = g.variable("a", 2.0)
            scale[4, 16](out, x, N, a)
            scale[4, 16](x, out, N, a)
            out[: N // 2] = x[N // 2 :]
            many[4, 16](wide, *[a] * 34)
            wide[:8] = 2.5
            out[3:7] = 1.0
        for k in range(12):
            g.replay(a=k // 3 / 4)
            scale[4, 16](x, out, N, 1.0)
        assert wide[N - 1] == 34 * 0.75, wide
        assert g.mechanism == "device"
        del g
        device.synchronize()
"""
MISUSE = """
own = next(iter(devices().values())).driver.logical
own.call.vkCmdPipelineBarrier  # of a command buffer that was never begun
lane = next(iter(devices().values())).driver.queues.open()
batch = lane.begin()
lane._call.vkEndCommandBuffer(batch.commands)
lane.barrier(batch.commands)
"""


def said(body: str) -> list[str]:
    """The number of messages in a process that runs some code, and the messages."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=body)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "SAREK_VULKAN_VALIDATION": "1",
            "SAREK_CACHE": "0",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.slow
def test_kernels_streams_and_memory_are_silent():
    """A part of the corpus, streams, events and memory in every way, and not one message."""
    messages = said(KERNELS)
    assert messages == ["0"], "\n".join(messages)


def test_graphs_are_silent():
    """Recorded, submitted while they are under way, recorded anew, given up."""
    messages = said(GRAPHS)
    assert messages == ["0"], "\n".join(messages)


def test_misuse_is_heard():
    """Positive control: a command outside of a recording is a message."""
    messages = said(MISUSE)
    assert int(messages[0]) >= 1
    assert "vkCmdPipelineBarrier" in messages[1]
