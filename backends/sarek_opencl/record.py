"""The record of an OpenCL device: its limits, and what it can do with the evidence.

What says "measured" is measured by `tests/unit/test_opencl_matrix.py` on the drivers of
`_MEASURED`, bit for bit: all operators, conversions and exact functions at their edges, and on
random bits. Intel's runtime does not advertise correctly rounded division and has it; drivers that
nobody measured are believed where they advertise it.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from sarek_numba.capability import (
    Capability,
    CapabilityKind,
    DeviceRecord,
    Fact,
    Limits,
    Verdict,
    host_facts,
)
from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_opencl import driver, nvidia, pocl
from sarek_opencl.dialect import DIALECT, INT64_BASE, INT64_EXTENDED

_MEASURED_PLATFORMS = frozenset({"Portable Computing Language", "Intel(R) OpenCL"})
_MEASURED = "measured: the operator and cast matrix is equal to NumPy bit for bit"
_INTEGERS_SPECIFIED = "OpenCL 1.2, section 6.1.1: scalar types; guards by construction"
_ADVERTISED = "advertised: CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT"
_NOT_ADVERTISED = "CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT is not advertised, and nothing is measured"
_MEASURE = "run `sarek doctor`, which measures it, or launch on another device"
_SINGLE = "OpenCL 1.2, section 7.4: + - * and fma of float are correctly rounded"
_INTEGER_ONLY = frozenset({AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR, AtomicOp.INC, AtomicOp.DEC})
_ATOMIC_SCALARS = (
    Scalar.INT32,
    Scalar.UINT32,
    Scalar.INT64,
    Scalar.UINT64,
    Scalar.FLOAT32,
    Scalar.FLOAT64,
)
_WARP_EXTENSIONS = ("cl_khr_subgroup_shuffle",)
_INTEL_WIDTHS = (4, 8, 16, 32, 64)
_NVIDIA_WARPS = "shfl.sync of the PTX ISA; measured: lanes follow the linear index in the block"
_ATOMIC_EVIDENCE = "OpenCL 1.2, section 6.12.11: 32-bit atomic functions; measured"
_ATOMIC_LOOP_EVIDENCE = "by construction: compare-and-exchange of the bits; measured"


_EXACT_DIVISION = "-cl-fp32-correctly-rounded-divide-sqrt"


def build_options(device: Any) -> tuple[str, ...]:
    """Options of the compiler: exact arithmetic where the device offers to ask for it."""
    exact = _advertises_exact_division(device)
    return ("-cl-std=CL1.2", "-w", *((_EXACT_DIVISION,) if exact else ()))


def fast_options(exact: tuple[str, ...]) -> tuple[str, ...]:
    """Options for a kernel with `accept.fastmath`: none that assumes NaN or infinity away."""
    kept = tuple(one for one in exact if one != _EXACT_DIVISION)
    return (*kept, "-cl-mad-enable", "-cl-denorms-are-zero")


def _advertises_exact_division(device: Any) -> bool:
    cl = driver.load()
    exact = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return bool(device.single_fp_config & exact)


def record_of(device: Any, name: str) -> DeviceRecord:
    """The record of a device under its canonical name."""
    cl = driver.load()
    is_cpu = bool(device.type & cl.device_type.CPU)
    sizes = (*device.max_work_item_sizes, 1, 1)[:3]
    return DeviceRecord(
        name=name,
        backend="opencl",
        model="jit",
        description=f"{device.name.strip()} ({device.platform.name.strip()})",
        identity=driver.identity_of(device),
        limits=Limits(
            threads_per_block=int(device.max_work_group_size),
            block=(int(sizes[0]), int(sizes[1]), int(sizes[2])),
            grid=(2**31 - 1, 2**31 - 1, 2**31 - 1),
            shared_bytes=int(device.local_mem_size),
            global_bytes=int(device.global_mem_size),
            argument_bytes=int(device.max_parameter_size),
            warp_width=nvidia.WIDTH,
            warp_widths=_INTEL_WIDTHS if _is_measured(device) else (),
            warps_span_rows=not is_cpu,
            local_bytes=pocl.local_bytes() if pocl.is_pocl(device) else None,
            thread_local_bytes=nvidia.LOCAL_BYTES if nvidia.is_nvidia(device) else None,
            residency=nvidia.residency_of(device) if nvidia.is_nvidia(device) else None,
        ),
        facts=_facts(device),
        is_cpu=is_cpu,
    )


def _facts(device: Any) -> dict[Capability, Fact]:
    available = Verdict.AVAILABLE
    structural = CapabilityKind.STRUCTURAL
    facts = {
        Capability(feature): Fact(available, structural, f"OpenCL 1.2: {evidence}")
        for feature, evidence in (
            ("shared", "local memory, CL_DEVICE_LOCAL_MEM_SIZE"),
            ("dynamic_shared", "local memory as an argument, CL_DEVICE_LOCAL_MEM_SIZE"),
            ("barrier", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)"),
            ("print", "section 6.12.11: atomic_add on the words of a report buffer"),
        )
    }
    facts[Capability("warp")] = _warp_fact(device)
    for scalar in DIALECT.types:
        fact = _scalar_fact(device, scalar)
        for feature in ("storage", "arithmetic"):
            facts[Capability(feature, scalar)] = fact
    for op, scalar in product(AtomicOp, _ATOMIC_SCALARS):
        if scalar.is_float and op in _INTEGER_ONLY:
            continue
        fact = _atomic_fact(device, op, scalar)
        for space in (MemSpace.GLOBAL, MemSpace.SHARED):
            facts[Capability("atomic", scalar, op, space)] = fact
    facts[Capability("coopmat")] = _NO_MATRICES
    facts |= _promise_facts(device)
    return facts | host_facts(_QUEUES) | {Capability("fusion"): _fusion_fact(device)}


_NO_MATRICES = Fact(
    Verdict.UNAVAILABLE,
    CapabilityKind.STRUCTURAL,
    "by construction: OpenCL C has no words for them",
)
_QUEUES = Fact(
    Verdict.AVAILABLE,
    CapabilityKind.STRUCTURAL,
    "OpenCL 1.2, section 3.2.1: command queues and events",
)


def _atomic_fact(device: Any, op: AtomicOp, scalar: Scalar) -> Fact:
    """32-bit atomics are in every device; 64-bit ones stand on those of an extension."""
    optional = CapabilityKind.OPTIONAL
    native = (op, scalar) in DIALECT.atomics or op is AtomicOp.LOAD
    if scalar.bits == 32:
        evidence = _ATOMIC_EVIDENCE if native else _ATOMIC_LOOP_EVIDENCE
        return Fact(Verdict.AVAILABLE, optional, evidence)
    remedy = "use a 32-bit type, or launch on another device"
    if INT64_BASE not in device.extensions.split():
        return Fact(Verdict.UNAVAILABLE, optional, f"{INT64_BASE} is not advertised", remedy)
    if op is AtomicOp.LOAD and device.address_bits < 64:
        evidence = "a 64-bit load may be two; CL_DEVICE_ADDRESS_BITS is 32"
        return Fact(Verdict.UNKNOWN, optional, evidence, remedy)
    evidence = "" if native else f"{_ATOMIC_LOOP_EVIDENCE}; "
    return Fact(Verdict.AVAILABLE, optional, f"{evidence}advertised: {INT64_BASE}")


def has_extended_atomics(device: Any) -> bool:
    """Whether 64-bit minima, maxima and bitwise operations are functions of the device."""
    return INT64_EXTENDED in device.extensions.split()


def _is_measured(device: Any) -> bool:
    """Whether subgroups of a required size were measured on the device's platform."""
    return bool(device.platform.name == "Intel(R) OpenCL")


