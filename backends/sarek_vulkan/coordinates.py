"""A thread's place in the launch, from SPIR-V's built-in variables."""

from __future__ import annotations

from collections.abc import Mapping

from sarek_numba.ir.nodes import Coordinate
from sarek_numba.ir.types import Scalar
from sarek_vulkan.code import Code, Value
from sarek_vulkan.layout import BLOCK_CONSTANTS
from sarek_vulkan.spirv import Section
from sarek_vulkan.types import Types

BUILT_IN: Mapping[Coordinate, str] = {
    Coordinate.THREAD_IDX: "LocalInvocationId",
    Coordinate.BLOCK_IDX: "WorkgroupId",
    Coordinate.GRID_DIM: "NumWorkgroups",
    Coordinate.GLOBAL_IDX: "GlobalInvocationId",
}


class Coordinates:
    """The coordinates of one module. `wide`: a product of block and grid may leave 32 bits."""

    def __init__(self, types: Types, wide: bool) -> None:
        self.types = types
        self.wide = wide
        self.variables: dict[str, int] = {}
        self._block = self._block_size()

    def _block_size(self) -> tuple[int, ...]:
        """The block's dimensions, which are specialisation constants."""
        types, assembler = self.types, self.types.assembler
        word = types.integer(32)
        sizes = []
        for constant in BLOCK_CONSTANTS:
            sizes.append(assembler.unique("OpSpecConstant", word, 1))
            assembler.add(Section.DECORATIONS, "OpDecorate", sizes[-1], "SpecId", constant)
        whole = assembler.unique("OpSpecConstantComposite", types.vector3(), *sizes)
        assembler.add(Section.DECORATIONS, "OpDecorate", whole, "BuiltIn", "WorkgroupSize")
        return tuple(sizes)

    def value(self, code: Code, coordinate: Coordinate, axis: int, type: Scalar) -> Value:
        """A coordinate along an axis."""
        if coordinate is Coordinate.GRID_SIZE:
            block = self.value(code, Coordinate.BLOCK_DIM, axis, type)
            return code.mul(block, self.value(code, Coordinate.GRID_DIM, axis, type))
        if coordinate is Coordinate.GLOBAL_IDX and self.wide and type.bits == 64:
            block = self.value(code, Coordinate.BLOCK_DIM, axis, type)
            first = code.mul(block, self.value(code, Coordinate.BLOCK_IDX, axis, type))
            return code.add(first, self.value(code, Coordinate.THREAD_IDX, axis, type))
        return code.resized(self.word(code, coordinate, axis), type)

    def word(self, code: Code, coordinate: Coordinate, axis: int) -> Value:
        """A coordinate as SPIR-V has it, a uint32."""
        if coordinate is Coordinate.BLOCK_DIM:
            return Value(self._block[axis], Scalar.UINT32)
        vector = self.types.vector3()
        loaded = code.do("OpLoad", vector, self.built_in(BUILT_IN[coordinate], vector))
        return code.value("OpCompositeExtract", Scalar.UINT32, loaded, axis)

    def built_in(self, name: str, type: int) -> int:
        """The variable of a built-in input."""
        if name not in self.variables:
            assembler = self.types.assembler
            pointer = self.types.pointer("Input", type)
            variable = assembler.unique("OpVariable", pointer, "Input")
            assembler.add(Section.DECORATIONS, "OpDecorate", variable, "BuiltIn", name)
            self.variables[name] = variable
        return self.variables[name]
