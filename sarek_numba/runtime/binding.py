"""From steps of a graph to nodes: which memory of a device they use, and what is given to it.

What no mechanism does is `Unrecordable`: kernels that print or check, elements that do not lie side
by side, arrays of NumPy that a device with memory of its own would write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarek_numba.runtime import launch as launching
from sarek_numba.runtime.device import Bytes, Driver
from sarek_numba.runtime.graphs import (
    Concrete,
    CopyStep,
    FillStep,
    LaunchStep,
    Step,
    Use,
    array_of,
    uses_of,
)
from sarek_numba.runtime.memory import address, extent, host_bytes, own_bytes
from sarek_numba.runtime.nodes import CopyNode, FillNode, LaunchNode, Node
from sarek_numba.runtime.storage import Storage
from sarek_numba.runtime.vector import Vector


class Unrecordable(Exception):
    """Why a step is no node."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundSpan:
    """Bytes of a storage, or, without one, memory of the host that the device uses as it lies."""

    storage: Storage | None
    first: int
    last: int
    used: bool
    written: bool
    memory: Bytes


class Mirror:
    """A storage that has what an array of NumPy has at each replay."""

    def __init__(self, source: Bytes) -> None:
        self.source = source
        self.storage = Storage.of_size(source.size)
        self.storage.host[:] = source

    def refresh(self) -> None:
        """Follow the array, if it changed: then the replay before is waited for."""
        storage, size = self.storage, self.source.size
        if not np.array_equal(storage.host, self.source):
            with storage.lock:
                storage.claim(0, size)
                storage.host[:] = self.source
                storage.wrote(0, size)


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A step: the memory that it uses, and its node when it has a part of memory for each span."""

    spans: tuple[BoundSpan, ...]
    make: Callable[[Sequence[Any]], Node]
    uses: tuple[Use, ...]
    mirrors: tuple[Mirror, ...] = ()


class Binder:
    """Binds steps to the memory of a device."""

    def __init__(self, driver: Driver, widths: tuple[int, ...] | None) -> None:
        self.driver = driver
        self.on_host = driver.memory is None
        self._widths = widths

    def bind(self, step: Step) -> Bound | None:
        """A step bound; None for one that does nothing. Raises Unrecordable, BackendError."""
        match step:
            case LaunchStep():
                return self._launch(step)
            case CopyStep():
                return self._copy(step)
            case FillStep():
                return self._fill(step)

    def part(self, span: BoundSpan) -> Any:
        """What stands for bytes in a launch. Those of storages are held by the device."""
        memory = self.driver.memory
        if memory is None:
            return self.driver.bind(span.memory, read=True, written=span.written)
        assert span.storage is not None
        held = span.storage.held(memory)
        return memory.part(held, span.first, span.last, written=span.written)

    def _launch(self, step: LaunchStep) -> Bound | None:
        analysed, arguments = step.analysed, step.arguments
        if launching.reports(step.device, analysed):
            raise Unrecordable("it prints or checks")
        if arguments.foreign:
            raise Unrecordable("it has memory of other libraries")
        ready = launching.bindable(
            step.device, analysed, arguments, step.grid, step.block, step.shared_bytes
        )
        if 0 in ready.grid or 0 in step.block:
            return None
        arrays = [arguments.values[position] for position in arguments.arrays]
        read = arguments.among(analysed.reads, analysed.read_columns)
        written = arguments.among(analysed.writes, analysed.written_columns)
        spans, mirrors = [], []
        for region in arguments.arrangement.regions:
            if region.staging:
                raise Unrecordable("its elements are not aligned")
            is_written = not written.isdisjoint(region.members)
            is_used = is_written or not read.isdisjoint(region.members)
            own = own_bytes(region, arrays, is_written)
            found = (arguments.storages.get(member) for member in region.members)
            storage = next((each for each in found if each is not None), None)
            span, mirror = self._span(storage, region.start, own, is_used, is_written)
            spans.append(span)
            mirrors += mirror

        def make(parts: Sequence[Any]) -> Node:
            given = ready.fill(parts)
            return LaunchNode(ready.program, ready.grid, step.block, step.shared_bytes, given)

        return Bound(tuple(spans), make, uses_of(step), tuple(mirrors))

    def _span(
        self, storage: Storage | None, start: int, own: Bytes, used: bool, written: bool
    ) -> tuple[BoundSpan, list[Mirror]]:
        mirrors = []
        if storage is not None:
            first = start - storage.start if own.size else 0
        elif self.on_host:
            first = 0
        elif written:
            raise Unrecordable("it writes an array of NumPy")
        else:
            mirrors = [Mirror(own)]
            storage, first = mirrors[0].storage, 0
        return BoundSpan(storage, first, first + own.size, used, written, own), mirrors

    def _concrete(self, given: Concrete, written: bool) -> tuple[BoundSpan, list[Mirror]]:
        array = array_of(given)
        start, end = extent(array, address(array))
        own = host_bytes(start, end - start, not written, [array])
        storage = given._storage if isinstance(given, Vector) else None
        return self._span(storage, start, own, True, written)

    def _copy(self, step: CopyStep) -> Bound | None:
        destination, source = step.destination, step.source
        to, of = array_of(destination), array_of(source)
        if not _lie_alike(to, of):
            raise Unrecordable("it copies elements that do not lie side by side")
        (target, _), (origin, mirrors) = (
            self._concrete(destination, True),
            self._concrete(source, False),
        )
        size, start, other = to.nbytes, address(to), address(of)
        if size == 0 or start == other:
            return None
        if abs(start - other) < size and not self.on_host:
            raise Unrecordable("it copies bytes over each other")
        return Bound((target, origin), _copier(size), uses_of(step), tuple(mirrors))

    def _fill(self, step: FillStep) -> Bound | None:
        destination, value = step.destination, step.value
        array = array_of(destination)
        if not array.flags.forc:
            raise Unrecordable("it fills elements that do not lie side by side")
        if array.nbytes == 0:
            return None
        target, _ = self._concrete(destination, True)
        word = word_of(array.dtype, value)
        size, width = array.nbytes, self._width(len(word), target.first, array.nbytes)
        if width is not None:
            word *= width // len(word)

            def make(parts: Sequence[Any]) -> Node:
                return FillNode(parts[0], word, size // width)

            return Bound((target,), make, uses_of(step))
        mirror = Mirror(np.frombuffer(word * (size // len(word)), np.uint8))
        origin = BoundSpan(mirror.storage, 0, size, True, False, mirror.storage.host)
        return Bound((target, origin), _copier(size), uses_of(step))

    def _width(self, wanted: int, first: int, size: int) -> int | None:
        """Bytes of a word of which the device makes those that are wanted; None without any."""
        if self._widths is None:
            return wanted
        fits = (w for w in self._widths if w % wanted == 0 and first % w == 0 and size % w == 0)
        return next(fits, None)


def _copier(size: int) -> Callable[[Sequence[Any]], Node]:
    return lambda parts: CopyNode(parts[0], parts[1], size)


def _lie_alike(left: Any, right: Any) -> bool:
    """Whether elements lie side by side in the same order."""
    if left.flags.c_contiguous and right.flags.c_contiguous:
        return True
    alike = left.flags.f_contiguous and right.flags.f_contiguous
    return bool(alike and left.shape == right.shape)


def word_of(dtype: np.dtype[Any], value: Any) -> bytes:
    """The fewest bytes that an element is repeated of."""
    element = np.empty(1, dtype)
    element[...] = value
    raw = element.tobytes()
    halves = len(raw)
    while halves % 2 == 0 and raw == raw[: halves // 2] * (2 * len(raw) // halves):
        halves //= 2
    return raw[:halves]
