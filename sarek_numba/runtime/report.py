"""Reading a report buffer after a launch: printed is printed, and what was found is raised."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.errors import (
    AssertionFailed,
    Finding,
    OutOfBounds,
    raise_findings,
)
from sarek_numba.ir.printing import in_thread_order, shown
from sarek_numba.ir.types import Scalar
from sarek_numba.passes.records import (
    CAPACITY,
    FIRST,
    AssertSite,
    BoundsSite,
    PrintSite,
    Site,
    words_of,
)
from sarek_numba.runtime.device import Bytes, Dimensions

Words = npt.NDArray[np.uint32]
_HEAD = 3  # words of a record before its values
_BOUNDS = (Scalar.INT64, Scalar.INT64)


def new_buffer() -> Bytes:
    """The bytes of an empty report."""
    return np.zeros((FIRST + CAPACITY) * 4, np.uint8)


@dataclass(slots=True)
class _Fault:
    """What threads found at one site: the first of them, its values, and how many they are."""

    thread: int
    values: list[Any]
    count: int = 1


@dataclass(slots=True)
class _Read:
    """What stands in a buffer: texts by thread, faults by site."""

    lines: list[tuple[int, str]] = field(default_factory=list)
    faults: dict[int, _Fault] = field(default_factory=dict)


def settle(
    kernel: str, sites: tuple[Site, ...], buffer: Bytes, grid: Dimensions, block: Dimensions
) -> None:
    """Print what was printed and raise what was found. Raises OracleError."""
    words: Words = buffer.view(np.uint32)
    read = _read(sites, words)
    sys.stdout.write(in_thread_order(read.lines))
    if words[1]:
        warnings.warn(
            f"kernel '{kernel}': {words[1]} prints found no room in the report of "
            f"{CAPACITY * 4} bytes",
            RuntimeWarning,
            stacklevel=2,
        )
    found = [
        _finding(kernel, number, sites[number], read.faults[number], grid, block)
        for number in sorted(read.faults)
    ]
    raise_findings(tuple(found))


def _read(sites: tuple[Site, ...], words: Words) -> _Read:
    read = _Read()
    end = FIRST + int(min(words[0], CAPACITY))
    numbers: list[int] = words[:end].tolist()
    at = FIRST
    while at < end:
        if not numbers[at]:  # room of a record that was too long for what was left
            at += 1
            continue
        number = numbers[at] - 1
        thread = numbers[at + 1] | numbers[at + 2] << 32
        site, place = sites[number], at + _HEAD
        if isinstance(site, PrintSite):
            text, at = _text(site, words, place)
            read.lines.append((thread, text))
            continue
        types = _BOUNDS if isinstance(site, BoundsSite) else ()
        values, at = _values(types, words, place)
        read.faults[number] = _joined(read.faults.get(number), _Fault(thread, values))
    return read


def _joined(known: _Fault | None, new: _Fault) -> _Fault:
    if known is None:
        return new
    first = new if new.thread < known.thread else known
    return replace(first, count=known.count + new.count)


def _text(site: PrintSite, words: Words, place: int) -> tuple[str, int]:
    """The text of a print, and where its record ends."""
    types = tuple(part for part in site.parts if not isinstance(part, str))
    values, end = _values(types, words, place)
    texts = iter(map(shown, values, types))
    return "".join(p if isinstance(p, str) else next(texts) for p in site.parts), end


def _values(types: tuple[Scalar, ...], words: Words, place: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    for type in types:
        size = words_of(type)
        dtype = np.dtype(type.value)
        values.append(words[place : place + size].view(dtype)[0])
        place += size
    return values, place


def _finding(
    kernel: str, number: int, site: Site, fault: _Fault, grid: Dimensions, block: Dimensions
) -> Finding:
    threads = block[0] * block[1] * block[2]
    at_block, at_thread = divmod(fault.thread, threads)
    finding = Finding(
        AssertionFailed,
        "assertion failed",
        kernel,
        None if isinstance(site, PrintSite) else site.span,
        _unravelled(at_block, grid),
        _unravelled(at_thread, block),
        threads=fault.count,
        order=number,
    )
    match site:
        case BoundsSite(array=array, axis=axis):
            index, extent = map(int, fault.values)
            message = (
                f"index {index} is out of range for axis {axis} of '{array}', "
                f"whose extent is {extent}"
            )
            return replace(finding, error=OutOfBounds, message=message, array=array, index=index)
        case AssertSite(message=message) if message:
            return replace(finding, message=f"assertion failed: {message}")
        case _:
            return finding


def _unravelled(number: int, extents: Dimensions) -> Dimensions:
    x, rest = number % extents[0], number // extents[0]
    return x, rest % extents[1], rest // extents[1]
