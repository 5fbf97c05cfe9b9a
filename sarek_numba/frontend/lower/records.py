"""Lowering of records: to scalar accesses of the memory in which their fields lie, or to variables.

A reference is a place and the indices that lead there; only its numbers are ever read or written. A
value has a variable for each number, and a local array for each fixed array of numbers. A number
that may be unaligned is put together from bytes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numba.core import ir, types

from sarek_numba.frontend import typed as t
from sarek_numba.frontend.complexes import is_complex
from sarek_numba.frontend.lower import complexes, fills, pairs, variants, views
from sarek_numba.frontend.lower.convert import cast, constant_as, int64, widened
from sarek_numba.frontend.lower.operators import add, multiply
from sarek_numba.frontend.lower.values import (
    NOTHING,
    Cell,
    RecordRef,
    RecordStore,
    TupleValue,
    Value,
    View,
)
from sarek_numba.frontend.names import is_temporary, user_name
from sarek_numba.frontend.records import RecordType, is_value
from sarek_numba.frontend.weak import scalar_of
from sarek_numba.ir.layout import layout_of
from sarek_numba.ir.nodes import (
    ArrayCreate,
    ArrayRead,
    Assign,
    Binary,
    BinOp,
    Cast,
    Direction,
    Expr,
    For,
    Intrinsic,
    LElement,
    LocalDecl,
    Stmt,
    Var,
    VarRef,
    constant,
)
from sarek_numba.ir.pairs import pair_of
from sarek_numba.ir.records import Leaf, Path, leaf_at, leaves, type_at
from sarek_numba.ir.types import (
    INT64,
    PART_NAMES,
    Array,
    ElementType,
    FixedArray,
    Kind,
    MemSpace,
    Record,
    Scalar,
)
from sarek_numba.ir.variants import is_variant
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering
    from sarek_numba.frontend.regions import Phi, Statement

_MOST_UNROLLED = 4
MOST_PASSED = 64


def lower_record_operation(
    lowering: FunctionLowering, operation: t.Operation, statement: Statement
) -> Value:
    """The value of an operation on records; its effects are emitted."""
    span = lowering.span(statement)
    match operation.what:
        case t.GetField(name):
            return _field(lowering, _record(lowering, operation.arguments[0]), name, span)
        case t.FieldView(name):
            return _field_view(lowering, operation, name)
        case t.SetField(name):
            owner = _record(lowering, operation.arguments[0])
            return _set_field(lowering, owner, name, operation, span)
        case t.BindMethod():
            return _record(lowering, operation.arguments[0])
        case t.CopyRecord():
            source = _record(lowering, operation.arguments[0])
            made = new_value(
                lowering, operation.result.root, lowering.name_of(statement.target.name)
            )
            copy_record(lowering, made, source, span)
            return made
        case t.MakeRecord(names):
            return _make(lowering, operation, names, statement)
        case t.MakeVariant() | t.IsCase() | t.GetPart():
            return variants.lower_variant(lowering, operation, statement)
        case _:
            raise lowering.refuse(f"{type(operation.what).__name__} in a kernel", statement)


def _record(lowering: FunctionLowering, argument: t.Argument) -> RecordRef:
    assert isinstance(argument, ir.Var)
    value = lowering.read(argument)
    assert isinstance(value, RecordRef), f"{argument} is no record"
    return value


# --- where a number is ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Steps:
    """How the numbers of a leaf are found: base[start + indices[0] * steps[0] + …].

    `packed` is their type where the base has bytes. Without steps the base is a variable.
    """

    base: Var
    steps: tuple[int, ...]
    start: int
    packed: Scalar | None


def steps_of(store: RecordStore, leaf: Leaf) -> _Steps:
    if store.apart:
        inner = tuple(math.prod(leaf.counts[k + 1 :]) for k in range(len(leaf.counts)))
        outer = (leaf.count,) if store.is_array else ()
        return _Steps(store.apart[leaf.path], (*outer, *inner), 0, None)
    strides = (layout_of(store.record).size, *leaf.strides)
    if not leaf.is_aligned:
        return _Steps(store.bases[Scalar.UINT8], strides, leaf.offset, leaf.scalar)
    width = leaf.scalar.bits // 8
    steps = tuple(stride // width for stride in strides)
    return _Steps(store.bases[leaf.scalar], steps, leaf.offset // width, None)


def _address(found: _Steps, indices: tuple[Expr, ...]) -> Expr:
    address: Expr = int64(0)
    for index, step in zip(indices, found.steps, strict=False):
        address = add(address, multiply(index, int64(step)))
    return add(address, int64(found.start)) if found.start else address


def _expressions(ref: RecordRef) -> tuple[Expr, ...]:
    return tuple(cell.expr for cell in ref.indices)


# --- numbers --------------------------------------------------------------------------------------


def read_element(lowering: FunctionLowering, view: View, flat: Expr, span: Span | None) -> Expr:
    """An element of an array of numbers."""
    if view.packed is None:
        return ArrayRead(view.base, flat, span=span)
    return _assembled(lowering, view.base, flat, view.packed, span)


def _refuse_chosen(lowering: FunctionLowering, store: RecordStore, leaf: Leaf) -> None:
    if leaf.path in store.cells:
        raise lowering.refuse(
            "a change of the record that a conditional expression chooses",
            lowering.current,
            "use an if statement",
        )


def write_element(
    lowering: FunctionLowering, view: View, flat: Expr, value: Expr, span: Span | None
) -> None:
    """Store into an element; what reads memory is settled."""
    if view.packed is None:
        target = LElement(view.base, flat, span=span)
        lowering.emitter.emit(Assign(target, value, span=span))
    else:
        _disperse(lowering, view.base, flat, value, view.packed, span)


def read(
    lowering: FunctionLowering, store: RecordStore, leaf: Leaf, indices: tuple[Expr, ...],
    span: Span | None,
) -> Expr:  # fmt: skip
    """A number of a record."""
    cell = store.cells.get(leaf.path)
    if cell is not None:
        return cell.expr
    found = steps_of(store, leaf)
    if not found.steps:
        return VarRef(found.base, span=span)
    address = _address(found, indices)
    if found.packed is None:
        return ArrayRead(found.base, address, span=span)
    return _assembled(lowering, found.base, address, found.packed, span)


def write(
    lowering: FunctionLowering, store: RecordStore, leaf: Leaf, indices: tuple[Expr, ...],
    value: Expr, span: Span | None,
) -> None:  # fmt: skip
    """Store a number; what reads memory is settled."""
    _refuse_chosen(lowering, store, leaf)
    found = steps_of(store, leaf)
    if not found.steps:
        lowering.emitter.assign(found.base, value, span)
        return
    address = _address(found, indices)
    if found.packed is None:
        target = LElement(found.base, address, span=span)
        lowering.emitter.emit(Assign(target, value, span=span))
    else:
        _disperse(lowering, found.base, address, value, found.packed, span)


_UNSIGNED = {16: Scalar.UINT16, 32: Scalar.UINT32, 64: Scalar.UINT64}


def _assembled(
    lowering: FunctionLowering, base: Var, address: Expr, scalar: Scalar, span: Span | None
) -> Expr:
    """A number from its bytes, the lowest first."""
    whole = _UNSIGNED[scalar.bits]
    address = lowering.emitter.bind(address)
    bits: Expr | None = None
    for k in range(scalar.bits // 8):
        place = add(address, int64(k)) if k else address
        byte: Expr = Cast(whole, ArrayRead(base, place, span=span), span=span)
        if k:
            byte = Binary(BinOp.SHL, byte, constant(whole, 8 * k), span=span)
        bits = byte if bits is None else Binary(BinOp.BITOR, bits, byte, span=span)
    assert bits is not None
    if scalar.kind is Kind.FLOAT:
        return Intrinsic((), "reinterpret", (bits,), scalar, span=span)
    return bits if scalar is whole else Cast(scalar, bits, span=span)


def _disperse(
    lowering: FunctionLowering,
    base: Var,
    address: Expr,
    value: Expr,
    scalar: Scalar,
    span: Span | None,
) -> None:
    """Store a number as its bytes."""
    whole = _UNSIGNED[scalar.bits]
    if scalar.kind is Kind.FLOAT:
        value = Intrinsic((), "reinterpret", (value,), whole, span=span)
    elif scalar is not whole:
        value = Cast(whole, value, span=span)
    value = lowering.emitter.bind(value, "bits")
    address = lowering.emitter.bind(address)
    for k in range(scalar.bits // 8):
        place = add(address, int64(k)) if k else address
        shifted = Binary(BinOp.SHR, value, constant(whole, 8 * k), span=span) if k else value
        byte = Cast(Scalar.UINT8, shifted, span=span)
        lowering.emitter.emit(Assign(LElement(base, place, span=span), byte, span=span))


# --- fields ---------------------------------------------------------------------------------------


def _field(lowering: FunctionLowering, owner: RecordRef, name: str, span: Span) -> Value:
    store, path = owner.store, (*owner.path, name)
    kind = type_at(store.record, path)
    match kind:
        case Record() if pair_of(kind) is not None:
            return pairs.read_pair(lowering, store, path, _expressions(owner), span)
        case Scalar():
            leaf = leaf_at(store.record, path)
            number = read(lowering, store, leaf, _expressions(owner), span)
            return Cell(widened(number, span))
        case Record() if is_variant(kind):
            return variants.load(lowering, replace(owner, path=path), span)
        case Record():
            return replace(owner, path=path)
        case FixedArray(element=element, shape=shape) if _is_number(element):
            found, twin = _steps_and_twin(store, path, element)
            strides = [
                int64(found.steps[-1] * math.prod(shape[k + 1 :])) for k in range(len(shape))
            ]
            return View(
                found.base,
                tuple(Cell(int64(extent)) for extent in shape),
                Cell(_address(found, _expressions(owner))),
                tuple(map(Cell, strides)),
                None,
                packed=found.packed,
                twin=twin,
            )
        case FixedArray(shape=shape):
            whole = views.whole(_named(store, path), [int64(extent) for extent in shape])
            return replace(whole, records=replace(owner, path=path))
        case _:
            raise AssertionError(f"a field of type {kind}")


def _is_number(kind: ElementType) -> bool:
    """Whether a type is a number of the user's, real or complex."""
    return isinstance(kind, Scalar) or pair_of(kind) is not None


