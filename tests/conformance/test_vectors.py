"""Vectors on every device: what moves and when, sub-vectors, NumPy's manners, refusals."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import stdlib
from sarek_numba.errors import (
    ArgumentTypeError,
    CompileError,
    InvalidArgument,
    ReadOnlyWrite,
)
from sarek_numba.runtime.cache import counters

DEVICES = [device.name for device in sarek.devices()]
APART = [name for name in DEVICES if sarek.device(name).driver.memory is not None]
on_devices = pytest.mark.parametrize("device", DEVICES)
on_devices_with_memory = pytest.mark.parametrize("device", APART)


@sarek.kernel
def add(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i]


@sarek.kernel
def add_rows(out, x):
    i, j = sarek.global_idx.y, sarek.global_idx.x
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] += x[i, j]


def numbers(count=1000, dtype=np.float32):
    return np.arange(1, count + 1).astype(dtype)


@on_devices_with_memory
def test_ten_launches_upload_once_and_download_nothing(device):
    """Data moves when it must: before the first launch, and when the host reads."""
    out, x = sarek.zeros(1000, np.float32), sarek.vector(numbers())
    counters.reset()
    for _ in range(10):
        add.launch(out, x, grid=4, block=256, device=device)
    assert (counters.launches, counters.uploads, counters.downloads) == (10, 2, 0)
    assert not out.is_current()
    assert out.is_current(device)
    assert x.is_current()
    assert (out == 10 * numbers()).all()
    assert counters.downloads == 1
    assert (counters.uploaded_bytes, counters.downloaded_bytes) == (8000, 4000)
    assert np.asarray(out)[3] == 40
    assert counters.downloads == 1


@pytest.mark.parametrize("device", ["native", "interpreter"])
def test_devices_on_the_host_move_nothing(device):
    """They work on the vector's own memory."""
    out, x = sarek.zeros(100, np.float32), sarek.vector(numbers(100))
    counters.reset()
    add.launch(out, x, grid=1, block=128, device=device)
    assert (out == numbers(100)).all()
    assert (counters.uploads, counters.downloads) == (0, 0)


@on_devices_with_memory
def test_writing_one_element_moves_one_element(device):
    """After a launch the host changes one element; the next launch gets no more than that."""
    out, x = sarek.zeros(1000, np.float32), sarek.vector(numbers())
    add.launch(out, x, grid=4, block=256, device=device)
    counters.reset()
    out[7] = -1
    add.launch(out, x, grid=4, block=256, device=device)
    assert (counters.uploads, counters.uploaded_bytes, counters.downloads) == (1, 4, 0)
    expected = 2 * numbers()
    expected[7] = -1 + 8
    assert (out == expected).all()


@on_devices
def test_from_device_to_device(device):
    """What one device wrote is what another reads."""
    out, x = sarek.zeros(50, np.int64), sarek.vector(numbers(50, np.int64))
    for each in (device, *DEVICES, device):
        add.launch(out, x, grid=1, block=64, device=each)
    assert (out == numbers(50, np.int64) * (len(DEVICES) + 2)).all()


@on_devices
def test_freeing_loses_nothing(device):
    """What only the device has comes to the host first; the next launch brings it back."""
    out, x = sarek.zeros(50, np.float32), sarek.vector(numbers(50))
    add.launch(out, x, grid=1, block=64, device=device)
    out.free(device)
    assert (out == numbers(50)).all()
    add.launch(out, x, grid=1, block=64, device=device)
    out.free()
    assert (out == 2 * numbers(50)).all()


@on_devices
@pytest.mark.parametrize(
    "part", [slice(1, 40), slice(16, 48), slice(None, None, 2), slice(None, None, -1), slice(9, 9)]
)
def test_a_part_is_the_same_memory(device, part):
    """A launch on a part is seen through the whole, and the other way round."""
    whole, model = sarek.vector(numbers(64)), numbers(64)
    x = sarek.ones(len(model[part]), np.float32)
    add.launch(whole[part], x, grid=1, block=64, device=device)
    model[part] += 1
    assert (whole == model).all()
    add.launch(whole, whole.copy(), grid=1, block=64, device=device)
    assert (whole[part] == 2 * model[part]).all()


