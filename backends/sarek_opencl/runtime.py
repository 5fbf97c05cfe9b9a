"""OpenCL devices behind the contract of `sarek_numba.runtime.device`.

On a CPU device a buffer is the host's own memory, which mapping hands over and back. Any other
device gets a copy when a buffer is bound, and gives it back when it is unbound.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from sarek_numba import passes
from sarek_numba.capability import DeviceRecord, refuse
from sarek_numba.capability.flags import illegal
from sarek_numba.codegen import cfamily
from sarek_numba.codegen.dialect import Dialect
from sarek_numba.codegen.target import GPU_COARSENING, Target
from sarek_numba.errors import InvalidDimensions
from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.passes.coarsen import each_of
from sarek_numba.runtime.adopted import DeviceArray
from sarek_numba.runtime.device import (
    BackendUnavailable,
    Bytes,
    DeviceMemory,
    Dimensions,
    Queues,
)
from sarek_numba.runtime.languages import Externals
from sarek_numba.runtime.nodes import Graphs
from sarek_numba.runtime.plans import Plans
from sarek_numba.runtime.telemetry import OPTIONS, say
from sarek_opencl import adopting, driver, intel, nvidia, pocl
from sarek_opencl.command_buffers import driver as command_buffers
from sarek_opencl.dialect import DIALECT, contracting, without_extended_atomics
from sarek_opencl.externals import OpenCLExternals
from sarek_opencl.graphs import OpenCLGraphs
from sarek_opencl.joined import OpenCLJoined, Recipe, made, types_of
from sarek_opencl.memory import Buffer, OpenCLMemory, api_arguments
from sarek_opencl.plans import OpenCLPlans
from sarek_opencl.queues import OpenCLQueues
from sarek_opencl.record import build_options, fast_options, has_extended_atomics, record_of

_PLATFORMS = {
    "Portable Computing Language": "pocl",
    "Intel(R) OpenCL": "intel",
    "Intel(R) OpenCL Graphics": "intelgpu",
    nvidia.PLATFORM: "nvidia",
    "AMD Accelerated Parallel Processing": "amd",
    "Apple": "apple",
    "rusticl": "rusticl",
}


class OpenCLProgram:
    """A kernel built for one device. Any number of threads may launch it."""

    def __init__(
        self,
        owner: OpenCLDriver,
        params: tuple[ParamDecl, ...],
        emitted: cfamily.Emitted,
        options: tuple[str, ...],
        recipe: Recipe | None = None,
    ) -> None:
        self._cl = cl = driver.load()
        self.params = params
        self._recipe = recipe
        self.source = emitted.text
        self.static_shared_bytes = emitted.static_shared_bytes
        self._owner = owner
        self.has_region = emitted.dynamic_shared  # of dynamic shared memory
        say("kernel", OPTIONS, lambda: f"options {' '.join(options)}")
        program = driver.compile_program(owner.context, owner.device, emitted.text, options)
        self.built = program
        with driver.check("creating a kernel", owner.device):
            self._kernel = cl.Kernel(program, cfamily.ENTRY)
            self._private_bytes = int(
                self._kernel.get_work_group_info(
                    cl.kernel_work_group_info.PRIVATE_MEM_SIZE, owner.device
                )
            )
            self._block_limit = owner.record.limits.threads_per_block
            if each_of(params) > 1:  # another program takes what has too few registers for this one
                self._block_limit = min(self._block_limit, nvidia.SAFE_BLOCK)
            if not nvidia.is_nvidia(owner.device):
                self._block_limit = int(
                    self._kernel.get_work_group_info(
                        cl.kernel_work_group_info.WORK_GROUP_SIZE, owner.device
                    )
                )
            self._kernel.set_scalar_arg_dtypes(self._scalar_types())
        self._lock = threading.Lock()  # arguments belong to the kernel object

    def _scalar_types(self) -> list[np.dtype[Any] | None]:
        types = types_of(self.params)
        return [*types, None] if self.has_region else types

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """See `sarek_numba.runtime.device.Program`."""
        if 0 in grid or 0 in block:
            return
        mark = self.enqueue(self._owner.queue, grid, block, shared_bytes, arguments)
        with driver.check("a launch", self._owner.device):
            mark.wait()

    def check(self, block: Dimensions) -> None:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        threads = block[0] * block[1] * block[2]
        if threads > self._block_limit:
            raise InvalidDimensions(
                f"this kernel takes at most {self._block_limit} threads a block on "
                f"{self._owner.record.name} (CL_KERNEL_WORK_GROUP_SIZE); the block has {threads}\n"
                f"  note: its private memory is {self._private_bytes} bytes there "
                "(CL_KERNEL_PRIVATE_MEM_SIZE), local arrays included"
            )

    def joined(self, count: int) -> OpenCLJoined | str:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        if self._recipe is None:
            return "its IR is not known"
        return made(self._owner, self._recipe, count)

    def enqueue(
        self,
        handle: Any,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> Any:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        self.check(block)
        threads = block[0] * block[1] * block[2]
        cl, kernel = self._cl, self._kernel
        ready = self._ready(arguments, shared_bytes)
        try:
            return driver.start(handle, kernel, self._lock, grid, block, ready)
        except cl.Error as error:
            if error.code == cl.status_code.OUT_OF_RESOURCES and threads > nvidia.SAFE_BLOCK:
                raise InvalidDimensions(
                    f"{self._owner.record.name} has too few registers for a block of {threads} "
                    f"threads of this kernel (CL_OUT_OF_RESOURCES)"
                ) from error
            raise driver.failure(error, "a launch", self._owner.device) from error

    def _ready(self, arguments: Sequence[Any], shared_bytes: int) -> list[Any]:
        """Arguments as OpenCL's API takes them, with the region of dynamic shared memory."""
        ready = api_arguments(arguments)
        if self.has_region:
            ready.append(self._cl.LocalMemory(self.region_bytes(shared_bytes)))
        return ready

    @staticmethod
    def region_bytes(shared_bytes: int) -> int:
        """The bytes of the region: none is not allowed."""
        return max(8, shared_bytes)

    def with_types(self, arguments: Sequence[Any]) -> list[tuple[Any, np.dtype[Any] | None]]:
        """Arguments of a launch, each a memory object or a number of the type with it."""
        return list(zip(api_arguments(arguments), types_of(self.params), strict=True))

    @contextmanager
    def set(self, arguments: Sequence[Any], shared_bytes: int) -> Iterator[Any]:
        """The kernel object with arguments set, for this thread alone."""
        with self._lock:
            self._kernel.set_args(*self._ready(arguments, shared_bytes))
            yield self._kernel


