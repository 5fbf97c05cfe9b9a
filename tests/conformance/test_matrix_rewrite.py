"""Products on matrix units write what the kernel as given writes, and nothing else."""

from __future__ import annotations

from itertools import product as pairs
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import policy
from sarek_numba.matrix import Specialised, testing
from sarek_numba.matrix.rewrite.form import Direct, Staged
from sarek_numba.matrix.rewrite.plan import TILINGS
from tests.executors import devices

DEVICES = [name for name in devices() if sarek.device(name).record.coopmat]
EDGES = (1, 7, 8, 9, 15, 16, 17, 31, 33)
LARGER = (64, 72, 100)
BLOCK = (8, 4)
PAIRS = {
    "int8": ("int8", "int8", "int32"),
    "uint8": ("uint8", "uint8", "int32"),
    "int32": ("int32", "int32", "int32"),
    "uint32": ("uint32", "uint32", "uint32"),
    "int16": ("int16", "int16", "int32"),
    "mixed": ("uint16", "int8", "int32"),
}
on_devices = pytest.mark.parametrize("device", DEVICES)
fast = pytest.mark.parametrize("device", [name for name in DEVICES if name != "interpreter"])


@sarek.kernel
def multiply(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.int32(0)
        for k in range(a.shape[1]):
            total += np.int32(a[i, k]) * np.int32(b[k, j])
        c[i, j] = total


@sarek.kernel
def multiply_unsigned(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.uint32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


class Room:
    """A matrix within memory that is full of the ends of its type; `memory` is all of it."""

    def __init__(self, matrix: Any, by_columns: bool = False, aligned: bool = False) -> None:
        rows, columns = matrix.shape
        ends = np.iinfo(matrix.dtype)
        before, room = (0, 0) if aligned else (3, 5)
        shape = (columns, rows) if by_columns else (rows, columns)
        self.memory = np.empty((shape[0] + room, shape[1] + room), matrix.dtype)
        self.memory.flat[::2], self.memory.flat[1::2] = ends.min, ends.max
        inner = self.memory[before : before + shape[0], before : before + shape[1]]
        self.matrix = inner.T if by_columns else inner
        self.matrix[:] = matrix


def rooms(kind: str, m: int, n: int, k: int, **layout: Any) -> list[Room]:
    """C, A and B: all values of their types may occur."""
    rng = np.random.default_rng(m * 10_000 + n * 100 + k)
    made = []
    for type, shape in zip(PAIRS[kind], ((m, k), (k, n), (m, n)), strict=True):
        ends = np.iinfo(type)
        made.append(Room(rng.integers(ends.min, ends.max, shape, type, endpoint=True), **layout))
    return [made[2], *made[:2]]


def grid_of(m: int, n: int) -> tuple[int, int]:
    return -(-m // BLOCK[0]), -(-n // BLOCK[1])


def both(device: str, kind: str, m: int, n: int, k: int, **layout: Any) -> Specialised:
    """Run a product as given and as rewritten; all memory must be the same afterwards."""
    kernel = multiply_unsigned if kind == "uint32" else multiply
    given, other = rooms(kind, m, n, k, **layout), rooms(kind, m, n, k, **layout)
    kernel.launch(*(one.matrix for one in given), grid=grid_of(m, n), block=BLOCK, device=device)
    arguments = [one.matrix for one in other]
    outcome = sarek.matrix.run(kernel, *arguments, grid=grid_of(m, n), block=BLOCK, device=device)
    if not isinstance(outcome, Specialised) and "no cooperative matrix" in outcome.reason:
        pytest.skip(outcome.reason)
    assert isinstance(outcome, Specialised), str(outcome)
    for theirs, ours in zip(given, other, strict=True):
        np.testing.assert_array_equal(theirs.memory, ours.memory)
    return outcome


@fast
def test_every_size_around_the_edges_of_fragments(device: str) -> None:
    """Memory around the operands is no part of a sum, and none around C is written."""
    for m, n, k in pairs(EDGES, EDGES, EDGES):
        assert both(device, "int8", m, n, k).variant == Staged()


@pytest.mark.parametrize("edge", [8, 16])
@pytest.mark.parametrize("width", [32, 64])
def test_sizes_in_the_interpreter(edge: int, width: int) -> None:
    """With fragments and waves of either kind; it tells of races, and of what is read unset."""
    for at, (m, n, k) in enumerate(pairs(EDGES, EDGES, EDGES)):
        if at % 29 == (edge + width) % 29:
            with testing.fragment_edge(edge), testing.subgroup_width(width):
                outcome = both("interpreter", "int8", m, n, k)
            assert outcome.config.m == edge
            assert outcome.ir.warp_width == width


@on_devices
@pytest.mark.parametrize("tiling", range(len(TILINGS)))
def test_tilings(device: str, tiling: int) -> None:
    """Blocks of several warps, warps of several fragments, more than one tile along each axis."""
    sizes = [(33, 17, 70)]
    if device != "interpreter":
        sizes = [*pairs(LARGER, LARGER, LARGER), (300, 290, 130)]
    with testing.tile(tiling):
        for m, n, k in sizes:
            both(device, "int8", m, n, k)


@on_devices
@pytest.mark.parametrize("kind", PAIRS)
def test_types_of_operands(device: str, kind: str) -> None:
    """Sums modulo 2^32 of operands of any width and sign, at the ends of their types too."""
    for m, n, k in ((9, 17, 33), (16, 16, 16), (1, 1, 1)):
        outcome = both(device, kind, m, n, k)
        assert isinstance(outcome.evidence, policy.Proof)


@on_devices
def test_operands_that_lie_by_columns(device: str) -> None:
    """Where the elements of a column are neighbours."""
    both(device, "int8", 17, 33, 31, by_columns=True)


@on_devices
@pytest.mark.parametrize("by_columns", [False, True])
def test_fragments_from_global_memory(device: str, by_columns: bool) -> None:
    """Where rows are aligned and tiles whole."""
    with testing.directly():
        found = both(device, "int8", 64, 64, 64, by_columns=by_columns, aligned=True)
        assert isinstance(found.variant, Direct)
        ragged = both(device, "int8", 64, 60, 64, by_columns=by_columns, aligned=True)
        assert ragged.variant == Staged()
        apart = both(device, "int8", 64, 64, 64, by_columns=by_columns)
        assert apart.variant == Staged()