def _steps_and_twin(
    store: RecordStore, path: Path, kind: ElementType
) -> tuple[_Steps, tuple[Var, int] | None]:
    """How the numbers of a field are found; of complex ones the real parts, and their twins."""
    if isinstance(kind, Scalar):
        return steps_of(store, leaf_at(store.record, path)), None
    real = leaf_at(store.record, (*path, PART_NAMES[0]))
    return steps_of(store, real), pairs.twin_of(store, path)


def _named(store: RecordStore, path: Path) -> Var:
    """What names an array of records within a record: one of its numbers' bases."""
    below = (var for found, var in store.apart.items() if found[: len(path)] == path)
    return next(below, store.variables[0])


def _field_view(lowering: FunctionLowering, operation: t.Operation, name: str) -> Value:
    (argument,) = operation.arguments
    assert isinstance(argument, ir.Var)
    view = lowering.read(argument)
    assert isinstance(view, View)
    place = view.records
    assert place is not None
    path = (*place.path, name)
    kind = type_at(place.store.record, path)
    if isinstance(kind, Record) and not _is_number(kind):
        return replace(view, records=replace(place, path=path))
    element = kind.element if isinstance(kind, FixedArray) else kind
    found, twin = _steps_and_twin(place.store, path, element)
    inner = kind.shape if isinstance(kind, FixedArray) else ()
    level = len(place.indices)
    step = int64(found.steps[level])
    strides = [multiply(stride, step) for stride in views.strides_of(view, lowering.emitter.bind)]
    strides += [int64(found.steps[-1] * math.prod(inner[k + 1 :])) for k in range(len(inner))]
    start = _address(found, _expressions(place))
    return View(
        found.base,
        (*view.shape, *(Cell(int64(extent)) for extent in inner)),
        Cell(add(start, multiply(view.offset.expr, step))),
        tuple(map(Cell, strides)),
        None,
        packed=found.packed,
        twin=twin,
    )


