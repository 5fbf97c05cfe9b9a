"""Which launches have threads that do the work of several of the user's (`passes.coarsen`).

Those of devices whose target can, where it was measured that they win or where `SAREK_OPT_ENABLE`
names it; and of these the launches that fill the device all the same: with as many threads as it
runs at a time, each of which has the work of several. A launch of fewer leaves parts of the device
idle, which costs more than wide work wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from sarek_numba import policy
from sarek_numba.errors import InvalidDimensions
from sarek_numba.passes.coarsen import NAME, each_of
from sarek_numba.runtime.device import Dimensions, Program
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.work import AT_ONCE

# Backends on whose GPUs `python -m benchmarks.streaming_gpu` found that it wins: the evidence.
MEASURED: Mapping[str, str] = {
    "cuda": "H200: docs/results/streaming_h200_2026-12-01.txt",
    "opencl": "H200: docs/results/streaming_h200_2026-12-01.txt",
    "vulkan": "H200: docs/results/streaming_h200_2026-12-01.txt",
}

_FEWEST = 2  # threads that one stands for


def can(device: Device) -> bool:
    """Whether the device's compiler can be given such kernels."""
    target = device.driver.target
    return target is not None and target.coarsening > 0


def why_never(device: Device) -> str | None:
    """Why no launch on a device that can is given such a kernel; None if some are."""
    if policy.disabled(NAME):
        return "SAREK_OPT_DISABLE turns it off"
    backend = device.record.backend
    if backend not in MEASURED and not policy.enabled(NAME):
        return f"it is not measured on '{backend}'; SAREK_OPT_ENABLE={NAME} turns it on"
    if device.record.limits.residency is None:
        return "the device does not say how many threads it runs at a time"
    return None


def why_too_few(
    device: Device, grid: Dimensions, block: Dimensions, each: int = _FEWEST
) -> str | None:
    """Why a launch is too small for threads that stand for so many; None if it is not."""
    residency = device.record.limits.residency
    assert residency is not None, "else there is a reason before this"
    least = residency.threads * each
    if prod(grid) * prod(block) >= least:
        return None
    return (
        f"launches of fewer than {least} threads leave the device idle with {each} elements a "
        f"thread: it runs {residency.threads} at a time ({residency.evidence})"
    )


def why_not(device: Device, program: Program, grid: Dimensions, block: Dimensions) -> str | None:
    """Why a launch does not use a program that was made for this; None if it does."""
    each = each_of(program.params)
    if each == 1:  # the pass left the kernel as it is
        return None
    why = why_too_few(device, grid, block, each)
    if why is None and device.driver.queues not in (None, AT_ONCE):
        try:
            program.check(block)  # type: ignore[attr-defined] # a QueuedProgram
        except InvalidDimensions:
            return f"blocks of {prod(block)} threads may need more registers for it than there are"
    return why
