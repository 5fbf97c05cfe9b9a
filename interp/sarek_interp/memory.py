"""Arrays as the oracle sees them: checked, traced accesses of many lanes at once.

A `Storage` is one array: elements in a flat NumPy array, owned by the launch, by each block or by
each thread. An access names elements by flat index; lanes whose index is outside are reported and
take no part, so real memory is safe. What is read there is 0.

Bound buffers that overlap share one `Shadow`, addressed in granules of their real memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_interp import races
from sarek_interp.clock_shadow import ClockShadow
from sarek_interp.clocks import Clocks
from sarek_interp.machine import Lanes, Machine, Mask, Selection
from sarek_interp.order import Order
from sarek_interp.races import Conflict, Shadow
from sarek_interp.views import ColumnView, RecordView, Subscripts, View
from sarek_numba.errors import DataRace, OutOfBounds, UninitialisedRead
from sarek_numba.ir.types import MemSpace, Scalar

Bytes = npt.NDArray[np.uint8]
_CONTIGUOUS_FROM = 8
_RACE_HINT = (
    "put a barrier between the two, or use sarek.atomic where threads must share an element"
)
_ACQUIRE_HINT = (
    "an atomic of this thread has read what the other thread's wrote: put "
    'sarek.mem_fence(scope="{}") behind it'
)
_HANDOVER_HINT = (
    'to hand over between blocks: one thread writes, sarek.mem_fence(scope="device"), an atomic '
    'write; the other an atomic that reads it, sarek.mem_fence(scope="device")'
)
_PLURAL = {"reads": "read", "writes": "write", "updates atomically": "update atomically"}
_ATOMIC_HINT = "use sarek.atomic.load or sarek.atomic.store for the plain access"


@dataclass(slots=True)
class Tracing:
    """Where an array lies in a shadow: element e begins at granule base + e * granules."""

    shadow: Shadow | ClockShadow
    base: int
    granules: int


class Storage:
    """One array. `pitch` is the distance in elements from one owner's part to the next."""

    def __init__(
        self,
        name: str,
        scalar: Scalar,
        space: MemSpace,
        data: Lanes,
        length: int,
        pitch: int = 0,
        tracing: Tracing | None = None,
        view: View | RecordView | ColumnView | None = None,
        pairs: bool = False,
    ) -> None:
        self.name = name
        self.scalar = scalar
        self.space = space
        self.length = length
        self._data = data.view(np.uint8) if scalar is Scalar.BOOL else data
        self._pitch = pitch
        self.tracing = tracing
        self._view = view
        self._pairs = pairs
        self._written = np.zeros(data.size, np.bool_) if space is MemSpace.LOCAL else None

    @property
    def address(self) -> int:
        """Where the array lies in the memory of this process."""
        address: int = self._data.__array_interface__["data"][0]
        return address

    # --- the accesses -----------------------------------------------------------------------------

    def read(self, m: Machine, index: Lanes, bad: Mask | None, site: int) -> Lanes:
        """The elements that live lanes name; one element alone where all name the same."""
        if index.size == 1 and self.tracing is None and self._pitch == 0 and bad is None:
            single = int(index[0])
            if 0 <= single < self.length:
                return self._take(np.array([single]))
        where, lanes = self._locate(m, index, bad, site)
        found = self._take(where)
        if self._written is not None:
            self._check_initialised(m, ~self._written[where], lanes, where, site)
        if self.tracing is not None:
            self._trace_read(m, where, lanes, found, site)
        if index.size == 1 and self._pitch == 0 and bad is None and found.size:
            return found[:1]
        return self._spread(m, found, lanes)

    def write(self, m: Machine, index: Lanes, bad: Mask | None, values: Lanes, site: int) -> None:
        """Store to the elements that live lanes name; of several lanes the last one wins."""
        where, lanes = self._locate(m, index, bad, site)
        stored = self._of_lanes(m, values, lanes)
        if self.scalar is Scalar.BOOL:
            stored = stored.astype(np.uint8)
        if m.chunk.watchers and not _same_bits(self._data[where], stored).all():
            m.chunk.changes += 1
        if self._written is not None:
            self._written[where] = True
        if self.tracing is None:
            self._data[where] = stored
        else:
            self._traced_write(m, where, lanes, stored, site)

    def locate_atomic(
        self, m: Machine, index: Lanes, bad: Mask | None, site: int, reads: bool
    ) -> tuple[Lanes, Selection | None]:
        """Elements and lanes of an atomic access, which is checked and recorded here."""
        where, lanes = self._locate(m, index, bad, site, slices=False)
        assert not isinstance(where, slice)
        tracing = self.tracing
        if tracing is None:
            return where, lanes
        granules = _granules(where, tracing)
        if reads and self.space is MemSpace.SHARED:
            unwritten = _per_element(tracing.shadow.unwritten(granules), tracing)
            self._check_initialised(m, unwritten, lanes, where, site)
        mine = _repeated(m.of_lanes(m.chunk.stamps, lanes), tracing)
        for conflict in tracing.shadow.update(granules, mine, site):
            self._report_race(m, "updates atomically", conflict, where, lanes, None, site)
        return where, lanes

    @property
    def elements(self) -> Lanes:
        """The flat elements themselves, for atomics."""
        return self._data

    def forget(self, m: Machine) -> None:
        """Make a local array uninitialised again for the live lanes: its scope begins anew."""
        assert self._written is not None
        lanes = m.chunk_lanes(m.selected())
        rows = self._written.reshape(-1, self._pitch) if self._pitch else self._written
        rows[slice(None) if lanes is None else lanes] = False

    # --- from index to element --------------------------------------------------------------------

    def _locate(
        self, m: Machine, index: Lanes, bad: Mask | None, site: int, slices: bool = True
    ) -> tuple[Any, Selection | None]:
        """Positions of elements, a slice where they are consecutive, and their frame lanes.

        Lanes None stands for every lane of the frame.
        """
        lanes = m.selected()
        if bad is not None:
            good = np.broadcast_to(~bad, m.size)
            lanes = np.flatnonzero(good) if lanes is None else lanes[good[lanes]]
        chosen = self._of_lanes(m, index, lanes)
        if chosen.size == 0:
            return chosen.astype(np.int64), lanes
        low, high = int(chosen.min()), int(chosen.max())
        if low < 0 or high >= self.length:
            inside = (chosen >= 0) & (chosen < self.length)
            lanes = np.arange(m.size) if lanes is None else lanes
            self._report_outside(m, chosen[~inside], lanes[~inside], site)
            lanes, chosen = lanes[inside], chosen[inside]
            if chosen.size == 0:
                return chosen.astype(np.int64), lanes
        where = chosen.astype(np.int64)
        if self._pitch:
            of_chunk = m.chunk.block if self.space is MemSpace.SHARED else _lane_numbers(m)
            where = where + m.of_lanes(of_chunk, lanes) * self._pitch
        count = where.size
        if slices and count >= _CONTIGUOUS_FROM and _consecutive(where):
            return slice(int(where[0]), int(where[-1]) + 1), lanes
        return where, lanes

    def _of_lanes(self, m: Machine, values: Lanes, lanes: Selection | None) -> Lanes:
        if values.size == m.size:
            return values if lanes is None else values[lanes]
        return np.broadcast_to(values, m.size if lanes is None else lanes.size)

    def _take(self, where: Any) -> Lanes:
        found: Lanes = self._data[where]
        if self.scalar is Scalar.BOOL:
            truth: Lanes = found != 0
            return truth
        return found.copy() if isinstance(where, slice) else found

    def _spread(self, m: Machine, found: Lanes, lanes: Selection | None) -> Lanes:
        if lanes is None:
            return found
        spread = np.zeros(m.size, found.dtype)
        spread[lanes] = found
        return spread

    # --- tracing ----------------------------------------------------------------------------------

    def _trace_read(
        self, m: Machine, where: Any, lanes: Selection | None, found: Lanes, site: int
    ) -> None:
        tracing = self.tracing
        assert tracing is not None
        granules = _granules(where, tracing)
        if self.space is MemSpace.SHARED:
            unwritten = tracing.shadow.unwritten(granules)
            if unwritten.any():
                unwritten = _per_element(unwritten, tracing)
                self._check_initialised(m, unwritten, lanes, where, site)
        mine = _repeated(m.of_lanes(m.chunk.stamps, lanes), tracing)
        for conflict in tracing.shadow.read(granules, mine, site):
            self._report_race(m, "reads", conflict, where, lanes, found, site)

    def _traced_write(
        self, m: Machine, where: Any, lanes: Selection | None, stored: Lanes, site: int
    ) -> None:
        tracing = self.tracing
        assert tracing is not None
        granules = _granules(where, tracing)
        mine = _repeated(m.of_lanes(m.chunk.stamps, lanes), tracing)
        conflicts, writers = tracing.shadow.before_write(granules, mine)
        if writers is not None:
            conflicts += self._differing(m, writers, where, stored)
        self._data[where] = stored
        writers = tracing.shadow.write(granules, mine, site)
        if writers is not None:
            conflicts += self._differing(m, writers, where, stored)
        for conflict in conflicts:
            self._report_race(m, "writes", conflict, where, lanes, stored, site)

    def _differing(
        self, m: Machine, writers: Conflict, where: Any, stored: Lanes
    ) -> list[Conflict]:
        """The conflicts between writes that matter: all, or those of different bits."""
        if m.chunk.launch.strict_races:
            return [writers]
        tracing = self.tracing
        assert tracing is not None
        there, ours = self._data[where], stored
        equal = _same_bits(there, ours, tracing.granules)[writers.lanes]
        return [] if equal.all() else [writers.only(~equal)]

    # --- reports ----------------------------------------------------------------------------------

    def _report_outside(self, m: Machine, indices: Lanes, lanes: Selection, site: int) -> None:
        def explain() -> dict[str, Any]:
            of_element = 2 if self._is_paired(m, site) else 1
            index = int(indices[0]) // of_element
            return {
                "message": f"element {index} is outside '{self.name}', "
                f"which has {self.length // of_element} elements",
                "array": self.name,
                "index": index,
            }

        m.report(OutOfBounds, site, lanes, explain)

    def _check_initialised(
        self, m: Machine, unwritten: Mask, lanes: Selection | None, where: Any, site: int
    ) -> None:
        if not unwritten.any():
            return
        which = np.flatnonzero(unwritten)

        def explain() -> dict[str, Any]:
            index, element = self._named(where, int(which[0]), self._is_paired(m, site))
            return {
                "message": f"{element} in {self.space.value} memory is read before "
                "anything was written there",
                "array": self.name,
                "index": index,
            }

        m.report(UninitialisedRead, site, which if lanes is None else lanes[which], explain)

    def _is_paired(self, m: Machine, site: int) -> bool:
        """Whether the user's elements are pairs of this array's."""
        return self._pairs or m.chunk.launch.sites[site].part is not None

    def _named(self, where: Any, position: int, paired: bool) -> tuple[Subscripts, str]:
        """The subscripts of an element as the user writes them, and the element in words."""
        element = where.start + position if isinstance(where, slice) else int(where[position])
        if self._pitch:
            element %= self._pitch
        element //= 1 + paired
        if self._view is None:
            return element, f"'{self.name}[{element}]'"
        index, words = self._view.named(self.name, element)
        return index, f"'{words}'"

    def _report_race(
        self,
        m: Machine,
        verb: str,
        conflict: Conflict,
        where: Any,
        lanes: Selection | None,
        values: Lanes | None,
        site: int,
    ) -> None:
        tracing = self.tracing
        assert tracing is not None
        which = conflict.lanes // tracing.granules
        frame_lanes = which if lanes is None else lanes[which]
        launch = m.chunk.launch
        atomic = "atomically" in verb + conflict.kind

        def explain(n: int) -> dict[str, Any]:
            position = int(which[n])
            index, element = self._named(where, position, self._is_paired(m, site))
            others, other = _describe(m, int(conflict.stamps[n]))
            return {
                "message": f"data race: this thread {_done(verb, element)}, and {other} "
                f"{_done(_PLURAL[conflict.kind] if others else conflict.kind, 'it')}; "
                "nothing orders the two",
                "array": self.name,
                "index": index,
                "values": () if values is None else (("value", values[position].item()),),
                "note": (launch.sites[int(conflict.sites[n])].span, "the other access"),
                "hint": _ATOMIC_HINT if atomic else _hint(m, conflict, n, int(frame_lanes[n])),
            }

        for other in np.unique(conflict.sites).tolist():
            part = np.flatnonzero(conflict.sites == other)
            met = launch.sites[other].first
            m.report(DataRace, site, frame_lanes[part], partial(explain, int(part[0])), met)


