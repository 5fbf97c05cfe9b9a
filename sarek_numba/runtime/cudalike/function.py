"""A kernel of a module, and how it is launched."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from sarek_numba.errors import InvalidDimensions
from sarek_numba.runtime.cudalike.access import check
from sarek_numba.runtime.cudalike.api import ApiError
from sarek_numba.runtime.cudalike.memory import Packed, packed
from sarek_numba.runtime.cudalike.queues import Mark, Stream
from sarek_numba.runtime.device import Dimensions

if TYPE_CHECKING:
    from sarek_numba.runtime.cudalike.owner import Owner

_STEP = 1024  # bytes; drivers give out shared memory in smaller steps than that


class Function:
    """A kernel of a loaded module, which goes with it. Any number of threads may launch it."""

    def __init__(self, owner: Owner, module: Any, name: str) -> None:
        """The context is current. Raises ApiError."""
        api = owner.access.api
        self.owner = owner
        self.raw = api.function(module, name)
        api.finish_loading(self.raw)
        self.block_limit = api.function_attribute(self.raw, "MAX_THREADS_PER_BLOCK")
        self._registers = api.function_attribute(self.raw, "NUM_REGS")
        declared = api.function_attribute(self.raw, "SHARED_SIZE_BYTES")
        self._shared = api.framework.usual_shared - -(-declared // _STEP) * _STEP
        self._lock = threading.Lock()
        owner.retired.follow(self, module)

    def check(self, block: Dimensions) -> None:
        """Raise InvalidDimensions for a block that this kernel cannot have."""
        threads = block[0] * block[1] * block[2]
        if threads > self.block_limit:
            attribute = f"{self.owner.access.api.framework.attribute}MAX_THREADS_PER_BLOCK"
            raise InvalidDimensions(
                f"this kernel takes at most {self.block_limit} threads a block on "
                f"{self.owner.record.name} ({attribute}); the block has {threads}\n"
                f"  note: it uses {self._registers} registers a thread"
            )

    def allow_shared(self, size: int) -> None:
        """Have launches with so many dynamic bytes. The context is current. Raises ApiError."""
        if size <= self._shared:
            return
        with self._lock:
            if size > self._shared:
                self.owner.access.api.set_function_attribute(
                    self.raw, "MAX_DYNAMIC_SHARED_SIZE_BYTES", size
                )
                self._shared = size

    def give(self, given: tuple[Any, ...]) -> None:
        """One call of `Api.launch`. The context is current. Raises ApiError, InvalidDimensions."""
        result = self.owner.access.launch(*given)
        if result[0]:
            self.check_launch(result, given)

    def check_launch(self, result: tuple[Any, ...], given: tuple[Any, ...]) -> None:
        """Raise the error of what `Api.launch` gave. Raises ApiError, InvalidDimensions."""
        try:
            self.owner.access.api.check(result)
        except ApiError as error:
            if error.code != self.owner.access.api.framework.out_of_resources:
                raise
            x, y, z = given[4:7]
            raise InvalidDimensions(
                f"{self.owner.record.name} has too few registers for a block of {x * y * z} "
                f"threads of this kernel, which uses {self._registers} a thread ({error.name})"
            ) from error

    def start(
        self, handle: Stream, grid: Dimensions, block: Dimensions, size: int, arguments: Any
    ) -> Mark:
        """Give a launch to a stream; gives its mark. Raises BackendError."""
        return self.begin(handle, grid, block, size, packed(arguments))

    def begin(
        self, handle: Stream, grid: Dimensions, block: Dimensions, size: int, ready: Packed
    ) -> Mark:
        """`start` with arguments as the driver reads them."""
        owner = self.owner
        access = owner.access
        with check("a launch", access):
            self.allow_shared(size)
            start = owner.streams.begin(handle)
            self.give((self.raw, *grid, *block, size, handle.raw, ready.address, 0))
            return owner.streams.launched(handle, start)