def _set_field(
    lowering: FunctionLowering, owner: RecordRef, name: str, operation: t.Operation, span: Span
) -> Value:
    path = (*owner.path, name)
    kind = type_at(owner.store.record, path)
    argument, wanted = operation.arguments[1], operation.operands[1]
    if isinstance(kind, FixedArray) or isinstance(wanted, types.BaseTuple):
        fills.store(lowering, replace(owner, path=path), argument, wanted, span)
        return NOTHING
    if is_complex(wanted):
        pairs.set_field(lowering, owner, path, operation, span)
        return NOTHING
    if isinstance(kind, Record):
        return store_record(lowering, replace(owner, path=path), argument, span)
    leaf = leaf_at(owner.store.record, path)
    _refuse_chosen(lowering, owner.store, leaf)
    value = cast(lowering.number(argument, wanted), leaf.scalar, span=span)
    if steps_of(owner.store, leaf).steps:
        lowering.emitter.settle_memory()
    write(lowering, owner.store, leaf, _expressions(owner), value, span)
    return NOTHING


def is_in_variables(ref: RecordRef) -> bool:
    """Whether a record is a value without arrays: each number is in a variable or known."""
    return not is_memory(ref.store) and not any(leaf.counts for leaf, _ in _parts(ref))


def is_memory(store: RecordStore) -> bool:
    """Whether records lie in an array, rather than in variables of their own."""
    return bool(store.bases) or store.is_array


