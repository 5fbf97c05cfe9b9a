"""Cooperative matrices of the language on every executor: exact integers, floats as stated."""

from __future__ import annotations

import inspect
from fractions import Fraction
from itertools import chain

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import (
    DataRace,
    DivergentBarrier,
    InvalidDimensions,
    MisalignedMatrix,
    OutOfBounds,
    WarpDivergence,
)
from tests.unit.fragment_kernels import (
    LARGER_FLOATS,
    LARGER_INTEGERS,
    LAYOUTS,
    Config,
    Place,
    bytes_of,
    has_none,
    once,
    operands,
    places,
    products,
    reference,
    staged,
)

TILES = (2, 2, 3)
EVERYWHERE = places(8, 32)
INTEGERS = [
    *bytes_of(False),
    *bytes_of(True),
    Config(16, 16, 16, "int8", "int8", "int32", "int32"),
    Config(3, 5, 7, "int8", "uint8", "int32", "int32"),
    Config(4, 2, 1, "int16", "uint16", "int32", "int32", True),
    Config(2, 3, 4, "int32", "int32", "int32", "int32"),
    Config(2, 3, 4, "int32", "uint32", "int32", "int32", True),
    Config(4, 4, 4, "uint8", "uint8", "uint8", "uint8", True),
    *LARGER_INTEGERS,
]
MIXED = [
    Config(4, 4, 4, "int8", "int8", "int16", "int8"),
    Config(4, 4, 8, "uint8", "int8", "int8", "int32", True),
    Config(4, 4, 4, "float32", "float32", "float64", "float32"),
    Config(4, 4, 4, "float16", "float16", "float32", "float16"),
    Config(4, 4, 4, "bfloat16", "float16", "float64", "bfloat16"),
]
FLOATS = [
    Config(8, 8, 8, "float32", "float32", "float32", "float32"),
    Config(4, 5, 6, "float32", "float32", "float64", "float64"),
    Config(8, 4, 4, "float64", "float64", "float64", "float64"),
    Config(8, 8, 8, "float16", "float16", "float32", "float32"),
    Config(8, 8, 8, "float16", "float16", "float16", "float16"),
    Config(4, 5, 6, "bfloat16", "bfloat16", "float32", "float32"),
    Config(4, 3, 2, "bfloat16", "bfloat16", "bfloat16", "bfloat16"),
    *LARGER_FLOATS,
]
LAID_OUT = [
    Config(8, 8, 8, "int8", "int8", "int32", "int32"),
    Config(16, 8, 32, "int8", "uint8", "int32", "int32"),
    Config(16, 16, 16, "float16", "float16", "float32", "float32"),
    Config(16, 16, 8, "float64", "float64", "float64", "float64"),
]
SQUARE = Config(8, 8, 8, "int8", "int8", "int32", "int32")
everywhere = pytest.mark.parametrize("place", EVERYWHERE, ids=str)
ORACLE = Place("interpreter", 32)


