"""Sum, product, minimum and maximum of all elements.

Segments are reduced by a block each, every thread over a stride, then the block by its collective;
one more block reduces what the segments gave.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.errors import InvalidArgument
from sarek_numba.runtime import recorders
from sarek_numba.stdlib import block
from sarek_numba.stdlib.arguments import (
    FLOATS,
    Array,
    Where,
    accumulator,
    check_array,
    filled,
    room,
    segments,
)

THREADS = 256
LANES = 16  # threads on a CPU, where these make one vector


def _kernel(combine: Callable[[Any, Any], Any], collective: block.BlockFunction) -> Any:
    @sarek.kernel(wraparound=False)
    def reduce_segments(parts: Any, x: Any, start: Any, segment: Any) -> None:
        total = start
        first = sarek.block_idx.x * int(segment)
        last = min(first + int(segment), len(x))
        for i in range(first + sarek.thread_idx.x, last, sarek.block_dim.x):
            total = combine(total, parts.dtype.type(x[i]))
        total = collective(total)
        if sarek.thread_idx.x == 0:
            parts[sarek.block_idx.x] = total

    return reduce_segments


_KERNELS = {
    "sum": _kernel(operator.add, block.reduce_sum),
    "prod": _kernel(operator.mul, block.reduce_prod),
    "min": _kernel(np.minimum, block.reduce_min),
    "max": _kernel(np.maximum, block.reduce_max),
}


def segment_totals(op: str, x: Array, start: np.generic, device: Where) -> Array:
    """The reduction of each segment of x, at the type of `start`; x has one axis."""
    number, length = segments(len(x))
    parts = room(number, start.dtype)
    threads = THREADS
    if start.dtype not in FLOATS and sarek.device(device).record.is_cpu:
        threads = LANES  # neighbours in memory; another order of integers gives the same
    _KERNELS[op].launch(parts, x, start, length, grid=number, block=threads, device=device)
    return parts


def reduce_sum(x: Array, *, device: Where = None) -> Any:
    """The sum of all elements of x, of any shape, at the type that NumPy adds in; 0 if empty.

    Of halves it is a float32, as what kernels read.
    """
    return _reduced("sum", x, device)


def reduce_prod(x: Array, *, device: Where = None) -> Any:
    """The product of all elements of x, of any shape, at NumPy's type for it; 1 if empty.

    Of halves it is a float32.
    """
    return _reduced("prod", x, device)


def reduce_min(x: Array, *, device: Where = None) -> Any:
    """The least element of x, of any shape; NaN if there is one. Refuses an empty array."""
    return _reduced("min", x, device)


def reduce_max(x: Array, *, device: Where = None) -> Any:
    """The greatest element of x, of any shape; NaN if there is one. Refuses an empty array."""
    return _reduced("max", x, device)


def _reduced(op: str, given: Array, device: Where) -> Any:
    x = check_array(f"reduce_{op}", "x", given, ndim=None).reshape(-1)
    extreme = op in ("min", "max")
    dtype = x.dtype if extreme else accumulator(x.dtype)
    if not len(x):
        if extreme:
            raise InvalidArgument(
                f"reduce_{op}(): 'x' has no elements, so there is no {op}imum\n"
                "  hint: ask for len(x) first"
            )
        result = dtype.type(op == "prod")
        return filled(1, result) if recorders.gives_vectors() else result
    if extreme and dtype.kind == "b":
        found = _reduced(op, x.view(np.uint8), device)
        return found.view(np.bool_) if recorders.gives_vectors() else np.bool_(found)
    kept = recorders.gives_vectors()
    start = x[0] if extreme and not kept else identity(op, dtype)
    parts = segment_totals(op, x, start, device)
    while len(parts) > 1:
        parts = segment_totals(op, parts, start, device)
    return parts if kept else parts[0]


def identity(op: str, dtype: np.dtype[Any]) -> Any:
    """The value that changes nothing: -0.0 for sums of floats, which keeps the sign of zeros."""
    if op == "sum":
        return dtype.type(-0.0 if dtype in FLOATS else 0)
    if op == "prod":
        return dtype.type(1)
    if dtype in FLOATS:
        return dtype.type(np.inf if op == "min" else -np.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if op == "min" else limits.min)
