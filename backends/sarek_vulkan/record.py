"""The record of a Vulkan device: its limits, and what it can do with the evidence.

Evidence quotes feature bits and properties as the driver reports them. What Vulkan leaves open is
decided by what was measured on drivers of `_MEASURED`: tests/conformance is equal bit for bit.
"""

from __future__ import annotations

from itertools import product

from sarek_numba.capability import (
    Capability,
    CapabilityKind,
    DeviceRecord,
    Fact,
    Limits,
    Verdict,
)
from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_vulkan.features import CORE, V12, Feature
from sarek_vulkan.physical import KINDS, Physical

ARGUMENT_BYTES = 4096  # what is no push constant goes to a buffer

_INTEGER_ONLY = frozenset({AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR, AtomicOp.INC, AtomicOp.DEC})
_ATOMIC_SCALARS = (
    Scalar.INT32,
    Scalar.UINT32,
    Scalar.INT64,
    Scalar.UINT64,
    Scalar.FLOAT32,
    Scalar.FLOAT64,
)
_WARP_CAPABILITIES = ("GroupNonUniform", "GroupNonUniformShuffle", "GroupNonUniformBallot")
_VULKAN = "Vulkan 1.2 and SPIR-V 1.5"
_STORAGE_8 = (Feature(V12, "storageBuffer8BitAccess"), Feature(V12, "shaderInt8"))
_STORAGE_16 = (
    Feature("VkPhysicalDeviceVulkan11Features", "storageBuffer16BitAccess"),
    Feature(CORE, "shaderInt16"),
)
_HALF = (
    Feature("VkPhysicalDeviceVulkan11Features", "storageBuffer16BitAccess"),
    Feature(V12, "shaderFloat16"),
)
_INT64 = (Feature(CORE, "shaderInt64"),)
_FLOAT64 = (Feature(CORE, "shaderFloat64"),)

STORAGE: dict[Scalar, tuple[Feature, ...]] = {  # what a type in memory needs
    Scalar.BOOL: _STORAGE_8,
    Scalar.INT8: _STORAGE_8,
    Scalar.UINT8: _STORAGE_8,
    Scalar.INT16: _STORAGE_16,
    Scalar.UINT16: _STORAGE_16,
    Scalar.INT32: (),
    Scalar.UINT32: (),
    Scalar.INT64: _INT64,
    Scalar.UINT64: _INT64,
    Scalar.FLOAT32: (),
    Scalar.FLOAT64: _FLOAT64,
}
ARITHMETIC = {**STORAGE, Scalar.BOOL: (), Scalar.INT8: _STORAGE_8[1:], Scalar.UINT8: _STORAGE_8[1:],
              Scalar.INT16: _STORAGE_16[1:], Scalar.UINT16: _STORAGE_16[1:]}  # fmt: skip

_REMEDY = "launch on another device"


def record_of(physical: Physical, name: str) -> DeviceRecord:
    """The record of a device under its canonical name."""
    limits = physical.limits
    usual, least, most = physical.subgroup
    widths = tuple(w for w in (1, 2, 4, 8, 16, 32, 64, 128) if least <= w <= most)
    kind = KINDS.get(physical.kind, KINDS[0])
    return DeviceRecord(
        name=name,
        backend="vulkan",
        model="jit",
        description=f"{physical.name} ({kind}; {dict(physical.driver).get('info', '')})",
        identity=physical.driver,
        limits=Limits(
            threads_per_block=limits["maxComputeWorkGroupInvocations"],
            block=limits["maxComputeWorkGroupSize"],
            grid=limits["maxComputeWorkGroupCount"],
            shared_bytes=limits["maxComputeSharedMemorySize"],
            global_bytes=max(physical.heaps),
            argument_bytes=ARGUMENT_BYTES,
            warp_width=usual,
            warp_widths=widths if physical.chooses_subgroup and len(widths) > 1 else (),
        ),
        facts=facts_of(physical),
        is_cpu=physical.is_cpu,
        measured={"subnormals": subnormals(physical)},
    )


