"""Vectors on several devices: `shard`, `gather`, and copies between them, pair by pair.

Bytes go in the memory of devices where that of the destination can read that of the source, else
through the host. Within a capture copies are taken down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sarek_numba.errors import InvalidArgument
from sarek_numba.realize import copies
from sarek_numba.runtime import recorders
from sarek_numba.runtime.partition import row_bounds
from sarek_numba.runtime.registry import Device, device
from sarek_numba.runtime.sharded import ShardedVector, check_alike, check_devices
from sarek_numba.runtime.vector import Vector, empty_vector


def shard(vector: Any, devices: Sequence[str | Device], axis: int | None = 0) -> ShardedVector:
    """A part of a vector, or of an array of NumPy, on each device, in memory of its own.

    The parts are as equal as they can be along `axis`, the first ones larger; where there are fewer
    rows than devices the last ones are empty. Of None each device has all of it. Raises
    UnknownDevice, TypeError for what is no vector or array, InvalidArgument for a device that is
    given twice, for no device and for an axis that is not there.
    """
    targets = check_devices("shard()", devices)
    if not isinstance(vector, Vector | np.ndarray):
        kind = type(vector).__name__
        raise TypeError(f"shard() takes a vector or an array of NumPy, not a {kind}")
    if axis is None:
        sources: list[Any] = [vector] * len(targets)
    else:
        if not -vector.ndim <= axis < vector.ndim:
            raise InvalidArgument(
                f"shard(): axis {axis} is not one of the {vector.ndim} axes of the vector"
            )
        axis %= vector.ndim
        before = (slice(None),) * axis
        bounds = row_bounds(vector.shape[axis], len(targets))
        sources = [vector[(*before, slice(first, last))] for first, last in bounds]
    parts = [empty_vector(source.shape, source.dtype) for source in sources]
    for target, part, source in zip(targets, parts, sources, strict=True):
        copy_to(target, part, source)
        part.to(target)
    return ShardedVector(parts, targets, axis)


def gather(vector: ShardedVector, which: str | Device | None = None) -> Vector:
    """One vector of all elements, on a device if one is named, else on the host.

    Of what each device has wholly it is the first one's. Raises UnknownDevice, TypeError.
    """
    if not isinstance(vector, ShardedVector):
        raise TypeError(
            f"gather() takes what sarek.shard gives, not a {type(vector).__name__}\n"
            "  hint: v.gather() brings the parts of v.partition to the host"
        )
    target = None if which is None else device(which)
    made = empty_vector(vector.shape, vector.dtype)
    if vector.axis is None:
        _bring(target, made, vector.parts[0])
        return made
    before, first = (slice(None),) * vector.axis, 0
    for part in vector.parts:
        last = first + part.shape[vector.axis]
        _bring(target, made[(*before, slice(first, last))], part)
        first = last
    return made if target is None else made.to(target)


def copy_shards(destination: ShardedVector, source: ShardedVector) -> None:
    """Copy each part to the one at the same position, on other devices too.

    Raises InvalidArgument for another number of devices, and for parts of another type or shape.
    """
    there, here = len(destination.parts), len(source.parts)
    if there != here:
        raise InvalidArgument(f"copy: the destination is on {there} devices, the source on {here}")
    pairs = list(zip(destination.devices, destination.parts, source.parts, strict=True))
    for number, (_, to, of) in enumerate(pairs):
        copies.check_pair(f"copy of part {number}", to, of)
        if to.shape != of.shape:
            raise InvalidArgument(
                f"copy of part {number}: the destination has shape {to.shape}, the source "
                f"{of.shape}"
            )
    for target, to, of in pairs:
        copy_to(target, to, of)


def copy_to(target: Device, destination: Vector, source: Any) -> None:
    """Copy to where a device works, or have a capture take that down."""
    if recorders.current.get() is not None:
        destination[...] = source
    else:
        copies.copy(target, destination, source)


def _bring(target: Device | None, destination: Vector, source: Vector) -> None:
    if target is None:
        destination[...] = source
    else:
        copy_to(target, destination, source)


__all__ = ["ShardedVector", "check_alike", "copy_shards", "copy_to", "gather", "shard"]
