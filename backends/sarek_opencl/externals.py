"""OpenCL C that others wrote."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.errors import InvalidArgument, InvalidDimensions
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.languages import Language
from sarek_opencl import driver
from sarek_opencl.memory import api_arguments

if TYPE_CHECKING:
    from sarek_opencl.runtime import OpenCLDriver

_TYPES = {
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "float": np.float32,
    "double": np.float64,
}


class OpenCLExternals:
    """See `sarek_numba.runtime.languages.Externals`."""

    languages = frozenset({Language.OPENCL})

    def __init__(self, owner: OpenCLDriver) -> None:
        self._owner = owner

    def compile(self, language: Language, source: str | bytes, name: str) -> OpenCLExternal:
        """Built with the device's default options, and with what tells the parameters' types."""
        cl, owner = driver.load(), self._owner
        text = source.decode() if isinstance(source, bytes) else source
        options = ("-cl-kernel-arg-info",)
        program = driver.compile_program(owner.context, owner.device, text, options)
        found = {kernel.function_name: kernel for kernel in program.all_kernels()}
        if name not in found:
            names = ", ".join(sorted(found)) or "none at all"
            raise InvalidArgument(f"the source has no kernel '{name}'\n  hint: it has {names}")
        with driver.check("creating a kernel", owner.device):
            return OpenCLExternal(owner, cl.Kernel(program, name))


class OpenCLExternal:
    """See `sarek_numba.runtime.languages.External`."""

    shared_parameter = True

    def __init__(self, owner: OpenCLDriver, kernel: Any) -> None:
        self._owner = owner
        self._kernel = kernel
        self._lock = threading.Lock()  # arguments belong to the kernel object
        self.types = self._types()

    def _types(self) -> tuple[np.dtype[Any] | None, ...] | None:
        cl = driver.load()
        info, spaces = cl.kernel_arg_info, cl.kernel_arg_address_qualifier
        found: list[np.dtype[Any] | None] = []
        try:
            for k in range(self._kernel.num_args):
                space = self._kernel.get_arg_info(k, info.ADDRESS_QUALIFIER)
                if space != spaces.PRIVATE:
                    found.append(None)
                    continue
                type = _TYPES.get(self._kernel.get_arg_info(k, info.TYPE_NAME))
                if type is None:  # a structure or a vector: left to the driver
                    return None
                found.append(np.dtype(type))
        except cl.Error:
            return None
        return tuple(found)

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """See `sarek_numba.runtime.languages.External`; shared bytes are a last parameter."""
        mark = self.enqueue(self._owner.queue, grid, block, shared_bytes, arguments)
        with driver.check("a launch", self._owner.device):
            mark.wait()

    def enqueue(
        self,
        handle: Any,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> Any:
        """See `sarek_numba.runtime.languages.External`."""
        cl, device = driver.load(), self._owner.device
        ready = api_arguments(arguments)
        if shared_bytes:
            ready.append(cl.LocalMemory(shared_bytes))
        try:
            return driver.start(handle, self._kernel, self._lock, grid, block, ready)
        except cl.Error as error:
            if error.code == cl.status_code.INVALID_WORK_GROUP_SIZE:
                raise InvalidDimensions(
                    f"{device.name} refuses a block of {block}: {error}"
                ) from error
            raise driver.failure(error, "a launch", device) from error
