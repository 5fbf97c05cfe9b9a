"""Lowering of complex numbers in records: two numbers, each of which lies as the fields do.

Arrays of them are views with a `twin`, for in memory a whole number of records lies between two
elements, and not a whole number of elements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sarek_numba.frontend import typed as t
from sarek_numba.frontend.lower import complexes, records
from sarek_numba.frontend.lower.convert import int64
from sarek_numba.frontend.lower.operators import add
from sarek_numba.frontend.lower.values import Cell, ComplexValue, RecordRef, RecordStore, View
from sarek_numba.ir.nodes import Expr, Var
from sarek_numba.ir.records import Path, leaf_at
from sarek_numba.ir.types import PART_NAMES
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering


def read_pair(
    lowering: FunctionLowering, store: RecordStore, path: Path, indices: tuple[Expr, ...],
    span: Span | None,
) -> ComplexValue:  # fmt: skip
    """A complex number of a record."""
    leaves = (leaf_at(store.record, (*path, name)) for name in PART_NAMES)
    parts = (records.read(lowering, store, leaf, indices, span) for leaf in leaves)
    return ComplexValue(tuple(map(Cell, parts)))


def write_pair(
    lowering: FunctionLowering, store: RecordStore, path: Path, indices: tuple[Expr, ...],
    value: ComplexValue, span: Span | None,
) -> None:  # fmt: skip
    """Store a complex number, of which no part is read after the first store."""
    parts = bound_parts(lowering, value)
    lowering.emitter.settle_memory()
    for name, part in zip(PART_NAMES, parts, strict=True):
        leaf = leaf_at(store.record, (*path, name))
        records.write(lowering, store, leaf, indices, part, span)


def bound_parts(lowering: FunctionLowering, value: ComplexValue) -> list[Expr]:
    """The two parts, each computed once and before what follows."""
    cells = [cell for cell in value.items if isinstance(cell, Cell)]
    return [lowering.emitter.bind(cell.expr) for cell in cells]


def set_field(
    lowering: FunctionLowering, place: RecordRef, path: Path, operation: t.Operation,
    span: Span,
) -> None:  # fmt: skip
    """Store a number into a complex field."""
    value = complexes.operand(lowering, operation, 1)
    indices = tuple(cell.expr for cell in place.indices)
    write_pair(lowering, place.store, path, indices, value, span)


# --- arrays ---------------------------------------------------------------------------------------


def twin_of(store: RecordStore, path: Path) -> tuple[Var, int]:
    """Where the imaginary parts of a field are: their base, and how far behind the real ones."""
    real, imag = (records.steps_of(store, leaf_at(store.record, (*path, n))) for n in PART_NAMES)
    return imag.base, imag.start - real.start


def part_of(view: View, part: int) -> View:
    """The real or the imaginary parts of a view with a twin."""
    assert view.twin is not None
    if part == 0:
        return replace(view, twin=None)
    base, distance = view.twin
    offset = add(view.offset.expr, int64(distance)) if distance else view.offset.expr
    return replace(view, base=base, offset=Cell(offset), twin=None)


def read_element(
    lowering: FunctionLowering, view: View, flat: Expr, span: Span | None
) -> ComplexValue:
    """An element of a view with a twin."""
    assert view.twin is not None
    flat = lowering.emitter.bind(flat)
    base, distance = view.twin
    real = records.read_element(lowering, view, flat, span)
    behind = add(flat, int64(distance)) if distance else flat
    imag = records.read_element(lowering, replace(view, base=base), behind, span)
    return ComplexValue((Cell(real), Cell(imag)))


def write_element(
    lowering: FunctionLowering, view: View, flat: Expr, value: ComplexValue, span: Span | None
) -> None:
    """Store into an element of a view with a twin."""
    assert view.twin is not None
    real, imag = bound_parts(lowering, value)
    flat = lowering.emitter.bind(flat)
    base, distance = view.twin
    lowering.emitter.settle_memory()
    records.write_element(lowering, view, flat, real, span)
    behind = add(flat, int64(distance)) if distance else flat
    records.write_element(lowering, replace(view, base=base), behind, imag, span)
