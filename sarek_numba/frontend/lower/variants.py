"""Lowering of variants. A value does not change, so it is an expression for each of its numbers.

All numbers have one, those of cases that the value is not of zero: so a value is copied, passed and
joined without a look at its tag. Memory is another matter. There a part of another case may be
bytes of any kind, or nothing at all, so what is read and what is written depends on the tag.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from numba.core import ir

from sarek_numba.frontend import typed as t
from sarek_numba.frontend.complexes import is_complex
from sarek_numba.frontend.lower import complexes, pairs, records
from sarek_numba.frontend.lower.convert import cast, constant_as, int64, widened
from sarek_numba.frontend.lower.operators import choose as choose_expr
from sarek_numba.frontend.lower.values import Cell, RecordRef, RecordStore, Value
from sarek_numba.frontend.records import RecordType
from sarek_numba.frontend.weak import scalar_of
from sarek_numba.ir.nodes import (
    ArrayCreate,
    Assert,
    Binary,
    BinOp,
    Const,
    Expr,
    If,
    LocalDecl,
    Stmt,
    Var,
    constant,
)
from sarek_numba.ir.pairs import pair_of
from sarek_numba.ir.records import Leaf, Path, leaf_at, leaves, type_at
from sarek_numba.ir.types import BOOL, PART_NAMES, Array, MemSpace, Record, Scalar
from sarek_numba.ir.variants import (
    TAG_FIELD,
    canonical,
    guards,
    is_tag,
    part_path,
    payload,
    variant_name,
)
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering
    from sarek_numba.frontend.regions import Statement

NEVER = constant(BOOL, False)
_Needed = tuple[tuple[Path, int], ...]


def lower_variant(
    lowering: FunctionLowering, operation: t.Operation, statement: Statement
) -> Value:
    """The value of an operation on variants."""
    span = lowering.span(statement)
    what = operation.what
    if isinstance(what, t.MakeVariant):
        return _make(lowering, operation, what.case, span)
    (argument,) = operation.arguments
    assert isinstance(argument, ir.Var)
    subject = lowering.read(argument)
    assert isinstance(subject, RecordRef)
    if isinstance(what, t.IsCase):
        tag = leaf_at(subject.store.record, (*subject.path, TAG_FIELD))
        return Cell(_is(records.read(lowering, subject.store, tag, (), span), what.case, span))
    assert isinstance(what, t.GetPart)
    path = (*subject.path, *what.path)
    if pair_of(type_at(subject.store.record, path)) is not None:
        return pairs.read_pair(lowering, subject.store, path, (), span)
    if isinstance(type_at(subject.store.record, path), Record):
        return replace(subject, path=path)
    leaf = leaf_at(subject.store.record, path)
    return Cell(widened(records.read(lowering, subject.store, leaf, (), span), span))


# --- what depends on tags -------------------------------------------------------------------------


class Tags:
    """The tags on the way to the numbers of a record, each read once."""

    def __init__(self, lowering: FunctionLowering, source: RecordRef, span: Span | None) -> None:
        self.lowering = lowering
        self.source = source
        self.span = span
        self.in_memory = records.is_memory(source.store)
        self._known: dict[tuple[_Needed, tuple[int, ...]], Expr] = {}

    def value(
        self, leaf: Leaf, place: tuple[Expr, ...], key: tuple[int, ...] | None
    ) -> tuple[Expr, Expr]:
        """A number at the place that the indices give, zero where it has no value; and the guard,
        whether it has one.

        `key` are the inner indices where they are known, so that no tag is read twice.
        """
        needed = self._needed(leaf)
        guard = self._all(needed, place, key)
        if is_tag(self.source.store.record, leaf.path):
            return self._tag(leaf, needed, guard, place, key), guard
        return self._read(leaf, place, guard), guard

    def prepare(self, leaf: Leaf, place: tuple[Expr, ...]) -> None:
        """Read the tags that all of an array of numbers have in common, before a loop over it."""
        needed = self._needed(leaf)
        while needed and self._inner(needed[-1][0], ()) is None:
            needed = needed[:-1]
        self._all(needed, place, ())

    def _needed(self, leaf: Leaf) -> _Needed:
        found = guards(self.source.store.record, leaf.path)
        return tuple(each for each in found if len(each[0]) > len(self.source.path))

    def _inner(self, path: Path, key: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """The indices that tell a tag from others of its path; None if they are not known."""
        store = self.source.store
        passed = len(self.source.indices) - store.is_array
        count = len(leaf_at(store.record, path).counts) - passed
        if count <= 0:
            return ()
        return None if key is None or len(key) < count else key[:count]

    def _all(self, needed: _Needed, place: tuple[Expr, ...], key: tuple[int, ...] | None) -> Expr:
        """Whether all tags are what they must be."""
        if not needed:
            return constant(BOOL, True)
        (path, case), outer = needed[-1], self._all(needed[:-1], place, key)
        inner = self._inner(path, key)
        known = None if inner is None else self._known.get((needed, inner))
        if known is not None:
            return known
        tag = self._tag(leaf_at(self.source.store.record, path), needed[:-1], outer, place, key)
        made = choose_expr(outer, _is(tag, case, self.span), NEVER, self.span)
        if inner is not None:
            self._known[needed, inner] = made = self.lowering.emitter.bind(made)
        return made

    def _tag(
        self,
        leaf: Leaf,
        needed: _Needed,
        guard: Expr,
        place: tuple[Expr, ...],
        key: tuple[int, ...] | None,
    ) -> Expr:
        name = (*needed, (leaf.path, -1))
        inner = self._inner(leaf.path, key)
        known = None if inner is None else self._known.get((name, inner))
        if known is not None:
            return known
        value = self.lowering.emitter.bind(self._read(leaf, place, guard), "tag")
        if self.in_memory and not self.lowering.emitter.guarded:
            self._check(value, guard, leaf)
        if inner is not None:
            self._known[name, inner] = value
        return value

    def _check(self, tag: Expr, guard: Expr, leaf: Leaf) -> None:
        """Assert that a tag names a case; the host may have left any bytes there."""
        variant = type_at(self.source.store.record, leaf.path[:-1])
        while not isinstance(variant, Record):
            variant = variant.element  # type: ignore[union-attr] # a fixed array of variants
        count = constant(Scalar.UINT32, len(variant.fields) - 1)
        named = Binary(BinOp.LT, cast(tag, Scalar.UINT32), count, span=self.span)
        condition = choose_expr(guard, named, constant(BOOL, True), self.span)
        message = f"the tag of a {variant_name(variant)} names none of its cases"
        self.lowering.emitter.emit(Assert(condition, message, span=self.span))

    def _read(self, leaf: Leaf, place: tuple[Expr, ...], guard: Expr) -> Expr:
        value = records.read(self.lowering, self.source.store, leaf, place, self.span)
        if not self.in_memory:
            return value
        return choose_expr(guard, value, constant_as(leaf.scalar, 0), self.span)


def _is(tag: Expr, case: int, span: Span | None) -> Expr:
    if isinstance(tag, Const):
        return constant(BOOL, tag.value == case)
    return Binary(BinOp.EQ, tag, constant(Scalar.INT32, case), span=span)


def is_always(guard: Expr) -> bool:
    return isinstance(guard, Const) and bool(guard.value)


def is_never(guard: Expr) -> bool:
    return isinstance(guard, Const) and not guard.value


def guarded(
    lowering: FunctionLowering, guard: Expr, write: Callable[[], None], span: Span | None
) -> None:
    """Do what writes memory if the guard holds."""
    if is_never(guard):
        return
    if is_always(guard):
        write()
        return
    with lowering.emitter.body() as collected:
        write()
    then: tuple[Stmt, ...] = tuple(collected)
    lowering.emitter.emit(If(guard, then, (), span=span))


# --- values ---------------------------------------------------------------------------------------


def load(lowering: FunctionLowering, place: RecordRef, span: Span | None) -> RecordRef:
    """The value of a variant that lies in memory, or in a record that may change."""
    kind = type_at(place.store.record, place.path)
    while not isinstance(kind, Record):
        kind = kind.element  # type: ignore[union-attr] # a fixed array of variants
    return _gather(lowering, canonical(kind), place, span)


def _gather(
    lowering: FunctionLowering, record: Record, source: RecordRef, span: Span | None
) -> RecordRef:
    made = RecordStore(record, {}, {}, False)
    for cell in source.indices:
        lowering.emitter.bind_cell(cell)
    _fill(lowering, made, (), source, span)
    return RecordRef(made, (), ())


def _fill(
    lowering: FunctionLowering, made: RecordStore, path: Path, source: RecordRef, span: Span | None
) -> None:
    """The numbers at a path of a new value are those of a record."""
    tags = Tags(lowering, source, span)
    outer = tuple(cell.expr for cell in source.indices)
    passed = len(source.indices) - source.store.is_array
    for leaf in leaves(made.record):
        if leaf.path[: len(path)] != path:
            continue
        theirs = leaf_at(source.store.record, (*source.path, *leaf.path[len(path) :]))
        counts = theirs.counts[passed:]
        if not counts:
            made.cells[leaf.path] = Cell(tags.value(theirs, outer, ())[0])
            continue
        made.apart[leaf.path] = _new_array(lowering, leaf)

        def each(inner: tuple[Expr, ...], leaf: Leaf = leaf, theirs: Leaf = theirs) -> None:
            where = (*outer, *inner)
            value, _ = tags.value(theirs, where, None)
            records.write(lowering, made, leaf, inner, value, span)

        tags.prepare(theirs, outer)
        lowering.emitter.settle_memory()
        records.in_loops(lowering, counts, each, span)


def _new_array(lowering: FunctionLowering, leaf: Leaf) -> Var:
    if lowering.emitter.guarded:
        raise lowering.refuse(
            "a variant with arrays in a conditional expression",
            lowering.current,
            "use an if statement",
        )
    var = lowering.ids.var(".".join(leaf.path), Array(leaf.scalar, MemSpace.LOCAL))
    created = ArrayCreate(leaf.scalar, int64(leaf.count), MemSpace.LOCAL)
    lowering.scope.locals.append(LocalDecl(var, created))
    return var


def _make(lowering: FunctionLowering, operation: t.Operation, case: int, span: Span) -> RecordRef:
    """A value of a case."""
    record = operation.result.root
    made = RecordStore(record, {}, {}, False)
    made.cells[(TAG_FIELD,)] = Cell(constant(Scalar.INT32, case))
    paths = [part_path(record, case, k) for k in range(len(payload(record, case)))]
    given = zip(paths, operation.arguments, operation.operands, strict=True)
    for k, (path, argument, wanted) in enumerate(given):
        if is_complex(wanted):
            items = complexes.operand(lowering, operation, k).items
            for name, cell in zip(PART_NAMES, items, strict=True):
                assert isinstance(cell, Cell)
                made.cells[(*path, name)] = Cell(cell.expr)
        elif isinstance(wanted, RecordType):
            assert isinstance(argument, ir.Var)
            source = lowering.read(argument)
            assert isinstance(source, RecordRef)
            for cell in source.indices:
                lowering.emitter.bind_cell(cell)
            _fill(lowering, made, path, source, span)
        else:
            value = cast(lowering.number(argument, wanted), scalar_of(wanted), span=span)
            made.cells[path] = Cell(value)
    for leaf in leaves(record):
        if leaf.path in made.cells or leaf.path in made.apart:
            continue
        if leaf.counts:
            made.apart[leaf.path] = _new_array(lowering, leaf)
            records.clear(lowering, RecordRef(made, (), ()), leaf, span)
        else:
            made.cells[leaf.path] = Cell(constant_as(leaf.scalar, 0))
    return RecordRef(made, (), ())


def choose(
    lowering: FunctionLowering, condition: Expr, then: RecordRef, orelse: RecordRef, span: Span
) -> RecordRef:
    """One value or another, as a condition says."""
    kind = type_at(then.store.record, then.path)
    assert isinstance(kind, Record)
    record = canonical(kind)
    made = RecordStore(record, {}, {}, False)
    for leaf in leaves(record):
        if leaf.counts:
            raise lowering.refuse(
                "a conditional expression that chooses between variants with arrays",
                lowering.current,
                "use an if statement",
            )
        ours, theirs = (
            records.read(
                lowering, ref.store, leaf_at(ref.store.record, (*ref.path, *leaf.path)), (), span
            )
            for ref in (then, orelse)
        )
        made.cells[leaf.path] = Cell(choose_expr(condition, ours, theirs, span))
    return RecordRef(made, (), ())


def keys(counts: tuple[int, ...]) -> itertools.product[tuple[int, ...]]:
    """All indices below the counts."""
    return itertools.product(*map(range, counts))
