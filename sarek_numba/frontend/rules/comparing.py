"""Rules of `==` and `!=` of records: all their numbers are compared, as in NumPy."""

from __future__ import annotations

import operator
from typing import Any

from numba.core import types

from sarek_numba.frontend.records import RecordType
from sarek_numba.frontend.typed import CompareRecords, Operation, Type
from sarek_numba.frontend.weak import Refusal
from sarek_numba.ir.records import alike
from sarek_numba.ir.variants import has_variants


def compared(function: Any, left: Type, right: Type) -> Operation | None:
    """The comparison of two records; None of anything else, which others refuse."""
    if not (isinstance(left, RecordType) and isinstance(right, RecordType)):
        return None
    if has_variants(left.record) or has_variants(right.record):
        return None
    if not alike(left.record, right.record):
        raise Refusal("these records have other fields than each other", "compare their fields")
    return Operation(CompareRecords(function is operator.ne), (left, right), types.boolean)
