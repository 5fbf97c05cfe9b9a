"""Collectives of a block: device functions for kernels, known there as `sarek.block`.

Every thread of the block gives a value and gets a result, so each call stands where control is
uniform for the block, as a barrier does. Values have one element type, that of the argument; sums
of int32 are int32. Threads count in linear order, x fastest. A call may follow another at once.

    reduce_sum reduce_prod reduce_min reduce_max    of all threads, given to all threads
    scan_sum scan_prod scan_min scan_max            of the threads up to this one
    scan_exclusive_sum scan_exclusive_prod          of the threads before this one

`min` and `max` are `np.minimum` and `np.maximum`. The order of the operations depends on the number
of threads alone. A call takes 1024 elements of shared memory, shared by all calls of its kind and
element type. The scan is that of W. D. Hillis and G. L. Steele, "Data parallel algorithms", 1986.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.frontend.functions import DeviceFunction
from sarek_numba.frontend.language import current

LINE = 1024  # elements of shared memory; larger blocks go through it in turns


class BlockFunction(DeviceFunction):
    """A device function of one value of each thread.

    In an emulation the threads first agree on its element type: a value that is typed as float32
    may be the Python number 0 in some of them.
    """

    def __call__(self, value: Any) -> Any:
        return self.emulated(self.function)(value)

    def emulated(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def agreed(value: Any) -> Any:
            return function(current(f"block.{self.function.__name__}").agree(value))

        return agreed


@sarek.function
def _thread() -> Any:
    """The linear index of this thread in its block."""
    row = sarek.thread_idx.z * sarek.block_dim.y + sarek.thread_idx.y
    return row * sarek.block_dim.x + sarek.thread_idx.x


def _reduction(name: str, combine: Callable[[Any, Any], Any]) -> BlockFunction:
    def reduce(value: Any) -> Any:
        line = sarek.shared.array(LINE, value.dtype)
        threads = sarek.block_dim.x * sarek.block_dim.y * sarek.block_dim.z
        t = _thread()
        if t < LINE:
            line[t] = value
        for first in range(LINE, threads, LINE):
            sarek.barrier()
            if first <= t < first + LINE:
                line[t - first] = combine(line[t - first], value)
        sarek.barrier()
        left = min(threads, LINE)
        while left > 1:
            half = (left + 1) // 2
            if t < left - half:
                line[t] = combine(line[t], line[t + half])
            sarek.barrier()
            left = half
        result = line[0]
        sarek.barrier()
        return result

    return _named(name, reduce)


def _scan(name: str, combine: Callable[[Any, Any], Any]) -> BlockFunction:
    def scan(value: Any) -> Any:
        line = sarek.shared.array(LINE, value.dtype)
        threads = sarek.block_dim.x * sarek.block_dim.y * sarek.block_dim.z
        t = _thread()
        mine = value
        first = 0
        step = 0
        while first < threads:  # one loop: PoCL is slow to compile nested ones
            here = t - first
            inside = 0 <= here < LINE
            if step == 0:
                if here == 0 and first > 0:
                    mine = combine(line[LINE - 1], mine)
            elif inside and here >= step:
                mine = combine(line[here - step], mine)
            sarek.barrier()
            if inside:
                line[here] = mine
            sarek.barrier()
            step = max(1, step * 2)
            if step >= min(LINE, threads - first):
                first += LINE
                step = 0
        return mine

    return _named(name, scan)


def _exclusive(name: str, scan: BlockFunction, identity: int) -> BlockFunction:
    def exclusive(value: Any) -> Any:
        line = sarek.shared.array(LINE, value.dtype)
        threads = sarek.block_dim.x * sarek.block_dim.y * sarek.block_dim.z
        t = _thread()
        before = value.dtype.type(identity)
        for first in range(0, threads, LINE):
            if first <= t < first + LINE:
                line[t - first] = value
            sarek.barrier()
            if first < t <= first + LINE:
                before = line[t - 1 - first]
            sarek.barrier()
        return scan(before)

    return _named(name, exclusive)


def _named(name: str, definition: Any) -> BlockFunction:
    definition.__name__ = definition.__qualname__ = name
    return BlockFunction(definition)


reduce_sum = _reduction("reduce_sum", operator.add)
reduce_prod = _reduction("reduce_prod", operator.mul)
reduce_min = _reduction("reduce_min", np.minimum)
reduce_max = _reduction("reduce_max", np.maximum)

scan_sum = _scan("scan_sum", operator.add)
scan_prod = _scan("scan_prod", operator.mul)
scan_min = _scan("scan_min", np.minimum)
scan_max = _scan("scan_max", np.maximum)

scan_exclusive_sum = _exclusive("scan_exclusive_sum", scan_sum, 0)
scan_exclusive_prod = _exclusive("scan_exclusive_prod", scan_prod, 1)