# --- whole records --------------------------------------------------------------------------------


def store_record(
    lowering: FunctionLowering, target: RecordRef, argument: t.Argument, span: Span
) -> Value:
    """Store a record, or a tuple of its fields, into the place of another."""
    if isinstance(argument, ir.Var) and isinstance(lowering.type_of(argument), types.BaseTuple):
        fills.store(lowering, target, argument, lowering.type_of(argument), span)
        return NOTHING
    copy_record(lowering, target, _record(lowering, argument), span)
    return NOTHING


def _parts(ref: RecordRef) -> Iterator[tuple[Leaf, tuple[int, ...]]]:
    """The leaves below a place, and the extents of the fixed arrays between."""
    passed = len(ref.indices) - ref.store.is_array
    for leaf in leaves(ref.store.record):
        if leaf.path[: len(ref.path)] == ref.path:
            yield leaf, leaf.counts[passed:]


def copy_record(
    lowering: FunctionLowering, target: RecordRef, source: RecordRef, span: Span
) -> None:
    """Store every number of a record: all are read before the first is written, but for arrays.

    Of a variant only the tag and the case that it is of are read from memory, and written to it.
    """
    emitter = lowering.emitter
    for cell in (*target.indices, *source.indices):
        emitter.bind_cell(cell)
    emitter.settle_memory()
    tags = variants.Tags(lowering, source, span)
    moves: list[tuple[Leaf, tuple[Expr, ...], Expr, Expr]] = []
    long: list[tuple[Leaf, Leaf, tuple[int, ...]]] = []
    for (ours, counts), (theirs, _) in zip(_parts(target), _parts(source), strict=True):
        if math.prod(counts) > _MOST_UNROLLED:
            long.append((ours, theirs, counts))
            continue
        for indices in variants.keys(counts):
            inner = tuple(map(int64, indices))
            from_here = (*_expressions(source), *inner)
            value, guard = tags.value(theirs, from_here, indices)
            moves.append((ours, (*_expressions(target), *inner), emitter.bind(value), guard))
    for _, group in itertools.groupby(moves, key=lambda move: id(move[3])):
        together = list(group)

        def write_all(together: list[Any] = together) -> None:
            for leaf, place, value, _ in together:
                write(lowering, target.store, leaf, place, value, span)

        _write_guarded(lowering, target.store, together[0][3], write_all, span)
    for ours, theirs, counts in long:

        def each(inner: tuple[Expr, ...], ours: Leaf = ours, theirs: Leaf = theirs) -> None:
            from_here = (*_expressions(source), *inner)
            value, guard = tags.value(theirs, from_here, None)
            there = (*_expressions(target), *inner)

            def write_one() -> None:
                write(lowering, target.store, ours, there, value, span)

            _write_guarded(lowering, target.store, guard, write_one, span)

        tags.prepare(theirs, _expressions(source))
        in_loops(lowering, counts, each, span)


