"""`sarek demo`: run the demonstration of `cli.demo` and print its table."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from sarek_numba.cli.demo.run import ORACLE, run_all, table
from sarek_numba.runtime.registry import device, devices

_WIDTH = 104  # of the table in a file or a pipe


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the pictures; none are written without it.",
)
@click.option("--device", "names", multiple=True, help="Run on this device alone; may be repeated.")
def command(out: Path | None, names: tuple[str, ...]) -> None:
    """Run real kernels on every device present and compare each with the oracle."""
    chosen = [device(name).name for name in names] or [d.name for d in devices()]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    outcomes = run_all([name for name in chosen if name != ORACLE], console, out)
    console.print(table(outcomes))
    if out is not None:
        console.print(
            f"pictures: {', '.join(sorted(path.name for path in out.glob('*.png')))} in {out}"
        )
    if not all(outcome.agrees for outcome in outcomes):
        sys.exit(1)
