"""Random structured dtypes, for the sweeps of layouts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

SHAPES = 2000
REAL = tuple("? i1 u1 i2 u2 i4 u4 i8 u8 f4 f8".split())
NUMBERS = (*REAL, "c8", "c16")


def random_dtype(
    rng: random.Random, align: bool, depth: int = 3, scalars: tuple[str, ...] = REAL
) -> np.dtype[Any]:
    """A record of one to five fields: numbers, records, and arrays of either."""
    fields: list[Any] = []
    for k in range(rng.randint(1, 5)):
        nested = depth > 1 and rng.random() < 0.25
        kind: Any = random_dtype(rng, align, depth - 1, scalars) if nested else rng.choice(scalars)
        shape = rng.choice([(), (), (), (2,), (3,), (2, 2)])
        fields.append((f"f{k}", kind, shape) if shape else (f"f{k}", kind))
    return np.dtype(fields, align=align)


def fill(rng: np.random.Generator, array: Any) -> None:
    """Random numbers in every field; NaNs are left out."""
    if array.dtype.names:
        for name in array.dtype.names:
            fill(rng, array[name])
    elif array.dtype.kind == "f":
        array[...] = rng.normal(size=array.shape) * 100
    elif array.dtype.kind == "c":
        fill(rng, array.real)
        fill(rng, array.imag)
    elif array.dtype.kind == "b":
        array[...] = rng.integers(0, 2, array.shape)
    else:
        info = np.iinfo(array.dtype)
        array[...] = rng.integers(info.min >> 1, info.max >> 1, array.shape)
