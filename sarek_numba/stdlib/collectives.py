"""Collectives over devices, of copies and kernels.

Each device combines a chunk of all parts, in the order of the positions, and gives it to the
others: all are busy, and the result is the same on each, whichever devices they are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.errors import ArgumentTypeError, InvalidArgument
from sarek_numba.realize.several import ShardedVector, copy_to
from sarek_numba.runtime.partition import row_bounds
from sarek_numba.stdlib.arguments import ELEMENTS

_THREADS = 256


def _kernel(combine: Callable[[Any, Any], Any]) -> Any:
    @sarek.kernel(wraparound=False)
    def combine_elements(total: Any, x: Any) -> None:
        i = sarek.global_idx.x
        if i < len(total):
            total[i] = combine(total[i], x[i])

    return combine_elements


_KERNELS = {
    "sum": _kernel(operator.add),
    "prod": _kernel(operator.mul),
    "min": _kernel(np.minimum),
    "max": _kernel(np.maximum),
}


def all_reduce(x: ShardedVector, op: str = "sum") -> ShardedVector:
    """Have each part of x be, element by element, the "sum", "prod", "min" or "max" of all parts.

    At the type of the elements, in the order of the devices. Gives x. Raises InvalidArgument for
    parts of unequal shape and for an unknown `op`, ArgumentTypeError for elements that are no
    integers or floats.
    """
    if not isinstance(x, ShardedVector):
        raise TypeError(f"all_reduce() takes what sarek.shard gives, not a {type(x).__name__}")
    if op not in _KERNELS:
        raise InvalidArgument(f"all_reduce(): op is one of {', '.join(_KERNELS)}, not {op!r}")
    if x.dtype not in ELEMENTS or x.dtype.kind == "b":
        raise ArgumentTypeError(
            f"all_reduce(): the elements are {x.dtype}; they are to be integers or floats"
        )
    for number, part in enumerate(x.parts):
        if part.shape != x.parts[0].shape:
            raise InvalidArgument(
                f"all_reduce(): part 0 has shape {x.parts[0].shape}, part {number} {part.shape}\n"
                "  hint: sarek.shard(v, devices, axis=None) gives equal parts"
            )
    whole = [part.reshape(-1) for part in x.parts]
    bounds = row_bounds(whole[0].size, len(whole))
    totals = [_total(x, whole, position, *bounds[position], op) for position in range(len(whole))]
    for (first, last), total in zip(bounds, totals, strict=True):
        for target, part in zip(x.devices, whole, strict=True):
            if first < last:
                copy_to(target, part[first:last], total)
    return x


def _total(
    x: ShardedVector, whole: list[Any], position: int, first: int, last: int, op: str
) -> Any:
    """The chunk of a position, of all parts, on its device."""
    target, size = x.devices[position], last - first
    total = sarek.empty(size, x.dtype)
    if not size:
        return total
    copy_to(target, total, whole[0][first:last])
    for number, part in enumerate(whole[1:], start=1):
        other = part[first:last]
        if number != position:  # what another device has
            other, source = sarek.empty(size, x.dtype), other
            copy_to(target, other, source)
        blocks = -(-size // _THREADS)
        _KERNELS[op].launch(total, other, grid=blocks, block=_THREADS, device=target)
    return total
