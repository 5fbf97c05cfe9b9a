"""A device as NVIDIA's driver describes its GPUs, made of nothing but facts."""

from __future__ import annotations

from sarek_numba.ir.nodes import CoopmatConfig
from sarek_numba.ir.types import Scalar
from sarek_vulkan.features import ALL, FLOAT_CONTROLS, SUBGROUP_OPERATIONS
from sarek_vulkan.physical import Family, MemoryType, Physical

_SHAPES = ((16, 16), (8, 16), (8, 8))
_SUMS = (Scalar.FLOAT16, Scalar.FLOAT32)
_CAPABILITIES = {name for feature in ALL for name in feature.capabilities}

NVIDIA = Physical(
    handle=None,
    name="NVIDIA H200",
    version=1 << 22 | 4 << 12,
    kind=2,
    vendor=0x10DE,
    number=0x2335,
    uuid=bytes(16),
    cache_uuid=bytes(16),
    driver=(("device", "NVIDIA H200"), ("driver", "NVIDIA"), ("info", "580.159.04")),
    extensions=frozenset(),
    features=frozenset(ALL),
    capabilities=frozenset(
        {"Shader"}
        | _CAPABILITIES
        | set(FLOAT_CONTROLS.values())
        | set(SUBGROUP_OPERATIONS.values())
    ),
    limits={
        "maxPushConstantsSize": 256,
        "maxMemoryAllocationCount": 2**32 - 1,
        "maxMemoryAllocationSize": 2**32 - 2**20,
        "maxComputeSharedMemorySize": 48 * 1024,
        "maxComputeWorkGroupInvocations": 1024,
        "maxComputeWorkGroupCount": (2**31 - 1, 65535, 65535),
        "maxComputeWorkGroupSize": (1024, 1024, 64),
        "maxStorageBufferRange": 2**32 - 1,
        "maxPerStageDescriptorStorageBuffers": 2**20,
        "minStorageBufferOffsetAlignment": 16,
        "nonCoherentAtomSize": 64,
        "timestampPeriod": 1.0,
    },
    controls=frozenset(FLOAT_CONTROLS),  # each of them: those that exclude each other too
    subgroup=(32, 32, 32),
    chooses_subgroup=True,
    import_alignment=4096,
    memory_types=(MemoryType(0, 0x1), MemoryType(1, 0xE)),
    heaps=(150 * 10**9, 128 * 10**9),
    family=Family(0, 16, 64),
    matrices=tuple(
        CoopmatConfig(m, n, k, a, a, c, c)
        for (m, n, k), a, c in (
            *(((16, n, k), Scalar.FLOAT16, c) for n, k in _SHAPES for c in _SUMS),
            *(((16, n, 32), Scalar.UINT8, Scalar.UINT32) for n in (16, 8)),
            *(((16, n, 32), Scalar.INT8, Scalar.INT32) for n in (16, 8)),
        )
    ),
    subgroups_at_once=132 * 64,
)
