"""Devices of drivers of CUDA's form behind the contract of `sarek_numba.runtime.device`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from sarek_numba import passes
from sarek_numba.capability import DeviceRecord, refuse
from sarek_numba.capability.flags import illegal
from sarek_numba.codegen import cfamily
from sarek_numba.codegen.dialect import Dialect
from sarek_numba.codegen.target import Target
from sarek_numba.errors import BackendError, InvalidDimensions, SourceCompilationError
from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.runtime import disk
from sarek_numba.runtime.cudalike.access import Access, check
from sarek_numba.runtime.cudalike.api import Api, ImageError
from sarek_numba.runtime.cudalike.externals import TextExternals
from sarek_numba.runtime.cudalike.function import Function
from sarek_numba.runtime.cudalike.memory import AddressMemory, Held
from sarek_numba.runtime.cudalike.parameters import Parameter
from sarek_numba.runtime.cudalike.plans import VectorPlans
from sarek_numba.runtime.cudalike.queues import Mark, Stream, StreamQueues
from sarek_numba.runtime.cudalike.retired import Retired
from sarek_numba.runtime.device import (
    BackendUnavailable,
    Bytes,
    DeviceMemory,
    Dimensions,
    Queues,
)
from sarek_numba.runtime.languages import Externals, Language
from sarek_numba.runtime.plans import Plans
from sarek_numba.runtime.telemetry import OPTIONS, say


@dataclass(frozen=True, slots=True)
class Toolchain:
    """How kernels become machine code of one device.

    The dialects and options that are `fast` are those of kernels with `accept.fastmath`;
    `plain_options` those of texts that others wrote, of languages in `texts`, where `images` are
    languages that the driver itself takes. `compile` gives code, or none, and the log.
    `static_shared_bytes` is what a kernel may declare, if the dialect does not put more elsewhere.
    `parameters` are those of a kernel, by its name, in a text of the languages in `images`, into
    which `declarations` makes one of those in `texts`; None where there is no such text.
    """

    target: Target
    dialect: Dialect
    fast_dialect: Dialect
    options: tuple[str, ...]
    fast_options: tuple[str, ...]
    plain_options: tuple[str, ...]
    compile: Callable[[str, Sequence[str]], tuple[bytes, str]]
    static_shared_bytes: int
    texts: frozenset[Language]
    images: frozenset[Language] = frozenset()
    declarations: Callable[[str, Sequence[str]], tuple[bytes, str]] | None = None
    parameters: Callable[[str, str], tuple[Parameter, ...] | None] | None = None


class BuiltProgram:
    """A kernel built for one device. Any number of threads may launch it."""

    def __init__(
        self,
        owner: CudalikeDriver,
        params: tuple[ParamDecl, ...],
        emitted: cfamily.Emitted,
        options: tuple[str, ...],
    ) -> None:
        self.params = params
        self.source = emitted.text
        self.static_shared_bytes = emitted.static_shared_bytes
        self._owner = owner
        self.region_bytes = emitted.region_bytes
        most = owner.toolchain.static_shared_bytes
        if emitted.static_shared_bytes > most and not emitted.region_bytes:
            raise InvalidDimensions(
                f"this kernel declares {emitted.static_shared_bytes} bytes of shared memory; "
                f"{owner.record.name} takes at most {most} that are declared\n"
                "  hint: sarek.shared.array(0, ...) with shared_bytes takes up to "
                f"{owner.record.limits.shared_bytes}"
            )
        say("kernel", OPTIONS, lambda: f"options {' '.join(options)}")
        module = owner.build(emitted.text, options)
        with check("loading a kernel", owner.access):
            self.function: Function = Function(owner, module, cfamily.ENTRY)

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
        size = self.region_bytes + shared_bytes
        return self.function.start(handle, grid, block, size, arguments)


class CudalikeDriver:
    """One device. Its context and streams are made at the first use."""

    def __init__(self, api: Api, device: Any, record: DeviceRecord, toolchain: Toolchain) -> None:
        self.access = Access(api, device, record.name)
        self.record = record
        self.toolchain = toolchain
        self.target: Target | None = toolchain.target
        self._memory = AddressMemory(self)
        self.memory: DeviceMemory | None = self._memory
        self.externals: Externals | None = TextExternals(self)
        self.streams = StreamQueues(self)
        self.queues: Queues | None = self.streams
        self.plans: Plans | None = VectorPlans(self)
        self.retired = Retired()
        self._programs: WeakValueDictionary[str, BuiltProgram] = WeakValueDictionary()
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

    def prepare(self, kernel: Kernel) -> BuiltProgram:
        """See `sarek_numba.runtime.device.Driver`; kernels of equal text share a program."""
        self.retired.let_go(self)
        legal = self._optimised(kernel)
        emitted = cfamily.emit(legal, self._dialect(legal))
        toolchain = self.toolchain
        options = toolchain.fast_options if legal.fastmath else toolchain.options
        refuse(illegal(kernel.name, options, self.record, fastmath=kernel.fastmath))
        key = "\n".join((*options, emitted.text))
        with self._lock:
            program = self._programs.get(key)
            if program is None or program.params != legal.params:
                program = BuiltProgram(self, legal.params, emitted, options)
                self._programs[key] = program
            return program

    def source(self, kernel: Kernel) -> str:
        """See `sarek_numba.runtime.device.Driver`."""
        legal = self._optimised(kernel)
        shown = cfamily.emit(legal, self._dialect(legal), entry=kernel.name)
        return cfamily.header(kernel) + shown.text

    def _dialect(self, kernel: Kernel) -> Dialect:
        return self.toolchain.fast_dialect if kernel.fastmath else self.toolchain.dialect

    def _optimised(self, kernel: Kernel) -> Kernel:
        assert self.target is not None
        return passes.optimise(kernel, self.target)

    def build(self, source: str, options: tuple[str, ...]) -> Any:
        """A module of source text, from the cache on disk if it is there.

        Raises SourceCompilationError with the source and the log.
        """
        self.access.refuse_lost()
        backend, compiler = self.record.backend, self.access.api.framework.compiler
        key = disk.key_of(backend, self.record.identity, source, options)
        kept = disk.load(backend, key)
        if kept is not None:
            try:
                return self._loaded(kept)
            except ImageError:  # the driver does not take it any more
                disk.drop(backend, key)
        name = self.record.name
        with self._compiling:  # compilers are safe among threads; two would do the same
            code, log = self.toolchain.compile(source, options)
        if not code:
            raise SourceCompilationError(f"{compiler} rejects the program for {name}", source, log)
        disk.save(backend, key, code)
        return self.load(code, source, f"what {compiler} made")

    def load(self, image: bytes, source: str, what: str) -> Any:
        """A module. Raises SourceCompilationError with the driver's log."""
        try:
            return self._loaded(image)
        except ImageError as error:
            raise SourceCompilationError(
                f"the driver of {self.record.name} does not take {what}: {error}",
                source,
                error.log,
            ) from error

    def _loaded(self, image: bytes) -> Any:
        with check("loading a module", self.access):
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