class OpenCLDriver:
    """One OpenCL device. Its context, if none is given, and queue are made at the first use."""

    def __init__(self, device: Any, name: str, context: Any = None) -> None:
        self.device = device
        self.record: DeviceRecord = record_of(device, name)
        self.target: Target | None = Target(
            name="opencl",
            address_bits=64 if self.record.is_cpu else 32,
            shuffles_only=True,
            framework=DIALECT.framework,
            coarsening=0 if self.record.is_cpu else GPU_COARSENING,
        )
        self.options = build_options(device)
        self.memory: DeviceMemory | None = OpenCLMemory(self)
        self.externals: Externals | None = OpenCLExternals(self)
        self.queues: Queues | None = OpenCLQueues(self)
        self.plans: Plans | None = OpenCLPlans(self)
        calls = command_buffers.calls_of(device)
        if calls is not None:  # else it has no such attribute: `RecordsGraphs`
            self.graphs: Graphs = OpenCLGraphs(self, calls)
        self._programs: WeakValueDictionary[str, OpenCLProgram] = WeakValueDictionary()
        self._lock = threading.RLock()
        self._context: Any = context
        self._queue: Any = None

    @property
    def context(self) -> Any:
        """The device's context."""
        self._open()
        return self._context

    @property
    def queue(self) -> Any:
        """The device's queue, in order."""
        self._open()
        return self._queue

    def _open(self) -> None:
        with self._lock:
            if self._queue is None:
                cl = driver.load()
                driver.load_invoker()
                with driver.check("opening a context", self.device):
                    if self._context is None:
                        self._context = cl.Context([self.device])
                    self._queue = cl.CommandQueue(self._context, self.device)

    def has_context(self, context: Any) -> bool:
        """Whether the device's context is this one; opens none."""
        return self._context is not None and self._context == context

    def prepare(self, kernel: Kernel) -> OpenCLProgram:
        """See `sarek_numba.runtime.device.Driver`; kernels of equal text share a program."""
        driver.refuse_lost(self.device)
        legal = self._optimised(kernel)
        dialect = self._dialect(legal)
        emitted = cfamily.emit(legal, dialect)
        with self._lock:
            program = self._programs.get(emitted.text)
            if program is None or program.params != legal.params:
                options = self._options(legal)
                recipe = Recipe(legal, dialect, options)
                program = OpenCLProgram(self, legal.params, emitted, options, recipe)
                self._programs[emitted.text] = program
            return program

    def _options(self, kernel: Kernel) -> tuple[str, ...]:
        options = fast_options(self.options) if kernel.fastmath else self.options
        refuse(illegal(kernel.name, options, self.record, fastmath=kernel.fastmath))
        return options

    def source(self, kernel: Kernel) -> str:
        """See `sarek_numba.runtime.device.Driver`."""
        legal = self._optimised(kernel)
        shown = cfamily.emit(legal, self._dialect(legal), entry=kernel.name)
        return cfamily.header(kernel) + shown.text

    def _dialect(self, kernel: Kernel) -> Dialect:
        dialect = contracting(DIALECT) if kernel.fastmath else DIALECT
        if not has_extended_atomics(self.device):
            dialect = without_extended_atomics(dialect)
        match self.device.platform.name:
            case "Intel(R) OpenCL":
                return intel.dialect_for(kernel, dialect)
            case "Portable Computing Language":
                return pocl.dialect_for(kernel, dialect)
            case nvidia.PLATFORM:
                return nvidia.dialect_for(dialect, fast=kernel.fastmath)
            case _:
                return dialect

    def _optimised(self, kernel: Kernel) -> Kernel:
        assert self.target is not None
        return passes.optimise(kernel, self.target)

    def bind(self, memory: Bytes, *, read: bool, written: bool) -> Buffer:
        """See `sarek_numba.runtime.device.Driver`."""
        cl = driver.load()
        flags = cl.mem_flags
        access = flags.READ_WRITE if written else flags.READ_ONLY
        size = memory.size
        with driver.check("binding a buffer", self.device, size):
            if size == 0:  # OpenCL has no empty buffers
                return Buffer(cl.Buffer(self.context, access, 1), memory, False)
            if self.record.is_cpu:
                access |= flags.USE_HOST_PTR
            else:
                access |= flags.COPY_HOST_PTR
            return Buffer(cl.Buffer(self.context, access, hostbuf=memory), memory, written)

    def unbind(self, buffer: Buffer) -> None:
        """See `sarek_numba.runtime.device.Driver`."""
        cl = driver.load()
        with driver.check("reading a buffer back", self.device, buffer.host.size):
            if buffer.written and self.record.is_cpu:
                view, _ = cl.enqueue_map_buffer(
                    self.queue, buffer.memory, cl.map_flags.READ, 0, buffer.host.shape, np.uint8
                )
                view.base.release(self.queue).wait()
            elif buffer.written:
                cl.enqueue_copy(self.queue, buffer.host, buffer.memory)
            buffer.memory.release()


