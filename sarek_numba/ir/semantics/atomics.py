"""What `atomic inc` and `atomic dec` make of the old value, as CUDA's atomicInc and atomicDec do.

Both compare as unsigned integers of the type's width, so a negative value counts as a large one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Lanes = npt.NDArray[Any]


def increment(old: Lanes, wrap: Lanes) -> Lanes:
    """old + 1, and 0 from `wrap` on."""
    bits, limit = _unsigned(old), _unsigned(wrap)
    one = bits.dtype.type(1)
    result: Lanes = np.where(bits >= limit, bits.dtype.type(0), bits + one).view(old.dtype)
    return result


def decrement(old: Lanes, wrap: Lanes) -> Lanes:
    """old - 1, and `wrap` from 0 and from above `wrap`."""
    bits, limit = _unsigned(old), _unsigned(wrap)
    one = bits.dtype.type(1)
    result: Lanes = np.where((bits == 0) | (bits > limit), limit, bits - one).view(old.dtype)
    return result


def _unsigned(lanes: Lanes) -> Lanes:
    unsigned: Lanes = lanes.view(f"u{lanes.dtype.itemsize}")
    return unsigned
