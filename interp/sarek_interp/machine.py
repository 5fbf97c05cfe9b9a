"""The state of a launch while it runs: chunks of blocks, lanes, masks, variables.

A *chunk* is a range of whole blocks whose threads run together; thread t of the chunk's block b is
chunk lane b * threads + t. A *frame* is the chunk's lanes, or some of them where few are live: the
arrays in `Machine.values` have one element for each lane of the frame, or a single one where all
lanes agree. No array is ever changed in place once it is a value or a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sarek_interp.clocks import Clocks
from sarek_interp.order import BARRIERS, Order
from sarek_interp.report import Findings
from sarek_numba.errors import Finding, NoProgress, OracleError, Triple
from sarek_numba.ir.nodes import Coordinate
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_interp.covering import LinesRun
    from sarek_interp.watch import Watch

Lanes = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Selection = npt.NDArray[np.intp]

FALSE = np.zeros(1, np.bool_)
TRUE = np.ones(1, np.bool_)
_COMPACT_FROM = 512  # a frame of fewer lanes costs no more than the calls that work on it
_COMPACT_RATIO = 4


class Stopped(Exception):
    """Ends a launch that makes no progress; the finding is recorded."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the program that may have something to report; numbered in program order."""

    number: int
    span: Span | None
    part: int | None = None  # of an access to a part of a complex element
    twin: int | None = None  # the site of the same access to the other part

    @property
    def first(self) -> int:
        """The site that stands for both parts: what is found at either is one finding."""
        return self.number if self.twin is None else self.twin


@dataclass(slots=True)
class Launch:
    """What all chunks of a launch share."""

    kernel: str
    grid: Triple
    block: Triple
    findings: Findings
    sites: list[Site]
    strict_races: bool = False
    step_limit: int = 0
    order: Order = BARRIERS
    clocks: Clocks | None = None  # of a kernel with atomics and fences
    watch: Watch | None = None  # of an element whose last writer is asked for
    lines: list[tuple[int, str]] = field(default_factory=list)  # thread of the launch, its text

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def block_at(self, linear: int) -> Triple:
        return _unravel(linear, self.grid)

    def thread_at(self, linear: int) -> Triple:
        return _unravel(linear, self.block)


def _unravel(linear: int, extents: Triple) -> Triple:
    x, rest = linear % extents[0], linear // extents[0]
    return x, rest % extents[1], rest // extents[1]


class Chunk:
    """Blocks `first` … `first + count - 1`, in the order that `ranks` gives them for atomics."""

    def __init__(self, launch: Launch, first: int, count: int, ranks: Lanes) -> None:
        threads = launch.threads
        self.launch = launch
        self.first = first
        self.count = count
        self.lanes = count * threads
        self.thread = np.tile(np.arange(threads), count)
        self.block = np.repeat(np.arange(count), threads)
        self.rank = np.repeat(ranks * threads, threads) + self.thread
        self.stamps = launch.order.stamps_of(self.block + first, self.thread)
        self.barriers = 0
        self.steps = 0
        self.watchers = 0  # loops that want to know whether memory changes
        self.changes = 0
        self.lines: LinesRun | None = None  # what is counted while somebody records
        self.returned_at: Lanes | None = None  # site of the return of each lane, where it matters
        self.fragments: dict[str, Lanes] = {}  # by name: warp of the chunk, row, column
        self._coordinates: dict[tuple[Coordinate, int], Lanes] = {}

    def coordinate(self, which: Coordinate, axis: int) -> Lanes:
        """A coordinate of every lane, in int64; one element where all lanes agree."""
        key = (which, axis)
        known = self._coordinates.get(key)
        if known is None:
            known = self._coordinates[key] = self._compute(which, axis)
        return known

    def _compute(self, which: Coordinate, axis: int) -> Lanes:
        grid, block = self.launch.grid, self.launch.block
        match which:
            case Coordinate.BLOCK_DIM:
                return np.array([block[axis]])
            case Coordinate.GRID_DIM:
                return np.array([grid[axis]])
            case Coordinate.GRID_SIZE:
                return np.array([block[axis] * grid[axis]])
            case Coordinate.THREAD_IDX:
                return _along(self.thread, block, axis)
            case Coordinate.BLOCK_IDX:
                if self.count == 1:
                    return _along(np.array([self.first]), grid, axis)
                return _along(self.block + self.first, grid, axis)
            case Coordinate.GLOBAL_IDX:
                start = self.coordinate(Coordinate.BLOCK_IDX, axis) * block[axis]
                result: Lanes = start + self.coordinate(Coordinate.THREAD_IDX, axis)
                return result


def _along(linear: Lanes, extents: Triple, axis: int) -> Lanes:
    if extents[axis] == 1:
        return np.zeros(1, np.int64)
    below = 1
    for extent in extents[:axis]:
        below *= extent
    if below > 1:
        linear = linear // below
    beyond = axis == 2 or all(extent == 1 for extent in extents[axis + 1 :])
    return linear if beyond else linear % extents[axis]


@dataclass(frozen=True, slots=True)
class Scope:
    """What code inside a branch or a loop touches, so that a smaller frame need not carry more."""

    used: tuple[int, ...]
    assigned: tuple[int, ...]


@dataclass(slots=True)
class Divergence:
    """Lanes of the chunk that went on into a branch or loop which holds a barrier."""

    span: Span | None
    lanes: Selection


