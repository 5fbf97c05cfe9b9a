"""Compaction: the elements that a mask chooses, in their order.

Each segment counts what it keeps, the counts are scanned, and each segment writes what it keeps
from its start on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.stdlib.arguments import (
    Array,
    Where,
    as_bits,
    check_array,
    check_length,
    refuse_in_graphs,
    segments,
)
from sarek_numba.stdlib.scan import inclusive_scan


@sarek.kernel
def count_kept(counts: Any, mask: Any, segment: Any) -> None:
    first = sarek.block_idx.x * int(segment)
    last = min(first + int(segment), len(mask))
    kept = 0
    for i in range(first, last):
        kept += int(mask[i])
    counts[sarek.block_idx.x] = kept


@sarek.kernel
def write_kept(out: Any, x: Any, mask: Any, ends: Any, segment: Any) -> None:
    first = sarek.block_idx.x * int(segment)
    last = min(first + int(segment), len(mask))
    place = sarek.uint64(0)
    if sarek.block_idx.x > 0:
        place = sarek.uint64(ends[sarek.block_idx.x - 1])
    for i in range(first, last):
        if mask[i]:
            out[place] = x[i]
            place += 1


def compact(x: Array, mask: Array, *, device: Where = None) -> Array:
    """x[mask]: the elements of x, of shape (n,), where the bools of mask, of shape (n,), hold."""
    refuse_in_graphs("compact", "call it between graphs")
    given = check_array("compact", "x", x)
    chosen = check_array("compact", "mask", mask, (np.dtype(bool),))
    check_length("compact", "mask", chosen, len(given), "x")
    if not len(given):
        return given.copy()
    number, length = segments(len(given))
    counts = np.empty(number, np.int64)
    count_kept.launch(counts, chosen, length, grid=number, block=1, device=device)
    ends = inclusive_scan(counts, device=device)
    out = np.empty(int(ends[-1]), given.dtype)
    if len(out):
        kept, bits = as_bits(out), as_bits(given)
        write_kept.launch(kept, bits, chosen, ends, length, grid=number, block=1, device=device)
    return out
