"""The Numba types of halves: element types of arrays and of fields, and of nothing else.

A half is no number in the sense of `weak.is_number`: no value of a kernel has its type. An element
that is read is a float32 (`value_type`), and what is stored becomes a half at the store.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from sarek_numba.ir.types import Scalar


class Half(types.Type):  # type: ignore[misc] # Numba ships no types
    """float16 or bfloat16 in memory. No `types.Float`: Numba's rules know nothing of it."""

    def __init__(self, scalar: Scalar) -> None:
        self.scalar = scalar
        super().__init__(scalar.value)


FLOAT16 = Half(Scalar.FLOAT16)
BFLOAT16 = Half(Scalar.BFLOAT16)
HALF_TYPES = {half.scalar: half for half in (FLOAT16, BFLOAT16)}


def is_half(type: Any) -> bool:
    """Whether elements of this type are halves."""
    return isinstance(type, Half)


def value_type(element: Any) -> Any:
    """The type of the value that an element of memory is read as."""
    return types.float32 if isinstance(element, Half) else element
