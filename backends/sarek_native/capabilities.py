"""The record of the native device: everything here is by construction of the generated code."""

from __future__ import annotations

import os
from itertools import product

from sarek_native.memory import FLOAT_ATOMICS, INTEGER_ATOMICS
from sarek_native.values import REGISTER
from sarek_numba.capability import (
    Capability,
    CapabilityKind,
    CoopmatRule,
    DeviceRecord,
    Fact,
    Limits,
    Verdict,
    host_facts,
)
from sarek_numba.ir.matrices import COMPONENTS, is_computed
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.ir.warps import WARP_WIDTHS

LIMITS = Limits(
    threads_per_block=1024,
    block=(1024, 1024, 64),
    grid=(2**31 - 1, 65_535, 65_535),
    shared_bytes=64 * 1024,
    local_bytes=2**30,
    global_bytes=0,
    warp_width=32,
    warp_widths=WARP_WIDTHS,
)

_CONSTRUCTION = Fact(
    Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, "by construction of the generated code"
)
_AT_ONCE = Fact(
    Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, "by construction: work is done when it is given"
)
MATRICES = CoopmatRule(
    f"every shape, components {', '.join(each.value for each in COMPONENTS)}",
    is_computed,
    Fact(Verdict.UNAVAILABLE, CapabilityKind.STRUCTURAL, "by construction: it does not compute it"),
)
_ATOMIC_SCALARS = tuple(
    Scalar(name) for name in ("int32", "uint32", "int64", "uint64", "float32", "float64")
)


def device_record(description: str, identity: tuple[tuple[str, str], ...]) -> DeviceRecord:
    return DeviceRecord(
        name="native",
        backend="native",
        model="direct",
        description=description,
        identity=identity,
        limits=Limits(
            threads_per_block=LIMITS.threads_per_block,
            block=LIMITS.block,
            grid=LIMITS.grid,
            shared_bytes=LIMITS.shared_bytes,
            local_bytes=LIMITS.local_bytes,
            global_bytes=_memory_bytes(),
            warp_width=LIMITS.warp_width,
            warp_widths=LIMITS.warp_widths,
        ),
        facts=facts(),
        is_cpu=True,
        coopmat=MATRICES,
    )


def facts() -> dict[Capability, Fact]:
    """Every type that has a register, atomics, shared memory and barriers."""
    found = {
        Capability(feature, scalar): _CONSTRUCTION
        for feature, scalar in product(("storage", "arithmetic"), REGISTER)
    }
    for scalar, space in product(_ATOMIC_SCALARS, (MemSpace.GLOBAL, MemSpace.SHARED)):
        for op in FLOAT_ATOMICS if scalar.is_float else INTEGER_ATOMICS:
            found[Capability("atomic", scalar, op, space)] = _CONSTRUCTION
    for feature in ("shared", "dynamic_shared", "barrier", "warp", "print"):
        found[Capability(feature)] = _CONSTRUCTION
    return found | host_facts(_AT_ONCE)


def _memory_bytes() -> int:
    """Physical memory, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 1 << 62