@on_devices
def test_parts_of_one_vector_in_one_launch(device):
    """Overlapping arguments of one memory see each other, as arrays of NumPy do."""
    whole, model = sarek.vector(numbers(64)), numbers(64)
    add.launch(whole[:32], whole[32:], grid=1, block=32, device=device)
    model[:32] += model[32:]
    assert (whole == model).all()
    add.launch(whole[10:20], np.asarray(whole)[40:50], grid=1, block=32, device=device)
    model[10:20] += model[40:50]
    assert (whole == model).all()


@on_devices
@pytest.mark.parametrize("turned", [False, True])
def test_layouts(device, turned):
    """C and F order, transposed views and rows."""
    values = np.arange(12, dtype=np.float64).reshape(3, 4)
    out = sarek.vector(values)
    x = sarek.vector(np.asfortranarray(values))
    if turned:
        out, x, values = out.T, x.T, values.T
    add_rows.launch(out, x, grid=1, block=(4, 4), device=device)
    assert (out == 2 * values).all()
    assert out[1].shape == values[1].shape
    assert (out[1] == 2 * values[1]).all()
    assert out[2, 1] == 2 * values[2, 1]


@on_devices
def test_records_and_complex_numbers(device):
    """Elements of every type a kernel takes."""

    @sarek.kernel
    def move(points, z):
        i = sarek.global_idx.x
        points[i].at.x += 1
        z[i] *= 1j

    dtype = np.dtype([("id", np.int8), ("at", [("x", np.float32), ("y", np.float64)])])
    points, z = sarek.zeros(4, dtype), sarek.ones(4, np.complex64)
    move.launch(points, z, grid=1, block=4, device=device)
    move.launch(points, z, grid=1, block=4, device=device)
    assert (np.asarray(points)["at"]["x"] == 2).all()
    assert (z == -1).all()


@on_devices
def test_with_arrays_of_numpy(device):
    """Vectors and arrays in one launch; what is written to an array is there when it returns."""
    out, x = np.zeros(30, np.float32), sarek.vector(numbers(30))
    add.launch(out, x, grid=1, block=32, device=device)
    assert (out == numbers(30)).all()
    add.launch(x, out, grid=1, block=32, device=device)
    assert (x == 2 * numbers(30)).all()


# --- the host -------------------------------------------------------------------------------------


def test_arrays_of_a_vector_are_read_only():
    """`np.asarray` does not copy, and what it gives cannot be written behind the vector's back."""
    v = sarek.vector([1.0, 2.0])
    a = np.asarray(v)
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 5
    assert np.shares_memory(a, np.asarray(v))
    assert np.asarray(v, np.float32).dtype == np.float32
    assert np.array(v).flags.writeable
    assert not np.shares_memory(np.array(v), a)


@on_devices
def test_host_gives_a_writable_array(device):
    """In the body of `with` the newest elements; afterwards the host's are the newest."""
    out, x = sarek.zeros(8, np.float32), sarek.vector(numbers(8))
    add.launch(out, x, grid=1, block=8, device=device)
    with out.host() as array:
        array[:4] *= 10
    add.launch(out, x, grid=1, block=8, device=device)
    expected = numbers(8)
    expected[:4] *= 10
    assert (out == expected + numbers(8)).all()


def test_manners_of_arrays():
    """Constructors, shapes, comparison, iteration, copies and pickles are as NumPy's."""
    assert (sarek.arange(2, 8, 3) == [2, 5]).all()
    assert sarek.full(3, True).dtype == np.bool_
    assert sarek.like(np.zeros((2, 3), np.int8)).shape == (2, 3)
    assert sarek.empty((2, 0)).size == 0
    v = sarek.vector(np.arange(6).reshape(2, 3))
    assert (v.shape, v.ndim, v.size, v.nbytes, len(v)) == ((2, 3), 2, 6, 48, 2)
    assert [list(row) for row in v] == [[0, 1, 2], [3, 4, 5]]
    assert v.reshape(3, 2)[1].tolist() == [2, 3]
    assert v.reshape(-1)[4] == 4
    with pytest.raises(AttributeError, match="shape"):
        v.T.reshape(6)
    assert v.view(np.uint32).shape == (2, 6)
    assert (v < 3).sum() == 3
    assert 5 in v
    assert v[1, 2] == 5
    assert isinstance(v[1, 2], np.int64)
    assert float(sarek.vector([2.5])[0:1].reshape(())) == 2.5
    twin = pickle.loads(pickle.dumps(v.T))
    assert (twin == v.T).all()
    assert twin.strides == v.T.copy().T.T.strides or twin.shape == (3, 2)
    assert repr(sarek.vector([1, 2])) == "vector([1, 2], dtype=int64)"
    with pytest.raises(TypeError):
        hash(v)


