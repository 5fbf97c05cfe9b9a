"""The array zoo: each layout as input, as output and as both, on every executor.

Each array lies in a buffer of canary bytes; what the kernel was not to write keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from tests.executors import EMULATION, executors, run
from tests.kernels.case import Launch

CANARY = 0xC5


@sarek.kernel
def affine_1d(out, x):
    i = sarek.global_idx.x
    if i < out.shape[0]:
        out[i] = x[i] * 3 + 1


@sarek.kernel
def affine_2d(out, x):
    i, j = sarek.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = x[i, j] * 3 + 1


@sarek.kernel
def affine_3d(out, x):
    i, j, k = sarek.grid(3)
    if i < out.shape[0] and j < out.shape[1] and k < out.shape[2]:
        out[i, j, k] = x[i, j, k] * 3 + 1


KERNELS = {1: affine_1d, 2: affine_2d, 3: affine_3d}
BLOCKS = {1: (8,), 2: (4, 4), 3: (2, 4, 2)}
GRIDS = {1: (3,), 2: (2, 2), 3: (2, 1, 2)}


@dataclass(frozen=True)
class Layout:
    """Shape, strides in bytes, and where the first element lies in a buffer of 512 bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 64
    dtype: str = "i4"

    def array(self) -> tuple[np.ndarray, Any]:
        """A buffer of canaries and the view of it."""
        buffer = np.full(512, CANARY, np.uint8)
        dtype = np.dtype(self.dtype)
        return buffer, np.ndarray(self.shape, dtype, buffer.data, self.offset, self.strides)


ZOO = {
    "c": Layout((4, 6), (24, 4)),
    "fortran": Layout((4, 6), (4, 16)),
    "one axis": Layout((20,), (4,)),
    "one element": Layout((1,), (4,)),
    "every third": Layout((20,), (12,)),
    "reversed": Layout((20,), (-4,), 300),
    "reversed by two": Layout((20,), (-8,), 300),
    "offset": Layout((20,), (4,), 132),
    "rows apart": Layout((4, 6), (40, 4)),
    "columns apart": Layout((4, 6), (72, 12)),
    "rows reversed": Layout((4, 6), (-24, 4), 300),
    "columns reversed": Layout((4, 6), (24, -4), 300),
    "both reversed and apart": Layout((4, 6), (-56, -8), 300),
    "fortran, apart": Layout((4, 6), (8, 48)),
    "three axes": Layout((2, 3, 4), (48, 16, 4)),
    "axes permuted": Layout((2, 3, 4), (16, 32, 4)),
    "axes permuted, one reversed": Layout((2, 3, 4), (4, -32, 8), 256),
    "three axes, fortran": Layout((2, 3, 4), (4, 8, 24)),
    "one row, odd stride": Layout((1, 6), (12344, 4)),
    "one column, odd stride": Layout((4, 1), (4, -77777)),
    "one of each, odd strides": Layout((1, 1, 1), (3, 5, -7)),
    "middle axis of one, odd stride": Layout((2, 1, 4), (16, 999999, 4)),
    "empty": Layout((0,), (4,)),
    "no rows": Layout((0, 6), (24, 4)),
    "no columns": Layout((4, 0), (24, 4)),
    "no rows, odd strides": Layout((0, 6), (-7, 99991)),
    "under-aligned by one": Layout((20,), (4,), 61),
    "under-aligned by two": Layout((4, 6), (24, 4), 62),
    "under-aligned, reversed": Layout((20,), (-4,), 301),
    "field of a packed record": Layout((20,), (5,), 65),
    "field of a packed record, two axes": Layout((4, 6), (54, 9), 67),
    "rows under-aligned, first aligned": Layout((4, 6), (27, 4), 64),
    "wide field of a packed record": Layout((20,), (9,), 65, "f8"),
    "narrow field of a packed record": Layout((20,), (3,), 65, "i2"),
    "float64 aligned to 4": Layout((20,), (8,), 60, "f8"),
    "bytes": Layout((20,), (1,), 61, "i1"),
    "bytes, apart": Layout((20,), (3,), 61, "u1"),
}
INPUTS = {
    "one value for all": Layout((20,), (0,)),
    "one row for all": Layout((4, 6), (0, 4)),
    "one column for all": Layout((4, 6), (4, 0)),
    "window": Layout((4, 6), (4, 4)),
    "window, reversed": Layout((4, 6), (-4, 8), 120),
    "one value for all, under-aligned": Layout((20,), (0,), 61),
}


def _filled(layout: Layout) -> tuple[np.ndarray, Any]:
    """An array of small numbers, none of them a canary; windows are filled as they lie."""
    buffer, array = layout.array()
    array[...] = (np.arange(array.size).reshape(array.shape) * 7 % 40).astype(array.dtype)
    return buffer, array


