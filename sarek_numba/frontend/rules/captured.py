"""Records from around a kernel: constants there, which nothing changes."""

from __future__ import annotations

import numpy as np

from sarek_numba.errors import ReadOnlyWrite, UnsupportedConstruct
from sarek_numba.frontend.records import RecordType, value_of
from sarek_numba.frontend.typed import Type
from sarek_numba.frontend.weak import Refusal
from sarek_numba.ir.records import leaves
from sarek_numba.ir.types import MemSpace
from sarek_numba.ir.variants import canonical, is_variant


def type_of_record(value: np.void) -> Type:
    """The type of a record that a kernel finds around it: a reference to what is read alone.

    In Python a change of it would be seen by all threads and by the host.
    """
    from sarek_numba.frontend.rules.types import numba_type  # which knows of records

    record = numba_type(value.dtype).record
    if any(leaf.counts for leaf in leaves(record)):
        raise Refusal(
            "a record from around the kernel has arrays in it",
            "pass it as an argument, or make it in the kernel",
            UnsupportedConstruct,
        )
    if is_variant(record):
        return value_of(record)
    return RecordType(canonical(record), "reference", MemSpace.LOCAL, True, by_bytes=False)


def refuse_change(owner: RecordType) -> None:
    """Refuse a store into a record from around the kernel."""
    if owner.is_captured:
        raise Refusal(
            "this record is from around the kernel, and a constant in it",
            "change a copy: r = r.copy()",
            ReadOnlyWrite,
        )
