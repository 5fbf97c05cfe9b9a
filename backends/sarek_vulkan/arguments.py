"""The block of a kernel's arguments: push constants, or a buffer that these point to."""

from __future__ import annotations

from collections.abc import Sequence

from sarek_numba.ir.nodes import ParamDecl
from sarek_numba.ir.types import BOOL, Array, Scalar, Vec
from sarek_vulkan.arrays import Buffer
from sarek_vulkan.code import Code, Value
from sarek_vulkan.layout import arguments_of
from sarek_vulkan.types import Types

_PHYSICAL = "PhysicalStorageBuffer"


class Block:
    """Where the parameters of a kernel lie, and how its entry point reads them.

    A `watched` kernel has an address behind them, as a uint64.
    """

    def __init__(
        self, types: Types, params: Sequence[ParamDecl], push_limit: int, *, watched: bool = False
    ) -> None:
        self.types = types
        self.elements = [_element(param) for param in params]
        if watched:
            self.elements.append((False, Scalar.UINT64))
        self.arguments, self.size = arguments_of(
            [None if is_buffer else type for is_buffer, type in self.elements]
        )
        self.spilled = self.size > push_limit
        self.variables: tuple[int, ...] = ()

    def load(self, code: Code) -> list[Value | Buffer]:
        """The arguments in their order, read at the head of the entry point."""
        if not self.arguments:
            return []
        members = tuple(self._member(*element) for element in self.elements)
        offsets = tuple(argument.offset for argument in self.arguments)
        structure = self.types.block(members, offsets)
        storage, block = "PushConstant", 0
        if self.spilled:
            pointer = self.types.pointer(_PHYSICAL, structure)
            holder = self._push(self.types.block((pointer,), (0,)))
            place = code.do(
                "OpAccessChain",
                self.types.pointer("PushConstant", pointer),
                holder,
                self.types.number(Scalar.UINT32, 0),
            )
            storage, block = _PHYSICAL, code.do("OpLoad", pointer, place)
        else:
            block = self._push(structure)
        return [
            self._argument(code, storage, block, number, member)
            for number, member in enumerate(members)
        ]

    def _push(self, structure: int) -> int:
        pointer = self.types.pointer("PushConstant", structure)
        variable = self.types.assembler.unique("OpVariable", pointer, "PushConstant")
        self.variables = (variable,)
        return variable

    def _member(self, is_buffer: bool, type: Scalar) -> int:
        """The type as which an argument travels."""
        if is_buffer:
            return self.types.pointer(_PHYSICAL, self.types.buffer(type))
        return self.types.scalar(Scalar.UINT32 if type.bits < 32 else type)

    def _argument(
        self, code: Code, storage: str, block: int, number: int, member: int
    ) -> Value | Buffer:
        is_buffer, type = self.elements[number]
        place = code.do(
            "OpAccessChain",
            self.types.pointer(storage, member),
            block,
            self.types.number(Scalar.UINT32, number),
        )
        bytes = 8 if is_buffer or type.bits == 64 else 4
        aligned: tuple[int | str, ...] = ("Aligned", bytes) if storage == _PHYSICAL else ()
        loaded = code.do("OpLoad", member, place, *aligned)
        if is_buffer:
            return Buffer(loaded, type)
        if type.bits >= 32:
            return Value(loaded, type)
        word = Value(loaded, Scalar.UINT32)
        if type is BOOL:
            return code.compare("ne", word, code.constant(Scalar.UINT32, 0))
        return code.resized(word, type)


def _element(param: ParamDecl) -> tuple[bool, Scalar]:
    """Whether a parameter is a buffer, and the type of its elements or of the scalar."""
    match param.var.type:
        case Vec(element=Scalar() as element) | Array(element=Scalar() as element):
            return True, element
        case Scalar() as type:
            return False, type
        case other:
            raise AssertionError(f"a legalised kernel takes no {other}")
