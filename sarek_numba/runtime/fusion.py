"""Which launches that wait are given to the device as one, and the proof that they may.

Launches of one family (`submission.Family`), of which none writes a byte that another reads or
writes, do the same in any order, and so at the same time. A launch joins an earlier one of its
family if it is independent of all that was launched between, too. Numbers of launches are `COUNTS`;
the program that has the arguments of all is compiled where such a group is met the second time, and
is refused once, with the reason, if the device has none.

What was decided for a window holds for each that is like it: the same families in the same order,
and the same pattern of memory, which are the bytes of each use and which uses are of one storage.
So a window that repeats is looked up, and the search, which takes longer than launches do, is for
new ones; after `MOST_SEARCHES` new ones in a row for none that does not come again.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sarek_numba import policy
from sarek_numba.capability import Capability, DeviceRecord, Verdict, fact_of
from sarek_numba.runtime.device import JoinedProgram, QueuedProgram
from sarek_numba.runtime.storage import Storage
from sarek_numba.runtime.submission import Family, Joinable, Use
from sarek_numba.runtime.work import WorkQueue

NAME = "fusion"
COUNTS = (16, 8, 4)  # so many launches are joined: each number is a program of its own
MOST_SEARCHES = 8
_MOST_PATTERNS = 256  # that a window remembers
_REACH = 16  # so many batches back a launch looks for one to join
PROOF = policy.Proof(
    "no launch writes bytes that another one of them reads or writes, by the byte ranges of all"
)
_DEPENDENT = policy.Refused("a launch uses bytes that one before it writes, or writes such it uses")
_FEW = policy.Refused(f"fewer than {COUNTS[-1]} launches of it with one block wait together")
_FEATURE = Capability(NAME)


class Waiting(Protocol):
    """A launch that waits; `start` is `Joinable` if it says what it does."""

    start: Any
    kernel: str


def why_apart(record: DeviceRecord, wanted: bool | None) -> str | None:
    """Why a device is given launches one by one; None if it is not. `wanted` decides before it."""
    if wanted is not None:
        return None if wanted else "window.configure turned it off"
    fact = fact_of(_FEATURE, record)
    return None if fact.verdict is Verdict.AVAILABLE else fact.evidence


# --- the proof ------------------------------------------------------------------------------------


class Ranges:
    """The bytes, by host address, that launches read and write of which none needs another.

    Storages over the same host memory have the same addresses, so what they share is seen.
    """

    def __init__(self) -> None:
        self._all, self._written = _Bytes(), _Bytes()

    def meet(self, uses: Iterable[Use]) -> bool:
        """Whether a launch with these uses must stay before, or behind, one of the others."""
        for use in uses:
            first, last = use.storage.start + use.first, use.storage.start + use.last
            if first < last and (self._all if use.written else self._written).meets(first, last):
                return True
        return False

    def add(self, uses: Iterable[Use]) -> None:
        """Take in the uses of one more launch."""
        for use in uses:
            first, last = use.storage.start + use.first, use.storage.start + use.last
            if first < last:
                self._all.add(first, last)
                if use.written:
                    self._written.add(first, last)


class _Bytes:
    """A set of bytes as stretches, sorted and apart: where each begins, and where it ends."""

    __slots__ = ("_ends", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def meets(self, first: int, last: int) -> bool:
        """Whether one of these bytes, of which there is one at least, is in the set."""
        before = bisect_left(self._firsts, last)
        return before > 0 and self._ends[before - 1] > first

    def add(self, first: int, last: int) -> None:
        """Take in bytes; what touches becomes one stretch."""
        low, high = bisect_left(self._ends, first), bisect_right(self._firsts, last)
        if low < high:
            first, last = min(first, self._firsts[low]), max(last, self._ends[high - 1])
        self._firsts[low:high] = [first]
        self._ends[low:high] = [last]


# --- programs -------------------------------------------------------------------------------------

_known: weakref.WeakKeyDictionary[QueuedProgram, dict[int, JoinedProgram | str | None]] = (
    weakref.WeakKeyDictionary()  # by the number of launches; None: met once
)


def _program(of: QueuedProgram, count: int) -> JoinedProgram | str | None:
    """A program of several launches; why there is none; None if it is met the first time."""
    states = _known.setdefault(of, {})
    if count not in states:
        return states.setdefault(count, None)
    state = states[count]
    try:  # without it everything works as well
        if state is None:
            state = states[count] = of.joined(count)
        return state if isinstance(state, str) else state.another()
    except Exception as error:
        why = f"the program of {count} launches is refused: {error}".partition("\n")[0]
        states[count] = why
        return why


# --- what is done with a window -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decision:
    """The order in which a window is submitted: launches by their places, each set for a program
    or one by one. Without batches nothing is joined, and the order is that of the calls.

    `late` are launches, each with a batch: work that is done by their order of the calls is done
    when that batch is. `refused` are kernels that are not joined, each with a launch of it.
    """

    batches: tuple[tuple[tuple[int, ...], JoinedProgram | None], ...]
    late: tuple[tuple[int, int], ...]
    refused: tuple[tuple[int, policy.Refused], ...]


class Decisions:
    """What was decided for the windows of a device. The window's lock is held."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._known: dict[Any, Decision | None] = {}  # None: seen, not decided
        self._new = 0  # windows that are like none before, in a row
        self.searches = 0

    def forget(self) -> None:
        """Decide all anew: a device refused a program."""
        self._known.clear()

    def of(self, waiting: Sequence[Waiting]) -> Decision | None:
        """How to submit what waits; None for one by one, in order."""
        if len(waiting) < COUNTS[-1]:
            return None
        if policy.disabled(NAME):
            tell(waiting[0].kernel, self._device, "SAREK_OPT_DISABLE turns it off")
            return None
        pattern = _pattern(waiting)
        decision = self._known.get(pattern) or self._decide(pattern, waiting)
        if decision is None:
            return None
        for place, outcome in decision.refused:
            policy.record_once(waiting[place].kernel, self._device, NAME, outcome)
        return decision if decision.batches else None

    def _decide(self, pattern: Any, waiting: Sequence[Waiting]) -> Decision | None:
        is_new = pattern not in self._known
        self._new = self._new + 1 if is_new else 0
        if is_new and len(self._known) >= _MOST_PATTERNS:
            self._known.clear()
        self._known[pattern] = None
        if self._new > MOST_SEARCHES:
            return None
        self.searches += 1
        search = _Search(waiting)
        decision = search.decision()
        if search.is_final:
            self._known[pattern] = decision
        return decision


