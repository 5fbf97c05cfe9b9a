"""The variants of generated programs: a table of them, of records around them, and their names.

Parts are numbers, records and variants. Each variant has a record that holds one and an array of
two of them. `U3.C1` is a case, `P2` a record that is a part, `H3` the record that holds `U3`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.frontend.variants import variant_of

_KINDS = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "int32", "uint32", "int64", "uint64",
    "float32", "float32", "float64",
)  # fmt: skip
_MOST_NUMBERS = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """A record that is a part of cases: its fields are numbers, and at times a variant."""

    name: str
    fields: tuple[tuple[str, str | Union], ...]
    dtype: np.dtype[Any] = field(compare=False, repr=False)

    @property
    def numbers(self) -> int:
        return sum(1 if isinstance(kind, str) else kind.numbers for _, kind in self.fields)


@dataclass(frozen=True, slots=True)
class Union:
    """A variant: its cases with their parts."""

    name: str
    cases: tuple[tuple[str, tuple[Part, ...]], ...]
    holder: str
    variant: Any = field(compare=False, repr=False)

    @property
    def numbers(self) -> int:
        parts = [part for _, parts in self.cases for part in parts]
        return sum(1 if isinstance(part, str) else part.numbers for part in parts)

    @property
    def parts(self) -> list[Part]:
        return [part for _, parts in self.cases for part in parts]


Part = str | Piece | Union

GLOBALS: dict[str, Any] = {}
PIECES: list[Piece] = []
UNIONS: list[Union] = []
HOLDERS: dict[str, np.dtype[Any]] = {}


def _piece(rng: random.Random, unions: list[Union]) -> Piece:
    fields: list[tuple[str, str | Union]] = [
        (f"f{k}", rng.choice(_KINDS)) for k in range(rng.randint(1, 3))
    ]
    if unions:
        fields.insert(rng.randint(0, len(fields)), ("v", rng.choice(unions)))
    stated = [
        (name, np.dtype(kind) if isinstance(kind, str) else kind.variant.dtype)
        for name, kind in fields
    ]
    return Piece(f"P{len(PIECES)}", tuple(fields), np.dtype(stated, align=rng.random() < 0.5))


def _union(rng: random.Random, made: list[Part]) -> Union:
    """One to four cases of none to three parts; one of them is a made part where some are given."""
    cases: list[list[Part]] = [
        [rng.choice(_KINDS) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        for _ in range(rng.choice((1, 2, 3, 3, 4)))
    ]
    for part in made:
        case = rng.choice(cases)
        case.insert(rng.randint(0, len(case)), part)
    name = f"U{len(UNIONS)}"
    stated = {
        f"C{k}": tuple(
            part if isinstance(part, str) else part.dtype if isinstance(part, Piece)
            else part.variant
            for part in case
        )
        for k, case in enumerate(cases)
    }  # fmt: skip
    variant = sarek.variant(name, {case: parts or None for case, parts in stated.items()})
    frozen = tuple((f"C{k}", tuple(case)) for k, case in enumerate(cases))
    return Union(name, frozen, f"H{len(UNIONS)}", variant)


def _fill_tables() -> None:
    """Four variants of numbers, then such as have records and variants as parts."""
    rng = random.Random(20261201)
    while len(UNIONS) < 14:
        flat = [union for union in UNIONS[:4] if union.numbers < 5]
        made: list[Part] = []
        if len(UNIONS) >= 4:
            kind = len(UNIONS) % 3
            made += [rng.choice(flat)] if kind != 1 else []
            made += [PIECES[-1]] if kind != 0 else []
        union = _union(rng, made)
        if union.numbers > _MOST_NUMBERS or not union.parts:
            continue
        if len(UNIONS) < 4 and union.numbers > 4:
            continue
        UNIONS.append(union)
        PIECES.append(_piece(rng, UNIONS[:4] if len(UNIONS) % 2 and len(UNIONS) > 4 else []))
    for union in UNIONS:
        dtype = union.variant.dtype
        fields = [("n", np.int16), ("v", dtype), ("w", dtype, (2,))]
        HOLDERS[union.holder] = np.dtype(fields, align=rng.random() < 0.5)
        GLOBALS[union.name] = union.variant
        GLOBALS[union.holder] = sarek.record(HOLDERS[union.holder])
    for piece in PIECES:
        GLOBALS[piece.name] = sarek.record(piece.dtype)


_fill_tables()


def fill(rng: np.random.Generator, place: Any, number: Any) -> None:
    """A random value in each element of an array of variants, or of records with some in them.

    `number(dtype)` gives the numbers.
    """
    variant = variant_of(place.dtype)
    for index in np.ndindex(place.shape):
        element = place[(*index, ...)]
        if variant is not None:
            case = int(rng.integers(len(variant.cases)))
            element["tag"] = case
            for part in parts_of(element, case):
                fill(rng, part, number)
        elif element.dtype.names:
            for name in element.dtype.names:
                fill(rng, element[name], number)
        else:
            element[...] = number(element.dtype)


def parts_of(array: Any, case: int) -> list[Any]:
    """The parts of a case, in an array of which every element has that one."""
    names = array.dtype.names
    whole = array[names[1 + case]]
    count = len(variant_of(array.dtype).cases[case].parts)
    return [whole] if count == 1 else [whole[name] for name in whole.dtype.names or ()]
