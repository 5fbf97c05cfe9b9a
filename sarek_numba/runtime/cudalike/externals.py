"""Kernels in the driver's languages that others wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.errors import ArgumentTypeError, InvalidArgument
from sarek_numba.runtime.cudalike.access import check
from sarek_numba.runtime.cudalike.api import ApiError
from sarek_numba.runtime.cudalike.function import Function
from sarek_numba.runtime.cudalike.memory import Held, Part
from sarek_numba.runtime.cudalike.queues import Mark, Stream
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.languages import Language

if TYPE_CHECKING:
    from sarek_numba.runtime.cudalike.device import CudalikeDriver


class TextExternals:
    """See `sarek_numba.runtime.languages.Externals`."""

    def __init__(self, owner: CudalikeDriver) -> None:
        self._owner = owner
        self.languages = owner.toolchain.texts | owner.toolchain.images

    def compile(self, language: Language, source: str | bytes, name: str) -> TextExternal:
        """Text is compiled with the compiler's default arithmetic."""
        owner = self._owner
        text = source.decode() if isinstance(source, bytes) else source
        if language in owner.toolchain.images:
            module = owner.load(text.encode(), text, f"the {language.name}")
        else:
            module = owner.build(text, owner.toolchain.plain_options)
        return TextExternal(owner, module, name)


class TextExternal:
    """See `sarek_numba.runtime.languages.External`.

    The driver tells how many bytes each parameter has, not of what type.
    """

    shared_parameter = False

    def __init__(self, owner: CudalikeDriver, module: Any, name: str) -> None:
        self._owner = owner
        self._name = name
        access = owner.access
        with check("loading a kernel", access):
            try:
                self._function = Function(owner, module, name)
            except ApiError as error:
                if error.code != access.api.framework.not_found:
                    raise
                self._function = Function(owner, module, self._mangled(module))
            self._sizes = access.api.parameter_sizes(self._function.raw)
        self.types: tuple[Any, ...] | None = None
        if self._sizes is not None:
            self.types = (True,) * len(self._sizes)  # a parameter of a type that is not known

    def _mangled(self, module: Any) -> str:
        """The name that the compiler gave to a kernel which is not `extern "C"`."""
        names = self._owner.access.api.function_names(module)
        known = [each for each in names if each.startswith(f"_Z{len(self._name)}{self._name}")]
        if len(known) == 1:
            return known[0]
        shown = ", ".join(sorted(names)) or "none that the driver tells"
        raise InvalidArgument(
            f"the source has {'several kernels' if known else 'no kernel'} '{self._name}'\n"
            f'  hint: it has {shown}; extern "C" keeps a name as it is written'
        )

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
        self._check_sizes(arguments)
        self._function.check(block)
        return self._function.start(handle, grid, block, shared_bytes, arguments)

    def _check_sizes(self, arguments: Sequence[Any]) -> None:
        """Refuse a number of another width than its parameter."""
        for k, (argument, size) in enumerate(zip(arguments, self._sizes or (), strict=False)):
            is_memory = isinstance(argument, Held | Part)
            given = 8 if is_memory else np.asarray(argument).itemsize
            if given != size:
                what = "an address" if is_memory else f"of {np.asarray(argument).dtype}"
                raise ArgumentTypeError(
                    f"kernel '{self._name}': parameter {k} has {size} bytes, and what fills it is "
                    f"{what}, of {given}\n  hint: pass a NumPy scalar of the parameter's type"
                )
