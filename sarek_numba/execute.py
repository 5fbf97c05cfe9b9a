"""The layer below launches: kernels of others, launches of IR, what moves, and counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sarek_numba import policy
from sarek_numba.errors import JitError, TransferFailed
from sarek_numba.ir.native import NativeFunction
from sarek_numba.ir.nodes import Kernel
from sarek_numba.matrix.launches import Given, instead
from sarek_numba.matrix.specialise import Outcome
from sarek_numba.runtime import external, host_functions, window
from sarek_numba.runtime.cache import clear_launch_cache, counters
from sarek_numba.runtime.external import detect_language, load_source
from sarek_numba.runtime.foreign import chosen
from sarek_numba.runtime.handmade import Lazy, launch_ir, made_ir
from sarek_numba.runtime.languages import Language
from sarek_numba.runtime.outcome import Original, check_request
from sarek_numba.runtime.registry import Device, device, oracle
from sarek_numba.runtime.stream import Stream, check_stream
from sarek_numba.runtime.vector import Vector
from sarek_numba.settings import simulated_warp_width

__all__ = [
    "Language",
    "NativeFunction",
    "Original",
    "Outcome",
    "clear_launch_cache",
    "counters",
    "detect_language",
    "device_buffer",
    "dims_1d",
    "dims_2d",
    "dims_3d",
    "grid_for",
    "grid_for_size",
    "load_source",
    "mark_stale",
    "run",
    "run_interpreter_vectors",
    "run_source",
    "run_source_file",
    "run_vectors",
    "run_vectors_outcome",
    "simulated_warp_width",
    "supports_language",
    "sync_all",
    "transfer_all",
    "window",
]

Dimensions = tuple[int, int, int]
Where = str | Device | None


# --- dimensions -----------------------------------------------------------------------------------


def dims_1d(x: int) -> Dimensions:
    """(x, 1, 1)"""
    return x, 1, 1


def dims_2d(x: int, y: int) -> Dimensions:
    """(x, y, 1)"""
    return x, y, 1


def dims_3d(x: int, y: int, z: int) -> Dimensions:
    """(x, y, z)"""
    return x, y, z


def grid_for(n: int, block: int) -> Dimensions:
    """The blocks of `block` threads that n threads take, along x; n of 0 takes none."""
    return dims_1d(-(-n // block))


def grid_for_size(n: int, block: int = 256) -> tuple[Dimensions, Dimensions]:
    """Grid and block for n threads."""
    return grid_for(n, block), dims_1d(block)


# --- launches -------------------------------------------------------------------------------------


def run(
    which: Where,
    name: str,
    ir: Lazy,
    args: Sequence[Any],
    block: Any,
    grid: Any,
    shared_bytes: int = 0,
    stream: Stream | None = None,
    native_fn: NativeFunction | None = None,
) -> None:
    """Launch a kernel that is given as IR, as a native function, or both.

    `ir` may be a function, which is called only where IR is needed. The device 'native' calls the
    native function where there is one, and then nothing asks for IR: all arrays that are not
    read-only count as written, a Python int is an int32 and a Python float a float32. Otherwise
    arguments are checked as `run_vectors` does. `name` is the kernel's in errors that come before
    its IR. Raises JitError where the device needs what was not given, LaunchError, CapabilityError,
    BackendError, OracleError, and what a native function raises.
    """
    target = chosen(which, args)
    if native_fn is not None and not isinstance(native_fn, NativeFunction):
        raise JitError(
            f"kernel '{name}' has {type(native_fn).__name__} in place of a native function\n"
            "  hint: pass native_fn=sarek_numba.ir.native.NativeFunction(run)"
        )
    if native_fn is not None and host_functions.runs_host_functions(target):
        host_functions.launch_host_function(
            target, name, native_fn, args, block, grid, shared_bytes, stream
        )
        return
    launch_ir(target, made_ir(name, ir, target), args, block, grid, shared_bytes, stream)


def run_vectors(
    which: Where,
    ir: Kernel | Callable[[], Kernel],
    args: Sequence[Any],
    block: Any,
    grid: Any,
    shared_bytes: int = 0,
    stream: Stream | None = None,
) -> None:
    """Launch a kernel in Sarek IR, with one argument for each argument that it has.

    Arguments are checked exactly: a Python int fills 32 bits, a NumPy scalar its own width, an
    array is of the type, axes and layout that the IR says. Raises LaunchError, CapabilityError,
    BackendError, OracleError.
    """
    target = chosen(which, args)
    launch_ir(target, made_ir(None, ir, target), args, block, grid, shared_bytes, stream)


def run_vectors_outcome(
    which: Where,
    ir: Kernel | Callable[[], Kernel],
    args: Sequence[Any],
    block: Any,
    grid: Any,
    shared_bytes: int = 0,
    stream: Stream | None = None,
    precision: str | None = None,
    explicit: bool = False,
) -> Outcome:
    """`run_vectors` that says what ran, with the reason; `str` of it is for readers.

    `precision` is what the operands of a product of matrices may be rounded to, `explicit` asks for
    a rewrite of one. Raises InvalidArgument for another precision, and as `run_vectors` does.
    """
    target = chosen(which, args)
    kernel = made_ir(None, ir, target)
    check_request(kernel.name, precision, explicit)
    found: list[Outcome] = []

    def rewritten(*launch: Any) -> bool:
        found.append(instead(Given(*launch), precision, explicit=explicit))
        return not isinstance(found[0], Original)

    launch_ir(target, kernel, args, block, grid, shared_bytes, stream, rewritten)
    outcome = found[0] if found else Original("its native function ran")
    policy.explain(f"kernel '{kernel.name}': {outcome}")
    return outcome


def run_interpreter_vectors(
    ir: Kernel | Callable[[], Kernel], args: Sequence[Any], block: Any, grid: Any
) -> None:
    """Run IR in the interpreter, whether or not there is a device of that name for launches.

    There is one argument for each parameter of the IR that is not of an array's shape: lengths are
    those of the arrays. Arguments are checked, and capabilities refused, as in a launch on the
    device 'interpreter'. Raises LaunchError, CapabilityError, OracleError.
    """
    target = oracle()
    launch_ir(target, made_ir(None, ir, target), args, block, grid, 0, None)


def supports_language(which: Where, language: Language) -> bool:
    """Whether a device compiles kernels of a language."""
    return external.supports_language(device(which), language)


def run_source(
    which: Where,
    source: str | bytes,
    language: Language,
    name: str,
    args: Sequence[Any],
    block: Any,
    grid: Any,
    shared_bytes: int = 0,
    inject_lengths: bool = True,
    stream: Stream | None = None,
) -> None:
    """Launch the kernel `name` of a source in a language of the device.

    Arrays and vectors are contiguous; each is followed by its number of elements as an int32,
    unless `inject_lengths` is False. Those that are not read-only count as written. Raises
    UnsupportedLanguage, ArgumentCountError, ArgumentTypeError, LengthOverflow, InvalidDimensions,
    StreamError, SourceCompilationError, BackendError.
    """
    target = chosen(which, args)
    external.run_source(
        target,
        source,
        language,
        name,
        args,
        block,
        grid,
        shared_bytes,
        inject_lengths,
        check_stream(name, stream, target),
    )


def run_source_file(
    which: Where,
    path: str | Path,
    name: str,
    args: Sequence[Any],
    block: Any,
    grid: Any,
    shared_bytes: int = 0,
    inject_lengths: bool = True,
    stream: Stream | None = None,
) -> None:
    """`run_source` of a file, whose suffix tells the language. Raises InvalidFile too."""
    language = detect_language(path)
    source = load_source(path)
    run_source(
        which, source, language, name, args, block, grid, shared_bytes, inject_lengths, stream
    )


# --- what moves -----------------------------------------------------------------------------------


def transfer_all(args: Sequence[Any], which: Where = None) -> None:
    """Bring every vector among some arguments to a device."""
    for argument in args:
        if isinstance(argument, Vector):
            argument.to(which)


def sync_all(args: Sequence[Any]) -> None:
    """Bring every vector among some arguments to the host."""
    for argument in args:
        if isinstance(argument, Vector):
            argument._fetch(argument._array)


def mark_stale(args: Sequence[Any], which: Where = None) -> None:
    """Say that something else wrote the vectors in a device's memory: other copies are stale.

    Nothing where the device works on host memory. Raises TransferFailed for a vector that has no
    memory there.
    """
    target = device(which)
    memory = target.driver.memory
    if memory is None:
        return
    for argument in args:
        if isinstance(argument, Vector):
            device_buffer(argument, target)
            argument._storage.written_on(memory, *argument._span(argument._array))


def device_buffer(vector: Vector, which: Where = None) -> Any:
    """The device's own buffer of a vector's memory, as its API has it; nothing is transferred.

    Raises TransferFailed if the vector has none there.
    """
    target = device(which)
    memory = target.driver.memory
    held = None if memory is None else vector._storage.held(memory)
    if memory is None or held is None:
        reason = "it works on host memory" if memory is None else "the vector was never used there"
        raise TransferFailed(
            f"the vector has no buffer on {target.record.name}: {reason}\n"
            "  hint: v.to(device) brings it to a device with memory of its own"
        )
    vector._storage.settle(*vector._span(vector._array), "buffer", written=True)
    return memory.handle(held)
