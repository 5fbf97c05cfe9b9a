"""Host time of a launch on CUDA: `python -m benchmarks.launches_cuda`.

Kernels without effect, of 0, 1, 4 and 16 arrays and of 16 scalars, on vectors: on the default
stream with the window and without it, beside `cuLaunchKernel` of cuda-bindings with the arguments
packed before, and CuPy's RawKernel where it is installed, with the same types of arguments. What is
timed is giving launches to the device: rounds of three windows, the device idle before each and
waited for after it, the least round of each contender. `--cpu` counts the time of the launching
thread alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import sarek_numba as sarek
from benchmarks.launches import CASES
from sarek_numba import execute
from sarek_numba.ir.types import Scalar

ROUNDS = 200
CALLS = 3 * execute.window.LIMIT


def ours(kernel: Any, arguments: list[Any], *, window: bool) -> Callable[[], Any]:
    """A launch that has been learnt."""
    device = sarek.device("cuda")
    execute.window.configure("cuda", enabled=window)
    launch = kernel._configured(1, 1, None, 0, device)
    vectors = [sarek.vector(a) if isinstance(a, np.ndarray) else a for a in arguments]
    for _ in range(6):
        launch(*vectors)
    return lambda: launch(*vectors)


def bare(kernel: Any, arguments: list[Any]) -> Callable[[], Any]:
    """The driver's call for the same program."""
    from cuda.bindings import driver as cuda

    owner: Any = sarek.device("cuda").driver
    program = owner.prepare(kernel.ir(*arguments))
    memory = [sarek.vector(a).to("cuda") for a in arguments if isinstance(a, np.ndarray)]
    words = np.zeros(max(1, len(program.params)), np.uint64)
    buffers = iter(memory)
    for k, param in enumerate(program.params):
        if param.array is not None:
            words[k] = execute.device_buffer(next(buffers), "cuda")
    addresses = words.ctypes.data + 8 * np.arange(len(words), dtype=np.uint64)
    raw, stream, at = program.function.raw, owner.stream.raw, addresses.ctypes.data
    kept = (memory, words, addresses)
    return lambda kept=kept: cuda.cuLaunchKernel(raw, 1, 1, 1, 1, 1, 1, 0, stream, at, 0)


def of_cupy(kernel: Any, arguments: list[Any]) -> Callable[[], Any] | None:
    """A RawKernel without effect whose parameters are of the types of the program's."""
    try:
        import cupy
    except ImportError:
        return None
    params = sarek.device("cuda").driver.prepare(kernel.ir(*arguments)).params
    names = {Scalar.INT32: "int", Scalar.INT64: "long long", Scalar.FLOAT32: "float"}
    parts: list[str] = []
    given: list[Any] = []
    for k, param in enumerate(params):
        if param.array is not None:
            parts.append(f"float *p{k}")
            given.append(cupy.zeros(16, np.float32))
            continue
        type = param.var.type
        parts.append(f"{names.get(type, 'double')} p{k}")
        given.append(np.dtype(type.value if type in names else np.float64).type(1))
    text = f'extern "C" __global__ void empty({", ".join(parts)}) {{}}'
    raw, arguments = cupy.RawKernel(text, "empty"), tuple(given)
    return lambda: raw((1,), (1,), arguments)


def least(call: Callable[[], Any], *, window: bool) -> float:
    """Microseconds of a call."""
    clock = time.thread_time if "--cpu" in sys.argv else time.perf_counter
    execute.window.configure("cuda", enabled=window)
    device, best = sarek.device("cuda"), float("inf")
    for _ in range(ROUNDS):
        execute.window.flush()
        device.synchronize()
        start = clock()
        for _ in range(CALLS):
            call()
        best = min(best, clock() - start)
    device.synchronize()
    return best / CALLS * 1e6


def main() -> None:
    """Print a table: microseconds of host time for a launch."""
    print(f"{sarek.device('cuda').record.description}; load {os.getloadavg()[0]:.1f}")
    columns = ["window", "without window", "cuLaunchKernel", "CuPy RawKernel"]
    print("| µs a launch | " + " | ".join(columns) + " |")
    print("|---" + "|--:" * len(columns) + "|")
    for name, case in CASES.items():
        cells = [f"{least(ours(*case, window=w), window=w):.2f}" for w in (True, False)]
        for other in (bare(*case), of_cupy(*case)):
            cells.append("" if other is None else f"{least(other, window=False):.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |")
    execute.window.configure("cuda", enabled=True)


if __name__ == "__main__":
    main()
