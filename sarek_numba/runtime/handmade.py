"""Launches of kernels that are given as IR: arguments are checked against its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sarek_numba.errors import ArgumentCountError, ArgumentTypeError, JitError
from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.ir.types import ArrayInfo, NumberOf, Pair, PartOf, Record, Scalar, UserArgument
from sarek_numba.ir.verify import verify
from sarek_numba.runtime import host_functions, telemetry
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime.arguments import Arguments, Kind, PythonNumber, describe, in_words
from sarek_numba.runtime.cache import Memo
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.dimensions import check_limits, dimensions, shared_size
from sarek_numba.runtime.foreign import placed
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.stream import Stream, check_stream

_analysed: Memo[launching.Analysed] = Memo()  # by the identity of a kernel, which they keep

Lazy = Kernel | Callable[[], Kernel] | None
"""IR, or what makes it where it is needed."""

Instead = Callable[
    [Device, launching.Analysed, Arguments, Dimensions, Dimensions, int, Stream | None], bool
]
"""Launches something else, or says False. It is given a checked launch."""


def made_ir(name: str | None, given: Lazy, target: Device) -> Kernel:
    """The IR of a launch of a kernel, whose name may be not known yet. Raises JitError."""
    subject = "the kernel" if name is None else f"kernel '{name}'"
    made: object = given() if callable(given) else given
    if isinstance(made, Kernel):
        return made
    if made is None and host_functions.runs_host_functions(target):
        raise JitError(
            f"{subject} has neither IR nor a native function, and device '{target.name}' "
            "runs one of them\n  hint: pass ir=..., or native_fn= to execute.run"
        )
    what = "has no IR" if made is None else f"has {type(made).__name__} in place of IR"
    raise JitError(
        f"{subject} {what}, which device '{target.name}' needs\n"
        "  hint: pass ir=, a Kernel as k.ir(...) gives it, or a function that makes it"
    )


def launch_ir(
    target: Device,
    kernel: Kernel,
    values: Sequence[Any],
    block: Any,
    grid: Any,
    shared_bytes: int,
    stream: object,
    instead: Instead | None = None,
) -> None:
    """Check everything, then launch: the native function of the IR where the device calls those.

    `instead` is asked before IR runs, and says whether it launched something else.
    """
    telemetry.begin()
    name = kernel.name
    wanted = arguments_of(kernel)
    if len(values) != len(wanted):
        raise ArgumentCountError(
            f"kernel '{name}' takes {len(wanted)} arguments, and {len(values)} are given"
        )
    names = [name_of(params) for params in wanted]
    arguments = describe(name, names, values, (None,) * len(values))
    target = placed(name, names, arguments.foreign, target)
    for params, label, kind, value in zip(wanted, names, arguments.kinds, values, strict=True):
        check_argument(name, label, params, kind, value)
    blocks, threads = dimensions(name, "grid", grid), dimensions(name, "block", block)
    shared = shared_size(name, shared_bytes)
    check_limits(name, blocks, threads, target.record)
    analysed = _analysed.get(id(kernel), lambda: _analyse(kernel, names))
    launching.check_warps(target, analysed, threads)
    on = check_stream(name, stream, target)
    launching.check(target, analysed, arguments, shared)
    function = kernel.native_function
    if function is None or not host_functions.runs_host_functions(target):
        launch = (target, analysed, arguments, blocks, threads, shared, on)
        if instead is None or not instead(*launch):
            launching.launch(*launch)
        return
    slots = host_functions.slots_of(name, names, arguments.kinds, wanted)
    read = arguments.among(analysed.reads, analysed.read_columns)
    written = arguments.among(analysed.writes, analysed.written_columns)
    host_functions.call(target, name, function, arguments, slots, blocks, threads, read, written)


def _analyse(kernel: Kernel, names: Sequence[str]) -> launching.Analysed:
    verify(kernel)
    return launching.analyse(kernel, names)


def arguments_of(kernel: Kernel) -> list[list[ParamDecl]]:
    """The parameters that each of the user's arguments fills by itself."""
    found: dict[int, list[ParamDecl]] = {}
    count = 0
    for param in kernel.params:
        position = getattr(param.role, "argument", None)
        if position is None:
            continue
        count = max(count, position + 1)
        if isinstance(param.role, UserArgument | PartOf | NumberOf):
            found.setdefault(position, []).append(param)
    return [found.get(position, []) for position in range(count)]


def name_of(params: Sequence[ParamDecl]) -> str:
    """The name of the user's argument that fills some parameters."""
    return params[0].var.name.partition(".")[0] if params else "an argument that nothing reads"


def check_argument(
    kernel: str, name: str, params: Sequence[ParamDecl], kind: Kind, value: Any
) -> None:
    """Whether an argument is exactly what its parameters are; ArgumentTypeError if not."""
    if not params:
        return
    first = params[0]
    fits, wanted, given = True, "", in_words(kind)
    match first.array, kind:
        case ArrayInfo() as info, ArrayInfo():
            fits, wanted = _is_array(info, kind), _array_words(info)
            if given == wanted:  # what differs is how the elements lie
                given, wanted = given + _manner(kind), wanted + _manner(info)
        case ArrayInfo() as info, _:
            fits, wanted = False, _array_words(info)
        case None, Record():
            fits, wanted = isinstance(first.role, NumberOf), "a number"
        case None, _:
            fits, wanted = _is_number(params, kind, value)
    if not fits:
        raise ArgumentTypeError(
            f"kernel '{kernel}': argument '{name}' is {given}, and its IR declares {wanted}"
        )


def _is_array(wanted: ArrayInfo, given: ArrayInfo) -> bool:
    if (wanted.record or wanted.element) != (given.record or given.element):
        return False
    if wanted.columns != given.columns:
        return False
    same = wanted.ndim == given.ndim and wanted.pairs == given.pairs
    is_laid_out = wanted.layout == "A" or given.layout == wanted.layout
    return same and is_laid_out and given.writable >= wanted.writable


def _array_words(wanted: ArrayInfo) -> str:
    return in_words(wanted if wanted.record is None else replace(wanted, element=wanted.record))


def _manner(info: ArrayInfo) -> str:
    layout = {"C": "in C order", "F": "in Fortran order"}.get(info.layout, "strided")
    return f", {layout}, {'writable' if info.writable else 'read-only'}"


def _is_number(params: Sequence[ParamDecl], kind: Kind, value: Any) -> tuple[bool, str]:
    scalar = params[0].var.type
    assert isinstance(scalar, Scalar)
    if isinstance(params[0].role, PartOf):
        return kind == Pair(scalar), f"a scalar of {Pair(scalar).value}"
    if isinstance(params[0].role, NumberOf):
        return False, "a record"
    words = f"a scalar of {scalar.value}"
    if kind is PythonNumber.INT:
        is_slot = scalar.is_integer and scalar.bits == 32
        return is_slot and scalar.minimum <= value <= scalar.maximum, words
    if kind is PythonNumber.FLOAT:
        return scalar.is_float, words
    return kind is scalar and (scalar is Scalar.BOOL) == isinstance(value, bool | np.bool_), words
