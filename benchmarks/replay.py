"""Captured programs against the same launches one by one: `python -m benchmarks.replay [devices]`.

Two programs: 100 small kernels, and an iteration of conjugate gradients on a small system, whose
numbers stay on the device. Of each device: µs of the host until a round is given to it, and µs
until it is done, directly and replayed; the least of many rounds, the device idle before each.
Results of 40 rounds are compared with what NumPy computes, before anything is timed.
`--raw` gives JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import sarek_numba as sarek

DEVICES = ("native", "cuda:0", "vulkan:0", "opencl")
KERNELS = 100
SMALL = 1024  # elements of a small kernel
UNKNOWNS = 2048
BLOCK = 256
SECONDS = 1.5  # of one measurement
LEAST, MOST = 20, 2000  # rounds

Program = Callable[[], None]


@sarek.kernel
def step(out: Any, x: Any, a: Any) -> None:
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = a * out[i] + x[i]


# --- conjugate gradients: the second difference, in float64 ---------------------------------------


@sarek.kernel
def apply_matrix(out: Any, x: Any) -> None:
    i = sarek.global_idx.x
    n = len(x)
    if i < n:
        total = 2.5 * x[i]
        if i > 0:
            total -= x[i - 1]
        if i + 1 < n:
            total -= x[i + 1]
        out[i] = total


@sarek.kernel
def dot(out: Any, x: Any, y: Any) -> None:
    """One block, whose threads add up in a fixed order."""
    parts = sarek.shared.array(256, sarek.float64)
    t = sarek.thread_idx.x
    total = 0.0
    for i in range(t, len(x), 256):
        total += x[i] * y[i]
    parts[t] = total
    sarek.barrier()
    half = 128
    while half > 0:
        if t < half:
            parts[t] += parts[t + half]
        sarek.barrier()
        half //= 2
    if t == 0:
        out[0] = parts[0]


@sarek.kernel
def descend(x: Any, r: Any, p: Any, q: Any, rr: Any, pq: Any) -> None:
    i = sarek.global_idx.x
    if i < len(x):
        alpha = rr[0] / pq[0]
        x[i] += alpha * p[i]
        r[i] -= alpha * q[i]


@sarek.kernel
def turn(p: Any, r: Any, fresh: Any, rr: Any) -> None:
    i = sarek.global_idx.x
    if i < len(p):
        p[i] = r[i] + fresh[0] / rr[0] * p[i]


class Small:
    """100 kernels on four vectors; each needs the one before, as in a loop."""

    name = f"{KERNELS} kernels of {SMALL} elements"
    launches = KERNELS

    def __init__(self) -> None:
        self.vectors = [sarek.vector(each) for each in self._start()]

    @staticmethod
    def _start() -> list[Any]:
        return [np.arange(SMALL, dtype=np.uint32) + np.uint32(k) for k in range(4)]

    def round(self) -> None:
        """All of it."""
        grid = SMALL // BLOCK
        for k in range(KERNELS):
            out, x = self.vectors[k % 4], self.vectors[(k + 1) % 4]
            step.launch(out, x, 3, grid=grid, block=BLOCK)

    def check(self, rounds: int) -> None:
        """Exactly what NumPy gives after so many rounds."""
        expected = self._start()
        for _ in range(rounds):
            for k in range(KERNELS):
                out, x = expected[k % 4], expected[(k + 1) % 4]
                out[:] = np.uint32(3) * out + x
        for left, right in zip(self.vectors, expected, strict=True):
            assert np.array_equal(left, right), "wrong"


class Gradients:
    """An iteration of conjugate gradients: six launches."""

    name = f"conjugate gradients, {UNKNOWNS} unknowns"
    launches = 6

    def __init__(self) -> None:
        b = np.sin(np.arange(UNKNOWNS)) + 1
        self._b = b
        self.x = sarek.zeros(UNKNOWNS, np.float64)
        self.r, self.p = sarek.vector(b.copy()), sarek.vector(b.copy())
        self.q = sarek.zeros(UNKNOWNS, np.float64)
        self.rr, self.fresh, self.pq = (sarek.zeros(1, np.float64) for _ in range(3))
        dot.launch(self.rr, self.r, self.r, grid=1, block=BLOCK)

    def round(self) -> None:
        """An iteration."""
        grid = UNKNOWNS // BLOCK
        apply_matrix.launch(self.q, self.p, grid=grid, block=BLOCK)
        dot.launch(self.pq, self.p, self.q, grid=1, block=BLOCK)
        descend.launch(self.x, self.r, self.p, self.q, self.rr, self.pq, grid=grid, block=BLOCK)
        dot.launch(self.fresh, self.r, self.r, grid=1, block=BLOCK)
        turn.launch(self.p, self.r, self.fresh, self.rr, grid=grid, block=BLOCK)
        scale_one.launch(self.rr, self.fresh, grid=1, block=1)

    def check(self, rounds: int) -> None:
        """The residual is what it says it is, and small after enough rounds."""
        x, r = np.array(self.x), np.array(self.r)
        applied = 2.5 * x
        applied[1:] -= x[:-1]
        applied[:-1] -= x[1:]
        assert np.allclose(self._b - applied, r, atol=1e-9), "wrong"
        assert rounds < 40 or np.linalg.norm(r) < 1e-6 * np.linalg.norm(self._b), "no convergence"


@sarek.kernel
def scale_one(out: Any, x: Any) -> None:
    out[0] = x[0]


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """Of one program on one device, µs a round: of the host, and until done."""

    device: str
    program: str
    launches: int
    how: str
    direct_host: float
    direct_done: float
    replay_host: float
    replay_done: float


def measured(device: Any, call: Program) -> tuple[float, float]:
    """µs of the host, and until done: the least of many rounds."""
    host = done = float("inf")
    clock, rounds, until = time.perf_counter, 0, time.perf_counter() + SECONDS
    while rounds < LEAST or (rounds < MOST and clock() < until):
        device.synchronize()
        start = clock()
        call()
        given = clock()
        device.synchronize()
        host, done, rounds = min(host, given - start), min(done, clock() - start), rounds + 1
    return host * 1e6, done * 1e6


def row_of(which: str, program: type[Small | Gradients]) -> Row:
    """Measure a program on a device, its results checked first."""
    device = sarek.device(which)
    with sarek.use_device(device):
        direct, replayed = program(), program()
        with sarek.capture() as g:
            replayed.round()
        for _ in range(40):
            direct.round()
            g.replay()
        for each in (direct, replayed):
            each.check(40)
        times = *measured(device, direct.round), *measured(device, g.replay)
    return Row(device.name, program.name, program.launches, g.mechanism, *times)


def main() -> None:
    """Print a table, or JSON."""
    names = [name for name in sys.argv[1:] if not name.startswith("-")] or DEVICES
    rows = []
    for name in names:
        try:
            sarek.device(name)
        except Exception as error:
            print(f"{name}: {error}".splitlines()[0], file=sys.stderr)
            continue
        rows += [row_of(name, program) for program in (Small, Gradients)]
    if "--raw" in sys.argv:
        print(json.dumps([asdict(row) for row in rows]))
        return
    print(f"load {os.getloadavg()[0]:.1f}; µs a launch")
    head = ["device", "program", "replayed by", "direct, host", "replay, host"]
    head += ["direct, until done", "replay, until done"]
    print("| " + " | ".join(head) + " |\n" + "|---" * 3 + "|--:" * 4 + "|")
    for row in rows:
        times = (row.direct_host, row.replay_host, row.direct_done, row.replay_done)
        cells = [f"{each / row.launches:.2f}" for each in times]
        print("| " + " | ".join([row.device, row.program, row.how, *cells]) + " |")


if __name__ == "__main__":
    main()
