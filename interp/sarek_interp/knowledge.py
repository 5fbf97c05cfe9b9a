"""What threads know of each other: vector clocks, stored sparsely and shared.

Releases are *events*, numbered in the order in which they happen, and every event stands on a
*chain*: each event of a chain happens after the ones before it, in the sense that whoever acquires
it acquires those too. So a clock is, for each chain, the last event that is known of it (A. Agarwal
and V. K. Garg, "Efficient dependency tracking for relevant events in concurrent systems", 2007):
one entry where a whole grid counts at one place, and not one for each thread.

A clock is named by a row number; rows never change, and row 0 knows nothing.
"""

from __future__ import annotations

import numpy as np

from sarek_interp.growing import Columns, Numbers, spread

_CHAIN_BITS = np.int64(31)
_LOW = (np.int64(1) << _CHAIN_BITS) - np.int64(1)


class Knowledge:
    """The clocks of one launch."""

    def __init__(self) -> None:
        self._entries = Columns(2)  # row and chain as one ascending key; the event
        self._rows = Columns(2, first=1)  # where the entries of a row begin, and how many there are

    def event_of(self, rows: Numbers, chains: Numbers) -> Numbers:
        """The last event of a chain that a row knows, 0 for none."""
        keys, events = self._entries[0], self._entries[1]
        wanted = (rows << _CHAIN_BITS) | chains
        where = np.searchsorted(keys, wanted)
        found = where < keys.size
        found[found] = keys[where[found]] == wanted[found]
        result = np.zeros(wanted.size, np.int64)
        result[found] = events[where[found]]
        return result

    def joined(self, left: Numbers, right: Numbers) -> Numbers:
        """Rows that know what either row knows."""
        result = np.where(right == 0, left, right)
        both = np.flatnonzero((left != 0) & (right != 0) & (left != right))
        if not both.size:
            return result
        pairs, which = np.unique((left[both] << _CHAIN_BITS) | right[both], return_inverse=True)
        result[both] = self._joined(pairs >> _CHAIN_BITS, pairs & _LOW)[which]
        return result

    def with_event(self, rows: Numbers, chains: Numbers, events: Numbers) -> Numbers:
        """New rows that also know an event, which is later than all that they know of its chain."""
        which, chain, event = self._of(rows)
        groups = np.concatenate([which, np.arange(rows.size)])
        return self._made(
            *_merged(groups, np.concatenate([chain, chains]), np.concatenate([event, events])),
            rows.size,
        )

    def _joined(self, left: Numbers, right: Numbers) -> Numbers:
        """As `joined`, of rows that differ and know something; an equal one is not made again."""
        lefts, rights = self._of(left), self._of(right)
        groups, chain, event = _merged(
            *(np.concatenate(both) for both in zip(lefts, rights, strict=True))
        )
        result = np.full(left.size, -1)
        for rows in (right, left):
            more = self.event_of(rows[groups], chain) != event
            least = np.bincount(groups[more], minlength=rows.size) == 0
            result[least] = rows[least]
        fresh = result < 0
        if fresh.any():
            chosen = fresh[groups]
            numbers = (np.cumsum(fresh) - 1)[groups[chosen]]
            result[fresh] = self._made(
                numbers, chain[chosen], event[chosen], int(np.count_nonzero(fresh))
            )
        return result

    def _of(self, rows: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """The entries of rows: for each, which of the rows it is of, its chain and event."""
        which, where = spread(self._rows[0][rows], self._rows[1][rows])
        chains = self._entries[0][where] & _LOW
        return which, chains, self._entries[1][where]

    def _made(self, groups: Numbers, chains: Numbers, events: Numbers, count: int) -> Numbers:
        lengths = np.bincount(groups, minlength=count)
        starts = self._entries.size + np.cumsum(lengths) - lengths
        rows = self._rows.append(starts, lengths)
        self._entries.append((rows[groups] << _CHAIN_BITS) | chains, events)
        return rows


def _merged(groups: Numbers, chains: Numbers, events: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Entries in order of group and chain, of each chain the last event."""
    key = (groups << _CHAIN_BITS) | chains
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))[: key.size]
    last = np.maximum.reduceat(events[order], starts) if key.size else events
    first = order[starts]
    return groups[first], chains[first], last
