"""Blocks and threads of an emulated launch: one greenlet a thread, switched at barriers.

Threads of a block run one after another, each until its next barrier or warp operation; blocks run
in order.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import greenlet
import numpy as np

from sarek_numba import settings
from sarek_numba.errors import BarrierDivergence, WarpDivergence
from sarek_numba.frontend import language
from sarek_numba.frontend.hints import NONE, Hints
from sarek_numba.frontend.matrices import Config
from sarek_numba.ir.nodes import AtomicOp, Coordinate, FenceScope, WarpOp
from sarek_numba.verify.emulation.arrays import EmulatedArray, EmulatedRecord, poisoned
from sarek_numba.verify.emulation.matrices import EmulatedFragment, operate
from sarek_numba.verify.emulation.numbers import convert, widened
from sarek_numba.verify.emulation.warps import Request, answers, greatest, least

Dimensions = tuple[int, int, int]

_ATOMIC: dict[AtomicOp, Callable[[Any, Any], Any]] = {
    AtomicOp.ADD: lambda old, value: old + value,
    AtomicOp.SUB: lambda old, value: old - value,
    AtomicOp.MIN: least,
    AtomicOp.MAX: greatest,
    AtomicOp.AND: lambda old, value: old & value,
    AtomicOp.OR: lambda old, value: old | value,
    AtomicOp.XOR: lambda old, value: old ^ value,
    AtomicOp.INC: lambda old, top: old.dtype.type(0) if _below(top, old, True) else old + 1,
    AtomicOp.DEC: lambda old, top: top if old == 0 or _below(top, old, False) else old - 1,
    AtomicOp.EXCH: lambda old, value: value,
    AtomicOp.STORE: lambda old, value: value,
}


def _below(value: Any, other: Any, or_equal: bool) -> bool:
    """Whether a number is below another, or equal, both read as unsigned of their width."""
    modulus = 1 << (8 * value.dtype.itemsize)
    difference = int(value) % modulus - int(other) % modulus
    return difference < 0 or (or_equal and difference == 0)


class BlockState:
    """What the threads of one block share: the launch's dimensions and the shared arrays."""

    def __init__(
        self,
        grid: Dimensions,
        block: Dimensions,
        block_idx: Dimensions,
        shared_bytes: int,
        hints: Hints = NONE,
    ) -> None:
        self.hints = hints
        self.grid = grid
        self.block = block
        self.block_idx = block_idx
        self.warp = settings.warp_width() or 32
        self.dynamic = np.full(shared_bytes, 0xA5, np.uint8)
        self.shared: dict[Any, EmulatedArray] = {}
        self.given: list[Any] = []
        self.printed: dict[Dimensions, list[str]] = {}

    def text(self) -> str:
        """What the threads have printed, thread by thread."""
        return "".join(text for place in places(self.block) for text in self.printed.get(place, ()))


