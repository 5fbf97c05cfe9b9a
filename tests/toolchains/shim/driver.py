"""The shim as a device: its languages, its compiler, its launches."""

from __future__ import annotations

import ctypes
import re
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from sarek_cuda import dialect as cuda
from sarek_hip import dialect as hip
from sarek_numba.capability import (
    Capability,
    CapabilityKind,
    DeviceRecord,
    Fact,
    Limits,
    Verdict,
    host_facts,
)
from sarek_numba.codegen import cfamily
from sarek_numba.codegen.dialect import Dialect
from sarek_numba.codegen.target import Target
from sarek_numba.errors import LaunchFailed, SourceCompilationError
from sarek_numba.ir.nodes import AtomicOp, Kernel, ParamDecl
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.passes import optimise
from sarek_numba.runtime.device import Bytes, Dimensions
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.work import AT_ONCE

FOLDER = Path(__file__).parent
SHARED_BYTES = 227 * 1024
# -O1 keeps compiling short. No contraction, and no assumption about the types of overlapping
# memory: these are what the devices' own compilers are told.
# What some systems add by themselves is left out: checks of longjmp, which does not expect fibers,
# and shadow stacks.
OPTIONS = """
    -std=c++17 -O1 -w -fPIC -ffp-contract=off -fno-strict-aliasing -shared -nostdlib
    -U_FORTIFY_SOURCE -fcf-protection=none -fno-stack-protector
""".split()
SYSTEM: tuple[str, ...] = ()  # stands for what the compiler of a system adds by itself


@dataclass(frozen=True, slots=True)
class Language:
    """One kind of text; `header` has its names, `meetings` finds programs whose threads meet.

    `warp_widths` are those that its devices have, the usual one first.
    """

    dialect: Dialect
    target: Target
    header: str
    meetings: str
    warp_widths: tuple[int, ...]


LANGUAGES = {
    "shim:cuda": Language(
        cuda.DIALECT, cuda.TARGET, "cuda.h", r"__(syncthreads|syncwarp|shfl_sync)\(", (32,)
    ),
    "shim:hip": Language(
        hip.DIALECT, hip.TARGET, "hip.h", r"__(syncthreads|shfl)\(|warp_meeting\(", (32, 64)
    ),
}

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


@cache
def _folder() -> Any:
    return tempfile.TemporaryDirectory(prefix="sarek-shim-")


def why_not() -> str:
    """Why there is no shim here; empty where there is one."""
    return "" if shutil.which("g++") else "there is no g++"


def _compiled(source: str, name: str) -> Path:
    """A library made of C++. Raises SourceCompilationError."""
    folder = Path(_folder().name)
    text, library = folder / f"{name}.cpp", folder / f"{name}.so"
    text.write_text(source)
    command = ["g++", *SYSTEM, *OPTIONS, f"-I{FOLDER}", str(text), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SourceCompilationError("g++ rejects the program", source, done.stderr)
    return library


@cache
def _machine() -> Callable[..., int]:
    library = _compiled((FOLDER / "machine.cpp").read_text(), "machine")
    loaded = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)  # kernels find its symbols
    return loaded.machine_run


_lock = threading.Lock()  # there is one machine
_numbers = iter(range(1_000_000))


