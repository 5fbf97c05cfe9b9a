"""Plans of launches on CUDA devices, of vectors.

The machine code of the native device, where there is any, checks the arguments and gives the bytes
of all parameters and the serial numbers of the vectors' buffers that are ready. Those that are not
are brought there. Of these bytes an argument list is made, with addresses of the device, and kept:
a launch with the same bytes is one call of the driver. A launch that may wait in the device's
window does; without the window it begins at once, and is waited for by who needs its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_cuda import driver
from sarek_numba.runtime.cache import compiled_launches
from sarek_numba.runtime.cudalike.memory import addresses_of
from sarek_numba.runtime.cudalike.queues import Mark
from sarek_numba.runtime.plans import ArrayCheck, Attempt, Memory, Plan
from sarek_numba.runtime.registry import acceptors
from sarek_numba.runtime.storage import Access, ready_key
from sarek_numba.runtime.window import Window, hide, window_for
from sarek_numba.runtime.work import Work, WorkQueue

if TYPE_CHECKING:
    from sarek_cuda.runtime import CudaDriver
    from sarek_numba.runtime.cudalike.device import BuiltProgram
    from sarek_numba.runtime.cudalike.queues import Stream

_MOST_KEPT = 256  # argument lists of one plan
_MOST_IN_BATCH = 64  # launches that begin at once
_MOST_BATCHES = 16  # that are not known to be done
hide(Path(__file__).resolve().parent)


class CudaPlans:
    """See `sarek_numba.runtime.plans.Plans`."""

    def __init__(self, owner: CudaDriver) -> None:
        self._owner = owner

    def takes(self, plan: Plan) -> bool:
        """Not with arrays of NumPy, which are bound anew at each launch, nor with strides."""
        arrays = [check for check in plan.checks if isinstance(check, ArrayCheck)]
        return all(check.vector and not check.strided for check in arrays)

    def attempt(self, plan: Plan) -> Attempt | None:
        """One function for launches in the window and for those that begin at once."""
        machine = acceptors()
        if machine is None or not self.takes(plan):
            return None
        window, memory = window_for(self._owner), self._owner.memory
        assert memory is not None, "as every CUDA device has"
        keys = [
            {access: ready_key(memory, queue, access) for access in (None, *Access)}
            for queue in (window, None)
        ]
        accept, accept_alone = (machine.acceptor(plan, key) for key in keys)
        if accept is None or accept_alone is None or 0 in (*plan.grid, *plan.block):
            return None
        return _attempt(_Launches(self._owner, plan), window, accept, accept_alone), None


class _Ready:
    """The arguments of a launch as the driver reads them.

    `firsts` is the byte at which each used vector begins in its memory, by its position.
    """

    __slots__ = ("address", "addresses", "firsts", "words")

    def __init__(self, words: Any, firsts: dict[int, int]) -> None:
        self.words = words
        self.firsts = firsts
        self.addresses = addresses_of(words)
        self.address: int = self.addresses.__array_interface__["data"][0]


class _Launches:
    """A function of the device, and the argument lists that it was given."""

    def __init__(self, owner: CudaDriver, plan: Plan) -> None:
        program: BuiltProgram = plan.program  # type: ignore[assignment] # one of this driver
        self.owner = owner
        self.name = plan.kernel
        self.known: dict[bytes, _Ready] = {}
        self.vectors = [
            (position, check.access)
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
        with driver.check("preparing a launch", owner.access):
            function.allow_shared(shared)
        self._give = function.give
        self._check = function.check_launch
        self.head = (function.raw, *plan.grid, *plan.block, shared)

    def ready(self, packed: bytes, values: Sequence[Any], queue: WorkQueue | None) -> _Ready | None:
        """The arguments of a launch; vectors that are not ready are brought to the device.

        None, with the launch not counted, where of a vector's memory a part would have to be
        brought. The vectors' locks are held. Raises BackendError.
        """
        memory, count = self.owner.memory, self._count
        assert memory is not None
        words = np.frombuffer(packed, np.int64)
        starts = {argument: int(words[k]) for k, argument in self._memories}
        serials = words[count:].copy()
        for k, (position, access) in enumerate(self.vectors):
            if serials[k]:
                continue
            value = values[position]
            if starts.get(position, value._storage.start) != value._storage.start:
                compiled_launches[0] -= 1
                return None
            try:
                serials[k] = value._storage.bring(memory, value._array.nbytes, access, queue)
            except BaseException:
                compiled_launches[0] -= 1
                raise
        given = words[:count].copy() if count else np.zeros(1, np.int64)
        firsts = {}
        for k, argument in self._memories:
            storage = values[argument]._storage
            firsts[argument] = starts[argument] - storage.start if storage.host.size else 0
            given[k] = memory.handle(storage.held(memory)) + firsts[argument]
        made = _Ready(given, firsts)
        if len(self.known) >= _MOST_KEPT:
            self.known.clear()
        self.known[words[:count].tobytes() + serials.tobytes()] = made
        return made

    def refuse(self, result: tuple[Any, ...]) -> None:
        """Raise the error of a launch that did not begin."""
        with driver.check("a launch", self.owner.access):
            self._check(result, self.head)

    def begin(self, ready: _Ready) -> Mark:
        """Give the launch to the default stream. Raises BackendError."""
        owner = self.owner
        access, stream = owner.access, owner.stream
        with driver.check("a launch", access):
            self._give((*self.head, stream.raw, ready.address, 0))
            return owner.streams.launched(stream)


def _make_room(window: Window) -> None:
    """Raises what a launch before this one failed with, which is not counted then."""
    try:
        window.make_room()
    except BaseException:
        compiled_launches[0] -= 1
        raise


class _Batch(Work):
    """Launches that began at once, one after the other; it is the mark of the last of them.

    It grows only while it is the last work of its queue, and with the queue's lock. `number` and
    `given` grow with it, so that who waited for what it was drops nothing that came to it later.
    """

    __slots__ = ("given", "kept", "stream")
    event = start = None  # as of a `Mark`

    def __init__(self, window: Window, stream: Stream) -> None:
        self.queue = window
        self.kept: list[Any] = []
        self.used = self.kept
        self.number = 0
        self.told = False
        self.stream = stream
        self.given = 0

    @property
    def mark(self) -> Any:  # of what it is now
        return self

    def wait(self, why: str) -> None:
        """Return when that is done which is in it by now. Raises BackendError."""
        with self.queue.lock:
            number, given = self.number, self.given
        try:
            if not self.told:
                self.queue.queues.wait(Mark(self.stream, given))
        except Exception:
            self.told = True
            raise
        finally:
            self.queue.forget_done(number)


class _Starts:
    """Launches that begin at once: the work of the window's queue, beside what waits there."""

    def __init__(self, owner: CudaDriver, window: Window) -> None:
        self._owner = owner
        self._window = window

    def batch(self) -> _Batch:
        """The batch that the next launch comes to. The window's lock is held."""
        window = self._window
        works = window._works
        if works:
            last = works[-1]
            if type(last) is _Batch and len(last.kept) < _MOST_IN_BATCH and not last.told:
                return last
            window.forget_done()
            if len(works) > _MOST_BATCHES:
                works[0].wait("full")
        made = _Batch(window, self._owner.stream)
        window.remember(made)
        return made


