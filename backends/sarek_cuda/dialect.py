"""CUDA C++ as a table for `codegen.cfamily`; NVRTC compiles it, with `--fmad=false`.

Conversions of floats to integers of 32 and 64 bits are one instruction each, which stops at the
ends of the type (PTX ISA, `cvt`). The compiler makes no use of types where accesses may overlap
(`tests/toolchains` looks at what it makes of them), so elements need no aliasing spelling.

NVIDIA's assembler has two faults with integers that become narrower: it takes the result of
`neg.s16` for 32768 where it is -32768 when the result is widened (driver 580, `sm_90`), and one
constant for another in an index that becomes 32 bits and 64 again (CUDA 12.9 and 13.0, `sm_90` and
`sm_100`). Both were met in OpenCL; this compiler writes the same `neg.s16`. So a value becomes
narrower by an instruction that it cannot look into.
"""

from __future__ import annotations

from dataclasses import replace

from sarek_cuda.matrices import DEFINITIONS_BY_WORD, MATRICES
from sarek_numba.codegen.cudalike import CUDALIKE, HEAD
from sarek_numba.codegen.target import GPU_COARSENING, Target
from sarek_numba.ir.types import Scalar

_SOURCES = {Scalar.FLOAT32: "float", Scalar.FLOAT64: "double"}
_TARGETS = {
    Scalar.INT32: "int",
    Scalar.UINT32: "uint",
    Scalar.INT64: "ll",
    Scalar.UINT64: "ull",
}

_NARROW_SHORT = f"""\
{HEAD} short narrow_short(int x) {{
#ifdef __CUDA_ARCH__
    int result;
    asm("cvt.s32.s16 %0, %1;" : "=r"(result) : "r"(x));
    return (short)result;
#else
    return (short)x;
#endif
}}"""
_NARROW_INT = f"""\
{HEAD} int narrow_int(long long x) {{
#ifdef __CUDA_ARCH__
    int result;
    asm("cvt.u32.u64 %0, %1;" : "=r"(result) : "l"(x));
    return result;
#else
    return (int)x;
#endif
}}"""
_DEFINITIONS = {"narrow_short": _NARROW_SHORT, "narrow_int": _NARROW_INT}
_NARROWINGS = {(source, Scalar.INT16): "narrow_short" for source in Scalar if source.is_integer} | {
    (source, target): code
    for source in (Scalar.INT64, Scalar.UINT64)
    for target, code in (
        (Scalar.INT32, "narrow_int"),
        (Scalar.UINT32, "(unsigned int)narrow_int"),
    )
}

STATIC_SHARED_BYTES = 48 * 1024  # CUDA C++ Programming Guide, technical specifications

DIALECT = replace(
    CUDALIKE,
    name="CUDA C++",
    framework="cuda",
    most_static_shared=STATIC_SHARED_BYTES,
    narrowings=_NARROWINGS,
    word_prologue={
        **CUDALIKE.word_prologue,
        **{name: (text,) for name, text in _DEFINITIONS.items()},
        **DEFINITIONS_BY_WORD,
    },
    reserved=CUDALIKE.reserved | frozenset(_DEFINITIONS) | frozenset(DEFINITIONS_BY_WORD),
    matrices=MATRICES,
    saturate={
        **CUDALIKE.saturate,
        **{
            (source, target): f"__{name}2{to}_rz({{0}})"
            for source, name in _SOURCES.items()
            for target, to in _TARGETS.items()
        },
    },
)

TARGET = Target(
    "cuda",
    address_bits=32,
    shuffles_only=True,
    framework=DIALECT.framework,
    coarsening=GPU_COARSENING,
)
