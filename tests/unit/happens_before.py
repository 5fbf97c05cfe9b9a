"""Happens-before of a finished execution, by brute force: every event a node, every order an edge.

The definition of `docs/language.md`, word by word, without clocks. An execution is a list of `Act`s
in the order in which they happen; the threads of one act go one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

UPDATES = ("add", "exch", "cas")  # read-modify-writes; a compare-and-swap that fails only reads
KINDS = {"read": "reads", "write": "writes"}


@dataclass(frozen=True)
class Act:
    """One statement as some threads of one block execute it.

    `what` is read, write, load, store (of 1), clear (a store of 0), add, exch, cas, fence, barrier
    or warp_barrier.
    """

    what: str
    block: int
    threads: tuple[int, ...]
    place: int = 0
    scope: str = "device"


@dataclass
class _Event:
    number: int
    line: int
    what: str
    threads: tuple[tuple[int, int], ...]  # (block, thread); several for a barrier
    place: int
    scope: str
    writes: bool = False
    read_from: tuple[int, ...] = ()  # the writes whose release sequence an atomic read is in
    before: int = 0  # what happens before it, as bits

    @property
    def thread(self) -> tuple[int, int]:
        return self.threads[0]


def races(acts: Sequence[Act]) -> set[tuple[int, str]]:
    """Which acts race with an earlier access (or one of their own), and what that one does."""
    events = _events(acts)
    _order(events)
    found = set()
    accesses = [e for e in events if e.what not in ("fence", "barrier", "warp_barrier")]
    for later in accesses:
        for earlier in accesses[: accesses.index(later)]:
            if earlier.place == later.place and earlier.thread != later.thread:
                kinds = {KINDS.get(e.what, "updates") for e in (earlier, later)}
                both = kinds in ({"reads"}, {"updates"})
                if not both and not later.before >> earlier.number & 1:
                    found.add((later.line, KINDS.get(earlier.what, "updates")))
    return found


def _events(acts: Sequence[Act]) -> list[_Event]:
    events: list[_Event] = []
    values: dict[int, int] = {}
    sequences: dict[int, tuple[int, ...]] = {}
    for line, act in enumerate(acts):
        threads = [(act.block, thread) for thread in act.threads]
        if act.what.endswith("barrier"):
            events.append(_Event(len(events), line, act.what, tuple(threads), act.place, act.scope))
            continue
        for thread in threads:
            event = _Event(len(events), line, act.what, (thread,), act.place, act.scope)
            events.append(event)
            _act(event, values, sequences)
    return events


def _act(event: _Event, values: dict[int, int], sequences: dict[int, tuple[int, ...]]) -> None:
    """What an atomic reads and writes; the values are those of the kernels in the test."""
    place = event.place
    old = values.get(place, 0)
    if event.what == "write":
        values[place], sequences[place] = event.line + 2, ()
    if event.what in ("load", *UPDATES):
        event.read_from = sequences.get(place, ())
    if event.what in ("store", "clear"):
        values[place] = int(event.what == "store")
        sequences[place], event.writes = (event.number,), True
    elif event.what in ("add", "exch") or (event.what == "cas" and old == 0):
        values[place] = old + 1 if event.what == "add" else 1
        sequences[place] = (*sequences.get(place, ()), event.number)
        event.writes = True


def _order(events: list[_Event]) -> None:
    for event in events:
        for earlier in events[: event.number]:
            if _directly(earlier, event, events):
                event.before |= earlier.before | 1 << earlier.number


def _directly(first: _Event, second: _Event, events: list[_Event]) -> bool:
    if set(first.threads) & set(second.threads):
        return True
    if first.what != "fence" or second.what != "fence":
        return False
    same_block = first.thread[0] == second.thread[0]
    if not same_block and (first.scope, second.scope) != ("device", "device"):
        return False
    reads = [e for e in events[: second.number] if e.thread == second.thread and e.read_from]
    return any(
        write > first.number and events[write].thread == first.thread
        for read in reads
        for write in read.read_from
    )
