"""Grid, block and shared bytes of a launch: read from what the user gave, checked against limits.

Dimensions are ints or 1- to 3-tuples of Python or NumPy integers, x first. Everything that is wrong
raises InvalidDimensions with the kernel, the value and the limit; nothing is clamped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sarek_numba.capability import DeviceRecord
from sarek_numba.errors import InvalidDimensions
from sarek_numba.runtime.device import Dimensions

_AXES = "xyz"
_HINT = "\n  hint: give an int, or a tuple of one to three ints"


def parts_of(kernel: str, configuration: Any) -> tuple[Any, ...]:
    """What stands in `k[…]`: grid, block, and maybe a stream and the shared bytes."""
    if isinstance(configuration, tuple) and 2 <= len(configuration) <= 4:
        return configuration
    raise InvalidDimensions(
        f"kernel '{kernel}' is launched as {kernel}[grid, block](...), "
        f"not as {kernel}[{configuration!r}]\n"
        f"  hint: or as {kernel}[grid, block, stream, shared_bytes](...) or {kernel}.forall(n)(...)"
    )


def dimensions(kernel: str, what: str, given: Any) -> Dimensions:
    """`given` as (x, y, z), axes that were not given being 1. `what` is "grid" or "block"."""
    axes = given if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(axes) <= 3:
        raise InvalidDimensions(f"kernel '{kernel}': {what} {given!r} has {len(axes)} axes{_HINT}")
    sizes = [_size(kernel, what, given, axis) for axis in axes]
    sizes += [1] * (3 - len(sizes))
    return sizes[0], sizes[1], sizes[2]


def _size(kernel: str, what: str, given: Any, axis: Any) -> int:
    if isinstance(axis, bool | np.bool_) or not isinstance(axis, int | np.integer):
        raise InvalidDimensions(
            f"kernel '{kernel}': {what} {given!r} holds a {type(axis).__name__}{_HINT}"
        )
    if axis <= 0:
        raise InvalidDimensions(
            f"kernel '{kernel}': {what} {given!r} has an axis of {axis}; each must be at least 1"
        )
    return axis if isinstance(axis, int) else int(axis)  # a symbolic one stays what it is


def problem_size(kernel: str, given: Any) -> int:
    """The number of threads that `forall` is asked for."""
    if isinstance(given, bool | np.bool_) or not isinstance(given, int | np.integer) or given < 0:
        raise InvalidDimensions(
            f"kernel '{kernel}': forall takes an int of at least 0, not {given!r}"
        )
    return given if isinstance(given, int) else int(given)


def shared_size(kernel: str, given: Any) -> int:
    """Bytes of the dynamic shared region as a Python int."""
    if isinstance(given, bool | np.bool_) or not isinstance(given, int | np.integer):
        raise InvalidDimensions(
            f"kernel '{kernel}': shared_bytes is a {type(given).__name__}, {given!r}; "
            "it must be an int of at least 0"
        )
    if given < 0:
        raise InvalidDimensions(
            f"kernel '{kernel}': shared_bytes is {given}; it must be an int of at least 0"
        )
    return given if isinstance(given, int) else int(given)  # a symbolic one stays what it is


def check_limits(kernel: str, grid: Dimensions, block: Dimensions, record: DeviceRecord) -> None:
    """Refuse a block or a grid beyond what the device takes."""
    limits = record.limits
    threads = block[0] * block[1] * block[2]
    if threads > limits.threads_per_block:
        raise InvalidDimensions(
            f"kernel '{kernel}': block {block} is {threads} threads; "
            f"device '{record.name}' takes at most {limits.threads_per_block}"
        )
    for what, sizes, most in (("block", block, limits.block), ("grid", grid, limits.grid)):
        for axis, size, limit in zip(_AXES, sizes, most, strict=True):
            if size > limit:
                raise InvalidDimensions(
                    f"kernel '{kernel}': {what} {sizes} is {size} along {axis}; "
                    f"device '{record.name}' takes at most {limit}"
                )
    most_threads = limits.threads_per_axis
    for axis, blocks, size in zip(_AXES, grid, block, strict=True):
        if most_threads is not None and blocks * size > most_threads:
            raise InvalidDimensions(
                f"kernel '{kernel}': {blocks} blocks of {size} along {axis} are {blocks * size} "
                f"threads; device '{record.name}' takes at most {most_threads} along an axis\n"
                "  hint: launch fewer threads, of which each does the work of several"
            )


def check_most_threads(kernel: str, block: Dimensions, most: int | None) -> None:
    """Refuse a block beyond what `@sarek.kernel(max_threads=N)` states."""
    threads = block[0] * block[1] * block[2]
    if most is not None and threads > most:
        raise InvalidDimensions(
            f"kernel '{kernel}': block {block} is {threads} threads; "
            f"the kernel states max_threads={most}\n"
            f"  hint: launch more blocks of at most {most} threads"
        )


def check_shared(kernel: str, static: int, dynamic: int, record: DeviceRecord) -> None:
    """Refuse more shared memory for a block than the device has."""
    available = record.limits.shared_bytes
    if static + dynamic > available:
        raise InvalidDimensions(
            f"kernel '{kernel}' asks for {static + dynamic} bytes of shared memory a block "
            f"({static} static and {dynamic} dynamic); "
            f"device '{record.name}' has {available}"
        )


def check_local_bytes(kernel: str, of_thread: int, threads: int, record: DeviceRecord) -> None:
    """Refuse more memory for the local arrays of a block or a thread than the device has."""
    available = record.limits.thread_local_bytes
    if available is not None and of_thread > available:
        raise InvalidDimensions(
            f"kernel '{kernel}' asks for {of_thread} bytes of local arrays a thread; "
            f"device '{record.name}' has {available}\n"
            "  hint: keep such an array in global memory"
        )
    available = record.limits.local_bytes
    if available is not None and of_thread * threads > available:
        most = available // of_thread
        raise InvalidDimensions(
            f"kernel '{kernel}' asks for {of_thread * threads} bytes of local arrays a block "
            f"({of_thread} for each of {threads} threads); "
            f"device '{record.name}' has {available}\n"
            + (f"  hint: launch blocks of at most {most} threads" if most else
               "  hint: keep such an array in global memory")
        )  # fmt: skip


def needs_wide_indices(grid: Dimensions, block: Dimensions) -> bool:
    """Whether thread indices along some axis leave the range of an int32."""
    return any(g * b >= 2**31 for g, b in zip(grid, block, strict=True))
