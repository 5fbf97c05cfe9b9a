"""Whether lanes follow the linear index in the block, on drivers that are said to have warps.

SPIR-V's own numbers are read by hand-written GLSL: no specification relates them to the index.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.capability import Capability, Verdict
from sarek_numba.execute import Language
from tests.unit.vulkan_kit import on_vulkan

GLSL = """#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(std430, set = 0, binding = 0) buffer Out { uvec2 found[]; };
void main() {
    found[gl_LocalInvocationIndex] = uvec2(gl_SubgroupID, gl_SubgroupInvocationID);
}
"""


def _is_linear(device: sarek.Device, block: tuple[int, int, int]) -> bool:
    threads, width = int(np.prod(block)), device.limits.warp_width
    found = sarek.zeros((threads, 2), np.uint32)
    execute.run_source(
        device, GLSL, Language.GLSL, "main", [found], block=block, grid=1, inject_lengths=False
    )
    numbers = np.asarray(found)
    warps = numbers[:, 0].reshape(-1, width)
    lanes = numbers[:, 1].reshape(-1, width)
    together = (warps == warps[:, :1]).all() and len(set(warps[:, 0])) == len(warps)
    return bool(together and (lanes == np.arange(width)).all())


@pytest.mark.skipif(
    not (shutil.which("glslangValidator") or shutil.which("glslc")), reason="no compiler of GLSL"
)
@on_vulkan
def test_lanes_follow_the_index(device):
    """As the record says; of a driver that is not in it, the measurement is shown."""
    limits = device.limits
    width = limits.warp_width
    blocks = [(width, 1, 1), (8 * width, 1, 1), (2 * width, 3, 2)]
    if limits.warps_span_rows:
        blocks += [(12, width, 1), (4, 4, width)]
    linear = {block: _is_linear(device, block) for block in blocks}
    if device.record.facts[Capability("warp")].verdict is not Verdict.AVAILABLE:
        pytest.skip(f"measured, not declared: lanes follow the index: {linear}")
    assert all(linear.values()), linear
