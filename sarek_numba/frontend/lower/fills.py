"""Lowering of stores of several numbers at once: tuples and arrays into fields of records.

As in NumPy all that is stored is read before any of it is written. A store is planned first, which
reads it into variables or local arrays, then written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from numba.core import ir, types

from sarek_numba.errors import Diagnostic, TypingError
from sarek_numba.frontend import typed as t
from sarek_numba.frontend.lower import complexes, pairs, records, variants, views
from sarek_numba.frontend.lower.convert import int64
from sarek_numba.frontend.lower.operators import add, multiply
from sarek_numba.frontend.lower.values import (
    Cell,
    RecordRef,
    TupleValue,
    Value,
    View,
    cells_of,
    is_trivial,
)
from sarek_numba.frontend.records import element_type, is_record_array, number_type
from sarek_numba.frontend.weak import scalar_of
from sarek_numba.ir.nodes import (
    ArrayCreate,
    ArrayRead,
    Assert,
    Assign,
    Binary,
    BinOp,
    Const,
    Expr,
    LElement,
    LocalDecl,
    Var,
    VarRef,
)
from sarek_numba.ir.pairs import pair_of
from sarek_numba.ir.records import leaf_at, type_at
from sarek_numba.ir.types import PART_NAMES, Array, ElementType, FixedArray, MemSpace, Record
from sarek_numba.ir.variants import canonical
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering

Write = Callable[[], None]
_MOST_UNROLLED = 4


def store(
    lowering: FunctionLowering, place: RecordRef, argument: t.Argument, wanted: types.Type,
    span: Span,
) -> None:  # fmt: skip
    """Store a value into the place of a field or of a record."""
    assert isinstance(argument, ir.Var)
    value = lowering.converted(lowering.read(argument), lowering.type_of(argument), wanted)
    for cell in place.indices:
        lowering.emitter.bind_cell(cell)
    kind = type_at(place.store.record, place.path)
    if len(place.indices) > place.store.is_array and isinstance(kind, FixedArray):
        passed = len(place.indices) - place.store.is_array
        kind = _inner(place, kind, passed)
    writes = _Plan(lowering, span).of(place, kind, value, wanted)
    lowering.emitter.settle_memory()
    for write in writes:
        write()


def _inner(place: RecordRef, kind: FixedArray, passed: int) -> ElementType:
    """The element of a fixed array, where a place has an index for it too."""
    kinds = (type_at(place.store.record, place.path[: k + 1]) for k in range(len(place.path)))
    return kind.element if passed == sum(isinstance(k, FixedArray) for k in kinds) else kind


class _Plan:
    def __init__(self, lowering: FunctionLowering, span: Span) -> None:
        self.lowering = lowering
        self.span = span

    def of(
        self, place: RecordRef, kind: ElementType, value: Value, type: types.Type
    ) -> list[Write]:
        """Read a value; what writes it."""
        if isinstance(kind, FixedArray):
            return self._array(place, kind.element, kind.shape, 0, value, type)
        number = number_type(kind)
        if number is not None:
            parts = self._parts(value, type, number)
            return [lambda: self._write(place, parts)]
        assert isinstance(kind, Record)
        if isinstance(value, RecordRef):
            source = self._own(value)
            return [lambda: records.copy_record(self.lowering, place, source, self.span)]
        assert isinstance(value, TupleValue)
        fields = zip(kind.fields, value.items, type.types, strict=True)
        return [
            write
            for (name, part), item, inner in fields
            for write in self.of(replace(place, path=(*place.path, name)), part, item, inner)
        ]

    def _own(self, source: RecordRef) -> RecordRef:
        """A record that no store changes."""
        kind = type_at(source.store.record, source.path)
        while isinstance(kind, FixedArray):
            kind = kind.element
        assert isinstance(kind, Record)
        if source.store.cells:
            return source  # the value of a variant
        made = records.new_value(self.lowering, canonical(kind), "record")
        records.copy_record(self.lowering, made, source, self.span)
        return made

    # --- numbers

    def _parts(self, value: Value, type: types.Type, number: types.Type) -> list[Expr]:
        """A number as the number or the two numbers that are stored, read for good."""
        made = self.lowering.converted(value, type, number)
        return [self._read(cell.expr) for cell in cells_of(made)]

    def _read(self, expr: Expr) -> Expr:
        changes = isinstance(expr, VarRef) and expr.var.mutable
        return expr if is_trivial(expr) and not changes else self.lowering.emitter.store(expr)

    def _write(self, place: RecordRef, parts: Sequence[Expr]) -> None:
        """Store the parts of a number."""
        kind = type_at(place.store.record, place.path)
        while isinstance(kind, FixedArray):
            kind = kind.element
        names = [(name,) for name in PART_NAMES] if pair_of(kind) is not None else [()]
        indices = tuple(cell.expr for cell in place.indices)
        for name, part in zip(names, parts, strict=True):
            leaf = leaf_at(place.store.record, (*place.path, *name))
            records.write(self.lowering, place.store, leaf, indices, part, self.span)

    # --- arrays

    def _array(
        self,
        place: RecordRef,
        element: ElementType,
        shape: tuple[int, ...],
        start: int,
        value: Value,
        type: types.Type,
    ) -> list[Write]:
        """Stores into elements from `start` on, in C order, as many as the shape has."""
        if isinstance(value, View):
            return self._copy(place, element, shape, start, value, type)
        if isinstance(value, TupleValue) and isinstance(type, types.BaseTuple):
            writes: list[Write] = []
            step = math.prod(shape[1:])
            for k, (item, inner) in enumerate(zip(value.items, type.types, strict=True)):
                first = start + k * step
                if shape[1:]:
                    writes += self._array(place, element, shape[1:], first, item, inner)
                else:
                    writes += self.of(_at(place, int64(first)), element, item, inner)
            return writes
        parts = self._parts(value, type, number_type(element))
        return [
            lambda: self._each((math.prod(shape),), lambda k: self._put(place, start, k, parts))
        ]

    def _put(
        self, place: RecordRef, start: int, index: tuple[Expr, ...], parts: Sequence[Expr]
    ) -> None:
        self._write(_at(place, add(index[0], int64(start))), parts)

    def _each(self, counts: tuple[int, ...], each: Callable[[tuple[Expr, ...]], None]) -> None:
        records.in_loops(self.lowering, counts, each, self.span)

    def _copy(
        self,
        place: RecordRef,
        element: ElementType,
        shape: tuple[int, ...],
        start: int,
        view: View,
        type: types.Type,
    ) -> list[Write]:
        self._check_shape(shape, view)
        for cell in cells_of(view):
            self.lowering.emitter.bind_cell(cell)
        if is_record_array(type):
            return [lambda: self._copy_records(place, shape, start, view)]
        number, source = number_type(element), element_type(type)
        count = math.prod(shape)

        def read(index: tuple[Expr, ...]) -> list[Expr]:
            found = self._element(view, list(index))
            return [cell.expr for cell in cells_of(self.lowering.converted(found, source, number))]

        if count <= _MOST_UNROLLED:
            writes: list[Write] = []
            for k, index in enumerate(variants.keys(shape)):
                parts = [self._read(part) for part in read(tuple(map(int64, index)))]
                to = _at(place, int64(start + k))
                writes.append(lambda to=to, parts=parts: self._write(to, parts))  # type: ignore[misc] # bound now
            return writes
        held = self._staged(shape, read, 2 if pair_of(element) else 1, number)
        return [lambda: self._each((count,), lambda k: self._put(place, start, k, held(k[0])))]

    def _staged(
        self,
        shape: tuple[int, ...],
        read: Callable[[tuple[Expr, ...]], list[Expr]],
        parts: int,
        number: types.Type,
    ) -> Callable[[Expr], list[Expr]]:
        """Read an array into local ones, of which each part of an element has one."""
        scalar = complexes.complex_parts(number)[0] if parts == 2 else scalar_of(number)
        held: list[Var] = []
        for _ in range(parts):
            var = self.lowering.ids.var("held", Array(scalar, MemSpace.LOCAL))
            created = ArrayCreate(scalar, int64(math.prod(shape)), MemSpace.LOCAL)
            self.lowering.scope.locals.append(LocalDecl(var, created))
            held.append(var)

        def stage(index: tuple[Expr, ...]) -> None:
            flat = _flat(index, shape)
            for var, part in zip(held, read(index), strict=True):
                self.lowering.emitter.emit(
                    Assign(LElement(var, flat, span=self.span), part, span=self.span)
                )

        self.lowering.emitter.settle_memory()
        self._each(shape, stage)
        return lambda k: [ArrayRead(var, k, span=self.span) for var in held]

    def _element(self, view: View, index: list[Expr]) -> Value:
        if view.pairs:
            return complexes.read_element(view, index, self.span)
        flat = views.flat_index(view, index, self.span)
        if view.twin is not None:
            return pairs.read_element(self.lowering, view, flat, self.span)
        return Cell(records.read_element(self.lowering, view, flat, self.span))

    def _copy_records(
        self, place: RecordRef, shape: tuple[int, ...], start: int, view: View
    ) -> None:
        """Store records one by one: a whole array of them lies in the same place, or elsewhere."""
        assert view.records is not None
        source = view.records

        def each(index: tuple[Expr, ...]) -> None:
            flat = views.flat_index(view, index, self.span)
            theirs = replace(source, indices=(*source.indices, Cell(flat)))
            ours = _at(place, add(_flat(index, shape), int64(start)))
            records.copy_record(self.lowering, ours, theirs, self.span)

        self._each(shape, each)

    def _check_shape(self, shape: tuple[int, ...], view: View) -> None:
        """Refuse another shape, or assert the same where it is known at run time only."""
        shown = " x ".join(map(str, shape))
        for axis, (extent, cell) in enumerate(zip(shape, view.shape, strict=True)):
            if isinstance(cell.expr, Const) and cell.expr.value != extent:
                message = (
                    f"an array of {cell.expr.value} along axis {axis} is stored where "
                    f"{extent} are: the field is an array of {shown}"
                )
                hint = "store an array of the same shape"
                raise TypingError(Diagnostic(TypingError, message, self.span, hint))
            if not isinstance(cell.expr, Const):
                self.lowering.emitter.bind_cell(cell)
                same = Binary(BinOp.EQ, cell.expr, int64(extent), span=self.span)
                message = f"the array that is stored has the shape of the field, {shown}"
                self.lowering.emitter.emit(Assert(same, message, span=self.span))


def _at(place: RecordRef, index: Expr) -> RecordRef:
    return replace(place, indices=(*place.indices, Cell(index)))


def _flat(index: tuple[Expr, ...], shape: tuple[int, ...]) -> Expr:
    """The place of an element in C order."""
    flat: Expr = int64(0)
    for axis, each in enumerate(index):
        flat = add(flat, multiply(each, int64(math.prod(shape[axis + 1 :]))))
    return flat