def _write_guarded(
    lowering: FunctionLowering,
    store: RecordStore,
    guard: Expr,
    write_all: Callable[[], None],
    span: Span,
) -> None:
    """Write to memory if the guard holds; to variables in any case."""
    if is_memory(store):
        variants.guarded(lowering, guard, write_all, span)
    else:
        write_all()


def in_loops(
    lowering: FunctionLowering,
    counts: tuple[int, ...],
    each: Callable[[tuple[Expr, ...]], None],
    span: Span | None,
    inner: tuple[Expr, ...] = (),
) -> None:
    """Do something for each tuple of indices below the counts."""
    if not counts:
        each(inner)
        return
    var = lowering.ids.var("k", INT64)
    with lowering.emitter.body() as collected:
        in_loops(lowering, counts[1:], each, span, (*inner, VarRef(var)))
    body: tuple[Stmt, ...] = tuple(collected)
    bounds = int64(0), int64(counts[0]), int64(1)
    lowering.emitter.emit(For(var, *bounds, Direction.UPTO, body, span=span))


# --- values ---------------------------------------------------------------------------------------


def new_value(lowering: FunctionLowering, record: Record, name: str) -> RecordRef:
    """Variables for a record of its own; they hold nothing yet."""
    word = "record" if name == "t" else name
    apart: dict[Path, Var] = {}
    for leaf in leaves(record):
        text = f"{word}.{'.'.join(leaf.path)}"
        if not leaf.counts:
            apart[leaf.path] = lowering.ids.var(text, leaf.scalar, mutable=True)
            continue
        var = lowering.ids.var(text, Array(leaf.scalar, MemSpace.LOCAL))
        created = ArrayCreate(leaf.scalar, int64(leaf.count), MemSpace.LOCAL)
        lowering.scope.locals.append(LocalDecl(var, created))
        apart[leaf.path] = var
    return RecordRef(RecordStore(record, {}, apart, False), (), ())


def _make(
    lowering: FunctionLowering,
    operation: t.Operation,
    names: tuple[str, ...],
    statement: Statement,
) -> Value:
    span = lowering.span(statement)
    record = operation.result.root
    made = new_value(lowering, record, lowering.name_of(statement.target.name))
    numbers: dict[Path, Expr] = {}
    fields = dict(record.fields)
    for k, (name, wanted) in enumerate(zip(names, operation.operands, strict=True)):
        if isinstance(fields[name], FixedArray) or isinstance(wanted, types.BaseTuple):
            continue
        if is_complex(wanted):
            parts = pairs.bound_parts(lowering, complexes.operand(lowering, operation, k))
            numbers |= {(name, each): part for each, part in zip(PART_NAMES, parts, strict=True)}
        elif not isinstance(wanted, RecordType):
            value = cast(
                lowering.number(operation.arguments[k], wanted), scalar_of(wanted), span=span
            )
            numbers[(name,)] = lowering.emitter.bind(value)
    for leaf in leaves(record):
        if leaf.path[0] not in names:
            clear(lowering, made, leaf, span)
        elif leaf.path in numbers:
            write(lowering, made.store, leaf, (), numbers[leaf.path], span)
    for name, argument, wanted in zip(names, operation.arguments, operation.operands, strict=True):
        place = replace(made, path=(name,))
        if isinstance(wanted, RecordType):
            store_record(lowering, place, argument, span)
        elif isinstance(fields[name], FixedArray) or isinstance(wanted, types.BaseTuple):
            fills.store(lowering, place, argument, wanted, span)
    return made


def clear(lowering: FunctionLowering, made: RecordRef, leaf: Leaf, span: Span) -> None:
    """Set a number, or an array of them, to zero."""
    zero = constant_as(leaf.scalar, 0)
    lowering.emitter.settle_memory()
    in_loops(
        lowering,
        leaf.counts,
        lambda inner: write(lowering, made.store, leaf, inner, zero, span),
        span,
    )


