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
from weakref import WeakValueDictionary

from sarek_cuda import dialect as cuda
from sarek_cuda import matrices as cuda_matrices
from sarek_hip import dialect as hip
from sarek_hip import matrices as hip_matrices
from sarek_metal import dialect as msl
from sarek_metal import matrices as msl_matrices
from sarek_numba.capability import (
    Capability,
    CapabilityKind,
    DeviceRecord,
    Fact,
    Limits,
    Refusal,
    Verdict,
    host_facts,
)
from sarek_numba.codegen import cfamily
from sarek_numba.codegen.dialect import Dialect
from sarek_numba.codegen.target import Target
from sarek_numba.errors import CapabilityError, LaunchFailed, SourceCompilationError
from sarek_numba.ir.nodes import AtomicOp, CoopmatConfig, Kernel, ParamDecl
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.passes import optimise
from sarek_numba.runtime.device import Bytes, Dimensions
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.work import AT_ONCE
from tests.toolchains.shim import metal

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
    `missing` are functions that it lacks. `as_cpp` makes C++ of a program: of its text, the name of
    a namespace, that of the function that takes its arguments, and the bytes of shared memory.
    `packer` says of parameters how such arguments are made.
    """

    dialect: Dialect
    target: Target
    header: str
    meetings: str
    warp_widths: tuple[int, ...]
    as_cpp: Callable[[str, str, str, int], str]
    packer: Callable[[Sequence[ParamDecl]], Callable[[Sequence[Any]], tuple[Any, Any]]]
    missing: tuple[str, ...] = ()
    atomic_bits: tuple[int, ...] = (32, 64)
    matrices: tuple[CoopmatConfig, ...] = ()


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


def _as_cpp(text: str, name: str, run: str, shared_bytes: int) -> str:
    region = f"thread_local unsigned long long {cfamily.DYNAMIC_SHARED}[{-(-shared_bytes // 8)}];\n"
    return (
        f"namespace {name} {{\n{region if cfamily.DYNAMIC_SHARED in text else ''}{text}}}\n"
        f'extern "C" void {run}(void **arguments) '
        f"{{ machine::give({name}::{cfamily.ENTRY}, arguments); }}\n"
    )


def _packer(params: Sequence[ParamDecl]) -> Callable[[Sequence[Any]], tuple[Any, Any]]:
    """Each argument has eight bytes of its own."""
    formats = ("Q" if param.array else _FORMATS[param.var.type] for param in params)
    packed = struct.Struct("<" + "".join(formats))
    is_array = tuple(param.array is not None for param in params)

    def pack(arguments: Sequence[Any]) -> tuple[Any, Any]:
        given = zip(is_array, arguments, strict=True)
        values = [value.ctypes.data if array else value for array, value in given]
        words = ctypes.create_string_buffer(packed.pack(*values), packed.size or 1)
        first = ctypes.addressof(words)
        addresses = (first + 8 * position for position in range(len(values)))
        return (ctypes.c_void_p * (len(values) or 1))(*addresses), words

    return pack


LANGUAGES = {
    "shim:cuda": Language(
        cuda.DIALECT,
        cuda.TARGET,
        "cuda.h",
        r"__(syncthreads|syncwarp|shfl_sync)\(|matrix_multiply_add\w*<",
        (32,),
        _as_cpp,
        _packer,
        matrices=cuda_matrices.configurations(90),
    ),
    "shim:hip": Language(
        hip.DIALECT,
        hip.TARGET,
        "hip.h",
        r"__(syncthreads|shfl)\(|warp_meeting\(|matrix_multiply_add\w*<",
        (32, 64),
        _as_cpp,
        _packer,
        matrices=tuple(
            dict.fromkeys(
                config
                for architecture in ("gfx1100", "gfx942")
                for config in hip_matrices.configurations(architecture)
            )
        ),
    ),
    # as a device that nobody measured: division, roots and fma are computed on the bits
    "shim:metal": Language(
        msl.DIALECT,
        msl.target_for(frozenset({"division", "square_root", "fma"})),
        "metal_stdlib",
        r"(threadgroup_barrier|simdgroup_barrier|simd_shuffle|simdgroup_multiply_accumulate)\(",
        (32,),
        metal.as_cpp,
        metal.packer,
        missing=msl.MISSING,
        atomic_bits=(32,),
        matrices=msl_matrices.configurations(has_bfloat=True),
    ),
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
def machine() -> Callable[..., int]:
    library = _compiled((FOLDER / "machine.cpp").read_text(), "machine")
    loaded = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)  # kernels find its symbols
    return loaded.machine_run


lock = threading.Lock()  # there is one machine
_numbers = iter(range(1_000_000))


def run_blocks(kernel: Any, addresses: Any, sizes: Any, *, width: int, meets: bool) -> str:
    """Run all blocks of a launch; why that does not come to an end, else nothing.

    `kernel` is a function of C that takes the addresses of the kernel's arguments, `sizes` are the
    grid and the block.
    """
    with lock:
        status = machine()(kernel, addresses, sizes, width, int(meets))
    return ("", "threads of a block wait for each other", "no memory for stacks")[status]


def library_of(source: str) -> ctypes.CDLL:
    """A library made of C++ of the shim. Raises SourceCompilationError."""
    machine()  # whose symbols it needs
    return ctypes.CDLL(str(_compiled(source, f"program_{next(_numbers)}")))


def unit(language: Language, text: str, width: int) -> str:
    """A program as C++ of the shim. `run` takes the addresses of the kernel's arguments."""
    head = f'#define WARP_WIDTH {width}\n#include "{language.header}"\n'
    return head + language.as_cpp(text, "program", "run", SHARED_BYTES)


