"""Command line: `python -m benchmarks --size small,medium --json benchmarks/results/FILE.json`."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.arrays import tidy
from benchmarks.measure import Settings, Worker, measure
from benchmarks.peers import PEERS, THREADS
from benchmarks.problems import KERNELS
from benchmarks.report import report


def machine() -> dict[str, Any]:
    """What the reader of a result has to know of the machine that made it."""
    info: dict[str, Any] = {
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        text = cpu.read_text()
        model = re.search(r"model name\s*: (.*)", text)
        info["cpu"] = model.group(1) if model else "unknown"
        info["simd"] = [
            f for f in ("avx2", "avx512f", "sve", "neon") if re.search(rf"\b{f}\b", text)
        ]
        info["load"] = [round(x, 2) for x in os.getloadavg()]
    return info


def _chosen(text: str | None, table: dict[str, Any]) -> list[str]:
    names = text.split(",") if text else list(table)
    unknown = [name for name in names if name not in table]
    if unknown:
        raise click.BadParameter(f"unknown: {', '.join(unknown)}; known: {', '.join(table)}")
    return names


def _start(names: list[str], log: Any, timeout: float, about: dict[str, Any]) -> list[Worker]:
    """Workers of the peers that start; the others are noted with the reason."""
    workers = []
    for name in names:
        worker = Worker(name, PEERS[name], log, timeout)
        about[name] = {"note": PEERS[name].note, **worker.about}
        if "error" in worker.about:
            about[name]["error"] = tidy(worker.about["error"])
            click.echo(f"{name}: absent: {about[name]['error']}", err=True)
        else:
            workers.append(worker)
    return workers


@click.command(help=__doc__)
@click.option("--kernels", help="Comma list; all by default.")
@click.option("--peers", help="Comma list; all by default.")
@click.option("--size", default="small", help="small, medium, large, a number, or a comma list.")
@click.option("--repeat", default=9, help="Samples a peer (rounds).")
@click.option(
    "--quiet",
    default=math.inf,
    help="Go on, to 4 times --repeat rounds, until enough had at most this foreign load in cores.",
)
@click.option("--min-ms", default=5.0, help="A sample repeats the call until about this long.")
@click.option("--timeout", default=120.0, help="Seconds for one step of one peer.")
@click.option("--json", "path", type=Path, help="Write the results to this file.")
@click.option("--show", type=Path, help="Measure nothing: print the tables of an earlier run.")
@click.option("--log", default=os.devnull, help="Where the peers' own output goes.")
def main(
    kernels: str | None, peers: str | None, size: str, repeat: int, quiet: float, min_ms: float,
    timeout: float, path: Path | None, show: Path | None, log: str,
) -> None:  # fmt: skip
    if show:
        click.echo(report(json.loads(show.read_text())))
        return
    settings = Settings(repeat, quiet, min_ms)
    result: dict[str, Any] = {
        "machine": machine(),
        "settings": {"repeat": repeat, "min_ms": min_ms, "threads": THREADS},
        "peers": {},
        "rows": [],
    }
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that workers and staged files go too
    with open(log, "w") as stream:
        workers = _start(_chosen(peers, PEERS), stream, timeout, result["peers"])
        try:
            for one in size.split(","):
                for name in _chosen(kernels, KERNELS):
                    row = measure(workers, name, one, KERNELS[name], settings)
                    result["rows"].append(row)
                    click.echo(f"{name:16} {one:7} best {row.get('best')}", err=True)
                    if path:
                        path.write_text(json.dumps(result, indent=1) + "\n")
        finally:
            for worker in workers:
                worker.quit()
    click.echo(report(result))


if __name__ == "__main__":
    main()
