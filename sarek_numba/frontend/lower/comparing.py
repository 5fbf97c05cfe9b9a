"""Lowering of `==` and `!=` of records: their numbers are compared up to the first that differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sarek_numba.frontend.lower import records
from sarek_numba.frontend.lower.operators import choose, compare
from sarek_numba.frontend.lower.values import RecordRef
from sarek_numba.frontend.records import numbers
from sarek_numba.ir.nodes import BinOp, Expr, Unary, UnOp, constant
from sarek_numba.ir.records import type_at
from sarek_numba.ir.types import BOOL, FixedArray, Record
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering


def compare_records(
    lowering: FunctionLowering, left: RecordRef, right: RecordRef, differ: bool, span: Span
) -> Expr:
    """Whether two records are equal, or whether they differ."""
    kind = type_at(left.store.record, left.path)
    while isinstance(kind, FixedArray):
        kind = kind.element
    assert isinstance(kind, Record)
    count = len(numbers(kind))
    if count > records.MOST_PASSED:
        raise lowering.refuse(
            f"a comparison of records of {count} numbers (at most {records.MOST_PASSED})",
            lowering.current,
            "compare their fields, in a loop",
        )
    pairs = zip(
        records.numbers_of(lowering, left), records.numbers_of(lowering, right), strict=True
    )
    equal: Expr = constant(BOOL, True)
    for ours, theirs in reversed(list(pairs)):
        same = compare(BinOp.EQ, ours, theirs, lowering.emitter.bind, span)
        equal = choose(same, equal, constant(BOOL, False), span)
    return Unary(UnOp.NOT, equal, span=span) if differ else equal
