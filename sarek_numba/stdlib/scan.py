"""Inclusive and exclusive scans: the reduction of every prefix.

Three launches: each segment is reduced, the results are scanned, and each segment is then scanned
from where those before it ended. Up to one segment's length it is a single launch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.errors import InvalidArgument
from sarek_numba.stdlib.arguments import Array, Where, accumulator, check_array, segments
from sarek_numba.stdlib.reduce import identity, segment_totals

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "prod": operator.mul,
    "min": np.minimum,
    "max": np.maximum,
}


def _kernels(combine: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The two scans of a segment by one thread, which starts from `starts`."""

    @sarek.kernel
    def scan_inclusive(out: Any, x: Any, starts: Any, segment: Any) -> None:
        running = starts[sarek.block_idx.x]
        first = sarek.block_idx.x * int(segment)
        last = min(first + int(segment), len(x))
        for i in range(first, last):
            running = combine(running, out.dtype.type(x[i]))
            out[i] = running

    @sarek.kernel
    def scan_exclusive(out: Any, x: Any, starts: Any, segment: Any) -> None:
        running = starts[sarek.block_idx.x]
        first = sarek.block_idx.x * int(segment)
        last = min(first + int(segment), len(x))
        for i in range(first, last):
            out[i] = running
            running = combine(running, out.dtype.type(x[i]))

    return scan_inclusive, scan_exclusive


_KERNELS = {op: _kernels(combine) for op, combine in _OPERATIONS.items()}


def inclusive_scan(x: Array, op: str = "sum", *, device: Where = None) -> Array:
    """The reduction of x[0] to x[i] for each i: of shape (n,), like x.

    `op` is "sum", "prod", "min" or "max". Sums and products have NumPy's type for them, as
    `np.cumsum`: int64 or uint64 for integers. Integers are exact; sums of floats go in segments.
    """
    return _scanned("inclusive_scan", x, op, device)


def exclusive_scan(x: Array, op: str = "sum", *, device: Where = None) -> Array:
    """The reduction of the elements before x[i] for each i: of shape (n,), like x.

    Element 0 is the value that changes nothing: 0, 1, or the greatest or least value of the type.
    Otherwise as `inclusive_scan`.
    """
    return _scanned("exclusive_scan", x, op, device)


def _scanned(name: str, given: Array, op: str, device: Where) -> Array:
    x = check_array(name, "x", given)
    if op not in _KERNELS:
        raise InvalidArgument(
            f"{name}(): 'op' is {op!r}; it takes {', '.join(map(repr, _KERNELS))}\n"
            "  hint: other operations are a kernel of your own, with sarek.block"
        )
    extreme = op in ("min", "max")
    if extreme and x.dtype.kind == "b":
        return _scanned(name, x.view(np.uint8), op, device).astype(bool)
    exclusive = name == "exclusive_scan"
    dtype = x.dtype if extreme else accumulator(x.dtype)
    out = np.empty(len(x), dtype)
    if not len(x):
        return out
    number, length = segments(len(x))
    start = identity(op, dtype)
    if exclusive and op == "sum":
        start = dtype.type(0)
    starts = np.full(1, start)
    inclusive_kernel, exclusive_kernel = _KERNELS[op]
    if number > 1:
        totals = segment_totals(op, x, start, device)
        first, starts = starts, np.empty_like(totals)
        whole = np.uint64(number)
        exclusive_kernel.launch(starts, totals, first, whole, grid=1, block=1, device=device)
    kernel = exclusive_kernel if exclusive else inclusive_kernel
    kernel.launch(out, x, starts, length, grid=number, block=1, device=device)
    return out