@dataclass(slots=True)
class Machine:
    """The lanes that run now. `mask` None stands for every lane of the frame."""

    chunk: Chunk
    values: dict[int, Any]
    size: int
    lanes: Selection | None = None  # chunk lane of each lane of the frame; None for the whole chunk
    mask: Mask | None = None
    bad: Mask | None = None  # lanes whose subscript was out of range within the index at hand
    divergences: list[Divergence] = field(default_factory=list)
    _selected_mask: Mask | None = None
    _selected: Selection | None = None
    _coordinates: dict[tuple[Coordinate, int], Lanes] = field(default_factory=dict)

    # --- lanes ------------------------------------------------------------------------------------

    def selected(self) -> Selection | None:
        """Frame lanes that are live; None for all of them."""
        if self.mask is None:
            return None
        if self._selected_mask is not self.mask:
            self._selected_mask = self.mask
            self._selected = np.flatnonzero(self.mask)
        return self._selected

    def chunk_lanes(self, frame_lanes: Selection | None) -> Selection | None:
        """Chunk lanes of some lanes of the frame, or of all of them; None for the whole chunk."""
        if frame_lanes is None:
            return self.lanes
        return frame_lanes if self.lanes is None else self.lanes[frame_lanes]

    def of_lanes(self, of_chunk: Lanes, frame_lanes: Selection | None) -> Lanes:
        """The elements of a chunk-wide array for some lanes of the frame."""
        lanes = self.chunk_lanes(frame_lanes)
        return of_chunk if lanes is None else of_chunk[lanes]

    def coordinate(self, which: Coordinate, axis: int) -> Lanes:
        whole = self.chunk.coordinate(which, axis)
        if self.lanes is None or whole.size == 1:
            return whole
        key = (which, axis)
        if key not in self._coordinates:
            self._coordinates[key] = whole[self.lanes]
        return self._coordinates[key]

    # --- masks ------------------------------------------------------------------------------------

    def nobody(self) -> Mask:
        return np.zeros(self.size, np.bool_)

    def any(self) -> bool:
        return self.mask is None or bool(self.mask.any())

    def narrowed(self, condition: Mask) -> Mask:
        """The live lanes for which a condition holds, as a mask."""
        if condition.size != self.size:
            condition = np.broadcast_to(condition, self.size)
        return condition if self.mask is None else self.mask & condition

    def worth_compacting(self, live: int) -> bool:
        return self.size >= _COMPACT_FROM and live * _COMPACT_RATIO <= self.size

    def compacted(self, mask: Mask, scope: Scope, run: Callable[[Machine], None]) -> None:
        """Run code for the lanes of `mask` in a frame of their own.

        Assigned variables are brought back; `self.mask` is what is left of `mask` afterwards.
        """
        chosen = np.flatnonzero(mask)
        outer = self.values
        inner: dict[int, Any] = {}
        for slot in scope.used:
            if slot in outer:
                inner[slot] = _gathered(outer[slot], chosen, self.size)
        before = {slot: inner[slot] for slot in scope.assigned if slot in inner}
        part = Machine(
            self.chunk,
            inner,
            chosen.size,
            chosen if self.lanes is None else self.lanes[chosen],
            divergences=self.divergences,
        )
        run(part)
        for slot, old in before.items():
            new = part.values[slot]
            if new is not old:
                whole = np.array(np.broadcast_to(outer[slot], self.size))
                whole[chosen] = new
                outer[slot] = whole
        if part.mask is None:
            self.mask = mask
        else:
            self.mask = self.nobody()
            self.mask[chosen] = part.mask

    # --- progress ---------------------------------------------------------------------------------

    def count_pass(self, site: int) -> None:
        """Called before each pass of a loop; ends a launch that goes on beyond the step limit."""
        chunk = self.chunk
        chunk.steps += 1
        if chunk.steps > chunk.launch.step_limit:
            limit = chunk.launch.step_limit
            self.stop(site, f"the kernel did not end within {limit} passes of its loops")

    def count_barrier(self, site: int) -> None:
        """Called at each barrier; an epoch beyond the last would look like the one before."""
        self.chunk.barriers += 1
        last = self.chunk.launch.order.last_epoch
        if self.chunk.barriers >= last:
            self.stop(site, f"the kernel passed {last} barriers")

    def stop(self, site: int, message: str) -> None:
        self.report(NoProgress, site, self.selected(), lambda: {"message": message})
        raise Stopped

    # --- findings ---------------------------------------------------------------------------------

    def report(
        self,
        error: type[OracleError],
        site: int,
        frame_lanes: Selection | None,
        explain: Callable[[], dict[str, Any]],
        key: object = None,
    ) -> None:
        """Record one fault of some lanes of the frame.

        `explain()` gives the fields of the finding, as the first of those lanes met it; of a fault
        that is known already it is not called.
        """
        launch = self.chunk.launch
        count = self.size if frame_lanes is None else frame_lanes.size
        place = launch.sites[site]
        found = (error, place.first, key)
        again = 0 if place.twin is not None else count  # the threads of a twin are counted already
        if count == 0 or launch.findings.known(found, again):
            return
        lanes = self.chunk_lanes(frame_lanes)
        lane = 0 if lanes is None else int(lanes[0])  # they are in order of block, then thread
        block, thread = divmod(lane, launch.threads)
        finding = Finding(
            error=error,
            kernel=launch.kernel,
            span=place.span,
            block=launch.block_at(self.chunk.first + block),
            thread=launch.thread_at(thread),
            threads=count,
            order=site,
            **explain(),
        )
        launch.findings.add(found, finding)


def _gathered(value: Any, chosen: Selection, size: int) -> Any:
    if isinstance(value, np.ndarray) and value.size == size and size > 1:
        return value[chosen]
    return value


def united(left: Mask | None, right: Mask | None) -> Mask | None:
    """The lanes of either mask."""
    if left is None or right is None:
        return None
    return left | right


def slots(*groups: Iterable[int]) -> tuple[int, ...]:
    """The slots of several groups, each once, in a stable order."""
    return tuple(sorted({slot for group in groups for slot in group}))
