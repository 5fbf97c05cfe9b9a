"""Inclusive and exclusive scans: the reduction of every prefix.

Three launches: each segment is reduced, the results are scanned, and each segment is then scanned
from where those before it ended. Up to one segment's length it is a single launch.

That reads the elements twice. On `native`, integers are scanned in one launch: by one thread where
two cores at most would share the memory's speed, else so that the second reading finds them in the
cache: a block takes the next segment, reduces it, gets from the block before
what all segments before give, and scans the segment. It waits for that block only so long and then
reduces its segment too, as a core may have been taken from it (Smith, Levien and Owens, "Decoupled
Fallback", 2025). Which block reduces what does not matter to integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba import settings
from sarek_numba.errors import GraphError, InvalidArgument
from sarek_numba.runtime import recorders
from sarek_numba.stdlib.arguments import (
    Array,
    Where,
    accumulator,
    check_array,
    filled,
    room,
    segments,
)
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


def _chained(combine: Callable[[Any, Any], Any], exclusive: bool) -> Any:
    """A scan in one launch of blocks of one thread; `ends` and `ready` have an entry a segment."""

    @sarek.kernel
    def scan_in_a_chain(out: Any, x: Any, ends: Any, ready: Any, start: Any, segment: Any) -> None:
        # what goes through shared memory is known to be the same for the block
        place = sarek.shared.array(1, np.int32)
        before = sarek.shared.array(1, out.dtype)
        if sarek.thread_idx.x == 0:
            place[0] = sarek.atomic.add(ready, 0, 1)
        sarek.barrier()
        taken = place[0]
        first = taken * int(segment)
        last = min(first + int(segment), len(x))
        total = start
        for i in range(first, last):
            total = combine(total, out.dtype.type(x[i]))
        if sarek.thread_idx.x == 0:
            before[0] = start
            k = taken
            patience = _PATIENCE
            while k > 0:
                if sarek.atomic.load(ready, k) != 0:
                    sarek.mem_fence("device")
                    before[0] = combine(ends[k - 1], before[0])
                    break
                patience -= 1
                if patience < 0:
                    k -= 1
                    for i in range(k * int(segment), (k + 1) * int(segment)):
                        before[0] = combine(out.dtype.type(x[i]), before[0])
            ends[taken] = combine(before[0], total)
            sarek.mem_fence("device")
            sarek.atomic.store(ready, taken + 1, 1)
        sarek.barrier()
        running = before[0]
        for i in range(first, last):
            if exclusive:
                out[i] = running
            running = combine(running, out.dtype.type(x[i]))
            if not exclusive:
                out[i] = running

    return scan_in_a_chain


_CHAINED_SEGMENT = 32768  # elements: what a block reads and writes fits into a core's cache
_PATIENCE = 4000  # looks at a block before; some ten microseconds
_KERNELS = {op: _kernels(combine) for op, combine in _OPERATIONS.items()}
_CHAINED = {
    (op, exclusive): _chained(combine, exclusive)
    for op, combine in _OPERATIONS.items()
    for exclusive in (False, True)
}


def inclusive_scan(x: Array, op: str = "sum", *, device: Where = None) -> Array:
    """The reduction of x[0] to x[i] for each i: of shape (n,), like x.

    `op` is "sum", "prod", "min" or "max". Sums and products have NumPy's type for them, as
    `np.cumsum`: int64 or uint64 for integers, but float32 for halves. Integers are exact; sums of
    floats go in segments.
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
        if recorders.gives_vectors():
            raise GraphError(
                f"{name}() is given bools inside a capture\n  hint: view them as uint8"
            )
        return _scanned(name, x.view(np.uint8), op, device).astype(bool)
    exclusive = name == "exclusive_scan"
    dtype = x.dtype if extreme else accumulator(x.dtype)
    out = room(len(x), dtype)
    if not len(x):
        return out
    start = identity(op, dtype)
    if exclusive and op == "sum":
        start = dtype.type(0)
    number, length = segments(len(x))
    if dtype.kind in "iu" and sarek.device(device).record.backend == "native":
        if settings.threads() > 2:
            return _scan_in_a_chain(_CHAINED[op, exclusive], out, x, start)
        number, length = 1, np.uint64(len(x))
    starts = filled(1, start)
    inclusive_kernel, exclusive_kernel = _KERNELS[op]
    if number > 1:
        totals = segment_totals(op, x, start, device)
        first, starts = starts, room(totals.shape, totals.dtype)
        whole = np.uint64(number)
        exclusive_kernel.launch(starts, totals, first, whole, grid=1, block=1, device=device)
    kernel = exclusive_kernel if exclusive else inclusive_kernel
    kernel.launch(out, x, starts, length, grid=number, block=1, device=device)
    return out


def _scan_in_a_chain(kernel: Any, out: Array, x: Array, start: Any) -> Array:
    number = -(-len(x) // _CHAINED_SEGMENT)
    ends = room(number, out.dtype)
    ready = filled(number + 1, 0, np.int32)  # blocks begun, and for each segment whether it ended
    arguments = (out, x, ends, ready, start, np.uint64(_CHAINED_SEGMENT))
    kernel.launch(*arguments, grid=number, block=1, device="native")
    return out
