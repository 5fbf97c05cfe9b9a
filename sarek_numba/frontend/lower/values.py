"""What a variable of Numba's IR stands for while it is lowered.

A number is a `Cell`: an expression not yet placed. Everything else is known to lowering alone and
holds cells: tuples, views of arrays, ranges, iterators, slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sarek_numba.ir.nodes import ArrayRead, Cast, Const, Expr, Index, Var, VarRef
from sarek_numba.ir.records import Path
from sarek_numba.ir.types import Array, MemSpace, Record, Scalar, Vec
from sarek_numba.ir.walk import walk_exprs


@dataclass(slots=True, eq=False)
class Cell:
    """A number: `expr` is placed where the value is used, or bound to a variable before."""

    expr: Expr


@dataclass(frozen=True, slots=True, eq=False)
class TupleValue:
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ComplexValue(TupleValue):
    """A complex number: its real and its imaginary part."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Some elements of an array: element (i, j, …) is base[offset + i*strides[0] + j*strides[1] …].

    All cells are int64. `order` is "C" or "F" for all of a base in that order, which needs no
    strides: there `strides` is empty and offset is zero. With `pairs` the elements are complex, two
    of the base each: offset and strides count pairs, and the base is indexed by twice the index.
    `part` says that the view is of one of the two parts of such an array.

    Of an array of records the elements are counted; `records` says where they are, and `base` only
    names the array. Of a `packed` array, elements of that type, the base has bytes, and so have
    offset and strides.

    With a `twin` the elements are complex and count as their real parts: it has the base of the
    imaginary ones, and how far behind its real part each is there.
    """

    base: Var
    shape: tuple[Cell, ...]
    offset: Cell
    strides: tuple[Cell, ...]
    order: str | None
    pairs: bool = False
    part: int | None = None
    records: RecordRef | None = None
    packed: Scalar | None = None
    twin: tuple[Var, int] | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def element(self) -> Scalar:
        assert isinstance(self.base.type, (Vec, Array))
        assert isinstance(self.base.type.element, Scalar)
        return self.packed or self.base.type.element

    @property
    def space(self) -> MemSpace:
        return self.base.type.space if isinstance(self.base.type, Array) else MemSpace.GLOBAL


@dataclass(frozen=True, slots=True, eq=False)
class RecordStore:
    """Where records are: an array of them (`is_array`), or one.

    Either all lie in memory as the layout of `record` says, which is accessed through a base for
    each type of number (`bases`), or each number of a record has an array or a variable of its own
    (`apart`, by the path of its field). A value that does not change needs no variables: `cells`
    has its numbers.
    """

    record: Record
    bases: dict[Scalar, Var]
    apart: dict[Path, Var]
    is_array: bool
    cells: dict[Path, Cell] = field(default_factory=dict)

    @property
    def variables(self) -> list[Var]:
        """Every base, array or variable."""
        return [*self.bases.values(), *self.apart.values()]


@dataclass(frozen=True, slots=True, eq=False)
class RecordRef:
    """The part at `path` of one record of a store.

    `indices` has an int64 for each array on the way: that of the store, then fixed arrays. Where it
    says where the elements of a view are, the last index is missing.
    """

    store: RecordStore
    path: Path
    indices: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RangeValue:
    """`hints` are those of the pragma that its loop is to stand in, if any."""

    first: Cell
    stop: Cell
    step: Cell
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class IteratorValue:
    """An iterator over a range or over the items of a tuple, and the type of its items."""

    source: RangeValue | TupleValue
    item: Scalar


@dataclass(frozen=True, slots=True, eq=False)
class SliceValue:
    start: Cell | None
    stop: Cell | None
    step: Cell | None


@dataclass(frozen=True, slots=True)
class FragmentValue:
    """A fragment of a cooperative matrix, by its name in the IR."""

    name: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """None, or what exists only while compiling."""


NOTHING = Nothing()

Value = (
    Cell
    | TupleValue
    | View
    | RecordRef
    | RangeValue
    | IteratorValue
    | SliceValue
    | FragmentValue
    | Nothing
)


def cells_of(value: Value) -> Iterator[Cell]:
    """Every cell in a value."""
    match value:
        case Cell():
            yield value
        case TupleValue(items):
            for item in items:
                yield from cells_of(item)
        case View(shape=shape, offset=offset, strides=strides):
            yield from shape
            yield offset
            yield from strides
            if value.records is not None:
                yield from value.records.indices
        case RecordRef(store=store, indices=indices):
            yield from indices
            yield from store.cells.values()
        case RangeValue(first=first, stop=stop, step=step):
            yield from (first, stop, step)
        case IteratorValue(source):
            yield from cells_of(source)
        case SliceValue(start, stop, step):
            yield from (part for part in (start, stop, step) if part is not None)
        case FragmentValue() | Nothing():
            return


def is_trivial(expr: Expr) -> bool:
    """Whether an expression may be written out at every use: a name, a number, a coordinate."""
    if isinstance(expr, Cast):
        expr = expr.operand
    return isinstance(expr, (Const, VarRef, Index))


def reads_memory(expr: Expr) -> bool:
    return any(isinstance(node, ArrayRead) for node in walk_exprs(expr))


def reads_variable(expr: Expr, var: Var) -> bool:
    return any(isinstance(node, VarRef) and node.var is var for node in walk_exprs(expr))
