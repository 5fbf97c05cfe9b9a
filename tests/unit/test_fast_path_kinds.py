"""Launches like earlier ones with strided arrays, records, complex numbers, streams, and vectors
that other devices have copies of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import dispatcher, errors
from sarek_numba.runtime.cache import clear_launch_cache, counters

ELSEWHERE = [d.name for d in sarek.devices() if d.driver.memory is not None]


@pytest.fixture(autouse=True)
def _on_native() -> Iterator[None]:
    clear_launch_cache()
    counters.reset()
    with sarek.use_device("native"):
        yield


@pytest.fixture
def longs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels whose launches go the long way."""
    found: list[str] = []
    through = dispatcher.describe

    def noted(name: str, *others: Any) -> Any:
        found.append(name)
        return through(name, *others)

    monkeypatch.setattr(dispatcher, "describe", noted)
    return found


# --- strides --------------------------------------------------------------------------------------


@sarek.kernel
def add(out, x):
    i = sarek.global_idx.x
    if i < out.size:
        j, k = i // out.shape[1], i % out.shape[1]
        out[j, k] += x[j, k]


@sarek.kernel
def fill(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i] + len(x)


def strided(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Any:
    """A view of that shape that is contiguous in neither order, or one that is, at random."""
    steps = [int(step) for step in rng.choice([-3, -2, -1, 1, 2, 3], 2)]
    room = [
        extent * abs(step) + int(rng.integers(0, 3))
        for extent, step in zip(shape, steps, strict=True)
    ]
    whole = rng.integers(0, 100, room).astype(dtype, order=rng.choice(["C", "F"]))
    starts = [
        0 if step > 0 else (extent - 1) * -step for extent, step in zip(shape, steps, strict=True)
    ]
    found = whole[starts[0] :: steps[0], starts[1] :: steps[1]][: shape[0], : shape[1]]
    assert found.shape == shape
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128, np.uint8])
def test_any_strides(dtype: Any, longs: list[str]) -> None:
    """Both signs, both orders, one row or column, on arrays and vectors, as NumPy adds them."""
    rng = np.random.default_rng(3)
    taken = 0
    for trial in range(60):
        shape = [(4, 6), (1, 6), (4, 1)][trial % 3]
        for round_ in range(4):
            out, x = strided(rng, shape, dtype), strided(rng, shape, dtype)
            expected = out + x
            longs.clear()
            add[1, 32](out, x)
            assert out.tolist() == expected.tolist()
            taken += not longs and round_ > 1 and not out.flags.forc
    assert taken > 20


@pytest.mark.parametrize("made", [np.array, sarek.vector])
def test_what_is_beside_a_strided_array_stays(made: Any, longs: list[str]) -> None:
    """The bytes between its elements, before and behind."""
    for _ in range(4):
        whole, given = made(np.zeros(40, np.int32)), made(np.arange(10, dtype=np.int32))
        longs.clear()
        fill[1, 16](whole[33:3:-3], given)
    assert not longs
    expected = np.zeros(40, np.int32)
    expected[33:3:-3] = np.arange(10) + 10
    assert np.asarray(whole).tolist() == expected.tolist()


def test_views_of_one_array_mean_what_they_mean_the_long_way() -> None:
    """Those that start together, and those that interleave."""
    for _ in range(4):
        whole = np.arange(20, dtype=np.int32)
        fill[1, 16](whole[1::2], whole[::2])
        assert whole[1::2].tolist() == [each + 10 for each in range(0, 20, 2)]
        whole = np.arange(20, dtype=np.int32)
        fill[1, 16](whole[::2], whole[::2])
        assert whole[::2].tolist() == [each + 10 for each in range(0, 20, 2)]


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_repeated_elements_are_refused_and_read(shape: tuple[int, ...], longs: list[str]) -> None:
    """Reading them is a launch like others."""
    x = np.lib.stride_tricks.as_strided(np.array([7], np.int32), (4,), (0,))
    for _ in range(4):
        out = np.zeros(8, np.int32)[::2]
        longs.clear()
        fill[1, 8](out, x)
        assert out.tolist() == [11] * 4
    assert not longs
    texts = set()
    for _ in range(2):
        with pytest.raises(errors.InvalidArgument) as caught:
            fill[1, 8](np.lib.stride_tricks.as_strided(np.zeros(1, np.int32), (4,), (0,)), out)
        texts.add(str(caught.value))
    assert len(texts) == 1
    assert "whose elements each stand at several indices" in texts.pop()


def test_fields_whose_strides_are_no_whole_elements_are_copied() -> None:
    """After launches with whole ones."""
    even = np.dtype([("a", np.int32), ("b", np.int32)])
    odd = np.dtype([("a", np.int8), ("b", np.int32)])
    for dtype in (even, even, even, odd, even):
        records = np.zeros(5, dtype)
        fill[1, 8](records["b"], np.arange(5, dtype=np.int32))
        assert records["b"].tolist() == [5, 6, 7, 8, 9]
        assert not records["a"].any()


