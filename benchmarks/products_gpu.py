"""Products of matrices from a naive kernel: `python -m benchmarks.products_gpu --json FILE`.

On each device the kernel as given, the same through `sarek.matrix.run`, and what stands in for it
launched alone, whose arguments were made before; on CUDA beside them PyTorch, which calls cuBLAS.
Contenders take turns round by round; a sample is so many calls and a wait for the device, so a time
of the host is in it where that is longer (marked by *). Operands are small whole numbers, whose
sums are exact in any order: all of the result is compared before the first round and after the
last, and who leaves one wrong element has no time.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click
import ml_dtypes
import numpy as np

import sarek_numba as sarek
from benchmarks.__main__ import machine
from benchmarks.arrays import tidy
from sarek_numba import accept, policy
from sarek_numba.matrix import launches, testing, variant_name
from sarek_numba.matrix.rewrite.plan import TILINGS
from sarek_numba.runtime import launch as launching

BLOCK = (32, 8)
GIVEN, ASKED, ALONE, PEER = "given", "run", "alone", "torch"
DIRECTLY = "direct"
_HOST_SHARE = 0.9
_WHY = "operands are whole numbers whose sums are exact"


@dataclass(frozen=True)
class Kind:
    """Operands and result; `rounding` is what float32 may be rounded to."""

    operand: Any
    result: Any
    rounding: str | None = None
    torch: str | None = None


KINDS = {
    "float16": Kind(np.float16, np.float32, torch="float16"),
    "bfloat16": Kind(ml_dtypes.bfloat16, np.float32, torch="bfloat16"),
    "int8": Kind(np.int8, np.int32, torch="int8"),
    "int32": Kind(np.int32, np.int32),
    "float32_tf32": Kind(np.float32, np.float32, "tf32", torch="float32"),
    "float32_float16": Kind(np.float32, np.float32, "float16", torch="float32"),
}


@sarek.kernel
def of_floats(c: Any, a: Any, b: Any) -> None:
    j, i = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += np.float32(a[i, k]) * np.float32(b[k, j])
        c[i, j] = total


@sarek.kernel
def of_integers(c: Any, a: Any, b: Any) -> None:
    j, i = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.int32(0)
        for k in range(a.shape[1]):
            total += np.int32(a[i, k]) * np.int32(b[k, j])
        c[i, j] = total


def grants(kind: Kind) -> tuple[policy.Grant, ...]:
    if np.dtype(kind.operand).kind == "i":
        return ()
    relaxed = accept.relaxed_accumulation(_WHY)
    return (relaxed, accept.operand_rounding(kind.rounding, _WHY)) if kind.rounding else (relaxed,)


class Problem:
    """Square operands of one kind, with the product as it must be; of no device yet."""

    def __init__(self, kind: str, size: int) -> None:
        self.kind, self.size = KINDS[kind], size
        random = np.random.default_rng(size)
        a, b = (random.integers(-8, 9, (size, size), np.int8) for _ in range(2))
        self.a, self.b = a.astype(self.kind.operand), b.astype(self.kind.operand)
        self.expected = _product(a, b).astype(self.kind.result)

    @property
    def operations(self) -> int:
        return 2 * self.size**3

    @property
    def kernel(self) -> Any:
        return of_integers if np.dtype(self.kind.operand).kind == "i" else of_floats

    @property
    def grid(self) -> tuple[int, int]:
        return -(-self.size // BLOCK[0]), -(-self.size // BLOCK[1])


def _product(a: Any, b: Any) -> Any:
    """The exact product of small whole numbers, by PyTorch where it has a GPU."""
    torch = _torch()
    if torch is None:
        return a.astype(np.float32) @ b.astype(np.float32)
    torch.backends.cuda.matmul.allow_tf32 = False
    left, right = (torch.from_numpy(each).cuda().float() for each in (a, b))
    return (left @ right).cpu().numpy()


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


# --- who takes part -------------------------------------------------------------------------------


@dataclass
class Contender:
    """`call` gives the work to the device, `wait` for it, `result` is what it left."""

    call: Callable[[], Any]
    wait: Callable[[], None]
    result: Callable[[], Any]
    note: str = ""
    samples: list[float] = field(default_factory=list)
    host: list[float] = field(default_factory=list)

    def time(self, calls: int) -> tuple[float, float]:
        """Seconds of one of so many calls until all are done, and until all are given."""
        self.wait()
        began = time.perf_counter()
        for _ in range(calls):
            self.call()
        given = time.perf_counter()
        self.wait()
        done = time.perf_counter()
        return (done - began) / calls, (given - began) / calls

    def wrong(self, expected: Any) -> str | None:
        found = self.result()
        bad = found != expected
        if not bad.any():
            return None
        at = np.argwhere(bad)[0]
        return (
            f"{np.count_nonzero(bad)} of {bad.size} elements are wrong; the first, {tuple(at)}, is "
            f"{found[tuple(at)]} in place of {expected[tuple(at)]}"
        )


class Absent(Exception):
    """Why a contender does not take part."""


def ours(device: sarek.Device, problem: Problem) -> Iterator[tuple[str, Callable[[], Contender]]]:
    """The kernel as given, asked for, and the one that stands in for it."""
    a, b = (sarek.vector(each).to(device) for each in (problem.a, problem.b))
    low = np.iinfo(np.int32).min if problem.kind.result is np.int32 else np.nan
    given = problem.kernel
    allowed = grants(problem.kind)

    def fresh() -> Any:
        poison = np.full((problem.size, problem.size), low, problem.kind.result)
        return sarek.vector(poison).to(device)

    def as_given() -> Contender:
        c = fresh()
        configured = given[problem.grid, BLOCK]

        def call() -> None:
            with sarek.use_device(device):
                configured(c, a, b)

        return Contender(call, device.synchronize, lambda: np.asarray(c))

    def requested(c: Any) -> Any:
        with policy.grant(*allowed):
            return sarek.matrix.run(
                given, c, a, b, grid=problem.grid, block=BLOCK, device=device,
                precision=problem.kind.rounding,
            )  # fmt: skip

    def asked() -> Contender:
        c = fresh()
        outcome = str(requested(c))
        if outcome.startswith("Original"):
            raise Absent(outcome)
        return Contender(lambda: requested(c), device.synchronize, lambda: np.asarray(c), outcome)

    def alone(form: AbstractContextManager[None]) -> Contender:
        c = fresh()
        found: list[tuple[Any, ...]] = []
        usual = launches.launching.launch

        def noted(*launch: Any) -> None:
            found.append(launch)
            usual(*launch)

        launches.launching.launch = noted
        try:
            with form:
                outcome = requested(c)
        finally:
            launches.launching.launch = usual
        if str(outcome).startswith("Original"):
            raise Absent(str(outcome))
        tiling, config = outcome.tiling, outcome.config
        note = (
            f"{variant_name(outcome.variant)}, warps {tiling.warps}, fragments {tiling.fragments}, "
            f"depth {tiling.depth}, {config.m}x{config.n}x{config.k}, grid {outcome.grid[0]}"
        )
        return Contender(
            lambda: launching.launch(*found[0]), device.synchronize, lambda: np.asarray(c), note
        )

    yield GIVEN, as_given
    yield ASKED, asked
    yield ALONE, lambda: alone(nullcontext())
    for number in range(len(TILINGS)):
        yield f"tile {number}", partial(_tiled, alone, number)
    yield DIRECTLY, lambda: alone(testing.directly())


def _tiled(alone: Callable[[AbstractContextManager[None]], Contender], number: int) -> Contender:
    return alone(testing.tile(number))


def peer(problem: Problem) -> Contender:
    """PyTorch's product of the same operands; halves leave it as halves."""
    torch, kind = _torch(), problem.kind
    if torch is None:
        raise Absent("there is no PyTorch with a GPU")
    if kind.torch is None:
        raise Absent("PyTorch has no product of int32 on GPUs")
    integers = [each.astype(np.int8) for each in (problem.a, problem.b)]
    a, b = (torch.from_numpy(each).cuda().to(getattr(torch, kind.torch)) for each in integers)
    torch.backends.cuda.matmul.allow_tf32 = True
    multiply = torch._int_mm if kind.torch == "int8" else torch.matmul
    if kind.torch == "int8" and problem.size < 32:
        raise Absent("torch._int_mm takes larger ones only")
    out = multiply(a, b)

    def call() -> None:
        if kind.torch == "int8":
            multiply(a, b)
        else:
            torch.matmul(a, b, out=out)

    def result() -> Any:
        """Halves round the result: what it must be is rounded likewise."""
        exact = problem.expected
        if kind.torch in ("float16", "bfloat16"):
            rounded = torch.from_numpy(exact).to(getattr(torch, kind.torch))
            same = rounded.cpu() == out.cpu()
            return np.where(same.numpy(), exact, np.nan)
        return out.cpu().numpy()

    return Contender(call, torch.cuda.synchronize, result)


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """`seconds` is the length of a sample, `most` what one call of a contender may take."""

    rounds: int
    seconds: float
    most: float