def _hint(m: Machine, conflict: Conflict, n: int, frame_lane: int) -> str:
    """What would order a race between plain accesses."""
    clocks = m.chunk.launch.clocks
    if clocks is None or conflict.times is None:
        return _RACE_HINT
    block, thread = races.thread_of(m.chunk.launch.order, int(conflict.stamps[n]))
    assert block is not None
    assert thread is not None
    other = block * clocks.extent.threads + thread
    mine = frame_lane if m.lanes is None else int(m.lanes[frame_lane])
    mine += clocks.first_thread
    together = block == mine // clocks.extent.threads
    if clocks.would_order(other, int(conflict.times[n]), mine):
        return _ACQUIRE_HINT.format("block" if together else "device")
    return _RACE_HINT if together else _HANDOVER_HINT


def _done(verb: str, what: str) -> str:
    verb, atomically, _ = verb.partition(" atomically")
    return f"{verb} {what}{atomically}"


def _describe(m: Machine, stamp: int) -> tuple[bool, str]:
    """Whether a stamp stands for several threads, and whom it names."""
    block, thread = races.thread_of(m.chunk.launch.order, stamp)
    launch = m.chunk.launch
    if block is None:
        return True, "threads of several blocks"
    if thread is None:
        return True, f"several threads of block {launch.block_at(block)}"
    return False, f"thread {launch.thread_at(thread)} of block {launch.block_at(block)}"


