"""Histograms with bins of equal width, equal to NumPy's.

Blocks count in shared memory and add what they counted to the result; where the bins do not fit
there, threads add to the result itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.errors import ArgumentTypeError, InvalidArgument
from sarek_numba.runtime import recorders
from sarek_numba.stdlib.arguments import (
    ELEMENTS,
    HALVES,
    Array,
    Where,
    accumulator,
    check_array,
    check_integer,
    constant,
    filled,
    refuse_in_graphs,
    room,
    segments,
)
from sarek_numba.stdlib.reduce import reduce_max, reduce_min

THREADS = 128
SHARED_BINS = 2048
_MOST_BINS = 2**24
_MOST = 2**31 - 1  # counts are int32 on the device
_NUMBERS = tuple(dtype for dtype in ELEMENTS if dtype.kind != "b")


@sarek.function
def _bin(value: Any, edges: Any, scale: Any) -> Any:
    """The bin with edges[bin] <= value < edges[bin + 1]; the last one has its right edge too.

    -1 for a value outside. The product may be off by a rounding, which the edges decide.
    """
    bins = len(edges) - 1
    if not (value >= edges[0] and value <= edges[bins]):
        return -1
    bin = min(int((value - edges[0]) * scale), bins - 1)
    while bin > 0 and value < edges[bin]:
        bin -= 1
    while bin < bins - 1 and value >= edges[bin + 1]:
        bin += 1
    return bin


@sarek.kernel
def count_shared(counts: Any, x: Any, edges: Any, scale: Any, segment: Any) -> None:
    here = sarek.shared.array(SHARED_BINS, sarek.int32)
    t = sarek.thread_idx.x
    for bin in range(t, len(counts), sarek.block_dim.x):
        here[bin] = 0
    sarek.barrier()
    first = sarek.block_idx.x * int(segment)
    last = min(first + int(segment), len(x))
    for i in range(first + t, last, sarek.block_dim.x):
        bin = _bin(edges.dtype.type(x[i]), edges, scale)
        if bin >= 0:
            sarek.atomic.add(here, bin, 1)
    sarek.barrier()
    for bin in range(t, len(counts), sarek.block_dim.x):
        count = here[bin]
        if count > 0:
            sarek.atomic.add(counts, bin, count)


@sarek.kernel
def count_global(counts: Any, x: Any, edges: Any, scale: Any, segment: Any) -> None:
    first = sarek.block_idx.x * int(segment)
    last = min(first + int(segment), len(x))
    for i in range(first + sarek.thread_idx.x, last, sarek.block_dim.x):
        bin = _bin(edges.dtype.type(x[i]), edges, scale)
        if bin >= 0:
            sarek.atomic.add(counts, bin, 1)


@sarek.kernel
def widen(out: Any, counts: Any) -> None:
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = counts[i]


def histogram(
    x: Array,
    bins: int = 10,
    range: tuple[float, float] | None = None,
    *,
    device: Where = None,
) -> tuple[Array, Array]:
    """How many elements of x, of any shape, fall into each of `bins` bins of equal width.

    Gives the counts, int64 of shape (bins,), and the edges, of shape (bins + 1,), as
    `np.histogram(x, bins, range)`. Without `range` the bins go from the least to the greatest
    element; values outside, and NaN, are not counted. Halves are counted as the float32 that they
    are, between edges of that type.
    """
    given = check_array("histogram", "x", x, _NUMBERS, ndim=None).reshape(-1)
    number_of_bins = check_integer("histogram", "bins", bins, 1, _MOST_BINS)
    if len(given) > _MOST:
        raise InvalidArgument(
            f"histogram(): 'x' has {len(given)} elements; it takes at most {_MOST}\n"
            "  hint: add up the histograms of its parts"
        )
    limits = _limits(given, range, device)
    kind = accumulator(given.dtype) if given.dtype in HALVES else given.dtype
    edges = np.histogram_bin_edges(np.empty(0, kind), number_of_bins, limits)
    counts = filled(number_of_bins, 0, np.int32)
    if len(given):
        number, length = segments(len(given))
        scale = edges.dtype.type(number_of_bins / (float(edges[-1]) - float(edges[0])))
        kernel = count_shared if number_of_bins <= SHARED_BINS else count_global
        kernel.launch(
            counts, given, constant(edges), scale, length, grid=number, block=THREADS, device=device
        )
    if not recorders.gives_vectors():
        return counts.astype(np.int64), edges
    wide = room(number_of_bins, np.int64)
    blocks = -(-number_of_bins // THREADS)
    widen.launch(wide, counts, grid=blocks, block=THREADS, device=device)
    return wide, edges


def _limits(x: Array, range: Any, device: Where) -> tuple[Any, Any]:
    if range is None:
        if not len(x):
            return (0.0, 1.0)
        refuse_in_graphs("histogram", "give range=(low, high)")
        low, high = reduce_min(x, device=device), reduce_max(x, device=device)
        if x.dtype in HALVES:
            low, high = np.float32(low), np.float32(high)
        hint = "give range=(low, high)"
    else:
        if not isinstance(range, tuple | list) or len(range) != 2:
            raise ArgumentTypeError(
                f"histogram(): 'range' is {range!r}, not a pair of numbers\n"
                "  hint: write range=(low, high)"
            )
        low, high = range
        hint = "write finite numbers, the lower one first"
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise InvalidArgument(f"histogram(): the range is ({low}, {high})\n  hint: {hint}")
    return low, high
