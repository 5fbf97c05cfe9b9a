"""Which thread wrote an element of an argument last, and where: for who asks why it differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sarek_interp.machine import Lanes, Machine
from sarek_numba.errors import Writer
from sarek_numba.ir.types import MemSpace

if TYPE_CHECKING:
    from sarek_interp.memory import Storage


class Watch:
    """Looks at the stores of one launch to the bytes from address `start` to before `end`."""

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end
        self.writer: Writer | None = None

    def stored(self, m: Machine, storage: Storage, index: Lanes, site: int) -> None:
        """The live lanes stored to, or updated, the elements at these flat indices."""
        if storage.space is not MemSpace.GLOBAL:
            return
        width = max(8, storage.scalar.bits) // 8
        addresses = storage.address + np.broadcast_to(index, m.size).astype(np.int64) * width
        hit = m.narrowed((addresses < self._end) & (addresses + width > self._start))
        if not hit.any():
            return
        lanes = m.chunk_lanes(np.flatnonzero(hit))
        assert lanes is not None
        launch = m.chunk.launch
        block, thread = divmod(int(lanes[-1]), launch.threads)
        self.writer = Writer(
            launch.block_at(m.chunk.first + block),
            launch.thread_at(thread),
            launch.sites[site].span,
        )
