"""Bandwidth of streaming kernels: `python -m benchmarks.streaming_gpu --json FILE`.

On each device kernels that read and write every element once, coarsened and not, beside CUDA C++ by
hand (an element a thread, and 16 bytes), and the device's own copy. Contenders take turns round by
round, each with the same sets of vectors in turn, of which there are enough that no cache holds
them. Outputs are poisoned and compared before the first round and after the last; who leaves one
wrong element has no time. Bytes are those that the kernel must move, each element once.

Times are by events of the device around several launches, whose arguments were made before. Where
giving the launches took the host nine tenths of that or more, the row is marked: it is a time of
the host. Who cannot take part is named with the reason.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import click
import numpy as np

import sarek_numba as sarek
from benchmarks.__main__ import machine
from benchmarks.arrays import tidy
from benchmarks.streaming_contenders import (
    Absent,
    Case,
    Contender,
    at_any_size,
    makers_for,
    on_cpus_too,
)
from benchmarks.streaming_kernels import KERNELS, Streaming
from sarek_numba import execute

COPY = "device's copy"
_MOST_SETS, _MOST_CALLS = 48, 400
_HOST_SHARE = 0.9


@dataclass(frozen=True)
class Settings:
    """`rotated` bytes are those of all sets together, `seconds` those of a sample."""

    rounds: int
    seconds: float
    rotated: int


class Problem:
    """A kernel with its inputs and what is to come of them."""

    def __init__(self, name: str, dtype: str, size: int) -> None:
        self.name, self.what = name, KERNELS[name]
        side = isqrt(size)
        shape: Any = (side, side) if self.what.plane else size
        random = np.random.default_rng(size)
        kind = np.dtype(dtype)
        self.x, self.y, before = (
            random.uniform(-4, 4, shape).astype(kind) for _ in range(3)
        )  # fmt: skip
        self.scalars = tuple(kind.type(each) for each in self.what.scalars)
        self.before = before if self.what.in_place else np.full(shape, np.nan, kind)
        wide = np.result_type(kind, np.float32 if self.what.exact else np.float64)
        expected, *given = (each.astype(wide) for each in (self.before, self.x, self.y))
        self.what.reference(expected, *given, tuple(wide.type(each) for each in self.scalars))
        self.expected = expected.astype(kind) if self.what.exact else expected
        self.bytes = self.what.moved * self.x.nbytes

    def wrong(self, found: Any) -> str | None:
        """What is wrong with a result in words."""
        return _wrong(self.what, found, self.expected)


def _wrong(what: Streaming, found: Any, expected: Any) -> str | None:
    if what.exact:
        bad = ~((found == expected) | (np.isnan(found) & np.isnan(expected)))
    else:
        limit = what.ulps * np.finfo(found.dtype).eps * np.maximum(1, np.abs(expected))
        with np.errstate(invalid="ignore"):
            bad = ~(np.abs(found - expected) <= limit)
    if not bad.any():
        return None
    at = int(np.argmax(bad.reshape(-1)))
    return (
        f"{np.count_nonzero(bad)} of {bad.size} elements are wrong; the first, {at}, is "
        f"{found.reshape(-1)[at]} in place of {expected.reshape(-1)[at]}"
    )


def _sets(device: sarek.Device, problem: Problem, rotated: int) -> list[tuple[Any, Any, Any]]:
    arrays = 2 + (problem.what.inputs > 1)
    count = min(_MOST_SETS, max(2, -(-rotated // (arrays * problem.x.nbytes))))
    made = []
    for _ in range(count):
        out, x = sarek.vector(problem.before.copy()), sarek.vector(problem.x.copy())
        y = sarek.vector(problem.y.copy()) if problem.what.inputs > 1 else x
        made.append((out.to(device), x.to(device), y.to(device)))
    return made


def check(contender: Contender, case: Case, problem: Problem, number: int) -> str | None:
    """What is wrong with what a contender leaves in a set, after one call."""
    out = case.sets[number][0]
    out[...] = problem.before
    out.to(case.device)
    case.device.synchronize()
    calls = contender.time
    if number:  # a call of this set alone
        _one(contender, number)
    else:
        calls(1)
    if case.device.driver.memory is not None:
        execute.mark_stale((out,), case.device)
    return problem.wrong(np.asarray(out))


def _one(contender: Contender, number: int) -> None:
    usual = contender.call
    contender.call = lambda _: usual(number)  # type: ignore[method-assign]
    try:
        contender.time(1)
    finally:
        del contender.call  # type: ignore[method-assign]


def measure(device: sarek.Device, problem: Problem, settings: Settings) -> dict[str, Any]:
    """All contenders of one device in one kernel: samples, or why there are none."""
    case = Case(problem.name, device, _sets(device, problem, settings.rotated), problem.scalars)
    rows: dict[str, Any] = {}
    live: dict[str, tuple[Contender, int]] = {}
    for name, make in makers_for(device, problem.name).items():
        row = rows[name] = {"samples_us": [], "host_us": []}
        try:
            contender = make(case)
            _verified(contender, case, problem)
            row["note"] = contender.note
            took, host = contender.time(2)
            calls = int(settings.seconds / max(took, host, 1e-7))
            live[name] = contender, min(_MOST_CALLS, max(2, calls))
        except Absent as reason:
            row["absent"] = str(reason)
        except Exception as error:  # one that fails has no time, the others have
            row["failed"] = tidy(f"{type(error).__name__}: {error}")
    order = list(live)
    for turn in range(settings.rounds):
        first = turn % max(1, len(order))
        for name in order[first:] + order[:first]:
            contender, calls = live[name]
            took, host = contender.time(calls)
            rows[name]["samples_us"].append(took * 1e6)
            rows[name]["host_us"].append(host * 1e6)
    for name, (contender, _) in live.items():
        try:
            _verified(contender, case, problem)
        except ValueError as error:
            rows[name].update(failed=str(error), samples_us=[])
    return {name: _summed(row, problem.bytes) for name, row in rows.items()}


def _verified(contender: Contender, case: Case, problem: Problem) -> None:
    for number in (0, len(case.sets) - 1):
        wrong = check(contender, case, problem, number)
        if wrong is not None:
            raise ValueError(wrong)


def _summed(row: dict[str, Any], moved: int) -> dict[str, Any]:
    samples = row["samples_us"]
    if samples:
        median = statistics.median(samples)
        first, third = np.percentile(samples, [25, 75])
        row |= {
            "median_us": median,
            "spread": float((third - first) / median),
            "gbytes_s": moved / median / 1e3,
            "host_bound": statistics.median(row["host_us"]) >= _HOST_SHARE * median,
        }
    return row


# --- tables ---------------------------------------------------------------------------------------


def table(rows: Sequence[dict[str, Any]]) -> str:
    """GB/s of each contender and its share of the device's own copy of the same bytes."""
    names: list[str] = []
    for row in rows:
        names += [name for name in row["contenders"] if name not in names]
    lines = [
        "| device | kernel | type | elements | " + " | ".join(names) + " |",
        "|---|---|---|--:" + "|--:" * len(names) + "|",
    ]
    copies = {
        (row["device"], row["dtype"], row["size"]): row["contenders"][COPY].get("gbytes_s")
        for row in rows
        if COPY in row["contenders"]
    }
    for row in rows:
        copy = copies.get((row["device"], row["dtype"], row["size"]))
        cells = [_cell(row["contenders"].get(name), copy) for name in names]
        head = f"{row['device']} | {row['kernel']} | {row['dtype']} | {row['size']}"
        lines.append(f"| {head} | {' | '.join(cells)} |")
    reasons = _reasons(rows)
    legend = "GB/s, and the share of the device's copy; * is a time of the host"
    return "\n".join([*lines, "", legend, *reasons])


