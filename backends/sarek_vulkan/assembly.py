"""Bodies that the user has written in SPIR-V assembly: `sarek.inline_source` for Vulkan.

A line is `%name = OpName operands` or `OpName operands`, as spirv-as writes them, and `;` begins a
comment. What SPIR-V has at the head of a module (types, constants, decorations, capabilities,
imports) may stand between the instructions: it goes there, and equal types and constants are one
with the module's own.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from sarek_numba.errors import SourceCompilationError
from sarek_numba.ir.nodes import HelperFunction
from sarek_numba.ir.texts import filled
from sarek_numba.ir.types import Scalar
from sarek_vulkan.arrays import ArrayPlace, Buffer, memory_scalar
from sarek_vulkan.code import Code, Value
from sarek_vulkan.opcodes import ENUMERANTS, EXTENDED, OPERATIONS, Operation
from sarek_vulkan.spirv import MalformedModule, Operand, Section, encoded

_TOKEN = re.compile(r'"[^"]*"|[^\s]+')
_ENDS = ("OpReturn", "OpReturnValue", "OpUnreachable", "OpBranch", "OpBranchConditional")
_OF_THE_MODULE = frozenset(
    "OpMemoryModel OpEntryPoint OpExecutionMode OpFunction OpFunctionParameter OpFunctionEnd "
    "OpSpecConstant OpSpecConstantComposite OpSpecConstantOp".split()
)
_FLOATS = {32: "f", 64: "d"}
_SCALARS: dict[tuple[Operand, ...], Scalar] = {
    (8, 0): Scalar.UINT8,
    (16, 0): Scalar.UINT16,
    (32, 0): Scalar.UINT32,
    (64, 0): Scalar.UINT64,
    (32,): Scalar.FLOAT32,
    (64,): Scalar.FLOAT64,
}


def write(
    code: Code,
    helper: HelperFunction,
    text: str,
    given: Sequence[Value | ArrayPlace],
    result: int,
) -> None:
    """Append the body of a function whose parameters are `given`; `result` is its type.

    Raises SourceCompilationError.
    """
    body = _Body(code, text, result)

    def value(place: int) -> str:
        argument = given[place]
        return f"%#{argument.id if isinstance(argument, Value) else body.buffer(argument).base}"

    def moved(place: int, offset: int) -> str:
        number = given[offset]
        assert isinstance(number, Value)
        return f"%#{body.moved(body.buffer(given[place]), number)}"

    def type(place: int | None) -> str:
        if place is None:
            return (
                f"%#{body.number(helper.result) if isinstance(helper.result, Scalar) else result}"
            )
        argument = given[place]
        if isinstance(argument, Value):
            return f"%#{body.number(argument.type)}"
        return f"%#{body.number(memory_scalar(body.buffer(argument).element))}"

    body.write(filled(text, value, moved, type))


class _Body:
    """The text of one function, line by line."""

    def __init__(self, code: Code, text: str, result: int) -> None:
        self.code = code
        self.text = text
        self.result = result
        self.line = 0
        self.ids: dict[str, int] = {}
        self.defined: set[str] = set()
        self.numbers: dict[int, tuple[str, int]] = {}  # types of numbers: OpTypeInt, OpTypeFloat
        self.last: int | None = None

    def error(self, what: str) -> SourceCompilationError:
        return SourceCompilationError(
            "the assembly of a function is wrong", self.text, f"line {self.line}: {what}"
        )

    def buffer(self, place: Value | ArrayPlace) -> Buffer:
        if isinstance(place, Buffer):
            return place
        raise self.error("a text takes numbers and arrays in global memory, none of a block")

    def number(self, scalar: Scalar) -> int:
        """The id of a type of numbers, and what numbers of it look like."""
        found = self.code.types.scalar(scalar)
        if scalar is not Scalar.BOOL:
            self.numbers[found] = ("OpTypeFloat" if scalar.is_float else "OpTypeInt", scalar.bits)
        return found

    def moved(self, buffer: Buffer, offset: Value) -> int:
        """A buffer that begins at another element."""
        code, types = self.code, self.code.types
        address = code.value("OpConvertPtrToU", Scalar.UINT64, buffer.base)
        size = code.constant(Scalar.UINT64, buffer.element.bits // 8)
        begin = code.add(address, code.mul(code.resized(offset, Scalar.INT64), size))
        pointer = types.pointer("PhysicalStorageBuffer", types.buffer(buffer.element))
        return code.do("OpConvertUToPtr", pointer, begin.id)

    def write(self, text: str) -> None:
        for self.line, line in enumerate(text.splitlines(), 1):
            tokens = _TOKEN.findall(line.split(";")[0])
            if tokens:
                self._instruction(tokens)
        if missing := sorted(set(self.ids) - self.defined):
            raise self.error(f"nothing gives {', '.join(missing)}")
        if self.code.open:
            self._finish()

    def _finish(self) -> None:
        if self.result == self.code.types.void:
            self.code.end("OpReturn")
        elif self.last is None:
            raise self.error("no instruction has a result, and the function has one")
        else:
            self.code.end("OpReturnValue", self.last)

    # --- a line ---

    def _instruction(self, tokens: list[str]) -> None:
        target = None
        if tokens[1:2] == ["="]:
            target, tokens = tokens[0], tokens[2:]
            if not target.startswith("%") or not tokens:
                raise self.error(f"{target} = wants a name such as %x and an instruction")
        operation = OPERATIONS.get(tokens[0])
        if operation is None:
            raise self.error(f"{tokens[0]} is no instruction that is known here")
        if operation.name in _OF_THE_MODULE:
            raise self.error(f"{operation.name} is no part of a function's body")
        if ("result" in operation.operands) != (target is not None):
            verb = "has a result, which needs a name" if target is None else "has no result"
            raise self.error(f"{operation.name} {verb}")
        if target in self.defined:
            raise self.error(f"{target} is given twice")
        operands = self._operands(operation, tokens[1:])
        try:
            encoded(operation.name, self._whole(operation, operands, 1))
        except MalformedModule as error:
            raise self.error(str(error)) from None
        if target is not None and target in self.ids and self._is_of_the_head(operation):
            raise self.error(f"{target} is used before it is given")
        found = self._add(operation, operands, target)
        if target is not None and found is not None:
            self.ids[target] = found
            self.defined.add(target)

    def _whole(
        self, operation: Operation, operands: list[Operand], result: int
    ) -> tuple[Operand, ...]:
        if "result" not in operation.operands:
            return tuple(operands)
        place = operation.operands.index("result")
        return (*operands[:place], result, *operands[place:])

    def _operands(self, operation: Operation, tokens: list[str]) -> list[Operand]:
        kinds = [kind for kind in operation.operands if kind != "result"]
        operands: list[Operand] = []
        for place, token in enumerate(tokens):
            if not kinds:
                raise self.error(f"{operation.name} takes no operand {token}")
            whole = kinds[min(place, len(kinds) - 1)]
            if place >= len(kinds) and not whole.endswith("*"):
                raise self.error(f"{operation.name} takes no operand {token}")
            operands += self._operand(operation, whole.rstrip("?*"), token, operands)
        return operands

    def _operand(
        self, operation: Operation, kind: str, token: str, before: list[Operand]
    ) -> list[Operand]:
        if kind in ("type", "id"):
            return [self._id(token)]
        if kind == "string":
            if not (token.startswith('"') and token.endswith('"') and len(token) > 1):
                raise self.error(f'{token} stands where "characters" do')
            return [token[1:-1]]
        if kind != "word":
            if kind in ENUMERANTS and all(part in ENUMERANTS[kind] for part in token.split("|")):
                return [token]
            raise self.error(f"{operation.name} has no {kind} named {token}")
        if operation.name == "OpExtInst" and len(before) == 2:
            if token not in EXTENDED:
                raise self.error(f"{token} is no function of GLSL.std.450 that is known here")
            return [EXTENDED[token]]
        if operation.name == "OpConstant":
            return list(self._literal(before[0], token))
        return [self._integer(token)]

    def _id(self, token: str) -> int:
        if not token.startswith("%") or len(token) < 2:
            raise self.error(f"{token} stands where a name such as %x does")
        if token.startswith("%#"):
            return int(token[2:])
        if token not in self.ids:
            self.ids[token] = self.code.assembler.id()
        return self.ids[token]

    def _integer(self, token: str) -> int:
        try:
            return int(token, 0) & 0xFFFFFFFF
        except ValueError:
            raise self.error(f"{token} stands where an integer does") from None

    def _literal(self, type: Operand, token: str) -> tuple[int, ...]:
        """A number of a type of the text, as words."""
        assert isinstance(type, int)
        name, bits = self.numbers.get(type, ("", 0))
        if not name:
            raise self.error("OpConstant wants a type of integers or of floats")
        try:
            if name == "OpTypeInt":
                number = int(token, 0)
                if not -(1 << (bits - 1)) <= number < 1 << bits:
                    raise self.error(f"{token} does not fit {bits} bits")
                number &= (1 << bits) - 1
            else:
                size = "<" + {32: "I", 64: "Q"}[bits]
                number = struct.unpack(size, struct.pack("<" + _FLOATS[bits], float(token)))[0]
        except (ValueError, OverflowError, struct.error):
            raise self.error(f"{token} is no number of {bits} bits") from None
        return (number & 0xFFFFFFFF, number >> 32) if bits == 64 else (number,)

    # --- where it goes ---

    def _is_of_the_head(self, operation: Operation) -> bool:
        return operation.name.startswith(("OpType", "OpConstant", "OpExtInstImport"))

    def _add(self, operation: Operation, operands: list[Operand], target: str | None) -> int | None:
        assembler, name = self.code.assembler, operation.name
        match name:
            case "OpCapability":
                assembler.capability(str(operands[0]))
            case "OpExtension":
                assembler.extension(str(operands[0]))
            case "OpName":
                pass
            case "OpExtInstImport":
                return assembler.imported(str(operands[0]))
            case "OpDecorate" | "OpMemberDecorate":
                assembler.once(Section.DECORATIONS, name, *operands)
            case "OpTypeInt" | "OpTypeFloat" if tuple(operands) in _SCALARS:
                return self.number(_SCALARS[tuple(operands)])
            case "OpTypeInt" | "OpTypeFloat":
                wanted = "OpTypeInt 8, 16, 32 or 64 and 0, OpTypeFloat 32 or 64"
                raise self.error(f"types of numbers are {wanted}")
            case _ if name.startswith("OpType"):
                return assembler.type(name, *operands)
            case _ if name.startswith("OpConstant"):
                type, *rest = operands
                assert isinstance(type, int)
                return assembler.constant(name, type, *rest)
            case _:
                return self._in_function(operation, operands, target)
        return None

    def _in_function(
        self, operation: Operation, operands: list[Operand], target: str | None
    ) -> int | None:
        code, name = self.code, operation.name
        result = None if target is None else self._id(target)
        if name == "OpLabel":
            assert result is not None
            if code.open and len(code.instructions) > 1:
                raise self.error(f"{target} begins a block and the one before has no end")
            code.branch(result)
            code.start(result)
            return result
        if not code.open:
            raise self.error(f"{name} stands behind the end of a block: an OpLabel goes before it")
        whole = self._whole(operation, operands, result or 0)
        if name == "OpVariable":
            code.variables.append((name, whole))
        elif name in _ENDS:
            code.end(name, *whole)
        else:
            code.effect(name, *whole)
            if result is not None:
                self.last = result
        return result
