"""Copies of what launches take, so that a kernel can be tried and nothing of the user's is written.

Arrays that share memory have copies that do, in the same places: memory is copied as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sarek_numba.runtime.memory import address, extent, host_bytes
from sarek_numba.runtime.vector import Vector, vector_of

Buffer: TypeAlias = Vector | npt.NDArray[Any]


def duplicates(
    values: Sequence[Any], written: Iterable[int], *, vectors: bool = False
) -> dict[int, Any]:
    """By position, copies of the arrays and vectors at some positions, and of all that share memory
    with them. With `vectors` those of arrays are vectors, which stay on a device.
    """
    chosen = [values[k] for k in sorted(written) if isinstance(values[k], (Vector, np.ndarray))]
    owners: dict[int, tuple[Any, Any, int]] = {}
    made: dict[int, Any] = {}
    for position, value in enumerate(values):
        if not isinstance(value, (Vector, np.ndarray)) or not any(
            _share(value, other) for other in chosen
        ):
            continue
        owner, start = _whole(value)
        if id(owner) not in owners:
            owners[id(owner)] = owner, _copied(owner, vectors), start
        _, copy, start = owners[id(owner)]
        made[position] = _alike(value, copy, start)
    return made


def _described(value: Buffer) -> Any:
    """The array that describes a buffer's elements."""
    return value._array if isinstance(value, Vector) else value


def _span(value: Buffer) -> tuple[int, int]:
    array = _described(value)
    return extent(array, address(array))


def _share(left: Buffer, right: Buffer) -> bool:
    a, b = _span(left), _span(right)
    return left is right or (a[0] < b[1] and b[0] < a[1])


def _whole(value: Buffer) -> tuple[Any, int]:
    """The memory that a buffer is part of, and where it begins."""
    if isinstance(value, Vector):
        return value._storage, value._storage.start
    base: Any = value
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base, extent(base, address(base))[0]


def _copied(owner: Any, vectors: bool) -> Any:
    if isinstance(owner, np.ndarray):
        start, end = extent(owner, address(owner))
        content = host_bytes(start, end - start, True, [owner])
        return vector_of(content) if vectors else np.array(content)
    owner.fetch(0, owner.host.size)
    return vector_of(owner.host)


def _alike(value: Buffer, copy: Any, start: int) -> Buffer:
    """The same part of a copy."""
    array = _described(value)
    memory = copy._storage.host if isinstance(copy, Vector) else copy
    made: Any = np.ndarray(array.shape, array.dtype, memory, address(array) - start, array.strides)
    return Vector(copy._storage, made) if isinstance(copy, Vector) else made
