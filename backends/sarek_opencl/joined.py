"""Programs that do several launches of one kernel in one: see `sarek_numba.codegen.joined`."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.codegen import cfamily, joined
from sarek_numba.codegen.dialect import Dialect
from sarek_numba.errors import InvalidDimensions
from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.device import Dimensions, OneOfSeveral
from sarek_opencl import driver
from sarek_opencl.memory import api_arguments

if TYPE_CHECKING:
    from sarek_opencl.runtime import OpenCLDriver

MOST_BYTES = 1024  # of arguments, which every OpenCL device of version 1.1 has room for
_WORD = np.dtype(np.uint32)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a program was made from: a legalised kernel."""

    kernel: Kernel
    dialect: Dialect
    options: tuple[str, ...]


def made(owner: OpenCLDriver, recipe: Recipe, count: int) -> OpenCLJoined | str:
    """A program of `count` launches; why there is none. Raises SourceCompilationError."""
    reason = joined.why_not(recipe.kernel)
    if reason is not None:
        return reason
    size = 8 * count * types_of(recipe.kernel.params).count(None)
    size += numbers_type(recipe.kernel, count).itemsize
    room = min(MOST_BYTES, owner.device.max_parameter_size)
    if size > room:
        return f"the arguments of {count} launches are {size} bytes, and there is room for {room}"
    source = joined.emit(recipe.kernel, recipe.dialect, count).text
    built = driver.compile_program(owner.context, owner.device, source, recipe.options)
    return OpenCLJoined(owner, recipe, count, source, built)


class OpenCLJoined:
    """See `sarek_numba.runtime.device.JoinedProgram`."""

    def __init__(
        self, owner: OpenCLDriver, recipe: Recipe, count: int, source: str, built: Any
    ) -> None:
        cl = driver.load()
        self.source = source
        self._owner = owner
        self._made_from = recipe, count, source, built
        numbers = numbers_type(recipe.kernel, count)
        self._pack = struct.Struct(f"{''.join(_codes(numbers))}{_padding(numbers)}x").pack
        types = types_of(recipe.kernel.params)
        self._memory = [k for k, one in enumerate(types) if one is None]
        self._numbers = [k for k, one in enumerate(types) if one is not None]
        self._last = count * len(self._memory)  # the place of the numbers among the parameters
        with driver.check("creating a kernel", owner.device):
            self._kernel = cl.Kernel(built, cfamily.ENTRY)
            self._limit = int(
                self._kernel.get_work_group_info(
                    cl.kernel_work_group_info.WORK_GROUP_SIZE, owner.device
                )
            )
        self._lock = threading.Lock()  # what follows belongs to the kernel object
        self._tokens: list[object] = [None] * count
        self._own: list[list[Any]] = [[] for _ in range(count)]  # the numbers of each launch
        self._blocks = 0

    def another(self) -> OpenCLJoined:
        """See `sarek_numba.runtime.device.JoinedProgram`."""
        return OpenCLJoined(self._owner, *self._made_from)

    def enqueue(self, handle: Any, block: Dimensions, launches: Sequence[OneOfSeveral]) -> Any:
        """See `sarek_numba.runtime.device.JoinedProgram`."""
        threads = block[0] * block[1] * block[2]
        if threads > self._limit:
            raise InvalidDimensions(
                f"joined launches take at most {self._limit} threads a block, not {threads}"
            )
        driver.refuse_lost(self._owner.device)
        tokens = [launch.token for launch in launches]
        try:
            with self._lock:
                if tokens != self._tokens:
                    self._set_arguments(launches, tokens)
                total = (self._blocks * block[0], block[1], block[2])
                return driver.enqueue(handle, self._kernel, total, block)
        except driver.load().Error as error:
            raise driver.failure(error, "a launch", self._owner.device) from error

    def _set_arguments(self, launches: Sequence[OneOfSeveral], tokens: list[object]) -> None:
        before, self._tokens = self._tokens, [None] * len(tokens)
        set_arg, place, first = self._kernel.set_arg, 0, 0
        numbers: list[Any] = []
        for k, launch in enumerate(launches):
            grid = launch.grid
            if tokens[k] != before[k]:
                given = api_arguments(launch.arguments)
                for j, parameter in enumerate(self._memory):
                    set_arg(place + j, given[parameter])
                self._own[k] = [given[parameter] for parameter in self._numbers]
            place += len(self._memory)
            numbers += (*self._own[k], first, *grid)
            first += grid[0] * grid[1] * grid[2]
        set_arg(self._last, self._pack(*numbers))
        self._blocks, self._tokens = first, tokens


def numbers_type(kernel: Kernel, count: int) -> np.dtype[Any]:
    """The structure with the numbers of launches, laid out as C has it."""
    one = [dtype for dtype in types_of(kernel.params) if dtype is not None]
    fields = [*one, *[_WORD] * len(joined.PLACES)] * count
    return np.dtype([(str(k), dtype) for k, dtype in enumerate(fields)], align=True)


def _codes(numbers: np.dtype[Any]) -> list[str]:
    """The types of a structure's members, for the module `struct`, which aligns them as C does."""
    assert numbers.fields is not None
    return [field[0].char for field in numbers.fields.values()]


def _padding(numbers: np.dtype[Any]) -> int:
    """Bytes behind the last member."""
    assert numbers.fields is not None
    last = max(offset + dtype.itemsize for dtype, offset, *_ in numbers.fields.values())
    return numbers.itemsize - last


def types_of(params: Sequence[ParamDecl]) -> list[np.dtype[Any] | None]:
    """The type of each scalar parameter, None for memory; pyopencl packs known types faster."""
    return [
        np.dtype(param.var.type.value) if isinstance(param.var.type, Scalar) else None
        for param in params
    ]
