"""Launches that a host function does instead of generated code: see `sarek_numba.ir.native`.

The function gets one argument for each of the user's: an array of one axis with its length, or a
number of 32 or 64 bits. It works on the memory of the host, which is brought up to date before and
counts as written after. What it raises goes to whoever launched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from contextlib import AbstractContextManager
from typing import Any, cast

import numpy as np

from sarek_numba.errors import ArgumentTypeError, InvalidArgument
from sarek_numba.ir.native import (
    NativeArg,
    NativeFloat32,
    NativeFloat64,
    NativeFunction,
    NativeInt32,
    NativeInt64,
    numpy_vec,
)
from sarek_numba.ir.nodes import ParamDecl
from sarek_numba.ir.types import ArrayInfo, Scalar
from sarek_numba.runtime import recorders, telemetry
from sarek_numba.runtime.arguments import Arguments, Kind, PythonNumber, describe, in_words
from sarek_numba.runtime.cache import count
from sarek_numba.runtime.clock import Clock
from sarek_numba.runtime.columns import Placement
from sarek_numba.runtime.device import Bytes, DeviceMemory, Dimensions, Driver
from sarek_numba.runtime.dimensions import check_limits, check_shared, dimensions, shared_size
from sarek_numba.runtime.foreign import placed
from sarek_numba.runtime.memory import AnyArray, bound_regions, repeats_elements
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.stream import check_stream

_NUMBERS: dict[Scalar, Callable[[Any], NativeArg]] = {
    Scalar.INT32: lambda value: NativeInt32(np.int32(value)),
    Scalar.INT64: lambda value: NativeInt64(np.int64(value)),
    Scalar.FLOAT32: lambda value: NativeFloat32(_narrow(value)),
    Scalar.FLOAT64: lambda value: NativeFloat64(np.float64(value)),
}
_OF_PYTHON = {PythonNumber.INT: Scalar.INT32, PythonNumber.FLOAT: Scalar.FLOAT32}


def runs_host_functions(target: Device) -> bool:
    """Whether a device calls host functions."""
    return target.record.model == "direct"


def launch_host_function(
    target: Device,
    name: str,
    function: NativeFunction,
    values: Sequence[Any],
    block: Any,
    grid: Any,
    shared_bytes: int,
    stream: object,
) -> None:
    """Check a launch of which nothing is declared, then call the function.

    All arrays count as read, and those that are not read-only as written. A Python int is an int32
    and a Python float a float32. Raises ArgumentTypeError, InvalidArgument, InvalidDimensions,
    StreamError.
    """
    telemetry.begin()
    names = [f"argument {k}" for k in range(len(values))]
    arguments = describe(name, names, values, (None,) * len(values))
    placed(name, names, arguments.foreign, target)
    slots = [_slot(name, *of) for of in zip(names, arguments.kinds, strict=True)]
    blocks, threads = dimensions(name, "grid", grid), dimensions(name, "block", block)
    shared = shared_size(name, shared_bytes)
    check_limits(name, blocks, threads, target.record)
    check_stream(name, stream, target)
    check_shared(name, 0, shared, target.record)
    arrays = [arguments.values[position] for position in arguments.arrays]
    written = {k for k, array in enumerate(arrays) if array.flags.writeable}
    for place in sorted(written):
        if repeats_elements(arrays[place]):
            raise InvalidArgument(
                f"kernel '{name}' may write {names[arguments.arrays[place]]}, whose elements each "
                "stand at several indices (a stride is 0)\n  hint: pass a copy of it"
            )
    call(
        target, name, function, arguments, slots, blocks, threads, set(range(len(arrays))), written
    )


def slots_of(
    kernel: str, names: Sequence[str], kinds: Sequence[Kind], wanted: Sequence[Sequence[ParamDecl]]
) -> list[Scalar | None]:
    """The types of the numbers that a function gets for checked arguments of IR, None for arrays.

    Raises ArgumentTypeError for what host functions do not take.
    """
    slots = []
    for name, kind, params in zip(names, kinds, wanted, strict=True):
        type = params[0].var.type if params else None
        declared = type if isinstance(type, Scalar) and isinstance(kind, PythonNumber) else kind
        slots.append(_slot(kernel, name, declared))
    return slots


def call(
    target: Device,
    name: str,
    function: NativeFunction,
    arguments: Arguments,
    slots: Sequence[Scalar | None],
    grid: Dimensions,
    block: Dimensions,
    read: Set[int],
    written: Set[int],
) -> None:
    """Call a function with checked arguments; `read`, `written` are places among the arrays."""
    recorders.refuse(f"host function '{name}' is called", "call it outside of the block")
    arrays = [arguments.values[position] for position in arguments.arrays]
    clock = Clock(target.driver, arrays) if telemetry.is_measuring() else None
    with _regions(arguments, arrays, read, written) as regions:
        count("launches")
        given = [_argument(arguments, p, slot, regions) for p, slot in enumerate(slots)]
        program = _HostProgram(function)
        if clock is None:
            program.launch(grid, block, 0, given)
        else:
            clock.run(program, grid, block, 0, given)
    if clock is not None:
        clock.tell(target, name, grid, block, arguments.values, read, written)


class _HostProgram:
    """A host function where a program of generated code would be."""

    params: tuple[ParamDecl, ...] = ()
    source = ""
    static_shared_bytes = 0

    def __init__(self, function: NativeFunction) -> None:
        self._function = function

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """Call it; it may use several cores."""
        self._function.run(True, block, grid, arguments)


class _HostMemory:
    """What `bound_regions` needs of a driver where memory is used as it lies."""

    memory: DeviceMemory | None = None

    def bind(self, memory: Bytes, *, read: bool, written: bool) -> Bytes:
        return memory

    def unbind(self, buffer: Bytes) -> None:
        """Nothing was copied."""


_HOST = cast(Driver, _HostMemory())


def _regions(
    arguments: Arguments, arrays: Sequence[AnyArray], read: Set[int], written: Set[int]
) -> AbstractContextManager[list[Any]]:
    return bound_regions(_HOST, arguments.arrangement, arrays, read, written, arguments.storages)


# --- arguments ------------------------------------------------------------------------------------


def _slot(kernel: str, name: str, kind: Kind) -> Scalar | None:
    """The type of the number that an argument fills, None for an array."""
    if isinstance(kind, ArrayInfo):
        is_plain = isinstance(kind.element, Scalar) and not kind.pairs and not kind.columns
        if is_plain and kind.ndim == 1:
            return None
    elif isinstance(kind, Scalar | PythonNumber):
        scalar = kind if isinstance(kind, Scalar) else _OF_PYTHON.get(kind)
        if scalar in _NUMBERS:
            return scalar
    raise ArgumentTypeError(
        f"kernel '{kernel}': {name if name.startswith('argument ') else repr(name)} is "
        f"{in_words(kind)}, and a host function takes arrays of numbers with one axis, and numbers "
        "of int32, int64, float32 and float64\n  hint: pass a NumPy scalar of one of these types"
    )


def _argument(
    arguments: Arguments, position: int, slot: Scalar | None, regions: Sequence[Bytes]
) -> NativeArg:
    value = arguments.values[position]
    if slot is not None:
        return _NUMBERS[slot](value)
    placement = arguments.placement(position)
    array = _view(value, placement, regions[placement.region])
    return numpy_vec(array, Scalar(array.dtype.name))


def _view(array: AnyArray, placement: Placement, memory: Bytes) -> AnyArray:
    """An array of one axis as it lies in the memory of its region."""
    step = array.itemsize
    strides = [stride * step for stride in placement.strides] or None
    view: AnyArray = np.ndarray(
        array.shape, array.dtype, memory.data, placement.offset * step, strides
    )
    if not array.flags.writeable:
        view.flags.writeable = False
    return view


def _narrow(value: Any) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float32(value)
