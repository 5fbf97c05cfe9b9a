"""CUDA devices behind the contract of `sarek_numba.runtime.device`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from sarek_cuda import driver
from sarek_cuda.dialect import DIALECT
from sarek_cuda.externals import CudaExternals
from sarek_cuda.plans import CudaPlans
from sarek_cuda.record import (
    STATIC_SHARED_BYTES,
    architecture_for,
    capability_of,
    options_for,
    record_of,
)
from sarek_numba import passes
from sarek_numba.capability import DeviceRecord
from sarek_numba.codegen import cfamily
from sarek_numba.codegen.target import Target
from sarek_numba.errors import BackendError, InvalidDimensions, SourceCompilationError
from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.runtime import disk
from sarek_numba.runtime.cudalike.memory import AddressMemory, Held, packed
from sarek_numba.runtime.cudalike.queues import Mark, Stream, StreamQueues
from sarek_numba.runtime.device import (
    BackendUnavailable,
    Bytes,
    DeviceMemory,
    Dimensions,
    Queues,
)
from sarek_numba.runtime.languages import Externals
from sarek_numba.runtime.plans import Plans
from sarek_numba.runtime.telemetry import OPTIONS, say

_USUAL_SHARED = 48 * 1024  # dynamic bytes that a kernel may have without being told so


class Function:
    """A kernel of a loaded module. Any number of threads may launch it."""

    def __init__(self, owner: CudaDriver, module: Any, name: str) -> None:
        """The context is current. Raises CudaError."""
        api = owner.access.api
        self.owner = owner
        self.raw = api.function(module, name)
        self.block_limit = api.function_attribute(self.raw, "MAX_THREADS_PER_BLOCK")
        self._registers = api.function_attribute(self.raw, "NUM_REGS")
        self._module = module
        self._shared = _USUAL_SHARED
        self._lock = threading.Lock()

    def check(self, block: Dimensions) -> None:
        """Raise InvalidDimensions for a block that this kernel cannot have."""
        threads = block[0] * block[1] * block[2]
        if threads > self.block_limit:
            raise InvalidDimensions(
                f"this kernel takes at most {self.block_limit} threads a block on "
                f"{self.owner.record.name} (CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK); the block "
                f"has {threads}\n"
                f"  note: it uses {self._registers} registers a thread"
            )

    def allow_shared(self, size: int) -> None:
        """Have launches with so many dynamic bytes. The context is current. Raises CudaError."""
        if size <= self._shared:
            return
        with self._lock:
            if size > self._shared:
                self.owner.access.api.set_function_attribute(
                    self.raw, "MAX_DYNAMIC_SHARED_SIZE_BYTES", size
                )
                self._shared = size

    def give(self, given: tuple[Any, ...]) -> None:
        """One call of `Api.launch`. The context is current. Raises CudaError, InvalidDimensions."""
        result = self.owner.access.launch(*given)
        if result[0]:
            self.check_launch(result, given)

    def check_launch(self, result: tuple[Any, ...], given: tuple[Any, ...]) -> None:
        """Raise the error of what `Api.launch` gave. Raises CudaError, InvalidDimensions."""
        try:
            self.owner.access.api.check(result)
        except driver.CudaError as error:
            if error.code != driver.OUT_OF_RESOURCES:
                raise
            x, y, z = given[4:7]
            raise InvalidDimensions(
                f"{self.owner.record.name} has too few registers for a block of {x * y * z} "
                f"threads of this kernel, which uses {self._registers} a thread ({error.name})"
            ) from error

    def start(
        self, handle: Stream, grid: Dimensions, block: Dimensions, size: int, arguments: Any
    ) -> Mark:
        """Give a launch to a stream; gives its mark. Raises BackendError."""
        owner, ready = self.owner, packed(arguments)
        access = owner.access
        with driver.check("a launch", access):
            self.allow_shared(size)
            start = owner.streams.begin(handle)
            self.give((self.raw, *grid, *block, size, handle.raw, ready.address, 0))
            return owner.streams.launched(handle, start)


class CudaProgram:
    """A kernel built for one device. Any number of threads may launch it."""

    def __init__(
        self,
        owner: CudaDriver,
        params: tuple[ParamDecl, ...],
        emitted: cfamily.Emitted,
        options: tuple[str, ...],
    ) -> None:
        self.params = params
        self.source = emitted.text
        self.static_shared_bytes = emitted.static_shared_bytes
        self._owner = owner
        if emitted.static_shared_bytes > STATIC_SHARED_BYTES:
            raise InvalidDimensions(
                f"this kernel declares {emitted.static_shared_bytes} bytes of shared memory; "
                f"{owner.record.name} takes at most {STATIC_SHARED_BYTES} that are declared\n"
                "  hint: sarek.shared.array(0, ...) with shared_bytes takes up to "
                f"{owner.record.limits.shared_bytes}"
            )
        say("kernel", OPTIONS, lambda: f"options {' '.join(options)}")
        module = owner.build(emitted.text, options)
        with driver.check("loading a kernel", owner.access):
            self.function = Function(owner, module, cfamily.ENTRY)

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """See `sarek_numba.runtime.device.Program`."""
        if 0 in grid or 0 in block:
            return
        mark = self.enqueue(self._owner.stream, grid, block, shared_bytes, arguments)
        self._owner.streams.wait(mark)

    def check(self, block: Dimensions) -> None:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        self.function.check(block)

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
        return self.function.start(handle, grid, block, shared_bytes, arguments)


class CudaDriver:
    """One CUDA device. Its context and streams are made at the first use."""

    def __init__(self, api: driver.Api, device: Any, name: str) -> None:
        self.api = api
        self.access = driver.Access(api, device, name)
        self.architecture = architecture_for(capability_of(api, device), api.architectures())
        self.record: DeviceRecord = record_of(api, device, name)
        self.target: Target | None = Target(
            name="cuda", address_bits=32, shuffles_only=True, framework=DIALECT.framework
        )
        self.options = options_for(self.architecture)
        self._memory = AddressMemory(self)
        self.memory: DeviceMemory | None = self._memory
        self.externals: Externals | None = CudaExternals(self)
        self.streams = StreamQueues(self)
        self.queues: Queues | None = self.streams
        self.plans: Plans | None = CudaPlans(self)
        self._programs: dict[str, CudaProgram] = {}
        self._lock = threading.RLock()
        self._compiling = threading.Lock()
        self._stream: Stream | None = None
        self._copies: Stream | None = None

    @property
    def stream(self) -> Stream:
        """That of launches without a stream."""
        if self._stream is None:
            with self._lock:
                self._stream = self._stream or self.streams.stream(each=False)
        return self._stream

    @property
    def copies(self) -> Stream:
        """That of copies between host and device."""
        if self._copies is None:
            with self._lock:
                self._copies = self._copies or self.streams.stream(each=False)
        return self._copies

    def prepare(self, kernel: Kernel) -> CudaProgram:
        """See `sarek_numba.runtime.device.Driver`; kernels of equal text share a program."""
        legal = self._optimised(kernel)
        emitted = cfamily.emit(legal, DIALECT)
        options = options_for(self.architecture, fast=True) if legal.fastmath else self.options
        key = "\n".join((*options, emitted.text))
        with self._lock:
            program = self._programs.get(key)
            if program is None or program.params != legal.params:
                program = CudaProgram(self, legal.params, emitted, options)
                self._programs[key] = program
            return program

    def source(self, kernel: Kernel) -> str:
        """See `sarek_numba.runtime.device.Driver`."""
        shown = cfamily.emit(self._optimised(kernel), DIALECT, entry=kernel.name)
        return cfamily.header(kernel) + shown.text

    def _optimised(self, kernel: Kernel) -> Kernel:
        assert self.target is not None
        return passes.optimise(kernel, self.target)

    def build(self, source: str, options: tuple[str, ...]) -> Any:
        """A module of CUDA C++, from the cache on disk if it is there.

        Raises SourceCompilationError with the source and the log.
        """
        self.access.refuse_lost()
        key = disk.key_of("cuda", self.record.identity, source, options)
        kept = disk.load("cuda", key)
        if kept is not None:
            try:
                return self._loaded(kept)
            except driver.ImageError:  # the driver does not take it any more
                disk.drop("cuda", key)
        name = self.record.name
        with self._compiling:  # NVRTC is safe among threads; two would do the same
            code, log = self.api.compile(source, options, ptx=self.architecture.ptx)
        if not code:
            raise SourceCompilationError(f"NVRTC rejects the program for {name}", source, log)
        disk.save("cuda", key, code)
        return self.load(code, source, "what NVRTC made")

    def load(self, image: bytes, source: str, what: str) -> Any:
        """A module. Raises SourceCompilationError with the driver's log."""
        try:
            return self._loaded(image)
        except driver.ImageError as error:
            raise SourceCompilationError(
                f"the driver of {self.record.name} does not take {what}: {error}",
                source,
                error.log,
            ) from error

    def _loaded(self, image: bytes) -> Any:
        with driver.check("loading a module", self.access):
            return self.access.api.load(image)

    def bind(self, memory: Bytes, *, read: bool, written: bool) -> Held:
        """See `sarek_numba.runtime.device.Driver`."""
        held = self._memory.hold(memory)
        held.written = written
        try:
            self._memory.send(held, 0, memory.size)
        except BackendError:
            self._memory.release(held)
            raise
        return held

    def unbind(self, buffer: Held) -> None:
        """See `sarek_numba.runtime.device.Driver`."""
        try:
            if buffer.written:
                self._memory.fetch(buffer, 0, buffer.host.size)
        finally:
            self._memory.release(buffer)


class CudaBackend:
    """All CUDA devices of this process, named `cuda:<number>`."""

    name = "cuda"

    def __init__(self) -> None:
        self._made: tuple[driver.Api, tuple[CudaDriver, ...]] | None = None
        self._lock = threading.Lock()

    def drivers(self) -> Sequence[CudaDriver]:
        """The devices, in the order of the driver. Raises BackendUnavailable."""
        api = driver.api()
        with self._lock:
            if self._made is None or self._made[0] is not api:
                self._made = api, _drivers(api)
            return self._made[1]


def _drivers(api: driver.Api) -> tuple[CudaDriver, ...]:
    found: list[CudaDriver] = []
    reasons: list[str] = []
    for number, device in enumerate(api.devices()):
        name = f"cuda:{number}"
        try:
            found.append(CudaDriver(api, device, name))
        except BackendUnavailable as reason:  # the other devices are there all the same
            reasons.append(f"{name}: {reason}")
    if not found:
        raise BackendUnavailable("; ".join(reasons) or "there is no CUDA device")
    return tuple(found)


backend = CudaBackend()
