"""The record of bounds, `docs/numerics.json`, and the tables made of it in `docs/numerics.md`.

A record belongs to a family of devices, the versions of its driver and the level of the processor.
Measuring again replaces it; other machines add theirs. A bound is the worst measured error, rounded
up to whole ULP, over all records of the family; on a machine that has a record, that one's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tools.numerics.functions import EXACT, FUNCTIONS
from tools.numerics.measure import TYPES, Deviation, Measured
from tools.numerics.reference import VERSION
from tools.numerics.sample import SIZE

ROOT = Path(__file__).resolve().parents[2]
JSON = ROOT / "docs" / "numerics.json"
MARKDOWN = ROOT / "docs" / "numerics.md"
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"

Results = dict[tuple[str, str], Measured]  # by function and type


@dataclass(frozen=True)
class Record:
    """What was measured on one family of devices with one driver on one kind of processor."""

    device: str
    driver: str
    instruction_set: str
    results: Results = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.device, self.driver, self.instruction_set


def bound(measured: Measured) -> float:
    """The error that is promised: whole ULP, at least one."""
    return measured.ulp if math.isinf(measured.ulp) else max(1, math.ceil(measured.ulp))


def load(path: Path = JSON) -> list[Record]:
    """All records; none where there is no file."""
    if not path.exists():
        return []
    return [_record(entry) for entry in json.loads(path.read_text())["records"]]


def merge(old: Iterable[Record], new: Iterable[Record]) -> list[Record]:
    """New records replace those of the same key."""
    merged = {record.key: record for record in (*old, *new)}
    return [merged[key] for key in sorted(merged)]


def for_machine(records: Sequence[Record], key: tuple[str, str, str]) -> list[Record]:
    """The record of this very machine, else all of the family of devices."""
    same = [record for record in records if record.key == key]
    return same or [record for record in records if record.device == key[0]]


def write(records: Sequence[Record]) -> None:
    """The data, and the text between the markers of the document."""
    entries = [_entry(record) for record in records]
    data = {"reference": VERSION, "sample": SIZE, "records": entries}
    JSON.write_text(json.dumps(data, indent=1) + "\n")
    text = MARKDOWN.read_text()
    MARKDOWN.write_text(with_tables(text, records))


def with_tables(text: str, records: Sequence[Record]) -> str:
    """The document with its generated part made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables(records)}{END}{after}"


def tables(records: Sequence[Record]) -> str:
    """Versions, a table for each type, the deviations."""
    lines = ["", f"Reference: {VERSION}; {SIZE:,} arguments for each function and type.", ""]
    for number, record in enumerate(records, 1):
        lines.append(f"{number}. {record.device}: {record.driver}; {record.instruction_set}")
    for dtype in TYPES:
        heads = [f"{record.device} ({number})" for number, record in enumerate(records, 1)]
        lines += ["", f"### {dtype.name}", "", f"| function | {' | '.join(heads)} |"]
        lines.append("|---" * (len(heads) + 1) + "|")
        for name in FUNCTIONS:
            cells = [_cell(record.results[name, dtype.name]) for record in records]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "### Special values", "", *_deviations(records)]
    lines += ["", "### Exact", "", _wrapped(EXACT), ""]
    return "\n".join(lines)


def _cell(measured: Measured) -> str:
    size = f"{measured.ulp:.3f}" if measured.ulp < 1000 else f"{measured.ulp:.2g}"
    return f"{size} at {measured.at}"


def _deviations(records: Sequence[Record]) -> list[str]:
    lines = []
    for record in records:
        for (name, dtype), measured in record.results.items():
            if name not in FUNCTIONS or FUNCTIONS[name].least:
                continue
            for found in measured.deviations:
                expected, actual = (
                    "a number" if kind == "number" else kind
                    for kind in (found.expected, found.actual)
                )
                lines.append(
                    f"- {record.device}, {dtype}: {name} gives {actual} for {expected} at "
                    f"{found.count} arguments, as {'; '.join(found.at)}"
                )
    return lines or ["None."]


def _wrapped(names: Sequence[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def _entry(record: Record) -> dict[str, Any]:
    results: dict[str, dict[str, Any]] = {}
    for (name, dtype), measured in record.results.items():
        results.setdefault(name, {})[dtype] = asdict(measured)
    return {
        "device": record.device,
        "driver": record.driver,
        "instruction_set": record.instruction_set,
        "results": results,
    }


def _record(entry: dict[str, Any]) -> Record:
    results = {
        (name, dtype): Measured(
            measured["ulp"],
            measured["at"],
            tuple(Deviation(**{**d, "at": tuple(d["at"])}) for d in measured["deviations"]),
        )
        for name, types in entry["results"].items()
        for dtype, measured in types.items()
    }
    return Record(entry["device"], entry["driver"], entry["instruction_set"], results)
