"""Copies of a launch's arguments that keep what the arrays share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sarek_numba.runtime.hosted import array_on_host
from sarek_numba.runtime.memory import address, arrange, own_bytes


def copies(values: Sequence[Any]) -> list[Any]:
    """The values with every array and vector copied to NumPy's: same layout, flags, overlaps.

    Raises InvalidArgument where a launch would, for arrays that no device can bind.
    """
    values = [array_on_host(value) for value in values]
    positions = [k for k, value in enumerate(values) if isinstance(value, np.ndarray)]
    arrays = [values[k] for k in positions]
    copied = list(values)
    for region in arrange(arrays, [str(k) for k in positions]).regions:
        memory = own_bytes(region, arrays, writable=False).copy()
        for member in region.members:
            array = arrays[member]
            offset = address(array) - region.start if array.size else 0
            twin: Any = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
            twin.flags.writeable = array.flags.writeable
            copied[positions[member]] = twin
    return copied
