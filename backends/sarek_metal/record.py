"""The record of a Metal device: its limits, its identity, and what it can do with the evidence.

Sections are those of the Metal Shading Language Specification, version 3.2; tables those of the
Metal Feature Set Tables. Apple promises exact float operations only in part, and nobody measured
these devices here: what a kernel's results stand on is unknown until `sarek doctor` measured it.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from itertools import product
from typing import Any

from sarek_metal import driver
from sarek_metal.dialect import DIALECT, MISSING
from sarek_metal.matrices import SOURCE, configurations
from sarek_numba.capability import (
    Capability,
    CapabilityKind,
    DeviceRecord,
    Fact,
    Limits,
    Verdict,
    host_facts,
)
from sarek_numba.ir.nodes import AtomicOp, FenceScope
from sarek_numba.ir.types import MemSpace, Scalar

APPLE_WIDTH = 32  # of a SIMD-group of Apple's own GPUs; a pipeline tells it: threadExecutionWidth
ARGUMENT_BYTES = 4096  # of setBytes:length:atIndex:, as its reference says
_APPLE = "MTLGPUFamilyApple7"  # the first family of Apple's GPUs in Macs

_AVAILABLE, _UNAVAILABLE, _UNKNOWN = Verdict.AVAILABLE, Verdict.UNAVAILABLE, Verdict.UNKNOWN
_STRUCTURAL, _OPTIONAL = CapabilityKind.STRUCTURAL, CapabilityKind.OPTIONAL
_MEASURE = "sarek doctor measures it"
_ELSEWHERE = "launch on another device, such as 'native'"

_FEATURES = {
    "shared": "section 4.4: threadgroup address space",
    "dynamic_shared": "section 4.4 and setThreadgroupMemoryLength:atIndex:",
    "barrier": "section 6.9.1: threadgroup_barrier",
    "print": "by construction: atomic_fetch_add_explicit on the words of a report buffer",
}
_INTEGERS = "section 2.1: integers of this width; what C++ leaves open is guarded, by construction"
_FLOAT = (
    "section 2.1 and 8.1: IEEE 754 binary32, infinities and NaN; compiled with mathMode safe or "
    "fastMathEnabled NO"
)
_NO_FLOAT64 = Fact(
    _UNAVAILABLE,
    _STRUCTURAL,
    "section 2.1: the language has no type double",
    f"cast to float32, or {_ELSEWHERE}",
)
_NO_FUNCTION = Fact(
    _UNAVAILABLE,
    _STRUCTURAL,
    "section 6.5: the language has no such function, and float64, which others are computed in, is "
    "missing",
    _ELSEWHERE,
)
_ATOMIC = "section 6.15: atomic_int and atomic_uint in device and threadgroup memory"
_ATOMIC_LOOP = "by construction: a loop of atomic_compare_exchange_weak_explicit on the bits"
_NO_ATOMIC = Fact(
    _UNAVAILABLE,
    _STRUCTURAL,
    "section 6.15: 64-bit atomics are minima and maxima without a result, of few devices",
    f"use a 32-bit type, or {_ELSEWHERE}",
)
_INTEGER_ONLY = frozenset({AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR, AtomicOp.INC, AtomicOp.DEC})
_ATOMIC_32 = (Scalar.INT32, Scalar.UINT32, Scalar.FLOAT32)
_ATOMIC_64 = (Scalar.INT64, Scalar.UINT64, Scalar.FLOAT64)
_STREAMS = Fact(_AVAILABLE, _STRUCTURAL, "Metal: MTLCommandQueue, MTLSharedEvent")
_MATRICES = Fact(_AVAILABLE, _OPTIONAL, SOURCE)
_NO_MATRICES = Fact(_UNAVAILABLE, _OPTIONAL, f"{SOURCE}, of which this is none")

# What section 8 leaves open of float32.
_OPEN = {
    "rounding": "section 8.2: rounding to nearest even or toward zero may be supported",
    "division": "section 8.4: x / y is correctly rounded, in the rounding mode, which is not known",
    "square_root": "section 8.4: sqrt is correctly rounded, in the rounding mode, which is not "
    "known",
    "fma": "section 8.4: fma is correctly rounded, in the rounding mode, which is not known",
    "subnormal_inputs": "section 8.1: subnormal numbers may be flushed to zero",
    "subnormal_results": "section 8.1: subnormal numbers may be flushed to zero",
}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What devices differ in: whether the GPU is Apple's own, and the language of version 3.2."""

    is_apple: bool
    has_scoped_fences: bool


def abilities_of(framework: driver.Framework, device: Any) -> Abilities:
    """What a device and its system say."""
    family = getattr(framework.metal, _APPLE)
    return Abilities(
        is_apple=bool(device.supportsFamily_(family)),
        has_scoped_fences=driver.has_math_mode(framework.metal.MTLCompileOptions.alloc().init()),
    )


