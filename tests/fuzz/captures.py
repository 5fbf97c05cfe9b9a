"""Random programs of launches, copies and fills, captured and replayed against direct execution.

`python -m tests.fuzz.captures --count 2000 --devices native,vulkan:0`. A program is a list of
operations on vectors, parts of vectors that overlap, arrays of NumPy and memory that the block
makes, with two variables. It is captured on one set of vectors and done directly on an equal set,
again and again: with other vectors, numbers, sizes, and with what the host writes in between. All
bytes of all vectors are equal at the end, and where the host looks before. `tests.fuzz.schedules`
has programs whose vectors share memory anew in each replay.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

import sarek_numba as sarek
from tests.fuzz import schedules
from tests.fuzz.graph_kernels import (
    KERNELS,
    MOST,
    Number,
    Operation,
    Part,
    as_captured,
    do,
    operation,
)

TYPES = (np.float32, np.int32, np.uint32, np.int16)


@dataclass(frozen=True, slots=True)
class Memory:
    """A vector, an array of NumPy, or what the block makes: of zeros, or of a copy."""

    name: str
    kind: str  # "vector", "array", "zeros", "copied"
    size: int
    dtype: Any


@dataclass(frozen=True, slots=True)
class Replay:
    """What is other in one replay."""

    values: Mapping[str, int | float]  # of variables
    others: Mapping[str, int]  # seeds of the vectors that take the place of some
    writes: tuple[tuple[str, int, int], ...]  # of the host: which memory, where, what
    looks: bool  # at everything, behind it


@dataclass(frozen=True, slots=True)
class Program:
    """A block, and how it is replayed."""

    seed: int
    memories: tuple[Memory, ...]
    operations: tuple[Operation, ...]
    replays: tuple[Replay, ...]

    def __str__(self) -> str:
        rows = [f"seed {self.seed}", *map(str, self.memories), *map(str, self.operations)]
        return "\n".join([*rows, *map(str, self.replays)])


def generate(seed: int) -> Program:
    """The program of a seed: the same on every machine."""
    rng = random.Random(seed)
    dtype = rng.choice(TYPES)
    kinds = ["vector", "vector"]
    kinds += rng.choices(["vector", "array", "zeros", "copied"], k=rng.randint(0, 5))
    memories = [Memory(f"m{k}", kind, rng.randint(1, MOST), dtype) for k, kind in enumerate(kinds)]
    operations = []
    while len(operations) < rng.randint(1, 12):
        made = operation(rng, _parts(rng, memories), dtype)
        if made is not None:
            operations.append(made)
    replays = [_replay(rng, memories) for _ in range(rng.randint(2, 6))]
    return Program(seed, tuple(memories), tuple(operations), tuple(replays))


def _parts(rng: random.Random, memories: Sequence[Memory]) -> list[Part]:
    """A part of each of some memories, from most of which is read alone."""
    chosen = [rng.choice(memories) for _ in range(4)]
    found = []
    for memory in chosen:
        first, last = 0, memory.size
        if rng.random() < 0.5:
            first = rng.randrange(memory.size)
            last = rng.randint(first + 1, memory.size)
        found.append(Part(memory.name, first, last, is_writable=memory.kind != "array"))
    return found


def _replay(rng: random.Random, memories: Sequence[Memory]) -> Replay:
    values: dict[str, int | float] = {}
    if rng.random() < 0.7:
        values["n"] = rng.choice([0, 1, 7, rng.randint(0, MOST), MOST])
    if rng.random() < 0.6:
        values["a"] = rng.choice([1.0, 2.0, -1.0, 3.0])
    others, writes = {}, []
    for memory in memories:
        if memory.kind == "vector" and rng.random() < 0.3:
            others[memory.name] = rng.randrange(1000)
        if memory.kind in ("vector", "array") and rng.random() < 0.25:
            writes.append((memory.name, rng.randrange(memory.size), rng.randint(0, 50)))
    return Replay(values, others, tuple(writes), rng.random() < 0.5)


# --- doing ----------------------------------------------------------------------------------------


def numbers(memory: Memory, seed: int) -> Any:
    """Small whole numbers: floats are exact as long as there are few operations."""
    return np.random.default_rng(seed).integers(0, 9, memory.size).astype(memory.dtype)


def block_of(program: Program, given: Mapping[str, Any]) -> Callable[[Number, Number], None]:
    """What the program does with vectors and arrays by their names."""

    def block(n: Number, a: Number) -> None:
        known = dict(given)
        for number, memory in enumerate(program.memories):
            if memory.kind == "array":
                known[as_captured(memory.name)] = numbers(memory, number)
        for memory in program.memories:
            if memory.kind == "zeros":
                known[memory.name] = sarek.zeros(memory.size, memory.dtype)
            elif memory.kind == "copied":
                made = known[memory.name] = sarek.empty(memory.size, memory.dtype)
                made[:] = numbers(memory, 5)
        for each in program.operations:
            do(each, known, n, a)

    return block


class Sides:
    """The vectors of the replays and those of direct execution, in pairs."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.pairs: dict[str, tuple[Any, Any]] = {}
        self._all: list[tuple[str, Any, Any]] = []
        for number, memory in enumerate(program.memories):
            if memory.kind == "vector":
                self.renew(memory, number)
            elif memory.kind == "array":
                self.pairs[memory.name] = numbers(memory, number), numbers(memory, number)

    def renew(self, memory: Memory, seed: int) -> None:
        """Another vector of other numbers, on both sides."""
        left, right = (sarek.vector(numbers(memory, seed)) for _ in range(2))
        self.pairs[memory.name] = left, right
        self._all.append((memory.name, left, right))

    def side(self, which: int) -> dict[str, Any]:
        """Those of the replays, 0, or of direct execution, 1."""
        return {name: pair[which] for name, pair in self.pairs.items()}

    def difference(self) -> str:
        """Where the sides differ, in words; "" if they do not."""
        for name, left, right in self._all:
            mine, theirs = np.array(left), np.array(right)
            if mine.tobytes() != theirs.tobytes():
                at = int(np.flatnonzero(mine != theirs)[0]) if (mine != theirs).any() else 0
                return f"{name}[{at}] is {mine[at]} replayed and {theirs[at]} directly"
        return ""


