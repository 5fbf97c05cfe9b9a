"""Devices as data: what each can do, how we know, and the verdict on what a kernel needs.

`check` compares needs with a record and gives the refusals; `refuse` raises them. The launch of a
device and the interpreter's own entry both go through these two, so their texts cannot drift apart.
Only an available capability permits: one without a fact is unknown, and unknown refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from sarek_numba.errors import CapabilityError, excerpt
from sarek_numba.ir.needs import Need
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
    """Limits of a launch. Dimensions are (x, y, z); bytes are of one block or of the device.

    `warp_widths` are the widths that a launch may ask for instead of `warp_width`. Without
    `warps_span_rows` a warp lies in one row along x. `local_bytes` is what the local arrays of all
    threads of a block may take together, `thread_local_bytes` what those of one may take; where
    both are None, the driver knows and says.
    """

    threads_per_block: int
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    shared_bytes: int
    global_bytes: int
    argument_bytes: int = 4096
    warp_width: int = 32
    warp_widths: tuple[int, ...] = ()
    warps_span_rows: bool = True
    local_bytes: int | None = None
    thread_local_bytes: int | None = None

    def warp_width_for(self, wanted: int | None) -> int:
        """The width of a warp on the device, where another than its own may be wanted."""
        return wanted if wanted is not None and wanted in self.warp_widths else self.warp_width


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


# --- the verdict ----------------------------------------------------------------------------------

_UNKNOWN = Fact(
    Verdict.UNKNOWN,
    CapabilityKind.OPTIONAL,
    "nothing is known of it on this device",
)

_VERDICT_WORDS = {
    Verdict.UNAVAILABLE: "does not have",
    Verdict.UNKNOWN: "is not known to have",
}

_FEATURE_WORDS = {
    "storage": "{scalar} in memory",
    "arithmetic": "{scalar} arithmetic",
    "atomic": "atomic {op} on {scalar} in {space} memory",
    "shared": "shared memory",
    "dynamic_shared": "dynamic shared memory",
    "barrier": "block barriers",
    "warp": "warp operations",
    "warp_rows": "warps that span rows of a block",
    "print": "printing",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One need that a device does not meet, with the fact that decides."""

    kernel: str
    device: str
    need: Need
    fact: Fact

    def __str__(self) -> str:
        place = f"{self.need.span}: " if self.need.span else ""
        lines = [
            f"{place}kernel '{self.kernel}' needs {describe(self.need)}, "
            f"which device '{self.device}' {_VERDICT_WORDS[self.fact.verdict]}",
            *excerpt(self.need.span),
            f"  {self.fact.kind.value}: {self.fact.evidence}",
        ]
        if self.fact.remedy:
            lines.append(f"  hint: {self.fact.remedy}")
        return "\n".join(lines)


def capability_of(need: Need) -> Capability:
    """The capability that a need asks for: the need without its place."""
    return Capability(need.feature, need.scalar, need.op, need.space)


def describe(wanted: Need | Capability) -> str:
    """A need or capability in words, such as "float64 arithmetic"."""
    template = _FEATURE_WORDS.get(wanted.feature, wanted.feature)
    return template.format(
        scalar=wanted.scalar.value if wanted.scalar else "",
        op=wanted.op.value if wanted.op else "",
        space=wanted.space.value if wanted.space else "global",
    )


def fact_of(capability: Capability, record: DeviceRecord) -> Fact:
    """What the record knows of a capability; unknown where it says nothing."""
    return record.facts.get(capability, _UNKNOWN)


def check(kernel: str, needs: Iterable[Need], record: DeviceRecord) -> list[Refusal]:
    """Every need of the kernel that the device does not meet, in the order of the needs."""
    refusals = []
    for need in needs:
        fact = fact_of(capability_of(need), record)
        if fact.verdict is not Verdict.AVAILABLE:
            refusals.append(Refusal(kernel, record.name, need, fact))
    return refusals


def refuse(refusals: Sequence[Refusal]) -> None:
    """Raise all refusals of one launch as one CapabilityError; nothing if there are none."""
    if refusals:
        raise CapabilityError("\n".join(map(str, refusals)), tuple(refusals))
