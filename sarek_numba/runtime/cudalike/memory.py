"""Memory of a device: copies of host memory that stay from launch to launch.

A buffer is an address, and a part of it another address. Copies go through a stream of their own
and are waited for: the host returns from a copy of memory that it may page before the device has
it. Where the host memory is page-locked the driver copies without a stage of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.runtime.allocator import Allocator
from sarek_numba.runtime.cudalike.access import check
from sarek_numba.runtime.device import Bytes
from sarek_numba.runtime.pinned import PinnedMemory

if TYPE_CHECKING:
    from sarek_numba.runtime.cudalike.owner import Owner

_WORD = 8  # bytes of every argument: no number is wider


@dataclass(slots=True, eq=False)
class Held:
    """A buffer's address, the host bytes that it is a copy of, and the context that it is of."""

    address: int
    host: Bytes
    written: bool = False
    context: int = 0


@dataclass(slots=True, eq=False)
class Part:
    """An address within a buffer."""

    address: int
    whole: Held


@dataclass(slots=True, eq=False)
class Packed:
    """Arguments of a launch as the driver reads them: words, and the addresses of the words."""

    words: Any
    addresses: Any

    @property
    def address(self) -> int:
        """Where the addresses are; valid as long as this object."""
        where: int = self.addresses.__array_interface__["data"][0]
        return where


def packed(arguments: Sequence[Any]) -> Packed:
    """Buffers, parts and NumPy scalars as a launch takes them."""
    words = np.zeros(max(1, len(arguments)), np.uint64)
    raw = words.view(np.uint8)
    for k, argument in enumerate(arguments):
        if isinstance(argument, Held | Part):
            words[k] = argument.address
        else:
            given = np.frombuffer(argument.tobytes(), np.uint8)
            raw[_WORD * k : _WORD * k + given.size] = given
    return Packed(words, addresses_of(words))


def addresses_of(words: Any) -> Any:
    """The address of each word."""
    first: int = words.__array_interface__["data"][0]
    return first + _WORD * np.arange(len(words), dtype=np.uint64)


class AddressMemory:
    """See `sarek_numba.runtime.device.DeviceMemory`."""

    allocator: Allocator | None
    pinned: PinnedMemory | None

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._allocator = Allocator(self._allocate, self._free)
        self.allocator = self._allocator
        self.pinned = PinnedMemory(self._allocate_pinned, self._release_pinned)

    def hold(self, memory: Bytes) -> Held:
        """Memory of the device; of no bytes too."""
        return Held(
            self._allocator.acquire(memory.size), memory, context=self._owner.access.context
        )

    def _allocate(self, size: int) -> int:
        access = self._owner.access
        with check("allocating memory", access, size):
            return access.api.allocate(size)

    def _free(self, address: int) -> None:
        access = self._owner.access
        with check("freeing memory", access):
            access.api.free(address)

    def _allocate_pinned(self, size: int) -> tuple[int, int]:
        access = self._owner.access
        with check("allocating page-locked memory", access, size):
            address = access.api.allocate_host(size)
        return address, address

    def _release_pinned(self, address: int) -> None:
        access = self._owner.access
        with check("freeing page-locked memory", access):
            access.api.free_host(address)

    def send(self, buffer: Held, first: int, last: int) -> None:
        """From the host."""
        if first == last:
            return
        access, stream = self._owner.access, self._owner.copies
        with check("writing memory of the device", access):
            host = _address(buffer.host) + first
            access.api.copy_in(buffer.address + first, host, last - first, stream.raw)
            access.api.finish_stream(stream.raw)

    def fetch(self, buffer: Held, first: int, last: int) -> None:
        """To the host."""
        if first == last:
            return
        access, stream = self._owner.access, self._owner.copies
        with check("reading memory of the device", access):
            host = _address(buffer.host) + first
            access.api.copy_out(host, buffer.address + first, last - first, stream.raw)
            access.api.finish_stream(stream.raw)

    def transfers_from(self, source: Any) -> bool:
        """Whether bytes come from other memory without the host: from a device of the same kind."""
        if not isinstance(source, AddressMemory):
            return False
        return source._owner.access.api.framework is self._owner.access.api.framework

    def transfer(self, destination: Held, at: int, source: Any, first: int, size: int) -> None:
        """Copy bytes between buffers; see `sarek_numba.realize.copies.TransferringMemory`.

        `source` is of a memory that `transfers_from` takes.
        """
        access, stream = self._owner.access, self._owner.copies
        with check("copying memory of devices", access):
            access.api.copy_between(
                destination.address + at, access.context, source.address + first,
                source.context, size, stream.raw,
            )  # fmt: skip
            access.api.finish_stream(stream.raw)

    def part(self, buffer: Held, first: int, last: int, *, written: bool) -> Part:
        """An address."""
        return Part(buffer.address + first, buffer)

    def begin_part(self, part: Part, handle: Any = None) -> None:
        """A part is the buffer's memory."""

    def end_part(self, part: Part, handle: Any = None) -> bool:
        """A part is the buffer's memory."""
        return False

    def handle(self, buffer: Held) -> int:
        """The address, as the driver has it."""
        return buffer.address

    def release(self, buffer: Held) -> None:
        """Kept for another: no launch is pending."""
        self._allocator.give_back(buffer.host.size, buffer.address)


def _address(memory: Bytes) -> int:
    where: int = memory.__array_interface__["data"][0]
    return where
