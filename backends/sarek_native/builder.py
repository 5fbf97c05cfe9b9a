"""Text of one LLVM function under construction: instructions, blocks, slots, support functions.

Text, because it is what LLVM reads fastest and what a person reads in `source()`. Every slot is
an alloca of the entry block, so SROA turns it into registers. Intrinsics need neither a
declaration nor the suffix of their types: LLVM's parser adds both.
"""

from __future__ import annotations

from collections.abc import Callable

from sarek_native.values import REGISTER, Slot, Value, memory_type
from sarek_numba.ir.types import Scalar


class Code:
    """A function body of `width` lanes. `closed` is True after a jump, until the next label.

    `float_flags` stand behind the names of float operations: what LLVM may do with them.
    """

    def __init__(self, width: int, float_flags: str = "") -> None:
        self.width = width
        self.float_flags = float_flags
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.support: dict[str, str] = {}
        self.declarations: dict[str, str] = {}
        self.closed = False
        self.block = "entry"
        self._names = 0

    def size(self) -> int:
        """The lines of the function and of the support functions."""
        return len(self.lines) + sum(text.count("\n") for text in self.support.values())

    # --- instructions -----------------------------------------------------------------------------

    def fresh(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def define(self, text: str) -> str:
        """An instruction with a result; gives the name of the result."""
        self._names += 1
        name = f"%v{self._names}"
        self.lines.append(f"  {name} = {text}")
        return name

    def effect(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Begin the block `name`; the block before falls through to it unless it is closed."""
        if not self.closed:
            self.effect(f"br label %{name}")
        self.lines.append(f"{name}:")
        self.block = name
        self.closed = False

    def jump(self, label: str) -> None:
        self.effect(f"br label %{label}")
        self.closed = True

    def branch(self, condition: str, then: str, orelse: str) -> None:
        self.effect(f"br i1 {condition}, label %{then}, label %{orelse}")
        self.closed = True

    def alloca(self, type: str) -> str:
        self._names += 1
        name = f"%m{self._names}"
        self.allocas.append(f"  {name} = alloca {type}")
        return name

    # --- types and vectors ------------------------------------------------------------------------

    def vector(self, element: str) -> str:
        return f"<{self.width} x {element}>"

    def type_of(self, type: Scalar, lanes: bool) -> str:
        return self.vector(REGISTER[type]) if lanes else REGISTER[type]

    def iota(self, element: str, stride: int = 1) -> str:
        """The constant vector of lane numbers times `stride`, wrapped to the element's width."""
        bits = int(element[1:])
        wrap = (1 << bits) - 1
        items = ((lane * stride) & wrap for lane in range(self.width))
        return "<" + ", ".join(f"{element} {_signed(item, bits)}" for item in items) + ">"

    def splat(self, element: str, text: str) -> str:
        """A scalar in every lane."""
        if not text.startswith("%"):
            return f"splat ({element} {text})"
        vector = self.vector(element)
        first = self.define(f"insertelement {vector} poison, {element} {text}, i64 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return self.define(f"shufflevector {vector} {first}, {vector} poison, {zeros}")

    def spread(self, value: Value) -> str:
        """The text of a value as a vector."""
        if value.lanes:
            return value.text
        element = REGISTER[value.type]
        base = self.splat(element, value.text)
        if not value.stride:
            return base
        return self.define(f"add {self.vector(element)} {base}, {self.iota(element, value.stride)}")

    def as_lanes(self, value: Value) -> Value:
        return value if value.lanes else Value(value.type, self.spread(value), lanes=True)

    def select(self, condition: Value, then: Value, orelse: Value) -> Value:
        """`then` where `condition`, else `orelse`; a scalar where all three are uniform."""
        lanes = not (condition.uniform and then.uniform and orelse.uniform)
        type = self.type_of(then.type, lanes)
        if condition.uniform:
            chosen = f"i1 {condition.text}"
        else:
            chosen = f"{self.vector('i1')} {self.spread(condition)}"
        left, right = (self.spread(v) if lanes else v.text for v in (then, orelse))
        return Value(
            then.type, self.define(f"select {chosen}, {type} {left}, {type} {right}"), lanes
        )

    # --- slots ------------------------------------------------------------------------------------

    def slot(self, type: Scalar, lanes: bool) -> Slot:
        """A new mutable variable."""
        return Slot(type, self.alloca(self.type_of(type, lanes)), lanes)

    def read(self, slot: Slot) -> Value:
        text = self.define(f"load {self.type_of(slot.type, slot.lanes)}, ptr {slot.pointer}")
        return Value(slot.type, text, slot.lanes)

    def write(self, slot: Slot, value: Value) -> None:
        text = self.spread(value) if slot.lanes else value.text
        self.effect(f"store {self.type_of(slot.type, slot.lanes)} {text}, ptr {slot.pointer}")

    # --- support functions ------------------------------------------------------------------------

    def require(self, name: str, define: Callable[[], str]) -> str:
        """The name of a support function, defined in the module at its first use."""
        if name not in self.support:
            self.support[name] = define()
        return f"@{name}"

    def declare(self, name: str, declaration: str) -> str:
        """The name of a function of the C library."""
        self.declarations[name] = declaration
        return f"@{name}"

    # --- bool between registers and memory --------------------------------------------------------

    def from_memory(self, type: Scalar, text: str, lanes: bool) -> Value:
        if type is not Scalar.BOOL:
            return Value(type, text, lanes)
        byte = self.vector("i8") if lanes else "i8"
        zeros = "zeroinitializer" if lanes else "0"
        return Value(type, self.define(f"icmp ne {byte} {text}, {zeros}"), lanes)

    def to_memory(self, value: Value, lanes: bool) -> str:
        """The text of a value with the type it has in memory; a vector if `lanes`."""
        text = self.spread(value) if lanes else value.text
        if value.type is not Scalar.BOOL:
            return text
        register, byte = (self.vector(t) if lanes else t for t in ("i1", "i8"))
        return self.define(f"zext {register} {text} to {byte}")

    def memory(self, type: Scalar, lanes: bool) -> str:
        return self.vector(memory_type(type)) if lanes else memory_type(type)


def _signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) else number
