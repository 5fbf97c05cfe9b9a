"""The verdict on what a kernel needs: the one place where something is refused, and its text.

The launch gate of every device and the interpreter's gate go through `judge` and `refuse`, so their
texts cannot drift apart. Only an available capability permits: one without a fact is unknown, and
unknown refuses. Promises about numbers are kept, emulated, declared, granted or refused as
`features.FEATURES` says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from sarek_numba.capability.features import (
    ELSEWHERE,
    FEATURES,
    Shortfall,
    capability_of,
    coarser,
    configurations_near,
    describe,
)
from sarek_numba.capability.model import (
    UNKNOWN,
    Basis,
    Capability,
    CapabilityKind,
    CoopmatRule,
    DeviceRecord,
    Fact,
    Verdict,
)
from sarek_numba.errors import CapabilityError, excerpt
from sarek_numba.ir.needs import Need

_VERDICT_WORDS = {
    Verdict.UNAVAILABLE: "does not have",
    Verdict.UNKNOWN: "is not known to have",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One need that a device does not meet, with the fact that decides."""

    kernel: str
    device: str
    need: Need
    fact: Fact
    backend: str = ""

    def __str__(self) -> str:
        place = f"{self.need.span}: " if self.need.span else ""
        kind = self.fact.kind
        backend = self.backend or self.device.partition(":")[0]
        return "\n".join(
            [
                f"{place}kernel '{self.kernel}' needs {describe(self.need)}, "
                f"which device '{self.device}' {_VERDICT_WORDS[self.fact.verdict]}",
                *excerpt(self.need.span),
                f"  {kind.value}: {kind.explanation(backend)}",
                f"  {evidence_text(self.fact)}",
                f"  hint: {self.remedy}",
            ]
        )

    @property
    def remedy(self) -> str:
        """What would help: the fact's own remedy, else that of the feature."""
        feature = FEATURES.get(self.need.feature)
        return self.fact.remedy or (feature.remedy if feature else "launch on another device")


