"""What a schedule is made of: calls in order, nodes that name buffers, symbolic numbers.

All of it is data, and names no memory: `buffers` says which memory a node stands for, `run` does
the calls. Sizes and offsets count elements unless a `Layout` is given.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from sarek_numba.errors import InvalidArgument
from sarek_numba.ir.nodes import Kernel

if TYPE_CHECKING:
    from sarek_numba.realize.programs import Program

# --- symbolic numbers -----------------------------------------------------------------------------

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "/": operator.truediv,
    "%": operator.mod,
    "**": operator.pow,
    "min": min,
    "max": max,
}


class Symbolic:
    """A number that is known when a schedule runs; arithmetic gives another."""

    __slots__ = ()

    def __add__(self, other: Number) -> Operation:
        return Operation("+", self, other)

    def __radd__(self, other: Number) -> Operation:
        return Operation("+", other, self)

    def __sub__(self, other: Number) -> Operation:
        return Operation("-", self, other)

    def __rsub__(self, other: Number) -> Operation:
        return Operation("-", other, self)

    def __mul__(self, other: Number) -> Operation:
        return Operation("*", self, other)

    def __rmul__(self, other: Number) -> Operation:
        return Operation("*", other, self)

    def __floordiv__(self, other: Number) -> Operation:
        return Operation("//", self, other)

    def __rfloordiv__(self, other: Number) -> Operation:
        return Operation("//", other, self)

    def __truediv__(self, other: Number) -> Operation:
        return Operation("/", self, other)

    def __rtruediv__(self, other: Number) -> Operation:
        return Operation("/", other, self)

    def __mod__(self, other: Number) -> Operation:
        return Operation("%", self, other)

    def __neg__(self) -> Operation:
        return Operation("-", 0, self)


@dataclass(frozen=True, slots=True)
class Variable(Symbolic):
    """A symbolic value: a number from `min` to `max`, both included."""

    name: str
    min: int | float
    max: int | float

    def __post_init__(self) -> None:
        if not self.min <= self.max:
            raise InvalidArgument(
                f"variable '{self.name}' goes from {self.min} to {self.max}, which holds no number"
            )

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Operation(Symbolic):
    """An operation of `OPERATIONS` on two numbers, symbolic or not."""

    operation: str
    left: Number
    right: Number

    def __str__(self) -> str:
        return f"({self.left} {self.operation} {self.right})"


Number: TypeAlias = "int | float | complex | np.generic | Symbolic"

DEVICE_NUMBER = Variable("_device_num", 0, 2**31 - 1)
"""Bound to the position of the device where a call runs once for each of several."""


def ceiling(value: Number, divisor: Number) -> Any:
    """The quotient of two integers, rounded up; symbolic if one of them is."""
    return 0 - ((0 - value) // divisor)  # type: ignore[operator]  # numbers that divide


def substitute(value: Any, var_vals: Mapping[str, Any]) -> Any:
    """The number that a symbolic one is; anything else as it is.

    Raises InvalidArgument for a variable without a value, or with one out of its range.
    """
    match value:
        case Variable(name, least, most):
            if name not in var_vals:
                given = ", ".join(sorted(var_vals)) or "none"
                raise InvalidArgument(
                    f"variable '{name}' has no value; values are given for: {given}\n"
                    f"  hint: var_vals={{'{name}': ...}}, from {least} to {most}"
                )
            found = var_vals[name]
            if not least <= found <= most:
                raise InvalidArgument(
                    f"variable '{name}' is {found}, and goes from {least} to {most}"
                )
            return found
        case Operation(operation, left, right):
            return OPERATIONS[operation](substitute(left, var_vals), substitute(right, var_vals))
        case _:
            return value


def variables_of(value: Any) -> frozenset[str]:
    """The names of the variables that a number depends on."""
    match value:
        case Variable(name):
            return frozenset((name,))
        case Operation(_, left, right):
            return variables_of(left) | variables_of(right)
        case tuple():
            return frozenset().union(*map(variables_of, value))
        case _:
            return frozenset()


# --- nodes that name buffers ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layout:
    """How elements lie: their type, the lengths of the axes, bytes between neighbours."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Param:
    """The input of a number: see `ExecContext.inputs`."""

    slot: int


_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of `size` elements; each is another, whatever its size.

    `device` is where it lives, or a tuple of devices, each of which has as much: None says nothing.
    """

    size: int
    dtype: np.dtype[Any]
    device: str | tuple[str, ...] | None = None
    number: int = field(default_factory=lambda: next(_numbers))

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def __reduce__(self) -> Any:
        return Buffer, (self.size, self.dtype, self.device)  # with a number of its own there


@dataclass(frozen=True, slots=True)
class View:
    """A part of another buffer, of a buffer on several devices the same part of each.

    `offset` and `size` count elements of the source. With a `layout` the elements lie as that says,
    and `offset` is the number of bytes from the source's first byte to element (0, …, 0).
    """

    source: Node
    offset: int | Symbolic
    size: int
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """One of the buffers of a buffer on several devices."""

    source: Node
    index: int


@dataclass(frozen=True, slots=True)
class Stack:
    """Buffers of several devices as one."""

    sources: tuple[Node, ...]


Node: TypeAlias = Param | Buffer | View | Select | Stack
NODES = (Param, Buffer, View, Select, Stack)


def leaves_of(node: Node) -> Iterator[Param | Buffer]:
    """The parameters and buffers that a node is made of."""
    match node:
        case View(source=source) | Select(source=source):
            yield from leaves_of(source)
        case Stack(sources):
            for source in sources:
                yield from leaves_of(source)
        case Param() | Buffer():
            yield node


# --- calls ----------------------------------------------------------------------------------------

Dimension: TypeAlias = "int | Symbolic"
Size: TypeAlias = "int | Symbolic | tuple[Dimension, ...]"


@dataclass(frozen=True, slots=True)
class LaunchInfo:
    """How a kernel is launched; dimensions may be symbolic."""

    grid: Size
    block: Size
    shared_bytes: Dimension = 0


@dataclass(frozen=True, slots=True, eq=False)
class KernelCall:
    """A kernel in Sarek IR, which is compiled before it runs.

    `arguments` has for each argument of the kernel a node, a number, symbolic or not, or what else
    a launch takes. `tag` is for diagnostics alone.
    """

    kernel: Kernel
    arguments: tuple[Any, ...]
    info: LaunchInfo
    tag: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ProgramCall:
    """A compiled kernel, with its arguments as of a `KernelCall`."""

    program: Program
    arguments: tuple[Any, ...]
    info: LaunchInfo


@dataclass(frozen=True, slots=True, eq=False)
class SliceCall:
    """Have `target` stand for a part of another buffer: `size` elements from `offset` on."""

    target: Buffer
    source: Node
    offset: int | Symbolic
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class CopyCall:
    """Copy all elements of `source` to `destination`."""

    destination: Node
    source: Node


@dataclass(frozen=True, slots=True, eq=False)
class CustomCall:
    """A function by its name: "graph" records `linear` when it first runs, and replays it then;
    "fill" sets all elements of `arguments[0]` to `arguments[1]`.
    """

    FUNCTIONS: ClassVar[tuple[str, ...]] = ("fill", "graph")
    name: str
    arguments: tuple[Any, ...] = ()
    linear: Linear | None = None


Call: TypeAlias = KernelCall | ProgramCall | SliceCall | CopyCall | CustomCall


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """Calls in the order in which they are done."""

    calls: tuple[Call, ...] = ()

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)

    def __len__(self) -> int:
        return len(self.calls)
