"""Complex types: complex64, complex128 and Python's own, and how they meet other numbers.

A complex type is no number in the sense of `weak.is_number`, so that every operation refuses it
which has no rule for it in `rules.complexes`. Its two parts are floats: of type `part_of`.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from sarek_numba.frontend.weak import (
    WEAK_FLOAT,
    Type,
    Weak,
    dtype_of,
    is_number,
    scalar_of,
)
from sarek_numba.ir.types import Scalar


class WeakComplex(types.Hashable):  # type: ignore[misc] # Numba ships no types
    """A Python complex number: weak, as Python's int and float are."""

    described = "a Python complex"

    def __init__(self) -> None:
        super().__init__("Python complex")


WEAK_COMPLEX = WeakComplex()


class ConjugateMethod(types.Hashable):  # type: ignore[misc] # Numba ships no types
    """`z.conjugate`, which is called without arguments; its value is that of z."""

    def __init__(self, owner: Type) -> None:
        self.owner = owner
        self.described = "the method conjugate()"
        super().__init__(f"conjugate of {owner}")


def is_complex(type: Type) -> bool:
    """A complex number, strong or weak."""
    return isinstance(type, (types.Complex, WeakComplex))


def part_of(type: Type) -> Type:
    """The type of the real and of the imaginary part."""
    return WEAK_FLOAT if isinstance(type, WeakComplex) else type.underlying_float


def element_scalar(type: Type) -> Scalar:
    """What the memory of an array with elements of this type is made of."""
    return scalar_of(part_of(type) if is_complex(type) else type)


def promote_complex(left: Type, right: Type) -> Type:
    """The type in which an operation on two numbers, of which one is complex, is done."""
    if _is_weak(left) and _is_weak(right):
        return WEAK_COMPLEX
    if _is_weak(left):
        left, right = right, left
    strong = dtype_of(left)
    if _is_weak(right):
        return from_dtype(np.result_type(strong, 1j))
    return from_dtype(np.promote_types(strong, dtype_of(right)))


def _is_weak(type: Type) -> bool:
    return isinstance(type, (Weak, WeakComplex))


def join_complex(left: Type, right: Type) -> Type | None:
    """The type of a variable that holds both, or None where there is none."""
    if not all(is_complex(type) or is_number(type) for type in (left, right)):
        return None
    strong_real = (not is_complex(type) and not isinstance(type, Weak) for type in (left, right))
    return None if any(strong_real) else promote_complex(left, right)


def default_complex(type: Type) -> Type:
    """NumPy's type of a complex number that it takes by itself."""
    return types.complex128 if isinstance(type, WeakComplex) else type