# --- records --------------------------------------------------------------------------------------

BALL = np.dtype([("mass", np.float64), ("at", [("x", np.float32), ("y", np.float32)])])


@sarek.kernel
def fall(balls, step):
    i = sarek.global_idx.x
    if i < len(balls):
        balls[i].at.y -= step * balls[i].mass


@pytest.mark.parametrize("made", [np.array, sarek.vector])
@pytest.mark.parametrize("step", [slice(None), slice(None, None, -2)])
def test_arrays_of_records(made: Any, step: slice, longs: list[str]) -> None:
    """Contiguous and strided ones; those of another type are refused as ever."""
    for _ in range(4):
        balls = made(np.zeros(9, BALL))
        with balls.host() if made is sarek.vector else nullcontext(balls) as host:
            host["mass"] = np.arange(9)
        longs.clear()
        fall[1, 16](balls[step], 0.5)
    assert not longs
    expected = np.zeros(9, np.float32)
    expected[step] = (-0.5 * np.arange(9))[step]
    assert np.asarray(balls)["at"]["y"].tolist() == expected.tolist()
    with pytest.raises(errors.CompileError):
        fall[1, 16](np.zeros(9, [("mass", np.float64)]), 0.5)


# --- complex numbers ------------------------------------------------------------------------------


@sarek.kernel
def rotate(out, x, by):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i] * by


@sarek.kernel
def rotate_narrow(out, x, by: sarek.complex64):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i] * by


@pytest.mark.parametrize("kind", [complex, np.complex64, np.complex128])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers(kind: Any, dtype: Any, longs: list[str]) -> None:
    """As scalars of Python and NumPy, with arrays of them, as the long way has them."""
    wide = np.complex128 if kind is np.complex128 else dtype
    x = (np.arange(6) - 2j).astype(dtype)
    for turn in (1 + 2j, 0.1 - 3j, -0.0 + 1e30j, complex("nan"), 5j):
        by = kind(turn)
        fresh, out = np.zeros(6, wide), np.zeros(6, wide)
        sarek.kernel(rotate.py_func)[1, 8](fresh, x, by)
        longs.clear()
        rotate[1, 8](out, x, by)
        assert out.tobytes() == fresh.tobytes()
    assert not longs


def test_parts_beyond_float32_are_refused_as_ever(longs: list[str]) -> None:
    """Each part counts, and infinity is a value."""
    out, x = np.zeros(2, np.complex64), np.ones(2, np.complex64)
    for by in (1j, 2j, 3j, complex("inf")):
        longs.clear()
        rotate_narrow[1, 2](out, x, by)
    assert not longs
    for by in (1e39 + 0j, 1e39j):
        with pytest.raises(errors.ArgumentTypeError):
            rotate_narrow[1, 2](out, x, by)
        assert longs.pop() == "rotate_narrow"


# --- streams and copies ---------------------------------------------------------------------------


def test_streams_that_run_at_once(longs: list[str]) -> None:
    """And a stream of another device is refused, each time."""
    stream = sarek.device("native").stream()
    for made in (np.array, sarek.vector):
        for _ in range(4):
            out, x = made(np.zeros(4, np.int32)), made(np.arange(4, dtype=np.int32))
            longs.clear()
            fill[1, 8, stream](out, x)
        assert not longs
        assert np.asarray(out).tolist() == [4, 5, 6, 7]
    for _ in range(2):
        with sarek.use_device("interpreter"), pytest.raises(errors.StreamError):
            fill[1, 8, stream](out, x)


@pytest.mark.parametrize("device", ELSEWHERE)
def test_vectors_that_devices_have_copies_of(device: str, longs: list[str]) -> None:
    """What is on the host alone may be written, what is on both read; the rest moves first."""
    out, x = sarek.zeros(8, np.int32), sarek.arange(8, dtype=np.int32)
    for _ in range(3):
        fill.launch(out, x, grid=1, block=8, device=device)
    for _ in range(3):
        longs.clear()
        fill[1, 8](out, x)
    assert not longs
    assert (x.is_current(device), out.is_current(device), out.is_current()) == (
        True, False, True,
    )  # fmt: skip
    x[0] = 5
    fill[1, 8](out, x)
    assert np.asarray(out).tolist() == [13, *range(9, 16)]
    fill.launch(out, x, grid=1, block=8, device=device)
    x.fill(1)
    fill.launch(out, x, grid=1, block=8, device=device)
    longs.clear()
    before = counters.downloads
    fill[1, 8](x, out)
    assert longs
    assert counters.downloads == before + 1
    assert np.asarray(x).tolist() == [17] * 8
    fill.launch(out, x, grid=1, block=8, device=device)
    assert np.asarray(out).tolist() == [25] * 8
