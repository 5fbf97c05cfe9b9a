"""The record of a Vulkan device: its limits, and what it can do with the evidence.

Evidence quotes feature bits and properties as the driver reports them. What Vulkan leaves open is
decided by what was measured on drivers of `_MEASURED`: tests/conformance is equal bit for bit.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import product

from sarek_numba.capability import (
    Capability,
    CapabilityKind,
    DeviceRecord,
    Fact,
    Limits,
    Residency,
    Verdict,
    host_facts,
)
from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.ir.warps import WARP_WIDTHS
from sarek_vulkan import matrices
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.features import (
    ATOMIC_FLOAT,
    CORE,
    EXPLICIT_LAYOUT,
    FLOAT_CONTROLS,
    V11,
    V12,
    Feature,
)
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
_WARP_CAPABILITIES = ("GroupNonUniform", "GroupNonUniformShuffle")
_VULKAN = "Vulkan 1.2 and SPIR-V 1.5"
_STORAGE_8 = (Feature(V12, "storageBuffer8BitAccess"), Feature(V12, "shaderInt8"))
_STORAGE_16 = (
    Feature(V11, "storageBuffer16BitAccess"),
    Feature(CORE, "shaderInt16"),
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
    Scalar.FLOAT16: _STORAGE_16,
    Scalar.FLOAT32: (),
    Scalar.FLOAT64: _FLOAT64,
}
_NUMBERS = {scalar: wanted for scalar, wanted in STORAGE.items() if scalar is not Scalar.FLOAT16}
ARITHMETIC = _NUMBERS | {
    Scalar.BOOL: (),
    Scalar.INT8: _STORAGE_8[1:],
    Scalar.UINT8: _STORAGE_8[1:],
    Scalar.INT16: _STORAGE_16[1:],
    Scalar.UINT16: _STORAGE_16[1:],
}

_REMEDY = "launch on another device"


def record_of(physical: Physical, name: str) -> DeviceRecord:
    """The record of a device under its canonical name."""
    limits = physical.limits
    usual, least, most = physical.subgroup
    widths = tuple(w for w in WARP_WIDTHS if least <= w <= most)
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
            warps_span_rows=_driver(physical) not in ROWS,
            thread_local_bytes=thread_local_bytes(physical),
            residency=_residency(physical),
        ),
        facts=facts_of(physical),
        is_cpu=physical.is_cpu,
        coopmat=None
        if matrices.facts(physical.extensions, physical.features)
        else physical.matrices,
    )


def _residency(physical: Physical) -> Residency | None:
    """NVIDIA's driver says it by an extension; Vulkan itself has no word for it."""
    if physical.subgroups_at_once is None:
        return None
    return Residency(
        physical.subgroups_at_once * physical.subgroup[0],
        "shaderSMCount times shaderWarpsPerSM times subgroupSize (VK_NV_shader_sm_builtins)",
    )


