"""Random schedules whose buffers share memory anew in each replay, against direct execution.

A schedule of `sarek.realize` is a graph on a few buffers. Each replay has them be other parts of
two vectors, which overlap in other ways, so what is behind what is another thing each time. See
`tests.fuzz.captures`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba import realize
from sarek_numba.realize import Buffer, CopyCall, CustomCall, KernelCall, LaunchInfo, Linear
from tests.fuzz.graph_kernels import KERNELS, MOST, Operation, Part, do

BLOCK = 16
ROOM = 3 * MOST  # elements of each of the two vectors
_GRID = MOST // BLOCK
_TRIES = 50
_TAKEN = {"add": 2, "turn": 2, "mix": 3, "swap": 2, "total": 2, "copy": 2, "fill": 1}

Place = tuple[int, int]  # which of the vectors, and from which element on


@dataclass(frozen=True, slots=True)
class Replay:
    """Where the buffers are in a replay, and the numbers."""

    places: tuple[Place, ...]
    n: int
    a: float


@dataclass(frozen=True, slots=True)
class Program:
    """Operations on buffers of a size, each a number in `Operation.parts`."""

    seed: int
    size: int
    buffers: int
    operations: tuple[Operation, ...]
    replays: tuple[Replay, ...]

    def __str__(self) -> str:
        rows = [f"seed {self.seed}: {self.buffers} buffers of {self.size}"]
        return "\n".join([*rows, *map(str, self.operations), *map(str, self.replays)])


def generate(seed: int) -> Program:
    """The program of a seed: the same on every machine."""
    rng = random.Random(seed)
    size, buffers = rng.randint(1, MOST), rng.randint(2, 6)
    operations = []
    for _ in range(rng.randint(2, 10)):
        what = rng.choice(list(_TAKEN))
        chosen = [rng.randrange(buffers) for _ in range(_TAKEN[what])]
        parts = tuple(Part(str(number), 0, size) for number in chosen)
        operations.append(Operation(what, parts, "n", rng.randint(0, 40)))
    replays = [_replay(rng, size, buffers, operations) for _ in range(rng.randint(3, 7))]
    kept = [each for each in replays if each is not None]
    return Program(seed, size, buffers, tuple(operations), tuple(kept))


def _replay(
    rng: random.Random, size: int, buffers: int, operations: Sequence[Operation]
) -> Replay | None:
    """A replay in which no launch races; None if none is found."""
    for _ in range(_TRIES):
        step = rng.choice([1, size, max(1, size // 2)])  # of where parts begin
        last = (ROOM - size) // step
        places = [(rng.randrange(2), step * rng.randint(0, last)) for _ in range(buffers)]
        if all(_is_apart(each, places, size) for each in operations):
            return Replay(tuple(places), rng.randint(0, MOST), rng.choice([1.0, 2.0, -1.0]))
    return None


def _is_apart(each: Operation, places: Sequence[Place], size: int) -> bool:
    """Whether what is written shares nothing with what other threads read.

    Two arrays that are read may be one, and share nothing else: the IR says that they are dense.
    """
    if each.what in ("copy", "fill"):
        return True
    used = [places[int(part.name)] for part in each.parts]
    for (one, first), (other, second) in combinations(used, 2):
        is_same = (one, first) == (other, second)
        is_read = (one, first) != used[0] or each.what == "add"
        if one == other and abs(first - second) < size and not (is_same and is_read):
            return False
    return True


@cache
def _ir(what: str) -> Any:
    array, taken = sarek.int32[:], _TAKEN[what]
    numbers = {"add": (int, float), "turn": (int, float), "total": ()}.get(what, (int,))
    return KERNELS[what].ir(*[array] * taken, *numbers)


def schedule_of(program: Program, nodes: Sequence[Buffer]) -> Linear:
    """The program as a graph."""
    n, a = realize.Variable("n", 0, MOST), realize.Variable("a", -8.0, 8.0)
    calls: list[Any] = []
    for each in program.operations:
        used = [nodes[int(part.name)] for part in each.parts]
        match each.what:
            case "copy":
                calls.append(CopyCall(*used))
            case "fill":
                calls.append(CustomCall("fill", (*used, each.number)))
            case what:
                numbers = {"add": (n, a), "turn": (n, a), "total": ()}.get(what, (n,))
                grids = {"add": realize.ceiling(n, BLOCK), "total": 1}
                info = LaunchInfo(grids.get(what, _GRID), BLOCK)
                calls.append(KernelCall(_ir(what), (*used, *numbers), info))
    return Linear((CustomCall("graph", linear=Linear(tuple(calls))),))


def difference(program: Program, device: Any) -> str:
    """What is wrong with a schedule's replays on a device, in words; "" if nothing is."""
    nodes = [Buffer(program.size, np.dtype(np.int32)) for _ in range(program.buffers)]
    schedule, binding = schedule_of(program, nodes), realize.Buffers()
    with sarek.use_device(device):
        start = [np.arange(ROOM, dtype=np.int32) % (7 + k) for k in range(2)]
        mine, theirs = ([sarek.vector(each.copy()) for each in start] for _ in range(2))
        for k, replay in enumerate(program.replays):
            spans = [(which, slice(at, at + program.size)) for which, at in replay.places]
            for node, (which, span) in zip(nodes, spans, strict=True):
                binding.seed(node, mine[which][span])
            realize.run_linear(device, schedule, binding, {"n": replay.n, "a": replay.a})
            known = {str(j): theirs[which][span] for j, (which, span) in enumerate(spans)}
            for each in program.operations:
                do(each, known, replay.n, replay.a)
            for which in range(2):
                left, right = np.array(mine[which]), np.array(theirs[which])
                if not np.array_equal(left, right):
                    at = int(np.flatnonzero(left != right)[0])
                    return (
                        f"in replay {k}: element {at} of vector {which} is {left[at]} replayed and "
                        f"{right[at]} directly"
                    )
    return ""
