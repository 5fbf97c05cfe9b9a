"""Complex numbers in records: a record of two floats that the user takes for one number.

So all that is known of the numbers of a record holds for their parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sarek_numba.ir.types import PART_NAMES, ElementType, Pair, Record, Scalar

_NAME = "complex"


def pair_record(part: Scalar) -> Record:
    """The record that stands for a complex number with parts of a type."""
    return Record(_NAME, tuple((name, part) for name in PART_NAMES))


def pair_of(kind: ElementType) -> Pair | None:
    """The complex type that a record stands for; None for anything else."""
    if not isinstance(kind, Record) or kind.name != _NAME:
        return None
    part = kind.fields[0][1]
    assert isinstance(part, Scalar)
    return Pair(part)


PAIR_RECORDS = {
    np.dtype(Pair(part).value): pair_record(part) for part in (Scalar.FLOAT32, Scalar.FLOAT64)
}


def field_of(held: Any, name: str) -> Any:
    """A field of an array or an element of NumPy, or a part of a complex one."""
    return held[name] if held.dtype.names is not None else getattr(held, name)
