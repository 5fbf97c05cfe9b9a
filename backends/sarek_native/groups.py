"""The frame of an emitted kernel: blocks, lane groups, coordinates and storage.

One function runs the blocks [first, last). Within a block the threads run in groups of `width`
lanes: along x of each row (`rows`: a lane's thread_idx.x is a scalar plus the lane number, y and
z are scalars), or along the linear thread index where rows are shorter than a group. `full`
promises that no group has lanes beyond the end. A variant is thus a class of block shapes, never
one shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sarek_native.builder import Code
from sarek_native.masks import Mask
from sarek_native.state import Launch
from sarek_native.values import Place, Value, float_literal, memory_type
from sarek_numba.ir.nodes import Var
from sarek_numba.ir.types import INT64, MemSpace, Scalar

_STACK = 8192  # bytes of a local array of one group that may lie on the stack
_LINE = 64


@dataclass(frozen=True, slots=True)
class Variant:
    rows: bool = True
    full: bool = True

    @classmethod
    def of(cls, block: tuple[int, int, int], width: int, warps: bool = False) -> Variant:
        """The class of a block shape; where groups are `warps`, they follow the linear index."""
        x, y, z = block
        rows = y * z == 1 or x % width == 0 or (x > 2 * width and not warps)
        return cls(rows, (x if rows else x * y * z) % width == 0)

    def groups(self, block: tuple[int, int, int], width: int) -> int:
        """Lane groups of a block."""
        x, y, z = block
        return -(-x // width) * y * z if self.rows else -(-x * y * z // width)


class Frame:
    """Emits the loops around regions, and hands out storage.

    `group` and `pointer` are the number of the current group and its part of the frame. FRAME and
    STATIC stand in the text for sizes that are known at the end.
    """

    FRAME = "$frame"
    STATIC = "$static"

    def __init__(self, code: Code, variant: Variant, split: bool) -> None:
        self.code = code
        self.variant = variant
        self.split = split  # does the kernel have barriers, so that storage outlives a region?
        self.frame_bytes = 0
        self.static_bytes = 0
        self.arrays: dict[int, tuple[Scalar, int]] = {}
        self.pointer = "%frame"
        self.launch = self._launch()
        self._counters = [code.alloca("i64") for _ in range(4)]
        self._stack: list[tuple[str, str, str]] = []

    def _launch(self) -> Launch:
        values = []
        for position in range(8):
            place = f"getelementptr i64, ptr %launch, i64 {position}"
            pointer = self._prologue(place)
            values.append(Value(INT64, self._prologue(f"load i64, ptr {pointer}")))
        self.grid = (values[0], values[1], values[2])
        self.block_dim = (values[3], values[4], values[5])
        self._prologue(f"getelementptr i8, ptr %scratch, i64 {values[7].text}", "%frame")
        self.shared_bytes = values[6]
        nothing = Value(INT64, "0")
        return Launch((nothing, nothing, nothing), self.block_dim, self.grid)

    def _prologue(self, text: str, name: str | None = None) -> str:
        """An instruction of the entry block."""
        name = name or f"%{self.code.fresh('p')}"
        self.code.allocas.append(f"  {name} = {text}")
        return name

    # --- storage ----------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """The offset of `size` bytes in the frame of each group."""
        offset = self.frame_bytes
        self.frame_bytes += -(-size // _LINE) * _LINE
        return offset

    def group_memory(self, size: int) -> Callable[[], str]:
        """Memory of each group: gives where it lies for the current one."""
        offset = self.allocate(size)
        return lambda: self.at(offset)

    def local_array(self, var: Var, size: int) -> Place:
        element = _element(var)
        count = size * self.code.width
        if not self.split and count * element.bits // 8 <= _STACK:
            name = f"%{self.code.fresh('array')}"
            storage = f"[{max(1, count)} x {memory_type(element)}]"
            self.code.allocas.append(f"  {name} = alloca {storage}, align {_LINE}")
            return Place(element, name, MemSpace.LOCAL, interleaved=True)
        offset = self.allocate(count * element.bits // 8)
        if self.split:
            self.arrays[var.id] = (element, offset)
        return self.array_at(element, offset)

    def array_at(self, element: Scalar, offset: int) -> Place:
        return Place(element, self.at(offset), MemSpace.LOCAL, interleaved=True)

    def at(self, offset: int) -> str:
        """A pointer into the frame of the current group."""
        return self.code.define(f"getelementptr i8, ptr {self.pointer}, i64 {offset}")

    def shared_array(self, var: Var, size: int) -> Place:
        element = _element(var)
        pointer = self._prologue(f"getelementptr i8, ptr %scratch, i64 {self.static_bytes}")
        self.static_bytes += -(-size * element.bits // 8 // _LINE) * _LINE
        return Place(element, pointer, MemSpace.SHARED)

    def dynamic_array(self, var: Var, offset: int) -> Place:
        base = self._prologue(f"getelementptr i8, ptr %scratch, i64 {self.STATIC}")
        pointer = self._prologue(f"getelementptr i8, ptr {base}, i64 {offset}")
        return Place(_element(var), pointer, MemSpace.SHARED)

    def finish(self, text: str) -> str:
        """The text with the sizes filled in."""
        static, frame = str(self.static_bytes), str(self.frame_bytes)
        return text.replace(self.STATIC, static).replace(self.FRAME, frame)

    # --- blocks -----------------------------------------------------------------------------------

    def begin_blocks(self) -> None:
        code = self.code
        gx, gy = self.grid[0].text, self.grid[1].text
        self._block = [code.alloca("i64") for _ in range(3)]
        self._current = code.alloca("i64")
        plane = code.define(f"udiv i64 %first, {gx}")
        starts = [
            code.define(f"urem i64 %first, {gx}"),
            code.define(f"urem i64 {plane}, {gy}"),
            code.define(f"udiv i64 {plane}, {gy}"),
        ]
        for slot, start in zip(self._block, starts, strict=True):
            code.effect(f"store i64 {start}, ptr {slot}")
        code.effect(f"store i64 %first, ptr {self._current}")
        code.label("blocks")
        self._number = code.define(f"load i64, ptr {self._current}")
        code.branch(code.define(f"icmp slt i64 {self._number}, %last"), "block", "finished")
        code.label("block")
        x, y, z = (Value(INT64, code.define(f"load i64, ptr {slot}")) for slot in self._block)
        self.launch.block = (x, y, z)

    def end_blocks(self) -> None:
        """The next block: x fastest."""
        code = self.code
        code.label("next.block")
        following = code.define(f"add nsw i64 {self._number}, 1")
        code.effect(f"store i64 {following}, ptr {self._current}")
        carry = "1"
        for axis, slot in enumerate(self._block):
            old = self.launch.block[axis].text
            new = code.define(f"add nsw i64 {old}, {carry}")
            wraps = code.define(f"icmp eq i64 {new}, {self.grid[axis].text}")
            kept = code.define(f"select i1 {wraps}, i64 0, i64 {new}")
            code.effect(f"store i64 {kept}, ptr {slot}")
            carry = code.define(f"zext i1 {wraps} to i64")
        code.jump("blocks")
        code.label("finished")
        code.effect("ret void")

    # --- lane groups ------------------------------------------------------------------------------

    def begin_groups(self) -> Mask:
        """Loop over the groups of the block; gives the lanes that are threads of it."""
        code = self.code
        group_slot = self._counters[3]
        code.effect(f"store i64 0, ptr {group_slot}")
        mask = self._begin_rows() if self.variant.rows else self._begin_linear()
        group = code.define(f"load i64, ptr {group_slot}")
        following = code.define(f"add nsw i64 {group}, 1")
        code.effect(f"store i64 {following}, ptr {group_slot}")
        if self.split:
            offset = code.define(f"mul nsw i64 {group}, {self.FRAME}")
            self.pointer = code.define(f"getelementptr i8, ptr %frame, i64 {offset}")
        return mask

    def end_groups(self) -> None:
        for head, slot, step in reversed(self._stack):
            code = self.code
            number = code.define(f"load i64, ptr {slot}")
            following = code.define(f"add nsw i64 {number}, {step}")
            code.effect(f"store i64 {following}, ptr {slot}")
            code.jump(head)
            code.label(f"{head}.end")
        self._stack.clear()
        self.launch.thread = None
        self.pointer = "%frame"

    def _loop(self, slot: str, stop: str, step: int) -> str:
        """Begin a counted loop; gives its counter."""
        code = self.code
        head = code.fresh("group")
        code.effect(f"store i64 0, ptr {slot}")
        code.label(head)
        number = code.define(f"load i64, ptr {slot}")
        more = code.define(f"icmp slt i64 {number}, {stop}")
        code.branch(more, f"{head}.in", f"{head}.end")
        code.label(f"{head}.in")
        self._stack.append((head, slot, str(step)))
        return number

    def _begin_rows(self) -> Mask:
        x_dim, y_dim, z_dim = (value.text for value in self.block_dim)
        z = self._loop(self._counters[2], z_dim, 1)
        y = self._loop(self._counters[1], y_dim, 1)
        x = self._loop(self._counters[0], x_dim, self.code.width)
        self.launch.thread = (Value(INT64, x, stride=1), Value(INT64, y), Value(INT64, z))
        return self._tail(x, x_dim)

    def _begin_linear(self) -> Mask:
        code = self.code
        x_dim, y_dim, z_dim = (value.text for value in self.block_dim)
        plane = code.define(f"mul nsw i64 {x_dim}, {y_dim}")
        threads = code.define(f"mul nsw i64 {plane}, {z_dim}")
        first = self._loop(self._counters[0], threads, code.width)
        z, rest = self._split(code.spread(Value(INT64, first, stride=1)), plane)
        y, x = self._split(rest, x_dim)
        self.launch.thread = (self._lanes(x), self._lanes(y), self._lanes(z))
        return self._tail(first, threads)

    def _lanes(self, text: str) -> Value:
        return Value(INT64, text, lanes=True)

    def _split(self, linear: str, size: str) -> tuple[str, str]:
        """Quotient and rest of numbers below 2^16: float64 (n + 1/2) / size truncates exactly."""
        code = self.code
        i64, double = code.vector("i64"), code.vector("double")
        number = code.define(f"sitofp {i64} {linear} to {double}")
        half = f"splat (double {float_literal(0.5)})"
        number = code.define(f"fadd {double} {number}, {half}")
        divisor = code.splat("double", code.define(f"sitofp i64 {size} to double"))
        ratio = code.define(f"fdiv {double} {number}, {divisor}")
        quotient = code.define(f"fptosi {double} {ratio} to {i64}")
        whole = code.define(f"mul nsw {i64} {quotient}, {code.splat('i64', size)}")
        return quotient, code.define(f"sub nsw {i64} {linear}, {whole}")

    def _tail(self, first: str, stop: str) -> Mask:
        if self.variant.full:
            return None
        code = self.code
        i32 = code.vector("i32")
        left = code.define(f"sub nsw i64 {stop}, {first}")
        narrow = code.define(f"trunc i64 {left} to i32")
        return code.define(f"icmp slt {i32} {code.iota('i32')}, {code.splat('i32', narrow)}")


def _element(var: Var) -> Scalar:
    element = getattr(var.type, "element", None)
    assert isinstance(element, Scalar)
    return element
