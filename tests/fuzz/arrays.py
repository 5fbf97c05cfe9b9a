"""The arrays of generated programs: shapes, first values, and how results are compared."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sarek_numba.frontend.variants import has_variants, variant_of
from tests.fuzz.atomics import CELLS
from tests.fuzz.atomics import KINDS as ATOMIC
from tests.fuzz.complexes import POINTS
from tests.fuzz.expressions import COMPLEX, INTEGERS, REALS
from tests.fuzz.halves import HALVES
from tests.fuzz.modes import PLAIN, Mode
from tests.fuzz.programs import Program
from tests.fuzz.records import RECORDS, SHAPES
from tests.fuzz.statements import COLUMNS, OWN
from tests.fuzz.unions import HOLDERS, UNIONS, fill, parts_of
from tests.fuzz.variants import VALUES

# By the name of a parameter of the kernel: every array, whose first axis is cut into groups.
Arrays = dict[str, np.ndarray]

_NARROW = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}

# The type of an array, how much of it a thread has, and the rest of its shape.
_KINDS: dict[str, tuple[np.dtype, int, tuple[int, ...]]] = {
    **{f"x_{kind}": (np.dtype(kind), OWN, ()) for kind in (*INTEGERS, *REALS)},
    **{f"u_{kind}": (np.dtype(kind), OWN, ()) for kind in INTEGERS},
    "z": (np.dtype(bool), OWN, ()),
    "d": (np.dtype(np.int32), 1, (COLUMNS,)),
    "e": (np.dtype(np.float32), 1, (COLUMNS,)),
    **{f"records_{shape.name}": (shape.dtype, RECORDS, ()) for shape in SHAPES},
    **{f"variants_{union.name}": (union.variant.dtype, VALUES, ()) for union in UNIONS},
    **{f"holders_{union.name}": (HOLDERS[union.holder], 1, ()) for union in UNIONS},
    **{kind: (np.dtype(kind), POINTS, ()) for kind in COMPLEX},
    **{f"halves_{kind}": (dtype, HALVES, ()) for kind, dtype in _NARROW.items()},
}
_CELLS = {f"cells_{kind}": np.dtype(kind) for kind in ATOMIC}


def _kind(name: str, mode: Mode) -> tuple[np.dtype, tuple[int, ...]]:
    """The type of an array and the shape of a group's part."""
    if name in _CELLS:
        return _CELLS[name], (CELLS,)
    dtype, own, more = _KINDS[name]
    return dtype, (mode.threads * own, *more)


def arrays_of(program: Program) -> tuple[str, ...]:
    """The kernel's arrays that are a program's x, u, f, z, d, e and extras."""
    x, u, f = program.elements
    return f"x_{x}", f"u_{u}", f"x_{f}", "z", "d", "e", *(name for _, name in program.extras)


def first_values(name: str, seed: int, round: int, mode: Mode = PLAIN) -> np.ndarray:
    """An array's part of a group: small numbers, and some special ones."""
    rng = np.random.default_rng((seed, round, zlib.crc32(name.encode())))
    dtype, shape = _kind(name, mode)
    made = np.zeros(shape, dtype)
    if has_variants(dtype):
        pools = {kind: iter(()) for kind in map(np.dtype, (bool, *INTEGERS, *REALS))}

        def number(kind: np.dtype) -> np.generic:
            value = next(pools[kind], None)
            if value is None:
                pools[kind] = iter(_values(rng, kind, (64,), 0.15))
                return number(kind)
            return value

        fill(rng, made, number)
        return made
    for _, leaf in _numbers(name, made):
        leaf[...] = _values(rng, leaf.dtype, leaf.shape, 0 if name.startswith("cells") else 0.15)
    return made


