"""A long campaign in chunks of seeds: several at a time, each a line of a file when it is done.

A chunk has a worker of its own, so that a campaign's memory does not grow. After the deadline no
chunk begins; those that run are finished.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field

from tests.fuzz.campaign import Outcome, Worker, run, shrunk
from tests.fuzz.features import count as count_features
from tests.fuzz.features import shares
from tests.fuzz.generator import GENERATOR, generate
from tests.fuzz.programs import Form, Program


@dataclass(frozen=True, slots=True)
class Settings:
    """How chunks are run; `size` programs are one kernel."""

    executors: tuple[str, ...]
    form: Form = Form.FUNCTION
    size: int = 20
    shrink: bool = True
    generator: int = GENERATOR


@dataclass(slots=True)
class Chunk:
    """What a chunk of seeds gave: kernels and launches by executor, and what differs."""

    first: int
    count: int
    form: str
    kernels: dict[str, int]
    launches: dict[str, int]
    left_out: int
    seconds: float
    differing: list[tuple[int, str, str]]  # seed, executor, what differs
    features: dict[str, int]
    generator: int = 1  # lines of the first campaigns do not say
    without_warps: dict[str, int] = field(default_factory=dict)  # kernels that need them, not run
    texts: list[str] = field(default_factory=list)  # not in the file

    def line(self) -> str:
        known = asdict(self)
        del known["texts"]
        return json.dumps(known, sort_keys=False)


def chunks_of(seed: int, count: int, size: int) -> list[tuple[int, int]]:
    """First seed and length of each chunk."""
    end = seed + count
    return [(first, min(size, end - first)) for first in range(seed, end, size)]


def recorded(path: str, settings: Settings, wanted: Sequence[tuple[int, int]]) -> list[Chunk]:
    """The wanted chunks that a file has, of this generator, run on these executors in this form.

    A last line that was cut off, when a campaign was ended from outside, counts as not run.
    """
    if not os.path.exists(path):
        return []
    found: dict[tuple[int, int], Chunk] = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                chunk = Chunk(**json.loads(line))
            except json.JSONDecodeError:
                continue
            same = set(chunk.kernels) == set(settings.executors)
            same &= chunk.generator == settings.generator
            if same and chunk.form == settings.form.value:
                found[chunk.first, chunk.count] = chunk
    return [found[each] for each in wanted if each in found]


def append(path: str, line: str) -> None:
    """Add a line to a file whose last one may have been cut off."""
    with open(path, "a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.write(b"\n")
        file.write(line.encode() + b"\n")


def run_chunk(first: int, count: int, settings: Settings) -> Chunk:
    """Run the programs of some seeds."""
    started, worker, outcome = time.monotonic(), Worker(), Outcome()
    programs = [generate(seed, settings.generator) for seed in range(first, first + count)]
    texts: list[str] = []
    try:
        batches = _batches(programs, settings.size, settings.form)
        for found in run(batches, settings.executors, worker, outcome):
            for each in found:
                text = shrunk(worker, each, settings.form) if settings.shrink else each
                texts.append(str(text))
    finally:
        worker.stop()
    return Chunk(
        first,
        count,
        settings.form.value,
        {name: outcome.programs[name] for name in settings.executors},
        {name: outcome.comparisons[name] for name in settings.executors},
        outcome.left_out,
        round(time.monotonic() - started, 1),
        [(d.program.seed, d.executor, d.what[:300]) for d in outcome.found],
        dict(count_features(programs)),
        settings.generator,
        {name: n for name in settings.executors if (n := outcome.incapable[name])},
        texts,
    )


def _batches(
    programs: Sequence[Program], size: int, form: Form
) -> Iterator[tuple[Sequence[Program], Form]]:
    """Batches of programs of one mode."""
    for mode in dict.fromkeys(program.mode for program in programs):
        alike = [program for program in programs if program.mode == mode]
        for first in range(0, len(alike), size):
            yield alike[first : first + size], form


def run_chunks(
    chunks: Sequence[tuple[int, int]], settings: Settings, jobs: int, deadline: float | None
) -> Iterator[Chunk]:
    """Run chunks, `jobs` at a time; each is given when it is done."""
    left = list(reversed(chunks))
    with ThreadPoolExecutor(jobs) as pool:
        running = {}
        while left or running:
            while left and len(running) < jobs:
                if deadline is not None and time.monotonic() > deadline:
                    left.clear()
                    break
                first, count = left.pop()
                running[pool.submit(run_chunk, first, count, settings)] = first
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                del running[future]
                yield future.result()


def summary(chunks: Sequence[Chunk], settings: Settings, count: int, seconds: float) -> str:
    """What was run, in lines."""
    kernels = sum(chunk.count for chunk in chunks)
    worked = sum(chunk.seconds for chunk in chunks)
    lines = [
        f"{kernels} of {count} kernels of generator {settings.generator} as "
        f"{settings.form.value}s in {len(chunks)} chunks, "
        f"{seconds:.0f} s here, {worked / max(kernels, 1):.2f} s of a job for each kernel"
    ]
    for name in settings.executors:
        differing = sorted({seed for c in chunks for seed, who, _ in c.differing if who == name})
        lines.append(
            f"{name}: {sum(c.kernels[name] for c in chunks)} kernels, "
            f"{sum(c.launches[name] for c in chunks)} launches compared, "
            f"{len(differing)} kernels differ {differing or ''}".rstrip()
        )
        without = sum(chunk.without_warps.get(name, 0) for chunk in chunks)
        if without:
            lines.append(
                f"{name}: {without} kernels with warp operations, which it lacks, left out"
            )
    others = {who for c in chunks for _, who, _ in c.differing} - set(settings.executors)
    for name in sorted(others):
        seeds = sorted({seed for c in chunks for seed, who, _ in c.differing if who == name})
        lines.append(f"{name}: fails on {seeds}")
    lines.append(f"{sum(c.left_out for c in chunks)} launches without a meaning in CPython")
    counted = sum((Counter(chunk.features) for chunk in chunks), Counter())
    return "\n".join([*lines, *shares(counted, kernels)])
