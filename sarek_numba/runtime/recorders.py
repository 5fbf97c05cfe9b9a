"""What takes down what a thread launches, copies and fills, where that is to be done later.

`current` is the recorder of this thread or task, None where things are done at once. A launch is
checked as any launch, then given to the recorder instead of the device. What cannot be taken down,
as a read on the host, is refused: the host would see what is not computed yet.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol

from sarek_numba.errors import GraphError


class Recorder(Protocol):
    """Takes down what a block of a program does.

    Storages know of it, so it names no types of what stands on them: `Device`, `Analysed`,
    `Arguments`, `Vector`.
    """

    def launched(
        self,
        device: Any,
        analysed: Any,
        arguments: Any,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
    ) -> None:
        """A launch that is checked. Raises GraphError for arguments that cannot be taken down."""
        ...

    def copied(self, destination: Any, source: Any) -> None:
        """Elements are copied to as many others, from a vector, or from an array that stays so."""
        ...

    def filled(self, destination: Any, value: Any) -> None:
        """All elements become a number, or a record."""
        ...

    def allocated(self, vector: Any, shape: Any) -> None:
        """A vector of new memory, of a shape as it was asked for. Raises GraphError."""
        ...


current: ContextVar[Recorder | None] = ContextVar("sarek_recorder", default=None)


keeps_vectors: ContextVar[bool] = ContextVar("sarek_keeps_vectors", default=False)
"""Whether a function runs that is to be taken down later: `stdlib` gives vectors, as then."""


def gives_vectors() -> bool:
    """Whether algorithms take vectors as they are and give vectors, whose elements nobody reads."""
    return current.get() is not None or keeps_vectors.get()


def refuse(what: str, hint: str) -> None:
    """Raise GraphError where a recorder cannot take down what is about to be done."""
    if current.get() is not None:
        raise GraphError(f"{what} inside a capture\n  hint: {hint}")


def refuse_host_read() -> None:
    """Raise GraphError where the host is about to read a vector."""
    refuse(
        "the host reads a vector, whose elements are not computed before the graph is replayed,",
        "read it after g.replay(), outside of `with sarek.capture()`",
    )
