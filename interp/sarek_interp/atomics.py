"""Atomic operations of many lanes at once, as if each lane's came after another's.

Lanes act in the order of their block, as the seed permuted it, then of their thread. Operations on
one element form a segment of that order. Associative ones are a segmented scan; float sums, which
round at each step, are added one by one; a compare-and-swap goes from one success to the next; a
counter that wraps runs round a circle where its lanes wrap at one value, else step by step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sarek_interp.machine import Lanes, Machine, Selection
from sarek_interp.memory import Storage
from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import AtomicOp, BinOp
from sarek_numba.ir.types import Scalar

Combine = Callable[[Lanes, Lanes], Lanes]

_INTEGER: dict[AtomicOp, BinOp] = {
    AtomicOp.AND: BinOp.BITAND,
    AtomicOp.OR: BinOp.BITOR,
    AtomicOp.XOR: BinOp.BITXOR,
}
_ADD = np.add
_FEW_ROUNDS = 16


def update(
    m: Machine,
    storage: Storage,
    op: AtomicOp,
    where: Lanes,
    lanes: Selection | None,
    value: Lanes | None,
    compare: Lanes | None,
) -> Lanes:
    """Apply the operation to `where`, one element for each of `lanes`; gives the old values."""
    elements = storage.elements
    if op is AtomicOp.LOAD:
        return elements[where]
    assert value is not None
    if not where.size:  # every lane is out of bounds, which is reported elsewhere
        return elements[where]
    order = np.argsort(where * m.chunk.lanes + m.of_lanes(m.chunk.rank, lanes))
    where, value = where[order], value[order]
    starts = np.flatnonzero(np.concatenate([[True], where[1:] != where[:-1]]))
    first = elements[where[starts]]
    if op is AtomicOp.CAS:
        assert compare is not None
        old, last = _swap(first, value, compare[order], starts)
    elif op in (AtomicOp.INC, AtomicOp.DEC):
        old, last = _count(op, first, value, starts)
    elif storage.scalar.is_float and op in (AtomicOp.ADD, AtomicOp.SUB):
        terms = -value if op is AtomicOp.SUB else value
        old, last = _sum(first, terms, starts)
    else:
        if op is AtomicOp.SUB:
            op, value = AtomicOp.ADD, np.negative(value)
        old, last = _scan(first, value, starts, _combine(op, storage.scalar))
    if m.chunk.watchers and last.tobytes() != first.tobytes():
        m.chunk.changes += 1
    elements[where[starts]] = last
    result = np.empty_like(old)
    result[order] = old
    return result


def _combine(op: AtomicOp, scalar: Scalar) -> Combine:
    match op:
        case AtomicOp.STORE | AtomicOp.EXCH:
            return lambda old, new: new
        case AtomicOp.MIN:
            return semantics.intrinsic("fmin", scalar)
        case AtomicOp.MAX:
            return semantics.intrinsic("fmax", scalar)
        case AtomicOp.ADD:
            return _ADD
        case _:
            return semantics.binary(_INTEGER[op], scalar)


def _ends(starts: Lanes, count: int) -> Lanes:
    return np.append(starts[1:], count) - 1


def _scan(first: Lanes, value: Lanes, starts: Lanes, combine: Combine) -> tuple[Lanes, Lanes]:
    """Old value of each lane and last value of each segment, for an associative operation."""
    count = value.size
    lengths = np.diff(np.append(starts, count))
    if combine is _ADD and value.dtype.kind != "f":
        sums = np.cumsum(value, dtype=value.dtype)  # modulo 2^n, so segments can be subtracted
        total = sums + np.repeat(first - sums[starts] + value[starts], lengths)
        return total - value, total[_ends(starts, count)]
    place = np.arange(count) - np.repeat(starts, lengths)
    total = value.copy()
    total[starts] = combine(first, value[starts])
    distance = 1
    longest = int(place.max())
    while distance <= longest:  # W. D. Hillis and G. L. Steele, with segments
        inside = np.flatnonzero(place >= distance)
        total[inside] = combine(total[inside - distance], total[inside])
        distance *= 2
    old = np.empty_like(total)
    old[1:] = total[:-1]
    old[starts] = first
    return old, total[_ends(starts, count)]


def _sum(first: Lanes, terms: Lanes, starts: Lanes) -> tuple[Lanes, Lanes]:
    """As `_scan` for float addition, each sum rounded before the next."""
    lengths = np.diff(np.append(starts, terms.size))
    old = np.empty_like(terms)
    last = first.copy()
    longest = int(lengths.max())
    rounds = longest if longest <= _FEW_ROUNDS else 0
    for step in range(rounds):
        live = np.flatnonzero(lengths > step)
        old[starts[live] + step] = last[live]
        last[live] = last[live] + terms[starts[live] + step]
    if rounds:
        return old, last
    for segment, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        chain = np.concatenate([first[segment : segment + 1], terms[start : start + length]])
        sums = np.add.accumulate(chain)
        old[start : start + length] = sums[:-1]
        last[segment] = sums[-1]
    return old, last


def _count(op: AtomicOp, first: Lanes, wrap: Lanes, starts: Lanes) -> tuple[Lanes, Lanes]:
    """As `_scan` for counters that wrap."""
    step = semantics.increment if op is AtomicOp.INC else semantics.decrement
    lengths = np.diff(np.append(starts, wrap.size))
    if np.array_equal(wrap, np.repeat(wrap[starts], lengths)):
        old = _circle(op, first, wrap, starts, lengths)
        ends = _ends(starts, wrap.size)
        return old, step(old[ends], wrap[ends])
    old = np.empty_like(wrap)
    last = first.copy()
    for count in range(int(lengths.max())):
        live = np.flatnonzero(lengths > count)
        old[starts[live] + count] = last[live]
        last[live] = step(last[live], wrap[starts[live] + count])
    return old, last


def _circle(op: AtomicOp, first: Lanes, wrap: Lanes, starts: Lanes, lengths: Lanes) -> Lanes:
    """Old values where all lanes of a segment wrap at one value, so they go round 0 … wrap.

    `dec` is `inc` seen from the other end: with y = wrap - x it takes y to y + 1 and wrap to 0. A
    start outside of the circle steps onto it as its last place does.
    """
    top = wrap.astype(np.uint64) & np.uint64(2 ** (wrap.itemsize * 8) - 1)
    start = np.repeat(first, lengths).astype(np.uint64) & np.uint64(2 ** (wrap.itemsize * 8) - 1)
    taken = (np.arange(wrap.size) - np.repeat(starts, lengths)).astype(np.uint64)
    outside = start > top
    place = np.where(outside, top, start if op is AtomicOp.INC else top - start)
    room = top - place  # steps before the first wrap
    circumference = np.where(top == np.iinfo(np.uint64).max, top, top + np.uint64(1))
    wrapped = (taken - room - np.uint64(1)) % circumference
    place = np.where(taken <= room, place + taken, wrapped)
    value = place if op is AtomicOp.INC else top - place
    return np.where(outside & (taken == 0), start, value).astype(wrap.dtype)


def bits(values: Lanes) -> Lanes:
    """The bits of numbers, as unsigned integers."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def identity(values: Lanes) -> Lanes:
    """What compare-and-swap compares: the bits, which are the same for every NaN."""
    if values.dtype.kind != "f":
        return bits(values)
    return bits(np.where(np.isnan(values), values.dtype.type(np.nan), values))


def _swap(first: Lanes, value: Lanes, compare: Lanes, starts: Lanes) -> tuple[Lanes, Lanes]:
    """As `_scan` for compare-and-swap: lanes between two successes see one value."""
    count = value.size
    lengths = np.diff(np.append(starts, count))
    segment = np.repeat(np.arange(starts.size), lengths)
    position = np.arange(count)
    current = first.copy()
    reached = starts.copy()  # the first lane of each segment that has not acted yet
    old = np.empty_like(value)
    wanted, given = identity(compare), bits(value)
    while True:
        waiting = position >= reached[segment]
        old[waiting] = current[segment[waiting]]
        succeeds = waiting & (wanted == identity(current)[segment])
        succeeds &= given != bits(current)[segment]
        candidates = np.flatnonzero(succeeds)
        if not candidates.size:
            return old, current
        winners = candidates[np.concatenate([[True], np.diff(segment[candidates]) != 0])]
        current[segment[winners]] = value[winners]
        reached[segment[winners]] = winners + 1
