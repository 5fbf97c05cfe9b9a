"""Plans of launches on the native device: `sarek_numba.runtime.machine` with `launcher_ir`.

The words of the table for the device are the kernel's address; blocks, and how many of them run
before the time is looked at; bytes of scratch; nanoseconds of work that are worth waking threads
for; and what a kernel is given as `launch`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from sarek_native.launcher_ir import RUN
from sarek_native.runtime import SCRATCH_ON_STACK, NativeProgram
from sarek_numba.runtime.machine.tables import Launchers, vectors_of
from sarek_numba.runtime.plans import Attempt, Plan


class NativePlans:
    """See `sarek_numba.runtime.plans.Plans`. The launcher is compiled for the first plan."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @cached_property
    def _launchers(self) -> Launchers:
        return Launchers(RUN)

    def attempt(self, plan: Plan) -> Attempt | None:
        """See `sarek_numba.runtime.plans.Plans`."""
        program = plan.program
        assert isinstance(program, NativeProgram), "the driver's own"
        shaped = program.ready_for(plan.grid, plan.block, plan.shared_bytes)
        first = 0 if shaped.size > SCRATCH_ON_STACK else shaped.first
        run = (shaped.address, shaped.blocks, first, shaped.size, shaped.worth)
        with self._lock:
            launchers = self._launchers
        function = launchers.function(plan, run, shaped.launch, kept=(shaped,))
        if function is None:
            return None
        vectors = vectors_of(plan)

        def finish(arguments: Sequence[Any], packed: bytes) -> None:
            try:
                shaped.go_on(packed)
            finally:
                for position in vectors:
                    arguments[position]._storage.lock.release()

        return function, finish

    def acceptor(self, plan: Plan, ready: Mapping[Any, Any]) -> Callable[..., Any] | None:
        """See `sarek_numba.runtime.plans.Acceptors`: no first blocks, so that nothing runs."""
        with self._lock:
            launchers = self._launchers
        return launchers.function(plan, ready=ready)
