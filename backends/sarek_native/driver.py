"""LLVM and the native device: compiling modules, binding host memory.

llvmlite and ctypes are used here and nowhere else in this backend.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import platform
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from string import Template
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from sarek_native.capabilities import device_record
from sarek_native.emit import Module
from sarek_native.graphs import NativeGraphs
from sarek_native.groups import Variant
from sarek_native.launcher import NativePlans
from sarek_native.list_ir import TEXT
from sarek_native.runtime import Buffer, Entry, NativeProgram
from sarek_numba.capability import DeviceRecord
from sarek_numba.codegen.target import Target
from sarek_numba.errors import SourceCompilationError
from sarek_numba.ir.nodes import Kernel
from sarek_numba.passes import optimise
from sarek_numba.runtime import disk
from sarek_numba.runtime.device import Bytes, DeviceMemory, Queues
from sarek_numba.runtime.languages import Externals
from sarek_numba.runtime.plans import Plans
from sarek_numba.runtime.work import AT_ONCE

# Lanes by the bits of the machine's vectors. More than one register of float32 for each value hides
# latency, but spills where there are only 16 registers (n-body, tiled product: 1.4 times slower).
_LANES = {512: 16, 256: 8, 128: 8}
_LONG = 3_000  # instructions, beyond which no loop is unrolled: that is quadratic in their number
_LARGE = 20_000  # instructions, beyond which LLVM's costlier passes are left out

_PROTOTYPE = ctypes.CFUNCTYPE(  # a call releases the GIL
    None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


_LIST = ctypes.CFUNCTYPE(  # as well
    ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 2, ctypes.c_void_p, ctypes.c_int64
)


@dataclass(slots=True)
class Compiled:
    """Machine code in memory; it lives as long as `engine` does."""

    entry: Entry
    address: int
    engine: Any


@dataclass(slots=True)
class Routines:
    """`list_ir` in memory: the loop, and the addresses of what it calls beside kernels."""

    list: Callable[[int, int, int, int, int], int]
    copy: int
    fill: int
    engine: Any


class Compiler:
    """LLVM for the CPU of this machine."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        library = ctypes.util.find_library("m")
        if library is not None:
            llvm.load_library_permanently(library)
        self._lock = threading.Lock()
        self.identity = (*_identity(), ("triple", llvm.get_process_triple()))
        self.cpu: str = llvm.get_host_cpu_name()
        features = llvm.get_host_cpu_features()
        self.features: str = features.flatten()
        self.vector_bits = 512 if features.get("avx512f") else 256 if features.get("avx2") else 128
        self.lanes = _LANES[self.vector_bits]

    def _machine(self, effort: int) -> Any:
        target = llvm.Target.from_default_triple()
        return target.create_target_machine(cpu=self.cpu, features=self.features, opt=effort)

    def _optimised(self, module: Module) -> tuple[Any, Any]:
        try:
            parsed = llvm.parse_assembly(module.text)
        except RuntimeError as error:
            raise _refused(module, error) from None
        if module.has_texts:  # what LLVM's passes take for granted, a user may have broken
            try:
                parsed.verify()
            except RuntimeError as error:
                raise _refused(module, error) from None
        machine = self._machine(1 if module.instructions > _LARGE else 3)
        parsed.triple = machine.triple
        parsed.data_layout = str(machine.target_data)
        effort = 1 if module.instructions > _LARGE else 2
        # lanes are vectors already: LLVM's own vectorisers have nothing to add
        options = llvm.create_pipeline_tuning_options(speed_level=effort)
        options.loop_vectorization = options.slp_vectorization = False
        options.loop_unrolling = module.instructions <= _LONG
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(parsed, builder)
        return parsed, machine

    def compile(self, module: Module) -> Compiled:
        """Machine code for a module, from the cache on disk if it is there."""
        key = disk.key_of(
            "native", self.identity, module.text, module.instructions, module.has_texts
        )
        code = disk.load("native", key)
        made: list[bytes] = []
        with self._lock:
            if code is not None:
                engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self._machine(1))
                engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            else:
                parsed, machine = self._optimised(module)
                engine = llvm.create_mcjit_compiler(parsed, machine)
                engine.set_object_cache(lambda _, code: made.append(bytes(code)))
            engine.finalize_object()
            address = engine.get_function_address("kernel")
        for each in made:
            disk.save("native", key, each)
        return Compiled(_PROTOTYPE(address), address, engine)

    def routines(self) -> Routines:
        """The loop of graphs."""
        text = Template(TEXT).substitute(CLOCK=time.CLOCK_MONOTONIC)
        with self._lock:
            engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), self._machine(2))
            engine.finalize_object()
            found = {name: engine.get_function_address(name) for name in ("list", "copy", "fill")}
        return Routines(_LIST(found["list"]), found["copy"], found["fill"], engine)

    def assembly(self, module: Module) -> str:
        """The machine code as text."""
        with self._lock:
            parsed, machine = self._optimised(module)
            text: str = machine.emit_assembly(parsed)
            return text


def _refused(module: Module, error: RuntimeError) -> SourceCompilationError:
    return SourceCompilationError("LLVM refused its input", module.text, str(error))


def _identity() -> tuple[tuple[str, str], ...]:
    """What tells this compiler and its target from others: part of every key of a cache."""
    return (
        ("llvmlite", llvmlite.__version__),
        ("LLVM", ".".join(map(str, llvm.llvm_version_info))),
        ("cpu", llvm.get_host_cpu_name()),
        ("machine", platform.machine()),
        ("features", llvm.get_host_cpu_features().flatten()),
    )


TARGET = Target("native", address_bits=64, calls=True, inline_barriers=True, framework="native")


class NativeDriver:
    """The CPU as one device."""

    target: Target | None
    record: DeviceRecord
    memory: DeviceMemory | None
    externals: Externals | None
    queues: Queues | None

    def __init__(self) -> None:
        self.target = TARGET
        self.plans: Plans | None = NativePlans()
        self.memory = None
        self.externals = None
        self.queues = AT_ONCE
        self.record = self._record()
        if os.name == "posix":  # as the loop of graphs needs it
            self.graphs = NativeGraphs(self)

    @cached_property
    def compiler(self) -> Compiler:
        return Compiler()

    def _record(self) -> DeviceRecord:
        version = ".".join(map(str, llvm.llvm_version_info))
        return device_record(f"{llvm.get_host_cpu_name()} through LLVM {version}", _identity())

    def prepare(self, kernel: Kernel) -> NativeProgram:
        return self.program(optimise(kernel, TARGET))

    def program(self, legal: Kernel) -> NativeProgram:
        """The program of a kernel that is legal for this target already."""
        return NativeProgram(legal, self.compiler)

    def source(self, kernel: Kernel) -> str:
        """LLVM IR for blocks whose rows fill lane groups, before LLVM's own passes."""
        place = f", {kernel.span}" if kernel.span else ""
        text = self.prepare(kernel).source
        return f"; kernel {kernel.name}{place}\n{text}"

    def assembly(self, kernel: Kernel, variant: Variant | None = None) -> str:
        """The machine code that `prepare` would give, as text."""
        program = self.prepare(kernel)
        return self.compiler.assembly(program.module(variant or Variant()))

    def bind(self, memory: Bytes, *, read: bool, written: bool) -> Buffer:
        """Host memory is device memory."""
        return Buffer(memory.ctypes.data, memory)

    def unbind(self, buffer: Buffer) -> None:
        """Nothing was copied."""
