"""Cooperative matrices in emulation: every thread of a warp has the whole fragment.

The threads of a warp wait for each other before each operation, and must be at the same one and
name the same place; then each does it for itself, but for stores, which the first one does. The
arithmetic is Python's own: its integers, and its floats in the order of the inner dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sarek_numba.frontend.matrices import Config
from sarek_numba.verify.emulation.arrays import EmulatedArray
from sarek_numba.verify.emulation.numbers import convert


class EmulatedFragment:
    """A thread's copy of a fragment: its configuration, its use, its components as Python's."""

    def __init__(self, config: Config, use: str) -> None:
        self.config = config
        self.use = use
        rows = config.k if use == "b" else config.m
        self.shape = rows, config.k if use == "a" else config.n
        self.dtype = np.dtype(getattr(config, use))
        self.values: Any = np.zeros(self.shape, self.dtype)


def operate(operation: str, operands: tuple[Any, ...], meet: Callable[[Any], int]) -> None:
    """Do an operation; `meet` waits for the warp, which must agree, and gives the lane."""
    fragment = operands[0]
    match operation:
        case "fill":
            value = convert(operands[1], fragment.dtype)
            meet(value.tobytes())
            fragment.values = np.full(fragment.shape, value, fragment.dtype)
        case "muladd":
            meet(None)
            fragment.values = _multiply_add(fragment.config, *operands[1:])
        case _:
            _, array, index, stride, layout = operands
            lane = meet((index, int(stride), layout))
            if operation == "load" or lane == 0:
                _move(operation, fragment, array, index, int(stride), layout)


def _move(
    operation: str, fragment: EmulatedFragment, array: Any, index: Any, stride: int, layout: str
) -> None:
    """Copy between a fragment and an array's memory. Raises IndexError, as NumPy does."""
    held = array.array if isinstance(array, EmulatedArray) else array
    flat = held.reshape(-1, order="A")
    assert np.shares_memory(flat, held) or not held.size, "the array has gaps"
    subscripts = index if isinstance(index, tuple) else (index,)
    strides = [step // held.itemsize for step in held.strides]
    first = sum(
        (int(each) + extent * (each < 0)) * step
        for each, extent, step in zip(subscripts, held.shape, strides, strict=True)
    )
    row, column = np.indices(fragment.shape)
    outer, inner = (column, row) if layout == "column_major" else (row, column)
    place = first + outer * stride + inner
    if operation == "load":
        fragment.values = flat[place]
    else:
        flat[place] = fragment.values


def _multiply_add(config: Config, a: Any, b: Any, c: Any) -> Any:
    result = np.dtype(config.result)
    total, left, right = map(_numbers, (c, a, b))
    for i, j in np.ndindex(config.m, config.n):
        for k in range(config.k):
            total[i][j] += left[i][k] * right[k][j]
    if result.kind not in "iu":
        with np.errstate(all="ignore"):
            rounded = [[convert(each, result) for each in line] for line in total]
        return np.array(rounded, result)
    ends = np.iinfo(result)
    low, span = int(ends.min), 1 << ends.bits
    if config.saturating:
        kept = [[min(max(each, low), int(ends.max)) for each in line] for line in total]
    else:
        kept = [[(each - low) % span + low for each in line] for line in total]
    return np.array(kept, result)


def _numbers(fragment: EmulatedFragment) -> Any:
    """The components as Python's numbers: integers, or floats of 64 bits."""
    values = fragment.values
    return (values if values.dtype.kind in "iu" else values.astype(np.float64)).tolist()
