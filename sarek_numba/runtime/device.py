"""The contract between the launch core and a backend.

A backend package has a module-level `backend: Backend`. Its drivers open nothing until they are
asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from sarek_numba.capability import DeviceRecord
from sarek_numba.codegen.target import Target
from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.runtime.allocator import Allocator
from sarek_numba.runtime.languages import Externals
from sarek_numba.runtime.pinned import PinnedMemory

if TYPE_CHECKING:
    from sarek_numba.runtime.plans import Plans

Bytes = npt.NDArray[np.uint8]
Dimensions = tuple[int, int, int]


class BackendUnavailable(Exception):
    """Why a backend has no devices here; shown by `sarek.devices(why=True)`."""


class Program(Protocol):
    """A kernel made ready for one device.

    `params` are those of the prepared kernel: `launch` takes one argument for each, in that
    order, a buffer of `Driver.bind` or a NumPy scalar of exactly the declared type.
    """

    params: tuple[ParamDecl, ...]
    source: str
    static_shared_bytes: int

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """Run the kernel; returns when it is done. Raises BackendError or OracleError."""
        ...


class QueuedProgram(Program, Protocol):
    """A program of a device with queues, other than those of `runtime.work.AT_ONCE`."""

    def enqueue(
        self,
        handle: Any,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> Any:
        """Give the kernel to a queue and return its mark; the arguments live until it is done.

        Raises InvalidDimensions, BackendError.
        """
        ...

    def check(self, block: Dimensions) -> None:
        """Raise InvalidDimensions for a block that this kernel cannot have; `enqueue` does too."""
        ...

    def joined(self, count: int) -> JoinedProgram | str:
        """A program for so many launches of this one at once; why there is none.

        Raises BackendError.
        """
        ...


class OneOfSeveral(Protocol):
    """A launch among those that a `JoinedProgram` is given."""

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


class JoinedProgram(Protocol):
    """A program that does what several launches of another do, of which none needs another.

    It remembers the arguments of the last time, so that who has the same again pays for none.
    """

    def another(self) -> JoinedProgram:
        """The same, for other arguments. Raises BackendError."""
        ...

    def enqueue(self, handle: Any, block: Dimensions, launches: Sequence[OneOfSeveral]) -> Any:
        """Give the launches to a queue, all or none, and return the mark of all.

        Raises InvalidDimensions, BackendError.
        """
        ...


class Queues(Protocol):
    """How a device does work in an order, beside what it does for launches that wait.

    A handle is the device's own queue, a mark its way to tell that work is done.
    """

    def open(self) -> Any:
        """A new queue; its work is done in the order in which it is given."""
        ...

    def default(self) -> Any:
        """The queue of launches without a stream, and of what the device does for them."""
        ...

    def mark(self, handle: Any) -> Any:
        """A mark behind everything that the queue was given."""
        ...

    def follow(self, handle: Any, mark: Any) -> None:
        """What the queue is given from now on begins after a mark of another of this device."""
        ...

    def submit(self, handle: Any) -> None:
        """Have the device begin with everything that the queue was given."""
        ...

    def status(self, mark: Any) -> int:
        """0 if the work is done, less if it failed, more if it is not done yet."""
        ...

    def wait(self, mark: Any) -> None:
        """Return when the work before a mark is done. Raises BackendError."""
        ...

    def duration_ms(self, mark: Any) -> float:
        """The milliseconds that the work of one mark took, which is done."""
        ...

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """The milliseconds from one mark to another; both are done."""
        ...


class DeviceMemory(Protocol):
    """Memory of a device's own, in which copies of host memory stay from launch to launch.

    `allocator` has what is allocated there, None where buffers are the host's memory; `pinned` the
    page-locked memory of the host that the device works with best, None where there is none.
    """

    allocator: Allocator | None
    pinned: PinnedMemory | None

    def hold(self, memory: Bytes) -> Any:
        """A buffer as large as host bytes, which outlive it; what it contains is undefined.

        The bytes are aligned to a page. Raises OutOfMemory.
        """
        ...

    def send(self, buffer: Any, first: int, last: int) -> None:
        """Bring bytes of the host memory to its buffer."""
        ...

    def fetch(self, buffer: Any, first: int, last: int) -> None:
        """Bring bytes of a buffer to its host memory."""
        ...

    def part(self, buffer: Any, first: int, last: int, *, written: bool) -> Any:
        """What a launch is given for some bytes of a buffer: `begin_part`, the launch, `end_part`.

        Neither of these waits, on a queue of `Queues` or, of None, on that of launches that wait.
        """
        ...

    def begin_part(self, part: Any, handle: Any = None) -> None:
        """Bring the bytes to the part, where it is memory of its own."""
        ...

    def end_part(self, part: Any, handle: Any = None) -> bool:
        """Bring what was written to where it belongs; whether the queue was given work for it."""
        ...

    def release(self, buffer: Any) -> None:
        """Give the memory of a buffer back."""
        ...

    def handle(self, buffer: Any) -> Any:
        """A buffer as the device's API has it."""
        ...


class Driver(Protocol):
    """One device. `target` is None where a kernel runs as lowered, before any pass.

    `memory` is None where the device works on host memory itself, `externals` where it compiles no
    kernels of others, `queues` where it has no streams, `plans` where every launch goes the long
    way.
    """

    record: DeviceRecord
    target: Target | None
    memory: DeviceMemory | None
    externals: Externals | None
    queues: Queues | None
    plans: Plans | None

    def prepare(self, kernel: Kernel) -> Program:
        """Compile a lowered, verified kernel: passes, emission, the device's compiler."""
        ...

    def source(self, kernel: Kernel) -> str:
        """The text that `prepare` would compile, with the kernel's name and place as a header."""
        ...

    def bind(self, memory: Bytes, *, read: bool, written: bool) -> Any:
        """Make host bytes (1-D, contiguous, any length, zero included) usable by a launch.

        Zero copy where host and device share memory. The host array outlives the buffer.
        """
        ...

    def unbind(self, buffer: Any) -> None:
        """End the use of a bound buffer; then what was written is in the host array."""
        ...


class Backend(Protocol):
    """What an entry point of group `sarek_numba.backends` names: `module.backend`."""

    name: str

    def drivers(self) -> Sequence[Driver]:
        """The devices present, in a stable order. Raises BackendUnavailable with the reason."""
        ...