class ShimProgram:
    """A kernel; compiled at its first launch, so that preparing one costs little."""

    def __init__(self, language: Language, kernel: Kernel, text: str) -> None:
        self.params: tuple[ParamDecl, ...] = kernel.params
        self.source = text
        self.width = kernel.warp_width or language.warp_widths[0]
        self._language = language
        self._meets = bool(re.search(language.meetings, text))
        self._pack = language.packer(kernel.params)
        self._run: Any = None
        self.static_shared_bytes = 0

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """See `sarek_numba.runtime.device.Program`."""
        addresses, _alive = self._pack(arguments)
        sizes = (ctypes.c_uint * 6)(*grid, *block)
        with lock:
            if self._run is None:
                self._run = library_of(unit(self._language, self.source, self.width)).run
        why = run_blocks(self._run, addresses, sizes, width=self.width, meets=self._meets)
        if why:
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
        self._programs: WeakValueDictionary[Any, ShimProgram] = WeakValueDictionary()

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


def is_declared(refusal: CapabilityError) -> bool:
    """Whether a kernel was refused only for what the language of a shim's text is known to lack."""
    return all(map(_is_declared, refusal.verdicts))


def _is_declared(refusal: Refusal) -> bool:
    language = LANGUAGES.get(refusal.device, LANGUAGES.get(f"shim:{refusal.backend}"))
    need = refusal.need
    if language is None:
        return False
    if need.feature == "function":
        return need.function in language.missing
    lacks = need.scalar is not None and need.scalar not in language.dialect.types
    wide = need.scalar is not None and need.scalar.bits not in language.atomic_bits
    return lacks or (need.feature == "atomic" and wide)


_INTEGER_ONLY = frozenset({AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR, AtomicOp.INC, AtomicOp.DEC})


def _record(name: str, language: Language) -> DeviceRecord:
    fact = Fact(Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, "by construction of the shim")
    facts = {
        Capability(feature): fact
        for feature in ("shared", "dynamic_shared", "barrier", "warp", "print")
    }
    for scalar in language.dialect.types:
        facts |= {Capability(feature, scalar): fact for feature in ("storage", "arithmetic")}
    scalars = [s for s in language.dialect.types if s.bits in language.atomic_bits]
    for op, scalar, space in product(AtomicOp, scalars, (MemSpace.GLOBAL, MemSpace.SHARED)):
        if not (scalar.is_float and op in _INTEGER_ONLY):
            facts[Capability("atomic", scalar, op, space)] = fact
    facts |= host_facts(fact)
    missing = Fact(
        Verdict.UNAVAILABLE, CapabilityKind.STRUCTURAL, "by construction of the language"
    )
    if Scalar.FLOAT64 not in language.dialect.types:
        facts |= {Capability(f, Scalar.FLOAT64): missing for f in ("storage", "arithmetic")}
    for function in language.missing:
        facts[Capability("function", Scalar.FLOAT32, function=function)] = missing
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
        coopmat=language.matrices,
        is_cpu=True,
    )
