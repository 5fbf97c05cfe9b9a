"""Vulkan devices behind the contract of `sarek_numba.runtime.device`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from sarek_numba import passes
from sarek_numba.capability import DeviceRecord
from sarek_numba.codegen import cfamily
from sarek_numba.codegen.target import GPU_COARSENING, Target
from sarek_numba.errors import BackendError, InvalidDimensions, SourceCompilationError
from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.ir.texts import has_texts
from sarek_numba.ir.warps import uses_warps
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
from sarek_vulkan import driver, emit, layout
from sarek_vulkan.externals import VulkanExternals, validate
from sarek_vulkan.foreign import ALWAYS, invalid
from sarek_vulkan.graphs import VulkanGraphs
from sarek_vulkan.logical import Logical
from sarek_vulkan.memory import IMPORTED, Buffer, Part, VulkanMemory, way_of
from sarek_vulkan.physical import Physical, physical
from sarek_vulkan.pipelines import Pipelines
from sarek_vulkan.plans import VulkanPlans
from sarek_vulkan.queues import Lane, Mark, VulkanQueues
from sarek_vulkan.record import abilities_of, record_of

_PUSH_STAGES = 0x20
_EMULATED = frozenset({"division", "square_root", "fma", "conversion", "integer_division"})


class VulkanProgram:
    """A kernel as a SPIR-V module on one device. Any number of threads may launch it."""

    def __init__(
        self, owner: VulkanDriver, kernel: Kernel, module: layout.Module, source: str
    ) -> None:
        self.params: tuple[ParamDecl, ...] = kernel.params
        self.source = source
        self.name = kernel.name
        self.module = module
        self.static_shared_bytes = module.static_shared_bytes
        self._owner = owner
        self._refuse_capabilities()
        push = layout.ADDRESS_BYTES if module.spilled else module.argument_bytes
        self.push_bytes = push
        self.pipelines = Pipelines(
            owner,
            module.words,
            layout.ENTRY,
            owner.logical.pipeline_layout(push),
            owner.subgroup_for(kernel),
        )

    def _refuse_capabilities(self) -> None:
        """What a driver does with a module that needs what was not enabled is not defined."""
        missing = sorted(set(self.module.capabilities) - self._owner.physical.capabilities)
        if missing:
            raise SourceCompilationError(
                f"kernel '{self.name}' needs SPIR-V capabilities that {self._owner.record.name} "
                f"does not have: {', '.join(missing)}",
                self.source,
                "",
            )

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """See `sarek_numba.runtime.device.Program`."""
        if 0 in grid or 0 in block:
            return
        lane = self._owner.lane
        lane.wait(self.enqueue(lane, grid, block, shared_bytes, arguments))

    def joined(self, count: int) -> str:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        return f"{self._owner.record.name} has no launches as one in this version"

    def check(self, block: Dimensions) -> None:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        limit = self._owner.record.limits.threads_per_block
        threads = block[0] * block[1] * block[2]
        if threads > limit:
            raise InvalidDimensions(
                f"{self._owner.record.name} takes at most {limit} threads a block "
                f"(maxComputeWorkGroupInvocations); the block has {threads}"
            )

    def pipeline(self, block: Dimensions, shared_bytes: int) -> Any:
        """The pipeline for a block and bytes of dynamic shared memory.

        More shared memory than there is compiles on some drivers, and then loses the device.
        """
        self.check(block)
        if not self.module.dynamic_shared:
            return self._compiled(*block)
        dynamic = layout.dynamic_shared_bytes(shared_bytes)
        limit = self._owner.record.limits.shared_bytes
        if self.static_shared_bytes + dynamic > limit:
            raise InvalidDimensions(
                f"kernel '{self.name}' has {self.static_shared_bytes} bytes of shared memory and "
                f"asks for {dynamic} more; {self._owner.record.name} has {limit} for a block "
                "(maxComputeSharedMemorySize)"
            )
        return self._compiled(*block, dynamic)

    def _compiled(self, *constants: int) -> Any:
        """The pipeline; a driver that makes none says no more than that it failed."""
        try:
            return self.pipelines.get(*constants)
        except BackendError as error:
            if type(error) is not BackendError:
                raise  # no memory, or no device
            local = self.module.local_bytes
            hint = f"\n  hint: keep local arrays, {local} bytes of a thread, in global memory"
            raise SourceCompilationError(
                f"the driver of {self._owner.record.name} makes no pipeline of kernel "
                f"'{self.name}': {error}{hint if local else ''}",
                self.source,
                "",
            ) from error

    def packed(self, arguments: Sequence[Any]) -> bytes:
        """The block of arguments."""
        values = [a.address if isinstance(a, Buffer | Part) else a for a in arguments]
        if self.module.watched:
            values.append(0)  # the lane's own word, see `record`
        return layout.pack(self.module, values)

    def enqueue(
        self,
        handle: Lane,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> Mark:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        if 0 in grid or 0 in block:
            return handle.mark()
        pipeline = self.pipeline(block, shared_bytes)
        return self.record(handle, pipeline, grid, self.packed(arguments))

    def record(self, lane: Lane, pipeline: Any, grid: Dimensions, packed: bytes) -> Mark:
        """Give a lane a launch with a block of arguments. Raises BackendError."""
        with lane.lock:
            batch = lane.begin()
            if self.module.watched:
                packed = packed[: -layout.ADDRESS_BYTES] + lane.watch()
            if self.module.spilled:
                packed = lane.arguments(batch, packed).to_bytes(8, "little")
            bound, batch.bound = batch.bound, pipeline
            if bound is not pipeline:
                batch.kept.append(self.pipelines)
            self.put(lane.logical.call, batch.commands, grid, pipeline, bound, packed)
            return lane.end(batch, name=self.name)

    def put(
        self, call: Any, commands: Any, grid: Dimensions, pipeline: Any, bound: Any, pushed: bytes
    ) -> None:
        """Record a launch into a command buffer, in which a pipeline is bound."""
        if bound is not pipeline:
            call.vkCmdBindPipeline(commands, 1, pipeline)
        if pushed:
            given, of = driver.ffi.from_buffer(pushed), self.pipelines.layout
            call.vkCmdPushConstants(commands, of, _PUSH_STAGES, 0, len(pushed), given)
        call.vkCmdDispatch(commands, *grid)


class VulkanDriver:
    """One Vulkan device. Its logical device is made at the first use.

    `way` is how its memory is reached (`memory.way_of`), unless a test asks for another.
    """

    def __init__(self, physical: Physical, name: str, way: str | None = None) -> None:
        self.physical = physical
        self.record: DeviceRecord = record_of(physical, name)
        self.abilities = abilities_of(physical)
        self.target: Target | None = replace(
            emit.TARGET,
            emulates=_EMULATED,
            coarsening=0 if self.record.is_cpu else GPU_COARSENING,
        )
        self.vulkan_memory = VulkanMemory(self, way or way_of(physical))
        self.memory: DeviceMemory | None = self.vulkan_memory
        self.externals: Externals | None = VulkanExternals(self)
        self.queues: Queues | None = VulkanQueues(self)
        self.plans: Plans | None = VulkanPlans(self)
        self.graphs: Graphs = VulkanGraphs(self)
        self._programs: WeakValueDictionary[tuple[Any, ...], VulkanProgram] = WeakValueDictionary()
        self._lock = threading.RLock()
        self._logical: Logical | None = None
        self._lanes: dict[str, Lane] = {}

    @property
    def logical(self) -> Logical:
        """The open device. Raises DeviceLost, BackendError."""
        if self._logical is None:
            with self._lock:
                if self._logical is None:
                    driver.refuse_forked(self.record.name)
                    self._logical = Logical(self.physical, self.record.name)
        return self._logical

    @property
    def lane(self) -> Lane:
        """The lane of launches without a stream."""
        return self._lane("default")

    @property
    def transfers(self) -> Lane:
        """The lane of copies between host and device, which are waited for."""
        return self._lane("transfers")

    def _lane(self, name: str) -> Lane:
        found = self._lanes.get(name)
        if found is None:
            with self._lock:
                found = self._lanes.get(name)
                if found is None:
                    logical = self.logical
                    queue = logical.queues[0 if name == "default" else -1]
                    found = self._lanes[name] = Lane(logical, queue, timed=False)
        return found

    def subgroup_for(self, kernel: Kernel) -> int | None:
        """The size that subgroups of a kernel must have, where the device can be asked for it."""
        if kernel.warp_width is None or not self.physical.chooses_subgroup:
            return None
        return kernel.warp_width if uses_warps(kernel) else None

    def prepare(self, kernel: Kernel) -> VulkanProgram:
        """See `sarek_numba.runtime.device.Driver`; kernels of equal words share a program."""
        legal = self._optimised(kernel)
        module = self._emitted(legal)
        key = (module.words, legal.params, self.subgroup_for(legal))
        with self._lock:
            program = self._programs.get(key)
            if program is None:
                program = VulkanProgram(self, legal, module, emit.disassemble(module.words))
                self._programs[key] = program
            return program

    def source(self, kernel: Kernel) -> str:
        """See `sarek_numba.runtime.device.Driver`."""
        legal = self._optimised(kernel)
        return cfamily.header(kernel) + emit.disassemble(self._emitted(legal).words)

    def _emitted(self, legal: Kernel) -> layout.Module:
        limit = int(self.physical.limits["maxPushConstantsSize"])
        module = emit.emit(legal, self.abilities, limit)
        if has_texts(legal):  # what a user wrote is looked at before a driver sees it
            missing = sorted(set(module.capabilities) - ALWAYS - self.physical.capabilities)
            if missing:
                needed = ", ".join(missing)
                raise invalid(f"it needs {needed}, which {self.record.name} does not have")
            validate(module.words, (1, 5))
        return module

    def _optimised(self, kernel: Kernel) -> Kernel:
        assert self.target is not None
        return passes.optimise(kernel, self.target)

    def bind(self, memory: Bytes, *, read: bool, written: bool) -> Buffer:
        """See `sarek_numba.runtime.device.Driver`."""
        store = self.vulkan_memory
        if store.way == IMPORTED:
            return store.imported(memory)
        buffer = store.hold(memory)
        try:
            store.send(buffer, 0, memory.size)
        except BaseException:
            store.release(buffer)
            raise
        buffer.written = written
        return buffer

    def unbind(self, buffer: Buffer) -> None:
        """See `sarek_numba.runtime.device.Driver`."""
        store = self.vulkan_memory
        try:
            if buffer.written:
                store.fetch(buffer, 0, buffer.host.size)
        finally:
            store.release(buffer)


class VulkanBackend:
    """All Vulkan devices of this process, named `vulkan:<number>`."""

    name = "vulkan"

    def drivers(self) -> Sequence[VulkanDriver]:
        """The devices, GPUs before CPUs. Raises BackendUnavailable."""
        return _drivers()


@cache
def _drivers() -> tuple[VulkanDriver, ...]:
    found, reasons = usable([physical(handle) for handle in driver.physical_devices()])
    if not found:
        raise BackendUnavailable("; ".join(reasons) or "the Vulkan drivers have no devices")
    return tuple(VulkanDriver(each, f"vulkan:{number}") for number, each in enumerate(found))


def usable(devices: Sequence[Physical]) -> tuple[list[Physical], list[str]]:
    """Devices that can be used, each once, in order; why the others cannot."""
    found: dict[tuple[Any, ...], Physical] = {}
    reasons = []
    for each in devices:
        if each.lacks:
            reasons.append(f"{each.name}: {each.lacks}")
        else:
            found.setdefault(each.identity, each)
    return sorted(found.values(), key=lambda each: each.rank), reasons


__all__ = ["VulkanBackend", "VulkanDriver", "VulkanProgram", "backend", "usable"]

backend = VulkanBackend()
