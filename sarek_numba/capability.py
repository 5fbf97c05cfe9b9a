"""Devices as data: what each can do, how we know, and the verdict on what a kernel needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar


class Verdict(Enum):
    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"


class CapabilityKind(Enum):
    """Why something can or cannot be done."""

    STRUCTURAL = "backend structural"
    OPTIONAL = "device optional"
    TOOLCHAIN = "host toolchain"
    TOOLCHAIN_SEMANTIC = "toolchain semantic"
    POLICY = "policy"
    FLAG = "flag legality"


@dataclass(frozen=True, slots=True)
class Capability:
    """Something a device may have; the same shape as `ir.needs.Need`, without the place."""

    feature: str
    scalar: Scalar | None = None
    op: AtomicOp | None = None
    space: MemSpace | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one capability: the verdict, its kind, where it comes from, what would
    help.
    """

    verdict: Verdict
    kind: CapabilityKind
    evidence: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a launch. Dimensions are (x, y, z); bytes are of one block or of the device."""

    threads_per_block: int
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    shared_bytes: int
    global_bytes: int
    argument_bytes: int = 4096
    warp_width: int = 32


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """One device. `identity` (vendor, driver and compiler versions) is part of every cache key.

    A capability without a fact is unknown, and unknown refuses.
    """

    name: str
    backend: str
    model: str  # "jit", "direct" or "custom"
    description: str
    identity: tuple[tuple[str, str], ...]
    limits: Limits
    facts: Mapping[Capability, Fact] = field(default_factory=dict)
    is_cpu: bool = False
    measured: Mapping[str, object] = field(default_factory=dict)
