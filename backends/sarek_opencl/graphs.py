"""Graphs on OpenCL devices with command buffers: recorded once, enqueued again and again.

A command buffer is of a queue in order, so what is recorded later is done later. Launches whose
sizes or arguments are others are changed in it, where the driver has mutable dispatches; whatever
else is another has all recorded anew. One that is under way is left as it is: another one takes its
place. Parts of memory that begin where no sub-buffer may are copies, which are made and brought
back around the launch.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.runtime.nodes import CopyNode, FillNode, LaunchNode, Node
from sarek_opencl import driver
from sarek_opencl.command_buffers.driver import Argument, Calls
from sarek_opencl.memory import Part

if TYPE_CHECKING:
    from sarek_opencl.runtime import OpenCLDriver, OpenCLProgram

_WIDTHS = (16, 8, 4, 2, 1)  # bytes of words that are filled with: at most those of a double2


class OpenCLGraphs:
    """See `sarek_numba.runtime.nodes.Graphs`."""

    widths: tuple[int, ...] | None = _WIDTHS

    def __init__(self, owner: OpenCLDriver, calls: Calls) -> None:
        self._owner = owner
        self._calls = calls

    def build(self, nodes: Sequence[Node], behind: Sequence[frozenset[int]]) -> OpenCLGraph:
        """See `sarek_numba.runtime.nodes.Graphs`; the order of nodes respects `behind`."""
        return OpenCLGraph(self._owner, self._calls, nodes)


@dataclass(frozen=True, slots=True)
class _Launch:
    """A launch as the driver is told: equal if there is nothing new to tell."""

    program: OpenCLProgram
    total: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Argument, ...]
    copies: tuple[int, ...]  # arguments that are copies of parts

    def becomes(self, other: Any) -> bool:
        """Whether it is changed where it is recorded."""
        alike = isinstance(other, _Launch) and other.program is self.program
        return alike and not self.copies and not other.copies


@dataclass(slots=True, eq=False)
class _Recording:
    """A command buffer, what it was told of each node, and what must live as long."""

    buffer: int
    told: list[Any]
    kept: list[Node]
    commands: dict[int, int] = field(default_factory=dict)  # of launches, to change them
    mark: Any = None  # of when it was last enqueued

    @property
    def is_free(self) -> bool:
        """Whether it is not under way."""
        return self.mark is None or int(self.mark.command_execution_status) <= 0


class OpenCLGraph:
    """See `sarek_numba.runtime.nodes.Graph`."""

    def __init__(self, owner: OpenCLDriver, calls: Calls, nodes: Sequence[Node]) -> None:
        """Raises BackendError."""
        self._owner = owner
        self._calls = calls
        self._nodes = list(nodes)
        self._told = [_told(node) for node in nodes]
        self._buffers: set[int] = set()
        self._recordings: list[_Recording] = []
        weakref.finalize(self, _release, calls, self._buffers)
        with driver.check("recording a graph", owner.device):
            self._current: _Recording | None = self._recorded()

    def update(self, changed: Mapping[int, Node]) -> bool:
        """See `sarek_numba.runtime.nodes.Graph`."""
        for k, node in changed.items():
            told = _told(node)
            if told != self._told[k]:
                self._nodes[k], self._told[k], self._current = node, told, None
        return True

    def start(self, handle: Any) -> Any:
        """See `sarek_numba.runtime.nodes.Graph`."""
        with driver.check("a launch of a graph", self._owner.device):
            if self._current is None:
                self._current = self._renewed()
            mark = self._current.mark = self._calls.enqueue(self._current.buffer, handle)
            handle.flush()
        return mark

    # --- recording --------------------------------------------------------------------------------

    def _renewed(self) -> _Recording:
        """A command buffer of the nodes as they are now, which is not under way."""
        recording = next((each for each in self._recordings if each.is_free), None)
        if recording is None:
            return self._recorded()
        if self._change(recording):
            return recording
        self._recordings.remove(recording)
        self._buffers.discard(recording.buffer)
        self._calls.release(recording.buffer)
        return self._recorded()

    def _change(self, recording: _Recording) -> bool:
        """Have a command buffer be of the nodes as they are now; False if it cannot be."""
        if not self._calls.is_mutable:
            return False
        others = [k for k, told in enumerate(self._told) if told != recording.told[k]]
        changes = []
        for k in others:
            old, new = recording.told[k], self._told[k]
            if not (isinstance(old, _Launch) and old.becomes(new)):
                return False
            numbers = range(len(new.arguments))
            given = {n: new.arguments[n] for n in numbers if new.arguments[n] != old.arguments[n]}
            changes.append((recording.commands[k], new.total, new.block, given))
        if changes:
            self._calls.change(recording.buffer, changes)
        for k in others:
            recording.told[k], recording.kept[k] = self._told[k], self._nodes[k]
        return True

    def _recorded(self) -> _Recording:
        buffer = self._calls.create(self._owner.queue)
        self._buffers.add(buffer)
        recording = _Recording(buffer, list(self._told), list(self._nodes))
        for k, node in enumerate(self._nodes):
            match node:
                case LaunchNode():
                    recording.commands[k] = self._launch(buffer, node, self._told[k])
                case CopyNode(destination, source, size):
                    self._copy(buffer, source, destination, size)
                case FillNode(destination, word, count):
                    memory, at = _place(destination)
                    self._calls.fill(buffer, memory, word, at, len(word) * count)
        self._calls.finalize(buffer)
        self._recordings.append(recording)
        return recording

    def _copy(self, buffer: int, source: Part, target: Part, size: int) -> None:
        (of, begin), (to, at) = _place(source), _place(target)
        self._calls.copy(buffer, of, to, begin, at, size)

    def _launch(self, buffer: int, node: LaunchNode, told: _Launch) -> int:
        calls, program = self._calls, told.program
        copies = [node.arguments[number] for number in told.copies]
        for part in copies:
            calls.copy(buffer, part.whole.buffer, part.memory, part.copied, 0, part.size)
        with program.set(node.arguments, node.shared_bytes) as kernel:
            command = calls.launch(buffer, kernel, told.total, told.block)
        for part in copies:
            if part.written:
                calls.copy(buffer, part.memory, part.whole.buffer, 0, part.copied, part.size)
        return command


def _told(node: Node) -> Any:
    match node:
        case LaunchNode(program, grid, block, shared_bytes, arguments):
            own: Any = program  # one of this driver
            own.check(block)
            total = tuple(n * m for n, m in zip(grid, block, strict=True))
            copies = tuple(
                k for k, a in enumerate(arguments) if isinstance(a, Part) and a.copied is not None
            )
            given = tuple(_argument(*each) for each in own.with_types(arguments))
            if own.has_region:
                given += ((own.region_bytes(shared_bytes), None),)
            return _Launch(own, total, tuple(block), given, copies)
        case CopyNode(destination, source, size):
            return CopyNode, *_numbers(destination), *_numbers(source), size
        case FillNode(destination, word, count):
            return FillNode, *_numbers(destination), word, count


def _argument(value: Any, dtype: np.dtype[Any] | None) -> Argument:
    content = int(value.int_ptr) if dtype is None else value
    raw = np.dtype(np.uint64 if dtype is None else dtype).type(content).tobytes()
    return len(raw), raw


def _place(part: Part) -> tuple[Any, int]:
    """The memory object that has a part's bytes, and where they begin."""
    if part.copied is not None:
        return part.whole.buffer, part.copied
    return part.memory, 0


def _numbers(part: Part) -> tuple[int, int]:
    memory, at = _place(part)
    return int(memory.int_ptr), at


def _release(calls: Calls, buffers: set[int]) -> None:
    if driver.is_lost():
        return
    for buffer in buffers:
        calls.release(buffer)
