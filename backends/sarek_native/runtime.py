"""Launches: arguments packed into bytes, blocks shared out to threads that hold no GIL.

A launch starts on the calling thread. Only when what is left of it is worth waking others for, by
the time its first blocks took, do the workers help; they take blocks in chunks until none is
left. A launch has no state outside of its own objects, so any number may run at once.
"""

from __future__ import annotations

import os
import queue
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_native.emit import Module, emit
from sarek_native.groups import Variant
from sarek_native.warps import lanes_for
from sarek_numba import settings
from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.device import Bytes, Dimensions

if TYPE_CHECKING:
    from sarek_native.driver import Compiler

Entry = Callable[[bytes, bytes, int, int, int], None]
_LAUNCH = struct.Struct("<8q").pack

SCRATCH_ON_STACK = 32_768  # bytes that a launch may take of the stack of its caller
WORTH_WAKING = 40_000  # nanoseconds of work left, below which waking a thread costs more
_CHUNKS = 8  # for each worker, so that uneven blocks even out
_LINE = 64

# Eight bytes for each parameter, little-endian: the scalar, then padding.
_FORMATS = {
    Scalar.BOOL: "?7x",
    Scalar.INT8: "b7x",
    Scalar.INT16: "h6x",
    Scalar.INT32: "i4x",
    Scalar.INT64: "q",
    Scalar.UINT8: "B7x",
    Scalar.UINT16: "H6x",
    Scalar.UINT32: "I4x",
    Scalar.UINT64: "Q",
    Scalar.FLOAT32: "f4x",
    Scalar.FLOAT64: "d",
}


@dataclass(frozen=True, slots=True)
class Buffer:
    """Host memory that a launch may use; `memory` keeps it alive."""

    address: int
    memory: Bytes


@dataclass(frozen=True, slots=True)
class _Ready:
    """A variant of a kernel in machine code."""

    entry: Entry
    address: int
    module: Module
    engine: Any


@dataclass(frozen=True, slots=True)
class Shaped:
    """A launch of one shape, all but its arguments: `launch` as the kernel gets it, bytes of
    scratch, the blocks that run before the time is looked at, and how much of it is worth sharing.
    """

    entry: Entry
    address: int
    engine: Any
    launch: tuple[int, ...]
    size: int
    blocks: int
    first: int
    worth: int = WORTH_WAKING

    def go_on(self, packed: bytes) -> None:
        """Run what follows the first blocks on several threads; all, if they are not done."""
        if self.size > SCRATCH_ON_STACK:
            _run(self.entry, packed, _LAUNCH(*self.launch), self.size, self.blocks)
        else:
            self.share(packed)

    def share(self, packed: bytes) -> None:
        """Run what follows the first blocks on several threads."""
        launch = _LAUNCH(*self.launch)
        _share(self.entry, packed, launch, self.size, self.first, self.blocks)


class NativeProgram:
    """A kernel made ready. Each class of block shapes is compiled at its first launch."""

    def __init__(self, kernel: Kernel, compiler: Compiler) -> None:
        self.kernel = kernel
        self.params: tuple[ParamDecl, ...] = kernel.params
        self._compiler = compiler
        self._width = lanes_for(kernel, compiler.lanes)
        self._warps = self._width == kernel.warp_width
        self._ready: dict[Variant, _Ready] = {}
        self._lock = threading.Lock()
        self._first = self.module(Variant())
        self.source = self._first.text
        self.static_shared_bytes = self._first.static_shared_bytes
        formats = (_FORMATS[_scalar(p)] if p.array is None else "Q" for p in kernel.params)
        self._pack = struct.Struct("<" + "".join(formats)).pack
        self._is_array = tuple(param.array is not None for param in kernel.params)
        self._prepared(Variant())

    def module(self, variant: Variant) -> Module:
        """The LLVM IR for a class of block shapes."""
        return emit(self.kernel, self._width, variant, self._compiler.vector_bits)

    @property
    def asm(self) -> str:
        """The machine code, as text, for blocks whose rows fill lane groups."""
        return self._compiler.assembly(self._first)

    def _prepared(self, variant: Variant) -> _Ready:
        ready = self._ready.get(variant)
        if ready is not None:
            return ready
        with self._lock:
            ready = self._ready.get(variant)
            if ready is None:
                module = self._first if variant == Variant() else self.module(variant)
                compiled = self._compiler.compile(module)
                ready = _Ready(compiled.entry, compiled.address, module, compiled.engine)
                self._ready[variant] = ready
            return ready

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """Run the kernel; returns when it is done."""
        shaped = self.ready_for(grid, block, shared_bytes)
        packed = self.packed(arguments)
        _run(shaped.entry, packed, _LAUNCH(*shaped.launch), shaped.size, shaped.blocks)

    def packed(self, arguments: Sequence[Any]) -> bytes:
        """Buffers and numbers as the kernel takes them."""
        values = [
            argument.address if is_array else argument
            for is_array, argument in zip(self._is_array, arguments, strict=True)
        ]
        return self._pack(*values)

    def ready_for(self, grid: Dimensions, block: Dimensions, shared_bytes: int) -> Shaped:
        """What a launch of a shape needs, but for its arguments."""
        variant = Variant.of(block, self._width, self._warps)
        ready = self._ready.get(variant) or self._prepared(variant)
        module = ready.module
        frame = _rounded(module.static_shared_bytes + shared_bytes)
        groups = variant.groups(block, self._width) if module.frame_per_group else 1
        blocks = grid[0] * grid[1] * grid[2]
        return Shaped(
            entry=ready.entry,
            address=ready.address,
            engine=ready.engine,
            launch=(*grid, *block, shared_bytes, frame),
            size=frame + _rounded(module.frame_bytes) * groups,
            blocks=blocks,
            first=_first_blocks(blocks),
        )


