"""What all definitions of operators share: NumPy types of scalars, and silence.

A value is a NumPy array of exactly `dtype_of(type)`: one element for each lane, or one element
alone where all lanes agree. Functions broadcast the two and change no operand.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from sarek_numba.ir.types import Scalar

Lanes = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Operator = Callable[..., Lanes]

_DTYPES: dict[Scalar, np.dtype[Any]] = {
    scalar: np.dtype(ml_dtypes.bfloat16 if scalar is Scalar.BFLOAT16 else scalar.value)
    for scalar in Scalar
}


def dtype_of(type: Scalar) -> np.dtype[Any]:
    """The NumPy type that holds values of a scalar type."""
    return _DTYPES[type]


def silent(function: Operator) -> Operator:
    """`function` without NumPy's warnings: every operator is total, so none has anything to say."""

    @functools.wraps(function)
    def quiet(*operands: Lanes) -> Lanes:
        with np.errstate(all="ignore"):
            return function(*operands)

    return quiet


def bare(function: Operator) -> Operator:
    """A `silent` function without its silence, for a caller that is silent itself."""
    inner: Operator = getattr(function, "__wrapped__", function)
    return inner
