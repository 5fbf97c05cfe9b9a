"""The table of devices in docs/devices.md, made from the records of devices.

    python -m tools.device_table [--write] [--measure] [--device NAME]… [--record MODULE:FUNCTION]…

Without --write it shows what this machine's devices can do. With it, they are added to
docs/devices.json, in place of what was known of the same device with the same driver, and the table
is made anew; devices of other machines stay. --measure runs the self-test of numerics first.
--record adds what a function without arguments gives as a DeviceRecord, for devices that nobody
here has.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path

import sarek_numba as sarek
from sarek_numba.capability import (
    FEATURES,
    Capability,
    DeviceRecord,
    Shortfall,
    Verdict,
    own_fact,
)
from sarek_numba.capability.stored import verdict_words
from sarek_numba.codegen.target import Target
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import AtomicOp, FenceScope
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.runtime.registry import ORDER, Device
from sarek_numba.verify.numerics import self_test
from tools.numerics.identity import driver, family

ROOT = Path(__file__).resolve().parents[1]
JSON = ROOT / "docs" / "devices.json"
MARKDOWN = ROOT / "docs" / "devices.md"
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"

_INTEGER_ONLY = (AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR, AtomicOp.INC, AtomicOp.DEC)
_SPACES = (MemSpace.GLOBAL, MemSpace.SHARED)
_FLOATS = (Scalar.FLOAT32, Scalar.FLOAT64)
_INTEGERS = (Scalar.INT32, Scalar.UINT32, Scalar.INT64, Scalar.UINT64)


def _typed(*names: str) -> list[Capability]:
    scalars = [Scalar(name) for name in names]
    return [Capability(f, s) for f, s in product(("storage", "arithmetic"), scalars)]


def _atomics(*names: str) -> list[Capability]:
    return [
        Capability("atomic", Scalar(name), op, space)
        for name, op, space in product(names, AtomicOp, _SPACES)
        if not (Scalar(name).is_float and op in _INTEGER_ONLY)
    ]


def _functions(scalar: Scalar) -> list[Capability]:
    inexact = [name for name, info in INTRINSICS.items() if not info.exact]
    return [Capability("function", scalar, function=name) for name in inexact]


# Each row of the table and the capabilities that it stands for.
ROWS: dict[str, list[Capability]] = {
    "8- and 16-bit integers": _typed("int8", "uint8", "int16", "uint16"),
    "32-bit integers": _typed("int32", "uint32"),
    "64-bit integers": _typed("int64", "uint64"),
    "64-bit indices": [Capability("wide_index")],
    "float32": _typed("float32"),
    "float64": _typed("float64"),
    "functions of float32": _functions(Scalar.FLOAT32),
    "functions of float64": _functions(Scalar.FLOAT64),
    "atomics on 32-bit integers": _atomics("int32", "uint32"),
    "atomics on 64-bit integers": _atomics("int64", "uint64"),
    "atomics on float32": _atomics("float32"),
    "atomics on float64": _atomics("float64"),
    "shared memory": [Capability("shared")],
    "dynamic shared memory": [Capability("dynamic_shared")],
    "block barriers": [Capability("barrier")],
    "fences": [Capability("fence", function=scope.value) for scope in FenceScope],
    "warp operations": [Capability("warp")],
    "printing": [Capability("print")],
    "cooperative matrices": [Capability("coopmat")],
    "streams and events": [Capability("streams"), Capability("events")],
    "launches as one": [Capability("fusion")],
    "launch graphs": [Capability("graphs")],
    "copies from device to device": [Capability("peer_copies")],
}
_CONVERSIONS = [
    Capability("conversion", s, target=t)
    for s, t in product((*_INTEGERS, *_FLOATS), repeat=2)
    if s is not t and (s.is_float or t.is_float)
]
PROMISE_ROWS: dict[str, list[Capability]] = {
    **{
        f"{words} ({scalar.value})": [Capability(name, scalar)]
        for scalar in _FLOATS
        for name, words in (
            ("rounding", "sums and products rounded to nearest even"),
            ("contraction", "no contraction"),
            ("division", "exact division"),
            ("square_root", "exact square root"),
            ("fma", "fma with one rounding"),
            ("subnormal_inputs", "subnormal operands"),
            ("subnormal_results", "subnormal results"),
            ("nan", "NaN and infinity"),
            ("signed_zeros", "signs of zeros"),
        )
    },
    "exact conversions": _CONVERSIONS,
    "edges of integer division": [Capability("integer_division", s) for s in _INTEGERS],
}


@dataclass(frozen=True)
class Entry:
    """One device with one driver: the word of each row, and its limits, which tell of one machine.

    `measured` tells whether the self-test of numerics had run.
    """

    device: str
    driver: str
    measured: bool
    rows: dict[str, str]
    limits: dict[str, str]

    @property
    def key(self) -> tuple[str, str]:
        return self.device, self.driver


def entry_of(record: DeviceRecord, target: Target | None) -> Entry:
    """What the table says of a device."""
    rows = {row: verdict_words(record, wanted) for row, wanted in ROWS.items()}
    rows |= {row: _promise(record, target, wanted) for row, wanted in PROMISE_ROWS.items()}
    limits = record.limits
    return Entry(
        device=family(record.name),
        driver=driver(record),
        measured=bool(record.measured),
        rows=rows,
        limits={
            "threads a block": str(limits.threads_per_block),
            "shared memory a block": f"{limits.shared_bytes // 1024} KiB",
            "threads a warp": _widths(record),
        },
    )


def _widths(record: DeviceRecord) -> str:
    """The widths that a launch may ask for, or the only one; none without warp operations."""
    if verdict_words(record, [Capability("warp")]) != "yes":
        return ""
    return ", ".join(map(str, record.limits.warp_widths)) or str(record.limits.warp_width)


def _promise(record: DeviceRecord, target: Target | None, wanted: Sequence[Capability]) -> str:
    """Kept, or what becomes of kernels that stand on it."""
    if verdict_words(record, wanted) == "yes":
        return "yes"
    broken = [
        capability
        for capability in wanted
        if (fact := own_fact(capability, record)) and fact.verdict is not Verdict.AVAILABLE
    ]
    if not broken:  # it is the arithmetic that is missing
        return verdict_words(record, wanted)
    name = broken[0].feature
    if FEATURES[name].shortfall is Shortfall.DECLARED:
        return "no, declared"
    if target is not None and name in target.emulates:
        return "emulated exactly"
    return "no, refused"


# --- the file and the page ------------------------------------------------------------------------


def load(path: Path = JSON) -> list[Entry]:
    """All entries; none where there is no file."""
    if not path.exists():
        return []
    return [Entry(**entry) for entry in json.loads(path.read_text())["devices"]]


def merge(old: Iterable[Entry], new: Iterable[Entry]) -> list[Entry]:
    """New entries replace those of the same device and driver."""
    merged = {entry.key: entry for entry in (*old, *new)}
    return [merged[key] for key in sorted(merged, key=_place)]


def _place(key: tuple[str, str]) -> tuple[int, str, str]:
    backend = key[0].partition(":")[0]
    return (ORDER.index(backend) if backend in ORDER else len(ORDER), *key)


def write(entries: Sequence[Entry]) -> None:
    """The data, and the part between the marks of the page."""
    rows = [vars(entry) for entry in entries]
    JSON.write_text(json.dumps({"devices": rows}, indent=1) + "\n")
    MARKDOWN.write_text(with_table(MARKDOWN.read_text(), entries))


def with_table(text: str, entries: Sequence[Entry]) -> str:
    """The page with its generated part made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(entries)}\n{END}{after}"