def record_of(framework: driver.Framework, device: Any, name: str) -> DeviceRecord:
    """The record of a device under its canonical name."""
    most = device.maxThreadsPerThreadgroup()
    product_name = str(device.name())
    abilities = abilities_of(framework, device)
    version = "3.2 or later" if abilities.has_scoped_fences else "before 3.2"
    return DeviceRecord(
        name=name,
        backend="metal",
        model="jit",
        description=f"{product_name} (Metal, language {version})",
        identity=(
            ("device", product_name),
            ("language", version),
            ("system", system_version()),
        ),
        limits=Limits(
            threads_per_block=int(max(most.width, most.height, most.depth)),
            block=(int(most.width), int(most.height), int(most.depth)),
            grid=(2**31 - 1, 2**31 - 1, 2**31 - 1),
            shared_bytes=int(device.maxThreadgroupMemoryLength()),
            global_bytes=int(device.recommendedMaxWorkingSetSize()),
            argument_bytes=ARGUMENT_BYTES,
            warp_width=APPLE_WIDTH,
        ),
        facts=facts(abilities),
        # bfloat came with version 3.1; whether a language is that of 3.2 is what is known
        coopmat=configurations(has_bfloat=abilities.has_scoped_fences)
        if abilities.is_apple
        else None,
    )


def system_version() -> str:
    """That of macOS, which has Metal's compiler and drivers."""
    return platform.mac_ver()[0] or platform.platform()


def facts(abilities: Abilities) -> dict[Capability, Fact]:
    """What a device can do."""
    found = {
        Capability(feature): Fact(_AVAILABLE, _STRUCTURAL, evidence)
        for feature, evidence in _FEATURES.items()
    }
    found |= _scalar_facts() | _atomic_facts() | _fence_facts(abilities) | _promise_facts()
    found[Capability("warp")] = _warp_fact(abilities)
    found[Capability("coopmat")] = _MATRICES if abilities.is_apple else _NO_MATRICES
    return found | host_facts(_STREAMS)


def _scalar_facts() -> dict[Capability, Fact]:
    found = dict.fromkeys(
        (Capability(feature, Scalar.FLOAT64) for feature in ("storage", "arithmetic")), _NO_FLOAT64
    )
    for scalar in DIALECT.types:
        evidence = _FLOAT if scalar.is_float else _INTEGERS
        for feature in ("storage", "arithmetic"):
            found[Capability(feature, scalar)] = Fact(_AVAILABLE, _STRUCTURAL, evidence)
    for name in MISSING:
        found[Capability("function", Scalar.FLOAT32, function=name)] = _NO_FUNCTION
    return found


def _atomic_facts() -> dict[Capability, Fact]:
    found = {}
    for op, scalar in product(AtomicOp, (*_ATOMIC_32, *_ATOMIC_64)):
        if scalar.is_float and op in _INTEGER_ONLY:
            continue
        native = (op, scalar) in DIALECT.atomics
        fact = Fact(_AVAILABLE, _STRUCTURAL, _ATOMIC if native else _ATOMIC_LOOP)
        for space in (MemSpace.GLOBAL, MemSpace.SHARED):
            capability = Capability("atomic", scalar, op, space)
            found[capability] = _NO_ATOMIC if scalar in _ATOMIC_64 else fact
    return found


def _fence_facts(abilities: Abilities) -> dict[Capability, Fact]:
    evidence = "section 6.15.3: atomic_thread_fence with a scope and memory_order_seq_cst"
    fact = Fact(_AVAILABLE, _OPTIONAL, evidence)
    if not abilities.has_scoped_fences:
        evidence += " came with version 3.2 (macOS 15), which this system has not"
        fact = Fact(_UNAVAILABLE, _OPTIONAL, evidence, f"update the system, or {_ELSEWHERE}")
    return {Capability("fence", function=scope.value): fact for scope in FenceScope}


def _promise_facts() -> dict[Capability, Fact]:
    return {
        Capability(feature, Scalar.FLOAT32): Fact(_UNKNOWN, _OPTIONAL, evidence, _MEASURE)
        for feature, evidence in _OPEN.items()
    }


def _warp_fact(abilities: Abilities) -> Fact:
    """Warps are SIMD-groups, whose threads follow the linear index in the threadgroup."""
    if not abilities.is_apple:
        evidence = "whether a SIMD-group has 32 threads is known of Apple's own GPUs alone"
        return Fact(_UNKNOWN, _OPTIONAL, evidence)
    evidence = "sections 4.4.1 and 5.2.3.6: SIMD-groups are linear and one-dimensional; 6.9.2: "
    return Fact(_AVAILABLE, _OPTIONAL, f"{evidence}simd_shuffle")
