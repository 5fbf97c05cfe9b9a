"""The contract between the launch core and a backend.

A backend package has a module-level `backend: Backend`. Its drivers open nothing until they are
asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sarek_numba.capability import DeviceRecord
from sarek_numba.codegen.target import Target
from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.runtime.languages import Externals

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


class DeviceMemory(Protocol):
    """Memory of a device's own, in which copies of host memory stay from launch to launch."""

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
        """What a launch is given for some bytes of a buffer; `end_part` follows the launch."""
        ...

    def end_part(self, part: Any) -> None:
        """End the use of a part; what was written to it is in the buffer then."""
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
    kernels of others.
    """

    record: DeviceRecord
    target: Target | None
    memory: DeviceMemory | None
    externals: Externals | None

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