def words(name: str, record: Record) -> list[tuple[str, Scalar]]:
    """A name and a type for every number of a record that is passed or returned."""
    found = []
    for leaf in leaves(record):
        word = f"{name}.{'.'.join(leaf.path)}"
        if not leaf.counts:
            found.append((word, leaf.scalar))
        else:
            found += [(f"{word}{k}", leaf.scalar) for k in range(leaf.count)]
    return found


def numbers_of(lowering: FunctionLowering, value: RecordRef) -> list[Expr]:
    """Every number of a record, to be passed or returned."""
    found: list[Expr] = []
    for cell in value.indices:
        lowering.emitter.bind_cell(cell)
    parts = list(_parts(value))
    total = sum(math.prod(counts) for _, counts in parts)
    if total > MOST_PASSED:
        raise lowering.refuse(
            f"a record of {total} numbers as an argument or a result (at most {MOST_PASSED})",
            lowering.current,
            "pass the array and the index",
        )
    tags = variants.Tags(lowering, value, None)
    for leaf, counts in parts:
        for indices in variants.keys(counts):
            place = (*_expressions(value), *map(int64, indices))
            found.append(tags.value(leaf, place, indices)[0])
    return found


def owned(lowering: FunctionLowering, value: Value, kind: types.Type, name: str) -> Value:
    """Records out of the numbers that stand for them in a parameter or a result.

    Those numbers are the record's variables, unless it is changed or has arrays.
    """
    if isinstance(kind, types.BaseTuple) and isinstance(value, TupleValue):
        pairs = zip(value.items, kind.types, strict=True)
        return TupleValue(tuple(owned(lowering, item, part, name) for item, part in pairs))
    if not isinstance(kind, RecordType) or not isinstance(value, TupleValue):
        return value
    record = kind.root
    given = [cell.expr for cell in value.items if isinstance(cell, Cell)]
    if not changes_values(lowering.typed) and not any(leaf.counts for leaf in leaves(record)):
        variables = [expr.var for expr in given if isinstance(expr, VarRef)]
        pairs_of = zip(leaves(record), variables, strict=True)
        apart = {leaf.path: var for leaf, var in pairs_of}
        return RecordRef(RecordStore(record, {}, apart, False), (), ())
    made = new_value(lowering, record, name)
    numbers = iter(given)
    for leaf in leaves(record):
        for indices in itertools.product(*map(range, leaf.counts)):
            place = tuple(map(int64, indices))
            write(lowering, made.store, leaf, place, next(numbers), None)
    return made


def changes_values(typed: t.Typed) -> bool:
    """Whether a function stores into a field of a value."""
    return any(
        isinstance(operation.what, t.SetField) and is_value(operation.operands[0])
        for operation in typed.operations.values()
    )


def copy_phi(
    lowering: FunctionLowering, target: ir.Var, incoming: ir.Var, phi: Phi
) -> list[tuple[Var, Cell, object]]:
    """The copies that give a phi of values what it holds; arrays are copied at once."""
    value = lowering.read(incoming)
    if not isinstance(value, RecordRef):
        return []
    known = lowering.environment.get(target.name)
    if not isinstance(known, RecordRef):
        kind = lowering.type_of(target)
        word = "t" if is_temporary(target.name) else user_name(target.name)
        known = lowering.environment[target.name] = new_value(lowering, kind.root, word)
    if known.store is value.store and known.path == value.path:
        return []
    moves: list[tuple[Var, Cell, object]] = []
    span = lowering.span(phi)
    for (ours, counts), (theirs, _) in zip(_parts(known), _parts(value), strict=True):
        if not counts:
            number = read(lowering, value.store, theirs, _expressions(value), span)
            moves.append((known.store.apart[ours.path], Cell(number), phi))
            continue
        lowering.emitter.settle_memory()
        in_loops(
            lowering,
            counts,
            lambda inner, ours=ours, theirs=theirs: write(  # type: ignore[misc] # bound now
                lowering,
                known.store,
                ours,
                inner,
                read(lowering, value.store, theirs, (*_expressions(value), *inner), span),
                span,
            ),
            span,
        )
    return moves
