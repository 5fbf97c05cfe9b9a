"""Plans of launches on Vulkan devices, of vectors.

The machine code of the native device, where there is any, checks the arguments and gives the bytes
of all parameters and the serial numbers of the vectors' buffers that are ready. Those that are not
are brought there. What is pushed for bytes that were seen before is known. A launch that may wait
in the device's window does.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.runtime.cache import compiled_launches
from sarek_numba.runtime.plans import Acceptors, ArrayCheck, Attempt, Memory, Plan
from sarek_numba.runtime.registry import acceptors
from sarek_numba.runtime.storage import Access, ready_keys
from sarek_numba.runtime.window import Window, hide, window_for
from sarek_numba.runtime.work import WorkQueue
from sarek_vulkan.queues import Lane, Mark

if TYPE_CHECKING:
    from sarek_vulkan.runtime import VulkanDriver, VulkanProgram

_WORD = 8
hide(Path(__file__).resolve().parent)


class VulkanPlans:
    """See `sarek_numba.runtime.plans.Plans`."""

    def __init__(self, owner: VulkanDriver) -> None:
        self._owner = owner

    def takes(self, plan: Plan) -> bool:
        """Not with arrays of NumPy, which are bound anew at each launch."""
        return all(check.vector for check in plan.checks if isinstance(check, ArrayCheck))

    def attempt(self, plan: Plan) -> Attempt | None:
        """One function for launches in the window and for those that are waited for."""
        machine = acceptors()
        if machine is None or not self.takes(plan):
            return None
        window, memory = window_for(self._owner), self._owner.memory
        assert memory is not None, "as every Vulkan device has"
        keys = [ready_keys(memory, queue) for queue in (window, None)]
        accept, accept_alone = (machine.acceptor(plan, key) for key in keys)
        if accept is None or accept_alone is None or 0 in (*plan.grid, *plan.block):
            return None
        return _attempt(_Launches(self._owner, plan, machine), window, accept, accept_alone), None


class _Ready:
    """The block of arguments of a launch."""

    __slots__ = ("__weakref__", "block")

    def __init__(self, block: bytes) -> None:
        self.block = block


class _Launches:
    """The pipeline of a plan, and the arguments of its launches that live."""

    def __init__(self, owner: VulkanDriver, plan: Plan, machine: Acceptors) -> None:
        self._machine = machine  # whose code the attempt calls, as long as there is one
        program: VulkanProgram = plan.program  # type: ignore[assignment] # one of this driver
        self.owner = owner
        self.program = program
        self.pipeline = program.pipeline(plan.block, plan.shared_bytes)
        self.name = plan.kernel
        self.grid = plan.grid
        self.known: weakref.WeakValueDictionary[bytes, _Ready] = weakref.WeakValueDictionary()
        self.vectors = [
            (position, check.access)
            for position, check in enumerate(plan.checks)
            if isinstance(check, ArrayCheck)
        ]
        self._fills = plan.fills
        self._serials = _WORD * len(plan.fills)  # begin there

    def ready(self, packed: bytes, values: Sequence[Any], queue: WorkQueue | None) -> _Ready | None:
        """The arguments of a launch; vectors that are not ready are brought.

        None, with the launch not counted, where a vector starts within its memory. The vectors'
        locks are held. Raises BackendError.
        """
        memory = self.owner.memory
        words = np.frombuffer(packed, np.int64)
        for k, fill in enumerate(self._fills):
            if isinstance(fill, Memory):
                storage = values[fill.argument]._storage
                if storage.start != words[k] and storage.host.size:
                    compiled_launches[0] -= 1
                    return None
        serials = words[len(self._fills) :].copy()
        for k, (position, access) in enumerate(self.vectors):
            if not serials[k]:
                value = values[position]
                try:
                    serials[k] = value._storage.bring(memory, value._array.nbytes, access, queue)
                except BaseException:
                    compiled_launches[0] -= 1
                    raise
        packed = packed[: self._serials] + serials.tobytes()
        found = self.known.get(packed)
        if found is None:
            given = [
                values[fill.argument]._storage.held(memory).address
                if isinstance(fill, Memory)
                else words[k:].view(np.dtype(fill.type.value))[0]
                for k, fill in enumerate(self._fills)
            ]
            found = self.known[packed] = _Ready(self.program.packed(given))
        return found

    def begin(self, lane: Lane, ready: _Ready) -> Mark:
        """Give the launch to a lane. Raises BackendError."""
        return self.program.record(lane, self.pipeline, self.grid, ready.block)


def _make_room(window: Window) -> None:
    """Raises what a launch before this one failed with, which is not counted then."""
    try:
        window.make_room()
    except BaseException:
        compiled_launches[0] -= 1
        raise


def _attempt(
    launches: _Launches, window: Window, accept: Any, accept_alone: Any
) -> Callable[..., bool | None]:
    """A function that checks and launches: it puts the start into the window, or waits.

    All that it uses is in its cells: it is called for each launch.
    """
    known, vectors, name = launches.known, launches.vectors, launches.name
    begin, lane = launches.begin, launches.owner.lane
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
            ready = known.get(packed) or launches.ready(packed, values, window if waits else None)
            if ready is None:
                return False
            if not waits:
                lane.wait(begin(lane, ready))
                return None
            if len(window.waiting) >= settings.limit:
                _make_room(window)
            work = window.give(partial(begin, lane, ready), (values, ready), name)
            for position, written in used:
                value = values[position]
                value._storage._uses.add(0, value._array.nbytes, written, work)
            for position in unused:
                values[position]._storage._uses.add(0, 0, False, work)
        finally:
            for position in locked:
                values[position]._storage.lock.release()
        return None

    return attempt