def evidence_text(fact: Fact) -> str:
    """The evidence behind its basis; what is measured or by construction says so itself."""
    if fact.basis is None:
        return f"unknown: {fact.evidence}"
    quoted = fact.basis is Basis.QUOTED
    return f"quoted: {fact.evidence}" if quoted else fact.evidence


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a device makes of a kernel: only `refusals` keep it from running.

    `declared` are promises about numbers that are not kept, `emulated` those that the backend
    keeps by other operations, `granted` those that a grant gave up.
    """

    refusals: tuple[Refusal, ...] = ()
    declared: tuple[Refusal, ...] = ()
    emulated: tuple[Refusal, ...] = ()
    granted: tuple[Refusal, ...] = ()


# --- facts ----------------------------------------------------------------------------------------


def own_fact(capability: Capability, record: DeviceRecord) -> Fact | None:
    """What the record says of just this capability, measurements of this device included."""
    if capability.feature == "coopmat":
        return _coopmat_fact(capability, record)
    stated, probe = record.facts.get(capability), record.measured.get(capability)
    if probe is None:
        return stated
    if probe.wrong:
        remedy = stated.remedy if stated else None
        kind = CapabilityKind.OPTIONAL
        return Fact(Verdict.UNAVAILABLE, kind, f"measured: {probe}", remedy)
    if stated is None or stated.verdict is Verdict.UNKNOWN:
        return Fact(Verdict.AVAILABLE, CapabilityKind.OPTIONAL, f"measured: {probe}")
    return stated


def fact_of(capability: Capability, record: DeviceRecord) -> Fact:
    """What the record knows of a capability, or of the coarser one; unknown where nothing."""
    wanted: Capability | None = capability
    while wanted is not None:
        found = own_fact(wanted, record)
        if found is not None:
            return found
        wanted = coarser(wanted)
    return UNKNOWN


def _coopmat_fact(capability: Capability, record: DeviceRecord) -> Fact | None:
    """By the configurations that were enumerated; None where nothing was asked."""
    kind, config = CapabilityKind.OPTIONAL, capability.configuration
    match record.coopmat:
        case None:
            stated = record.facts.get(Capability("coopmat"))  # why nothing was asked
            if stated is None or stated.verdict is Verdict.AVAILABLE:
                return None
            return replace(stated, remedy=stated.remedy or ELSEWHERE)
        case CoopmatRule(text=text, permits=permits, otherwise=otherwise):
            if config is not None and not permits(config):
                return otherwise
            return Fact(Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, f"by construction: {text}")
        case listed:
            if config in listed or (config is None and listed):
                stated = record.facts.get(Capability("coopmat"))  # who says so, if not the device
                if stated is not None and stated.verdict is Verdict.AVAILABLE:
                    return stated
                return Fact(Verdict.AVAILABLE, kind, "measured: the device lists it")
            have = configurations_near(config, listed)
            remedy = None if listed else ELSEWHERE
            stated = record.facts.get(Capability("coopmat"))
            evidence = f"measured: the device lists {have}"
            if stated is not None and stated.verdict is Verdict.AVAILABLE:
                evidence = f"{stated.evidence}: it has {have}"
            return Fact(Verdict.UNAVAILABLE, kind, evidence, remedy)


# --- the gate -------------------------------------------------------------------------------------


def judge(
    kernel: str,
    needs: Iterable[Need],
    record: DeviceRecord,
    *,
    emulates: Collection[str] = (),
    fastmath: bool = False,
) -> Judgement:
    """What the device makes of needs and promises, each in their order.

    `emulates` names the promises that the backend keeps exactly by other operations, where the
    device does not keep them itself. `fastmath` tells whether the kernel has that grant.
    """
    sorted_into: dict[str, list[Refusal]] = {
        "refusals": [], "declared": [], "emulated": [], "granted": []
    }  # fmt: skip
    refused: set[Capability] = set()
    for need in needs:
        capability = capability_of(need)
        own = own_fact(capability, record)
        feature = FEATURES.get(need.feature)
        shortfall = feature.shortfall if feature else None
        if own is None and shortfall is not None:
            continue  # a promise that the record leaves to its arithmetic, which is a need as well
        fact = own or fact_of(capability, record)
        if fact.verdict is Verdict.AVAILABLE:
            continue
        if coarser(capability) in refused:
            continue  # said already
        made = Refusal(kernel, record.name, need, fact, record.backend)
        if feature and fastmath and feature.granted:
            sorted_into["granted"].append(made)
        elif shortfall is Shortfall.DECLARED:
            sorted_into["declared"].append(made)
        elif shortfall is Shortfall.EMULATED and need.feature in emulates:
            sorted_into["emulated"].append(made)
        else:
            refused.add(capability)
            sorted_into["refusals"].append(made)
    return Judgement(**{name: tuple(found) for name, found in sorted_into.items()})


def check(kernel: str, needs: Iterable[Need], record: DeviceRecord) -> list[Refusal]:
    """Every need of the kernel that the device does not meet, in the order of the needs."""
    return list(judge(kernel, needs, record).refusals)


def refuse(refusals: Sequence[Refusal]) -> None:
    """Raise all refusals of one launch as one CapabilityError; nothing if there are none."""
    if refusals:
        raise CapabilityError("\n".join(map(str, refusals)), tuple(refusals))


# --- for backends ---------------------------------------------------------------------------------


def to_emulate(record: DeviceRecord, *, fastmath: bool = False) -> frozenset[Capability]:
    """The promises about numbers that generated code has to keep by other operations.

    A backend that names a feature in `Target.emulates` asks here what to emit for its device. A
    promise of unknown keeping is emulated too. Where `fastmath` gives one up, it is not.
    """
    candidates = (*record.facts, *record.measured)
    return frozenset(
        capability for capability in candidates if _is_emulated(capability, record, fastmath)
    )


def _is_emulated(capability: Capability, record: DeviceRecord, fastmath: bool) -> bool:
    feature = FEATURES.get(capability.feature)
    if feature is None or feature.shortfall is not Shortfall.EMULATED:
        return False
    if fastmath and feature.granted:
        return False
    fact = own_fact(capability, record)
    return fact is not None and fact.verdict is not Verdict.AVAILABLE


def without_verdicts(record: DeviceRecord, features: Collection[str]) -> DeviceRecord:
    """The record with unknown facts of some features taken for available: for measuring them."""
    facts = {
        capability: replace(fact, verdict=Verdict.AVAILABLE)
        if capability.feature in features and fact.verdict is Verdict.UNKNOWN
        else fact
        for capability, fact in record.facts.items()
    }
    return replace(record, facts=facts, measured={})