class OpenCLBackend:
    """All OpenCL devices of this process, named `opencl:<platform>:<number>`."""

    name = "opencl"

    def drivers(self) -> Sequence[OpenCLDriver]:
        """The devices, by the order of the loader's platforms. Raises BackendUnavailable."""
        return _drivers()

    def adopt(self, value: Any) -> DeviceArray | None:
        """See `sarek_numba.runtime.adopted.Adopter`."""
        return adopting.adopt(value, _drivers(), OpenCLDriver)

    def driver_of(self, value: Any) -> OpenCLDriver | None:
        """See `sarek_numba.runtime.adopted.Adopter`."""
        return adopting.driver_of(value, _drivers(), OpenCLDriver)


@cache
def _drivers() -> tuple[OpenCLDriver, ...]:
    cl = driver.load()
    result: list[OpenCLDriver] = []
    counts: dict[str, int] = {}
    for platform in driver.platforms():
        words = platform.name.lower().split() or ["unnamed"]
        vendor = _PLATFORMS.get(platform.name, "".join(filter(str.isalnum, words[0])))
        try:
            devices = platform.get_devices()
        except cl.Error:  # a platform without devices is an error to some drivers
            continue
        for device in devices:
            number = counts.get(vendor, 0)
            counts[vendor] = number + 1
            result.append(OpenCLDriver(device, f"opencl:{vendor}:{number}"))
    if not result:
        raise BackendUnavailable("the OpenCL platforms have no devices")
    order = list(_PLATFORMS.values())
    return tuple(
        sorted(result, key=lambda d: (d.record.is_cpu, _rank(d.record.name.split(":")[1], order)))
    )


def _rank(vendor: str, order: list[str]) -> int:
    return order.index(vendor) if vendor in order else len(order)


backend = OpenCLBackend()
