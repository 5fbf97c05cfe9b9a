"""What is decided for windows of launches: the order is right, and like windows are looked up."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sarek_numba import policy
from sarek_numba.capability import Capability, CapabilityKind, DeviceRecord, Fact, Limits, Verdict
from sarek_numba.runtime import fusion
from sarek_numba.runtime.storage import Storage
from sarek_numba.runtime.submission import Use, family_of, note_use

SIZE = 24
BLOCK = (32, 1, 1)
spans = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda pair: tuple(sorted(pair)))
launches = st.lists(st.tuples(st.integers(0, 2), spans, st.booleans()), max_size=3)


class Joined:
    """A program of several launches, which nobody runs here."""

    def another(self) -> Joined:
        return self


class Program:
    """A program that may be joined, or not."""

    def __init__(self, why_not: str | None = None) -> None:
        self.why_not = why_not
        self.asked: list[int] = []

    def joined(self, count: int) -> Any:
        self.asked.append(count)
        return self.why_not or Joined()


class Start:
    def __init__(self, program: Program, uses: list[Use], blocks: int = 1) -> None:
        self.uses = uses
        self.family = family_of(program, "a device", (blocks, 1, 1), BLOCK, 0)  # type: ignore[arg-type]

    def note(self, numbers: dict[Storage, int], pattern: list[int]) -> None:
        for use in self.uses:
            note_use(numbers, pattern, use.storage, use.first, use.last, use.written)


class Waiting:
    def __init__(self, start: Any, kernel: str = "k") -> None:
        self.start = start
        self.kernel = kernel


def overlapping() -> list[Storage]:
    """Three pieces of memory, of which two neighbours share half their bytes."""
    room = np.zeros(2 * SIZE, np.uint8)
    return [Storage(room[start : start + SIZE]) for start in (0, SIZE // 2, SIZE)]


def apart(count: int = 3) -> list[Storage]:
    return [Storage.of_size(SIZE) for _ in range(count)]


def bytes_of(uses: list[Use]) -> tuple[set[int], set[int]]:
    """Addresses that are read, and that are written."""
    reads: set[int] = set()
    writes: set[int] = set()
    for use in uses:
        each = set(range(use.storage.start + use.first, use.storage.start + use.last))
        (writes if use.written else reads).update(each)
    return reads, writes


def depend(one: list[Use], other: list[Use]) -> bool:
    """Byte by byte: does one write what the other one uses?"""
    (reads, writes), (other_reads, other_writes) = bytes_of(one), bytes_of(other)
    return bool(writes & (other_reads | other_writes) or reads & other_writes)


def uses_of(storages: list[Storage], made: list[Any]) -> list[Use]:
    return [Use(storages[which], a, b, written, None) for which, (a, b), written in made]


@settings(max_examples=300, deadline=None)
@given(st.lists(launches, min_size=1, max_size=8))
def test_the_proof_against_every_byte(made):
    """Launches meet those before if, byte by byte, what one writes is used by another."""
    storages = overlapping()
    ranges = fusion.Ranges()
    before: list[list[Use]] = []
    for uses in (uses_of(storages, one) for one in made):
        dependent = any(depend(uses, other) for other in before)
        assert ranges.meet(uses) == dependent
        if not dependent:
            ranges.add(uses)
            before.append(uses)


kinds = st.lists(st.tuples(st.integers(0, 3), launches), min_size=4, max_size=24)
INDEPENDENT: Any = [(k % 2, [(k % 2, (k, k + 1), True)]) for k in range(20)]


@settings(max_examples=300, deadline=None)
@given(kinds, st.booleans())
@example(INDEPENDENT, False)
def test_orders(made, shared):
    """Dependent launches keep their order, everything is submitted once, and what runs as one is of
    one family and independent. The last launch done says that all launched before it are.
    """
    storages = overlapping() if shared else apart()
    programs = [Program(), Program(), Program("no")]
    waiting = []
    for kind, one in made:
        start = Start(programs[kind], uses_of(storages, one)) if kind < 3 else object()
        waiting.append(Waiting(start))
    for _ in range(2):  # the second time there are programs
        decision = fusion._Search(waiting).decision()
    places = [place for batch, _ in decision.batches for place in batch]
    assert sorted(places) == list(range(len(made))) * bool(places)
    positions = {place: k for k, (batch, _) in enumerate(decision.batches) for place in batch}
    for batch, program in decision.batches:
        assert (program is not None) == (len(batch) > 1)
        assert len(batch) in (1, *fusion.COUNTS)
        assert len({id(waiting[place].start.family) for place in batch if program}) <= 1
        assert list(batch) == sorted(batch)
    late = dict(decision.late)
    for i, j in combinations(positions, 2) if positions else ():
        i, j = min(i, j), max(i, j)
        one, other = waiting[i].start, waiting[j].start
        opaque = not isinstance(one, Start) or not isinstance(other, Start)
        if opaque or depend(one.uses, other.uses):
            assert positions[i] < positions[j]
        assert late.get(j, positions[j]) >= late.get(i, positions[i]) >= positions[i]
    if made == INDEPENDENT:
        assert sum(len(batch) for batch, program in decision.batches if program) == 16


def test_two_families_in_turn():
    """Chains of two kernels: all of the first one, then all of the second one, are as one."""
    storages = apart(8)
    first, second = Program(), Program()
    waiting = []
    for storage in storages:
        waiting.append(Waiting(Start(first, [Use(storage, 0, SIZE, True, None)])))
        waiting.append(Waiting(Start(second, [Use(storage, 0, SIZE, True, None)])))
    decisions = fusion.Decisions("a device")
    assert decisions.of(waiting) is None  # met once
    decision = decisions.of(waiting)
    assert decision is not None
    assert [batch for batch, _ in decision.batches] == [
        tuple(range(0, 16, 2)),
        tuple(range(1, 16, 2)),
    ]
    assert decision.late == tuple((place, 1) for place in range(2, 16, 2))
    assert first.asked == second.asked == [8]


def window(storages: list[Storage], program: Program, length: int = SIZE) -> list[Waiting]:
    """Independent launches, each with memory of its own."""
    return [Waiting(Start(program, [Use(each, 0, length, True, None)])) for each in storages]


def test_a_window_that_repeats_is_looked_up():
    """Whatever memory it is, while the pattern is the same. Other bytes are another pattern."""
    decisions, program = fusion.Decisions("a device"), Program()
    for _ in range(2):
        decisions.of(window(apart(4), program))
    assert decisions.searches == 2
    found = {id(decisions.of(window(apart(4), program))) for _ in range(5)}
    assert decisions.searches == 2
    assert len(found) == 1
    decisions.of(window(apart(4), program, SIZE - 1))
    assert decisions.searches == 3
    one = Storage.of_size(SIZE)
    assert decisions.of(window([one, *apart(2), one], program)) is None
    assert decisions.searches == 4


def test_memory_that_others_share():
    """Of storages over the same host memory the addresses count."""
    program = Program()
    room = np.zeros(8 * SIZE, np.uint8)

    def made(step: int) -> list[Waiting]:
        return window([Storage(room[k * step : k * step + SIZE]) for k in range(4)], program)

    assert fusion._pattern(made(SIZE)) == fusion._pattern(made(SIZE))
    assert fusion._pattern(made(SIZE)) != fusion._pattern(made(SIZE // 2))
    decisions = fusion.Decisions("a device")
    for _ in range(3):
        assert decisions.of(made(SIZE // 2)) is None
    for _ in range(2):
        decision = decisions.of(made(SIZE))
    assert decision is not None
    assert [batch for batch, _ in decision.batches] == [(0, 1, 2, 3)]


def test_windows_that_do_not_repeat_are_not_searched():
    """After eight new ones in a row the next ones are searched when they come again."""
    decisions, program = fusion.Decisions("a device"), Program()
    for k in range(20):
        decisions.of(window(apart(4), program, k + 1))
    assert decisions.searches == fusion.MOST_SEARCHES
    decision = decisions.of(window(apart(4), program, 20))
    assert decisions.searches == fusion.MOST_SEARCHES + 1
    assert decision is not None


def test_memory_of_patterns_is_bounded(monkeypatch):
    """Many kinds of windows, each met twice."""
    monkeypatch.setattr(fusion, "_MOST_PATTERNS", 10)
    decisions, program = fusion.Decisions("a device"), Program()
    for k in range(40):
        decisions.of(window(apart(4), program, k % SIZE))
        assert len(decisions._known) <= 10


@pytest.mark.parametrize("kind", ["large", "few", "refused", "unlike", "dependent"])
def test_reasons(kind):
    """What is said of launches that are not joined."""
    policy.clear_report()
    program = Program("its reason" if kind == "refused" else None)
    waiting = window(apart(6), program)
    match kind:
        case "large":
            waiting = [Waiting(Start(program, one.start.uses, 17)) for one in waiting]
        case "few":
            waiting = [*waiting[:3], *(Waiting(object()) for _ in range(3))]
        case "unlike":
            waiting = [Waiting(Start(Program(), one.start.uses)) for one in waiting]
        case "dependent":
            waiting = window([Storage.of_size(SIZE)] * 6, program)
    decisions = fusion.Decisions("a device")
    for _ in range(3):
        assert decisions.of(waiting) is None
    reasons = {
        "large": "it is large: launches of more than 16 blocks are given one by one",
        "few": fusion._FEW.why,
        "unlike": fusion._FEW.why,
        "refused": "its reason",
        "dependent": "a launch uses bytes that one before it writes, or writes such it uses",
    }
    assert [str(record) for record in policy.report()] == [
        f"kernel 'k' on a device: fusion not applied: {reasons[kind]}"
    ]


def test_devices():
    """A device fuses if a fact of its record says so, unless somebody decides."""
    limits = Limits(1024, (1024, 1024, 64), (2**31 - 1,) * 3, 49152, 2**30)
    facts = {
        verdict: {Capability("fusion"): Fact(verdict, CapabilityKind.POLICY, "as measured")}
        for verdict in Verdict
    }
    for verdict, given_facts in [*facts.items(), (Verdict.UNKNOWN, {})]:
        record = DeviceRecord("d", "opencl", "jit", "", (), limits, given_facts)
        assert (fusion.why_apart(record, None) is None) == (verdict is Verdict.AVAILABLE)
        assert fusion.why_apart(record, True) is None
        assert fusion.why_apart(record, False) == "window.configure turned it off"
    assert fusion.why_apart(record, None) == "nothing is known of it on this device"