def test_from_dlpack_and_back():
    """DLPack both ways; an export may be written by whoever gets it."""
    v = sarek.from_dlpack(np.arange(3.0))
    exported = np.from_dlpack(v)
    assert np.shares_memory(exported, np.asarray(v))
    assert (sarek.from_dlpack(v) == v).all()


@on_devices_with_memory
def test_an_export_makes_other_copies_stale(device):
    """The consumer may write at any time, so a later launch gets the host's bytes."""
    v, x = sarek.zeros(4, np.float32), sarek.ones(4, np.float32)
    add.launch(v, x, grid=1, block=4, device=device)
    exported = np.from_dlpack(v)
    assert (exported == 1).all()
    assert not v.is_current(device)


def test_buffers_go_with_their_vectors():
    """Device memory of a vector that nobody has any more is given back."""
    device = APART[0] if APART else pytest.skip("no device with memory of its own")
    v = sarek.ones(1000, np.float32).to(device)
    finalizer = v._storage._release
    assert finalizer.alive
    part = v[10:20]
    del v
    gc.collect()
    assert finalizer.alive
    del part
    gc.collect()
    assert not finalizer.alive


def test_the_tools_take_vectors():
    """Emulation, the sanitizer, comparison and the standard library."""
    out, x = sarek.zeros(8, np.float32), sarek.vector(numbers(8))
    sarek.emulate(add)[1, 8](out, x)
    assert (out == numbers(8)).all()
    assert not sarek.sanitize(add)[1, 8](out, x).findings
    assert (out == 2 * numbers(8)).all()
    report = sarek.compare(add)[1, 8](out, x)
    assert report.agrees
    assert (stdlib.sort(sarek.vector([3, 1, 2])) == [1, 2, 3]).all()


# --- refusals -------------------------------------------------------------------------------------


def test_index_arrays_are_refused_for_reading():
    """They give copies, which a vector of the same memory cannot be."""
    v = sarek.arange(5)
    for index in ([1, 2], np.array([True] * 5), (np.array([0]),)):
        with pytest.raises(ValueError, match="index a copy on the host"):
            v[index]
    v[[1, 2]] = 9
    v[np.asarray(v) < 3] = -1
    assert v.tolist() == [-1, 9, 9, 3, 4]
    with pytest.raises(IndexError):
        v[5]


def test_read_only_vectors():
    """Neither the host nor a kernel writes to one."""
    v = sarek.vector(np.broadcast_to(np.float32(1), 4))
    assert not v.readonly
    frozen = sarek.Vector(v._storage, np.asarray(v))
    with pytest.raises(ReadOnlyWrite):
        frozen[0] = 1
    with pytest.raises(ReadOnlyWrite), frozen.host():
        pass
    with pytest.raises(CompileError, match="read-only"):
        add[1, 4](frozen, v)


def test_elements_no_kernel_takes():
    """Refused as arrays of them are, before anything moves."""
    counters.reset()
    with pytest.raises(ArgumentTypeError, match="order of another machine"):
        add[1, 4](sarek.zeros(4, ">f4"), sarek.zeros(4, np.float32))
    v = sarek.zeros(4, np.float32)
    with pytest.raises(InvalidArgument, match="restrict"):
        sarek.kernel(restrict=True)(add.py_func)[1, 4](v[:3], v[1:])
    assert (counters.uploads, counters.launches) == (0, 0)
