"""From calls to steps: what a call does with the memory that its nodes stand for.

A call whose arguments are on several devices is several steps, one for each position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sarek_numba.errors import InvalidArgument
from sarek_numba.realize.buffers import (
    Buffers,
    Concrete,
    ExecContext,
    MultiBuffer,
    Resolved,
    describe_node,
    resolve_buffer,
)
from sarek_numba.realize.compile import on_device
from sarek_numba.realize.copies import check_pair
from sarek_numba.realize.data import (
    DEVICE_NUMBER,
    NODES,
    Buffer,
    Call,
    CopyCall,
    CustomCall,
    KernelCall,
    LaunchInfo,
    Node,
    Param,
    ProgramCall,
    SliceCall,
    View,
    leaves_of,
    substitute,
    variables_of,
)
from sarek_numba.realize.programs import Program
from sarek_numba.runtime.graphs import CopyStep, FillStep, LaunchStep, Step
from sarek_numba.runtime.registry import Device, device
from sarek_numba.runtime.vector import Vector


def steps_of(which: Device, call: Call, binding: Buffers, context: ExecContext) -> tuple[Step, ...]:
    """What a call does. A slice binds a view, and is no step. Raises InvalidArgument."""
    match call:
        case ProgramCall():
            return _launches(call, binding, context)
        case CopyCall():
            return _copies(which, call, binding, context)
        case SliceCall():
            _bind_slice(call, binding, context)
            return ()
        case CustomCall("fill", (node, value)):
            found = resolve_buffer(binding, context, node)
            number = substitute(value, context.var_vals)
            shards, devices = _shards(which, found)
            return tuple(FillStep(d, s, number) for d, s in zip(devices, shards, strict=True))
        case KernelCall(kernel):
            raise InvalidArgument(
                f"kernel '{kernel.name}' is not compiled, and jit=True says that it is\n"
                "  hint: compile_linear compiles a schedule"
            )
        case CustomCall(name):
            what = "has other arguments" if name == "fill" else "stands within a graph"
            if name not in CustomCall.FUNCTIONS:
                known = ", ".join(CustomCall.FUNCTIONS)
                raise InvalidArgument(f"there is no custom function '{name}'; there are: {known}")
            raise InvalidArgument(f"custom function '{name}' {what}")


# --- launches -------------------------------------------------------------------------------------


def _launches(call: ProgramCall, binding: Buffers, context: ExecContext) -> tuple[Step, ...]:
    values = [
        resolve_buffer(binding, context, value) if isinstance(value, NODES) else value
        for value in call.arguments
    ]
    count = _positions(f"kernel '{call.program.name}'", values)
    if count is None:
        return _launch(call.program, values, call.info, context)
    steps: list[Step] = []
    for position in range(count):
        own = [v.shards[position] if isinstance(v, MultiBuffer) else v for v in values]
        bound = {**context.var_vals, DEVICE_NUMBER.name: position}
        named = [v.devices[position] for v in values if isinstance(v, MultiBuffer)]
        where = next((name for name in named if name is not None), None)
        program = call.program if where is None else on_device(call.program, device(where))
        steps += _launch(program, own, call.info, replace(context, var_vals=bound))
    return tuple(steps)


def _positions(subject: str, values: Sequence[Any]) -> int | None:
    """On how many devices the buffers among some values are; None for one.

    Raises InvalidArgument for different numbers of devices.
    """
    counts = {
        len(value) if isinstance(value, MultiBuffer) else 1
        for value in values
        if isinstance(value, MultiBuffer | Vector | np.ndarray)
    }
    if not any(isinstance(value, MultiBuffer) for value in values):
        return None
    if len(counts) > 1:
        raise InvalidArgument(
            f"{subject} is given buffers on {' and '.join(map(str, sorted(counts)))} devices\n"
            "  hint: all of them are on as many devices"
        )
    return counts.pop()


def _launch(
    program: Program, values: Sequence[Any], info: LaunchInfo, context: ExecContext
) -> tuple[Step, ...]:
    known = context.var_vals
    arguments = program.bind([substitute(value, known) for value in values])
    grid, block = (_sizes(given, known) for given in (info.grid, info.block))
    if 0 in grid and variables_of(info.grid):
        return ()  # no threads, as of forall(0)
    sizes = program.check(arguments, grid, block, substitute(info.shared_bytes, known))
    return (LaunchStep(program.device, program.analysed, arguments, *sizes),)


def _sizes(given: Any, var_vals: Any) -> tuple[Any, ...]:
    axes = given if isinstance(given, tuple | list) else (given,)
    return tuple(substitute(axis, var_vals) for axis in axes)


# --- copies, slices -------------------------------------------------------------------------------


def _copies(
    which: Device, call: CopyCall, binding: Buffers, context: ExecContext
) -> tuple[Step, ...]:
    destination = resolve_buffer(binding, context, call.destination)
    source = resolve_buffer(binding, context, call.source)
    subject = f"copy to {describe_node(call.destination)}"
    if isinstance(destination, MultiBuffer) != isinstance(source, MultiBuffer):
        raise InvalidArgument(
            f"{subject}: one of the buffers is on several devices, the other is not\n"
            "  hint: Select(node, i) is what one of them has"
        )
    to, devices = _shards(which, destination, _device_of(call.destination))
    of, _ = _shards(which, source)
    if len(to) != len(of):
        raise InvalidArgument(
            f"{subject}: the destination is on {len(to)} devices, the source on {len(of)}"
        )
    for left, right in zip(to, of, strict=True):
        check_pair(subject, left, right)
    return tuple(CopyStep(*each) for each in zip(devices, to, of, strict=True))


def _shards(
    which: Device, found: Resolved, where: str | None = None
) -> tuple[tuple[Concrete, ...], tuple[Device, ...]]:
    if not isinstance(found, MultiBuffer):
        return (found,), (which if where is None else device(where),)
    return found.shards, tuple(which if d is None else device(d) for d in found.devices)


def _device_of(node: Node) -> str | None:
    """Where a node's buffer lives, if that is said of it."""
    match node:
        case Buffer(device=str() as name):
            return name
        case View(source=source):
            return _device_of(source)
        case _:
            return None