def tell(kernel: str, device: str, why: str) -> None:
    """Say why launches of a window were given to the device one by one."""
    policy.record_once(kernel, device, NAME, policy.Refused(why))


_OPAQUE, _ALONE, _FIRST_FAMILY = -1, -2, -2  # marks of launches; numbers of families count from 1


def _pattern(waiting: Sequence[Waiting]) -> Any:
    """What decides how a window is submitted: equal for windows that are alike."""
    numbers: dict[Storage, int] = {}
    pattern: list[int] = []
    for work in waiting:
        note = getattr(work.start, "note", None)
        if note is None:
            pattern.append(_OPAQUE)
            continue
        family = work.start.family
        pattern.append(_ALONE if isinstance(family, str) else _FIRST_FAMILY - family.number)
        note(numbers, pattern)
    key = tuple(pattern)
    for storage in numbers:
        if not storage.is_alone:  # then addresses say what is shared
            return key, tuple(one.start for one in numbers)
    return key


# --- the search -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Batch:
    """Launches that are independent of each other; without `ranges` nothing is known of them."""

    family: Family | None
    ranges: Ranges | None = field(default_factory=Ranges)
    places: list[int] = field(default_factory=list)


class _Search:
    """What is to be done with one window."""

    def __init__(self, waiting: Sequence[Waiting]) -> None:
        self._waiting = waiting
        self._families: list[Family | str | None] = []
        self._uses: list[Sequence[Use] | None] = []
        for work in waiting:
            start: Joinable | None = work.start if hasattr(work.start, "note") else None
            self._families.append(None if start is None else start.family)
            self._uses.append(None if start is None else start.uses)
        self._why: dict[str, tuple[int, policy.Refused]] = {}  # by kernel
        self._refused: list[tuple[int, policy.Refused]] = []
        self._fused: set[str] = set()  # kernels
        self.is_final = True  # will it be the same next time?

    def decision(self) -> Decision:
        """What is found."""
        batches = self._batches()
        made: list[tuple[tuple[int, ...], JoinedProgram | None]] = []
        for batch in batches:
            made += self._split(batch)
        refused = self._refused
        if self.is_final:
            told = self._fused | {self._waiting[place].kernel for place, _ in refused}
            refused += [why for kernel, why in self._why.items() if kernel not in told]
        if not self._fused:
            return Decision((), (), tuple(refused))
        return Decision(tuple(made), tuple(_late(made)), tuple(refused))

    def _batches(self) -> list[_Batch]:
        """Batches in order, of which those of a family have enough launches in one of them."""
        joined = {family for family in self._families if isinstance(family, Family)}
        while True:
            batches = self._grouped(joined)
            enough = {b.family for b in batches if b.family and len(b.places) >= COUNTS[-1]}
            if enough == joined:
                return batches
            joined = {family for family in joined if family in enough}

    def _grouped(self, joined: set[Family]) -> list[_Batch]:
        """Each launch in the batch of its family that it may join, or in one behind all others."""
        batches: list[_Batch] = []
        for place, (family, uses) in enumerate(zip(self._families, self._uses, strict=True)):
            kernel, found = self._waiting[place].kernel, None
            if isinstance(family, Family) and uses is not None:
                if family in joined:
                    found = self._batch_for(place, family, uses, batches)
                self._why.setdefault(kernel, (place, _FEW))
            elif isinstance(family, str):
                self._why.setdefault(kernel, (place, policy.Refused(family)))
            if found is None:
                own = family if isinstance(family, Family) and family in joined else None
                found = _Batch(own) if uses is not None else _Batch(None, None)
                batches.append(found)
            found.places.append(place)
            if found.ranges is not None and uses is not None:
                found.ranges.add(uses)
        return batches

    def _batch_for(
        self, place: int, family: Family, uses: Sequence[Use], batches: list[_Batch]
    ) -> _Batch | None:
        """The last batch of the family, if the launch needs none from that on."""
        for batch in reversed(batches[-_REACH:]):
            if batch.ranges is None or batch.ranges.meet(uses):
                if any(one.family is family for one in batches):
                    self._why[self._waiting[place].kernel] = place, _DEPENDENT
                return None
            if batch.family is family:
                return batch
        return None

    def _split(self, batch: _Batch) -> list[tuple[tuple[int, ...], JoinedProgram | None]]:
        """A batch in those numbers of launches for which there are programs."""
        found: list[tuple[tuple[int, ...], JoinedProgram | None]] = []
        places = batch.places
        for count in COUNTS:
            while batch.family is not None and len(places) >= count:
                state = _program(batch.family.program, count)
                if isinstance(state, str):
                    self._refused.append((places[0], policy.Refused(state)))
                    break
                taken, places = places[:count], places[count:]
                if state is None:
                    self.is_final = False
                    found += [((place,), None) for place in taken]
                    continue
                found.append((tuple(taken), state))
                self._fused.update(self._waiting[place].kernel for place in taken)
        return [*found, *(((place,), None) for place in places)]


