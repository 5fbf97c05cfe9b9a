"""`sarek doctor`: what is here, what is missing and how to get it, and whether devices are right.

Every present device computes some kernels as the oracle does (`verify.parity`), and is measured for
the promises about numbers (`verify.numerics`), which stays known to later processes. The exit code
is 1 where a present device fails; what is missing is no failure.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sarek_numba.capability import FEATURES, Capability, Fact, Shortfall, describe
from sarek_numba.cli.parts import Found, found
from sarek_numba.cli.tables import console
from sarek_numba.errors import UnknownDevice
from sarek_numba.runtime.promised import broken
from sarek_numba.runtime.registry import Device, Presence, device, devices
from sarek_numba.verify.numerics import self_test
from sarek_numba.verify.parity import Checked, first_line, parity


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One present device: its kernels against the oracle, and the self-test.

    `error` is what the self-test raised.
    """

    device: Device
    checked: tuple[Checked, ...]
    error: str = ""

    @property
    def is_well(self) -> bool:
        return not self.error and not any(one.outcome.is_fault for one in self.checked)


@click.command()
@click.option("--device", "names", multiple=True, help="Check this device alone; may be repeated.")
@click.option("--again", is_flag=True, help="Measure numerics again, though they are known.")
@click.option("--json", "as_text", is_flag=True, help="Print the result as JSON.")
def command(names: tuple[str, ...], again: bool, as_text: bool) -> None:
    """Say what is present, what is missing and how to install it, and check every device."""
    table = devices(why=True)
    try:
        chosen = [device(name) for name in names] or [line.device for line in table if line.device]
    except UnknownDevice as unknown:
        click.echo(f"UnknownDevice: {unknown}", err=True)
        sys.exit(2)
    parts = found()
    diagnoses = [diagnose(one, again) for one in chosen]
    if as_text:
        click.echo(json.dumps(_as_json(table, parts, diagnoses), indent=1))
    else:
        _show(console(), table, parts, diagnoses)
    if not all(one.is_well for one in diagnoses):
        sys.exit(1)


def diagnose(which: Device, again: bool = False) -> Diagnosis:
    """Check one device; nothing that it does is raised."""
    checked = parity(which)
    try:
        if again or not which.record.measured:
            self_test(which)
    except Exception as error:  # whatever a driver does is what is looked for
        return Diagnosis(which, checked, first_line(error))
    return Diagnosis(which, checked)


# --- text -----------------------------------------------------------------------------------------


def _show(
    where: Console, table: list[Presence], parts: list[Found], diagnoses: list[Diagnosis]
) -> None:
    shown = Table("backend", "part", "", "found, or how to install it", title="Parts")
    for one in parts:
        shown.add_row(one.part.backend, one.part.name, _state(one), escape(_where(one)))
    where.print(shown)
    absent = [line for line in table if line.device is None]
    if absent:
        reasons = Table("backend", "why it has no device", title="Absent")
        for line in absent:
            reasons.add_row(line.name, escape(line.reason))
        where.print(reasons)
    checks = Table("device", "kernels as the oracle", "seconds", "numbers", title="Devices")
    for each in diagnoses:
        seconds = sum(one.seconds for one in each.checked)
        checks.add_row(
            each.device.name, escape(_kernels(each)), f"{seconds:.1f}", escape(_numbers(each))
        )
    where.print(checks)


def _state(one: Found) -> str:
    if one.place is not None:
        return "found"
    if one.why:
        return "elsewhere"
    return "optional" if one.part.optional else "missing"


def _where(one: Found) -> str:
    return one.place or one.why or one.part.install


def _kernels(each: Diagnosis) -> str:
    lines = [f"{one.kernel}: {one.outcome.value} {one.text}".rstrip()
             for one in each.checked if one.outcome.value != "same bits"]  # fmt: skip
    same = len(each.checked) - len(lines)
    return "\n".join([f"{same} of {len(each.checked)} give the same bits", *lines])


def _numbers(each: Diagnosis) -> str:
    if each.error:
        return each.error
    record = each.device.record
    lines = [
        f"{describe(capability)}: {handling(each.device, capability)}; {fact.evidence}"
        for capability, fact in broken(record)
    ]
    exact = sum(not probe.wrong for probe in record.measured.values())
    return "\n".join([f"{exact} of {len(record.measured)} promises are kept", *lines])


def handling(which: Device, capability: Capability) -> str:
    """What becomes of kernels that stand on a promise which the device breaks."""
    feature, target = FEATURES[capability.feature], which.driver.target
    if feature.shortfall is Shortfall.DECLARED:
        return "declared"
    emulates = target is not None and capability.feature in target.emulates
    return "emulated" if emulates and feature.shortfall is Shortfall.EMULATED else "refused"


# --- JSON -----------------------------------------------------------------------------------------


def _as_json(
    table: list[Presence], parts: list[Found], diagnoses: list[Diagnosis]
) -> dict[str, Any]:
    return {
        "parts": [
            {
                "backend": one.part.backend,
                "part": one.part.name,
                "role": one.part.role,
                "found": one.place,
                "optional": one.part.optional,
                "note": one.why,
                "install": one.part.install,
            }
            for one in parts
        ],
        "absent": {line.name: line.reason for line in table if line.device is None},
        "devices": [_diagnosis_json(one) for one in diagnoses],
        "well": all(one.is_well for one in diagnoses),
    }


def _diagnosis_json(one: Diagnosis) -> dict[str, Any]:
    record = one.device.record
    return {
        "name": one.device.name,
        "well": one.is_well,
        "error": one.error,
        "kernels": {
            each.kernel: {"outcome": each.outcome.value, "text": each.text} for each in one.checked
        },
        "measured": {
            describe(capability): {"count": probe.count, "wrong": probe.wrong}
            for capability, probe in record.measured.items()
        },
        "broken": {
            describe(capability): _broken_json(one.device, capability, fact)
            for capability, fact in broken(record)
        },
    }


def _broken_json(which: Device, capability: Capability, fact: Fact) -> dict[str, str]:
    return {"handling": handling(which, capability), "evidence": fact.evidence}
