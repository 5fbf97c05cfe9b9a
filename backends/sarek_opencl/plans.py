"""Plans of launches on OpenCL devices, of vectors that are on the device already.

The machine code of the native device, where there is any, checks the arguments and gives the bytes
of all parameters and the serial numbers of the vectors' buffers. A plan has a kernel object of its
own: while the bytes are those of the launch before, its arguments are set already.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.codegen import cfamily
from sarek_numba.runtime.cache import compiled_launches
from sarek_numba.runtime.plans import ArrayCheck, Attempt, Memory, Plan
from sarek_numba.runtime.registry import acceptors
from sarek_opencl import driver

if TYPE_CHECKING:
    from sarek_opencl.runtime import OpenCLDriver, OpenCLProgram


class OpenCLPlans:
    """See `sarek_numba.runtime.plans.Plans`."""

    def __init__(self, owner: OpenCLDriver) -> None:
        self._owner = owner

    def attempt(self, plan: Plan) -> Attempt | None:
        """None with arrays of NumPy, which are bound anew at each launch."""
        if any(isinstance(check, ArrayCheck) and not check.vector for check in plan.checks):
            return None
        machine = acceptors()
        memory = self._owner.memory
        accept = machine and machine.acceptor(plan, (memory, False), (memory, True))
        if not accept:
            return None
        return _attempt(self._owner, plan, accept), None


class _Arguments:
    """A kernel object of a plan, and the bytes of the arguments that it has."""

    def __init__(self, owner: OpenCLDriver, plan: Plan) -> None:
        cl = driver.load()
        program: OpenCLProgram = plan.program  # type: ignore[assignment] # one of this driver
        self.kernel = cl.Kernel(program.built, cfamily.ENTRY)
        self.packed: bytes | None = None
        self._fills = plan.fills
        self._memory = owner.memory
        self._region = [cl.LocalMemory(max(8, plan.shared_bytes))] if program.has_region else []

    def set(self, packed: bytes, values: Sequence[Any]) -> bool:
        """Set all arguments. False, with the launch not counted, where a vector starts within its
        memory, which takes a buffer of its own in each launch.
        """
        self.packed = None
        words = np.frombuffer(packed, np.int64)
        given: list[Any] = []
        for position, fill in enumerate(self._fills):
            if not isinstance(fill, Memory):
                given.append(words[position:].view(np.dtype(fill.type.value))[0])
                continue
            storage = values[fill.argument]._storage
            held = storage.held(self._memory)
            if storage.start != words[position] and storage.host.size:
                compiled_launches[0] -= 1
                return False
            given.append(held.buffer)
        self.kernel.set_args(*given, *self._region)
        self.packed = packed
        return True


def _attempt(owner: OpenCLDriver, plan: Plan, accept: Any) -> Callable[..., bool | None]:
    """A function that checks, sets the arguments that are not set yet, launches and waits.

    All that it uses is in its cells: it is called for each launch.
    """
    cl = driver.load()
    arguments = _Arguments(owner, plan)
    kernel, queue, lock = arguments.kernel, owner.queue, threading.Lock()
    enqueue, block = cl.enqueue_nd_range_kernel, plan.block
    total = tuple(g * b for g, b in zip(plan.grid, plan.block, strict=True))
    vectors = [k for k, check in enumerate(plan.checks) if isinstance(check, ArrayCheck)]

    def attempt(*values: Any) -> bool | None:
        packed = accept(*values)
        if packed is False:
            return False
        try:
            with lock:
                if packed != arguments.packed and not arguments.set(packed, values):
                    return False
                event = enqueue(queue, kernel, total, block)
            event.wait()
        except cl.Error as error:
            raise driver.failure(error, "a launch", owner.device) from error
        finally:
            for position in vectors:
                values[position]._storage.lock.release()
        return None

    return attempt
