"""Kernels in the driver's languages that others wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.errors import ArgumentTypeError, InvalidArgument
from sarek_numba.runtime import disk
from sarek_numba.runtime.cudalike.access import check
from sarek_numba.runtime.cudalike.api import ApiError
from sarek_numba.runtime.cudalike.function import Function
from sarek_numba.runtime.cudalike.memory import Held, Part
from sarek_numba.runtime.cudalike.parameters import Parameter
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
            return TextExternal(owner, module, name, text)
        module = owner.build(text, owner.toolchain.plain_options)
        return TextExternal(owner, module, name, self._declarations(text))

    def _declarations(self, text: str) -> str:
        """A text in which parameters are declared, from the cache on disk if it is there."""
        toolchain, record = self._owner.toolchain, self._owner.record
        if toolchain.declarations is None:
            return ""
        kept = (*toolchain.plain_options, "declarations")
        key = disk.key_of(record.backend, record.identity, text, kept)
        made = disk.load(record.backend, key)
        if made is None:
            made, _ = toolchain.declarations(text, toolchain.plain_options)
            if made:
                disk.save(record.backend, key, made)
        return made.rstrip(b"\0").decode(errors="replace")


class TextExternal:
    """See `sarek_numba.runtime.languages.External`.

    The driver tells how many bytes each parameter has, not of what type; a text that declares
    them tells that of some.
    """

    shared_parameter = False

    def __init__(self, owner: CudalikeDriver, module: Any, name: str, declarations: str) -> None:
        self._owner = owner
        self._name = found = name
        access = owner.access
        with check("loading a kernel", access):
            try:
                self._function = Function(owner, module, name)
            except ApiError as error:
                if error.code != access.api.framework.not_found:
                    raise
                found = self._mangled(module)
                self._function = Function(owner, module, found)
            sizes = access.api.parameter_sizes(self._function.raw)
        parse = owner.toolchain.parameters
        declared = None if parse is None else parse(declarations, found)
        if sizes is not None and tuple(each.size for each in declared or ()) != sizes:
            declared = tuple(Parameter("", size) for size in sizes)  # the driver knows best
        self._parameters = declared
        self.types: tuple[Any, ...] | None = None
        if declared is not None:
            self.types = tuple(each.type for each in declared)

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
        self._check_widths(arguments)
        self._function.check(block)
        return self._function.start(handle, grid, block, shared_bytes, arguments)

    def _check_widths(self, arguments: Sequence[Any]) -> None:
        """Refuse a number of another width than its parameter, and a float for an integer."""
        known = self._parameters or ()
        for k, (argument, parameter) in enumerate(zip(arguments, known, strict=False)):
            is_memory = isinstance(argument, Held | Part)
            number = None if is_memory else np.asarray(argument)
            what = "an address" if number is None else f"of {number.dtype}"
            given = 8 if number is None else number.itemsize
            if given != parameter.size:
                raise ArgumentTypeError(
                    f"kernel '{self._name}': parameter {k} has {parameter.size} bytes, and what "
                    f"fills it is {what}, of {given}\n"
                    "  hint: pass a NumPy scalar of the parameter's type"
                )
            if parameter.is_integer and number is not None and number.dtype.kind == "f":
                raise ArgumentTypeError(
                    f"kernel '{self._name}': parameter {k} is an integer, "
                    f"{parameter.spelling}, and what fills it is {what}\n"
                    "  hint: pass an int, or a NumPy scalar of the parameter's type"
                )
