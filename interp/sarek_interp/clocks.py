"""What fences and atomics order: the state of a launch whose kernel has both.

A *release* is a fence, then an atomic write of the same thread; an *acquire* an atomic read, then a
fence. What a thread did before its fence happens before what another does after its own if the
second's atomic reads what the first's wrote, or what a chain of read-modify-writes made of it. Both
fences must reach: scope "device" between blocks, either scope within one. Atomics alone order
nothing, and neither does a fence alone.

A `Domain` keeps that for one scope: what each thread's last fence released, what its atomics have
read since, and in `Places` what each atomic element carries. `Clocks` holds what threads know, and
answers whether an earlier access happens before what a thread does now.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sarek_interp.growing import Columns, Numbers, Table
from sarek_interp.knowledge import Knowledge
from sarek_interp.order import Order
from sarek_interp.releases import Releases

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Extent:
    """The shape of a launch, by linear numbers. `width` is 0 where no warp barrier is."""

    blocks: int
    threads: int
    width: int = 0

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-self.threads // self.width) if self.width else 0


class Places:
    """What atomic elements carry in one domain: rows of (clock, chain, event)."""

    def __init__(self) -> None:
        self.table = Table(3)


@dataclass(frozen=True, slots=True)
class Update:
    """Atomic accesses of lanes, sorted by element and by the order in which they act.

    `wrote` says which of them write; `overwrites` that they do so without reading.
    """

    keys: Numbers
    lanes: Numbers
    wrote: Flags
    overwrites: bool


class Domain:
    """The releases and acquires of one scope, for the lanes of one chunk."""

    def __init__(self, clocks: Clocks, lanes: int) -> None:
        def nothing() -> Numbers:
            return np.zeros(lanes, np.int64)

        self._clocks = clocks
        self.read = nothing()  # clocks of what atomics have read since the last fence
        # of the last fence: what was known there, when it was, and the barriers before it
        self._known, self._fenced = nothing(), nothing()
        self._block_barrier, self._warp_barrier = nothing(), nothing()
        # where the last fence has been released already: by an update, and by a store
        self._chain, self._event = nothing(), nothing()
        self._stored, self._stored_chain, self._stored_event = nothing(), nothing(), nothing()
        self._last_store = (self._stored, self._stored_chain, self._stored_event)
        self._hint = nothing()  # a chain of whose last event the lane may know

    def fence(self, lanes: Numbers) -> None:
        """Remember what a fence of the lanes releases, once they know what it acquires."""
        clocks = self._clocks
        self._known[lanes] = clocks.known[lanes]
        self._fenced[lanes] = clocks.now
        self._block_barrier[lanes] = clocks.block_barrier[lanes]
        self._warp_barrier[lanes] = clocks.warp_barrier[lanes]
        self._chain[lanes] = self._stored[lanes] = 0

    def update(self, places: Places, u: Update) -> None:
        """Atomics act: they read what their elements carry, and writes change it."""
        begins = np.concatenate([[True], u.keys[1:] != u.keys[:-1]])
        starts = np.flatnonzero(begins)
        rows = places.table.rows(u.keys[starts])
        if u.overwrites:
            places.table.values[:, rows] = self._store(
                u.lanes[np.append(starts[1:], u.keys.size) - 1]
            )
        else:
            self._modify(places, u, rows, np.cumsum(begins) - 1)

    # --- stores -----------------------------------------------------------------------------------

    def _store(self, lanes: Numbers) -> Numbers:
        """What elements carry after a store: the release of its fence, if there was one."""
        fresh = np.unique(lanes[(self._fenced[lanes] != 0) & (self._stored[lanes] == 0)])
        if fresh.size:
            self._release_by_store(fresh)
        return np.stack([column[lanes] for column in self._last_store])

    def _release_by_store(self, lanes: Numbers) -> None:
        """One event for each lane's last fence, on a chain whose last event it knows, or a new one.

        The lane knows its own event, so its next one may follow it.
        """
        clocks, known = self._clocks, self._known[lanes]
        hint = self._hint[lanes]
        last = clocks.last_event(hint)
        follows = (hint != 0) & (clocks.knowledge.event_of(known, hint) == last)
        _, first = np.unique(hint, return_index=True)
        alone = np.zeros(lanes.size, np.bool_)
        alone[first] = True
        follows &= alone
        chains = np.where(follows, hint, 0)
        chains[~follows] = clocks.new_chains(int(np.count_nonzero(~follows)))
        events = clocks.new_events(chains)
        carried = clocks.knowledge.with_event(known, chains, events)
        self._publish(lanes, chains, events)
        self._stored[lanes] = carried
        self._stored_chain[lanes], self._stored_event[lanes] = chains, events
        self._hint[lanes] = chains
        clocks.known[lanes] = clocks.knowledge.joined(clocks.known[lanes], carried)

    # --- loads and read-modify-writes -------------------------------------------------------------

    def _modify(self, places: Places, u: Update, rows: Numbers, segment: Numbers) -> None:
        """Each access reads what the ones before it left; writes add what their fence released."""
        clocks, table = self._clocks, places.table.values
        before, chain, event = table[:, rows]
        lanes = u.lanes
        repeated = (self._chain[lanes] == chain[segment]) & (self._event[lanes] <= event[segment])
        adds = u.wrote & (self._fenced[lanes] != 0) & ~(repeated & (self._chain[lanes] != 0))
        acting = np.flatnonzero(adds)
        left = before[segment]  # what each access leaves behind
        if acting.size:
            of = segment[acting]
            changed = np.unique(of)
            continues = (event[changed] != 0) & (
                clocks.last_event(chain[changed]) == event[changed]
            )
            fresh = changed[~continues]
            chain[fresh] = clocks.new_chains(fresh.size)
            events = clocks.new_events(chain[of])
            states = self._accumulated(before, of, acting, lanes)
            states = clocks.knowledge.with_event(states, chain[of], events)
            self._publish(lanes[acting], chain[of], events)
            self._chain[lanes[acting]], self._event[lanes[acting]] = chain[of], events
            last = np.cumsum(adds) - 1  # the last access up to each that added something
            inside = (last >= 0) & (of[last] == segment)
            left[inside] = states[last[inside]]
            ends = np.append(np.flatnonzero(of[1:] != of[:-1]), of.size - 1)
            table[:, rows[of[ends]]] = states[ends], chain[of[ends]], events[ends]
        carries = np.flatnonzero(left != 0)
        reading = lanes[carries]
        self.read[reading] = clocks.knowledge.joined(self.read[reading], left[carries])
        self._hint[reading] = chain[segment[carries]]

    def _accumulated(
        self, before: Numbers, of: Numbers, acting: Numbers, lanes: Numbers
    ) -> Numbers:
        """What an element carried at first, and what the accesses up to each one have added."""
        knowledge = self._clocks.knowledge
        total = self._known[lanes[acting]]
        begins = np.concatenate([[True], of[1:] != of[:-1]])
        total[begins] = knowledge.joined(before[of[begins]], total[begins])
        starts = np.flatnonzero(begins)
        place = np.arange(of.size) - np.repeat(starts, np.diff(np.append(starts, of.size)))
        if not total[~begins].any():
            alike: Numbers = total[starts][np.cumsum(begins) - 1]
            return alike
        distance, longest = 1, int(place.max())
        while distance <= longest:  # W. D. Hillis and G. L. Steele, with segments
            inside = np.flatnonzero(place >= distance)
            total[inside] = knowledge.joined(total[inside - distance], total[inside])
            distance *= 2
        return total

    def _publish(self, lanes: Numbers, chains: Numbers, events: Numbers) -> None:
        """List releases under the thread, and under its warp and block as far as barriers told."""
        clocks = self._clocks
        extent, thread = clocks.extent, lanes + clocks.first_thread
        clocks.of_threads.add(thread, chains, events, self._fenced[lanes])
        block = thread // extent.threads
        clocks.of_blocks.add(*_firsts(block, chains, events, self._block_barrier[lanes]))
        if extent.width:
            warp = block * extent.warps + thread % extent.threads // extent.width
            clocks.of_warps.add(*_firsts(warp, chains, events, self._warp_barrier[lanes]))


def _firsts(
    publishers: Numbers, chains: Numbers, events: Numbers, times: Numbers
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Of equal publishers, chains and times the first event: who knows a later one knows it too."""
    order = np.lexsort((events, times, chains, publishers))
    order = order[times[order] > 0]
    kept = [column[order] for column in (publishers, chains, times)]
    new = np.zeros(order.size, np.bool_)
    new[:1] = True
    for column in kept:
        new[1:] |= column[1:] != column[:-1]
    order = order[new]
    return publishers[order], chains[order], events[order], times[order]


