"""The block that a kernel runs fastest with: `optimize_local_size`.

Candidates are blocks whose sides are powers of two up to 1024, of at most 1024 threads and what
the device and the kernel take. Each computes the whole result: the grid is rounded up where the
kernel guards itself, and otherwise a candidate divides the number of threads. Nothing of the user's
is written: what the kernel writes is a copy. A choice is kept by program, device and size class, in
the process and on disk. Two times of each tell little apart, so the fastest one has to win against
the block that `forall` has by itself once more: where it is not clearly faster that one stays.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from sarek_numba.errors import DeviceLost, InvalidArgument
from sarek_numba.realize.programs import Program
from sarek_numba.runtime import disk, recorders
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime.cache import Memo
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.dimensions import dimensions
from sarek_numba.runtime.duplicates import duplicates
from sarek_numba.runtime.registry import Device, device
from sarek_numba.runtime.soa import SoAVector

LARGEST = 1024  # threads of a block, and along one side
_USUAL = (256, 1, 1)  # of `forall`
_ROUNDS = 7  # of the fastest block against the usual one
_CLEARLY = 0.98  # of the usual one's time
_KIND = "local_size"  # of entries on disk
_PATIENCE = 1.0  # seconds without a progress bar
_TOLERANCE = {"f": 64.0, "c": 64.0}  # units in the last place that sums in another order may differ

Timer = Callable[[Dimensions], float]
"""Launches with a block, and gives the seconds that it took; what it raises excludes the block."""

_chosen: Memo[Dimensions] = Memo()


def candidates(
    global_size: Dimensions, limits: Sequence[int], most_threads: int, guarded: bool
) -> list[Dimensions]:
    """The blocks that compute the whole of `global_size` threads, the smallest first.

    `limits` are the largest sides. Where the kernel is `guarded` a side may be as large as the next
    power of two, else it divides the number of threads.
    """
    sides = []
    for size, limit in zip(global_size, limits, strict=True):
        powers = [2**k for k in range(11) if 2**k <= min(limit, LARGEST)]
        whole = 1 << max(0, size - 1).bit_length()
        sides.append([p for p in powers if (p <= whole if guarded else size % p == 0)])
    found = [block for block in product(*sides) if np.prod(block) <= min(most_threads, LARGEST)]
    return sorted(found, key=lambda block: (int(np.prod(block)), block))


def optimize_local_size(
    which: str | Device | None,
    program: Program,
    global_size: int | tuple[int, ...],
    buffers: Sequence[Any],
    *,
    guarded: bool = False,
    most_threads: int | None = None,
    seed: int | None = None,
    timer: Timer | None = None,
    cached: bool = True,
) -> Dimensions:
    """The fastest block (x, y, z) for so many threads.

    `buffers` are all arguments of the kernel, numbers too. `guarded` says that the kernel does
    nothing in threads beyond `global_size`; `most_threads` of a block are what it takes. Each
    candidate is launched twice, in an order that `seed` makes; compiling and first launches are not
    timed. The result of the fastest is compared with that of the smallest; one that differs is left
    out. Where it is not clearly faster than a block of 256 in turns, that is chosen. `timer` takes
    the place of timing. Raises InvalidArgument if no candidate can be launched, with a note for
    each; OutOfMemory and interrupts at once; GraphError inside a capture.
    """
    target = device(which)
    threads = dimensions(program.name, "grid", global_size)
    limits = target.record.limits
    most = min(limits.threads_per_block, most_threads or LARGEST)
    blocks = candidates(threads, limits.block, most, guarded)
    identity = program.analysed.identity
    key = (identity.content, identity.name, target, _size_class(threads), guarded)
    if not cached:
        return _search(target, program, threads, buffers, blocks, seed, timer)
    search = _Kept(target, program, threads, guarded)

    def choose() -> Dimensions:
        found = search.load()
        if found is None or found not in blocks:
            found = _search(target, program, threads, buffers, blocks, seed, timer)
            search.save(found)
        return found

    chosen = _chosen.get(key, choose)
    if chosen in blocks:
        return chosen
    return _search(target, program, threads, buffers, blocks, seed, timer)  # another size


def _size_class(threads: Dimensions) -> tuple[int, ...]:
    """Sizes between two powers of two are alike."""
    return tuple(size.bit_length() for size in threads)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A choice on disk."""

    device: Device
    program: Program
    threads: Dimensions
    guarded: bool

    @property
    def _key(self) -> str:
        record = self.device.record
        about = (record.name, record.description, *(x for pair in record.identity for x in pair))
        identity = self.program.analysed.identity
        content = identity.content, identity.name
        return disk.key_of(_KIND, content, about, _size_class(self.threads), self.guarded)

    def load(self) -> Dimensions | None:
        """What an earlier process chose."""
        found = disk.load(_KIND, self._key)
        if found is None:
            return None
        try:
            x, y, z = map(int, json.loads(found))
        except (ValueError, TypeError):
            disk.drop(_KIND, self._key)
            return None
        return x, y, z

    def save(self, chosen: Dimensions) -> None:
        """Keep a choice for later processes."""
        disk.save(_KIND, self._key, json.dumps(chosen).encode())


# --- searching ------------------------------------------------------------------------------------


