"""Promises about numbers at a launch: refused, emulated, granted, or declared once.

What a device was measured to do is in its record (`DeviceRecord.measured`): the self-test of
`verify.numerics` writes it to the cache on disk under the device's identity, and a later process
reads it when the device is opened. Another driver or another version of this package is another
identity, of which nothing is measured yet.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sarek_numba import capability, policy
from sarek_numba.capability import (
    FEATURES,
    PROMISES,
    Capability,
    DeviceRecord,
    Probe,
    Shortfall,
    Verdict,
)
from sarek_numba.errors import DeviationWarning
from sarek_numba.ir.needs import promises
from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime import disk

if TYPE_CHECKING:
    from sarek_numba.runtime.registry import Device

KIND = "measured"  # of entries of the cache on disk

_declared: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
_lock = threading.Lock()


# --- at a launch ----------------------------------------------------------------------------------


def refusals(device: Device, kernel: Kernel) -> list[capability.Refusal]:
    """What is refused because the device breaks a promise; tells once of those that it declares."""
    record = device.record
    if not _says_anything(record):
        return []
    target = device.driver.target
    judged = capability.judge(
        kernel.name,
        promises(kernel),
        record,
        emulates=frozenset() if target is None else target.emulates,
        fastmath=kernel.fastmath,
    )
    for one in judged.emulated:
        policy.explain(f"kernel '{kernel.name}' on {record.name}: emulates {_words(one)}")
    if judged.declared and not judged.refusals:
        _declare(record)
    return list(judged.refusals)


def _says_anything(record: DeviceRecord) -> bool:
    """Whether there is a promise that the record does not leave to its arithmetic."""
    return bool(record.measured) or any(c.feature in PROMISES for c in record.facts)


def _words(refusal: capability.Refusal) -> str:
    return capability.describe(refusal.need)


def broken(record: DeviceRecord) -> list[tuple[Capability, capability.Fact]]:
    """The promises that a device is known, or not known, to break, with the facts."""
    named = dict.fromkeys((*record.facts, *record.measured))
    found = []
    for one in named:
        fact = capability.own_fact(one, record) if one.feature in PROMISES else None
        if fact is not None and fact.verdict is not Verdict.AVAILABLE:
            found.append((one, fact))
    return found


def _declare(record: DeviceRecord) -> None:
    """One warning in the process for a device, of all that it declares."""
    with _lock:
        key = (record.name, record.identity)
        if key in _declared:
            return
        _declared.add(key)
    lines = [
        f"  {capability.describe(one)}: {fact.evidence}"
        for one, fact in broken(record)
        if FEATURES[one.feature].shortfall is Shortfall.DECLARED
    ]
    warnings.warn(
        "\n".join(
            [
                f"device '{record.name}' does not keep subnormal numbers, and its results may "
                "differ there from those of other devices",
                *lines,
                "  hint: scale the data into the normal range, or launch on another device",
            ]
        ),
        DeviationWarning,
        stacklevel=2,
    )


def forget_declared() -> None:
    """Have every device tell again what it declares."""
    with _lock:
        _declared.clear()


# --- what was measured ----------------------------------------------------------------------------


def remember(record: DeviceRecord, measured: Mapping[Capability, Probe]) -> DeviceRecord:
    """The record with what was measured, which is kept for later processes too."""
    disk.save(KIND, _key(record), json.dumps(_rows(measured)).encode())
    return replace(record, measured=dict(measured))


def recalled(record: DeviceRecord) -> DeviceRecord:
    """The record with what an earlier process measured on this very device, if one did."""
    content = disk.load(KIND, _key(record), counted=False)
    if content is None:
        return record
    try:
        measured = dict(_probes(json.loads(content)))
    except (ValueError, TypeError, KeyError):
        disk.drop(KIND, _key(record))
        return record
    return replace(record, measured=measured)


def _key(record: DeviceRecord) -> str:
    return disk.key_of(KIND, record.name, record.description, record.identity)


def _rows(measured: Mapping[Capability, Probe]) -> list[list[Any]]:
    return [
        [
            one.feature,
            one.scalar.value if one.scalar else None,
            one.target.value if one.target else None,
            probe.count,
            probe.wrong,
            probe.example,
        ]
        for one, probe in measured.items()
    ]


def _probes(rows: Iterable[Any]) -> Iterable[tuple[Capability, Probe]]:
    for feature, scalar, target, count, wrong, example in rows:
        if feature not in PROMISES:
            raise ValueError(feature)
        made = Capability(
            feature,
            None if scalar is None else Scalar(scalar),
            target=None if target is None else Scalar(target),
        )
        yield made, Probe(int(count), int(wrong), str(example))
