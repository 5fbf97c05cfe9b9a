"""`python -m tests.fuzz --count 3000 --seed 1`: generated kernels on every executor.

Exits with 1 if an executor differs from CPython. Without `--executors` all devices are used. The
seeds are taken in chunks; with `--results` each chunk is a line of that file when it is done, and a
chunk that has a line is not run again.
"""

from __future__ import annotations

import os
import sys
import time

import click

import sarek_numba as sarek
from tests.fuzz.chunks import Chunk, Settings, append, chunks_of, recorded, run_chunks, summary
from tests.fuzz.generator import GENERATOR
from tests.fuzz.programs import Form


@click.command()
@click.option("--count", default=300, show_default=True, help="How many kernels.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first; others follow it.")
@click.option("--executors", default="", help="Names of devices, or of texts on the shim.")
@click.option("--jobs", default=1, show_default=True, help="Chunks that run at a time.")
@click.option("--chunk", default=100, show_default=True, help="Kernels in a chunk.")
@click.option("--seconds", default=0.0, help="Start no chunk after so many seconds.")
@click.option("--results", default="", help="File with a line for each chunk, to go on with.")
@click.option("--size", default=20, show_default=True, help="Programs in one kernel.")
@click.option("--alone", is_flag=True, help="Each program as a kernel of its own.")
@click.option("--generator", default=GENERATOR, show_default=True, help="Version, 1 to 3.")
@click.option("--shrink/--no-shrink", default=True, show_default=True, help="Shrink what differs.")
def main(
    count: int,
    seed: int,
    executors: str,
    jobs: int,
    chunk: int,
    seconds: float,
    results: str,
    size: int,
    alone: bool,
    generator: int,
    shrink: bool,
) -> None:
    """Run generated kernels on executors and compare with CPython."""
    names = executors.split(",") if executors else [device.name for device in sarek.devices()]
    form = Form.KERNEL if alone else Form.FUNCTION
    settings = Settings(tuple(names), form, 1 if alone else size, shrink, generator)
    started = time.monotonic()
    deadline = started + seconds if seconds else None
    wanted = chunks_of(seed, count, chunk)
    known = recorded(results, settings, wanted) if results else []
    known_firsts = {each.first for each in known}
    missing = [(first, n) for first, n in wanted if first not in known_firsts]
    done: list[Chunk] = list(known)
    for finished in run_chunks(missing, settings, jobs, deadline):
        done.append(finished)
        line = finished.line()
        if results:
            append(results, line)
        click.echo(line, err=True)
        for difference in finished.texts:
            click.echo(difference)
    click.echo(summary(done, settings, count, time.monotonic() - started))
    sys.exit(any(each.differing for each in done))


if __name__ == "__main__":
    os.environ.setdefault("SAREK_CACHE", "0")  # no kernel of these comes again
    main()
