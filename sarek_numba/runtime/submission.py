"""A launch that is ready to be given to a queue, with what it needs of memory."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sarek_numba.runtime.device import DeviceMemory, Dimensions, QueuedProgram
from sarek_numba.runtime.storage import Storage
from sarek_numba.runtime.work import WorkQueue

MOST_BLOCKS = 16
"""Of a launch that may be joined to others: what joining saves is the same for each launch, and
what it costs is some instructions for each block. Sixteen launches of so many blocks of 1024
threads are what the largest devices run at a time (an H200: 132 multiprocessors of 2048 threads).
"""

Start = Callable[[], Any]
"""Gives a launch to the device's queue; gives its mark."""


@dataclass(frozen=True, slots=True)
class Use:
    """Bytes of a storage, and the part of the device's buffer that stands for them."""

    storage: Storage
    first: int
    last: int
    written: bool
    part: Any


# --- which launches one program may have ----------------------------------------------------------


class Family:
    """Small launches of one program and one block: what may be joined. `number` is no other's."""

    __slots__ = ("_program", "block", "device", "number")

    def __init__(self, program: QueuedProgram, device: str, block: Dimensions) -> None:
        self._program = weakref.ref(program)
        self.device = device  # its name
        self.block = block
        self.number = next(_numbers)

    @property
    def program(self) -> QueuedProgram:
        """The program, which a launch keeps."""
        program = self._program()
        assert program is not None, "a launch of it waits"
        return program


_numbers = itertools.count(1)
_families: weakref.WeakKeyDictionary[QueuedProgram, dict[Dimensions, Family]] = (
    weakref.WeakKeyDictionary()
)


def family_of(
    program: QueuedProgram, device: str, grid: Dimensions, block: Dimensions, shared_bytes: int
) -> Family | str:
    """The family of a launch; why it has none."""
    blocks = grid[0] * grid[1] * grid[2]
    if shared_bytes:
        return "it has dynamic shared memory"
    if blocks > MOST_BLOCKS:
        return f"it is large: launches of more than {MOST_BLOCKS} blocks are given one by one"
    if not blocks:
        return "it has no blocks"
    families = _families.setdefault(program, {})
    family = families.get(block)
    if family is None:
        family = families.setdefault(block, Family(program, device, block))
    return family


# --- launches -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Submission:
    """A launch of a program: a `Start` that says of what."""

    program: QueuedProgram
    device: str  # its name
    handle: Any
    grid: Dimensions
    block: Dimensions
    shared_bytes: int
    arguments: Sequence[Any]

    def __call__(self) -> Any:
        """Give it to its queue."""
        return self.program.enqueue(
            self.handle, self.grid, self.block, self.shared_bytes, self.arguments
        )


class Joinable(Protocol):
    """A `Start` that says of what, with which bytes, and what is to be done around it.

    It is a `sarek_numba.runtime.device.OneOfSeveral` too, if it has a family.
    """

    @property
    def family(self) -> Family | str:
        """Of which it may be given to the device with others; why with none."""
        ...

    @property
    def grid(self) -> Dimensions:
        """Its blocks."""
        ...

    @property
    def arguments(self) -> Sequence[Any]:
        """What the program's parameters are given."""
        ...

    @property
    def token(self) -> object:
        """Equal to that of another launch only if grids and arguments are the same."""
        ...

    @property
    def uses(self) -> Sequence[Use]:
        """All bytes that it reads and writes."""
        ...

    def note(self, numbers: dict[Storage, int], pattern: list[int]) -> None:
        """Add what `note_use` does for each use."""
        ...

    def begin(self) -> None:
        """Give the queue what comes before the launch."""
        ...

    def end(self) -> bool:
        """Give the queue what comes behind the launch; whether there is any."""
        ...


def note_use(
    numbers: dict[Storage, int],
    pattern: list[int],
    storage: Storage,
    first: int,
    last: int,
    written: bool,
) -> None:
    """Add a use to a pattern: the storage, by a number, and the bytes, negative if written."""
    number = numbers.setdefault(storage, len(numbers))
    pattern += (number, first, ~last if written else last)


@dataclass(frozen=True, slots=True, eq=False)
class Surrounded:
    """A launch between what the parts of memory that it uses need: a `Start` as well."""

    queue: WorkQueue
    memory: DeviceMemory | None  # None only without uses
    uses: Sequence[Use]
    launch: Start

    def __call__(self) -> Any:
        """Give all of it to the queue."""
        self.begin()
        mark = self.launch()
        return self.queue.queues.mark(self.queue.handle) if self.end() else mark

    @property
    def family(self) -> Family | str:
        """See `Joinable`."""
        one = self.launch
        if not isinstance(one, Submission):
            return "it is no kernel of Sarek's language"
        return family_of(one.program, one.device, one.grid, one.block, one.shared_bytes)

    @property
    def grid(self) -> Dimensions:
        """See `Joinable`."""
        assert isinstance(self.launch, Submission), "as it has a family"
        return self.launch.grid

    @property
    def arguments(self) -> Sequence[Any]:
        """See `Joinable`."""
        assert isinstance(self.launch, Submission), "as it has a family"
        return self.launch.arguments

    @property
    def token(self) -> object:
        """No other's: parts of memory are made for each launch."""
        return object()

    def note(self, numbers: dict[Storage, int], pattern: list[int]) -> None:
        """See `Joinable`."""
        for use in self.uses:
            note_use(numbers, pattern, use.storage, use.first, use.last, use.written)

    def begin(self) -> None:
        """What comes before the launch."""
        for use in self.uses:
            assert self.memory is not None
            self.memory.begin_part(use.part, self.queue.handle)

    def end(self) -> bool:
        """What comes behind the launch; whether there is any."""
        memory, handle = self.memory, self.queue.handle
        ends = [memory.end_part(use.part, handle) for use in self.uses if memory is not None]
        return any(ends)