def _bind_slice(call: SliceCall, binding: Buffers, context: ExecContext) -> None:
    view = View(call.source, call.offset, call.size)
    binding.bind(call.target, resolve_buffer(binding, context, view))


# --- what a call depends on -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the steps of a call are made of, beside the call: inputs, buffers, variables."""

    slots: tuple[int, ...]
    buffers: tuple[Buffer, ...]
    variables: tuple[str, ...]

    def key(self, binding: Buffers, context: ExecContext) -> tuple[Any, ...]:
        """Another one if the steps may be others. What it names must live as long as it is kept."""
        inputs = context.inputs
        return (
            *[inputs[slot] if slot < len(inputs) else None for slot in self.slots],
            *[binding.revision(node) for node in self.buffers],
            *[context.var_vals.get(name) for name in self.variables],
        )


def inputs_of(call: Call, context: ExecContext) -> Inputs:
    """What a call depends on, with what it gets through inputs that are nodes."""
    match call:
        case (
            ProgramCall(arguments=arguments, info=info) | KernelCall(arguments=arguments, info=info)
        ):
            values: tuple[Any, ...] = (*arguments, info.grid, info.block, info.shared_bytes)
        case SliceCall(source=source, offset=offset):
            values = source, offset
        case CopyCall(destination, source):
            values = destination, source
        case CustomCall(arguments=arguments):
            values = arguments
    leaves = [leaf for value in values if isinstance(value, NODES) for leaf in leaves_of(value)]
    slots = tuple(leaf.slot for leaf in leaves if isinstance(leaf, Param))
    buffers = [leaf for leaf in leaves if isinstance(leaf, Buffer)]
    for slot in slots:
        given = context.inputs[slot] if slot < len(context.inputs) else None
        if isinstance(given, NODES):
            buffers += [leaf for leaf in leaves_of(given) if isinstance(leaf, Buffer)]
    names = frozenset().union(*(variables_of(v) for v in values if not isinstance(v, NODES)))
    return Inputs(slots, tuple(buffers), tuple(sorted(names - {DEVICE_NUMBER.name})))


def same_key(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether two keys of `Inputs` are of the same objects and numbers."""
    return len(left) == len(right) and all(
        a is b or (type(a) is type(b) and isinstance(a, int | float | str) and a == b)
        for a, b in zip(left, right, strict=True)
    )
