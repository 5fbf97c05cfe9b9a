"""Constants as text of a C-like language: exact, and of the wanted type.

An integer within int32 may be written bare (`5`) where its neighbour has the type; `typed_literal`
writes it so that it has the type alone (`5L`). Floats are the shortest decimal that reads back as
the same bits.
"""

from __future__ import annotations

import numpy as np

from sarek_numba.codegen.dialect import Dialect
from sarek_numba.ir.nodes import Const
from sarek_numba.ir.types import Scalar

BARE = range(-(2**31) + 1, 2**31)  # what a C compiler reads as a plain int


def bare_literal(value: int) -> str | None:
    """The integer without a suffix; None where it is no plain int."""
    return str(value) if value in BARE else None


def typed_literal(dialect: Dialect, const: Const) -> str:
    """The constant as an expression of exactly its type; negative ones start with a minus."""
    if const.type is Scalar.BOOL:
        return "true" if const.value else "false"
    if const.type.is_float:
        return _float(dialect, const)
    value = int(const.value)
    if const.type.bits < 32:
        return f"({dialect.types[const.type]}){value}"
    suffix = dialect.suffixes[const.type]
    if value < 0 and value == const.type.minimum:  # C has no negative literals
        return f"({value + 1}{suffix} - 1)"
    return f"{value}{suffix}"


def _float(dialect: Dialect, const: Const) -> str:
    value = float(const.value)
    if value != value:
        return dialect.nan[const.type]
    if value in (float("inf"), float("-inf")):
        return ("-" if value < 0 else "") + dialect.infinity[const.type]
    exact = np.float32(value) if const.type is Scalar.FLOAT32 else np.float64(value)
    return str(exact) + dialect.suffixes[const.type]