def _plain(layout: Layout) -> Layout:
    """A C-contiguous layout of that shape and type."""
    size = np.dtype(layout.dtype).itemsize
    strides = np.empty(layout.shape, f"V{size}").strides
    return Layout(layout.shape, strides, 64, layout.dtype)


def _launch(executor: str, out: Any, x: Any) -> None:
    run(executor, KERNELS[out.ndim], Launch(GRIDS[out.ndim], BLOCKS[out.ndim], (out, x), ()))


def _check(executor: str, target: Layout, source: Layout) -> None:
    """Launch out = x * 3 + 1; the whole buffer of each is as NumPy leaves it."""
    (out_buffer, out), (x_buffer, x) = target.array(), _filled(source)
    expected_buffer, expected = target.array()
    expected[...] = x * 3 + 1
    x_before = x_buffer.copy()
    _launch(executor, out, x)
    assert np.array_equal(out, expected)
    assert out_buffer.tobytes() == expected_buffer.tobytes(), "wrote outside of the array"
    assert x_buffer.tobytes() == x_before.tobytes(), "wrote to the input"


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("name", [*ZOO, *INPUTS])
def test_input(name: str, executor: str) -> None:
    """Every element is read where it lies (case 95: odd strides of axes of one element)."""
    layout = {**ZOO, **INPUTS}[name]
    _check(executor, _plain(layout), layout)


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("name", ZOO)
def test_output(name: str, executor: str) -> None:
    """Every element is written where it lies; the bytes around and between are untouched
    (case 95).
    """
    _check(executor, ZOO[name], _plain(ZOO[name]))


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("name", ZOO)
def test_in_place(name: str, executor: str) -> None:
    """One array as both arguments (cases 95 and 109)."""
    buffer, array = _filled(ZOO[name])
    expected_buffer, expected = _filled(ZOO[name])
    expected[...] = expected * 3 + 1
    _launch(executor, array, array)
    assert buffer.tobytes() == expected_buffer.tobytes()


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("name", INPUTS)
def test_in_place_output_of_read_only(name: str, executor: str) -> None:
    """A read-only input gives what a writable one gives."""
    layout = INPUTS[name]
    _, x = _filled(layout)
    x.flags.writeable = False
    _, out = _plain(layout).array()
    _launch(executor, out, x)
    assert np.array_equal(out, x * 3 + 1)


@pytest.mark.parametrize("executor", executors())
def test_read_only_output_is_refused(executor: str) -> None:
    """Writing to a read-only array is an error, and nothing changes."""
    buffer, out = _filled(ZOO["one axis"])
    before = buffer.copy()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        _launch(executor, out, np.ones(20, np.int32))
    assert buffer.tobytes() == before.tobytes()


@pytest.mark.parametrize("executor", [name for name in executors() if name != EMULATION])
@pytest.mark.parametrize("dtype", [">i4", ">f8", ">u2"])
def test_case_100_big_endian_is_refused(dtype: str, executor: str) -> None:
    """Bytes in the other order are refused as input and as output, and nothing changes."""
    native, swapped = np.ones(20, dtype[1:]), np.ones(20, dtype)
    for out, x in ((native, swapped), (swapped, native)):
        with pytest.raises(TypeError, match="byte"):
            _launch(executor, out, x)
    assert (native == 1).all()
    assert (swapped == 1).all()


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("offset", [0, 64, 3])
def test_memory_maps(offset: int, executor: str, tmp_path: Any) -> None:
    """A read-only map is an input, a writable one an output, at any offset in the file."""
    (tmp_path / "x").write_bytes(bytes(offset) + np.arange(20, dtype=np.int32).tobytes() + b"end")
    (tmp_path / "out").write_bytes(bytes([CANARY]) * (offset + 83))
    x = np.memmap(tmp_path / "x", np.int32, "r", offset, (20,))
    out = np.memmap(tmp_path / "out", np.int32, "r+", offset, (20,))
    _launch(executor, out, x)
    out.flush()
    expected = (np.arange(20, dtype=np.int32) * 3 + 1).tobytes()
    canary = bytes([CANARY])
    assert (tmp_path / "out").read_bytes() == canary * offset + expected + canary * 3


# --- arguments that share memory ------------------------------------------------------------------


