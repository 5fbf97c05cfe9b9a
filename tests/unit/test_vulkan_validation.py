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
MISUSE = """
own = next(iter(devices().values())).driver.logical
own.call.vkCmdPipelineBarrier  # of a command buffer that was never begun
lane = next(iter(devices().values())).driver.queues.open()
batch = lane.begin()
lane._call.vkEndCommandBuffer(batch.commands)
lane._barrier(batch)
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


def test_misuse_is_heard():
    """Positive control: a command outside of a recording is a message."""
    messages = said(MISUSE)
    assert int(messages[0]) >= 1
    assert "vkCmdPipelineBarrier" in messages[1]