def _consecutive(where: Lanes) -> bool:
    ends = where[-1] - where[0] == where.size - 1
    return bool(ends and (where[1:] - where[:-1] == 1).all())


def _lane_numbers(m: Machine) -> Lanes:
    return np.arange(m.chunk.lanes)


def _granules(where: Any, tracing: Tracing) -> Any:
    each, base = tracing.granules, tracing.base
    if isinstance(where, slice):
        return slice(base + where.start * each, base + where.stop * each)
    if each == 1:
        return where + base if base else where
    return (base + where[:, None] * each + np.arange(each)).ravel()


def _repeated(stamps: Lanes, tracing: Tracing) -> Lanes:
    return stamps if tracing.granules == 1 else np.repeat(stamps, tracing.granules)


def _per_element(of_granules: Mask, tracing: Tracing) -> Mask:
    return np.asarray(of_granules.reshape(-1, tracing.granules).any(axis=1))


def _same_bits(a: Lanes, b: Lanes, granules: int = 1) -> Mask:
    """Where the bits of two arrays agree, for each granule of each element."""
    size = a.dtype.itemsize // granules
    bits = [np.ascontiguousarray(x).view(np.uint8).reshape(-1, size) for x in (a, b)]
    return np.asarray((bits[0] == bits[1]).all(axis=1))


