"""Run every problem on every device, compare with the oracle, print one table, write pictures."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import sarek_numba as sarek
from sarek_numba.cli.demo.problems import PROBLEMS, Problem
from sarek_numba.verify.ulp import worst_ulp

ORACLE = "interpreter"
ALLOWED_ULP = 16.0  # inexact functions (sqrt and division are exact; sums keep their order)


@dataclass(frozen=True)
class Outcome:
    """One problem on one device; `ulp` is the largest distance from the oracle."""

    problem: str
    device: str
    seconds: float | None
    ulp: float | None
    error: str | None = None

    @property
    def agrees(self) -> bool:
        return self.ulp is not None and self.ulp <= ALLOWED_ULP


def _timed(problem: Problem, device: str, repeat: int) -> tuple[Any, float]:
    """Results, and the least time of `repeat` runs after one that compiles."""
    inputs = problem.prepare()
    times = []
    with sarek.use_device(device):
        if repeat > 1:
            problem.solve(*inputs)
        for _ in range(repeat):
            start = time.perf_counter()
            result = problem.solve(*inputs)
            times.append(time.perf_counter() - start)
    return result, min(times)


def run_all(devices: list[str], console: Console, out: Path | None) -> list[Outcome]:
    """Every problem on the oracle and on `devices`; pictures go to `out` if given."""
    outcomes = []
    for problem in PROBLEMS:
        with console.status(f"{problem.name} on {ORACLE}"):
            reference, seconds = _timed(problem, ORACLE, 1)
        outcomes.append(Outcome(problem.name, ORACLE, seconds, 0.0))
        if out is not None and problem.picture is not None:
            write_picture(problem.picture(reference), out / f"{problem.name}.png")
        for device in devices:
            with console.status(f"{problem.name} on {device}"):
                outcomes.append(_compared(problem, device, reference))
    return outcomes


def _compared(problem: Problem, device: str, reference: Any) -> Outcome:
    try:
        result, seconds = _timed(problem, device, 5)
    except sarek.SarekError as error:
        return Outcome(problem.name, device, None, None, str(error).splitlines()[0])
    return Outcome(problem.name, device, seconds, worst_ulp(result, reference))


def table(outcomes: list[Outcome]) -> Table:
    """Kernel, device, time, agreement."""
    shown = Table(title="sarek demo: one source, every device, checked against the oracle")
    shown.add_column("kernel")
    shown.add_column("what")
    shown.add_column("device")
    shown.add_column("time", justify="right")
    shown.add_column("agreement with the oracle")
    what = {problem.name: problem.what for problem in PROBLEMS}
    previous = None
    for outcome in outcomes:
        first = outcome.problem != previous
        if first and previous is not None:
            shown.add_section()
        previous = outcome.problem
        shown.add_row(
            outcome.problem if first else "",
            what[outcome.problem] if first else "",
            outcome.device,
            "" if outcome.seconds is None else f"{outcome.seconds * 1e3:.2f} ms",
            agreement(outcome),
        )
    return shown


def agreement(outcome: Outcome) -> str:
    """The agreement in words."""
    if outcome.error is not None or outcome.ulp is None:
        return f"[red]failed: {outcome.error}"
    if outcome.device == ORACLE:
        return "every access checked"
    if outcome.ulp == 0:
        return "[green]bit for bit"
    return f"{'[green]' if outcome.agrees else '[red]'}{outcome.ulp:g} ULP"


def write_picture(pixels: Any, path: Path) -> None:
    """A PNG of grey values."""
    from PIL import Image

    Image.fromarray(np.ascontiguousarray(pixels)).save(path)
