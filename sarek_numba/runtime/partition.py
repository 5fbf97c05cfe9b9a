"""Vectors over several devices: consecutive rows for each, in the memory of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from sarek_numba.runtime.registry import Device, device

AnyVector = TypeVar("AnyVector", bound=Any)


def row_bounds(rows: int, parts: int) -> list[tuple[int, int]]:
    """First and past-the-last row of each part; the first ones have one more where it must be."""
    least, more = divmod(rows, parts)
    sizes = [least + (k < more) for k in range(parts)]
    return list(pairwise(accumulate(sizes, initial=0)))


def partition(vector: AnyVector, devices: Sequence[str | Device]) -> list[AnyVector]:
    """A part along axis 0 for each device, brought there; the last ones may be empty.

    Raises UnknownDevice before anything moves, ValueError without devices or without axes.
    """
    if isinstance(devices, str | Device):
        raise TypeError("partition takes several devices\n  hint: v.partition([device, other])")
    targets = [device(which) for which in devices]
    if not targets or not vector.ndim:
        missing = "axes of the vector" if targets else "devices"
        raise ValueError(f"partition needs {missing}, and there are none")
    parts = [vector[first:last] for first, last in row_bounds(vector.shape[0], len(targets))]
    for part, target in zip(parts, targets, strict=True):
        part.to(target)
    return parts
