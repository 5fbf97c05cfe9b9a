"""`Typed`: what inference hands to structuring and lowering. Data only.

`Typed.function_ir` is Numba's IR of the function in SSA form: phis are `Expr("phi")` assignments
at the heads of blocks, there are no `Del`s, blocks that None arguments or constants make
unreachable are gone, a phi's incoming value may be `ir.UNDEFINED`, and a failing assertion is a
`StaticRaise` of AssertionError with at most one string. `with sarek.superstep():` is its body
followed by a call of `barrier`.

`Typed.types` gives every variable its type:
- a strong number: Numba's `types.Integer`, `types.Float`, `types.boolean`;
- a complex number: Numba's `types.Complex`, or `complexes.WeakComplex`; no number but two;
- `weak.WeakInt`, `weak.WeakFloat`: `weak.scalar_of` gives the IR type (int64, float64); where
  `weak.constant_of` is not None the variable is that constant wherever it is read;
- `types.Array` in global memory, `extensions.PlacedArray` in any other;
- `types.BaseTuple` (UniTuple, Tuple): its `types` are the items';
- `extensions.RangeType`, `extensions.IteratorType`: of `getiter` and `iternext`;
- `extensions.CompileTime` and `types.NoneType`: nothing to compute; drop the assignment;
- `extensions.FragmentType`: a fragment of a cooperative matrix, under one name;
- `records.RecordType`: a reference or a value; `records.RecordMethod` is a record too;
- `extensions.SliceType`: slices exist only as indices, made by `MakeSlice` or `Constant(slice)`.

`Typed.operations` gives the instructions that compute something an `Operation`. Its key is the
value of an assignment (`ir.Expr`, `ir.Global`, `ir.FreeVar`, `ir.Const`), or a `SetItem` or
`SetAttr` statement.
Without an entry are: `phi`, `cast`, `ir.Var` and `ir.Arg` values (copies), `build_tuple`,
`exhaust_iter` (the tuple itself), `pair_first` and `pair_second` of an `iternext`, and whatever is
only compile-time.

An operation's `arguments` are its operands in the order of the `what`'s docstring, whatever the
instruction looks like (keywords and defaults are resolved). Operand k is converted to
`operands[k]` before the operation; the result has type `result`. Copies and phis convert likewise:
from the type of the source to the type of the target. A conversion from a weak int is
`Cast(weak=True)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, TypeAlias

from numba.core import ir

from sarek_numba.errors import Diagnostic
from sarek_numba.frontend.matrices import Config
from sarek_numba.frontend.source import Source
from sarek_numba.frontend.texts import InlineSource
from sarek_numba.frontend.weak import Type as Type
from sarek_numba.ir.nodes import (
    AtomicOp,
    BinOp,
    CoopmatConfig,
    Coordinate,
    FenceScope,
    UnOp,
    WarpOp,
)
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.span import Span

# --- what an operation is -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A value known while compiling: a bool, int, float, NumPy scalar, slice, or a tuple of such.

    No operands. The result type says what it is a constant of.
    """

    value: Any


@dataclass(frozen=True, slots=True)
class Binary:
    """`op` of (left, right).

    Arithmetic and bitwise operators have two operands of the result's type. A shift's count has
    any integer type. A comparison gives bool: its operands have one type, or two different integer
    types, which compare as mathematical values (a weak int is int64). DIV is true division of
    floats. FLOORDIV and FLOORMOD are Python's; BITAND, BITOR and BITXOR of bools are logical.
    """

    op: BinOp


@dataclass(frozen=True, slots=True)
class Unary:
    """`op` of one operand. NOT takes any number and gives bool: it is the negation of `Convert`."""

    op: UnOp


@dataclass(frozen=True, slots=True)
class Convert:
    """The operand as `result`: int(), float(), bool(), np.float32(), unary plus, …

    The operand keeps its own type; integers modulo 2^n, floats to integers saturating.
    """


@dataclass(frozen=True, slots=True)
class RoundToHalf:
    """A float32 that holds the half nearest to a number of any type, rounded once."""

    half: Scalar


