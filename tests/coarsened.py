"""Devices of this machine with kernels coarsened, as GPUs have them, and the oracle with such IR.

`device(name)` is the device of that name again, with a target that asks for coarsening; of the
interpreter one that runs what the passes leave, in the widths of a CPU or, as "interpreter:32", of
a GPU. `BYTES` a thread give 8 elements of 32 bits each, more than any GPU is asked for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import sarek_numba as sarek
from sarek_interp.driver import InterpreterDriver, InterpreterProgram
from sarek_native.driver import TARGET as NATIVE
from sarek_native.driver import NativeDriver
from sarek_native.runtime import NativeProgram
from sarek_numba.capability import DeviceRecord, Residency
from sarek_numba.codegen.target import Target
from sarek_numba.ir.nodes import Kernel
from sarek_numba.passes import optimise
from sarek_numba.passes.coarsen import Decision, asked
from sarek_numba.runtime.registry import Device
from tests.toolchains import shim
from tests.toolchains.shim.driver import ShimDriver

BYTES = 32
NARROW_ORACLE = "interpreter:32"


class CoarsenedNative(NativeDriver):
    """The native device, with another target."""

    def __init__(self) -> None:
        super().__init__()
        self.target = replace(NATIVE, coarsening=BYTES)
        self.record = running(self.record, 0)

    def prepare(self, kernel: Kernel) -> NativeProgram:
        return self.program(optimise(kernel, self.target))


class CoarsenedOracle(InterpreterDriver):
    """The oracle with the IR that a device would get. `decision` is that on the last kernel."""

    def __init__(self, address_bits: int) -> None:
        super().__init__()
        self.passes = Target("oracle", address_bits=address_bits, coarsening=BYTES)
        self.decision = Decision()

    def prepare(self, kernel: Kernel) -> InterpreterProgram:
        return super().prepare(self.optimised(kernel))

    def optimised(self, kernel: Kernel) -> Kernel:
        with asked() as self.decision:
            return optimise(kernel, self.passes)


def running(record: DeviceRecord, threads: int) -> DeviceRecord:
    """The record of a device that runs so many threads at a time."""
    residency = Residency(threads, "by construction: a test says so")
    return replace(record, limits=replace(record.limits, residency=residency))


@cache
def names() -> tuple[str, ...]:
    """Of devices that are here, without GPUs, which need no force."""
    found = [device.name for device in sarek.devices()]
    kept = [n for n in found if n.startswith(("opencl:", "vulkan:", "native", "interpreter"))]
    return (*kept, NARROW_ORACLE, *(() if shim.why_not() else ("shim:cuda", "shim:hip")))


@cache
def device(name: str) -> Device:
    """The device that coarsens."""
    return Device(_driver(name))


def _driver(name: str) -> Any:
    made: Any
    if name == "native":
        return CoarsenedNative()
    if name.startswith("interpreter"):
        return CoarsenedOracle(32 if name == NARROW_ORACLE else 64)
    if name.startswith("shim:"):
        made = ShimDriver(name)
        made.record = running(made.record, 0)
        return made  # its target is that of the backend
    known = sarek.device(name).driver
    if name.startswith("vulkan:"):
        from sarek_vulkan.runtime import VulkanDriver

        made = VulkanDriver(known.physical, name)
    else:
        from sarek_opencl.runtime import OpenCLDriver

        made = OpenCLDriver(known.device, name)
    made.target = replace(made.target, coarsening=BYTES)
    made.record = running(made.record, 0)
    return made
