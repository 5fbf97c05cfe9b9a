"""Lowering of records from around a kernel: a constant for each number."""

from __future__ import annotations

from typing import Any

from numba.core import types

from sarek_numba.frontend.lower.convert import constant_as
from sarek_numba.frontend.lower.values import Cell, RecordRef, RecordStore
from sarek_numba.ir.records import leaves, numbers_of, record_of
from sarek_numba.span import Span


def record_of_constants(place: Any, kind: types.Type, span: Span | None) -> RecordRef:
    """A record, or a value of a variant, as an array without axes holds it."""
    made = RecordStore(kind.root, {}, {}, False)
    numbers = numbers_of(record_of(place.dtype), place)
    for leaf, number in zip(leaves(kind.root), numbers, strict=True):
        made.cells[leaf.path] = Cell(constant_as(leaf.scalar, number.item(), span))
    return RecordRef(made, (), ())