def subnormals(physical: Physical) -> dict[str, str]:
    """What becomes of subnormal numbers, by type of float: "kept", or "flushed" to zero.

    A module asks for what the device offers; where it offers nothing, they are flushed.
    """
    return {
        f"float{bits}": (
            "kept" if f"shaderDenormPreserveFloat{bits}" in physical.controls else "flushed"
        )
        for bits in (16, 32, 64)
    }


def facts_of(physical: Physical) -> dict[Capability, Fact]:
    """All that is known of the device."""
    structural = CapabilityKind.STRUCTURAL
    facts = {
        Capability(feature): Fact(Verdict.AVAILABLE, structural, f"{_VULKAN}: {evidence}")
        for feature, evidence in (
            ("shared", "storage class Workgroup, maxComputeSharedMemorySize"),
            ("dynamic_shared", "an array whose length is a specialisation constant"),
            ("barrier", "OpControlBarrier with scope Workgroup"),
            ("print", "OpAtomicIAdd on the words of a report buffer"),
        )
    }
    facts[Capability("warp")] = _warp_fact(physical)
    for scalar, wanted in STORAGE.items():
        facts[Capability("storage", scalar)] = _feature_fact(physical, wanted, scalar)
    for scalar, wanted in ARITHMETIC.items():
        facts[Capability("arithmetic", scalar)] = _feature_fact(physical, wanted, scalar)
    for op, scalar, space in product(
        AtomicOp, _ATOMIC_SCALARS, (MemSpace.GLOBAL, MemSpace.SHARED)
    ):
        if not (scalar.is_float and op in _INTEGER_ONLY):
            facts[Capability("atomic", scalar, op, space)] = _atomic_fact(physical, scalar, space)
    return facts


def _feature_fact(physical: Physical, wanted: tuple[Feature, ...], scalar: Scalar) -> Fact:
    """Available where all features are; 32-bit types need none."""
    if not wanted:
        evidence = f"{_VULKAN}: 32-bit types are in every device"
        return Fact(Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, evidence)
    missing = [f for f in wanted if not physical.has(f.structure, f.field)]
    if missing:
        remedy = "cast to float32, or choose another device" if scalar.is_float else _REMEDY
        evidence = ", ".join(f"{feature} = 0" for feature in missing)
        return Fact(Verdict.UNAVAILABLE, CapabilityKind.OPTIONAL, evidence, remedy)
    evidence = ", ".join(f"{feature} = 1" for feature in wanted)
    return Fact(Verdict.AVAILABLE, CapabilityKind.OPTIONAL, evidence)


def _atomic_fact(physical: Physical, scalar: Scalar, space: MemSpace) -> Fact:
    """32-bit integers are in every device; floats are loops of compare-and-exchange at least."""
    optional = CapabilityKind.OPTIONAL
    if scalar.bits == 32:
        evidence = f"{_VULKAN}: 32-bit atomic instructions"
        if scalar.is_float:
            evidence += "; by construction: compare-and-exchange of the bits"
        return Fact(Verdict.AVAILABLE, optional, evidence)
    field = f"shader{'Buffer' if space is MemSpace.GLOBAL else 'Shared'}Int64Atomics"
    feature = Feature(V12, field)
    if not physical.has(V12, field):
        remedy = "use a 32-bit type, or launch on another device"
        return Fact(Verdict.UNAVAILABLE, optional, f"{feature} = 0", remedy)
    return Fact(Verdict.AVAILABLE, optional, f"{feature} = 1")


def _warp_fact(physical: Physical) -> Fact:
    """Warps are subgroups whose lanes follow the linear index in the block."""
    optional = CapabilityKind.OPTIONAL
    missing = [name for name in _WARP_CAPABILITIES if name not in physical.capabilities]
    if missing:
        evidence = f"subgroupSupportedOperations has no {' and no '.join(missing)}"
        remedy = "launch on another device, or exchange values through shared memory"
        return Fact(Verdict.UNAVAILABLE, optional, evidence, remedy)
    evidence = "subgroupSupportedOperations; whether lanes follow the linear index is not measured"
    return Fact(Verdict.UNKNOWN, optional, evidence)
