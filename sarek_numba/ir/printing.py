"""How `print` in a kernel writes values, and in which order: one definition for all who print.

A value is written as NumPy or Python writes a scalar of its type; what threads print appears by
block, then by thread, then in the order of each thread's program.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from sarek_numba.ir.semantics.arrays import dtype_of
from sarek_numba.ir.types import Scalar


def shown(value: Any, type: Scalar) -> str:
    """A value of a scalar type as text."""
    return str(dtype_of(type).type(value))


def in_thread_order(lines: Iterable[tuple[int, str]]) -> str:
    """The texts of threads, each with the thread's number in the launch, as one text.

    Those of one thread come in its own order.
    """
    return "".join(text for _, text in sorted(lines, key=itemgetter(0)))
