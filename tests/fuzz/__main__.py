"""`python -m tests.fuzz --count 3000 --seed 1`: generated kernels on every executor.

Exits with 1 if an executor differs from CPython. Without `--executors` all devices are used.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

import click

import sarek_numba as sarek
from tests.fuzz.campaign import Outcome, Worker, run, shrunk
from tests.fuzz.generator import generate
from tests.fuzz.programs import Form, Program


@click.command()
@click.option("--count", default=300, show_default=True, help="How many kernels.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first; others follow it.")
@click.option("--executors", default="", help="Names of devices, with commas between.")
@click.option("--size", default=20, show_default=True, help="Programs in one kernel.")
@click.option("--alone", is_flag=True, help="Each program as a kernel of its own.")
@click.option("--shrink/--no-shrink", default=True, show_default=True, help="Shrink what differs.")
def main(count: int, seed: int, executors: str, size: int, alone: bool, shrink: bool) -> None:
    """Run generated kernels on executors and compare with CPython."""
    names = executors.split(",") if executors else [device.name for device in sarek.devices()]
    form = Form.KERNEL if alone else Form.FUNCTION
    worker, outcome, started = Worker(), Outcome(), time.monotonic()
    for found in run(_batches(seed, count, 1 if alone else size, form), names, worker, outcome):
        for difference in found:
            click.echo(shrunk(worker, difference, form) if shrink else difference)
        done = max(outcome.programs.values(), default=0)
        click.echo(f"{done} of {count}, {len(outcome.found)} differences", err=True)
    worker.stop()
    click.echo(summary(seed, count, form, names, outcome, time.monotonic() - started))
    sys.exit(bool(outcome.found))


def _batches(
    seed: int, count: int, size: int, form: Form
) -> Iterator[tuple[Sequence[Program], Form]]:
    for first in range(seed, seed + count, size):
        behind = min(first + size, seed + count)
        yield [generate(each) for each in range(first, behind)], form


def summary(
    seed: int, count: int, form: Form, names: Sequence[str], outcome: Outcome, seconds: float
) -> str:
    """What was run, in lines."""
    lines = [f"seeds {seed} to {seed + count - 1} as {form.value}s, {seconds:.0f} s"]
    for name in names:
        differing = {d.program.seed for d in outcome.found if d.executor == name}
        lines.append(
            f"{name}: {outcome.programs[name]} kernels, {outcome.comparisons[name]} launches "
            f"compared, {len(differing)} kernels differ {sorted(differing) or ''}".rstrip()
        )
    lines.append(f"{outcome.left_out} launches without a meaning in CPython left out")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