class CudalikeBackend:
    """All devices of this process that a driver has, named `<backend>:<number>`.

    `find` gives the driver's calls, or raises BackendUnavailable; `make` a device of it.
    """

    def __init__(
        self, name: str, find: Callable[[], Api], make: Callable[[Any, Any, str], CudalikeDriver]
    ) -> None:
        self.name = name
        self._find = find
        self._make = make
        self._made: tuple[Api, tuple[CudalikeDriver, ...]] | None = None
        self._lock = threading.Lock()

    def drivers(self) -> Sequence[CudalikeDriver]:
        """The devices, in the order of the driver. Raises BackendUnavailable."""
        api = self._find()
        with self._lock:
            if self._made is None or self._made[0] is not api:
                self._made = api, self.drivers_of(api)
            return self._made[1]

    def drivers_of(self, api: Api) -> tuple[CudalikeDriver, ...]:
        """The devices of a driver; those that cannot be used are left out."""
        found: list[CudalikeDriver] = []
        reasons: list[str] = []
        for number, device in enumerate(api.devices()):
            name = f"{self.name}:{number}"
            try:
                found.append(self._make(api, device, name))
            except BackendUnavailable as reason:  # the other devices are there all the same
                reasons.append(f"{name}: {reason}")
        if not found:
            none = f"there is no {api.framework.name} device"
            raise BackendUnavailable("; ".join(reasons) or none)
        return tuple(found)
