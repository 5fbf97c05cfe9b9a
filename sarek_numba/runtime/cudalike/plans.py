"""Plans of launches of vectors.

Machine code (`launcher_ir`) checks the arguments and gives the bytes of all parameters and the
serial numbers of the vectors' buffers that are ready. A launch without the window that uses what
one shortly before used is begun there. Else Python code brings the buffers that are not ready,
makes an argument list with addresses of the device, and keeps it: a launch with the same bytes is
one call of the driver. A launch that may wait in the device's window does; without the window it
begins at once, and is waited for by who needs its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.cache import compiled_launches
from sarek_numba.runtime.cudalike.access import check
from sarek_numba.runtime.cudalike.batches import Batches
from sarek_numba.runtime.cudalike.launcher_ir import FIXED, GIVEN, RUN
from sarek_numba.runtime.cudalike.memory import addresses_of
from sarek_numba.runtime.cudalike.queues import Mark
from sarek_numba.runtime.machine.tables import Launchers
from sarek_numba.runtime.plans import ArrayCheck, Attempt, Fill, Length, Memory, Plan
from sarek_numba.runtime.storage import Access, ready_keys
from sarek_numba.runtime.window import Window, hide, window_for
from sarek_numba.runtime.work import Work, WorkQueue

if TYPE_CHECKING:
    from sarek_numba.runtime.cudalike.device import BuiltProgram, CudalikeDriver

_MOST_KEPT = 256  # argument lists of one plan
_WORD = 8
_FINE = bytes(_WORD)  # behind the words of a launch: nothing failed
_NOTED = 2  # words of a vector behind the parameters, beside its serial number
hide(Path(__file__).resolve().parent)


@cache
def _launchers() -> Launchers:
    return Launchers(RUN)


class VectorPlans:
    """See `sarek_numba.runtime.plans.Plans`."""

    def __init__(self, owner: CudalikeDriver) -> None:
        self._owner = owner
        self._batches: Batches | None = None

    def takes(self, plan: Plan) -> bool:
        """Not with arrays of NumPy, which are bound anew at each launch, nor with strides."""
        return plan.has_plain_vectors

    def attempt(self, plan: Plan) -> Attempt | None:
        """One function for launches in the window and for those that begin at once."""
        if not self.takes(plan) or 0 in (*plan.grid, *plan.block):
            return None
        window, memory, machine = window_for(self._owner), self._owner.memory, _launchers()
        assert memory is not None, "as every such device has"
        keys = [ready_keys(memory, queue) for queue in (window, None)]
        if self._batches is None:
            with window.lock:
                self._batches = self._batches or Batches(window, self._owner.stream)
        launches, told = _Launches(self._owner, plan, self._batches), _with_spans(plan)
        accept = machine.function(told, ready=keys[0])
        alone = (launches.words.ctypes.data,)
        accept_alone = machine.function(told, alone, ready=keys[1], kept=(launches,))
        if accept is None or accept_alone is None:
            return None
        return _attempt(launches, window, accept, accept_alone), None


def _with_spans(plan: Plan) -> Plan:
    """The plan with two words of each vector behind its parameters: the host's address, and how
    many elements there are.
    """
    spans: list[Fill] = []
    for position, of_argument in enumerate(plan.checks):
        if isinstance(of_argument, ArrayCheck):
            spans += [Memory(position), Length(position, Scalar.INT32)]
    return replace(plan, fills=(*plan.fills, *spans))


class _Ready:
    """The arguments of a launch as the driver reads them.

    `spans` says of each used vector where in its memory it begins and ends; `behind` are the words
    behind the parameters.
    """

    __slots__ = ("address", "addresses", "behind", "spans", "words")

    def __init__(self, words: Any, behind: Any, spans: list[tuple[int, int]]) -> None:
        self.words = words
        self.behind = behind
        self.spans = spans
        self.addresses = addresses_of(words)
        self.address: int = self.addresses.__array_interface__["data"][0]


class _Launches:
    """A function of the device, and the argument lists that it was given.

    `words` are the block of `launcher_ir`.
    """

    def __init__(self, owner: CudalikeDriver, plan: Plan, batches: Batches) -> None:
        program: BuiltProgram = plan.program  # type: ignore[assignment] # one of this driver
        self.owner = owner
        self._api = owner.access.api
        self.batches = batches
        self.name = plan.kernel
        self.known: dict[bytes, _Ready] = {}
        self.vectors = [
            (position, check.access, check.dtype.itemsize)
            for position, check in enumerate(plan.checks)
            if isinstance(check, ArrayCheck)
        ]
        self._count = len(plan.fills)
        self._memories = [
            (k, fill.argument) for k, fill in enumerate(plan.fills) if isinstance(fill, Memory)
        ]
        function = program.function
        shared = program.region_bytes + plan.shared_bytes
        function.check(plan.block)
        with check("preparing a launch", owner.access):
            function.allow_shared(shared)
        self._give = function.give
        self._check = function.check_launch
        self.head = (function.raw, *plan.grid, *plan.block, shared)
        self.words = self._block()

    def _block(self) -> Any:
        """With no opening in which anything was noted; without calls of the driver there is none
        ever.
        """
        access, api = self.owner.access, self._api
        raw, *sizes = self.head
        calls = api.calls_for_machine_code()
        behind = (_NOTED + 1) * len(self.vectors)
        words = np.zeros(FIXED + 2 * self._count + behind, np.uint64)
        handles = [api.number(each) for each in (raw, self.owner.stream.raw)]
        where = self.batches.state.ctypes.data
        self._can_learn = calls is not None
        context = api.context_word(access.context)
        head = [where, *(calls or (0, 0)), context, *handles, self._count, behind, *sizes]
        words[1:FIXED] = head
        kinds = words[FIXED : FIXED + self._count]
        for k, _ in self._memories:
            kinds[k] = 1
        block = words.view(np.int64)
        block[0] = -1
        return block

    def ready(self, packed: bytes, values: Sequence[Any], queue: WorkQueue | None) -> _Ready | None:
        """The arguments of a launch; vectors that are not ready are brought to the device.

        None, with the launch not counted, where of a vector's memory a part would have to be
        brought. The vectors' locks are held. Raises BackendError.
        """
        memory, count = self.owner.memory, self._count
        assert memory is not None
        words = np.frombuffer(packed, np.int64)[:-1]
        first_serial = count + _NOTED * len(self.vectors)
        behind = words[count:].copy()
        spans, serials = behind[: first_serial - count].reshape(-1, _NOTED), words[first_serial:]
        for k, (position, access, _) in enumerate(self.vectors):
            if serials[k]:
                continue
            value = values[position]
            if spans[k, 0] != value._storage.start and value._storage.host.size:
                compiled_launches[0] -= 1
                return None
            try:
                serial = value._storage.bring(memory, value._array.nbytes, access, queue)
            except BaseException:
                compiled_launches[0] -= 1
                raise
            behind[first_serial - count + k] = serial
        used, firsts = [], {}
        for (position, _, itemsize), (start, elements) in zip(self.vectors, spans, strict=True):
            storage = values[position]._storage
            first = int(start) - storage.start if storage.host.size else 0
            firsts[position] = first
            used.append((first, first + int(elements) * itemsize))
        given = words[:count].copy() if count else np.zeros(1, np.int64)
        for k, argument in self._memories:
            storage = values[argument]._storage
            given[k] = memory.handle(storage.held(memory)) + firsts[argument]
        made = _Ready(given, behind, used)
        if len(self.known) >= _MOST_KEPT:
            self.known.clear()
        self.known[words[:count].tobytes() + behind.tobytes() + bytes(_WORD)] = made
        return made

    def learn(self, ready: _Ready, opening: int) -> None:
        """Have machine code begin launches like this one as long as the opening lasts.

        What it uses is noted with the batch of that opening. One copy changes the block, so that
        machine code in another thread sees all of it or nothing.
        """
        if self._can_learn:
            words, count = self.words.copy(), self._count
            words[0] = opening
            words[FIXED + count : FIXED + 2 * count] = ready.words[:count]
            words[FIXED + 2 * count :] = ready.behind
            self.words[:] = words

    def refuse(self, status: Any) -> None:
        """Raise the error of a launch that did not begin; a number is a status too."""
        self.batches.end()
        with check("a launch", self.owner.access):
            given = self._api.status(status) if type(status) is int else status
            self._check((given,), self.head)

    def begin(self, ready: _Ready) -> Mark:
        """Give the launch to the default stream. Raises BackendError."""
        owner = self.owner
        access, stream = owner.access, owner.stream
        with check("a launch", access):
            self._give((*self.head, stream.raw, ready.address, 0))
            return owner.streams.launched(stream)


def _make_room(window: Window) -> None:
    """Raises what a launch before this one failed with, which is not counted then."""
    try:
        window.make_room()
    except BaseException:
        compiled_launches[0] -= 1
        raise


Start = Callable[[_Ready, Sequence[Any], bool], tuple[Work, int]]


def _starter(launches: _Launches, window: Window) -> Start:
    """A function that begins a launch, unless machine code gave it to the driver before. It gives
    the work that the launch is part of, and the opening in which it came there.
    """
    owner, batches, name = launches.owner, launches.batches, launches.name
    access, stream, head, lock = owner.access, owner.stream, launches.head, window.lock
    batch_of, enter, add = batches.batch, access.enter, batches.add

    def start(ready: _Ready, values: Sequence[Any], is_given: bool) -> tuple[Work, int]:
        if window.waiting:
            window.submit_all("at once")
        with lock:
            batch = batch_of()
            if access.lost is not None:
                access.refuse_lost()
            if not is_given:
                pushed = enter()
                try:
                    result = access.launch(*head, stream.raw, ready.address, 0)
                finally:
                    if pushed:
                        access.leave()
                if result[0]:
                    launches.refuse(result[0])  # which raises
            add(batch, name, (values, ready))
            return batch, batches.opening

    return start


def _attempt(
    launches: _Launches, window: Window, accept: Any, accept_alone: Any
) -> Callable[..., bool | None]:
    """A function that checks and launches: it puts the start into the window, or begins.

    All that it uses is in its cells: it is called for each launch.
    """
    known, vectors, name, begin = launches.known, launches.vectors, launches.name, launches.begin
    start, learn, refuse = _starter(launches, window), launches.learn, launches.refuse
    used = [
        (k, position, access is Access.WRITE)
        for k, (position, access, _) in enumerate(vectors)
        if access
    ]
    unused = [position for position, access, _ in vectors if access is None]
    locked = [position for position, _, _ in vectors]

    def attempt(*values: Any) -> bool | None:
        settings = window.settings
        waits = settings.enabled
        packed = accept(*values) if waits else accept_alone(*values)
        if packed is None or packed is False:
            return packed
        try:
            outcome = 0
            if packed[-_WORD:] != _FINE:
                outcome = int.from_bytes(packed[-_WORD:], "little", signed=True)
                packed = packed[:-_WORD] + _FINE
                if outcome != GIVEN:
                    refuse(outcome)
            ready = known.get(packed)
            if ready is None:
                ready = launches.ready(packed, values, window if waits else None)
                if ready is None:
                    return False
            opening = 0
            if waits:
                if len(window.waiting) >= settings.limit:
                    _make_room(window)
                work: Work = window.give(partial(begin, ready), (values, ready), name)
            else:
                work, opening = start(ready, values, outcome == GIVEN)
            spans = ready.spans
            for k, position, written in used:
                uses = values[position]._storage._uses
                first, last = spans[k]
                if not uses.has(first, last, written, work):
                    uses.add(first, last, written, work)
            for position in unused:
                values[position]._storage._uses.add(0, 0, False, work)
            if opening:
                learn(ready, opening)
        finally:
            for position in locked:
                values[position]._storage.lock.release()
        return None

    return attempt
