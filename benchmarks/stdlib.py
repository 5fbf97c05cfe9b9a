"""Scan and sort of the standard library on `native` against NumPy: `python -m benchmarks.stdlib`.

The rounds alternate between the contenders. Each result is compared with NumPy's. The figure is
CPU time used by all threads, which is elapsed time × cores used, over NumPy's elapsed time; the
reach is 1.5.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sarek_numba import stdlib

COUNT = 10_000_000
ROUNDS = 7


def _timed(function: Callable[[Any], Any], x: Any) -> tuple[float, float, Any]:
    """Elapsed milliseconds, CPU milliseconds of all threads, and the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function(x)
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3, result


def _cases(count: int) -> dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]]:
    rng = np.random.default_rng(1)
    whole = rng.integers(-(2**31), 2**31, count).astype(np.int32)
    real = rng.standard_normal(count).astype(np.float32)
    wide = rng.integers(-(2**63), 2**63 - 1, count)

    def scan(x: Any) -> Any:
        return stdlib.inclusive_scan(x, device="native")

    def sort(x: Any) -> Any:
        return stdlib.sort(x, device="native")

    return {
        "scan int32": (whole, scan, np.cumsum),
        "scan int64": (wide, scan, np.cumsum),
        "scan float32": (np.rint(real), scan, np.cumsum),  # whole numbers: every order is exact
        "sort int32": (whole, sort, np.sort),
        "sort uint32": (whole.view(np.uint32), sort, np.sort),
        "sort int64": (wide, sort, np.sort),
        "sort float32": (real, sort, np.sort),
    }


def main(count: int = COUNT) -> None:
    """Print one line a case: medians in milliseconds, and the ratio."""
    print(f"{count} elements: native elapsed, native CPU, NumPy elapsed (ms), CPU / NumPy")
    for name, (x, ours, numpys) in _cases(count).items():
        ours(x)  # compiles
        samples = []
        for _ in range(ROUNDS):  # results are dropped: memory never touched before is slow
            *mine, result = _timed(ours, x)
            peer, _, expected = _timed(numpys, x)
            if not np.array_equal(result, expected):
                sys.exit(f"{name}: the results differ")
            samples.append((*mine, peer))
        wall, used, peer = map(statistics.median, zip(*samples, strict=True))
        print(f"{name:14} {wall:8.1f} {used:8.1f} {peer:8.1f} {used / peer:6.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