class EmulatedThread:
    """The place and the services of one thread: a `frontend.language.ThreadContext`."""

    def __init__(self, state: BlockState, thread_idx: Dimensions) -> None:
        self._state = state
        self._thread_idx = thread_idx

    def coordinate(self, coordinate: Coordinate, axis: int) -> int:
        state = self._state
        block_idx, block_dim = state.block_idx[axis], state.block[axis]
        match coordinate:
            case Coordinate.THREAD_IDX:
                return self._thread_idx[axis]
            case Coordinate.BLOCK_IDX:
                return block_idx
            case Coordinate.BLOCK_DIM:
                return block_dim
            case Coordinate.GRID_DIM:
                return state.grid[axis]
            case Coordinate.GLOBAL_IDX:
                return block_idx * block_dim + self._thread_idx[axis]
            case Coordinate.GRID_SIZE:
                return state.grid[axis] * block_dim

    def barrier(self) -> None:
        greenlet.getcurrent().parent.switch(None)

    def print(self, text: str) -> None:
        self._state.printed.setdefault(self._thread_idx, []).append(text)

    def mem_fence(self, scope: FenceScope) -> None:
        """Threads run one at a time, so memory is always in order."""

    def warp_size(self) -> int:
        return self._state.warp

    def warp_lane(self) -> int:
        return self._linear() % self._state.warp

    def _linear(self) -> int:
        x, y, z = self._thread_idx
        width, height, _ = self._state.block
        return x + width * (y + height * z)

    def warp(self, op: WarpOp, value: Any, lane: Any, width: Any) -> Any:
        segment = self._state.warp if width is None else int(width)
        return greenlet.getcurrent().parent.switch(Request(op, value, lane, segment))

    def fragment(self, config: Config, use: str) -> EmulatedFragment:
        return EmulatedFragment(config, use)

    def matrix(self, operation: str, *operands: Any) -> None:
        def meet(agreed: Any) -> int:
            request = Request(f"coopmat.{operation}", agreed)
            greenlet.getcurrent().parent.switch(request)
            return self.warp_lane()

        operate(operation, operands, meet)

    def warp_barrier(self) -> None:
        greenlet.getcurrent().parent.switch(Request(None))

    def shared_array(self, shape: Any, dtype: Any) -> EmulatedArray:
        """One array for each place in the source that asks, shared by the threads of the block.

        A device function asks for one of each type that it is called with.
        """
        site = (*_call_site(), shape, np.dtype(dtype))
        if site not in self._state.shared:
            self._state.shared[site] = poisoned(shape, dtype, self._state.hints)
        return self._state.shared[site]

    def agree(self, value: Any) -> Any:
        """Strong values decide the element type; a Python int or float takes it."""
        state = self._state
        if len(state.given) == prod(state.block):
            state.given = []  # of the collective before
        given = state.given
        given.append(value)
        self.barrier()
        strong = [each.dtype for each in given if isinstance(each, np.generic)]
        dtype = np.result_type(*strong) if strong else np.asarray(value).dtype
        return convert(value, dtype)

    def dynamic_shared(self, offset: int, dtype: Any) -> EmulatedArray:
        kind = np.dtype(dtype)
        region = self._state.dynamic[offset:]
        usable = len(region) // kind.itemsize * kind.itemsize
        return EmulatedArray(region[:usable].view(kind), self._state.hints)

    def local_array(self, shape: Any, dtype: Any) -> EmulatedArray:
        return poisoned(shape, dtype, self._state.hints)

    def constant_array(self, array: Any) -> EmulatedArray:
        frozen = np.array(array)
        frozen.flags.writeable = False
        return EmulatedArray(frozen, self._state.hints)

    def record(self, array: Any) -> EmulatedRecord:
        return EmulatedRecord(array, self._state.hints)

    def read(self, value: Any) -> Any:
        return widened(value)

    def number(self, value: Any, dtype: np.dtype[Any]) -> Any:
        return convert(value, dtype)

    def atomic(self, op: AtomicOp, array: Any, index: Any, value: Any, compare: Any) -> Any:
        old: Any = None if op is AtomicOp.STORE else array[index]
        if op is AtomicOp.LOAD:
            return old
        new = convert(value, array.dtype)
        if op is AtomicOp.CAS:
            expected = convert(compare, array.dtype)
            both_nan = old != old and expected != expected
            if both_nan or old.tobytes() == expected.tobytes():
                array[index] = new
            return old
        array[index] = _ATOMIC[op](old, new)
        return old


def _call_site() -> tuple[object, int]:
    """The instruction of the kernel's code, outside of this package, that is being executed."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in _OWN_FILES and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


_OWN_FILES = (__file__, language.__file__)


def run_block(state: BlockState, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Run every thread of a block to its end.

    Raises BarrierDivergence when a thread ends while others of its block wait at a barrier, and
    WarpDivergence when only some threads of a warp come to a warp operation.
    """
    strands = [greenlet.greenlet(_thread) for _ in range(prod(state.block))]
    asked: list[Request | None] = []
    for strand, place in zip(strands, places(state.block), strict=True):
        asked.append(strand.switch(EmulatedThread(state, place), function, arguments))
    while not all(strand.dead for strand in strands):
        moved = False
        for first in range(0, len(strands), state.warp):
            moved = _run_warp(state, strands, asked, first) or moved
        if moved:
            continue
        waiting = [strand for strand in strands if not strand.dead]
        if len(waiting) < len(strands):
            raise BarrierDivergence(
                f"{len(strands) - len(waiting)} of {len(strands)} threads of block "
                f"{state.block_idx} ended while the others wait at a barrier"
            )
        asked[:] = [strand.switch() for strand in strands]


def _run_warp(
    state: BlockState, strands: list[Any], asked: list[Request | None], first: int
) -> bool:
    """Let the threads of a warp go on if they wait for each other."""
    lanes = range(first, min(first + state.warp, len(strands)))
    alive = [lane for lane in lanes if not strands[lane].dead]
    requests = [each for lane in alive if (each := asked[lane]) is not None]
    if not requests:
        return False
    if len(requests) < len(lanes):
        raise WarpDivergence(
            f"{len(lanes) - len(requests)} of the {len(lanes)} threads of a warp of block "
            f"{state.block_idx} do not reach a warp operation"
        )
    for lane, answer in zip(lanes, answers(requests, state.warp), strict=True):
        asked[lane] = strands[lane].switch(answer)
    return True


def _thread(
    thread: EmulatedThread, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    """The body of a greenlet, which has its own context variables."""
    with language.emulating(thread), np.errstate(all="ignore"):
        function(*arguments)


def places(dimensions: Dimensions) -> Iterator[Dimensions]:
    """Every (x, y, z) below the dimensions, x fastest."""
    for z, y, x in itertools.product(*(range(n) for n in reversed(dimensions))):
        yield (x, y, z)
