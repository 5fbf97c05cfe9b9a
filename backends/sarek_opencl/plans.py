"""Plans of launches on OpenCL devices, of vectors.

Machine code (`launcher_ir`) checks the arguments and gives the bytes of all parameters and the
serial numbers of the vectors' buffers that are ready. Those that are not are brought there. A plan
has a kernel object of its own: of its arguments those are set whose bytes are not those of the
launch before. A launch that may wait in the device's window does; one that is waited for is done by
machine code, if all its vectors' buffers are those of the launch before.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sarek_numba.codegen import cfamily
from sarek_numba.runtime.cache import compiled_launches
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.machine.tables import Launchers
from sarek_numba.runtime.plans import ArrayCheck, Attempt, Memory, Plan
from sarek_numba.runtime.storage import Access, Storage, ready_keys
from sarek_numba.runtime.submission import Family, Use, family_of
from sarek_numba.runtime.window import Window, hide, window_for
from sarek_numba.runtime.work import WorkQueue
from sarek_opencl import driver
from sarek_opencl.launcher_ir import FIXED, RUN

if TYPE_CHECKING:
    from sarek_opencl.runtime import OpenCLDriver, OpenCLProgram

_WORD = 8
_MOST_READY = 256  # that a plan keeps: who launches on the same vectors in turn pays once
_numbers = itertools.count()  # of plans
_FINE = bytes(_WORD)  # behind the words of a launch: nothing failed
_FUNCTIONS = ("clSetKernelArg", "clEnqueueNDRangeKernel", "clWaitForEvents", "clReleaseEvent")
hide(Path(__file__).resolve().parent)


@cache
def _launchers() -> Launchers:
    return Launchers(RUN)


class OpenCLPlans:
    """See `sarek_numba.runtime.plans.Plans`."""

    def __init__(self, owner: OpenCLDriver) -> None:
        self._owner = owner

    def takes(self, plan: Plan) -> bool:
        """Not with arrays of NumPy, which are bound anew at each launch, nor with strides."""
        return plan.has_plain_vectors

    def attempt(self, plan: Plan) -> Attempt | None:
        """One function for launches in the window and for those that are waited for."""
        if not self.takes(plan) or 0 in (*plan.grid, *plan.block):
            return None
        window, memory = window_for(self._owner), self._owner.memory
        assert memory is not None, "as every OpenCL device has"
        keys = [ready_keys(memory, queue) for queue in (window, None)]
        launches, machine = _Launches(self._owner, plan), _launchers()
        accept = machine.function(plan, ready=keys[0])
        alone = (launches.words.ctypes.data,)
        accept_alone = machine.function(plan, alone, ready=keys[1], kept=(launches,))
        if accept is None or accept_alone is None:
            return None
        return _attempt(launches, window, accept, accept_alone), None


class _Ready:
    """Arguments of a launch: their bytes, and what the kernel object is given, which are numbers
    and references to memory: a plan keeps no memory of vectors that are gone.
    """

    __slots__ = ("given", "packed", "token")

    def __init__(self, packed: bytes, given: list[Any], plan: object) -> None:
        self.packed = packed
        self.given = given
        self.token = (plan, packed)

    def argument(self, k: int) -> Any:
        """What a parameter is given, while its vector is there."""
        one: Any = self.given[k]
        return one().buffer if type(one) is weakref.ref else one  # type: ignore[union-attr] # alive


class _Launches:
    """A kernel object of a plan, and what it was given last: `words` are as in `launcher_ir`."""

    def __init__(self, owner: OpenCLDriver, plan: Plan) -> None:
        cl = driver.load()
        program: OpenCLProgram = plan.program  # type: ignore[assignment] # one of this driver
        self.owner = owner
        self.kernel = cl.Kernel(program.built, cfamily.ENTRY)
        self.name = plan.kernel
        self.plan = plan
        self.number = next(_numbers)
        name, shared = owner.record.name, plan.shared_bytes
        self.family = family_of(program, name, plan.grid, plan.block, shared)
        self.block = plan.block
        self.total = tuple(g * b for g, b in zip(plan.grid, plan.block, strict=True))
        self.known: dict[bytes, _Ready] = {}
        self.vectors = [
            (position, check.access)
            for position, check in enumerate(plan.checks)
            if isinstance(check, ArrayCheck)
        ]
        self.used = [(k, access is Access.WRITE) for k, access in self.vectors if access]
        self._fills = plan.fills
        self._memories = [k for k, fill in enumerate(plan.fills) if isinstance(fill, Memory)]
        self._serials = _WORD * len(plan.fills)  # begin there
        self.words = self._block(plan)
        self._given = self.words[FIXED + len(plan.fills) :].data.cast("B")
        self._state = self.words.data
        self.lock = threading.Lock()  # arguments belong to the kernel object
        if program.has_region:
            self.kernel.set_arg(len(plan.fills), cl.LocalMemory(max(8, plan.shared_bytes)))

    def _block(self, plan: Plan) -> npt.NDArray[np.int64]:
        sizes = [
            0 if isinstance(fill, Memory) else np.dtype(fill.type.value).itemsize
            for fill in plan.fills
        ]
        head = [0, *driver.functions(*_FUNCTIONS), self.owner.queue.int_ptr, self.kernel.int_ptr]
        head += [len(sizes), len(self.vectors), *self.total, *self.block]
        head += [0] * (FIXED - len(head))
        given = [0] * (len(sizes) + len(self.vectors) + 1)  # the last is what nothing writes
        return np.array([*head, *sizes, *given], np.int64)

    def ready(self, packed: bytes, values: Sequence[Any], queue: WorkQueue | None) -> _Ready | None:
        """What the kernel object is to be given; vectors that are not ready are brought.

        None, with the launch not counted, where a vector starts within its memory, which takes a
        buffer of its own in each launch. The vectors' locks are held. Raises BackendError.
        """
        memory = self.owner.memory
        words = np.frombuffer(packed, np.int64)
        given: list[Any] = [None] * len(self._fills)
        for k, fill in enumerate(self._fills):
            if isinstance(fill, Memory):
                storage = values[fill.argument]._storage
                if storage.start != words[k] and storage.host.size:
                    compiled_launches[0] -= 1
                    return None
            else:
                given[k] = words[k:].view(np.dtype(fill.type.value))[0]
        serials = words[len(self._fills) :].copy()  # and a word that is 0
        for k, (position, access) in enumerate(self.vectors):
            if not serials[k]:
                value = values[position]
                try:
                    serials[k] = value._storage.bring(memory, value._array.nbytes, access, queue)
                except BaseException:
                    compiled_launches[0] -= 1
                    raise
        for k in self._memories:
            argument = self._fills[k].argument  # type: ignore[union-attr] # it is Memory
            given[k] = weakref.ref(values[argument]._storage.held(memory))
        packed = packed[: self._serials] + serials.tobytes()
        found = self.known.get(packed)
        if found is None:
            if len(self.known) >= _MOST_READY:
                self.known.clear()
            found = self.known[packed] = _Ready(packed, given, self.number)
        return found

    def begin(self, queue: Any, ready: _Ready, values: Sequence[Any] = ()) -> Any:
        """Give the launch to a queue. Raises BackendError."""
        driver.refuse_lost(self.owner.device)
        try:
            with self.lock:
                is_known, self._state[0] = self._state[0], 0
                if not is_known or self._given != ready.packed:
                    self._set_arguments(ready, bool(is_known))
                mark = driver.enqueue(queue, self.kernel, self.total, self.block)
                self._state[0] = 1  # machine code may change arguments from here on
                return mark
        except driver.load().Error as error:
            raise driver.failure(error, "a launch", self.owner.device) from error

    def _set_arguments(self, ready: _Ready, is_known: bool) -> None:
        """Those that are not what they were; a buffer in the place of another may look like it."""
        before = bytes(self._given) if is_known else None
        packed, set_arg = ready.packed, self.kernel.set_arg
        for k in range(len(ready.given)):
            first, last = _WORD * k, _WORD * k + _WORD
            if before is None or packed[first:last] != before[first:last]:
                set_arg(k, ready.argument(k))
        if before is None or packed[self._serials :] != before[self._serials :]:
            for k in self._memories:
                set_arg(k, ready.argument(k))
        self._given[:] = packed

    def failed(self, event: int) -> None:
        """Raise what a launch failed with while machine code waited for it. Raises cl.Error."""
        driver.load().Event.from_int_ptr(event, retain=False).wait()


def _make_room(window: Window) -> None:
    """Raises what a launch before this one failed with, which is not counted then."""
    try:
        window.make_room()
    except BaseException:
        compiled_launches[0] -= 1
        raise


class _Waiting(partial[Any]):
    """See `sarek_numba.runtime.submission.Joinable`: `_Launches.begin` with its arguments, and the
    values of the launch behind them. What it tells is made when the window is submitted.
    """

    __slots__ = ()

    @property
    def family(self) -> Family | str:
        """As every launch of the plan."""
        family: Family | str = self.args[0].family
        return family

    @property
    def grid(self) -> Dimensions:
        """As every launch of the plan."""
        grid: Dimensions = self.args[0].plan.grid
        return grid

    @property
    def arguments(self) -> list[Any]:
        """Those that are ready."""
        ready: _Ready = self.args[2]
        return [ready.argument(k) for k in range(len(ready.given))]

    @property
    def token(self) -> object:
        """The plan and what it is given, by serial numbers of buffers."""
        return self.args[2].token

    @property
    def uses(self) -> list[Use]:
        """The whole vectors."""
        launches, _, _, values = self.args
        given = [(values[k], written) for k, written in launches.used]
        return [Use(v._storage, 0, v._array.nbytes, written, None) for v, written in given]

    def note(self, numbers: dict[Storage, int], pattern: list[int]) -> None:
        """See `sarek_numba.runtime.submission.note_use`, which is here in place."""
        launches, _, _, values = self.args
        for k, written in launches.used:
            value = values[k]
            number = numbers.setdefault(value._storage, len(numbers))
            last = value._array.nbytes
            pattern += (number, 0, ~last if written else last)

    def begin(self) -> None:
        """Nothing: the vectors are there."""

    def end(self) -> bool:
        """Nothing: vectors begin their memory."""
        return False


def _attempt(
    launches: _Launches, window: Window, accept: Any, accept_alone: Any
) -> Callable[..., bool | None]:
    """A function that checks and launches: it puts the start into the window, or waits.

    All that it uses is in its cells: it is called for each launch.
    """
    owner, known, vectors, name = launches.owner, launches.known, launches.vectors, launches.name
    begin, start = launches.begin, _Launches.begin
    queue, cl = owner.queue, driver.load()
    used = launches.used
    unused = [position for position, access in vectors if access is None]
    locked = [position for position, _ in vectors]

    def attempt(*values: Any) -> bool | None:
        settings = window.settings
        waits = settings.enabled
        packed = accept(*values) if waits else accept_alone(*values)
        if packed is False or packed is None:
            return packed
        try:
            if waits:
                ready = known.get(packed) or launches.ready(packed, values, window)
                if ready is None:
                    return False
                if len(window.waiting) >= settings.limit:
                    _make_room(window)
                begins = _Waiting(start, launches, queue, ready, values)
                work = window.give(begins, (values, ready), name)
                for position, written in used:
                    value = values[position]
                    value._storage._uses.add(0, value._array.nbytes, written, work)
                for position in unused:
                    values[position]._storage._uses.add(0, 0, False, work)
                return None
            if packed[-_WORD:] != _FINE:
                launches.failed(int.from_bytes(packed[-_WORD:], "little"))
                return None
            ready = launches.ready(packed, values, None)
            if ready is None:
                return False
            begin(queue, ready).wait()
        except cl.Error as error:
            raise driver.failure(error, "a launch", owner.device) from error
        finally:
            for position in locked:
                values[position]._storage.lock.release()
        return None

    return attempt