def _overlaps(base: np.ndarray) -> dict[str, tuple[Any, Any]]:
    """Pairs of output and input that overlap; no thread reads what another one writes."""
    square = base[:16].reshape(4, 4)
    return {
        "interleaved": (base[1::2], base[::2]),
        "interleaved, reversed": (base[1::2][::-1], base[::2]),
        "halves of overlapping stretches": (base[12:32], base[:28][:12]),
        "rows of one matrix": (square[2:], square[:2]),
        "columns of one matrix": (square[:, 2:], square[:, :2]),
        "transposed halves": (square[2:, :2], square[:2, 2:].T),
        "other half, strided": (base[20:36:4], base[:4]),
    }


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("name", _overlaps(np.zeros(40, np.int32)))
def test_overlapping_arguments(name: str, executor: str) -> None:
    """Views of one array: what one argument writes is in all, and nowhere else."""
    base, expected = np.arange(40, dtype=np.int32), np.arange(40, dtype=np.int32)
    out, x = _overlaps(base)[name]
    extent = tuple(slice(0, min(a, b)) for a, b in zip(out.shape, x.shape, strict=True))
    out, x = out[extent], x[extent]
    target, source = _overlaps(expected)[name]
    target[extent] = source[extent].copy() * 3 + 1
    _launch(executor, out, x)
    assert base.tolist() == expected.tolist()


@sarek.kernel
def written_then_read(out, again, seen):
    out[0] = 5
    total = 0
    for _ in range(3):
        total += int(again[0])
        out[0] = out[0] + 1
    seen[0] = total


@pytest.mark.parametrize("executor", executors())
def test_case_109_same_array_twice(executor: str) -> None:
    """A store through one argument is seen by the next read through the other."""
    a, seen = np.zeros(2, np.int32), np.zeros(1, np.int32)
    run(executor, written_then_read, Launch(1, 1, (a, a, seen), ()))
    assert a.tolist() == [8, 0]
    assert seen[0] == 5 + 6 + 7


@pytest.mark.parametrize("executor", executors())
def test_case_109_overlapping_views(executor: str) -> None:
    """The same through views that overlap by one element."""
    a, seen = np.zeros(5, np.int32), np.zeros(1, np.int32)
    run(executor, written_then_read, Launch(1, 1, (a[2:], a[:3][::-1], seen), ()))
    assert a.tolist() == [0, 0, 8, 0, 0]
    assert seen[0] == 18


@sarek.kernel
def punned(whole, parts, seen):
    i = sarek.global_idx.x
    if i < len(whole):
        before = parts[i, 0]
        whole[i] = 1.5
        after = parts[i, 0]
        parts[i, 0] = before
        seen[i, 0] = after
        seen[i, 1] = whole[i]


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("part", ["u1", "i2", "i4", "u4"])
def test_views_of_other_types(part: str, executor: str) -> None:
    """A store as float32 is seen through integer views of the same bytes, and the reverse."""
    whole = np.array([0.1, -3.25, 1e20], np.float32)
    parts = whole.view(part).reshape(3, -1)
    before, stored = parts[:, 0].copy(), np.full(3, 1.5, np.float32)
    after = stored.view(part).reshape(3, -1)
    mixed = stored.copy()
    mixed.view(part).reshape(3, -1)[:, 0] = before
    seen = np.zeros((3, 2), np.float64)
    run(executor, punned, Launch(1, 4, (whole, parts, seen), ()))
    assert seen[:, 0].tolist() == after[:, 0].tolist()
    assert seen[:, 1].tolist() == mixed.tolist()
    assert whole.tolist() == mixed.tolist()


@sarek.kernel
def punned_shared(x, out):
    t = sarek.thread_idx.x
    floats = sarek.shared.dynamic(0, sarek.float32)
    ints = sarek.shared.dynamic(0, sarek.int32)
    floats[t] = x[t]
    before = ints[t]
    floats[t] = 1.5
    after = ints[t]
    ints[t] = before
    out[t, 0] = int(after)
    out[t, 1] = floats[t]


@pytest.mark.parametrize("executor", executors())
def test_shared_views_of_other_types(executor: str) -> None:
    """The same of two views of the dynamic shared region."""
    x = np.array([0.1, -3.25, 1e20, 7], np.float32)
    out = np.zeros((4, 2), np.float64)
    run(executor, punned_shared, Launch(1, 4, (x, out), (), shared_bytes=16))
    assert out[:, 0].tolist() == [int(np.float32(1.5).view(np.int32))] * 4
    assert out[:, 1].tolist() == x.tolist()


def test_fields_of_packed_records() -> None:
    """Two fields of one packed array as arguments: their bytes lie among each other."""
    dtype = np.dtype([("flag", "u1"), ("value", "<f4"), ("count", "<i2")])
    for executor in executors():
        records = np.zeros(20, dtype)
        records["flag"], records["value"] = 77, np.arange(20)
        _launch(executor, records["count"], records["flag"])
        _launch(executor, records["value"], records["value"])
        assert records["flag"].tolist() == [77] * 20, executor
        assert records["count"].tolist() == [232] * 20, executor
        assert records["value"].tolist() == [3.0 * k + 1 for k in range(20)], executor