class Clocks:
    """What the threads of a launch know of each other.

    `now` counts fences and barriers; an access is dated by it. Threads are linear numbers of the
    launch, lanes those of the chunk at hand.
    """

    def __init__(self, extent: Extent, order: Order, has_block_fences: bool) -> None:
        self.extent = extent
        self.order = order
        self.now = 1
        self.knowledge = Knowledge()
        self.of_threads = Releases(extent.blocks * extent.threads)
        self.of_blocks = Releases(extent.blocks)
        self.of_warps = Releases(extent.blocks * extent.warps)
        self._last = Columns(1, first=1)  # of each chain the last event; chain 0 is none
        self._events = 0
        self._has_block_fences = has_block_fences
        self.begin(0, 0)

    def begin(self, first_block: int, lanes: int) -> None:
        """Begin a chunk of blocks."""
        self.first_thread = first_block * self.extent.threads
        self.known = np.zeros(lanes, np.int64)
        self.block_barrier = np.zeros(lanes, np.int64)
        self.warp_barrier = np.zeros(lanes, np.int64)
        self.device = Domain(self, lanes)
        self.block = Domain(self, lanes) if self._has_block_fences else None

    # --- chains and events ------------------------------------------------------------------------

    def last_event(self, chains: Numbers) -> Numbers:
        """The last event of each chain."""
        events: Numbers = self._last[0][chains]
        return events

    def new_chains(self, count: int) -> Numbers:
        chains: Numbers = self._last.append(np.zeros(count, np.int64))
        return chains

    def new_events(self, chains: Numbers) -> Numbers:
        """The next events of chains, in the order given."""
        events = np.arange(self._events + 1, self._events + 1 + chains.size)
        self._events += chains.size
        self._last[0][chains] = events
        return events

    # --- what happens -----------------------------------------------------------------------------

    def fence(self, lanes: Numbers, device: bool) -> None:
        """Lanes know what their atomics have read, and release it with what they did."""
        self.now += 1
        reached = [domain for domain in (self.device if device else None, self.block) if domain]
        for domain in reached:
            acquired = domain.read[lanes]
            if acquired.any():
                self.known[lanes] = self.knowledge.joined(self.known[lanes], acquired)
                domain.read[lanes] = 0
        for domain in reached:
            domain.fence(lanes)

    def barrier(self, lanes: Numbers) -> None:
        """The threads of blocks wait for each other: each knows what any of its block knew."""
        self.now += 1
        self.block_barrier[lanes] = self.warp_barrier[lanes] = self.now
        self._meet(lanes, lanes // self.extent.threads)

    def barrier_of_warps(self, lanes: Numbers) -> None:
        self.now += 1
        self.warp_barrier[lanes] = self.now
        thread = lanes % self.extent.threads
        self._meet(lanes, (lanes - thread) * self.extent.warps + thread // self.extent.width)

    def _meet(self, lanes: Numbers, group: Numbers) -> None:
        if not self.known[lanes].any():
            return
        pairs = np.unique((group << np.int64(32)) | self.known[lanes])
        group_of, rows = pairs >> np.int64(32), pairs & np.int64(0xFFFFFFFF)
        while True:  # halve the clocks of each group until it has one
            begins = np.concatenate([[True], group_of[1:] != group_of[:-1]])
            starts = np.flatnonzero(begins)
            place = np.arange(rows.size) - starts[np.cumsum(begins) - 1]
            if not place.any():
                break
            second = np.flatnonzero(place % 2 == 1)
            rows[second - 1] = self.knowledge.joined(rows[second - 1], rows[second])
            group_of, rows = group_of[place % 2 == 0], rows[place % 2 == 0]
        self.known[lanes] = rows[np.searchsorted(group_of, group)]

    # --- what is ordered --------------------------------------------------------------------------

    def ordered(self, threads: Numbers, times: Numbers, mine: Numbers) -> Flags:
        """Whether accesses of `threads` at `times` happen before what `mine` do now."""
        lanes, size = mine - self.first_thread, self.extent.threads
        together = threads // size == mine // size
        result: Flags = (threads == mine) | (together & (times < self.block_barrier[lanes]))
        width = self.extent.width
        if width:
            in_warp = together & (threads % size // width == mine % size // width)
            result |= in_warp & (times < self.warp_barrier[lanes])
        rest = np.flatnonzero(~result & (self.known[lanes] != 0))
        if rest.size:
            result[rest] = self._told(threads[rest], times[rest], self.known[lanes[rest]])
        return result

    def would_order(self, thread: int, time: int, mine: int) -> bool:
        """Whether a fence would put an earlier access before what `mine` does now."""
        read = self.device.read[mine - self.first_thread]
        rows = [read]
        if self.block is not None and thread // self.extent.threads == mine // self.extent.threads:
            rows.append(self.block.read[mine - self.first_thread])
        one = np.ones(1, np.int64)
        return any(row and self._told(thread * one, time * one, row * one)[0] for row in rows)

    def _told(self, threads: Numbers, times: Numbers, rows: Numbers) -> Flags:
        size, width = self.extent.threads, self.extent.width
        block = threads // size
        publishers = [(self.of_threads, threads), (self.of_blocks, block)]
        if width:
            publishers.append((self.of_warps, block * self.extent.warps + threads % size // width))
        told: Flags = np.zeros(threads.size, np.bool_)
        for releases, publisher in publishers:
            asking = np.flatnonzero(~told)
            told[asking] = releases.known(
                self.knowledge, publisher[asking], times[asking], rows[asking]
            )
        return told