def _warp_fact(device: Any) -> Fact:
    """Warps are subgroups of a fixed size, whose lanes follow the linear index in the block."""
    if device.platform.name == nvidia.PLATFORM:
        return Fact(Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, _NVIDIA_WARPS)
    extensions = set(device.extensions.split())
    missing = [name for name in _WARP_EXTENSIONS if name not in extensions]
    optional = CapabilityKind.OPTIONAL
    if missing:
        evidence = f"the device's list of extensions has no {' and no '.join(missing)}"
        remedy = "launch on another device, or exchange values through shared memory"
        return Fact(Verdict.UNAVAILABLE, optional, evidence, remedy)
    if "cl_intel_required_subgroup_size" not in extensions:
        evidence = "no cl_intel_required_subgroup_size: nothing fixes the size of a subgroup"
        return Fact(Verdict.UNKNOWN, optional, evidence)
    if not _is_measured(device):
        evidence = "whether its lanes follow the linear index in the block is not measured"
        return Fact(Verdict.UNKNOWN, optional, evidence)
    evidence = "measured: subgroups of a required size follow the linear index along x"
    return Fact(Verdict.AVAILABLE, optional, evidence)


def _fusion_fact(device: Any) -> Fact:
    """Whether several small launches take less time as one: `python -m benchmarks.fusion`."""
    if device.type & driver.load().device_type.CPU:
        evidence = "measured: on CPUs launches as one take the host longer than one by one"
        return Fact(
            Verdict.UNAVAILABLE, CapabilityKind.POLICY, evidence, "window.configure(fuse=True)"
        )
    evidence = "measured on an H200: 7.2 µs a launch one by one, 1.3 µs sixteen as one"
    return Fact(Verdict.AVAILABLE, CapabilityKind.POLICY, evidence)