def table(entries: Sequence[Entry]) -> str:
    """Versions, then one table of needs and one of promises."""
    lines = []
    for number, entry in enumerate(entries, 1):
        known = "measured" if entry.measured else "not measured"
        lines.append(f"{number}. {entry.device}: {entry.driver}; numbers {known}")
    heads = [f"{entry.device} ({number})" for number, entry in enumerate(entries, 1)]
    needs = [(row, [entry.rows.get(row, "") for entry in entries]) for row in ROWS]
    limits = dict.fromkeys(name for entry in entries for name in entry.limits)
    needs += [(row, [entry.limits.get(row, "") for entry in entries]) for row in limits]
    promises = [(row, [entry.rows.get(row, "") for entry in entries]) for row in PROMISE_ROWS]
    for first, body in (("need", needs), ("promise", promises)):
        lines += ["", f"| {first} | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
        lines += [f"| {row} | {' | '.join(cells)} |" for row, cells in body]
    return "\n".join(lines)


def unused_features() -> set[str]:
    """Features without a row: there is none but what depends on a block, or refines a type."""
    used = {c.feature for wanted in (*ROWS.values(), *PROMISE_ROWS.values()) for c in wanted}
    return set(FEATURES) - used


# --- the command ----------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", action="append", default=[])
    parser.add_argument("--record", action="append", default=[], metavar="MODULE:FUNCTION")
    parser.add_argument("--measure", action="store_true", help="run the self-test of numerics")
    parser.add_argument("--write", action="store_true", help="write docs/devices.json and .md")
    options = parser.parse_args()
    new = [_entry(d, options.measure) for d in sarek.devices()
           if not options.device or d.name in options.device]  # fmt: skip
    for place in options.record:
        module, _, function = place.partition(":")
        new.append(entry_of(getattr(import_module(module), function)(), None))
    print(table(new))
    if options.write:
        write(merge(load(), new))


def _entry(device: Device, measuring: bool) -> Entry:
    record = self_test(device) if measuring else device.record
    return entry_of(record, device.driver.target)


if __name__ == "__main__":
    main()
