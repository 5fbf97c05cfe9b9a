"""Warp operations of every type, at every width a device may have."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.execute import simulated_warp_width
from tests.executors import EMULATION, device_of, executors, warp_width
from tests.kernels.case import Launch

TYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
EXECUTORS = [name for name in executors() if warp_width(name)]
THREADS = 128


@sarek.kernel
def exchange(out, x, sources):
    i = sarek.global_idx.x
    v = x[i]
    s = sources[i]
    out[0, i] = sarek.warp.shuffle(v, s)
    out[1, i] = sarek.warp.shuffle_up(v, s)
    out[2, i] = sarek.warp.shuffle_down(v, s)
    out[3, i] = sarek.warp.shuffle_xor(v, s)
    out[4, i] = sarek.warp.shuffle(v, 1)
    out[5, i] = sarek.warp.shuffle_up(v, 1)
    out[6, i] = sarek.warp.shuffle_down(v, 3)
    out[7, i] = sarek.warp.shuffle_xor(v, 1)
    out[8, i] = sarek.warp.shuffle_down(v, -1)


@sarek.kernel
def reduce(out, x):
    i = sarek.global_idx.x
    out[0, i] = sarek.warp.sum(x[i])
    out[1, i] = sarek.warp.min(x[i])
    out[2, i] = sarek.warp.max(x[i])


def widths_of(executor: str) -> list[int]:
    """The widths of a warp to test on an executor."""
    if executor == EMULATION:
        return [1, 4, 8, 32, 64]
    limits = device_of(executor).record.limits
    return [width for width in (1, 4, 8, 32, 64) if limits.warp_width_for(width) == width]


PLACES = [(executor, width) for executor in EXECUTORS for width in widths_of(executor)]


def run(executor: str, width: int, kernel, launch: Launch) -> None:
    with simulated_warp_width(width):
        if executor == EMULATION:
            sarek.emulate(kernel)[launch.grid, launch.block](*launch.arguments)
            return
        kernel.launch(
            *launch.arguments, grid=launch.grid, block=launch.block, device=device_of(executor)
        )


def values(dtype: str) -> np.ndarray:
    """Values that use all bits of the type."""
    rng = np.random.default_rng(5)
    if np.dtype(dtype).kind == "f":
        return (rng.standard_normal(THREADS) * 1e30).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, THREADS, dtype=dtype, endpoint=True)


def moved(x: np.ndarray, source: np.ndarray, width: int) -> np.ndarray:
    """Each lane's source within its segment; its own value where that lies outside."""
    lanes = np.arange(len(x))
    place = lanes % width
    inside = (source >= 0) & (source < width)
    return x[np.where(inside, lanes - place + source, lanes)]


@pytest.mark.parametrize(("executor", "width"), PLACES)
@pytest.mark.parametrize("dtype", TYPES)
def test_shuffles(executor, width, dtype):
    """Every bit of every type arrives, from lanes known when compiling and when running
    (case 127); a lane at the edge keeps its own value.
    """
    if width not in (8, 32) and dtype not in ("int8", "float64"):
        pytest.skip("the type does not depend on the width")
    x = values(dtype)
    sources = np.random.default_rng(6).integers(-9, 70, THREADS)
    place = np.arange(THREADS) % width
    wanted = [
        sources, place - sources, place + sources, place ^ sources,
        np.ones(THREADS, int), place - 1, place + 3, place ^ 1, place - 1,
    ]  # fmt: skip
    out = np.zeros((9, THREADS), dtype)
    run(executor, width, exchange, Launch(2, 64, (out, x, sources), ()))
    expected = np.stack([moved(x, source, width) for source in wanted])
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("executor", "width"), PLACES)
@pytest.mark.parametrize("dtype", TYPES)
def test_reductions(executor, width, dtype):
    """Sums wrap and add up as one tree, minima and maxima ignore NaN (case 128: each width)."""
    if width not in (8, 32) and dtype not in ("int8", "float64"):
        pytest.skip("the type does not depend on the width")
    x = values(dtype)
    if x.dtype.kind == "f":
        x[3], x[20:30], x[64:72] = np.nan, np.nan, [0.0, -0.0] * 4
    out = np.zeros((3, THREADS), dtype)
    run(executor, width, reduce, Launch(2, 64, (out, x), ()))
    for row, combine in zip(out, (np.add, np.fmin, np.fmax), strict=True):
        part = x.reshape(-1, width)
        while part.shape[1] > 1:
            half = part.shape[1] // 2
            left, right = part[:, :half], part[:, half:]
            with np.errstate(all="ignore"):
                part = combine(left, right)
            if combine is not np.add:  # of equal zeros the left one
                part = np.where(left == right, left, part)
        expected = np.repeat(part[:, 0], width)
        np.testing.assert_array_equal(row, expected)
        np.testing.assert_array_equal(np.signbit(row), np.signbit(expected))


@sarek.kernel
def segments(out, x):
    i = sarek.global_idx.x
    out[0, i] = sarek.warp.shuffle(x[i], 2, 8)
    out[1, i] = sarek.warp.shuffle_up(x[i], 3, width=8)
    out[2, i] = sarek.warp.shuffle_down(x[i], 3, 16)
    out[3, i] = sarek.warp.shuffle_xor(x[i], 5, 8)
    out[4, i] = sarek.warp.shuffle_xor(x[i], 8, 8)
    out[5, i] = sarek.warp.shuffle(x[i], 31, 32)
    out[6, i] = sarek.warp.shuffle_up(x[i], 1, 32)
    out[7, i] = sarek.warp.shuffle_down(x[i], 1, 32)
    out[8, i] = sarek.warp.shuffle_xor(x[i], 31, 32)
    out[9, i] = sarek.warp.shuffle_xor(x[i], 32, 32)
    out[10, i] = sarek.warp.shuffle(x[i], 31, 16)