def measure(device: sarek.Device, problem: Problem, settings: Settings, names: set[str]) -> Any:
    """All contenders of one device in one problem: samples, or why there are none."""
    rows: dict[str, Any] = {}
    live: dict[str, tuple[Contender, int]] = {}
    makers = [*ours(device, problem), (PEER, lambda: peer(problem))]
    for name, make in makers:
        if name not in names:
            continue
        row = rows[name] = {}
        try:
            began = time.perf_counter()
            contender = make()
            contender.call()
            contender.wait()
            row["first_s"] = time.perf_counter() - began
            wrong = contender.wrong(problem.expected)
            if wrong is not None:
                raise ValueError(wrong)
            row["note"] = contender.note
            took, _ = contender.time(1)
            if took > settings.most:
                raise Absent(f"one call takes {took:.2g} s")
            live[name] = contender, max(2, min(200, int(settings.seconds / took)))
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
            contender.samples.append(took)
            contender.host.append(host)
    for name, (contender, _) in live.items():
        wrong = contender.wrong(problem.expected)
        if wrong is not None:
            rows[name]["failed"] = wrong
            continue
        median = statistics.median(contender.samples)
        first, third = np.percentile(contender.samples, [25, 75])
        rows[name] |= {
            "us": median * 1e6,
            "spread": float((third - first) / median),
            "host_us": statistics.median(contender.host) * 1e6,
            "tflops": problem.operations / median / 1e12,
            "host_bound": statistics.median(contender.host) >= _HOST_SHARE * median,
        }
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Tera-operations in a second (microseconds), as a share of the peer, times the one given."""
    names = [GIVEN, ASKED, ALONE]
    names += list(dict.fromkeys(n for row in rows for n in row["contenders"] if n not in names))
    lines = [
        "| device | kind | size | " + " | ".join(names) + " | of torch | times as given |",
        "|---|---|--:" + "|--:" * (len(names) + 2) + "|",
    ]
    for row in rows:
        found = row["contenders"]
        rates = {name: one["tflops"] for name, one in found.items() if "tflops" in one}
        mine = rates.get(ASKED)
        ratios = [f"{mine / rates[each]:.3g}" if mine and each in rates else "–"
                  for each in (PEER, GIVEN)]  # fmt: skip
        cells = [_cell(found.get(name)) for name in names] + ratios
        lines.append(f"| {row['device']} | {row['kind']} | {row['size']} | {' | '.join(cells)} |")
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for name, one in row["contenders"].items():
            why = one.get("failed", one.get("absent"))
            if why is not None:
                line = f"{row['device']}, {name}: {'FAILED: ' if 'failed' in one else ''}{why}"
                reasons.setdefault(line, []).append(f"{row['kind']} {row['size']}")
    told = [f"{line} ({', '.join(where)})" for line, where in reasons.items()]
    notes = dict.fromkeys(
        f"{row['device']} {row['kind']} {row['size']} {name}: {one['note']}; {one['first_s']:.1f} s"
        for row in rows
        for name, one in row["contenders"].items()
        if one.get("note") and name not in (GIVEN, ASKED, PEER)
    )
    return "\n".join([*lines, "", "TOP/s (us); * is a time of the host", *told, *notes])


def _cell(found: dict[str, Any] | None) -> str:
    if found is None or "tflops" not in found:
        return "failed" if found and "failed" in found else "–"
    return f"{found['tflops']:.3g} ({found['us']:.4g}{'*' if found['host_bound'] else ''})"


# --- command line ---------------------------------------------------------------------------------


@click.command(help=__doc__)
@click.option("--devices", "words", default="cuda:0,vulkan:0", help="Comma list.")
@click.option("--kinds", default=",".join(KINDS), help=f"Comma list of {', '.join(KINDS)}.")
@click.option("--sizes", default="1024,2048,4096,8192", help="Rows and columns of all matrices.")
@click.option("--contenders", default=",".join((GIVEN, ASKED, ALONE, PEER)), help="Comma list.")
@click.option("--rounds", default=5, help="Samples of each contender.")
@click.option("--sample-ms", default=20.0, help="A sample repeats the call for about this long.")
@click.option("--most-s", default=2.0, help="Who takes longer for one call is not measured.")
@click.option("--limit", default=480.0, help="Seconds after which no further row is begun.")
@click.option("--json", "path", type=Path, help="Write the results to this file.")
@click.option("--show", type=Path, help="Measure nothing: print the table of an earlier run.")
def main(
    words: str, kinds: str, sizes: str, contenders: str, rounds: int, sample_ms: float,
    most_s: float, limit: float, path: Path | None, show: Path | None,
) -> None:  # fmt: skip
    if show:
        click.echo(table(json.loads(show.read_text())["rows"]))
        return
    settings = Settings(rounds, sample_ms / 1e3, most_s)
    devices = [sarek.device(word) for word in words.split(",")]
    result: dict[str, Any] = {"machine": machine(), "rows": [], "absent": []}
    result["devices"] = {each.name: each.record.description for each in devices}
    began = time.perf_counter()
    for size in map(int, sizes.split(",")):
        for kind in kinds.split(","):
            if time.perf_counter() - began > limit:
                result["absent"].append(f"{kind} {size}: {limit:g} s were over")
                continue
            problem = Problem(kind, size)
            for device in devices:
                row = {"device": device.name, "kind": kind, "size": size}
                try:
                    found = measure(device, problem, settings, set(contenders.split(",")))
                except Exception as error:  # out of memory: the other devices go on
                    result["absent"].append(f"{device.name} {kind} {size}: {tidy(str(error))}")
                    continue
                result["rows"].append({**row, "contenders": found})
                if path:
                    path.write_text(json.dumps(result, indent=1) + "\n")
    for name, description in result["devices"].items():
        click.echo(f"{name}: {description}")
    click.echo(table(result["rows"]))
    for why in result["absent"]:
        click.echo(f"absent: {why}")


if __name__ == "__main__":
    main()
