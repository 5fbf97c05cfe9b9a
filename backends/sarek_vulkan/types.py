"""Types and constants of a module, each with the capability that it needs.

Integers have no sign in their types: the instructions that tell signs apart do so by themselves.
A bool is OpTypeBool as a value and 8 bits in memory; a half is its 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping

from sarek_numba.ir.nodes import Const
from sarek_numba.ir.types import Scalar
from sarek_vulkan.spirv import Assembler, Section

_INTEGER_CAPABILITY: Mapping[int, str] = {8: "Int8", 16: "Int16", 64: "Int64"}
_FLOATS = (Scalar.FLOAT32, Scalar.FLOAT64)

UNSIGNED: Mapping[int, Scalar] = {
    8: Scalar.UINT8,
    16: Scalar.UINT16,
    32: Scalar.UINT32,
    64: Scalar.UINT64,
}


class Types:
    """Ids of the types and constants of one module."""

    def __init__(self, assembler: Assembler) -> None:
        self.assembler = assembler
        self.void = assembler.type("OpTypeVoid")
        self.float_widths: set[int] = set()
        self.zeros: dict[int, int] = {}  # sign bits of the constants that are float zeros, by id
        self.floats: dict[int, float] = {}  # constants that are floats, by id

    def scalar(self, type: Scalar) -> int:
        """The type of a value."""
        if type is Scalar.BOOL:
            return self.assembler.type("OpTypeBool")
        if type in _FLOATS:
            if type is Scalar.FLOAT64:
                self.assembler.capability("Float64")
            self.float_widths.add(type.bits)
            return self.assembler.type("OpTypeFloat", type.bits)
        return self.integer(type.bits)

    def integer(self, bits: int) -> int:
        """The type of integers, and of what is stored as one."""
        if bits in _INTEGER_CAPABILITY:
            self.assembler.capability(_INTEGER_CAPABILITY[bits])
        return self.assembler.type("OpTypeInt", bits, 0)

    def memory(self, type: Scalar) -> int:
        """The type of an element of global memory."""
        return self.integer(8) if type is Scalar.BOOL else self.scalar(type)

    def pointer(self, storage: str, type: int) -> int:
        return self.assembler.type("OpTypePointer", storage, type)

    def vector3(self) -> int:
        return self.assembler.type("OpTypeVector", self.integer(32), 3)

    def function(self, result: int, parameters: tuple[int, ...]) -> int:
        return self.assembler.type("OpTypeFunction", result, *parameters)

    def array(self, element: int, length: int) -> int:
        """An array of so many elements, without a layout."""
        return self.assembler.type("OpTypeArray", element, self.number(Scalar.UINT32, length))

    def buffer(self, element: Scalar) -> int:
        """The structure that a buffer's address points to: one array without an end."""
        stride = element.bits // 8
        if stride < 4:
            self.assembler.capability(f"StorageBuffer{element.bits}BitAccess")
        memory = self.memory(element)
        array = self.assembler.type("OpTypeRuntimeArray", memory, key="buffer")
        structure = self.assembler.type("OpTypeStruct", array, key="buffer")
        self.assembler.once(Section.DECORATIONS, "OpDecorate", array, "ArrayStride", stride)
        self._block(structure, (0,))
        return structure

    def block(self, members: tuple[int, ...], offsets: tuple[int, ...]) -> int:
        """A structure of arguments, at offsets in bytes."""
        structure = self.assembler.type("OpTypeStruct", *members, key=("block", offsets))
        self._block(structure, offsets)
        return structure

    def _block(self, structure: int, offsets: tuple[int, ...]) -> None:
        self.assembler.once(Section.DECORATIONS, "OpDecorate", structure, "Block")
        for member, offset in enumerate(offsets):
            self.assembler.once(
                Section.DECORATIONS, "OpMemberDecorate", structure, member, "Offset", offset
            )

    # --- constants ---

    def const(self, value: Const) -> int:
        """The id of a constant of the IR."""
        if value.type is Scalar.BOOL:
            name = "OpConstantTrue" if value.bits else "OpConstantFalse"
            return self.assembler.constant(name, self.scalar(Scalar.BOOL))
        found = self._bits(self.scalar(value.type), value.type.bits, value.bits)
        if value.type.is_float and value.bits & ((1 << (value.type.bits - 1)) - 1) == 0:
            self.zeros[found] = value.bits >> (value.type.bits - 1)
        if value.type in _FLOATS:
            self.floats[found] = float(value.value)
        return found

    def number(self, type: Scalar, number: int) -> int:
        """The id of an integer, modulo 2^n."""
        return self._bits(self.scalar(type), type.bits, number & ((1 << type.bits) - 1))

    def bits(self, width: int, bits: int) -> int:
        """The id of some bits as an integer."""
        return self._bits(self.integer(width), width, bits)

    def zero(self, type: int) -> int:
        return self.assembler.constant("OpConstantNull", type)

    def _bits(self, type: int, width: int, bits: int) -> int:
        words = (bits & 0xFFFFFFFF, bits >> 32) if width == 64 else (bits,)
        return self.assembler.constant("OpConstant", type, *words)
