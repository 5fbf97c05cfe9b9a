"""The block that is searched against the default one: `python -m benchmarks.local_size [devices]`.

Without devices, native. For each kernel of `benchmarks.streaming_kernels` along one axis and two
sizes: the block that `optimize_local_size` chose, medians of launches with the default block of 256
and with the chosen one, in turns, and their quotient. The last column has the quotient of the
default with itself in the same rounds: that is noise. Results are compared with the default's.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import Any

import numpy as np

import sarek_numba as sarek
from benchmarks.streaming_kernels import KERNELS
from sarek_numba.realize import optimize_local_size
from sarek_numba.realize.compile import program_for

SIZES = (1 << 16, 1 << 22)
ROUNDS = 31
DEFAULT = (256, 1, 1)


def launched(device: Any, kernel: Any, size: int, block: Any, given: list[Any]) -> float:
    """The seconds of a launch, which is waited for."""
    began = time.perf_counter()
    kernel.forall(size, block=block)(*given)
    device.synchronize()
    return time.perf_counter() - began


def row_of(device: Any, name: str, size: int) -> str:
    """A row of the table: a kernel of so many elements on a device."""
    streaming = KERNELS[name]
    rng = np.random.default_rng(1)
    arrays = [sarek.vector(rng.random(size, np.float32)) for _ in range(streaming.inputs + 1)]
    given = [*arrays, *map(np.float32, streaming.scalars)]
    types = [sarek.float32[:]] * len(arrays) + [sarek.float32] * len(streaming.scalars)
    program = program_for(device, streaming.kernel.ir(*types))
    chosen = optimize_local_size(device, program, size, given, guarded=True, cached=False)
    results = []
    for block in (DEFAULT, chosen):
        fresh = [each.copy() if isinstance(each, sarek.Vector) else each for each in given]
        launched(device, streaming.kernel, size, block, fresh)
        results.append(np.array(fresh[0]))
    assert np.array_equal(*results), f"{name}: block {chosen} gives something else"
    times: dict[str, list[float]] = {"default": [], "again": [], "chosen": []}
    blocks = {"default": DEFAULT, "again": DEFAULT, "chosen": chosen}
    for attempt in range(ROUNDS):
        for which in sorted(times, reverse=bool(attempt % 2)):
            taken = launched(device, streaming.kernel, size, blocks[which], given)
            times[which].append(taken * 1e6)
    quotient = statistics.median(times["chosen"]) / statistics.median(times["default"])
    noise = statistics.median(times["again"]) / statistics.median(times["default"])
    shown = "x".join(str(side) for side in chosen if side > 1) or "1"
    cells = [device.name, name, str(size), shown]
    cells += [f"{statistics.median(times[which]):.1f}" for which in ("default", "chosen")]
    return "| " + " | ".join([*cells, f"{quotient:.2f}", f"{noise:.2f}"]) + " |"


def main() -> None:
    """Print a table."""
    print(f"load {os.getloadavg()[0]:.1f}; medians of {ROUNDS} launches in turns")
    head = ["device", "kernel", "elements", "chosen", "256, µs", "chosen, µs", "chosen / 256"]
    print("| " + " | ".join([*head, "256 / 256"]) + " |\n" + "|---" * 2 + "|--:" * 6 + "|")
    for which in sys.argv[1:] or ["native"]:
        device = sarek.device(which)
        with sarek.use_device(device):
            for name in (name for name, each in KERNELS.items() if not each.plane):
                for size in SIZES:
                    print(row_of(device, name, size), flush=True)


if __name__ == "__main__":
    main()