def _starter(launches: _Launches, window: Window) -> Callable[[_Ready, Sequence[Any]], Work]:
    """A function that begins a launch and gives the work that it is part of."""
    owner = launches.owner
    access, stream, head, lock = owner.access, owner.stream, launches.head, window.lock
    batch_of, enter, next_number = _Starts(owner, window).batch, access.enter, stream.next

    def start(ready: _Ready, values: Sequence[Any]) -> Work:
        if window.waiting:
            window.submit_all("at once")
        with lock:
            batch = batch_of()
            if access.lost is not None:
                access.refuse_lost()
            pushed = enter()
            try:
                result = access.launch(*head, stream.raw, ready.address, 0)
            finally:
                if pushed:
                    access.leave()
            if result[0]:
                launches.refuse(result)  # which raises
            batch.given = next_number()
            window._count = batch.number = window._count + 1
            batch.kept.append((values, ready))
        return batch

    return start


def _attempt(
    launches: _Launches, window: Window, accept: Any, accept_alone: Any
) -> Callable[..., bool | None]:
    """A function that checks and launches: it puts the start into the window, or begins.

    All that it uses is in its cells: it is called for each launch.
    """
    known, vectors, name, begin = launches.known, launches.vectors, launches.name, launches.begin
    start = _starter(launches, window)
    used = [(position, access is Access.WRITE) for position, access in vectors if access]
    unused = [position for position, access in vectors if access is None]
    locked = [position for position, _ in vectors]

    def attempt(*values: Any) -> bool | None:
        settings = window.settings
        waits = settings.enabled
        packed = accept(*values) if waits else accept_alone(*values)
        if packed is False:
            return False
        try:
            ready = known.get(packed)
            if ready is None:
                ready = launches.ready(packed, values, window if waits else None)
                if ready is None:
                    return False
            if waits:
                if len(window.waiting) >= settings.limit:
                    _make_room(window)
                work: Work = window.give(partial(begin, ready), (values, ready), name)
            else:
                work = start(ready, values)
            firsts = ready.firsts
            for position, written in used:
                value = values[position]
                uses = value._storage._uses
                first = firsts.get(position, 0)
                last = first + value._array.nbytes
                if not uses.has(first, last, written, work):
                    uses.add(first, last, written, work)
            for position in unused:
                values[position]._storage._uses.add(0, 0, False, work)
        finally:
            for position in locked:
                values[position]._storage.lock.release()
        return None

    return attempt
