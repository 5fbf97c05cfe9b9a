"""Every configuration that a device lists, in both layouts, on parts of larger arrays."""

from __future__ import annotations

from functools import cache

import ml_dtypes  # noqa: F401 - tells NumPy of bfloat16
import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.ir.nodes import CoopmatConfig
from tests.executors import EMULATION, device_of, executors
from tests.unit.fragment_kernels import LAYOUTS, Config, Place, as_written, reference

BORDER = 16  # elements around each operand, so that the places of all rows stay aligned


def listed(executor: str) -> tuple[CoopmatConfig, ...]:
    """The configurations that an executor enumerates; none of one that goes by a rule."""
    found = None if executor == EMULATION else device_of(executor).record.coopmat
    return found if isinstance(found, tuple) else ()


LISTING = [executor for executor in executors() if listed(executor)]


@cache
def inside(config: Config, layout: str):
    """out = a @ b + c of one tile, which begins BORDER rows and columns into each array."""
    by_rows = layout == LAYOUTS[0]

    @sarek.kernel
    def product(a, b, c, out):
        left = sarek.coopmat.fragment(config, "a")
        right = sarek.coopmat.fragment(config, "b")
        added = sarek.coopmat.fragment(config, "c")
        result = sarek.coopmat.fragment(config, "result")
        if by_rows:
            sarek.coopmat.load(left, a, (BORDER, BORDER), a.shape[1])
            sarek.coopmat.load(right, b, (BORDER, BORDER), b.shape[1])
            sarek.coopmat.load(added, c, (BORDER, BORDER), c.shape[1])
        else:
            sarek.coopmat.load(left, a, (BORDER, BORDER), a.shape[1], layout="column_major")
            sarek.coopmat.load(right, b, (BORDER, BORDER), b.shape[1], layout="column_major")
            sarek.coopmat.load(added, c, (BORDER, BORDER), c.shape[1], layout="column_major")
        sarek.coopmat.muladd(result, left, right, added)
        if by_rows:
            sarek.coopmat.store(result, out, (BORDER, BORDER), out.shape[1])
        else:
            sarek.coopmat.store(result, out, (BORDER, BORDER), out.shape[1], layout="column_major")

    return product


def whole_numbers(rng: np.random.Generator, name: str, shape: tuple[int, int]):
    """Numbers whose sums every type of results has exactly; bytes of all values."""
    kind = np.dtype(name)
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        return rng.integers(ends.min, ends.max, shape, dtype=kind, endpoint=True)
    return rng.integers(-3, 4, shape).astype(kind)


def surrounded(matrix, layout: str):
    """The matrix in a larger array of what would spoil any sum, and the place of it there."""
    lying = matrix if layout == LAYOUTS[0] else matrix.T
    poison = np.iinfo(matrix.dtype).max if matrix.dtype.kind in "iu" else np.nan
    rows, columns = (-(-size // BORDER) * BORDER + 2 * BORDER for size in lying.shape)
    whole = np.full((rows, columns), poison, matrix.dtype)
    place = whole[BORDER : BORDER + lying.shape[0], BORDER : BORDER + lying.shape[1]]
    place[...] = lying
    return whole, place


def wrong_with(place: Place, config: Config, layout: str) -> str:
    """What is wrong with one product; empty where nothing is."""
    rng = np.random.default_rng(config.m * config.n + config.k)
    m, n, k = config.m, config.n, config.k
    shapes = ((config.a, (m, k)), (config.b, (k, n)), (config.c, (m, n)))
    a, b, c = (whole_numbers(rng, name, shape) for name, shape in shapes)
    arrays = [surrounded(each, layout)[0] for each in (a, b, c)]
    out, inner = surrounded(np.zeros((m, n), config.result), layout)
    expected, expected_inner = surrounded(np.zeros((m, n), config.result), layout)
    value = reference(config, a, b, c)
    expected_inner[...] = value if layout == LAYOUTS[0] else value.T
    place.run(inside(config, layout), 1, 1, *arrays, out)
    differ = np.argwhere(inner != expected_inner)
    if len(differ):
        first = tuple(map(int, differ[0]))
        what = f"{len(differ)} of {m * n} sums, first at {first}: {inner[first]}"
        return f"{what}, expected {expected_inner[first]}"
    return "" if out.tobytes() == expected.tobytes() else "memory around the result was written"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("executor", LISTING)
def test_every_configuration(executor, layout):
    """Whole numbers come out exactly, from arrays that hold poison around them."""
    place = Place(executor, device_of(executor).record.limits.warp_width)
    wrong = {}
    for config in map(as_written, listed(executor)):
        found = wrong_with(place, config, layout)
        if found:
            wrong[str(config)] = found
    assert not wrong, "\n".join(f"{config}: {found}" for config, found in wrong.items())


def test_what_is_wrong_is_said():
    """A device that adds up otherwise, and one that writes beside the tile, are found."""
    config = Config(8, 8, 8, "int8", "int8", "int32", "int32")

    class Otherwise(Place):
        def run(self, kernel, grid, block, *arguments):
            *_, out = arguments
            super().run(kernel, grid, block, *arguments)
            out[BORDER + 2, BORDER + 3] += 1

    class Beside(Place):
        def run(self, kernel, grid, block, *arguments):
            super().run(kernel, grid, block, *arguments)
            arguments[-1][BORDER - 1, BORDER] = 0

    assert wrong_with(Place("interpreter", 32), config, LAYOUTS[0]) == ""
    found = wrong_with(Otherwise("interpreter", 32), config, LAYOUTS[0])
    assert found.startswith("1 of 64 sums, first at (2, 3)")
    found = wrong_with(Beside("interpreter", 32), config, LAYOUTS[0])
    assert found == "memory around the result was written"
