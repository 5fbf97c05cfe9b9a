"""Which accesses a release tells of: those of its thread, and what a barrier put before its fence.

`Releases` lists the releases of each thread (of each warp, of each block), newest first. A release
with fence time f tells of the accesses of its thread before f; one whose fence came after a barrier
of the block at time b tells of the accesses of the whole block before b.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sarek_interp.growing import Columns, Numbers
from sarek_interp.knowledge import Knowledge


class Releases:
    """Releases by publisher: a thread, a warp or a block of the launch, by number."""

    def __init__(self, publishers: int) -> None:
        self._newest = np.zeros(publishers, np.int64)
        # chain, event, time, the latest time of this release and all older ones, the next older one
        self._listed = Columns(5, first=1)

    def add(self, publishers: Numbers, chains: Numbers, events: Numbers, times: Numbers) -> None:
        """List releases that tell of what the publisher did before `times`."""
        order = np.lexsort((events, times, publishers))
        publishers, chains = publishers[order], chains[order]
        events, times = events[order], times[order]
        begins = np.concatenate([[True], publishers[1:] != publishers[:-1]])
        numbers = np.arange(self._listed.size, self._listed.size + times.size)
        older = np.where(begins, self._newest[publishers], numbers - 1)
        reach = np.maximum(times, self._listed[3][self._newest[publishers]])
        self._listed.append(chains, events, times, reach, older)
        self._newest[publishers] = numbers  # of equal publishers the last one stays

    def known(
        self, knowledge: Knowledge, publishers: Numbers, times: Numbers, rows: Numbers
    ) -> npt.NDArray[np.bool_]:
        """Whether rows know a release of the publisher that tells of what it did at `times`."""
        chain, event, time, reach, older = (self._listed[column] for column in range(5))
        known = np.zeros(times.size, np.bool_)
        asking = np.arange(times.size)
        at = self._newest[publishers]
        while asking.size:
            going = reach[at] > times[asking]
            asking, at = asking[going], at[going]
            told = time[at] > times[asking]
            told &= knowledge.event_of(rows[asking], chain[at]) >= event[at]
            known[asking[told]] = True
            asking, at = asking[~told], older[at[~told]]
        return known
