"""Capture: what a block of a program launches, copies, fills and allocates becomes a graph.

`capturing` has who takes schedules: while it is not empty, `create_linear_with_vars` hands each to
the first of them, and nothing is executed. `sarek.capture()` puts a `CapturedGraph` there, and has
the launches of the block come to it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from sarek_numba.display import table
from sarek_numba.errors import GraphError
from sarek_numba.realize import picture
from sarek_numba.realize.buffers import Buffers, ExecContext
from sarek_numba.realize.data import (
    NODES,
    Call,
    CopyCall,
    CustomCall,
    LaunchInfo,
    Linear,
    ProgramCall,
    Variable,
    variables_of,
)
from sarek_numba.realize.inputs import Input, Memories, check_input, check_memory
from sarek_numba.realize.pickled import SavedMemory, restored, saved
from sarek_numba.realize.programs import Program
from sarek_numba.realize.run import Recorded, recorded_of, run_linear
from sarek_numba.realize.steps import steps_of
from sarek_numba.realize.symbols import known, symbol_of
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime import recorders
from sarek_numba.runtime.arguments import Arguments
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.graphs import dependencies
from sarek_numba.runtime.registry import Device, device
from sarek_numba.runtime.vector import Vector


class Capturer(Protocol):
    """Takes schedules instead of having them executed."""

    def add_linear(self, linear: Linear, var_vals: Mapping[str, Any]) -> None:
        """A schedule, and the values of its variables."""
        ...


capturing: list[Capturer] = []
_HEADS = ("what", "name", "of")
_entering = threading.Lock()


def create_linear_with_vars(
    calls: Iterable[Call], var_vals: Mapping[str, Any] | None = None
) -> tuple[Linear, dict[str, Any]]:
    """The schedule of some calls and the values of its variables, to be executed.

    While something captures, the first of `capturing` has them, and the schedule is empty.
    """
    linear, values = Linear(tuple(calls)), dict(var_vals or {})
    if capturing:
        capturing[0].add_linear(linear, values)
        return Linear(), values
    return linear, values


def capture(**inputs: Any) -> CapturedGraph:
    """Take down a block of launches: `with sarek.capture() as g:`, then `g.replay()`.

    Vectors and arrays of before the block are inputs, called as they are given here, or else by the
    parameter of the kernel that had them first. Raises GraphError for what is no buffer, and within
    another capture.
    """
    return CapturedGraph(inputs)


class CapturedGraph:
    """What a block did, to be done again; `linear` is its schedule, `inputs` what may be replaced.

    `g.variable("n", 1000)` in the block is a number that may be another one in each replay.
    """

    def __init__(self, named: Mapping[str, Any]) -> None:
        for name, value in named.items():
            check_memory(f"capture(): input '{name}'", value)
        self._memories = Memories(named)
        self._calls: list[Call] = []
        self._binding = Buffers()
        self._state = "new"
        self._token: Any = None
        self._device: Device | None = None
        self._graph: Linear = Linear()
        self._call = CustomCall("graph")
        self._replaying = threading.RLock()
        self._as_captured: Recorded | None = None  # if the replay before was of all as captured
        self._values: dict[str, Any] = {}
        self.variables: dict[str, Variable] = {}
        self.inputs: dict[str, Input] = {}
        self.linear = Linear()

    # --- the block --------------------------------------------------------------------------------

    def __enter__(self) -> CapturedGraph:
        if self._state != "new":
            raise GraphError(
                "this capture has taken down a block before\n  hint: sarek.capture() makes another"
            )
        if not self.try_begin():
            raise GraphError(
                "a capture is under way already, and captures do not nest\n"
                "  hint: end the outer `with sarek.capture()` first"
            )
        return self

    def try_begin(self) -> bool:
        """Begin the block, unless another capture is under way."""
        with _entering:
            if capturing:
                return False
            capturing.append(self)
        self._token = recorders.current.set(self)
        self._state = "recording"
        return True

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        recorders.current.reset(self._token)
        capturing.remove(self)
        if error is not None:
            self._state = f"ended by {type(error).__name__}"
            self._calls.clear()
            return
        self._state = "ended by GraphError"
        self._finish()
        self._state = "ready"

    def _finish(self) -> None:
        if self._device is None:
            self._device = device()
        self.inputs = self._memories.inputs()
        for name in self.variables:
            if name in self.inputs:
                raise GraphError(f"'{name}' is a variable and an input of this capture")
        self._complete(Linear(tuple(map(self._rewritten, self._calls))))

    def _complete(self, linear: Linear) -> None:
        self.linear = linear
        self._call = CustomCall("graph", linear=self.linear)
        self._graph = Linear((self._call,))
        for node, memory in self._memories.fixed():
            self._binding.bind(node, memory)

    def _rewritten(self, call: Call) -> Call:
        """A call whose nodes are parameters where these are inputs."""

        def node(value: Any) -> Any:
            return self._memories.parameter(value) if isinstance(value, NODES) else value

        match call:
            case ProgramCall(program, arguments, info):
                return ProgramCall(program, tuple(map(node, arguments)), info)
            case CopyCall(destination, source):
                return CopyCall(node(destination), node(source))
            case CustomCall(name, arguments):
                return CustomCall(name, tuple(map(node, arguments)))
            case _:
                raise AssertionError("a capture makes no other calls")

    def variable(
        self,
        name: str,
        value: int | float,
        min: int | float | None = None,
        max: int | float | None = None,
    ) -> Any:
        """A number that is `value` now, and in each replay what is given by its name.

        It may be an argument of kernels and, with arithmetic, a dimension. What Python decides by
        it in the block is decided once. `min` is 1 for ints unless it is given. Raises GraphError.
        """
        if self._state != "recording":
            raise GraphError("a variable is made inside `with sarek.capture() as g:`")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise GraphError(f"variable '{name}' is an int or a float, not {value!r}")
        if name in self.variables:
            raise GraphError(f"this capture has a variable '{name}' already")
        integral = isinstance(value, int)
        least = (1 if integral else -np.inf) if min is None else min
        most = (2**31 - 1 if integral else np.inf) if max is None else max
        variable = Variable(name, least, most)
        if not least <= value <= most:
            raise GraphError(f"variable '{name}' is {value}, and goes from {least} to {most}")
        self.variables[name] = variable
        self._values[name] = value
        return known(value, variable)

    def expose(self, vector: Vector, name: str) -> tuple[int, int] | None:
        """See `Memories.expose`; within the block."""
        return self._memories.expose(vector, name)

    def exposed_name(self, vector: Vector) -> str | None:
        """See `Memories.exposed_name`."""
        return self._memories.exposed_name(vector)

    # --- see `Capturer` and `recorders.Recorder`

    def add_linear(self, linear: Linear, var_vals: Mapping[str, Any]) -> None:
        """Calls of the block."""
        self._calls += linear.calls

    def launched(
        self,
        device: Device,
        analysed: launching.Analysed,
        arguments: Arguments,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
    ) -> None:
        """See `recorders.Recorder`."""
        name = analysed.kernel.name
        if arguments.foreign:
            raise GraphError(
                f"kernel '{name}' is given memory of another library inside a capture\n"
                "  hint: copy it to a vector"
            )
        values = []
        for position, value in enumerate(arguments.given):
            label = analysed.names[position]
            is_array = position in arguments.arrays
            if is_array and not isinstance(value, Vector) and position in analysed.writes:
                raise GraphError(
                    f"kernel '{name}' writes argument '{label}', an array of the host, inside a "
                    "capture: the host would see what is not computed yet\n"
                    f"  hint: pass a vector, as sarek.vector({label}) makes one"
                )
            if is_array and isinstance(value, Vector | np.ndarray):
                values.append(self._memories.node(value, label, position in analysed.writes))
            else:
                values.append(symbol_of(value))
        launching.compile_on(device, analysed)
        self._device = self._device or device
        info = LaunchInfo(symbol_of(grid), symbol_of(block), symbol_of(shared_bytes))
        self._add(ProgramCall(Program(device, analysed), tuple(values), info))

    def copied(self, destination: Vector, source: Any) -> None:
        """See `recorders.Recorder`."""
        if isinstance(source, np.ndarray):
            self._memories.own(source)
            of = self._memories.node(source, "constant", False)
        else:
            of = self._memories.node(source, "source", False)
        self._add(CopyCall(self._memories.node(destination, "destination", True), of))

    def filled(self, destination: Vector, value: Any) -> None:
        """See `recorders.Recorder`."""
        node = self._memories.node(destination, "destination", True)
        self._add(CustomCall("fill", (node, symbol_of(value))))

    def allocated(self, vector: Vector, shape: Any) -> None:
        """See `recorders.Recorder`."""
        axes = symbol_of(shape if isinstance(shape, tuple | list) else (shape,))
        for axis in axes:
            if variables_of(axis):
                raise GraphError(
                    f"the length {axis} of a vector that the block makes depends on a variable\n"
                    "  hint: make it as long as it may become, before the block or by a constant"
                )
        self._memories.own(vector)

    def _add(self, call: Call) -> None:
        create_linear_with_vars((call,), self._values)

    # --- afterwards -------------------------------------------------------------------------------

    def replay(self, *, wait: bool = False, **given: Any) -> None:
        """Do all again, with other inputs and variables by their names; others are as captured.

        Raises GraphError for an unknown name and for an input that is of another type, shape or
        layout, is read-only where it is written, or shares memory with another one; InvalidArgument
        for a variable out of its range.
        """
        if given or not self._again(wait):
            self.replay_with(given, wait)

    def _again(self, wait: bool) -> bool:
        """Do all as the time before; False, with nothing done, where more is to be looked at."""
        before = self._as_captured
        if before is None or recorders.current.get() is not None:
            return False
        with self._replaying:
            return self._as_captured is before and before.again(wait)

    def replay_with(self, given: Mapping[str, Any], wait: bool = False) -> None:
        """`replay`, with the inputs and variables in a mapping."""
        self._check_ready()
        with self._replaying:
            self._replay_with(given, wait)

    def _replay_with(self, given: Mapping[str, Any], wait: bool) -> None:
        """`replay` that looks at everything."""
        self._as_captured = None
        for name in given:
            if name not in self.inputs and name not in self.variables:
                known_names = ", ".join((*self.inputs, *self.variables)) or "none"
                raise GraphError(f"the graph has no input '{name}'; its inputs are: {known_names}")
        for name in given.keys() & self.variables.keys():
            _check_number(name, self._values[name], given[name])
        chosen = []
        for name, wanted in self.inputs.items():
            value = given.get(name, wanted.captured)
            if name in given:
                check_input(name, wanted, value)
            chosen.append(value)
        if given.keys() & self.inputs.keys():
            self._memories.check_apart(dict(zip(self.inputs, chosen, strict=True)))
        values = self._values | {n: v for n, v in given.items() if n in self.variables}
        assert self._device is not None, "the capture is over"
        run_linear(self._device, self._graph, self._binding, values, chosen, jit=True, wait=wait)
        if not given:
            self._as_captured = recorded_of(self._device, self._call, self._binding)

    @property
    def mechanism(self) -> str:
        """What did the last replay: "device", its own mechanism, "list", one by one, or ""."""
        device = self._device
        found = None if device is None else recorded_of(device, self._call, self._binding)
        return "" if found is None else found.mechanism

    def _check_ready(self) -> None:
        recorders.refuse("a graph is replayed", "replay it after the block")
        if self._state != "ready":
            what = {"new": "has taken down nothing yet", "recording": "is under way"}
            raise GraphError(
                f"the capture {what.get(self._state, self._state)}, so there is no graph to replay"
            )

    # --- pickles ----------------------------------------------------------------------------------

    def __reduce__(self) -> Any:
        """A graph of another process: see `realize.pickled`. Raises GraphError within the block."""
        recorders.refuse("a graph is pickled", "pickle it after the block")
        if self._state != "ready" or self._device is None:
            raise GraphError("only a graph that can be replayed can be pickled")
        memory = saved(self._memories, self.inputs)
        about = self._device.name, self.variables, self._values
        return CapturedGraph._restored, (self.linear, memory, *about)

    @staticmethod
    def _restored(
        linear: Linear, memory: SavedMemory, name: str, variables: Any, values: Any
    ) -> CapturedGraph:
        made = CapturedGraph({})
        made._device = device(name)
        made._memories, made.inputs = restored(memory)
        made.variables, made._values = variables, values
        made._complete(linear)
        made._state = "ready"
        return made

    # --- showing ----------------------------------------------------------------------------------

    def rows(self) -> list[tuple[str, str, str, str]]:
        """For each call its number, what it is, its buffers, and the calls that it is behind."""
        if self._state != "ready" or self._device is None:
            return []
        inputs = [wanted.captured for wanted in self.inputs.values()]
        context = ExecContext(self._values, inputs)
        steps = [steps_of(self._device, call, self._binding, context) for call in self.linear]
        behind = dependencies(steps)
        return [
            (str(k), _title(call), ", ".join(self._shown(call)), ", ".join(map(str, sorted(b))))
            for k, (call, b) in enumerate(zip(self.linear, behind, strict=True))
        ]

    def _shown(self, call: Call) -> list[str]:
        nodes: tuple[Any, ...]
        match call:
            case ProgramCall(arguments=arguments) | CustomCall(arguments=arguments):
                nodes = arguments
            case CopyCall(destination, source):
                nodes = destination, source
            case _:
                nodes = ()
        return [self._memories.name_of(n) if isinstance(n, NODES) else str(n) for n in nodes]

    def __str__(self) -> str:
        lines = [f"graph of {len(self.linear)} calls"]
        lines += [f"  input {name}: {wanted}" for name, wanted in self.inputs.items()]
        lines += [f"  variable {v}: from {v.min} to {v.max}" for v in self.variables.values()]
        for number, title, buffers, behind in self.rows():
            after = f" behind {behind}" if behind else ""
            lines.append(f"  {number}: {title}({buffers}){after}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<graph of {len(self.linear)} calls>" if self._state == "ready" else "<graph>"

    def _repr_html_(self) -> str:
        return picture.svg(self.rows()) + table(_HEADS, self._input_rows())

    def _input_rows(self) -> list[tuple[str, str, str]]:
        rows = [("input", name, str(wanted)) for name, wanted in self.inputs.items()]
        return rows + [
            ("variable", str(v), f"from {v.min} to {v.max}") for v in self.variables.values()
        ]


def _check_number(name: str, captured: int | float, value: Any) -> None:
    """Refuse a number of another kind for a variable. Raises GraphError."""
    kinds = (int,) if isinstance(captured, int) else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        what = "an int" if isinstance(captured, int) else "a float"
        raise GraphError(f"variable '{name}' was captured as {what}, and is given {value!r}")


def _title(call: Call) -> str:
    match call:
        case ProgramCall(program, _, info):
            return f"{program.name}[{_size(info.grid)}, {_size(info.block)}]"
        case CustomCall(name):
            return name
        case _:
            return "copy"


def _size(given: Any) -> str:
    axes = list(given) if isinstance(given, tuple) else [given]
    while len(axes) > 1 and type(axes[-1]) is int and axes[-1] == 1:
        axes.pop()
    return str(axes[0]) if len(axes) == 1 else f"({', '.join(map(str, axes))})"
