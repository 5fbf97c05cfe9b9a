"""Element types, memory spaces and array descriptions of Sarek IR.

Plain data. The sizes and offsets of every type come from `ir.layout` and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class MemSpace(Enum):
    """Where an array lives. CONSTANT holds the arrays of `sarek.const.array_like`."""

    GLOBAL = "global"
    SHARED = "shared"
    LOCAL = "local"
    CONSTANT = "constant"


class Kind(Enum):
    """The arithmetic family of a scalar type."""

    BOOL = "bool"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"


class Scalar(Enum):
    """A scalar element type; the value is its NumPy (or ml_dtypes) name."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"

    __hash__ = object.__hash__  # each is one object; that of Enum is slow, and all tables use it

    @property
    def kind(self) -> Kind:
        return _KINDS[self]

    @property
    def bits(self) -> int:
        """Width in memory; a bool takes one byte."""
        return _BITS[self]

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def minimum(self) -> int:
        """Smallest value of an integer or bool type."""
        assert not self.is_float
        return -(1 << (self.bits - 1)) if self.kind is Kind.SIGNED else 0

    @property
    def maximum(self) -> int:
        """Largest value of an integer or bool type."""
        assert not self.is_float
        if self is Scalar.BOOL:
            return 1
        return (1 << (self.bits - (self.kind is Kind.SIGNED))) - 1


def _kind(scalar: Scalar) -> Kind:
    name = scalar.value
    if name == "bool":
        return Kind.BOOL
    if name.startswith("int"):
        return Kind.SIGNED
    return Kind.UNSIGNED if name.startswith("uint") else Kind.FLOAT


_KINDS = {scalar: _kind(scalar) for scalar in Scalar}
_BITS = {
    scalar: 8 if scalar is Scalar.BOOL else int(scalar.value.lstrip("abcdefghijklmnopqrstuvwxyz"))
    for scalar in Scalar
}


@dataclass(frozen=True, slots=True)
class Unit:
    """The type of a helper that returns nothing."""


@dataclass(frozen=True, slots=True)
class Record:
    """A structure: name and ordered fields.

    `offsets` and `size`, in bytes, are given together, and only where they are not those of a C
    structure: a packed record, or one with room of its own between the fields.
    """

    name: str
    fields: tuple[tuple[str, ElementType], ...]
    offsets: tuple[int, ...] | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class FixedArray:
    """As many elements side by side as the shape has, in C order: a field of a record."""

    element: ElementType
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """A tagged union: name and constructors in order of declaration, which is the order of tags."""

    name: str
    constructors: tuple[tuple[str, tuple[ElementType, ...]], ...]


@dataclass(frozen=True, slots=True)
class TupleType:
    """Several values together: the result of a helper that returns a tuple."""

    items: tuple[ElementType, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """An array in shared, local or constant memory; how long it is stands in its declaration."""

    element: ElementType
    space: MemSpace


@dataclass(frozen=True, slots=True)
class Vec:
    """A buffer in global memory: an array parameter of a kernel or of a helper."""

    element: ElementType


@dataclass(frozen=True, slots=True)
class Pair:
    """A complex number, by the float type of its two parts: what an argument is.

    The IR has none. There a complex number is two floats, and an element of a complex array is two
    elements of the array of floats that lies in the same bytes, the real part first.
    """

    part: Scalar

    @property
    def value(self) -> str:
        """Its NumPy name."""
        return f"complex{2 * self.part.bits}"


ElementType = Scalar | Unit | Record | FixedArray | Variant | TupleType | Array | Vec

BOOL = Scalar.BOOL
INT32 = Scalar.INT32
INT64 = Scalar.INT64
FLOAT32 = Scalar.FLOAT32
FLOAT64 = Scalar.FLOAT64
UNIT = Unit()
HALVES = frozenset({Scalar.FLOAT16, Scalar.BFLOAT16})  # stored, loaded, converted, nothing else


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """What is known about an array parameter beyond its element type.

    `layout` is "C", "F" or "A" (any strides). `writable` is False for a read-only array. A C or F
    array has its strides derived from its shape; an A array has stride parameters. With `pairs` an
    element of the user's is a complex number, two elements of the buffer: lengths, offsets, shapes
    and strides count pairs.

    The elements of an array of records are accessed through one base for each type of number in
    them. Each base is a parameter of the same argument: `record` is then what the shape and the
    strides count, and `element` what the base is indexed by.

    With `columns` each number of a record has an array of its own instead, in the order of
    `ir.records.leaves`; those of a fixed array lie together.

    `restrict` promises that what is written through one such array is not accessed by another
    parameter; the launch checks it.
    """

    element: ElementType
    space: MemSpace = MemSpace.GLOBAL
    ndim: int = 1
    layout: str = "C"
    writable: bool = True
    pairs: bool = False
    record: Record | None = None
    restrict: bool = False
    columns: bool = False


# What a parameter of a kernel is filled with at launch. `argument` is the position of the user's
# argument. The launch path fills parameters by these tags alone, so passes may drop unused ones.


@dataclass(frozen=True, slots=True)
class UserArgument:
    """The user's argument itself: the buffer of an array, or a scalar.

    Of an array of records in columns, the buffer of one `column`.
    """

    argument: int
    column: int | None = None


PART_NAMES = ("real", "imag")


@dataclass(frozen=True, slots=True)
class PartOf:
    """The real part (0) or the imaginary part (1) of the user's complex number."""

    argument: int
    part: int


@dataclass(frozen=True, slots=True)
class NumberOf:
    """A number of the user's record, by its position in the order of `ir.records.numbers_of`."""

    argument: int
    number: int


@dataclass(frozen=True, slots=True)
class LengthOf:
    """Number of elements of an array argument."""

    argument: int


@dataclass(frozen=True, slots=True)
class OffsetOf:
    """Index, in elements from the start of the bound buffer, of element (0, …, 0)."""

    argument: int


@dataclass(frozen=True, slots=True)
class ShapeOf:
    """Extent of one axis."""

    argument: int
    axis: int


@dataclass(frozen=True, slots=True)
class StrideOf:
    """Distance between neighbours along one axis, in elements; may be zero or negative."""

    argument: int
    axis: int


@dataclass(frozen=True, slots=True)
class DynamicSharedLength:
    """Bytes of the dynamic shared region of this launch."""


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of the user's launch along x, of a kernel each of whose threads does the work of
    `each` of them: it is launched with as many blocks along x as that takes.
    """

    each: int


@dataclass(frozen=True, slots=True)
class ReportBuffer:
    """Where threads leave what they print and what they find, as `passes.report` lays it out."""


Role = (
    UserArgument
    | PartOf
    | NumberOf
    | LengthOf
    | OffsetOf
    | ShapeOf
    | StrideOf
    | DynamicSharedLength
    | Threads
    | ReportBuffer
)
