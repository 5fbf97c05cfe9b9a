"""The shadow of memory in a kernel with atomics and fences: exact, by vector clocks.

Of each granule it keeps the last plain read, plain write and atomic access, each with thread, date
and site, and aside those of other threads that do not happen before it. A new access races with any
of them that `Clocks` does not order before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sarek_interp.clocks import Clocks, Domain, Places, Update
from sarek_interp.growing import Numbers, Table
from sarek_interp.order import MANY, Stamps
from sarek_interp.races import Conflict, Lanes, Positions, Sites


class _Racing(NamedTuple):
    """Lanes, and for each of them an access that it races with."""

    lanes: Lanes
    threads: Numbers
    times: Numbers
    sites: npt.NDArray[Any]


class _Track:
    """The accesses of one kind that a later one may race with."""

    def __init__(self, kind: str, granules: int, clocks: Clocks) -> None:
        self._kind = kind
        self._clocks = clocks
        self.threads: Numbers = np.zeros(granules, np.int64)  # the last one's number + 1; 0 is none
        self._times = np.zeros(granules, np.int64)
        self._sites: Sites = np.zeros(granules, np.int32)
        self._aside = Table(2)  # (granule, thread) → time and site

    def conflict(self, where: Positions, mine: Numbers) -> Conflict | None:
        """For each lane at most one recorded access by another thread that races with it."""
        seen, times = self.threads[where] - 1, self._times[where]
        racing = self._unordered(seen, times, mine)
        found = [_Racing(racing, seen[racing], times[racing], self._sites[where][racing])]
        if self._aside.keys.size:
            found.append(self._conflict_aside(where, mine, racing))
        lanes, threads, times, sites = (np.concatenate(part) for part in zip(*found, strict=True))
        if not lanes.size:
            return None
        order = np.argsort(lanes, kind="stable")
        stamps = _stamps(threads[order], self._clocks)
        return Conflict(self._kind, lanes[order], stamps, sites[order], times[order])

    def _conflict_aside(self, where: Positions, mine: Numbers, racing: Lanes) -> _Racing:
        """As `conflict`, of the accesses kept aside, for lanes that race with no last one."""
        all_threads = self._all_threads
        rest = np.ones(mine.size, np.bool_)
        rest[racing] = False
        lanes = np.flatnonzero(rest)
        low = _numbers(where)[lanes] * all_threads
        which, at = self._aside.between(low, low + all_threads)
        threads = self._aside.keys[at] % all_threads
        times, sites = self._aside.values[:, at]
        lanes = lanes[which]
        bad = self._unordered(threads, times, mine[lanes])
        lanes, first = np.unique(lanes[bad], return_index=True)
        bad = bad[first]
        return _Racing(lanes, threads[bad], times[bad], sites[bad])

    def record(self, where: Positions, mine: Numbers, site: int) -> tuple[Lanes, Numbers] | None:
        """Remember accesses.

        Where several lanes share a granule: the lanes but for one of each granule, and for every
        lane the thread of that one.
        """
        seen, times = self.threads[where] - 1, self._times[where]
        kept = self._unordered(seen, times, mine)
        if kept.size:
            self._put_aside(
                _numbers(where)[kept], seen[kept], times[kept], self._sites[where][kept]
            )
        self.threads[where] = mine + 1
        self._times[where] = self._clocks.now
        self._sites[where] = site
        if isinstance(where, slice):
            return None
        standing = self.threads[where] - 1
        lanes = np.flatnonzero(standing != mine)
        if not lanes.size:
            return None
        now = np.full(lanes.size, self._clocks.now)
        self._put_aside(where[lanes], mine[lanes], now, np.full(lanes.size, site))
        return lanes, standing

    def record_exclusive(self, where: Positions, mine: Numbers, site: int) -> Conflict | None:
        """As `record`; the lanes that share a granule conflict with the one that stays."""
        shared = self.record(where, mine, site)
        if shared is None:
            return None
        lanes, standing = shared
        stamps = _stamps(standing[lanes], self._clocks)
        now = np.full(lanes.size, self._clocks.now)
        return Conflict(self._kind, lanes, stamps, self._sites[where][lanes], now)

    def _unordered(self, threads: Numbers, times: Numbers, mine: Numbers) -> Lanes:
        """Positions of accesses, thread -1 for none, that do not happen before what mine do."""
        others = np.flatnonzero((threads >= 0) & (threads != mine))
        if not others.size:
            return others
        ordered = self._clocks.ordered(threads[others], times[others], mine[others])
        return others[~ordered]

    @property
    def _all_threads(self) -> int:
        return self._clocks.extent.blocks * self._clocks.extent.threads

    def _put_aside(self, granules: Numbers, threads: Numbers, times: Numbers, sites: Any) -> None:
        rows = self._aside.rows(granules * self._all_threads + threads)
        self._aside.values[:, rows] = times, sites


class ClockShadow:
    """The shadow of some memory; its methods are those of `races.Shadow`."""

    def __init__(self, granules: int, crosses_blocks: bool, clocks: Clocks) -> None:
        self._granules = granules
        self._crosses_blocks = crosses_blocks
        self._clocks = clocks
        self._writes = _Track("writes", granules, clocks)
        self._reads = _Track("reads", granules, clocks)
        self._updates: _Track | None = None
        self._device, self._block = Places(), Places()

    def read(self, where: Positions, mine: Stamps, site: int) -> list[Conflict]:
        """Record a plain read; gives what it conflicts with."""
        threads = self._threads(mine)
        conflicts = self._against(where, threads, self._writes, self._updates)
        self._reads.record(where, threads, site)
        return conflicts

    def before_write(
        self, where: Positions, mine: Stamps
    ) -> tuple[list[Conflict], Conflict | None]:
        """What a plain write conflicts with, and the writes it conflicts with unless bits agree."""
        threads = self._threads(mine)
        conflicts = self._against(where, threads, self._reads, self._updates)
        return conflicts, self._writes.conflict(where, threads)

    def write(self, where: Positions, mine: Stamps, site: int) -> Conflict | None:
        """Record a plain write; gives lanes that write where another lane of it writes too."""
        for places in (self._device, self._block):
            if places.table.keys.size:
                self._overwrite(places, where)
        return self._writes.record_exclusive(where, self._threads(mine), site)

    def _overwrite(self, places: Places, where: Positions) -> None:
        """What an atomic wrote there is gone, and what it carried with it."""
        per_granule = self._clocks.extent.blocks if places is self._block else 1
        if isinstance(where, slice):
            low = np.array([where.start * per_granule])
            high = np.array([where.stop * per_granule])
        else:
            low = where * per_granule
            high = low + per_granule
        _, rows = places.table.between(low, high)
        places.table.values[:, rows] = 0

    def update(self, where: Positions, mine: Stamps, site: int) -> list[Conflict]:
        """Record an atomic access; gives the plain accesses that it conflicts with."""
        threads = self._threads(mine)
        if self._updates is None:
            self._updates = _Track("updates atomically", self._granules, self._clocks)
        conflicts = self._against(where, threads, self._reads, self._writes)
        self._updates.record(where, threads, site)
        return conflicts

    def unwritten(self, where: Positions) -> npt.NDArray[np.bool_]:
        """Granules that nothing has written."""
        never: npt.NDArray[np.bool_] = self._writes.threads[where] == 0
        if self._updates is not None:
            never &= self._updates.threads[where] == 0
        return never

    def synchronise(self, u: Update) -> None:
        """Atomic accesses, sorted by their first granule, carry what fences release."""
        block = self._clocks.block
        if not self._crosses_blocks:
            (block or self._clocks.device).update(self._device, u)
            return
        self._clocks.device.update(self._device, u)
        if block is not None:
            self._within_blocks(block, u)

    def _within_blocks(self, domain: Domain, u: Update) -> None:
        """As for the whole device, for each element once for each block: keys name both."""
        extent = self._clocks.extent
        of_lane = (u.lanes + self._clocks.first_thread) // extent.threads
        keys = u.keys * extent.blocks + of_lane
        if u.overwrites:
            last = np.append(np.flatnonzero(u.keys[1:] != u.keys[:-1]), u.keys.size - 1)
            low = u.keys[last] * extent.blocks
            _, erased = self._block.table.between(low, low + extent.blocks)
            self._block.table.values[:, erased] = 0
            update = Update(keys[last], u.lanes[last], u.wrote[last], u.overwrites)
        else:
            order = np.argsort(keys, kind="stable")
            update = Update(keys[order], u.lanes[order], u.wrote[order], u.overwrites)
        domain.update(self._block, update)

    def _threads(self, stamps: Stamps) -> Numbers:
        block = (stamps >> self._clocks.order.block_shift) - 1
        threads: Numbers = block * self._clocks.extent.threads + (stamps & MANY)
        return threads

    @staticmethod
    def _against(where: Positions, mine: Numbers, *tracks: _Track | None) -> list[Conflict]:
        found = [track.conflict(where, mine) for track in tracks if track is not None]
        return [conflict for conflict in found if conflict is not None]


def _stamps(threads: Numbers, clocks: Clocks) -> Stamps:
    size = clocks.extent.threads
    return clocks.order.stamps_of(threads // size, threads % size)


def _numbers(where: Positions) -> Numbers:
    return np.arange(where.start, where.stop) if isinstance(where, slice) else where