@dataclass(frozen=True, slots=True)
class HalfBits:
    """The bits, a uint16, of the half nearest to a number of any type."""

    half: Scalar


@dataclass(frozen=True, slots=True)
class HalfFromBits:
    """The float32 that the bits of a half, a uint16, name."""

    half: Scalar


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function of `ir.intrinsics` by name, all operands of the type it computes in.

    `min`, `max` may have more than two operands: fold from the left. `pow` of floats and `ipow` of
    integers have (base, exponent); the exponent may be a weak constant (`constant_of` of the type
    of the argument's variable), whose values 0, 1, 2, -1 are exact.
    """

    name: str


@dataclass(frozen=True, slots=True)
class DivMod:
    """(left // right, left % right) of two operands of one type; `result` is a tuple of two."""


@dataclass(frozen=True, slots=True)
class RoundToInt:
    """A weak int from a float: `mode` ("rint", "floor", "ceil", "trunc"), then to int64."""

    mode: str


@dataclass(frozen=True, slots=True)
class RoundDigits:
    """`np.round(x, digits)` at x's type: scale by a power of ten, rint, scale back."""

    digits: int


@dataclass(frozen=True, slots=True)
class Select:
    """`np.where(condition, then, orelse)` of scalars: (bool, T, T); all three are evaluated."""


@dataclass(frozen=True, slots=True)
class Contains:
    """`x in items`: (tuple, x). Item k compares with x as the `Binary(BinOp.EQ)` would:

    `compares[k]` are the two types that the item and x are converted to.
    """

    compares: tuple[tuple[Type, Type], ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """A coordinate of the thread; no operands, a weak int."""

    coordinate: Coordinate
    axis: int


@dataclass(frozen=True, slots=True)
class IndexTuple:
    """`sarek.grid(n)` and `gridsize(n)` with n > 1: a tuple of the coordinate along axes 0…n-1."""

    coordinate: Coordinate
    count: int


@dataclass(frozen=True, slots=True)
class MakeRange:
    """`range`: (start, stop, step) as far as the call gives them, 1 to 3 weak ints."""


@dataclass(frozen=True, slots=True)
class Unroll:
    """`unroll` of (a range): the same range, `count` passes of whose loop become one; None: all."""

    count: int | None


@dataclass(frozen=True, slots=True)
class Iterate:
    """`getiter` of (a range or a tuple): a tuple is unrolled, items converted to one type."""


@dataclass(frozen=True, slots=True)
class Next:
    """`iternext` of (an iterator): a pair of the item and whether there is one."""


@dataclass(frozen=True, slots=True)
class MakeSlice:
    """`slice`: (start, stop) or (start, stop, step); each a whole number or None.

    Whole numbers are converted to weak ints.
    """


@dataclass(frozen=True, slots=True)
class GetItem:
    """(array, index): an element, or a view where slices or fewer indices than axes are given.

    The index is a whole number, a slice, or a tuple of such; missing axes are full slices. The
    types of its items are those of the index variable. The result tells element from view.
    """


@dataclass(frozen=True, slots=True)
class MakeTuple:
    """A named tuple of its items, in the order of its fields."""


@dataclass(frozen=True, slots=True)
class TupleItem:
    """(tuple): item `index`, a constant."""

    index: int


@dataclass(frozen=True, slots=True)
class TupleSlice:
    """(tuple): items [start:stop:step] of it as a new tuple."""

    start: int | None
    stop: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class TuplePick:
    """(tuple, index): item by a run-time index, every item converted to the result."""


@dataclass(frozen=True, slots=True)
class SetItem:
    """(array, index, value): store into an element; the value is converted to the element type."""


@dataclass(frozen=True, slots=True)
class Shape:
    """(array): the extents of all axes, a tuple of weak ints; they are constants where known."""


@dataclass(frozen=True, slots=True)
class Extent:
    """(array): the extent of one axis, a weak int: `len(a)`."""

    axis: int


@dataclass(frozen=True, slots=True)
class Size:
    """(array): the number of elements, a weak int."""


@dataclass(frozen=True, slots=True)
class Transpose:
    """(array): the view with axes reversed."""


@dataclass(frozen=True, slots=True)
class CreateArray:
    """`shared.array`, `local.array`, `shared.dynamic`; no operands, the result is a `PlacedArray`.

    `shape` is None for the dynamic region, of which the array is a view from `offset` bytes on.
    """

    space: MemSpace
    shape: tuple[int, ...] | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ConstantArray:
    """`const.array_like(a)`: no operands; `values` is a read-only copy in C order."""

    values: Any


@dataclass(frozen=True, slots=True)
class Barrier:
    """`barrier()`: no operands, no result."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A statement of a covered function starts here: no operands, no result."""


@dataclass(frozen=True, slots=True)
class MemFence:
    """`mem_fence(scope=)`: no operands, no result."""

    scope: FenceScope


@dataclass(frozen=True, slots=True)
class Atomic:
    """`atomic.op(array, index, …)` giving the old value (none for STORE).

    Arguments: (array, index), then (value) but for LOAD, or (compare, value) for CAS; both have the
    element type. The index is as in `GetItem` and names an element.
    """

    op: AtomicOp


@dataclass(frozen=True, slots=True)
class Complex:
    """An operation on complex numbers, by name; `lower.complexes` has them all.

    Operands and result are complex or floats of their parts' type. "convert" takes a number of any
    type; "method" is the value itself, on its way to a call. The exponent of "power" may be a weak
    constant, as in `Intrinsic`.
    """

    name: str


@dataclass(frozen=True, slots=True)
class PartView:
    """(complex array): the view of the real parts (0) or of the imaginary parts (1)."""

    part: int


@dataclass(frozen=True, slots=True)
class WarpBarrier:
    """`warp_barrier()`: no operands, no result."""


@dataclass(frozen=True, slots=True)
class WarpLane:
    """`warp.lane` of warps of `width` threads: no operands, a weak int."""

    width: int


@dataclass(frozen=True, slots=True)
class Warp:
    """A collective: (value), or (value, lane as int64) for a shuffle, within `width` lanes."""

    op: WarpOp
    width: int


@dataclass(frozen=True, slots=True)
class Fragment:
    """`coopmat.fragment(config, use)`: no operands; the result is a `FragmentType`."""

    config: CoopmatConfig
    use: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """An operation of `sarek.coopmat`, by name; no result.

    `load` and `store`: (fragment, array, index, stride as int64), the index as in `GetItem` and of
    an element. `muladd`: (result, a, b, c). `fill`: (fragment, value of its component's type).
    """

    op: str
    config: CoopmatConfig
    column_major: bool = False


@dataclass(frozen=True, slots=True)
class Print:
    """`print(…)` of numbers and constant strings: an operand of type `CompileTime` is its text."""

    separator: str
    end: str


@dataclass(frozen=True, slots=True)
class Call:
    """A device function specialised for its argument types; arguments in order of its parameters.

    `result` may be a tuple, or none. Arrays are passed as views. Compile-time arguments (None,
    strings, types) are passed by nothing: the callee has their types.
    """

    callee: Typed


@dataclass(frozen=True, slots=True)
class GetField:
    """(record): a field of it, by name: a number, a record, or an array."""

    name: str


@dataclass(frozen=True, slots=True)
class FieldView:
    """(array of records): the field of every element, as an array."""

    name: str


@dataclass(frozen=True, slots=True)
class SetField:
    """(record, value): store into a field; a number is converted to its type."""

    name: str


@dataclass(frozen=True, slots=True)
class SetRecord:
    """(array of records, index, record): store a whole record into an element."""


@dataclass(frozen=True, slots=True)
class BindMethod:
    """(record): the record itself, of which a method is about to be called."""


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """(record): a value of its own."""


@dataclass(frozen=True, slots=True)
class MakeRecord:
    """(values of the fields `names`): a value; what is not given is zero."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MakeVariant:
    """(the parts): a value of a variant, of its case of this number."""

    case: int


@dataclass(frozen=True, slots=True)
class IsCase:
    """(value of a variant): whether it is of the case of this number, a bool."""

    case: int


@dataclass(frozen=True, slots=True)
class GetPart:
    """(value of a variant): the part at a path of fields; of use if the value is of that case."""

    path: tuple[str, ...]


What = (
    Constant
    | Binary
    | Unary
    | Convert
    | RoundToHalf
    | HalfBits
    | HalfFromBits
    | Intrinsic
    | DivMod
    | RoundToInt
    | RoundDigits
    | Select
    | Contains
    | Index
    | IndexTuple
    | MakeRange
    | Unroll
    | Iterate
    | Next
    | MakeSlice
    | GetItem
    | MakeTuple
    | TupleItem
    | TupleSlice
    | TuplePick
    | SetItem
    | Shape
    | Extent
    | Size
    | Transpose
    | CreateArray
    | ConstantArray
    | Barrier
    | Mark
    | MemFence
    | Atomic
    | Complex
    | PartView
    | WarpBarrier
    | WarpLane
    | Warp
    | Fragment
    | Matrix
    | Print
    | Call
    | GetField
    | FieldView
    | SetField
    | SetRecord
    | BindMethod
    | CopyRecord
    | MakeRecord
    | MakeVariant
    | IsCase
    | GetPart
)


@dataclass(frozen=True, slots=True)
class Default:
    """An argument that the call leaves to its default: a constant of the operand's type."""

    value: Any
    type: Type


Argument: TypeAlias = ir.Var | Default


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One resolved instruction: see the module's docstring."""

    what: What
    operands: tuple[Type, ...]
    result: Type
    arguments: tuple[Argument, ...] = ()


# --- the whole ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the function; `variable` is its name in the IR (`ir.Arg` has it too)."""

    name: str
    index: int
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class Captured:
    """A value that the function takes from its globals or closure, as it was when it was typed.

    `path` are attributes read from it: `config.N` is ("config", ("N",)). Two launches may share a
    specialisation only if `read` gives both times the `value` found here (`same` decides).
    """

    function: FunctionType
    name: str
    path: tuple[str, ...]
    value: Any
    read: Callable[[], Any]

    def is_current(self) -> bool:
        """Whether the program still holds the value that was compiled."""
        return same(self.read(), self.value)


def same(left: Any, right: Any) -> bool:
    """Equality for captured values: identity, or the same type and the same bits."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return left.hex() == right.hex() and repr(left) == repr(right)
    if isinstance(left, complex):
        return same(left.real, right.real) and same(left.imag, right.imag)
    if isinstance(left, (bool, int, str, Config)):
        return bool(left == right)
    if hasattr(left, "tobytes") and hasattr(left, "dtype"):
        return bool(
            left.dtype == right.dtype
            and left.shape == right.shape
            and left.tobytes() == right.tobytes()
        )
    return False


@dataclass(slots=True, eq=False)
class Typed:
    """A function typed for one tuple of argument types. Compared by identity.

    `captures` includes those of its callees. `notes` are findings that refuse nothing: float64 that
    nobody asked for, narrow accumulators. `inline` asks for its body in place of calls.
    `given` has the texts for which it is the fallback.
    `callees` are the functions it calls, each once, callees
    before their callers.
    """

    name: str
    function: FunctionType
    function_ir: ir.FunctionIR
    parameters: tuple[Parameter, ...]
    types: dict[str, Type]
    operations: dict[Any, Operation]
    result: Type
    source: Source
    captures: tuple[Captured, ...] = ()
    callees: tuple[Typed, ...] = ()
    notes: list[Diagnostic] = field(default_factory=list)
    inline: bool = False
    given: InlineSource | None = None

    def span_of(self, node: ir.Inst | ir.Var) -> Span:
        """Where an instruction or a variable's value is written, as exactly as can be known."""
        return self.source.span_of(node)
