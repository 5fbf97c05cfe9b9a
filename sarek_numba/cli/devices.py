"""`sarek devices`: what can run kernels here, and why the rest cannot."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sarek_numba.capability import DeviceRecord, evidence_text
from sarek_numba.capability.stored import as_json
from sarek_numba.cli.tables import console
from sarek_numba.errors import UnknownDevice
from sarek_numba.runtime.promised import broken
from sarek_numba.runtime.registry import Presence, device, devices


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_text", is_flag=True, help="Print every record as JSON.")
def command(name: str | None, as_text: bool) -> None:
    """List every backend with its devices, or why it has none.

    With NAME, all that is known of one device, with the evidence.
    """
    if name is not None:
        _show_one(name, as_text)
        return
    table = devices(why=True)
    if as_text:
        click.echo(json.dumps([_row(line) for line in table], indent=1))
        return
    shown = Table("device", "present", "model", "threads", "shared", "warp", "numbers", "reason")
    for line in table:
        shown.add_row(*_cells(line))
    console().print(shown)


def _row(line: Presence) -> dict[str, Any]:
    if line.device is None:
        return {"name": line.name, "present": False, "reason": line.reason}
    return {"present": True, "reason": line.reason, **as_json(line.device.record)}


def _cells(line: Presence) -> tuple[str, ...]:
    if line.device is None:
        return line.name, "no", "", "", "", "", "", escape(line.reason)
    record = line.device.record
    limits = record.limits
    return (
        line.name,
        "yes",
        record.model,
        str(limits.threads_per_block),
        f"{limits.shared_bytes // 1024} KiB",
        str(limits.warp_width),
        numbers(record),
        escape(line.reason),
    )


def numbers(record: DeviceRecord) -> str:
    """Whether promises about numbers are kept, as far as is known."""
    if broken(record):
        return "deviates"
    return "exact, measured" if record.measured else "exact"


def _show_one(name: str, as_text: bool) -> None:
    try:
        record = device(name).record
    except UnknownDevice as unknown:
        click.echo(f"UnknownDevice: {unknown}", err=True)
        sys.exit(1)
    if as_text:
        click.echo(json.dumps(as_json(record), indent=1))
        return
    where = console()
    where.print(f"{record.name}: {record.description}", markup=False)
    for key, value in record.identity:
        where.print(f"  {key}: {value}", markup=False, soft_wrap=True)
    _show_facts(where, record)
    for capability, fact in broken(record):
        where.print(f"deviates: {capability.feature}: {evidence_text(fact)}", markup=False)


def _show_facts(where: Console, record: DeviceRecord) -> None:
    described = as_json(record)
    limits = Table("limit", "value")
    for key, value in described["limits"].items():
        limits.add_row(key, str(value))
    where.print(limits)
    facts = Table("capabilities", "verdict", "kind", "evidence")
    for one in described["facts"]:
        facts.add_row(", ".join(one["capabilities"]), one["verdict"], one["kind"], one["evidence"])
    where.print(facts)
    listed = described["coopmat"]
    if listed:
        matrices = Table("cooperative matrices")
        for words in [listed] if isinstance(listed, str) else listed:
            matrices.add_row(words)
        where.print(matrices)