def result_of(place: Place, config: Config, a, b, c, layouts=(LAYOUTS[0], LAYOUTS[0])):
    """a @ b + c by the kernel, two warps a block where they come out even."""
    rows, columns = c.shape
    tiles = (rows // config.m) * (columns // config.n)
    warps = 2 if tiles % 2 == 0 else 1
    out = np.zeros((rows, columns), config.result)
    stored = [
        np.ascontiguousarray(matrix if layout == LAYOUTS[0] else matrix.T)
        for matrix, layout in zip((a, b), layouts, strict=True)
    ]
    inner = a.shape[1]
    place.run(products(config, *layouts), tiles // warps, warps, *stored, c, out, inner)
    return out


@everywhere
@pytest.mark.parametrize("config", INTEGERS, ids=str)
def test_integers_are_exact(place, config):
    """Sums wrap or saturate once for each multiply-add, as Python's integers say."""
    if has_none(place, config):
        return
    for kind in ("random", "edges"):
        a, b, c = operands(config, TILES, kind)
        np.testing.assert_array_equal(result_of(place, config, a, b, c), reference(config, a, b, c))


@everywhere
@pytest.mark.parametrize("config", MIXED, ids=str)
def test_results_of_another_type(place, config):
    """The result of one multiply-add need not have the type of c."""
    if has_none(place, config):
        return
    a, b, c = operands(config, (1, 1, 1), "edges", 4)
    out = np.zeros((config.m, config.n), config.result)
    place.run(once(config), 1, 1, a, b, c, out)
    np.testing.assert_array_equal(out, reference(config, a, b, c))


def whole(matrix):
    """Small whole numbers in place of floats: their sums are exact on every device."""
    return matrix if matrix.dtype.kind in "iu" else np.rint(matrix * 4)


@everywhere
@pytest.mark.parametrize("a_layout", LAYOUTS)
@pytest.mark.parametrize("b_layout", LAYOUTS)
@pytest.mark.parametrize("config", LAID_OUT, ids=str)
def test_layouts(place, config, a_layout, b_layout):
    """Operands lie row by row or column by column."""
    if has_none(place, config):
        return
    a, b, c = (whole(each) for each in operands(config, TILES, "random", 2))
    found = result_of(place, config, a, b, c, (a_layout, b_layout))
    np.testing.assert_array_equal(found, reference(config, a, b, c))


@everywhere
@pytest.mark.parametrize(
    "config",
    [INTEGERS[0], INTEGERS[3], INTEGERS[8], FLOATS[3], FLOATS[5], *LAID_OUT[1:]],
    ids=str,
)
def test_shared_memory(place, config):
    """Fragments are loaded from shared memory, and live on behind a barrier."""
    if has_none(place, config):
        return
    a, b, _ = operands(config, (1, 1, 1), "random", 3)
    a, b = whole(a), whole(b)
    out = np.zeros((config.m, config.n), config.result)
    place.run(staged(config), 1, 1, a, b, out)
    zeros = np.zeros_like(out)
    np.testing.assert_array_equal(out, reference(config, a, b, zeros))


@pytest.mark.parametrize("place", [p for p in EVERYWHERE if p.executor != "emulation"], ids=str)
@pytest.mark.parametrize("saturating", [False, True])
def test_every_pair_of_bytes(place, saturating):
    """All 65,536 pairs of 8-bit operands at one place of the inner dimension, for each of signs.

    The sums begin near the ends of the result's type, so that some of them leave it.
    """
    fragments = (bytes_of(saturating, k, edge) for k, edge in ((8, 8), (16, 8), (16, 16)))
    for config in chain.from_iterable(fragments):
        if has_none(place, config):
            continue
        everything = np.arange(256).astype(np.uint8)
        inner = config.k
        a, b = (np.zeros((256, inner), config.a), np.zeros((inner, 256), config.b))
        k = 5
        a[:, k], b[k] = everything.view(config.a), everything.view(config.b)
        ends = np.iinfo(config.result)
        c = np.full((256, 256), ends.max - 8000, config.result)
        c[::2] = ends.min + 8000 * (ends.min < 0)
        found = result_of(place, config, a, b, c)
        exactly = c.astype(np.int64) + np.outer(a[:, k].astype(np.int64), b[k].astype(np.int64))
        kept = np.clip(exactly, ends.min, ends.max) if saturating else exactly
        np.testing.assert_array_equal(found, kept.astype(config.result))
        assert ((exactly > ends.max) | (exactly < ends.min)).any()


@everywhere
@pytest.mark.parametrize("config", FLOATS, ids=str)
def test_floats_are_those_of_the_definition(place, config):
    """The oracle, the CPU and CPython add in float64 in order, and round once."""
    if has_none(place, config):
        return
    computed = place.executor in ("emulation", "interpreter", "native")
    for kind in ("random", "edges"):
        a, b, c = operands(config, TILES, kind)
        found = result_of(place, config, a, b, c)
        if computed:
            np.testing.assert_array_equal(found, reference(config, a, b, c))
        assert worst(config, a, b, c, found) <= 1


def worst(config: Config, a, b, c, found) -> float:
    """The largest error as a multiple of the bound k * 2^-24 * (sum of |a b| + |c|), or 2^-53.

    Halves that go on from one multiply-add to the next are rounded by each, to 2^-11 or 2^-8.
    """
    bits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[config.result]
    terms = a.shape[1] + 1
    largest = 0.0
    for i, j in np.ndindex(*found.shape):
        operands_of = zip(a[i], b[:, j], strict=True)
        exactly = [Fraction(float(x)) * Fraction(float(y)) for x, y in operands_of]
        exactly.append(Fraction(float(c[i, j])))
        allowed = Fraction(terms, 1 << bits) * sum(map(abs, exactly))
        error = abs(Fraction(float(found[i, j])) - sum(exactly))
        largest = max(largest, float(error / allowed) if allowed else float(error > 0))
    return largest


def test_the_bound_minds():
    """A reference that drops c, or that adds up in float16, is outside of the bound."""
    config = FLOATS[0]
    a, b, c = operands(config, TILES, "random")
    right = result_of(ORACLE, config, a, b, c)
    assert worst(config, a, b, c, right) <= 1
    assert worst(config, a, b, c, right - c) > 1
    narrow = c.astype(np.float16)
    for k in range(a.shape[1]):
        narrow = (narrow + np.outer(a[:, k], b[k])).astype(np.float16)
    assert worst(config, a, b, c, narrow.astype(np.float32)) > 1


def test_the_comparison_minds():
    """Operands that change place, or differ in one element, are seen."""
    config = INTEGERS[0]
    a, b, c = operands(config, TILES, "random")
    found = result_of(ORACLE, config, a, b, c)
    other = a.copy()
    other[0, 0] ^= 1
    for wrong in ((other, b, c), (b.T, a.T, c), (a, b, c + 1)):
        assert (found != reference(config, *map(np.ascontiguousarray, wrong))).any()


def test_saturating_once_is_not_after_each_product():
    """The operands tell which it is: kept within the type after each product, sums differ."""
    config = next(each for each in bytes_of(True) if each.result == "int32")
    a, b, c = (each.astype(np.int64) for each in operands(config, TILES, "edges"))
    ends = np.iinfo(config.result)
    total = c
    for k in range(a.shape[1]):
        total = np.clip(total + np.outer(a[:, k], b[k]), ends.min, ends.max)
    once_each = reference(config, *operands(config, TILES, "edges"))
    assert (total != once_each).any()


@sarek.kernel
def sums(x, out, passes):
    """A fragment of a loop's body is zeros again in each pass."""
    one = sarek.coopmat.fragment(SQUARE, "b")
    sarek.coopmat.fill(one, 1)
    for step in range(passes):
        left = sarek.coopmat.fragment(SQUARE, "a")
        if step % 2 == 0:
            sarek.coopmat.load(left, x, 64 * step, 8)
        total = sarek.coopmat.fragment(SQUARE, "result")
        sarek.coopmat.muladd(total, left, one, total)
        sarek.coopmat.store(total, out, 64 * step, 8)


@everywhere
def test_fragments_of_a_loop(place):
    """A fragment of a loop's body, fills, and operations under a condition that is uniform."""
    if has_none(place, SQUARE):
        return
    x, out = np.arange(256).astype(np.int8), np.ones(256, np.int32)
    place.run(sums, 1, 1, x, out, 4)
    expected = np.repeat(x.reshape(4, 8, 8).sum(axis=2, dtype=np.int32)[..., None], 8, axis=2)
    expected[1::2] = 0
    np.testing.assert_array_equal(out.reshape(4, 8, 8), expected)


# --- what is the user's fault ---------------------------------------------------------------------


@sarek.kernel
def copied(x, out, first, stride):
    f = sarek.coopmat.fragment(SQUARE, "a")
    sarek.coopmat.load(f, x, first, stride)
    sarek.coopmat.store(f, out, 0, 8)


@sarek.kernel
def divergent(x, out):
    f = sarek.coopmat.fragment(SQUARE, "a")
    if sarek.thread_idx.x < 3:
        sarek.coopmat.load(f, x, 0, 8)
    sarek.coopmat.store(f, out, 0, 8)


@sarek.kernel
def divergent_by_data(x, out):
    f = sarek.coopmat.fragment(SQUARE, "a")
    if x[sarek.thread_idx.x] < 3:
        sarek.coopmat.load(f, x, 0, 8)
    sarek.coopmat.store(f, out, 0, 8)


@sarek.kernel
def elsewhere(x, out):
    f = sarek.coopmat.fragment(SQUARE, "a")
    sarek.coopmat.load(f, x, x[sarek.thread_idx.x] * 8, 8)
    sarek.coopmat.store(f, out, 0, 8)


@sarek.kernel
def filled_apart(x, out):
    f = sarek.coopmat.fragment(SQUARE, "a")
    sarek.coopmat.fill(f, x[sarek.thread_idx.x])
    sarek.coopmat.store(f, out, 0, 8)


@sarek.kernel
def both_warps_store(x, out):
    f = sarek.coopmat.fragment(SQUARE, "a")
    sarek.coopmat.fill(f, sarek.thread_idx.x // 32)
    sarek.coopmat.store(f, out, 0, 8)


def oracle(kernel, *arguments, threads: int = 32) -> None:
    kernel.launch(*arguments, grid=1, block=threads, device="interpreter")


def arrays(values=0):
    return np.full(128, values, np.int8), np.zeros(64, np.int8)


def line_of(kernel, text: str) -> int:
    """The line of this file where a kernel has a text."""
    lines, first = inspect.getsourcelines(kernel.py_func)
    return first + next(n for n, line in enumerate(lines) if text in line)


def test_a_misaligned_stride_is_found():
    """Where rows begin off their alignment, the oracle says so with the line."""
    x, out = arrays()
    oracle(copied, x, out, 0, 8)
    for first, stride, word in ((0, 12, "stride 12"), (4, 8, "place 4")):
        with pytest.raises(MisalignedMatrix, match=f"the {word} in 'x' begins rows") as caught:
            oracle(copied, x, out, first, stride)
        (finding,) = caught.value.findings
        assert finding.span.line == line_of(copied, "load")


def test_a_tile_outside_of_its_array_is_found():
    x, out = arrays()
    oracle(copied, x, out, 64, 8)
    with pytest.raises(OutOfBounds, match="'x', which has 128 elements"):
        oracle(copied, x, out, 72, 8)


def test_divergent_use_is_refused_with_its_line():
    x, out = arrays()
    with pytest.raises(DivergentBarrier, match=r"`sarek.thread_idx.x < 3` holds") as caught:
        oracle(divergent, x, out)
    (found,) = caught.value.diagnostics
    assert found.message.startswith("coopmat.load() is reached only by threads")
    assert found.span.line == line_of(divergent, "load")


def test_threads_of_a_warp_act_together():
    """What only shows at run time is found there: who comes, where to, and with what."""
    x, out = arrays()
    same = x.copy()
    x[5] = 3
    for kernel, message in (
        (elsewhere, r"the place of sarek.coopmat.load\(\) is not the same"),
        (filled_apart, r"the value of sarek.coopmat.fill\(\) is not the same"),
    ):
        oracle(kernel, same, out)
        with pytest.raises(WarpDivergence, match=message) as caught:
            oracle(kernel, x, out)
        assert caught.value.findings[0].span is not None
        with pytest.raises(WarpDivergence, match="different operands"):
            sarek.emulate(kernel)[1, 32](x, out)


def test_data_decide_who_comes():
    """A branch that the compiler cannot see through is refused, as for any warp operation."""
    x, out = arrays()
    with pytest.raises(DivergentBarrier):
        oracle(divergent_by_data, x, out)


def test_two_warps_that_store_one_tile_race():
    x, out = arrays()
    oracle(both_warps_store, x, out)
    with pytest.raises(DataRace):
        oracle(both_warps_store, x, out, threads=64)


@pytest.mark.parametrize("device", ["interpreter", "native"])
def test_a_part_of_a_warp_is_refused(device):
    x, out = arrays()
    with pytest.raises(InvalidDimensions, match="no whole number of warps of 32"):
        copied.launch(x, out, 0, 8, grid=1, block=40, device=device)
