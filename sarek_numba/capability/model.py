"""Devices as data: verdicts, kinds, facts with their evidence, limits, the record of a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from sarek_numba.ir.nodes import AtomicOp, CoopmatConfig
from sarek_numba.ir.types import MemSpace, Scalar


class Verdict(Enum):
    """Only `AVAILABLE` permits."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"


class CapabilityKind(Enum):
    """Why something can or cannot be done; `explanation` says it in words."""

    STRUCTURAL = "backend structural"
    OPTIONAL = "device optional"
    TOOLCHAIN = "host toolchain"
    TOOLCHAIN_SEMANTIC = "toolchain semantic"
    POLICY = "policy"
    FLAG = "flag legality"

    def explanation(self, backend: str) -> str:
        """What follows of the kind for whoever was refused, where `backend` is the device's."""
        return _EXPLANATIONS[self].format(backend=backend)


_EXPLANATIONS = {
    CapabilityKind.STRUCTURAL: "no device of the backend '{backend}' can",
    CapabilityKind.OPTIONAL: "devices of the backend '{backend}' may or may not",
    CapabilityKind.TOOLCHAIN: "a program of this machine is missing or too old, not the device",
    CapabilityKind.TOOLCHAIN_SEMANTIC: "a compiler takes it and gives wrong results",
    CapabilityKind.POLICY: "it could run, and nothing permits what it does to the results",
    CapabilityKind.FLAG: "a flag of the compiler would change results that are promised exact",
}


class Basis(Enum):
    """How a fact is known."""

    MEASURED = "measured"
    QUOTED = "quoted"
    CONSTRUCTION = "by construction"


@dataclass(frozen=True, slots=True)
class Capability:
    """Something a device may have; the same shape as `ir.needs.Need`, without the place.

    `features.FEATURES` has every feature and says which of the other fields each has.
    """

    feature: str
    scalar: Scalar | None = None
    op: AtomicOp | None = None
    space: MemSpace | None = None
    function: str | None = None
    target: Scalar | None = None
    configuration: CoopmatConfig | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one capability: the verdict, its kind, where it comes from, what would
    help.

    The evidence is a text. It begins with "measured" or "by construction" where that is its basis;
    any other is quoted, and names its source: a section, or the query that the device answered.
    """

    verdict: Verdict
    kind: CapabilityKind
    evidence: str
    remedy: str | None = None

    @property
    def basis(self) -> Basis | None:
        """How the fact is known; None where nothing is."""
        if self.evidence == NOTHING_KNOWN:
            return None
        for basis in (Basis.MEASURED, Basis.CONSTRUCTION):
            if self.evidence.startswith(basis.value):
                return basis
        return Basis.QUOTED


NOTHING_KNOWN = "nothing is known of it on this device"
UNKNOWN = Fact(Verdict.UNKNOWN, CapabilityKind.OPTIONAL, NOTHING_KNOWN)


@dataclass(frozen=True, slots=True)
class Residency:
    """How many threads a device runs at a time, and how that is known; see `Fact.evidence`."""

    threads: int
    evidence: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a launch. Dimensions are (x, y, z); bytes are of one block or of the device.

    `warp_widths` are the widths that a launch may ask for instead of `warp_width`. Without
    `warps_span_rows` a warp lies in one row along x. `local_bytes` is what the local arrays of all
    threads of a block may take together, `thread_local_bytes` what those of one may take; where
    both are None, the driver knows and says. `registers` are those of a block, where told.
    `threads_per_axis` is what grid times block may be along an axis, where that is limited.
    `residency` is given where the device says it.
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
    registers: int | None = None
    threads_per_axis: int | None = None
    residency: Residency | None = None

    def warp_width_for(self, wanted: int | None) -> int:
        """The width of a warp on the device, where another than its own may be wanted."""
        return wanted if wanted is not None and wanted in self.warp_widths else self.warp_width


@dataclass(frozen=True, slots=True)
class CoopmatRule:
    """Which cooperative matrices a device takes that computes them itself: a test, and its text."""

    text: str
    permits: Callable[[CoopmatConfig], bool]
    otherwise: Fact  # for a configuration that the rule does not permit


@dataclass(frozen=True, slots=True)
class Probe:
    """What the self-test of numerics found of one promise: `wrong` of `count` results differ.

    `example` is the first of those in words.
    """

    count: int
    wrong: int
    example: str = ""

    def __str__(self) -> str:
        if not self.wrong:
            return f"{self.count} results are exact"
        return f"{self.wrong} of {self.count} results are wrong, as {self.example}"


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """One device. `identity` (vendor, driver and compiler versions) is part of every cache key.

    A capability without a fact is unknown, and unknown refuses. `coopmat` are the configurations
    that were enumerated, or a rule; None where nothing was asked, which refuses all. `measured` is
    what the self-test of numerics found on this device, by the capability of each promise.
    """

    name: str
    backend: str
    model: str  # "jit", "direct" or "custom"
    description: str
    identity: tuple[tuple[str, str], ...]
    limits: Limits
    facts: Mapping[Capability, Fact] = field(default_factory=dict)
    is_cpu: bool = False
    measured: Mapping[Capability, Probe] = field(default_factory=dict)
    coopmat: tuple[CoopmatConfig, ...] | CoopmatRule | None = None


# --- facts that several backends state ------------------------------------------------------------


def host_facts(streams: Fact) -> dict[Capability, Fact]:
    """What the host does for a device: streams and events as given; no graphs, no peer copies, no
    launches as one.

    A backend that has more states it over these.
    """
    none = Fact(
        Verdict.UNAVAILABLE,
        CapabilityKind.STRUCTURAL,
        "by construction: this version of the runtime has none",
    )
    facts = dict.fromkeys((Capability("streams"), Capability("events")), streams)
    missing = ("graphs", "peer_copies", "fusion")
    return facts | dict.fromkeys(map(Capability, missing), none)
