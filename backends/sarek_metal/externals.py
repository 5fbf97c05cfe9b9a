"""Kernels in the Metal Shading Language that others wrote.

Argument n goes to `[[buffer(n)]]`: an array as a `device` pointer, a number as a `constant`
reference. Shared bytes are those of `[[threadgroup(0)]]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_metal.dialect import BUFFERS
from sarek_metal.memory import Held, Part
from sarek_metal.queues import Mark, Stream
from sarek_numba.errors import InvalidArgument
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.languages import Language

if TYPE_CHECKING:
    from sarek_metal.runtime import MetalDriver


class MetalExternals:
    """See `sarek_numba.runtime.languages.Externals`."""

    languages = frozenset({Language.METAL})

    def __init__(self, owner: MetalDriver) -> None:
        self._owner = owner

    def compile(self, language: Language, source: str | bytes, name: str) -> MetalExternal:
        """Built with the options of the project's own kernels: no fast math."""
        text = source.decode() if isinstance(source, bytes) else source
        library = self._owner.build(text)
        function = library.newFunctionWithName_(name)
        if function is None:
            names = ", ".join(sorted(map(str, library.functionNames()))) or "none at all"
            raise InvalidArgument(f"the source has no kernel '{name}'\n  hint: it has {names}")
        return MetalExternal(self._owner, function, text, name)


class MetalExternal:
    """See `sarek_numba.runtime.languages.External`. Metal tells no types of parameters here."""

    shared_parameter = False
    types: tuple[Any, ...] | None = None

    def __init__(self, owner: MetalDriver, function: Any, source: str, name: str) -> None:
        from sarek_metal.runtime import Pipeline

        self._owner = owner
        self._name = name
        self._pipeline = Pipeline(owner, function, source)

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """See `sarek_numba.runtime.languages.External`."""
        mark = self.enqueue(self._owner.stream, grid, block, shared_bytes, arguments)
        self._owner.streams.wait(mark)

    def enqueue(
        self,
        handle: Stream,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> Mark:
        """See `sarek_numba.runtime.languages.External`."""
        self._pipeline.check(block)
        if len(arguments) > BUFFERS:
            raise InvalidArgument(
                f"kernel '{self._name}' is given {len(arguments)} arguments, lengths included; "
                f"Metal has places for {BUFFERS}"
            )
        given = [
            argument if isinstance(argument, Held | Part) else np.asarray(argument).tobytes()
            for argument in arguments
        ]
        return self._pipeline.start(handle, grid, block, given, shared_bytes)
