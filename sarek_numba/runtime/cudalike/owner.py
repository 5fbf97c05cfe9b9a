"""What the parts of a device know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sarek_numba.capability import DeviceRecord

if TYPE_CHECKING:
    from sarek_numba.runtime.cudalike.access import Access
    from sarek_numba.runtime.cudalike.queues import Stream, StreamQueues
    from sarek_numba.runtime.cudalike.retired import Retired


class Owner(Protocol):
    """One device."""

    access: Access
    record: DeviceRecord
    streams: StreamQueues
    retired: Retired

    @property
    def stream(self) -> Stream:
        """That of launches without a stream."""
        ...

    @property
    def copies(self) -> Stream:
        """That of copies between host and device."""
        ...