def thread_local_bytes(physical: Physical) -> int:
    """Bytes for the local arrays of one thread; Vulkan has no word for it, nor for too many.

    llvmpipe keeps those of a subgroup on the stack of one of its own threads, which is as large as
    the process's, and ends the process where that overflows; half of it is for other values.
    """
    if _driver(physical) != _LLVMPIPE or sys.platform == "win32":
        return _GPU_LOCAL_BYTES
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_STACK)
    stack = _UNLIMITED_STACK if limit == resource.RLIM_INFINITY else limit
    return min(_GPU_LOCAL_BYTES, stack // 2 // physical.subgroup[0])


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
    for scope in ("block", "device"):
        evidence = f"{_VULKAN}: OpMemoryBarrier"
        facts[Capability("fence", function=scope)] = Fact(Verdict.AVAILABLE, structural, evidence)
    facts[Capability("warp")] = _warp_fact(physical)
    for scalar, wanted in STORAGE.items():
        facts[Capability("storage", scalar)] = _feature_fact(physical, wanted, scalar)
    for scalar, wanted in ARITHMETIC.items():
        facts[Capability("arithmetic", scalar)] = _feature_fact(physical, wanted, scalar)
    for op, scalar, space in product(AtomicOp, _ATOMIC_SCALARS, (MemSpace.GLOBAL, MemSpace.SHARED)):
        if not (scalar.is_float and op in _INTEGER_ONLY):
            facts[Capability("atomic", scalar, op, space)] = _atomic_fact(physical, scalar, space)
    absent = matrices.facts(physical.extensions, physical.features)
    return facts | absent | _promise_facts(physical) | host_facts(_QUEUES)


_QUEUES = Fact(
    Verdict.AVAILABLE,
    CapabilityKind.STRUCTURAL,
    f"{_VULKAN}: queues, timeline semaphores, vkCmdWriteTimestamp",
)


def _promise_facts(physical: Physical) -> dict[Capability, Fact]:
    """What Vulkan leaves open about floating-point numbers."""
    facts = {}
    optional = CapabilityKind.OPTIONAL
    for scalar in (Scalar.FLOAT32, Scalar.FLOAT64):
        name = f"shaderDenormPreserveFloat{scalar.bits}"
        keeps = name in physical.controls or scalar in _of(physical, SUBNORMALS)
        verdict = Verdict.AVAILABLE if keeps else Verdict.UNAVAILABLE
        evidence = (
            _MEASURED
            if scalar in _of(physical, SUBNORMALS)
            else f"VkPhysicalDeviceVulkan12Properties.{name} = {int(keeps)}"
        )
        for feature in ("subnormal_inputs", "subnormal_results"):
            facts[Capability(feature, scalar)] = Fact(verdict, optional, evidence)
        for feature, measured in EXACT.items():
            if scalar in _of(physical, measured):
                facts[Capability(feature, scalar)] = Fact(Verdict.AVAILABLE, optional, _MEASURED)
            else:
                facts[Capability(feature, scalar)] = Fact(
                    Verdict.UNKNOWN, optional, f"{_VULKAN}: precision of {feature} is not exact"
                )
    return facts


_MEASURED = "measured: tests/conformance agree bit for bit"
_BOTH = frozenset({Scalar.FLOAT32, Scalar.FLOAT64})
_LLVMPIPE = "llvmpipe"
_NVIDIA = "NVIDIA"
_WIDE = frozenset({Scalar.FLOAT64})
# types that round correctly, by the name of the driver; NVIDIA's on 8 million random arguments and
# hard ones each (docs/devices.md): of float32 its Sqrt errs, and its Fma loses subnormal numbers
DIVISION = {_LLVMPIPE: _BOTH, _NVIDIA: _BOTH}
SQUARE_ROOT = {_LLVMPIPE: _BOTH, _NVIDIA: _WIDE}
FMA = {_NVIDIA: _WIDE}
SUBNORMALS = {_NVIDIA: _BOTH}  # kept though nothing is promised, by construction in part
FLUSHES = {_NVIDIA: frozenset({Scalar.FLOAT32})}  # those that take construction; see `subnormals`
# of NVIDIA's, CUDA C++ Programming Guide, technical specifications; of other GPUs not more
_GPU_LOCAL_BYTES = 512 * 1024
_UNLIMITED_STACK = 2 * 2**20  # of a new thread (glibc)
WARPS = {_LLVMPIPE, _NVIDIA}  # drivers whose lanes follow the linear index in the block
ROWS = {_LLVMPIPE}  # of which those begin another subgroup with each row
GIVES_UP_LOOPS = {_LLVMPIPE}  # drivers that end loops after 65535 passes of a subgroup
LANES_RUN_ALONG = {_LLVMPIPE}  # drivers whose subgroups have lanes beyond the end of a row
NARROWS_WRONGLY = {_NVIDIA}  # met through OpenCL, whose assembler is the same; see `hidden`
EXACT = {"division": DIVISION, "square_root": SQUARE_ROOT, "fma": FMA}


def _driver(physical: Physical) -> str:
    """The name of a device's driver, as it reports it."""
    return dict(physical.driver).get("driver", "")


def _of(physical: Physical, measured: Mapping[str, frozenset[Scalar]]) -> frozenset[Scalar]:
    """What was measured on the device's driver."""
    return measured.get(_driver(physical), frozenset())


def abilities_of(physical: Physical) -> Abilities:
    """What the emitter may use: all of it is enabled on the logical device."""
    places = {MemSpace.GLOBAL: "Buffer", MemSpace.SHARED: "Shared"}
    atomics = {
        (AtomicOp.ADD, scalar, space)
        for scalar, (space, place) in product((Scalar.FLOAT32, Scalar.FLOAT64), places.items())
        if physical.has(ATOMIC_FLOAT, f"shader{place}Float{scalar.bits}AtomicAdd")
        and not (space is MemSpace.GLOBAL and scalar in _of(physical, FLUSHES))
    }
    modes = frozenset(
        (FLOAT_CONTROLS[name], int(name.rpartition("Float")[2])) for name in physical.controls
    )
    layouts = ("", "8BitAccess", "16BitAccess")
    return Abilities(
        int64=physical.has(CORE, "shaderInt64"),
        float64=physical.has(CORE, "shaderFloat64"),
        memory_model=physical.has(V12, "vulkanMemoryModel")
        and physical.has(V12, "vulkanMemoryModelDeviceScope"),
        atomics=frozenset(atomics),
        exact_division=_of(physical, DIVISION),
        exact_square_root=_of(physical, SQUARE_ROOT),
        exact_fma=_of(physical, FMA),
        float_controls=modes,
        explicit_shared=all(
            physical.has(EXPLICIT_LAYOUT, f"workgroupMemoryExplicitLayout{each}")
            for each in layouts
        ),
        gives_up_loops=_driver(physical) in GIVES_UP_LOOPS,
        lanes_run_along=_driver(physical) in LANES_RUN_ALONG,
        flushes=_of(physical, FLUSHES),
        narrows_wrongly=_driver(physical) in NARROWS_WRONGLY,
    )


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
    if _driver(physical) in WARPS:
        evidence = "measured: lanes of full subgroups follow the linear index in the block"
        return Fact(Verdict.AVAILABLE, optional, evidence)
    evidence = "subgroupSupportedOperations; whether lanes follow the linear index is not measured"
    return Fact(Verdict.UNKNOWN, optional, evidence)
