"""A record as data that JSON takes: for `--json`, and for the table of devices in the documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import groupby
from typing import Any

from sarek_numba.capability.features import configuration_text, describe
from sarek_numba.capability.gate import fact_of, own_fact
from sarek_numba.capability.model import Capability, CoopmatRule, DeviceRecord, Fact, Verdict
from sarek_numba.ir.types import Scalar

_FEATURES_OF_TYPES = ("storage", "arithmetic", "atomic")


def as_json(record: DeviceRecord) -> dict[str, Any]:
    """Everything in a record; facts that are equal stand together."""
    return {
        "name": record.name,
        "backend": record.backend,
        "model": record.model,
        "description": record.description,
        "identity": dict(record.identity),
        "is_cpu": record.is_cpu,
        "limits": asdict(record.limits),
        "types": types_of(record),
        "facts": _facts(record),
        "coopmat": _coopmat(record),
    }


def types_of(record: DeviceRecord) -> dict[str, list[str]]:
    """What each element type has: storage, arithmetic, and atomics as operation and space."""
    found: dict[str, list[str]] = {scalar.value: [] for scalar in Scalar}
    for capability, fact in record.facts.items():
        scalar, feature = capability.scalar, capability.feature
        if scalar is None or feature not in _FEATURES_OF_TYPES:
            continue
        if fact.verdict is Verdict.AVAILABLE:
            op, space = capability.op, capability.space
            words = feature if op is None else f"atomic {op.value} {space.value if space else ''}"
            found[scalar.value].append(words.rstrip())
    return {name: sorted(words) for name, words in found.items() if words}


def _facts(record: DeviceRecord) -> list[dict[str, Any]]:
    """Each fact with all capabilities that it is one of, measurements of this device included."""
    known: list[tuple[Fact, str]] = []
    for capability in dict.fromkeys((*record.facts, *record.measured)):
        fact = own_fact(capability, record)
        if fact is not None:
            known.append((fact, describe(capability)))
    ordered = sorted(known, key=lambda pair: _order(pair[0]))
    return [
        {
            "verdict": fact.verdict.value,
            "kind": fact.kind.value,
            "basis": fact.basis.value if fact.basis else None,
            "evidence": fact.evidence,
            "remedy": fact.remedy,
            "capabilities": [words for _, words in pairs],
        }
        for fact, pairs in groupby(ordered, key=lambda pair: pair[0])
    ]


def _order(fact: Fact) -> tuple[str, ...]:
    return fact.verdict.value, fact.kind.value, fact.evidence, fact.remedy or ""


def _coopmat(record: DeviceRecord) -> list[str] | str | None:
    match record.coopmat:
        case None:
            return None
        case CoopmatRule(text=text):
            return text
        case listed:
            return [configuration_text(one) for one in listed]


def verdict_words(record: DeviceRecord, wanted: Iterable[Capability]) -> str:
    """ "yes", "no" or "not known" of capabilities that go together; a mixture says how many."""
    counts: dict[Verdict, int] = {}
    for capability in wanted:
        verdict = fact_of(capability, record).verdict
        counts[verdict] = counts.get(verdict, 0) + 1
    if len(counts) == 1:
        return _WORDS[next(iter(counts))]
    return f"{counts.get(Verdict.AVAILABLE, 0)} of {sum(counts.values())}"


_WORDS: Mapping[Verdict, str] = {
    Verdict.AVAILABLE: "yes",
    Verdict.UNAVAILABLE: "no",
    Verdict.UNKNOWN: "not known",
}
