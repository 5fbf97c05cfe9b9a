"""Metal devices behind the contract of `sarek_numba.runtime.device`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

from sarek_metal import driver
from sarek_metal.dialect import BUFFERS, DIALECT, TARGET, contracting, target_for
from sarek_metal.externals import MetalExternals
from sarek_metal.memory import Held, Layout, MetalMemory, Part
from sarek_metal.queues import Mark, MetalQueues, Stream
from sarek_metal.record import ARGUMENT_BYTES, record_of
from sarek_numba import passes
from sarek_numba.capability import DeviceRecord, to_emulate
from sarek_numba.codegen import cfamily
from sarek_numba.codegen.target import Target
from sarek_numba.errors import InvalidArgument, InvalidDimensions
from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.runtime.device import (
    BackendUnavailable,
    Bytes,
    DeviceMemory,
    Dimensions,
    Queues,
)
from sarek_numba.runtime.languages import Externals
from sarek_numba.runtime.plans import Plans

_REGION_STEP = 16  # bytes of threadgroup memory are a multiple of it: its setter's reference


class Pipeline:
    """A kernel of a library. Any number of threads may launch it."""

    def __init__(self, owner: MetalDriver, function: Any, source: str) -> None:
        framework, name = owner.access.framework, owner.record.name
        self._owner = owner
        self.raw = driver.pipeline(framework, owner.access.device, function, name, source)
        self.block_limit = int(self.raw.maxTotalThreadsPerThreadgroup())
        self.warp_width = int(self.raw.threadExecutionWidth())

    def check(self, block: Dimensions) -> None:
        """Raise InvalidDimensions for a block that this kernel cannot have."""
        threads = block[0] * block[1] * block[2]
        if threads > self.block_limit:
            raise InvalidDimensions(
                f"this kernel takes at most {self.block_limit} threads a block on "
                f"{self._owner.record.name} (maxTotalThreadsPerThreadgroup); the block has "
                f"{threads}"
            )

    def start(
        self,
        handle: Stream,
        grid: Dimensions,
        block: Dimensions,
        given: Sequence[Held | Part | bytes],
        shared_bytes: int,
    ) -> Mark:
        """Give a launch to a stream, each buffer or bytes at its place; gives the mark.

        Raises BackendError.
        """
        access = self._owner.access
        sizes = [access.framework.metal.MTLSizeMake(*size) for size in (grid, block)]
        shared = -(-shared_bytes // _REGION_STEP) * _REGION_STEP

        def encode(buffer: Any) -> None:
            encoder = buffer.computeCommandEncoder()
            encoder.setComputePipelineState_(self.raw)
            for place, argument in enumerate(given):
                if isinstance(argument, bytes):
                    self._set_bytes(encoder, argument, place)
                else:
                    encoder.setBuffer_offset_atIndex_(argument.buffer, argument.offset, place)
            if shared:
                encoder.setThreadgroupMemoryLength_atIndex_(shared, 0)
            encoder.dispatchThreadgroups_threadsPerThreadgroup_(*sizes)
            encoder.endEncoding()

        return handle.give(encode)

    def _set_bytes(self, encoder: Any, number: bytes, place: int) -> None:
        if len(number) <= ARGUMENT_BYTES:
            encoder.setBytes_length_atIndex_(number, len(number), place)
            return
        make = self._owner.access.device.newBufferWithBytes_length_options_
        encoder.setBuffer_offset_atIndex_(make(number, len(number), 0), 0, place)


class MetalProgram:
    """A kernel built for one device. Any number of threads may launch it."""

    def __init__(self, owner: MetalDriver, kernel: Kernel, emitted: cfamily.Emitted) -> None:
        self.params: tuple[ParamDecl, ...] = kernel.params
        self.source = emitted.text
        self.static_shared_bytes = emitted.static_shared_bytes
        self._owner = owner
        self._layout = Layout(kernel.params)
        places = len(self._layout.buffers) + bool(self._layout.size)
        if places > BUFFERS:
            raise InvalidArgument(
                f"kernel '{kernel.name}' takes {len(self._layout.buffers)} buffers; devices of the "
                f"backend 'metal' have {BUFFERS} places, one of which is for numbers\n"
                "  hint: put arrays of one type into one, as rows of it"
            )
        function = owner.build(emitted.text).newFunctionWithName_(cfamily.ENTRY)
        self.pipeline = Pipeline(owner, function, emitted.text)
        width = self.pipeline.warp_width
        if kernel.warp_width not in (None, width):
            raise InvalidDimensions(
                f"kernel '{kernel.name}' is made for warps of {kernel.warp_width} threads; "
                f"{owner.record.name} runs it in SIMD-groups of {width} (threadExecutionWidth)"
            )

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """See `sarek_numba.runtime.device.Program`."""
        if 0 in grid or 0 in block:
            return
        mark = self.enqueue(self._owner.stream, grid, block, shared_bytes, arguments)
        self._owner.streams.wait(mark)

    def joined(self, count: int) -> str:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        return f"{self._owner.record.name} has no launches as one in this version"

    def check(self, block: Dimensions) -> None:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        self.pipeline.check(block)

    def enqueue(
        self,
        handle: Stream,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> Mark:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        self.check(block)
        given = [arguments[k] for k in self._layout.buffers]
        if self._layout.size:
            given.append(self._layout.pack(arguments))
        return self.pipeline.start(handle, grid, block, given, shared_bytes)


class MetalDriver:
    """One Metal device. Its first command queue is made at the first use."""

    def __init__(self, framework: driver.Framework, device: Any, name: str) -> None:
        self.access = driver.Access(framework, device, name)
        self.record: DeviceRecord = record_of(framework, device, name)
        self.target: Target | None = TARGET
        self._memory = MetalMemory(self.access)
        self.memory: DeviceMemory | None = self._memory
        self.externals: Externals | None = MetalExternals(self)
        self.streams = MetalQueues(self)
        self.queues: Queues | None = self.streams
        self.plans: Plans | None = None
        self._programs: WeakValueDictionary[str, MetalProgram] = WeakValueDictionary()
        self._lock = threading.RLock()
        self._stream: Stream | None = None

    @property
    def stream(self) -> Stream:
        """That of launches without a stream."""
        if self._stream is None:
            with self._lock:
                self._stream = self._stream or self.streams.open()
        return self._stream

    def prepare(self, kernel: Kernel) -> MetalProgram:
        """See `sarek_numba.runtime.device.Driver`; kernels of equal text share a program."""
        legal, emitted = self._emitted(kernel)
        key = f"{legal.warp_width}\n{emitted.text}"
        with self._lock:
            program = self._programs.get(key)
            if program is None or program.params != legal.params:
                program = self._programs[key] = MetalProgram(self, legal, emitted)
            return program

    def source(self, kernel: Kernel) -> str:
        """See `sarek_numba.runtime.device.Driver`."""
        return cfamily.header(kernel) + self._emitted(kernel, kernel.name)[1].text

    def _emitted(self, kernel: Kernel, entry: str | None = None) -> tuple[Kernel, cfamily.Emitted]:
        """The kernel as it is printed; what the device is not known to keep is emulated."""
        broken = {each.feature for each in to_emulate(self.record, fastmath=kernel.fastmath)}
        legal = passes.optimise(kernel, target_for(broken))
        dialect = contracting(DIALECT) if kernel.fastmath else DIALECT
        return legal, cfamily.emit(legal, dialect, entry=entry)

    def build(self, source: str) -> Any:
        """An MTLLibrary. Raises SourceCompilationError with the source and the log."""
        access = self.access
        access.refuse_lost()
        given = driver.options(access.framework)
        return driver.compile_library(
            access.framework, access.device, source, self.record.name, given
        )

    def bind(self, memory: Bytes, *, read: bool, written: bool) -> Held:
        """See `sarek_numba.runtime.device.Driver`."""
        held = self._memory.hold(memory)
        held.written = written
        self._memory.send(held, 0, memory.size)
        return held

    def unbind(self, buffer: Held) -> None:
        """See `sarek_numba.runtime.device.Driver`."""
        if buffer.written:
            self._memory.fetch(buffer, 0, buffer.host.size)
        self._memory.release(buffer)


class MetalBackend:
    """All Metal devices of this process, named `metal:<number>`; the system's default is 0."""

    name = "metal"

    def __init__(self) -> None:
        self._made: tuple[driver.Framework, tuple[MetalDriver, ...]] | None = None
        self._lock = threading.Lock()

    def drivers(self) -> Sequence[MetalDriver]:
        """The devices. Raises BackendUnavailable."""
        framework = driver.load()
        with self._lock:
            if self._made is None or self._made[0] is not framework:
                found = driver.devices(framework)
                made = (
                    MetalDriver(framework, device, f"metal:{number}")
                    for number, device in enumerate(found)
                )
                self._made = framework, tuple(made)
            if not self._made[1]:
                raise BackendUnavailable("there is no Metal device")
            return self._made[1]


backend = MetalBackend()
