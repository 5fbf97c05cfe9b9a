"""Vectors for other libraries of CUDA: `__cuda_array_interface__`, version 3.

Numba's documentation, "CUDA Array Interface (Version 3)". The memory is that of a vector's own
buffer on a CUDA device; nothing waits for whoever has it, so all that was given to the device is
done before, and where it may be written every other copy is stale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.runtime.memory import address
from sarek_numba.runtime.registry import Device, devices_of

if TYPE_CHECKING:
    from sarek_numba.runtime.vector import Vector

BACKEND = "cuda"


def cuda_array_interface(vector: Vector) -> dict[str, Any]:
    """The elements on the CUDA device that has them, or on the first one.

    AttributeError where there is none, and for elements that the protocol has no name for.
    """
    array = vector._array
    present = devices_of(BACKEND)
    if not present or np.dtype(array.dtype.str) != array.dtype:
        raise AttributeError("__cuda_array_interface__")
    return {
        "version": 3,
        "shape": array.shape,
        "typestr": array.dtype.str,
        "strides": None if array.flags.c_contiguous else array.strides,
        "data": (_exported(vector, _home(vector, present)), vector.readonly),
        "stream": None,  # there is nothing to wait for
    }


def _home(vector: Vector, present: tuple[Device, ...]) -> Device:
    return next((each for each in present if vector.is_current(each)), present[0])


def _exported(vector: Vector, home: Device) -> int:
    """The address of the first element, which is current there; 0 where there is none."""
    memory, storage, array = home.driver.memory, vector._storage, vector._array
    assert memory is not None, "as every CUDA device has"
    if not array.size:
        return 0
    first, last = vector._span(array)
    with storage.lock:
        buffer = storage.send(memory, first, last)
        if not vector.readonly:
            storage.written_on(memory, first, last)
        start: int = memory.handle(buffer) + address(array) - storage.start
    return start
