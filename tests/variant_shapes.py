"""Random variants and random values of them, for the sweeps of layouts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.frontend.variants import Variant, copy_record, decode, encode, variant_of

SHAPES = 300
_SCALARS = "? i1 u1 i2 u2 i4 u4 i8 u8 f4 f8".split()


def random_variant(rng: random.Random, depth: int = 3) -> Variant:
    """One to five cases of none to three parts: numbers, records and variants."""
    cases = [
        (f"C{k}", tuple(_part(rng, depth) for _ in range(rng.choice([0, 1, 1, 2, 3]))))
        for k in range(rng.randint(1, 5))
    ]
    return sarek.variant("V", cases)


def _part(rng: random.Random, depth: int) -> Any:
    if depth > 1 and rng.random() < 0.2:
        return random_variant(rng, depth - 1)
    if depth > 1 and rng.random() < 0.25:
        return random_record(rng, depth - 1)
    return np.dtype(rng.choice(_SCALARS))


def random_record(rng: random.Random, depth: int) -> np.dtype[Any]:
    """A record of one to three fields: numbers, records, variants, and arrays of them."""
    fields: list[Any] = []
    for k in range(rng.randint(1, 3)):
        part = _part(rng, depth)
        kind = part.dtype if isinstance(part, Variant) else part
        shape = rng.choice([(), (), (), (2,), (5,)])
        fields.append((f"f{k}", kind, shape) if shape else (f"f{k}", kind))
    return np.dtype(fields, align=rng.random() < 0.5)


def fill(rng: np.random.Generator, place: Any) -> None:
    """Something random in each element: a case, and its parts; NaNs are left out."""
    for index in np.ndindex(place.shape):
        _fill(rng, place[(*index, ...)])


def _fill(rng: np.random.Generator, place: Any) -> None:
    variant = variant_of(place.dtype)
    if variant is not None:
        case = variant.cases[rng.integers(len(variant.cases))]
        parts = []
        for kind in case.parts:
            made = np.zeros((), kind)
            fill(rng, made)
            inner = variant_of(kind)
            parts.append(decode(made) if inner else made if kind.names else made[()])
        encode(case.of(tuple(parts)), place)
    elif place.dtype.names:
        for name in place.dtype.names:
            fill(rng, place[name])
    elif place.dtype.kind == "f":
        place[...] = rng.normal() * 100
    elif place.dtype.kind == "b":
        place[...] = rng.integers(0, 2)
    else:
        info = np.iinfo(place.dtype)
        place[...] = rng.integers(info.min >> 1, info.max >> 1)


def moved(array: Any, dtype: np.dtype[Any], made: Any = None) -> Any:
    """The same values where another dtype has them, and no other byte; or in `made`."""
    made = np.zeros(array.shape, dtype) if made is None else made
    for index in np.ndindex(array.shape):
        ours, theirs = made[(*index, ...)], array[(*index, ...)]
        if variant_of(dtype) is not None:
            encode(decode(theirs), ours)
        else:
            copy_record(ours, theirs)
    return made