@pytest.mark.parametrize(("executor", "width"), [place for place in PLACES if place[1] in (32, 64)])
def test_segments(executor, width):
    """A width of 8, 16 or 32 means the same on warps of 32 and of 64 (case 128)."""
    x = np.arange(THREADS, dtype=np.float32)
    lanes = np.arange(THREADS)
    out = np.zeros((11, THREADS), np.float32)
    run(executor, width, segments, Launch(1, 128, (out, x), ()))
    wanted = [
        moved(x, np.full(THREADS, 2), 8),
        moved(x, lanes % 8 - 3, 8),
        moved(x, lanes % 16 + 3, 16),
        moved(x, lanes % 8 ^ 5, 8),
        x,
        moved(x, np.full(THREADS, 31), 32),
        moved(x, lanes % 32 - 1, 32),
        moved(x, lanes % 32 + 1, 32),
        moved(x, lanes % 32 ^ 31, 32),
        x,
        x,
    ]
    np.testing.assert_array_equal(out, np.stack(wanted))


@sarek.kernel
def ballots(out, x):
    i = sarek.global_idx.x
    out[0, i] = sarek.warp.ballot(x[i])
    out[1, i] = sarek.warp.active_mask()
    out[2, i] = sarek.warp.all(x[i]) * 2 + sarek.warp.any(x[i])
    out[3, i] = sarek.warp.size * 100 + sarek.warp.lane
    out[4, i] = sarek.warp.shuffle_xor(x[i], 1)


@pytest.mark.parametrize(("executor", "width"), PLACES)
def test_votes(executor, width):
    """Masks are as wide as the warp; bools shuffle too."""
    x = np.random.default_rng(7).integers(0, 2, THREADS).astype(bool)
    x[:64] = True
    out = np.zeros((5, THREADS), np.uint64)
    run(executor, width, ballots, Launch(2, 64, (out, x), ()))
    warps = x.reshape(-1, width)
    bits = np.uint64(1) << np.arange(width, dtype=np.uint64)
    rows = [(warps * bits).sum(1), np.full(len(warps), bits.sum()), warps.all(1) * 2 + warps.any(1)]
    expected = [np.repeat(row, width).astype(np.uint64) for row in rows]
    lanes = np.arange(THREADS) % width
    expected += [width * 100 + lanes, moved(x, lanes ^ 1, width)]
    np.testing.assert_array_equal(out, np.stack([row.astype(np.uint64) for row in expected]))


@sarek.kernel
def existing(out):
    out[sarek.global_idx.x] = sarek.warp.active_mask()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_active_mask_of_a_part_of_a_warp(executor):
    """It asks no whole warps: bits of threads that do not exist are zero."""
    width = warp_width(executor)
    block = 32 + width // 4
    out = np.zeros(2 * block, np.uint32)
    run(executor, width, existing, Launch(2, block, (out,), ()))
    masks = [2**width - 1] * 32 + [2 ** (width // 4) - 1] * (width // 4)
    np.testing.assert_array_equal(out, np.tile(masks, 2))


@sarek.kernel
def rows(out):
    x, y = sarek.thread_idx.x, sarek.thread_idx.y
    out[y, x] = sarek.warp.shuffle(y * 12 + x, sarek.warp.size - 1)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_warps_across_rows(executor):
    """Lanes follow the linear index over rows, or the device refuses that by name."""
    width = warp_width(executor)
    out = np.zeros((8, 12), np.int32)
    launch = Launch(1, (12, 8), (out,), ())
    if executor != EMULATION and not device_of(executor).record.limits.warps_span_rows:
        with pytest.raises(sarek.CapabilityError, match="warps that span rows of a block"):
            run(executor, width, rows, launch)
        assert not out.any()
        return
    run(executor, width, rows, launch)
    np.testing.assert_array_equal(out.ravel(), np.arange(96) // width * width + width - 1)


@pytest.mark.parametrize("executor", [name for name in executors() if name != EMULATION])
@pytest.mark.parametrize("kernel", [reduce, exchange])
def test_part_of_a_warp_is_refused(executor, kernel):
    """On every device, also where warps are refused for themselves, and with the same text."""
    out, x = np.zeros((9, 40), np.float32), np.zeros(40, np.float32)
    rest = (np.zeros(40, np.int64),) if kernel is exchange else ()
    width = device_of(executor).record.limits.warp_width
    block = 32 + width // 4
    with pytest.raises(sarek.InvalidDimensions, match=f"no whole number of warps of {width}"):
        kernel.launch(out, x, *rest, grid=1, block=block, device=device_of(executor))
    assert not out.any()


def test_width_is_part_of_the_specialisation():
    """One kernel launched at two widths gives the result of each, in both orders."""
    for width in (8, 32, 8):
        out = np.zeros((5, THREADS), np.uint64)
        run("native", width, ballots, Launch(1, THREADS, (out, np.ones(THREADS, bool)), ()))
        assert set(out[3] // 100) == {width}


@pytest.mark.parametrize("width", [0, 3, 128, True, 32.0, "32"])
def test_simulated_width_is_checked(width):
    """Only powers of two up to 64 are widths of a warp."""
    if width == 32.0:
        width = 31.5
    with pytest.raises(ValueError, match="a warp has"), simulated_warp_width(width):
        pass
