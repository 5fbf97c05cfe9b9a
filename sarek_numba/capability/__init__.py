"""Devices as data: what each can do, how we know, and the verdict on what a kernel needs.

`model` has the record of a device, `features` the table of all features, `gate` the verdict.
"""

from sarek_numba.capability.features import (
    FEATURES,
    PROMISES,
    Feature,
    Shortfall,
    capability_of,
    coarser,
    describe,
)
from sarek_numba.capability.gate import (
    Judgement,
    Refusal,
    check,
    evidence_text,
    fact_of,
    judge,
    own_fact,
    refuse,
    to_emulate,
    without_verdicts,
)
from sarek_numba.capability.model import (
    Basis,
    Capability,
    CapabilityKind,
    CoopmatRule,
    DeviceRecord,
    Fact,
    Limits,
    Probe,
    Residency,
    Verdict,
    host_facts,
)

__all__ = [
    "FEATURES",
    "PROMISES",
    "Basis",
    "Capability",
    "CapabilityKind",
    "CoopmatRule",
    "DeviceRecord",
    "Fact",
    "Feature",
    "Judgement",
    "Limits",
    "Probe",
    "Refusal",
    "Residency",
    "Shortfall",
    "Verdict",
    "capability_of",
    "check",
    "coarser",
    "describe",
    "evidence_text",
    "fact_of",
    "host_facts",
    "judge",
    "own_fact",
    "refuse",
    "to_emulate",
    "without_verdicts",
]