def grid_of(threads: Dimensions, block: Dimensions) -> Dimensions:
    """As many blocks as the threads take."""
    x, y, z = (-(-count // side) for count, side in zip(threads, block, strict=True))
    return x, y, z


@dataclass(slots=True)
class _Trial:
    """Launches on copies of what the kernel writes."""

    device: Device
    program: Program
    threads: Dimensions
    given: Sequence[Any]
    copies: dict[int, Any] = field(default_factory=dict)  # by position

    def begin(self) -> None:
        """Copies as the user's buffers are now; buffers that share memory have copies that do."""
        writes = self.program.analysed.writes
        columns = [k for k in sorted(writes) if isinstance(self.given[k], SoAVector)]
        self.copies = {k: self.given[k].copy() for k in columns} | duplicates(self.given, writes)

    def launch(self, block: Dimensions) -> float:
        """The seconds of a launch, which is waited for."""
        values = [self.copies.get(k, value) for k, value in enumerate(self.given)]
        arguments = self.program.bind(values)
        sizes = self.program.check(arguments, grid_of(self.threads, block), block, 0)
        began = time.perf_counter()
        launching.launch(self.device, self.program.analysed, arguments, *sizes)
        self.device.synchronize()
        return time.perf_counter() - began

    def result(self, block: Dimensions) -> list[Any]:
        """What a launch on fresh copies gives."""
        self.begin()
        self.launch(block)
        return [np.array(copy) for copy in self.copies.values()]


def _search(
    target: Device,
    program: Program,
    threads: Dimensions,
    buffers: Sequence[Any],
    blocks: Sequence[Dimensions],
    seed: int | None,
    timer: Timer | None,
) -> Dimensions:
    recorders.refuse("a block is searched", "search it before, or state the block")
    trial = _Trial(target, program, threads, buffers)
    if timer is None:
        trial.begin()
    errors: dict[Dimensions, Exception] = {}
    times = _timed(blocks, timer or trial.launch, timer is None, random.Random(seed), errors)
    ranked = sorted(times, key=lambda block: times[block])
    if timer is None and len(ranked) > 1:
        ranked = _verified(trial, ranked, min(times, key=blocks.index), errors)
        if _USUAL in ranked[1:]:
            return _settled(trial, ranked[0])
    if ranked:
        return ranked[0]
    refused = InvalidArgument(
        f"kernel '{program.name}': none of {len(blocks)} blocks can be launched with {threads} "
        "threads"
    )
    for block, error in errors.items():
        refused.add_note(f"block {block}: {type(error).__name__}: {error}")
    raise refused


def _timed(
    blocks: Sequence[Dimensions],
    launch: Timer,
    warm: bool,
    order: random.Random,
    errors: dict[Dimensions, Exception],
) -> dict[Dimensions, float]:
    """The shorter of two times of each block; of those that fail the error instead."""
    times: dict[Dimensions, float] = {}
    with _progress(3 * len(blocks) if warm else 2 * len(blocks)) as advance:
        for attempt in range(0 if warm else 1, 3):
            for block in order.sample(list(blocks), len(blocks)):
                advance()
                if block in errors:
                    continue
                try:
                    taken = launch(block)
                except (MemoryError, DeviceLost):
                    raise
                except Exception as error:  # of this candidate
                    errors[block] = error
                    times.pop(block, None)
                    continue
                if attempt:
                    times[block] = min(taken, times.get(block, taken))
    return times


def _settled(trial: _Trial, found: Dimensions) -> Dimensions:
    """The block that was found if it is faster than the usual one in turns, else that one."""
    expected = trial.result(found)
    if not all(map(_alike_enough, trial.result(_USUAL), expected)):
        return found
    times = {block: float("inf") for block in (found, _USUAL)}
    for attempt in range(_ROUNDS):
        for block in sorted(times, reverse=bool(attempt % 2)):
            times[block] = min(times[block], trial.launch(block))
    return found if times[found] < _CLEARLY * times[_USUAL] else _USUAL


def _verified(
    trial: _Trial,
    ranked: list[Dimensions],
    first: Dimensions,
    errors: dict[Dimensions, Exception],
) -> list[Dimensions]:
    """The blocks from the fastest on whose result is that of the first candidate."""
    expected = trial.result(first)
    for number, block in enumerate(ranked):
        if block == first or all(map(_alike_enough, trial.result(block), expected)):
            return ranked[number:]
        errors[block] = InvalidArgument(f"its result is not that of block {first}")
    raise AssertionError("the first candidate is among them")


def _alike_enough(found: Any, expected: Any) -> bool:
    """Whether two results are the same but for the order of sums."""
    if found.dtype.names is not None or found.dtype.kind not in _TOLERANCE:
        return found.tobytes() == expected.tobytes()  # type: ignore[no-any-return]  # bool
    units = _TOLERANCE[found.dtype.kind]
    scale = np.finfo(found.dtype).eps * units
    largest = np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))
    return bool(np.allclose(found, expected, rtol=scale, atol=scale * largest, equal_nan=True))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Counts trials; shows a bar once it has taken a second."""
    began, done, bar = time.perf_counter(), 0, None
    task: Any = None

    def advance() -> None:
        nonlocal bar, done, task
        done += 1
        if bar is None and time.perf_counter() - began > _PATIENCE:
            from rich.progress import Progress  # slow to import, and only a long search needs it

            bar = Progress(transient=True)
            bar.start()
            task = bar.add_task("local size", total=total)
        if bar is not None:
            bar.update(task, completed=done)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()