def _late(
    batches: Sequence[tuple[tuple[int, ...], JoinedProgram | None]],
) -> list[tuple[int, int]]:
    """Launches that are submitted before some of earlier calls, each with the last batch of these.

    Who waits for a launch takes all of the same memory that was launched before as done.
    """
    positions = {place: k for k, (places, _) in enumerate(batches) for place in places}
    latest, found = 0, []
    for place in range(len(positions)):
        latest = max(latest, positions[place])
        if positions[place] < latest:
            found.append((place, latest))
    return found


# --- submitting -----------------------------------------------------------------------------------


def submit(works: Sequence[Waiting], program: JoinedProgram, queue: WorkQueue) -> Any:
    """Give the launches of a batch to a queue; gives the mark of all. Raises BackendError."""
    starts: list[Joinable] = [work.start for work in works]
    family = starts[0].family
    assert isinstance(family, Family), "as those of a batch have"
    for start in starts:
        start.begin()
    mark = program.enqueue(queue.handle, family.block, starts)
    ended = [start for start in starts if start.end()]
    for kernel in {work.kernel for work in works}:
        policy.record_once(kernel, family.device, NAME, policy.Applied(PROOF))
    return queue.queues.mark(queue.handle) if ended else mark


def refused(work: Waiting, count: int, error: Exception) -> None:
    """The device did not take a batch of so many launches: it gets no such again."""
    family = work.start.family
    assert isinstance(family, Family), "as those of a batch have"
    why = f"the device refused {count} launches as one: {error}".partition("\n")[0]
    _known.setdefault(family.program, {})[count] = why
    tell(work.kernel, family.device, why)