def difference(program: Program, device: Any) -> str:
    """What is wrong with a program's replays on a device, in words; "" if nothing is."""
    names = {memory.name: memory for memory in program.memories}
    with sarek.use_device(device):
        sides = Sides(program)
        with sarek.capture(**sides.side(0)) as g:
            n, a = g.variable("n", MOST, 0, MOST), g.variable("a", 1.0)
            block_of(program, sides.side(0))(n, a)
        captured = sides.side(0)
        values: dict[str, Any] = {"n": MOST, "a": 1.0}
        for k, replay in enumerate(program.replays):
            for name, seed in replay.others.items():
                sides.renew(names[name], seed)
            for name, at, number in replay.writes:
                for vector in sides.pairs[name]:
                    vector[at] = number
            now = sides.side(0)
            given = {m: now[m] for m in now if now[m] is not captured[m] and m in g.inputs}
            g.replay(**given, **replay.values)
            mine = {**sides.side(1)}
            block_of(program, mine)(**{**values, **replay.values})
            if replay.looks or k + 1 == len(program.replays):
                found = sides.difference()
                if found:
                    return f"in replay {k} ({g.mechanism}): {found}"
    return ""


@click.command()
@click.option("--count", default=200, show_default=True, help="How many programs of each kind.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first; others follow it.")
@click.option("--devices", default="native", show_default=True, help="Names, or cuda:fake.")
@click.option("--seconds", default=0.0, help="Begin no program of a device after so many seconds.")
def main(count: int, seed: int, devices: str, seconds: float) -> None:
    """Replay programs on devices. Exits with 1 if one differs."""
    is_wrong = False
    for name in devices.split(","):
        device = opened(name)
        started = time.monotonic()
        done = wrong = 0
        for number in range(seed, seed + count):
            if seconds and time.monotonic() - started > seconds:
                break
            for kind in (sys.modules[__name__], schedules):
                program = kind.generate(number)
                found = kind.difference(program, device)
                if found:
                    wrong += 1
                    print(f"{name}, {kind.__name__}: {found}\n{program}", flush=True)
            done += 1
        seconds_taken = time.monotonic() - started
        print(
            f"{name}: {done} captures and {done} schedules from seed {seed} on, {wrong} differ, "
            f"{seconds_taken:.0f} s; kernels: {', '.join(KERNELS)}",
            flush=True,
        )
        is_wrong |= wrong > 0
    raise SystemExit(is_wrong)


def opened(name: str) -> Any:
    """A device, or CUDA through a fake driver."""
    if name != "cuda:fake":
        return sarek.device(name)
    from sarek_cuda.runtime import CudaDriver
    from sarek_numba.runtime.registry import Device
    from tests.fake_cuda import FakeApi

    return Device(CudaDriver(FakeApi(), 0, name))


if __name__ == "__main__":
    main()
