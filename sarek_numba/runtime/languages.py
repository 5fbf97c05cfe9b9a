"""Languages of kernels that others wrote, and what compiles them for a device."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import numpy as np


class Language(Enum):
    """A language of kernels; the suffixes of its files."""

    CUDA = (".cu",)
    PTX = (".ptx",)
    HIP = (".hip",)
    OPENCL = (".cl",)
    SPIRV = (".spv",)
    GLSL = (".comp", ".glsl")
    METAL = (".metal",)

    def __repr__(self) -> str:
        return f"Language.{self.name}"


class External(Protocol):
    """A compiled kernel. `types` are the NumPy types of its parameters, None for memory; None if
    the device does not tell them. With a `shared_parameter` dynamic shared memory is the last of
    them."""

    types: tuple[np.dtype[Any] | None, ...] | None
    shared_parameter: bool

    def launch(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> None:
        """Run it; returns when it is done. Raises BackendError."""
        ...

    def enqueue(
        self,
        handle: Any,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> Any:
        """Give it to a queue and return its mark, as `QueuedProgram.enqueue`."""
        ...


@runtime_checkable
class Separate(Protocol):
    """A kernel whose arrays and numbers are counted apart: it has `memory` parameters that arrays
    fill, and numbers of the types `numbers`, each in their order."""

    memory: int
    numbers: tuple[np.dtype[Any], ...]

    def check(self, block: tuple[int, int, int], shared_bytes: int) -> None:
        """Refuse a launch that the kernel's own text rules out. Raises LaunchError."""
        ...


class Externals(Protocol):
    """What compiles such kernels for one device."""

    languages: frozenset[Language]

    def compile(self, language: Language, source: str | bytes, name: str) -> External:
        """The kernel of a name. Raises SourceCompilationError, InvalidArgument if there is none."""
        ...
