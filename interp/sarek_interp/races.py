"""Which accesses race: shadow memory with one word for each granule of real memory.

Two accesses by different threads are ordered if they are in one block and a barrier of the block,
or of the warp of both, lies between them: `order` says so of two stamps. Nothing orders threads of
different blocks. For each granule the shadow keeps the last unordered writers, readers and atomic
updates, each as the stamp of one thread, of several threads of one block, or of threads of several
blocks (`EVERYWHERE`), and the site in the program of the last of them.

A granule is the largest unit that no two accesses share only in part, so that overlapping arrays of
different element types are compared by address and not by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sarek_interp.order import BARRIERS, MANY, Order, Stamps

Sites = npt.NDArray[np.int32]
Lanes = npt.NDArray[np.intp]
Positions = npt.NDArray[np.int64] | slice

EVERYWHERE = np.int64((1 << 63) - 1)


def thread_of(order: Order, stamp: int) -> tuple[int | None, int | None]:
    """Block and thread of a stamp, each None where there are several."""
    return (None, None) if stamp == int(EVERYWHERE) else order.thread_of(stamp)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Earlier accesses that nothing orders before some lanes of this one.

    `kind` is what the earlier ones did: "reads", "writes" or "updates atomically". `lanes` are
    positions within this access; stamps and sites are those of the earlier accesses.
    """

    kind: str
    lanes: Lanes
    stamps: Stamps
    sites: Sites
    times: Stamps | None = None  # when they were, where clocks date them

    def only(self, chosen: npt.NDArray[np.bool_]) -> Conflict:
        """The part of the conflict for chosen lanes."""
        times = None if self.times is None else self.times[chosen]
        stamps, sites = self.stamps[chosen], self.sites[chosen]
        return Conflict(self.kind, self.lanes[chosen], stamps, sites, times)


class _Track:
    """The last accesses of one kind."""

    def __init__(self, kind: str, granules: int, crosses_blocks: bool, order: Order) -> None:
        self._order = order
        self._kind = kind
        self._crosses_blocks = crosses_blocks
        self.stamps: Stamps = np.zeros(granules, np.int64)
        self._sites: Sites = np.zeros(granules, np.int32)

    def conflict(self, where: Positions, mine: Stamps) -> Conflict | None:
        """The recorded accesses by other threads that nothing orders before mine."""
        seen = self.stamps[where]
        racing = self._order.unordered(seen, mine)
        if self._crosses_blocks:
            racing |= (seen != 0) & ((seen ^ mine) >= self._order.one_block)
        if not racing.any():
            return None
        lanes = np.flatnonzero(racing)
        return Conflict(self._kind, lanes, seen[lanes], self._sites[where][lanes])

    def record(self, where: Positions, mine: Stamps, site: int) -> tuple[Lanes, Stamps] | None:
        """Remember accesses.

        Where several lanes share a granule: the lanes but for the last of each granule, and for
        every lane the stamp of the last lane of its granule.
        """
        joined = self._joined(self.stamps[where], mine)
        self.stamps[where] = joined
        self._sites[where] = site
        if isinstance(where, slice):
            return None
        standing = self.stamps[where]
        lanes = np.flatnonzero(standing != joined)
        if not lanes.size:
            return None
        granules, last = where[lanes], standing[lanes]
        several = self._order.both(last, joined[lanes])
        self.stamps[granules] = several
        wider = (several & MANY) == MANY
        self.stamps[granules[wider]] = several[wider]
        if self._crosses_blocks:
            elsewhere = (last ^ mine[lanes]) >= self._order.one_block
            self.stamps[granules[elsewhere]] = EVERYWHERE
        return lanes, standing

    def record_exclusive(self, where: Positions, mine: Stamps, site: int) -> Conflict | None:
        """As `record`; the lanes that share a granule conflict with the last lane that does."""
        shared = self.record(where, mine, site)
        if shared is None:
            return None
        lanes, standing = shared
        return Conflict(self._kind, lanes, standing[lanes], self._sites[where][lanes])

    def _joined(self, seen: Stamps, mine: Stamps) -> Stamps:
        """What a granule remembers after `mine` too."""
        both = self._order.unordered(seen, mine)
        joined = np.where(both, self._order.both(seen, mine), mine) if both.any() else mine
        if not self._crosses_blocks:
            return joined
        elsewhere = (seen != 0) & ((seen ^ mine) >= self._order.one_block)
        return np.where(elsewhere, EVERYWHERE, joined) if elsewhere.any() else joined


class Shadow:
    """The shadow of memory that one block alone can reach, unless it `crosses_blocks`.

    The methods take granules (each at most once in a slice), the stamps of the lanes that touch
    them, and the site of the access.
    """

    def __init__(self, granules: int, crosses_blocks: bool, order: Order = BARRIERS) -> None:
        self._order = order
        self._granules = granules
        self._crosses_blocks = crosses_blocks
        self._writes = _Track("writes", granules, crosses_blocks, order)
        self._reads = _Track("reads", granules, crosses_blocks, order)
        self._updates: _Track | None = None  # atomics, which few kernels have

    def read(self, where: Positions, mine: Stamps, site: int) -> list[Conflict]:
        """Record a plain read; gives what it conflicts with."""
        conflicts = self._against(where, mine, self._writes, self._updates)
        self._reads.record(where, mine, site)
        return conflicts

    def before_write(
        self, where: Positions, mine: Stamps
    ) -> tuple[list[Conflict], Conflict | None]:
        """What a plain write conflicts with, and the writes it conflicts with unless bits agree."""
        conflicts = self._against(where, mine, self._reads, self._updates)
        return conflicts, self._writes.conflict(where, mine)

    def write(self, where: Positions, mine: Stamps, site: int) -> Conflict | None:
        """Record a plain write; gives lanes that write where a later lane of it writes too."""
        return self._writes.record_exclusive(where, mine, site)

    def update(self, where: Positions, mine: Stamps, site: int) -> list[Conflict]:
        """Record an atomic access; gives the plain accesses that it conflicts with."""
        if self._updates is None:
            self._updates = _Track(
                "updates atomically", self._granules, self._crosses_blocks, self._order
            )
        conflicts = self._against(where, mine, self._reads, self._writes)
        self._updates.record(where, mine, site)
        return conflicts

    def unwritten(self, where: Positions) -> npt.NDArray[np.bool_]:
        """Granules that nothing has written."""
        never: npt.NDArray[np.bool_] = self._writes.stamps[where] == 0
        if self._updates is not None:
            never &= self._updates.stamps[where] == 0
        return never

    @staticmethod
    def _against(where: Positions, mine: Stamps, *tracks: _Track | None) -> list[Conflict]:
        found = [track.conflict(where, mine) for track in tracks if track is not None]
        return [conflict for conflict in found if conflict is not None]
