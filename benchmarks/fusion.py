"""What fusing small launches would give: separate launches in one queue, against one launch of a
combined grid with a switch on the block index. `python -m benchmarks.fusion`

Kernels are empty but for one element a thread; each launch has two buffers of its own. The fused
kernel is compiled before, and its arguments are set anew for each launch, as a window has to do.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import sarek_numba as sarek

BLOCK, BLOCKS, TIMES, REPEATS = 64, 4, 40, 9


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


def measure(device: sarek.Device, count: int) -> tuple[float, float]:
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


def main() -> None:
    """Print a table."""
    for device in sarek.devices():
        if device.record.backend == "opencl":
            for count in (2, 8, 16):
                separate, fused = measure(device, count)
                print(
                    f"{device.name}: {count} launches: {separate:.2f} µs each, fused {fused:.2f} µs"
                )


if __name__ == "__main__":
    main()
