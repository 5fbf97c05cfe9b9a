"""Host time of a launch: `python -m benchmarks.launches [--million]`, `--window [--cpu]`.

Kernels without effect, of 0, 1, 4 and 16 arrays and of 16 scalars, on arrays of NumPy and on
vectors, beside `pyopencl`'s own enqueue with the arguments set (and waited for, as a launch is) and
Numba's dispatcher. Contenders take turns in short rounds, and of each the least time counts, which
is what the machine needs when nothing else runs in that moment. `--million` launches a million
times and shows what memory the process has before and after.

`--window` is about launches that wait in the window of a device, where limits of it are the only
points: rounds of three windows, beside the enqueue with the arguments set each time, which is
submitted and waited for in the same way. `--cpu` counts the time of the launching thread alone,
which other programs disturb less.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.codegen import cfamily

ROUNDS, CALLS = 60, 50


@sarek.kernel
def of_0():
    pass


@sarek.kernel
def of_1(a):
    pass


@sarek.kernel
def of_4(a, b, c, d):
    pass


@sarek.kernel
def of_16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p):  # noqa: E741 # sixteen names
    pass


@sarek.kernel
def adds_4(a, b, c, d):
    i = sarek.global_idx.x
    if i < len(d):
        d[i] = a[i] + b[i] + c[i]


def _arrays(count: int) -> list[Any]:
    return [np.zeros(16, np.float32) for _ in range(count)]


CASES: dict[str, tuple[Any, list[Any]]] = {
    "0 arrays": (of_0, []),
    "1 array": (of_1, _arrays(1)),
    "4 arrays": (of_4, _arrays(4)),
    "4 arrays, used": (adds_4, _arrays(4)),
    "16 arrays": (of_16, _arrays(16)),
    "16 scalars": (of_16, [1, 2.0] * 8),
}


def least(contenders: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The least time of a call of each, in microseconds."""
    found = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, call in contenders.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            found[name] = min(found[name], (time.perf_counter() - start) / CALLS * 1e6)
    return found


def _deferred(device: str, kernel: Any, arguments: list[Any]) -> tuple[float, float]:
    """Microseconds of a launch in the window, and of what `pyopencl` needs for the same."""
    import pyopencl

    clock = time.thread_time if "--cpu" in sys.argv else time.perf_counter
    chosen = sarek.device(device)
    launch = kernel._configured(1, 1, None, 0, chosen)
    vectors = [sarek.vector(a) if isinstance(a, np.ndarray) else a for a in arguments]
    for _ in range(4):
        launch(*vectors)
    driver: Any = chosen.driver
    program = driver.prepare(kernel.ir(*arguments))
    bare = pyopencl.Kernel(program.built, cfamily.ENTRY)
    bare.set_scalar_arg_dtypes(program._scalar_types())
    given, kept = _given(driver, program.params)
    queue, enqueue = driver.queue, pyopencl.enqueue_nd_range_kernel
    ours = theirs = float("inf")
    for _ in range(ROUNDS):
        execute.window.flush()
        chosen.synchronize()
        start = clock()
        for _ in range(3 * execute.window.LIMIT):
            launch(*vectors)
        ours = min(ours, clock() - start)
        chosen.synchronize()
        start, events = clock(), []
        for k in range(3 * execute.window.LIMIT):
            bare.set_args(*given)
            events.append(enqueue(queue, bare, (1, 1, 1), (1, 1, 1)))
            if k % execute.window.LIMIT == execute.window.LIMIT - 1:
                queue.flush()
                events[max(0, k - 2 * execute.window.LIMIT)].wait()
        theirs = min(theirs, clock() - start)
        queue.finish()
    del kept
    each = 1e6 / (3 * execute.window.LIMIT)
    return ours * each, theirs * each