# --- binding --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Binding:
    """An array parameter of a launch: its real memory, and whether accesses to it are traced."""

    name: str
    scalar: Scalar
    memory: Bytes
    traced: bool
    view: View | RecordView | ColumnView | None = None
    pairs: bool = False


def global_storages(
    bindings: Sequence[Binding], order: Order, clocks: Clocks | None = None
) -> list[Storage]:
    """The storage of each binding; those that overlap share a shadow if any of them is traced."""
    storages: list[Storage | None] = [None] * len(bindings)
    for group in _overlapping(bindings):
        start = min(_address(bindings[i]) for i in group)
        end = max(_address(bindings[i]) + bindings[i].memory.size for i in group)
        unit = math.gcd(
            *(bindings[i].scalar.bits // 8 for i in group),
            *(_address(bindings[i]) - start for i in group),
        )
        traced = any(bindings[i].traced for i in group)
        granules = -(-(end - start) // unit)
        shadow = new_shadow(granules, True, order, clocks) if traced else None
        for i in group:
            binding = bindings[i]
            width = binding.scalar.bits // 8
            length = binding.memory.size // width
            data = binding.memory[: length * width].view(binding.scalar.value)
            tracing = None
            if shadow is not None:
                tracing = Tracing(shadow, (_address(binding) - start) // unit, width // unit)
            storages[i] = Storage(
                binding.name,
                binding.scalar,
                MemSpace.GLOBAL,
                data,
                length,
                tracing=tracing,
                view=binding.view,
                pairs=binding.pairs,
            )
    return [storage for storage in storages if storage is not None]


def new_shadow(
    granules: int, crosses_blocks: bool, order: Order, clocks: Clocks | None
) -> Shadow | ClockShadow:
    if clocks is None:
        return Shadow(granules, crosses_blocks, order)
    return ClockShadow(granules, crosses_blocks, clocks)


def _address(binding: Binding) -> int:
    address: int = binding.memory.__array_interface__["data"][0]
    return address


def _overlapping(bindings: Sequence[Binding]) -> list[list[int]]:
    """Groups of bindings whose memory is connected by overlaps."""
    groups: list[list[int]] = []
    end = 0
    for i in sorted(range(len(bindings)), key=lambda i: _address(bindings[i])):
        start = _address(bindings[i])
        if not groups or start >= end:
            groups.append([])
        groups[-1].append(i)
        end = max(end, start + bindings[i].memory.size)
    return groups
