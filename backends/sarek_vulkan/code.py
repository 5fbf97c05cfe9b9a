"""One function in the making: its blocks, and arithmetic on values.

Every method that gives a `Value` appends instructions to the present block. What has an edge in
SPIR-V (a shift by too much, a division by zero) is left as it is here: `operators` has the guards.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import NamedTuple

from sarek_numba.ir.nodes import constant
from sarek_numba.ir.types import BOOL, FLOAT32, Kind, Scalar
from sarek_vulkan import subnormals
from sarek_vulkan.opcodes import EXTENDED, GLSL
from sarek_vulkan.spirv import Instruction, Operand, Section
from sarek_vulkan.types import UNSIGNED, Types
from sarek_vulkan.zeros import with_zero


class Value(NamedTuple):
    """A scalar value: the id of its result and its type in the IR."""

    id: int
    type: Scalar


_ORDER = {"lt": "LessThan", "le": "LessThanEqual", "gt": "GreaterThan", "ge": "GreaterThanEqual"}
_FLOAT = {"add": "OpFAdd", "sub": "OpFSub", "mul": "OpFMul", "div": "OpFDiv"}
_SHORT = (Scalar.INT8, Scalar.INT16)  # of which a driver negates wrongly; see `hidden`
_INTEGER = {"add": "OpIAdd", "sub": "OpISub", "mul": "OpIMul"}
_BITWISE = {"and": "OpBitwiseAnd", "or": "OpBitwiseOr", "xor": "OpBitwiseXor"}
_LOGICAL = {"and": "OpLogicalAnd", "or": "OpLogicalOr", "xor": "OpLogicalNotEqual"}


def signed(type: Scalar) -> bool:
    return type.kind is Kind.SIGNED


class Code:
    """The instructions of one function, from its first label on."""

    def __init__(self, types: Types, contracts: bool) -> None:
        self.types = types
        self.assembler = types.assembler
        self.contracts = contracts
        self.instructions: list[Instruction] = []
        self.variables: list[Instruction] = []
        self.block = 0
        self.open = False
        self.hide: Callable[[Value], Value] | None = None  # see `hidden`
        self.flushed: Set[Scalar] = frozenset()  # see `subnormals`

    # --- instructions and blocks ---

    def do(self, name: str, type: int, *operands: Operand) -> int:
        """An instruction with a result."""
        result = self.assembler.id()
        self.instructions.append((name, (type, result, *operands)))
        return result

    def effect(self, name: str, *operands: Operand) -> None:
        """An instruction without a result."""
        self.instructions.append((name, operands))

    def label(self) -> int:
        return self.assembler.id()

    def start(self, label: int) -> None:
        """Begin a block."""
        self.effect("OpLabel", label)
        self.block = label
        self.open = True

    def end(self, name: str, *operands: Operand) -> None:
        """End the present block."""
        assert self.open
        self.effect(name, *operands)
        self.open = False

    def branch(self, label: int) -> None:
        """End the present block by a branch, unless it has ended."""
        if self.open:
            self.end("OpBranch", label)

    def variable(self, type: int, initial: int | None = None) -> int:
        """A variable of the function."""
        pointer = self.types.pointer("Function", type)
        result = self.assembler.id()
        given = () if initial is None else (initial,)
        self.variables.append(("OpVariable", (pointer, result, "Function", *given)))
        return result

    def name(self, id: int, name: str) -> None:
        """Have a name shown for an id."""
        self.assembler.once(Section.NAMES, "OpName", id, f"{name}_{id}")

    def choose(
        self, condition: Value, then: Callable[[], Value], orelse: Callable[[], Value]
    ) -> Value:
        """The value of one of two expressions, of which only that one is evaluated."""
        first, second, merge = self.label(), self.label(), self.label()
        self.effect("OpSelectionMerge", merge, "None")
        self.end("OpBranchConditional", condition.id, first, second)
        arms: list[int] = []
        type = condition.type
        for label, arm in ((first, then), (second, orelse)):
            self.start(label)
            value = arm()
            type = value.type
            arms += [value.id, self.block]
            self.branch(merge)
        self.start(merge)
        return Value(self.do("OpPhi", self.types.scalar(type), *arms), type)

    # --- values ---

    def value(self, name: str, type: Scalar, *operands: Operand) -> Value:
        return Value(self.do(name, self.types.scalar(type), *operands), type)

    def extended(self, name: str, type: Scalar, *values: Value) -> Value:
        """A function of GLSL.std.450."""
        ids = (value.id for value in values)
        return self.value("OpExtInst", type, self.assembler.imported(GLSL), EXTENDED[name], *ids)

    def constant(self, type: Scalar, number: float) -> Value:
        """A number; an integer modulo 2^n."""
        if type.is_float:
            return Value(self.types.const(constant(type, number)), type)
        if type is BOOL:
            return Value(self.types.const(constant(type, bool(number))), type)
        return Value(self.types.number(type, int(number)), type)

    def arithmetic(self, name: str, a: Value, b: Value) -> Value:
        """`add`, `sub`, `mul`, and `div` of floats."""
        if a.type in _SHORT and name == "sub" and self.hide is not None:
            wide = (self.resized(each, Scalar.INT32) for each in (a, b))
            return self.narrowed(self.arithmetic(name, *wide), a.type)
        if not a.type.is_float:
            return self.value(_INTEGER[name], a.type, a.id, b.id)
        special = with_zero(self, name, a, b)
        if special is not None:
            return special
        return self.exact(self.value(_FLOAT[name], a.type, a.id, b.id))

    def exact(self, value: Value) -> Value:
        """The result of a float operation, which must not become part of another one."""
        if not self.contracts:
            self.assembler.add(Section.DECORATIONS, "OpDecorate", value.id, "NoContraction")
        return value

    def add(self, a: Value, b: Value) -> Value:
        return self.arithmetic("add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.arithmetic("sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.arithmetic("mul", a, b)

    def bitwise(self, name: str, a: Value, b: Value) -> Value:
        """`and`, `or` and `xor` of integers and of bools."""
        table = _LOGICAL if a.type is BOOL else _BITWISE
        return self.value(table[name], a.type, a.id, b.id)

    def both(self, a: Value, b: Value) -> Value:
        return self.bitwise("and", a, b)

    def either(self, a: Value, b: Value) -> Value:
        return self.bitwise("or", a, b)

    def shifted(self, name: str, a: Value, count: Value) -> Value:
        """`left` or `right` by a count within the width; to the right by the type's sign."""
        right = "OpShiftRightArithmetic" if signed(a.type) else "OpShiftRightLogical"
        return self.value("OpShiftLeftLogical" if name == "left" else right, a.type, a.id, count.id)

    def compare(self, order: str, a: Value, b: Value) -> Value:
        """`eq`, `ne`, `lt`, `le`, `gt`, `ge`; with a NaN only `ne` is true."""
        if a.type is BOOL and order not in ("eq", "ne"):
            a, b = self.counted(a), self.counted(b)
        type = a.type
        if order in ("eq", "ne"):
            if type is BOOL:
                name = "OpLogicalEqual" if order == "eq" else "OpLogicalNotEqual"
            elif type.is_float:
                name = "OpFOrdEqual" if order == "eq" else "OpFUnordNotEqual"
            else:
                name = "OpIEqual" if order == "eq" else "OpINotEqual"
        else:
            if type is Scalar.INT64:
                a, b = self._biased(a), self._biased(b)
                type = a.type
            kind = "FOrd" if type.is_float else "S" if signed(type) else "U"
            name = f"Op{kind}{_ORDER[order]}"
        if type in self.flushed:
            return subnormals.compare(self, name, a, b)
        return self.plain_compare(name, a, b)

    def plain_compare(self, name: str, a: Value, b: Value) -> Value:
        """The device's own comparison, by its instruction."""
        return self.value(name, BOOL, a.id, b.id)

    def _biased(self, a: Value) -> Value:
        """An int64 as the uint64 of the same order.

        Mesa 22.3 compares a 32-bit integer that was sign-extended with a constant within its range
        wrongly: `int64(x) < 4` is false for every x, `int64(x) >= 4` true. Unsigned comparisons are
        right there.
        """
        bits = self.bits_of(a)
        return self.bitwise("xor", bits, self.constant(Scalar.UINT64, 1 << 63))

    def counted(self, a: Value) -> Value:
        """A bool as 0 or 1."""
        one, zero = self.constant(Scalar.UINT32, 1), self.constant(Scalar.UINT32, 0)
        return self.select(a, one, zero)

    def is_zero(self, a: Value) -> Value:
        return self.compare("eq", a, self.constant(a.type, 0))

    def negative(self, a: Value) -> Value:
        return self.compare("lt", a, self.constant(a.type, 0))

    def complement(self, a: Value) -> Value:
        return self.value("OpLogicalNot" if a.type is BOOL else "OpNot", a.type, a.id)

    def negate(self, a: Value) -> Value:
        if a.type in _SHORT and self.hide is not None:
            return self.narrowed(self.negate(self.resized(a, Scalar.INT32)), a.type)
        return self.value("OpFNegate" if a.type.is_float else "OpSNegate", a.type, a.id)

    def select(self, condition: Value, then: Value, orelse: Value) -> Value:
        return self.value("OpSelect", then.type, condition.id, then.id, orelse.id)

    def resized(self, a: Value, to: Scalar) -> Value:
        """An integer as another type of integers: extended by the sign of its own, or cut."""
        if a.type.bits == to.bits:
            return Value(a.id, to)
        return self.value("OpSConvert" if signed(a.type) else "OpUConvert", to, a.id)

    def converted(self, a: Value, to: Scalar) -> Value:
        """A float32 as a float64 or the other way round."""
        if FLOAT32 in self.flushed:
            return subnormals.converted(self, a, to)
        return self.plain_convert(a, to)

    def plain_convert(self, a: Value, to: Scalar) -> Value:
        """The device's own conversion between floats."""
        return self.value("OpFConvert", to, a.id)

    def narrowed(self, a: Value, to: Scalar) -> Value:
        """`resized`, the result of which no compiler looks into where `hide` says so."""
        if self.hide is not None and to.bits < a.type.bits:
            if to.bits == 32:
                return self.hide(self.resized(a, to))
            if to in _SHORT:
                return self.resized(self.hide(self.resized(a, Scalar.INT32)), to)
        return self.resized(a, to)

    def reinterpreted(self, a: Value, to: Scalar) -> Value:
        """The same bits as another type of the same width."""
        if self.types.scalar(a.type) == self.types.scalar(to):
            return Value(a.id, to)
        return self.value("OpBitcast", to, a.id)

    def bits_of(self, a: Value) -> Value:
        """A number's bits as an unsigned integer."""
        return self.reinterpreted(a, UNSIGNED[a.type.bits])