def _cell(found: dict[str, Any] | None, copy: float | None) -> str:
    if found is None:
        return ""
    if "failed" in found:
        return "failed"
    if "gbytes_s" not in found:
        return "–"
    share = f" ({found['gbytes_s'] / copy:.0%})" if copy else ""
    return f"{found['gbytes_s']:.4g}{share}{'*' if found['host_bound'] else ''}"


def _reasons(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Who has no time, and why; each reason once."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for name, one in row["contenders"].items():
            why = one.get("failed", one.get("absent"))
            if why is not None:
                line = f"{row['device']}, {name}: {'failed: ' if 'failed' in one else ''}{why}"
                found.setdefault(line, []).append(row["kernel"])
    return [f"{line} ({', '.join(dict.fromkeys(kernels))})" for line, kernels in found.items()]


# --- command line ---------------------------------------------------------------------------------


def chosen_devices(words: str | None) -> list[sarek.Device]:
    """Those named, or all but the interpreter, which takes minutes for what others do at once."""
    if words is not None:
        return [sarek.device(word) for word in words.split(",")]
    return [each for each in sarek.devices() if each.record.backend != "interpreter"]


def _cells(kernels: str | None, dtypes: str, sizes: str) -> list[tuple[int, str, str]]:
    names = kernels.split(",") if kernels else list(KERNELS)
    unknown = [name for name in names if name not in KERNELS]
    if unknown:
        raise click.BadParameter(f"unknown: {', '.join(unknown)}; known: {', '.join(KERNELS)}")
    return [
        (2 ** int(size), dtype, name)
        for size in sizes.split(",")
        for dtype in dtypes.split(",")
        for name in names
    ]


def run(
    devices: Sequence[sarek.Device],
    cells: Sequence[tuple[int, str, str]],
    settings: Settings,
    limit: float,
    path: Path | None,
) -> dict[str, Any]:
    """All rows, as far as they can be measured in so many seconds; `path` has those so far."""
    result: dict[str, Any] = {
        "machine": machine(),
        "settings": {"rounds": settings.rounds, "seconds": settings.seconds},
        "devices": {each.name: each.record.description for each in devices},
        "absent": {},
        "rows": [],
    }
    began = time.perf_counter()
    for size, dtype, name in cells:
        if time.perf_counter() - began > limit:
            result["absent"][f"{name} {dtype} {size}"] = f"{limit:g} s were over"
            continue
        able = [each for each in devices if each.supports("arithmetic", dtype)]
        for device in devices:
            if device not in able:
                result["absent"][f"{device.name} {dtype}"] = f"it has no {dtype}"
        problem = Problem(name, dtype, size) if able else None
        for device in able:
            assert problem is not None
            row = {"device": device.name, "kernel": name, "dtype": dtype, "size": size}
            try:
                contenders = measure(device, problem, settings)
            except Exception as error:  # out of memory: the other devices go on
                result["absent"][f"{device.name} {name} {dtype} {size}"] = tidy(str(error))
                continue
            result["rows"].append({**row, "bytes": problem.bytes, "contenders": contenders})
            if path:
                path.write_text(json.dumps(result, indent=1) + "\n")
    for backend, why in sarek.devices(why=True).items() if not devices else ():
        result["absent"][backend] = why
    return result


@click.command(help=__doc__)
@click.option("--devices", "words", help="Comma list; all but the interpreter by default.")
@click.option("--kernels", help=f"Comma list of {', '.join(KERNELS)}; all by default.")
@click.option("--dtypes", default="float32,float64,float16", help="Comma list.")
@click.option("--sizes", default="20,24,26", help="Exponents of 2 of the elements, even ones.")
@click.option("--rounds", default=7, help="Samples of each contender.")
@click.option("--sample-ms", default=5.0, help="A sample repeats the launch for about this long.")
@click.option("--rotate-mb", default=256, help="Bytes of all sets of vectors together, at least.")
@click.option("--limit", default=480.0, help="Seconds after which no further row is begun.")
@click.option("--any-size", is_flag=True, help="Coarsen launches that do not fill the device too.")
@click.option("--cpu-too", is_flag=True, help="Coarsen on CPUs too, where it is never done.")
@click.option("--json", "path", type=Path, help="Write the results to this file.")
@click.option("--show", type=Path, help="Measure nothing: print the table of an earlier run.")
def main(
    words: str | None, kernels: str | None, dtypes: str, sizes: str, rounds: int, sample_ms: float,
    rotate_mb: int, limit: float, any_size: bool, cpu_too: bool, path: Path | None,
    show: Path | None,
) -> None:  # fmt: skip
    if show:
        click.echo(table(json.loads(show.read_text())["rows"]))
        return
    devices = chosen_devices(words)
    if cpu_too:
        on_cpus_too(devices)
    if any_size or cpu_too:
        at_any_size(devices)
    settings = Settings(rounds, sample_ms / 1e3, rotate_mb << 20)
    result = run(devices, _cells(kernels, dtypes, sizes), settings, limit, path)
    if path:
        path.write_text(json.dumps(result, indent=1) + "\n")
    click.echo(f"load {result['machine'].get('load', '?')}")
    for name, description in result["devices"].items():
        click.echo(f"{name}: {description}")
    click.echo(table(result["rows"]))
    for what, why in result["absent"].items():
        click.echo(f"absent: {what}: {why}")


if __name__ == "__main__":
    main()
