"""Run a schedule: `run_linear`.

Calls are done in order. A call of the custom function "graph" records its schedule when it first
runs with some `Buffers`, and replays it after: of what it does only that is looked at again which
depends on an input, a variable or a seeded buffer that is another one now.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sarek_numba.errors import InvalidArgument
from sarek_numba.realize.buffers import Buffers, ExecContext
from sarek_numba.realize.call_list import CallList, do_step
from sarek_numba.realize.compile import ToProgram, compile_linear
from sarek_numba.realize.data import Call, CustomCall, Linear, SliceCall
from sarek_numba.realize.steps import Inputs, inputs_of, same_key, steps_of
from sarek_numba.runtime import telemetry
from sarek_numba.runtime.graphs import Step
from sarek_numba.runtime.nodes import RecordsGraphs
from sarek_numba.runtime.recorded import RecordedGraph, record
from sarek_numba.runtime.registry import Device, device


@dataclass(slots=True)
class GraphStatistics:
    """How often graphs were launched, recordings included, since the program began."""

    launches: int = 0


statistics = GraphStatistics()


def run_linear(
    which: str | Device | None,
    linear: Linear,
    binding: Buffers | None = None,
    var_vals: Mapping[str, Any] | None = None,
    inputs: Sequence[Any] = (),
    jit: bool = False,
    wait: bool = False,
    to_program: ToProgram | None = None,
) -> Buffers:
    """Do the calls of a schedule in order on a device; gives the buffers that it ran with.

    Kernels are compiled first, by `to_program` if that is given, unless `jit` says that they are.
    With `wait`, and where SAREK_DEBUG is 2 or more, each call is waited for. Raises InvalidArgument
    as `resolve_buffer` does, for a kernel that is not compiled, an unknown custom function, and a
    variable without a value; LaunchError, CapabilityError, BackendError, OracleError.
    """
    target = device(which)
    buffers = Buffers() if binding is None else binding
    wait = wait or telemetry.level("execute") >= telemetry.TIMES
    context = ExecContext(dict(var_vals or {}), tuple(inputs), jit, wait)
    ready = linear if jit else _compiled(target, linear, buffers, to_program)
    for call in ready:
        _run(target, call, buffers, context)
    return buffers


def _compiled(
    target: Device, linear: Linear, buffers: Buffers, to_program: ToProgram | None
) -> Linear:
    """The schedule compiled, once for these buffers: the graphs in it are the same objects."""
    key = "compiled", id(linear), target, to_program
    if key not in buffers.recorded:
        buffers.recorded[key] = linear, compile_linear(target, linear, to_program)
    made: Linear = buffers.recorded[key][1]
    return made


def _run(target: Device, call: Call, buffers: Buffers, context: ExecContext) -> None:
    if isinstance(call, CustomCall) and call.name == "graph":
        _run_graph(target, call, buffers, context)
    else:
        for step in steps_of(target, call, buffers, context):
            do_step(step)
    if context.wait:
        target.synchronize()


_NOTHING: Mapping[int, Sequence[Step]] = MappingProxyType({})  # has changed


# --- graphs ---------------------------------------------------------------------------------------


class Recorded:
    """A graph, and what each of its calls was made of when it was recorded or last changed."""

    def __init__(
        self, target: Device, call: CustomCall, linear: Linear, buffers: Buffers,
        context: ExecContext,
    ) -> None:  # fmt: skip
        self.lock = threading.RLock()  # held while it changes and runs
        self.call = call  # kept, so that no other has its identity
        self.target = target
        self.calls = linear.calls
        self._inputs: list[Inputs] = []
        self._keys: list[tuple[Any, ...]] = []
        self._groups: list[tuple[Step, ...]] = []
        for each in self.calls:
            self._groups.append(steps_of(target, each, buffers, context))
            self._inputs.append(inputs_of(each, context))
            self._keys.append(self._inputs[-1].key(buffers, context))
        self._last = self._state(buffers, context)
        self._records = self._has_mechanism()
        self._graph: RecordedGraph | None = None
        self._list: CallList | None = None
        self._pending: dict[str, set[int]] = {"graph": set(), "list": set()}  # groups to be told of
        self._tries = self._records
        self._listed = False

    def _has_mechanism(self) -> bool:
        """Whether one device that has a mechanism for graphs does all."""
        return isinstance(self.target.driver, RecordsGraphs) and all(
            step.device is self.target for group in self._groups for step in group
        )

    @staticmethod
    def _state(buffers: Buffers, context: ExecContext) -> tuple[Any, ...]:
        """The same as long as nothing that steps are made of is another one."""
        return (buffers.changes, *context.inputs, *context.var_vals, *context.var_vals.values())

    def change(self, buffers: Buffers, context: ExecContext) -> None:
        """Look again at the calls whose inputs are others now. Raises InvalidArgument."""
        if same_key(self._state(buffers, context), self._last):
            return
        found: dict[int, tuple[Step, ...]] = {}
        fresh: dict[int, tuple[Any, ...]] = {}
        for number, (call, inputs) in enumerate(zip(self.calls, self._inputs, strict=True)):
            key = inputs.key(buffers, context)
            if same_key(key, self._keys[number]):
                continue
            steps = steps_of(self.target, call, buffers, context)
            fresh[number] = key
            if not isinstance(call, SliceCall):
                found[number] = steps
        for number, key in fresh.items():  # all of it was right
            self._keys[number] = key
        self._last = self._state(buffers, context)
        for number, steps in found.items():
            self._groups[number] = steps
        for pending in self._pending.values():
            pending.update(found)
        self._tries |= bool(found)

    def again(self, wait: bool) -> bool:
        """Do all calls as the time before, by the device's mechanism; False if that cannot be."""
        graph = self._graph
        if graph is None or self._pending["graph"] or telemetry.is_measuring():
            return False
        if not graph.replay(_NOTHING, wait):
            return False
        statistics.launches += 1
        self._listed = False
        return True

    def run(self, wait: bool) -> None:
        """Do all calls: by the device's mechanism if it has one for them, else one by one."""
        statistics.launches += 1
        if not telemetry.is_measuring():
            if self._graph is None and self._tries and self._records:
                self._graph = record(self.target.driver, self._groups)
                self._pending["graph"].clear()
            self._tries = False  # until something else is asked
            if self._graph is not None:
                if self._graph.replay(self._told("graph"), wait):
                    self._pending["graph"].clear()
                    self._listed = False
                    return
                self._graph = None
        if self._list is None:
            self._list = CallList(self._groups)
        else:
            self._list.change(self._told("list"))
        self._pending["list"].clear()
        self._listed = True
        self._list.replay(wait)

    @property
    def mechanism(self) -> str:
        """What did the last run: "device" or "list"."""
        return "list" if self._listed else "device"

    def _told(self, who: str) -> dict[int, tuple[Step, ...]]:
        return {number: self._groups[number] for number in self._pending[who]}


def recorded_of(target: Device, call: CustomCall, buffers: Buffers) -> Recorded | None:
    """What was made of a graph when it ran with some buffers."""
    found: Recorded | None = buffers.recorded.get(("graph", id(call), target))
    return found


def _run_graph(target: Device, call: CustomCall, buffers: Buffers, context: ExecContext) -> None:
    if call.linear is None:
        raise InvalidArgument("custom function 'graph' has no schedule to record")
    key = "graph", id(call), target
    recorded = recorded_of(target, call, buffers)
    if recorded is None:
        recorded = Recorded(target, call, call.linear, buffers, context)
        buffers.recorded[key] = recorded
    with recorded.lock:
        recorded.change(buffers, context)
        recorded.run(context.wait)