def _scalar_fact(device: Any, scalar: Scalar) -> Fact:
    measured = device.platform.name in _MEASURED_PLATFORMS
    available = Verdict.AVAILABLE
    if scalar is Scalar.FLOAT64:
        evidence = f"CL_DEVICE_DOUBLE_FP_CONFIG = {device.double_fp_config:#x}"
        if device.double_fp_config:
            evidence += f"; {_MEASURED}" if measured else ""
            return Fact(available, CapabilityKind.OPTIONAL, evidence)
        remedy = "cast to float32, or choose another device"
        return Fact(Verdict.UNAVAILABLE, CapabilityKind.OPTIONAL, evidence, remedy)
    if measured:
        return Fact(available, CapabilityKind.STRUCTURAL, _MEASURED)
    evidence = _SINGLE if scalar.is_float else _INTEGERS_SPECIFIED
    return Fact(available, CapabilityKind.STRUCTURAL, evidence)


def _promise_facts(device: Any) -> dict[Capability, Fact]:
    """What OpenCL leaves open of float32, on drivers that nobody measured."""
    if device.platform.name in _MEASURED_PLATFORMS:
        return {}
    optional = CapabilityKind.OPTIONAL
    exact = Fact(Verdict.UNKNOWN, optional, _NOT_ADVERTISED, _MEASURE)
    if _advertises_exact_division(device):
        exact = Fact(Verdict.AVAILABLE, optional, _ADVERTISED)
    keeps = bool(device.single_fp_config & driver.load().device_fp_config.DENORM)
    subnormal = Fact(
        Verdict.AVAILABLE if keeps else Verdict.UNAVAILABLE,
        optional,
        f"CL_DEVICE_SINGLE_FP_CONFIG: CL_FP_DENORM is {'' if keeps else 'not '}advertised",
    )
    facts = {"division": exact, "square_root": exact}
    facts |= {"subnormal_inputs": subnormal, "subnormal_results": subnormal}
    return {Capability(feature, Scalar.FLOAT32): fact for feature, fact in facts.items()}
