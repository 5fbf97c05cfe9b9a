"""What barriers order within a block: stamps, and which of them are unordered.

A *stamp* names a thread at a moment: its block, the number of barriers that the block has passed
(its epoch), and the thread within the block. In a kernel with warp barriers the epoch is two
numbers, barriers of the block and barriers of the warp since then. A stamp may also stand for
several threads of one block, or of one warp.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Stamps = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

THREAD_BITS = 11
MANY = np.int64((1 << THREAD_BITS) - 1)  # beyond every thread of a block
_THREADS = np.uint64(MANY)


class Order:
    """Order by barriers of the block alone."""

    def __init__(self, epoch_bits: int = 22) -> None:
        self.last_epoch = (1 << epoch_bits) - 1
        self.one_epoch = np.int64(1 << THREAD_BITS)
        self.block_shift = np.int64(THREAD_BITS + epoch_bits)
        self.one_block = np.int64(1) << self.block_shift

    def stamps_of(self, blocks: Stamps, threads: Stamps) -> Stamps:
        """Stamps in epoch 0; never 0, which stands for no access."""
        stamps: Stamps = ((blocks + 1) << self.block_shift) | threads
        return stamps

    def thread_of(self, stamp: int) -> tuple[int, int | None]:
        """Block and thread of a stamp, None where there are several."""
        thread = stamp & int(MANY)
        return (stamp >> int(self.block_shift)) - 1, thread if thread < _MOST_THREADS else None

    def unordered(self, seen: Stamps, mine: Stamps) -> Flags:
        """Where two stamps are of different threads of one block in one epoch.

        That is 0 < difference < one epoch; as an unsigned number, 0 - 1 is above every limit.
        """
        difference = (seen ^ mine) - np.int64(1)
        within: Flags = difference.view(np.uint64) < _THREADS
        return within

    def both(self, seen: Stamps, mine: Stamps) -> Stamps:
        """A stamp for the threads of two that are unordered."""
        several: Stamps = mine | MANY
        return several

    def after_barrier(self, stamps: Stamps) -> Stamps:
        """The stamps of threads behind a barrier of their block."""
        return stamps + self.one_epoch

    def after_warp_barrier(self, stamps: Stamps) -> Stamps:
        """The stamps of threads behind a barrier of their warp."""
        raise AssertionError("a kernel without warp barriers")


_MOST_THREADS = 1024  # of a block; beyond stands for several
BARRIERS = Order()


class WarpOrder(Order):
    """Order by barriers of the block and of warps of `width` threads.

    The lowest `_WARP_EPOCH_BITS` of the epoch count barriers of the warp. In the field of the
    thread 1024 + w stands for several threads of warp w, MANY for threads of several warps.
    """

    _WARP_EPOCH_BITS = 14

    def __init__(self, width: int) -> None:
        super().__init__(2 * self._WARP_EPOCH_BITS)
        self._width = np.int64(width)
        self._one_warp_epoch = self.one_epoch
        self.one_epoch = self.one_epoch << np.int64(self._WARP_EPOCH_BITS)
        self.last_epoch = (1 << self._WARP_EPOCH_BITS) - 1

    def unordered(self, seen: Stamps, mine: Stamps) -> Flags:
        difference = seen ^ mine
        together = (difference > 0) & (difference < self.one_epoch)
        if not together.any():
            return together
        theirs, ours = seen & MANY, mine & MANY
        same_thread = (theirs == ours) & (ours < _MOST_THREADS)
        warp = self._warp(ours)
        later = (difference >= self._one_warp_epoch) & (self._warp(theirs) == warp) & (warp >= 0)
        found: Flags = together & ~same_thread & ~later
        return found

    def both(self, seen: Stamps, mine: Stamps) -> Stamps:
        warp = self._warp(mine & MANY)
        within = (self._warp(seen & MANY) == warp) & (warp >= 0)
        of_warp = (mine & ~MANY) | (np.int64(_MOST_THREADS) + warp)
        return np.where(within, of_warp, mine | MANY)

    def _warp(self, thread: Stamps) -> Stamps:
        """The warp of a stamp's thread or threads; -1 for threads of several."""
        several = np.where(thread == MANY, np.int64(-1), thread - np.int64(_MOST_THREADS))
        return np.where(thread < _MOST_THREADS, thread // self._width, several)

    def after_barrier(self, stamps: Stamps) -> Stamps:
        warp_epochs = self.one_epoch - self._one_warp_epoch
        return (stamps & ~warp_epochs) + self.one_epoch

    def after_warp_barrier(self, stamps: Stamps) -> Stamps:
        return stamps + self._one_warp_epoch
