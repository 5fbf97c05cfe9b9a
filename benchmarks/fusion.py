"""Small launches: as one, together in a window, and at once. `python -m benchmarks.fusion [--raw]`

A window of 64 launches of `BLOCKS` blocks of `BLOCK` threads, each with two vectors of its own, of
one kernel, or of four kernels in turn, which depend on each other in chains of four. Fused: fusion
is on; batched: it is off; at once: there is no window. `submit` is the host's time until the
device has all of them, `done` the time until all are done, in µs a launch. The vectors are the same
in each window, or of two sets in turn, which has all arguments set anew. `--blocks` measures by the
number of blocks of a launch instead.

`--raw` is what there is to gain without any of this package: pyopencl alone, separate launches in
one queue against one launch of a combined grid with a switch on the block index, its arguments set
anew each time, as those of the separate ones.

Contenders take turns, and of each the least time of `REPEATS` counts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.execute import window

BLOCK, BLOCKS, TIMES, REPEATS, LAUNCHES = 64, 4, 40, 30, 64


@sarek.kernel
def first(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i]


@sarek.kernel
def second(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] -= x[i]


@sarek.kernel
def third(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = max(out[i], x[i])


@sarek.kernel
def fourth(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = min(out[i], x[i])


SETTINGS: dict[str, dict[str, Any]] = {
    "fused": {"enabled": True, "fuse": True},
    "batched": {"enabled": True, "fuse": False},
    "at once": {"enabled": False, "fuse": False},
}


def _windows(
    device: sarek.Device, kernels: Sequence[Any], sets: int, blocks: int
) -> list[Callable[[], None]]:
    """Functions that launch a window each; all kernels in turn on the same two vectors."""
    size = BLOCK * blocks
    made = []
    for _ in range(sets):
        items = LAUNCHES // len(kernels)
        pairs = [
            (sarek.zeros(size, np.float32), sarek.ones(size, np.float32)) for _ in range(items)
        ]
        launchers = [kernel._configured(blocks, BLOCK, None, 0, device) for kernel in kernels]

        def launch(pairs: Any = pairs, launchers: Any = launchers) -> None:
            for out, x in pairs:
                for one in launchers:
                    one(out, x)

        made.append(launch)
    return made


def measure(
    device: sarek.Device, kernels: Sequence[Any], sets: int, blocks: int = BLOCKS
) -> dict[str, tuple[float, float, int]]:
    """Of each setting the µs a launch until all are submitted, and done; how many were fused."""
    windows = _windows(device, kernels, sets, blocks)
    least: dict[str, tuple[float, float, int]] = {}
    for _ in range(REPEATS):
        for name, settings in SETTINGS.items():
            window.configure("opencl", limit=LAUNCHES, **settings)
            for launch in (*windows, *windows, *windows):
                launch()
                device.synchronize()
            window.statistics.reset()
            submit = done = float("inf")
            for launch in (*windows, *windows):
                start = perf_counter()
                launch()
                window.flush(device)
                submit = min(submit, perf_counter() - start)
                device.synchronize()
                done = min(done, perf_counter() - start)
            before = least.get(name, (submit, done, 0))
            fused = window.statistics.fused // (2 * len(windows))
            least[name] = min(submit, before[0]), min(done, before[1]), fused
    window.configure("opencl", limit=window.LIMIT, enabled=True, fuse="auto")
    scale = 1e6 / LAUNCHES
    return {name: (a * scale, b * scale, fused) for name, (a, b, fused) in least.items()}


# --- without this package -------------------------------------------------------------------------


def source(count: int) -> str:
    """One kernel of `count` bodies, each for `BLOCKS` blocks."""
    parameters = ", ".join(f"global float *o{k}, global const float *x{k}" for k in range(count))
    cases = "\n".join(f"    case {k}: o{k}[i] += x{k}[i]; break;" for k in range(count))
    return f"""kernel void fused({parameters}) {{
    int i = (get_group_id(0) % {BLOCKS}) * {BLOCK} + get_local_id(0);
    switch (get_group_id(0) / {BLOCKS}) {{
{cases}
    }}
}}"""


def fastest(run: Callable[[], None]) -> float:
    """Microseconds of one run, the least of several."""
    least = float("inf")
    for _ in range(REPEATS):
        start = perf_counter()
        for _ in range(TIMES):
            run()
        least = min(least, (perf_counter() - start) / TIMES)
    return least * 1e6


def measure_raw(device: sarek.Device, count: int) -> tuple[float, float]:
    """Microseconds a launch, until all are done: separate and fused."""
    import pyopencl as cl

    driver: Any = device.driver
    queue, flags = driver.queue, cl.mem_flags
    memory = [
        cl.Buffer(driver.context, flags.READ_WRITE, 4 * BLOCK * BLOCKS) for _ in range(2 * count)
    ]
    for buffer in memory:
        cl.enqueue_fill_buffer(queue, buffer, np.float32(0), 0, 4 * BLOCK * BLOCKS).wait()
    one = cl.Kernel(cl.Program(driver.context, source(1)).build(), "fused")
    many = cl.Kernel(cl.Program(driver.context, source(count)).build(), "fused")

    def separate() -> None:
        for k in range(count):
            one.set_args(memory[2 * k], memory[2 * k + 1])
            cl.enqueue_nd_range_kernel(queue, one, (BLOCK * BLOCKS,), (BLOCK,))
        queue.finish()

    def fused() -> None:
        many.set_args(*memory)
        cl.enqueue_nd_range_kernel(queue, many, (BLOCK * BLOCKS * count,), (BLOCK,))
        queue.finish()

    separate()
    fused()
    return fastest(separate) / count, fastest(fused) / count


# --- tables ---------------------------------------------------------------------------------------


def _print_windows(devices: Sequence[sarek.Device]) -> None:
    kernels = (first, second, third, fourth)
    columns = [f"{name}, {what}" for name in SETTINGS for what in ("submit", "done")]
    print(f"| device | 64 launches | {' | '.join(columns)} | fused |")
    print("|---|---" + "|--:" * len(columns) + "|--:|")
    for device in devices:
        for words, given in (("one kernel", kernels[:1]), ("four in turn", kernels)):
            for sets, which in ((1, "same vectors"), (2, "two sets")):
                found = measure(device, given, sets)
                cells = [f"{time:.2f}" for one in found.values() for time in one[:2]]
                fused = found["fused"][2]
                print(f"| {device.name} | {words}, {which} | {' | '.join(cells)} | {fused} |")


def _print_blocks(devices: Sequence[sarek.Device]) -> None:
    print("| device | blocks of a launch | fused, done | batched, done |")
    print("|---|--:|--:|--:|")
    for device in devices:
        for blocks in (1, 2, 4, 8, 16):
            found = measure(device, (first,), 1, blocks)
            cells = " | ".join(f"{found[name][1]:.2f}" for name in ("fused", "batched"))
            print(f"| {device.name} | {blocks} | {cells} |")


def _print_raw(devices: Sequence[sarek.Device]) -> None:
    print("| device | launches | separate | as one |\n|---|--:|--:|--:|")
    for device in devices:
        for count in (2, 4, 8, 16):
            separate, fused = measure_raw(device, count)
            print(f"| {device.name} | {count} | {separate:.2f} | {fused:.2f} |")


def main() -> None:
    """Print a table: µs a launch."""
    devices = [device for device in sarek.devices() if device.record.backend == "opencl"]
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    if "--raw" in sys.argv:
        _print_raw(devices)
    elif "--blocks" in sys.argv:
        _print_blocks(devices)
    else:
        _print_windows(devices)


if __name__ == "__main__":
    main()