def _given(driver: Any, params: Any) -> tuple[list[Any], list[Any]]:
    """What parameters are given, and what must live as long: a kernel keeps no argument alive."""
    import pyopencl

    flags = pyopencl.mem_flags.READ_WRITE | pyopencl.mem_flags.USE_HOST_PTR
    given: list[Any] = []
    kept: list[Any] = []
    for param in params:
        if param.array is not None:
            kept.append(_arrays(1)[0])
            given.append(pyopencl.Buffer(driver.context, flags, hostbuf=kept[-1]))
        else:
            given.append(np.dtype(param.var.type.value).type(16))
    return given, kept


def _launch(device: str, kernel: Any, arguments: list[Any]) -> Callable[[], Any]:
    """A launch on a device, which has done it often enough."""
    chosen = sarek.device(device)
    launch = kernel._configured(1, 1, None, 0, chosen)
    for _ in range(4):
        launch(*arguments)
    return lambda: launch(*arguments)


def _bare(device: str, kernel: Any, arguments: list[Any]) -> Callable[[], Any]:
    """The enqueue of the program of a launch, its arguments set once, and the wait for it."""
    import pyopencl

    driver: Any = sarek.device(device).driver
    program = driver.prepare(kernel.ir(*arguments))
    bare = pyopencl.Kernel(program.built, cfamily.ENTRY)
    given, hosts = _given(driver, program.params)
    for position, value in enumerate(given):
        bare.set_arg(position, value)
    queue, enqueue = driver.queue, pyopencl.enqueue_nd_range_kernel
    return lambda kept=(given, hosts): enqueue(queue, bare, (1, 1, 1), (1, 1, 1)).wait()


def _contenders(kernel: Any, arguments: list[Any], opencl: list[str]) -> dict[str, Any]:
    vectors = [sarek.vector(a) if isinstance(a, np.ndarray) else a for a in arguments]
    compiled = numba.njit(kernel.py_func) if kernel is not adds_4 else None
    found: dict[str, Callable[[], Any]] = {
        "native, NumPy": _launch("native", kernel, arguments),
        "native, vectors": _launch("native", kernel, vectors),
    }
    if compiled is not None:
        compiled(*arguments)
        found["Numba"] = lambda: compiled(*arguments)
    for name in opencl:
        own = [v.copy() if isinstance(v, sarek.Vector) else v for v in vectors]
        found[f"{name}, vectors"] = _launch(name, kernel, own)
        found[f"{name}, enqueue"] = _bare(name, kernel, arguments)
    return found


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def million() -> None:
    """A million launches: the memory of the process before and after."""
    launch = _launch("native", adds_4, _arrays(4))
    for _ in range(1000):
        launch()
    before, start = resident(), time.perf_counter()
    for _ in range(1_000_000):
        launch()
    took = time.perf_counter() - start
    grown = resident() - before
    print(f"1,000,000 launches: {took:.2f} s, resident memory {before} {grown:+d} bytes")


def main() -> None:
    """Print a table: microseconds of host time for a launch."""
    if "--million" in sys.argv:
        million()
        return
    opencl = [d.name for d in sarek.devices() if d.record.backend == "opencl"]
    if "--window" in sys.argv:
        print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
        print(
            "| µs a launch | " + " | ".join(f"{n}, window | {n}, pyopencl" for n in opencl) + " |"
        )
        print("|---" + "|--:" * 2 * len(opencl) + "|")
        for name, case in CASES.items():
            pairs = [_deferred(device, *case) for device in opencl]
            cells = [f"{ours:.2f} | {theirs:.2f}" for ours, theirs in pairs]
            print(f"| {name} | " + " | ".join(cells) + " |")
        return
    execute.window.configure(enabled=False)  # what is deferred has not been launched
    rows = {name: least(_contenders(*case, opencl)) for name, case in CASES.items()}
    columns = list(rows["0 arrays"])
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    print("| µs a launch | " + " | ".join(columns) + " |")
    print("|---" + "|--:" * len(columns) + "|")
    for name, row in rows.items():
        print(
            f"| {name} | " + " | ".join(f"{row[c]:.2f}" if c in row else "" for c in columns) + " |"
        )


if __name__ == "__main__":
    main()
