"""Blocks and threads of an emulated launch: one greenlet a thread, switched at barriers.

Threads of a block run one after another, each until its next barrier; blocks run in order.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import greenlet
import numpy as np

from sarek_numba.errors import BarrierDivergence
from sarek_numba.verify.emulation.arrays import EmulatedArray, poisoned
from sarek_numba.verify.emulation.numbers import convert

Dimensions = tuple[int, int, int]

_ATOMIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, value: old + value,
    "sub": lambda old, value: old - value,
    "min": np.fmin,
    "max": np.fmax,
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "exch": lambda old, value: value,
    "store": lambda old, value: value,
}


class BlockState:
    """What the threads of one block share: the launch's dimensions and the shared arrays."""

    def __init__(
        self, grid: Dimensions, block: Dimensions, block_idx: Dimensions, shared_bytes: int
    ) -> None:
        self.grid = grid
        self.block = block
        self.block_idx = block_idx
        self.dynamic = np.full(shared_bytes, 0xA5, np.uint8)
        self.shared: dict[Any, EmulatedArray] = {}


class EmulatedThread:
    """The place and the services of one thread: a `frontend.language.ThreadContext`."""

    def __init__(self, state: BlockState, thread_idx: Dimensions) -> None:
        self._state = state
        self._places = {
            "thread_idx": thread_idx,
            "block_idx": state.block_idx,
            "block_dim": state.block,
            "grid_dim": state.grid,
            "global_idx": tuple(
                b * d + t
                for b, d, t in zip(state.block_idx, state.block, thread_idx, strict=True)
            ),
            "grid_size": tuple(g * d for g, d in zip(state.grid, state.block, strict=True)),
        }

    def coordinate(self, coordinate: str, axis: int) -> int:
        return int(self._places[coordinate][axis])

    def barrier(self) -> None:
        greenlet.getcurrent().parent.switch(True)

    def mem_fence(self, scope: str) -> None:
        """Threads run one at a time, so memory is always in order."""

    def shared_array(self, shape: Any, dtype: Any) -> EmulatedArray:
        """One array for each place in the source that asks, shared by the threads of the block."""
        frame = sys._getframe(1)
        while frame.f_globals.get("__name__", "").startswith("sarek_numba."):
            assert frame.f_back is not None
            frame = frame.f_back
        key = (frame.f_code, frame.f_lasti)
        if key not in self._state.shared:
            self._state.shared[key] = poisoned(shape, dtype)
        return self._state.shared[key]

    def dynamic_shared(self, offset: int, dtype: Any) -> EmulatedArray:
        kind = np.dtype(dtype)
        region = self._state.dynamic[offset:]
        usable = len(region) // kind.itemsize * kind.itemsize
        return EmulatedArray(region[:usable].view(kind))

    def local_array(self, shape: Any, dtype: Any) -> EmulatedArray:
        return poisoned(shape, dtype)

    def constant_array(self, array: Any) -> EmulatedArray:
        frozen = np.array(array)
        frozen.flags.writeable = False
        return EmulatedArray(frozen)

    def atomic(self, op: str, array: Any, index: Any, value: Any = None, compare: Any = None) -> Any:
        old = array[index]
        if op == "load":
            return old
        new = convert(value, array.dtype)
        if op == "cas":
            if old == convert(compare, array.dtype):
                array[index] = new
            return old
        array[index] = _ATOMIC[op](old, new)
        return old


def run_block(
    state: BlockState, function: Callable[..., Any], arguments: tuple[Any, ...],
    enter: Callable[[EmulatedThread], None],
) -> None:  # fmt: skip
    """Run every thread of a block to its end; `enter` makes a thread the current one.

    Raises BarrierDivergence when a thread ends while others of its block wait at a barrier.
    """
    threads = [(EmulatedThread(state, place), greenlet.greenlet(function)) for place in places(state.block)]
    waiting = _advance(threads, arguments, enter)
    while waiting:
        if len(waiting) < len(threads):
            raise BarrierDivergence(
                f"{len(threads) - len(waiting)} of {len(threads)} threads of block "
                f"{state.block_idx} ended while the others wait at a barrier"
            )
        waiting = _advance(waiting, (), enter)


def _advance(
    threads: list[tuple[EmulatedThread, Any]], arguments: tuple[Any, ...],
    enter: Callable[[EmulatedThread], None],
) -> list[tuple[EmulatedThread, Any]]:  # fmt: skip
    """Run each thread to its next barrier or its end; those that reached a barrier."""
    waiting = []
    for thread, strand in threads:
        enter(thread)
        strand.switch(*arguments)
        if not strand.dead:
            waiting.append((thread, strand))
    return waiting


def places(dimensions: Dimensions) -> Iterator[Dimensions]:
    """Every (x, y, z) below the dimensions, x fastest."""
    for z, y, x in itertools.product(*(range(n) for n in reversed(dimensions))):
        yield (x, y, z)
