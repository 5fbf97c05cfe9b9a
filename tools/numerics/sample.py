"""Arguments at which a function is measured: the same on every machine, by function and type.

A third are random bit patterns, which reach every magnitude, subnormals, infinities and NaNs; the
rest lie in the ranges where the function is used and around the points where it is hard. All
special values come first, so that a shorter sample has them too.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from tools.numerics.functions import Function

SIZE = 20_000
Arguments = tuple[np.ndarray, ...]


def special(dtype: np.dtype[Any]) -> np.ndarray:
    """Zeros, infinities, NaN, ends of the subnormals and of the range, small whole and halves."""
    info = np.finfo(dtype)
    positive = [0.0, info.smallest_subnormal, info.tiny, info.max, info.eps, 1.0, np.inf]
    positive += [0.5, 1.5, 2.0, 2.5, 3.0, 4.0, 10.0, 2.0**24, 2.0**24 - 1, 2.0**53 - 1, 1e30]
    return np.array([s * value for value in positive for s in (1, -1)] + [np.nan], dtype)


def arguments(function: Function, dtype: np.dtype[Any]) -> Arguments:
    """`SIZE` rows or a little more: an array for each operand."""
    seed = zlib.crc32(f"{function.name} {dtype.name}".encode())
    random = np.random.default_rng(seed)
    if function.arity == 1:
        head = np.concatenate([special(dtype), _whole(dtype), _near(function, dtype)])
        tail = _random(function, dtype, random, SIZE - len(head))
        return (np.concatenate([head, random.permutation(tail)]),)
    values = np.concatenate([special(dtype), np.array(function.points, dtype)])
    head = np.repeat(values, len(values)), np.tile(values, len(values))
    rest = SIZE - len(head[0])
    order = random.permutation(rest)
    return tuple(
        np.concatenate([first, _random(function, dtype, random, rest)[order]]) for first in head
    )


def shorter(rows: Arguments, dtype: np.dtype[Any], size: int) -> Arguments:
    """About `size` of the rows, the special values of one operand among them."""
    first = len(special(dtype))
    step = max(1, (len(rows[0]) - first) // size)
    return tuple(np.concatenate([column[:first], column[first::step]]) for column in rows)


def _whole(dtype: np.dtype[Any]) -> np.ndarray:
    return np.arange(-20, 20.5, 0.5).astype(dtype)


def _near(function: Function, dtype: np.dtype[Any]) -> np.ndarray:
    """Each point with its 12 neighbours on either side, and others further off."""
    steps = np.concatenate([np.arange(13), 1 << np.arange(4, 22)]).astype(np.int64)
    steps = np.concatenate([steps, -steps[1:]])
    integer = np.dtype(f"i{dtype.itemsize}")
    points = [p for point in function.points for p in (point, -point) if p]
    near = [(np.array(p, dtype).view(integer) + steps.astype(integer)).view(dtype) for p in points]
    return np.concatenate([np.empty(0, dtype), *near])


def _random(
    function: Function, dtype: np.dtype[Any], random: np.random.Generator, size: int
) -> np.ndarray:
    bits = np.dtype(f"u{dtype.itemsize}")
    patterns = random.integers(0, np.iinfo(bits).max, size // 3, bits, endpoint=True).view(dtype)
    moderate = np.exp2(random.uniform(-30, 12, size // 6)) * random.choice([-1.0, 1.0], size // 6)
    parts = [patterns, moderate.astype(dtype)]
    left = size - sum(map(len, parts))
    for k, (low, high) in enumerate(function.ranges):
        count = left // len(function.ranges) if k else left - left // len(function.ranges) * (
            len(function.ranges) - 1
        )  # fmt: skip
        parts.append(random.uniform(low, high, count).astype(dtype))
    return np.concatenate(parts)
