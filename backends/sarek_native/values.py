"""Values of the emitted code and how LLVM spells their types.

A value has one of three shapes, which decide the machine code: uniform (one scalar for all lanes),
linear (base + lane * stride, kept as its scalar base so that accesses stay contiguous) and lanes (a
vector with one element a lane). A uniform or linear value becomes a vector only where it must.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from sarek_numba.ir.nodes import Const
from sarek_numba.ir.types import Kind, MemSpace, Scalar


@dataclass(frozen=True, slots=True)
class Value:
    """An operand: its type and its LLVM text. `stride` counts only where `lanes` is False."""

    type: Scalar
    text: str
    lanes: bool = False
    stride: int = 0

    @property
    def uniform(self) -> bool:
        return not self.lanes and self.stride == 0


@dataclass(frozen=True, slots=True)
class Slot:
    """A mutable variable: stack memory that LLVM turns into registers."""

    type: Scalar
    pointer: str
    lanes: bool


@dataclass(frozen=True, slots=True)
class Place:
    """An array. An `interleaved` one is of each thread: one element a lane lies side by side."""

    element: Scalar
    pointer: str
    space: MemSpace
    interleaved: bool = False


# The type in registers; memory differs for bool alone, which takes a byte there.
REGISTER: dict[Scalar, str] = {
    Scalar.BOOL: "i1",
    Scalar.INT8: "i8",
    Scalar.INT16: "i16",
    Scalar.INT32: "i32",
    Scalar.INT64: "i64",
    Scalar.UINT8: "i8",
    Scalar.UINT16: "i16",
    Scalar.UINT32: "i32",
    Scalar.UINT64: "i64",
    Scalar.FLOAT32: "float",
    Scalar.FLOAT64: "double",
}


def memory_type(type: Scalar) -> str:
    """The LLVM type of an element in memory."""
    return "i8" if type is Scalar.BOOL else REGISTER[type]


def signed(type: Scalar) -> bool:
    return type.kind is Kind.SIGNED


def zero(type: Scalar) -> str:
    return "0x0000000000000000" if type.is_float else "0"


def literal(const: Const) -> str:
    """The LLVM text of a constant; floats of both widths are written as the bits of a double."""
    if const.type.is_float:
        return float_literal(float(const.value))
    return str(int(const.value)) if const.type is not Scalar.BOOL else str(const.bits)


def float_literal(number: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