def unit(language: Language, text: str, width: int) -> str:
    """A program as C++ of the shim. `run` takes the addresses of the kernel's arguments."""
    words = -(-SHARED_BYTES // 8)
    region = f"thread_local unsigned long long {cfamily.DYNAMIC_SHARED}[{words}];\n"
    return (
        f'#define WARP_WIDTH {width}\n#include "{language.header}"\n'
        f"namespace program {{\n{region if cfamily.DYNAMIC_SHARED in text else ''}{text}}}\n"
        'extern "C" void run(void **arguments) '
        f"{{ machine::give(program::{cfamily.ENTRY}, arguments); }}\n"
    )


class ShimProgram:
    """A kernel; compiled at its first launch, so that preparing one costs little."""

    def __init__(self, language: Language, kernel: Kernel, text: str) -> None:
        self.params: tuple[ParamDecl, ...] = kernel.params
        self.source = text
        self.width = kernel.warp_width or language.warp_widths[0]
        self._language = language
        self._meets = bool(re.search(language.meetings, text))
        formats = ("Q" if param.array else _FORMATS[param.var.type] for param in kernel.params)
        self._pack = struct.Struct("<" + "".join(formats))
        self._is_array = tuple(param.array is not None for param in kernel.params)
        self._run: Any = None
        self.static_shared_bytes = 0

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """See `sarek_numba.runtime.device.Program`."""
        given = zip(self._is_array, arguments, strict=True)
        values = [value.ctypes.data if is_array else value for is_array, value in given]
        packed = ctypes.create_string_buffer(self._pack.pack(*values), self._pack.size or 1)
        first = ctypes.addressof(packed)
        addresses = (ctypes.c_void_p * (len(values) or 1))(
            *(first + 8 * position for position in range(len(values)))
        )
        sizes = (ctypes.c_uint * 6)(*grid, *block)
        with _lock:
            machine = _machine()
            if self._run is None:
                name = f"program_{next(_numbers)}"
                library = _compiled(unit(self._language, self.source, self.width), name)
                self._run = ctypes.CDLL(str(library)).run
            status = machine(self._run, addresses, sizes, self.width, int(self._meets))
        if status:
            why = {1: "threads of a block wait for each other", 2: "no memory for stacks"}[status]
            raise LaunchFailed(f"a launch on the shim failed: {why}")


class ShimDriver:
    """One language of the shim behind the contract of `sarek_numba.runtime.device`."""

    memory = None
    externals = None
    queues = AT_ONCE
    plans = None

    def __init__(self, name: str) -> None:
        self.language = LANGUAGES[name]
        self.target: Target | None = self.language.target
        self.record = _record(name, self.language)
        self._programs: dict[Any, ShimProgram] = {}

    def prepare(self, kernel: Kernel) -> ShimProgram:
        """See `sarek_numba.runtime.device.Driver`; kernels of equal text share a program."""
        legal = optimise(kernel, self.language.target)
        emitted = cfamily.emit(legal, self.language.dialect)
        key = (emitted.text, legal.params, legal.warp_width)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = ShimProgram(self.language, legal, emitted.text)
            program.static_shared_bytes = emitted.static_shared_bytes
        return program

    def source(self, kernel: Kernel) -> str:
        """See `sarek_numba.runtime.device.Driver`."""
        legal = optimise(kernel, self.language.target)
        return cfamily.emit(legal, self.language.dialect, entry=kernel.name).text

    def bind(self, memory: Bytes, *, read: bool, written: bool) -> Bytes:
        """Host memory is what the machine works on."""
        return memory

    def unbind(self, buffer: Bytes) -> None:
        """Nothing was copied."""


@cache
def device(name: str) -> Device:
    """The device of a language."""
    return Device(ShimDriver(name))


_INTEGER_ONLY = frozenset({AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR, AtomicOp.INC, AtomicOp.DEC})


def _record(name: str, language: Language) -> DeviceRecord:
    fact = Fact(Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, "by construction of the shim")
    facts = {
        Capability(feature): fact
        for feature in ("shared", "dynamic_shared", "barrier", "warp", "print")
    }
    for scalar in language.dialect.types:
        facts |= {Capability(feature, scalar): fact for feature in ("storage", "arithmetic")}
    scalars = [s for s in language.dialect.types if s.bits >= 32]
    for op, scalar, space in product(AtomicOp, scalars, (MemSpace.GLOBAL, MemSpace.SHARED)):
        if not (scalar.is_float and op in _INTEGER_ONLY):
            facts[Capability("atomic", scalar, op, space)] = fact
    facts |= host_facts(fact)
    return DeviceRecord(
        name=name,
        backend="shim",
        model="jit",
        description=f"{language.dialect.name} on the CPU",
        identity=(("shim", language.dialect.name),),
        limits=Limits(
            threads_per_block=1024,
            block=(1024, 1024, 64),
            grid=(2**31 - 1, 65_535, 65_535),
            shared_bytes=SHARED_BYTES,
            global_bytes=2**40,
            warp_width=language.warp_widths[0],
            warp_widths=language.warp_widths,
            thread_local_bytes=128 * 1024,
        ),
        facts=facts,
        is_cpu=True,
    )