def _scalar(param: ParamDecl) -> Scalar:
    type = param.var.type
    assert isinstance(type, Scalar)
    return type


def _rounded(size: int) -> int:
    return -(-size // _LINE) * _LINE


# --- threads --------------------------------------------------------------------------------------


class _Scratch(threading.local):
    """Memory of a thread for shared arrays and frames, kept for its next launch."""

    size = 0
    address = 0
    memory: Bytes | None = None

    def at_least(self, size: int) -> int:
        if size > self.size:
            self.size = max(size, 1 << 16)
            self.memory = np.empty(self.size + _LINE, np.uint8)
            self.address = _rounded(self.memory.ctypes.data)
        return self.address


_scratch = _Scratch()


def scratch(size: int) -> int:
    """The address of so many bytes of this thread's, until it launches again."""
    return _scratch.at_least(size)


class _Job:
    """The blocks of a launch that are left to run, shared by all threads that help."""

    def __init__(
        self, entry: Entry, arguments: tuple[bytes, bytes], size: int, first: int, blocks: int
    ) -> None:
        self.entry = entry
        self.arguments = arguments
        self.size = size
        self.next = first
        self.blocks = blocks
        self.chunk = 1
        self.lock = threading.Lock()
        self.helpers = 0
        self.done = threading.Semaphore(0)

    def run(self) -> None:
        """Take chunks until none is left."""
        scratch = _scratch.at_least(self.size)
        packed, launch = self.arguments
        while True:
            with self.lock:
                first = self.next
                self.next = last = min(first + self.chunk, self.blocks)
            if first >= last:
                return
            self.entry(packed, launch, scratch, first, last)

    def help(self) -> None:
        self.run()
        self.done.release()


class _Workers:
    """Threads that wait for jobs; started when first needed, as many as the settings say."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0

    def share(self, job: _Job, helpers: int) -> None:
        with self._lock:
            while self._count < helpers:
                self._count += 1
                name = f"sarek-native-{self._count}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        for _ in range(helpers):
            self._jobs.put(job)
        job.run()
        for _ in range(helpers):
            job.done.acquire()

    def _serve(self) -> None:
        while True:
            self._jobs.get().help()


_workers = _Workers()


def _forget_workers() -> None:
    """In a forked child no thread but one lives on."""
    global _workers
    _workers = _Workers()


def _first_blocks(blocks: int) -> int:
    """How many blocks tell the time that one takes."""
    return max(1, blocks // 64)


def _run(entry: Entry, packed: bytes, launch: bytes, size: int, blocks: int) -> None:
    scratch = _scratch.at_least(size)
    if blocks == 1:
        entry(packed, launch, scratch, 0, 1)
        return
    first = _first_blocks(blocks)
    start = perf_counter_ns()
    entry(packed, launch, scratch, 0, first)
    left = (perf_counter_ns() - start) * (blocks - first) // first
    if left > WORTH_WAKING:
        _share(entry, packed, launch, size, first, blocks)
    else:
        entry(packed, launch, scratch, first, blocks)


def _share(entry: Entry, packed: bytes, launch: bytes, size: int, first: int, blocks: int) -> None:
    """Run the blocks from `first` on as many threads as the settings say."""
    threads = settings.threads()
    if threads == 1:
        entry(packed, launch, _scratch.at_least(size), first, blocks)
        return
    helpers = min(threads - 1, blocks - first)
    job = _Job(entry, (packed, launch), size, first, blocks)
    job.chunk = max(1, (blocks - first) // (_CHUNKS * (helpers + 1)))
    _workers.share(job, helpers)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
