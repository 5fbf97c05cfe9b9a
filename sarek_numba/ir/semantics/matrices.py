"""The meaning of a multiply-add of cooperative matrices.

Integers: exact sums, of which the result has the value modulo 2^n, or with saturation the nearest
number that it holds. Floats: sums in float64, `c` first and then the products in the order of the
inner dimension, rounded to the result once; a device may differ from that within the bound of
`docs/numerics.md`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.ir.matrices import sums_fit
from sarek_numba.ir.semantics.arrays import dtype_of
from sarek_numba.ir.semantics.casts import conversion
from sarek_numba.ir.statements import CoopmatConfig
from sarek_numba.ir.types import Scalar

Matrices = npt.NDArray[Any]


def multiply_add(config: CoopmatConfig, a: Matrices, b: Matrices, c: Matrices) -> Matrices:
    """c + a @ b for stacks of matrices: the last two axes are rows and columns."""
    if config.accumulation_is_exact:
        return _integers(config, a, b, c)
    with np.errstate(all="ignore"):
        total = c.astype(np.float64)
        left, right = a.astype(np.float64), b.astype(np.float64)
        for k in range(config.k):
            total = total + left[..., :, k, None] * right[..., None, k, :]
        return converted(config.result, total)


def converted(result: Scalar, total: Matrices) -> Matrices:
    """Sums in float64 as components, rounded once."""
    shape = total.shape
    found: Matrices = conversion(Scalar.FLOAT64, result)(total.reshape(-1))
    return found.reshape(shape)


def _integers(config: CoopmatConfig, a: Matrices, b: Matrices, c: Matrices) -> Matrices:
    result = dtype_of(config.result)
    wide: Any = np.int64 if sums_fit(config, 63) else object
    total: Matrices = c.astype(wide) + np.matmul(a.astype(wide), b.astype(wide))
    if config.saturating:
        low, high = config.result.minimum, config.result.maximum
        kept: Matrices = np.clip(total, low, high).astype(result)
        return kept
    modulus = 1 << config.result.bits
    if wide is object:
        wrapped: Matrices = (total % modulus).astype(f"u{result.itemsize}")
        return wrapped.view(result)
    return total.astype(result)
