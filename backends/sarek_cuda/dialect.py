"""CUDA C++ as a table for `codegen.cfamily`; NVRTC compiles it, with `--fmad=false`.

Conversions of floats to integers of 32 and 64 bits are one instruction each, which stops at the
ends of the type (PTX ISA, `cvt`). The compiler makes no use of types where accesses may overlap
(`tests/toolchains` looks at what it makes of them), so elements need no aliasing spelling.
"""

from __future__ import annotations

from dataclasses import replace

from sarek_numba.codegen.cudalike import CUDALIKE
from sarek_numba.codegen.target import Target
from sarek_numba.ir.types import Scalar

_SOURCES = {Scalar.FLOAT32: "float", Scalar.FLOAT64: "double"}
_TARGETS = {
    Scalar.INT32: "int",
    Scalar.UINT32: "uint",
    Scalar.INT64: "ll",
    Scalar.UINT64: "ull",
}

DIALECT = replace(
    CUDALIKE,
    name="CUDA C++",
    framework="cuda",
    saturate={
        **CUDALIKE.saturate,
        **{
            (source, target): f"__{name}2{to}_rz({{0}})"
            for source, name in _SOURCES.items()
            for target, to in _TARGETS.items()
        },
    },
)

TARGET = Target("cuda", address_bits=32, shuffles_only=True, framework=DIALECT.framework)