def _values(
    rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], special: float
) -> np.ndarray:
    small = rng.integers(0 if dtype.kind in "ub" else -3, 9, shape)
    if dtype.kind == "b":
        return small > 4
    if dtype.kind == "f" and dtype.itemsize > 2:
        values = (small * rng.integers(1, 9, shape) / 4).astype(dtype)
        rare = [0.0, -0.0, math.nan, math.inf, -math.inf, 1e-40, 3e38, 1 / 3]
    elif dtype in _NARROW.values():
        return _halves(rng, dtype, small, special)
    else:
        values = small.astype(dtype)
        info = np.iinfo(dtype)
        rare = [info.min, info.max, info.max // 2, info.min + 1]
    replaced = rng.random(shape) < special
    values[replaced] = rng.choice(np.array(rare, dtype), int(replaced.sum()))
    return values


def _halves(
    rng: np.random.Generator, dtype: np.dtype, small: np.ndarray, special: float
) -> np.ndarray:
    """Small numbers, and halves of any bits that are no NaN."""
    values = (small * rng.integers(1, 9, small.shape) / 4).astype(dtype)
    replaced = rng.random(small.shape) < 2 * special
    bits = rng.integers(0, 1 << 16, int(replaced.sum())).astype(np.uint16).view(dtype)
    values[replaced] = np.where(np.isnan(bits), dtype.type(1 / 3), bits)
    return values


def nothing(name: str, mode: Mode) -> np.ndarray:
    """An array's part of a group whose program does not use it."""
    dtype, shape = _kind(name, mode)
    return np.zeros(shape, dtype)


def joined(name: str, parts: list[np.ndarray]) -> np.ndarray:
    """The groups' parts of an array.

    `e` has its columns in reverse order in memory; packed records begin at an odd address. Some
    variants have their cases one behind the other, as NumPy lays them out, others in one place.
    Records with arrays of variants are no array of NumPy's making: `np.concatenate` gives them a
    type that is too short, and writes behind the end (tests/unit/test_variants.py).
    """
    if has_variants(parts[0].dtype) and (len(name) % 2 or name.startswith("holders")):
        memory = np.zeros(sum(map(len, parts)), parts[0].dtype)
        memory.view(np.uint8)[...] = np.concatenate([part.view(np.uint8) for part in parts])
        return memory
    array = np.concatenate(parts)
    if name == "e":
        return np.asfortranarray(array[:, ::-1])[:, ::-1]
    if array.dtype.names and not has_variants(array.dtype) and not array.dtype.isalignedstruct:
        memory = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
        memory[...] = array
        return memory
    return array


def part(name: str, array: np.ndarray, k: int, mode: Mode = PLAIN) -> np.ndarray:
    """A group's part of an array."""
    length = _kind(name, mode)[1][0]
    return array[k * length : (k + 1) * length]


def first_difference(expected: Arrays, actual: Arrays) -> str | None:
    """The first number that differs in its bits; NaNs are equal."""
    for name, array in expected.items():
        for (path, ours), (_, theirs) in zip(
            _numbers(name, array), _numbers(name, actual[name]), strict=True
        ):
            if ours.dtype in _NARROW.values():  # NumPy does not know the signs of all of them
                ours, theirs = ours.astype(np.float32), theirs.astype(np.float32)
            same = ours == theirs
            if ours.dtype.kind == "f":
                same &= np.signbit(ours) == np.signbit(theirs)
                same |= np.isnan(ours) & np.isnan(theirs)
            if not same.all():
                first = tuple(int(k) for k in np.argwhere(~same)[0])
                at = ", ".join(map(str, first))
                return f"has {path}[{at}] = {theirs[first]!r}, expected {ours[first]!r}"
    return None


def _numbers(path: str, array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of reals, integers and bools that an array is made of.

    Of a variant the tag, then what the elements of each case hold.
    """
    variant = variant_of(array.dtype)
    if variant is not None:
        yield f"{path}.tag", array["tag"]
        for case in range(len(variant.cases)):
            for k, each in enumerate(parts_of(array[array["tag"] == case], case)):
                yield from _numbers(f"{path}.C{case}.{k}", each)
    elif array.dtype.names:
        for name in array.dtype.names:
            yield from _numbers(f"{path}.{name}", array[name])
    elif array.dtype.kind == "c":
        yield f"{path}.real", array.real
        yield f"{path}.imag", array.imag
    else:
        yield path, array
