"""Vectors on several devices: `shard`, `gather`, launches for each, `all_reduce`, and refusals.

The devices are unlike ones of this machine, the oracle with them.
"""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.errors import (
    ArgumentTypeError,
    CapabilityError,
    GraphError,
    InvalidArgument,
    InvalidDimensions,
    UnknownDevice,
)
from sarek_numba.realize import copies, several

PRESENT = {d.name: d for d in sarek.devices()}
TRIED = ("native", "opencl:pocl:0", "vulkan:0", "interpreter")
DEVICES = [name for name in TRIED if name in PRESENT]
DEVICES += [name for name, d in PRESENT.items() if not d.record.is_cpu and name not in TRIED]
N = 103


def first_line(refused):
    return str(refused.value).splitlines()[0]


@sarek.kernel
def mark(out: Any, x: Any, a: Any, _device_num: Any) -> None:
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = a * x[i] + 1000 * _device_num


@sarek.kernel
def add_rows(out: Any, m: Any) -> None:
    i = sarek.global_idx.x
    if i < m.shape[0]:
        total = np.float32(0)
        for j in range(m.shape[1]):
            total += m[i, j]
        out[i] = total


def shares(length, count):
    """The lengths of parts that are as equal as they can be."""
    return [length // count + (k < length % count) for k in range(count)]


def test_unlike_devices_are_there():
    """With what setting up a checkout installs they are native, PoCL, llvmpipe, and the oracle."""
    assert set(DEVICES) >= {"native", "interpreter"}


@pytest.mark.parametrize(("axis", "as_array"), [*product((0, 1, -1, None), (False, True))])
def test_parts_and_their_whole(axis, as_array):
    """Memory of their own on each device, along an axis, or all of it; together it is the whole."""
    values = np.arange(5 * 7, dtype=np.float32).reshape(5, 7)
    given = values if as_array else sarek.vector(values)
    x = sarek.shard(given, DEVICES, axis)
    assert [d.name for d in x.devices] == [sarek.device(name).name for name in DEVICES]
    assert (x.dtype, x.shape, x.ndim, x.size, len(x)) == (np.float32, (5, 7), 2, 35, 5)
    assert x.axis == (None if axis is None else axis % 2)
    expected = (
        [values] * len(DEVICES) if axis is None else np.array_split(values, len(DEVICES), axis)
    )
    for part, device, wanted in zip(x.parts, x.devices, expected, strict=True):
        assert part.is_current(device)
        assert np.array_equal(part, wanted)
    assert np.array_equal(np.asarray(x), values)
    assert np.array_equal(sarek.gather(x), values)
    for device in DEVICES:
        whole = sarek.gather(x, device)
        assert whole.is_current(device)
        assert np.array_equal(whole, values)
    given[0, 0] = 99
    assert np.asarray(x)[0, 0] == 0
    x.fill(3)
    assert np.array_equal(sarek.gather(x), np.full((5, 7), 3))


def test_fewer_rows_than_devices():
    """The last parts are empty, and are launched as nothing."""
    x, out = sarek.shard(np.ones(1, np.int32), DEVICES), sarek.shard(np.zeros(1, np.int32), DEVICES)
    assert [part.size for part in x.parts] == [1] + [0] * (len(DEVICES) - 1)
    mark.forall(x)(out, x, 5)
    assert list(sarek.gather(out)) == [5]
    assert (
        list(np.asarray(sarek.all_reduce(sarek.shard(np.ones(0, np.int32), DEVICES, None)))) == []
    )


@pytest.mark.parametrize("launch", ["grid", "launch", "forall", "forall of parts", "auto"])
def test_a_launch_runs_once_on_each_device(launch):
    """With its parts, numbers alike, and the position as `_device_num`; in later launches too."""
    x = sarek.shard(np.arange(N, dtype=np.float32), DEVICES)
    out = sarek.shard(np.zeros(N, np.float32), DEVICES)
    launches = {
        "grid": mark[4, 32],
        "launch": lambda *given: mark.launch(*given, grid=4, block=32),
        "forall": mark.forall(64, 32),
        "forall of parts": mark.forall(x, 16),
        "auto": mark.forall(x, "auto"),
    }
    numbers = np.repeat(np.arange(len(DEVICES)), shares(N, len(DEVICES)))
    for k in range(6):
        before = execute.counters.launches
        launches[launch](out, x, 1.0 + k)
        if launch != "auto":
            assert execute.counters.launches == before + len(DEVICES)
        assert np.array_equal(sarek.gather(out), (1 + k) * np.arange(N) + 1000 * numbers)
    for part, device in zip(out.parts, out.devices, strict=True):
        assert part.is_current(device)


def test_a_device_number_is_0_on_one_device():
    """And what a launch says it is."""
    x, out = sarek.ones(4, np.float32), sarek.zeros(4, np.float32)
    mark[1, 4](out, x, 2.0)
    assert out[0] == 2
    mark[1, 4](out, x, 2.0, 3)
    assert out[0] == 3002
    mark.launch(out, x, 2.0, grid=1, block=4, _device_num=4)
    assert out[0] == 4002


def test_parts_along_another_axis():
    """A matrix by columns: a partial result of each device, and their sum on all."""
    m = np.arange(6 * 10, dtype=np.float32).reshape(6, 10)
    parts = sarek.shard(m, DEVICES, axis=1)
    sums = sarek.shard(np.zeros(6, np.float32), DEVICES, axis=None)
    add_rows[1, 32](sums, parts)
    assert sarek.all_reduce(sums) is sums
    for part, device in zip(sums.parts, sums.devices, strict=True):
        assert part.is_current(device)
        assert np.array_equal(part, m.sum(1))


OPERATIONS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


@pytest.mark.parametrize(
    ("op", "dtype"), [*product(OPERATIONS, ("i4", "u8", "f4", "f8", "f2", "i1"))]
)
def test_all_reduce_is_the_same_everywhere(op, dtype):
    """Element by element, in the order of the devices, at the type of the elements."""
    generator = np.random.default_rng(5)
    values = [generator.integers(1, 9, (3, 17)).astype(dtype) for _ in DEVICES]
    if np.dtype(dtype).kind == "f":
        values = [(each / 7).astype(dtype) for each in values]
    x = sarek.shard(values[0], DEVICES, axis=None)
    for part, each in zip(x.parts, values, strict=True):
        part[...] = each
    expected = values[0]
    for each in values[1:]:
        expected = OPERATIONS[op](expected, each)
    sarek.all_reduce(x, op)
    for part in x.parts:
        assert np.asarray(part).tobytes() == expected.tobytes()


def test_copies_go_pair_by_pair():
    """Between unlike devices through the host, within one in its memory."""
    values = np.arange(N, dtype=np.float32)
    x = sarek.shard(values, DEVICES)
    y = sarek.shard(np.zeros(N, np.float32), DEVICES[::-1])
    same = sarek.shard(np.zeros(N, np.float32), DEVICES)
    if shares(N, len(DEVICES))[0] == shares(N, len(DEVICES))[-1]:
        several.copy_shards(y, x)
        assert np.array_equal(sarek.gather(y), values)
    mark.forall(x)(x, x, 1.0)  # every device has the newest
    copies.statistics.reset()
    several.copy_shards(same, x)
    apart = [d for d in x.devices if d.driver.memory is not None]
    own = [d for d in apart if isinstance(d.driver.memory, copies.TransferringMemory)]
    assert copies.statistics.through_host == len(apart) - len(own)
    assert copies.statistics.native == len(x.parts) - copies.statistics.through_host
    assert np.array_equal(sarek.gather(same), sarek.gather(x))


def test_parts_move_no_more_than_they_must():
    """A second launch uploads nothing, and reading one part brings that."""
    x = sarek.shard(np.arange(N, dtype=np.float32), DEVICES)
    mark.forall(x)(x, x, 2.0)
    uploads = execute.counters.uploads
    mark.forall(x)(x, x, 2.0)
    assert execute.counters.uploads == uploads
    downloads = execute.counters.downloads
    np.asarray(x.parts[0])
    assert execute.counters.downloads <= downloads + 1


def test_captured_and_jitted():
    """A graph on unlike devices; a function of parts gives parts."""
    x = sarek.shard(np.arange(N, dtype=np.float32), DEVICES)
    out = sarek.shard(np.zeros(N, np.float32), DEVICES)
    with sarek.capture() as g:
        mark.forall(x)(out, x, 2.0)
        mark.forall(x)(out, out, 2.0)
    numbers = np.repeat(np.arange(len(DEVICES)), shares(N, len(DEVICES)))
    assert not np.asarray(out).any()
    for _ in range(3):
        g.replay()
        expected = 4 * np.arange(N) + 3000 * numbers
        assert np.array_equal(np.asarray(out), expected)

    @sarek.jit
    def reduced(x):
        sums = sarek.shard(np.zeros((1, 4), np.float32), DEVICES, axis=None)
        add_rows[1, 4](
            sarek.ShardedVector([p.reshape(-1) for p in sums.parts], sums.devices, None), x
        )
        return sarek.all_reduce(sums), x

    for k in range(4):
        m = sarek.shard(np.full((4, 8), k, np.float32), DEVICES, axis=1)
        sums, same = reduced(m)
        assert np.array_equal(np.asarray(sums), np.full((1, 4), 8 * k))
        assert all(a is b for a, b in zip(same.parts, m.parts, strict=True))
        sums.fill(-1)
    assert len(reduced.graphs) == 1


def test_they_are_pickled_and_shown():
    """Parts come to their devices by name."""
    x = sarek.shard(np.arange(N, dtype=np.float32), DEVICES[:2])
    mark.forall(x)(x, x, 2.0)
    made = pickle.loads(pickle.dumps(x))
    assert np.array_equal(np.asarray(made), np.asarray(x))
    assert (made.devices, made.axis) == (x.devices, 0)
    assert all(p.is_current(d) for p, d in zip(made.parts, made.devices, strict=True))
    names = ", ".join(d.name for d in x.devices)
    assert str(x) == f"<float32[{N}] on {names}, along axis 0>"
    assert str(sarek.shard(np.zeros(3), ["native"], None)) == "<float64[3] on native, a copy each>"


# --- what is refused ------------------------------------------------------------------------------

TWO = ["native", "interpreter"]


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: sarek.shard(np.ones(3), "native"), TypeError, "shard() takes several devices"),
        (
            lambda: sarek.shard(np.ones(3), []),
            InvalidArgument,
            "shard() takes devices, and none are given",
        ),
        (
            lambda: sarek.shard(np.ones(3), [*TWO, "native"]),
            InvalidArgument,
            "shard(): device 'native' is given twice",
        ),
        (lambda: sarek.shard(np.ones(3), ["native", "cuba"]), UnknownDevice, None),
        (
            lambda: sarek.shard(np.ones(3), TWO, 1),
            InvalidArgument,
            "shard(): axis 1 is not one of the 1 axes of the vector",
        ),
        (
            lambda: sarek.shard([1, 2], TWO),
            TypeError,
            "shard() takes a vector or an array of NumPy, not a list",
        ),
        (
            lambda: sarek.gather(sarek.ones(3)),
            TypeError,
            "gather() takes what sarek.shard gives, not a Vector",
        ),
        (
            lambda: sarek.all_reduce(sarek.ones(3)),
            TypeError,
            "all_reduce() takes what sarek.shard gives, not a Vector",
        ),
        (
            lambda: sarek.all_reduce(sarek.shard(np.ones(3), TWO)),
            InvalidArgument,
            "all_reduce(): part 0 has shape (2,), part 1 (1,)",
        ),
        (
            lambda: sarek.all_reduce(sarek.shard(np.ones(3), TWO, None), "mean"),
            InvalidArgument,
            "all_reduce(): op is one of sum, prod, min, max, not 'mean'",
        ),
        (
            lambda: sarek.all_reduce(sarek.shard(np.ones(3, bool), TWO, None)),
            ArgumentTypeError,
            "all_reduce(): the elements are bool; they are to be integers or floats",
        ),
        (
            lambda: several.copy_shards(
                sarek.shard(np.ones(3), TWO), sarek.shard(np.ones(3), ["native"])
            ),
            InvalidArgument,
            "copy: the destination is on 2 devices, the source on 1",
        ),
        (
            lambda: several.copy_shards(
                sarek.shard(np.ones(3), TWO, None), sarek.shard(np.ones(3), TWO)
            ),
            InvalidArgument,
            "copy of part 0: the destination has 3 elements, the source 2",
        ),
        (
            lambda: several.copy_shards(
                sarek.shard(np.ones((2, 3)), TWO, None), sarek.shard(np.ones((3, 2)), TWO, None)
            ),
            InvalidArgument,
            "copy of part 0: the destination has shape (2, 3), the source (3, 2)",
        ),
    ],
)
def test_wrong_parts_are_refused(act, error, text):
    """Each in words of its own."""
    with pytest.raises(error) as refused:
        act()
    if text is not None:
        assert first_line(refused) == text


def launched(**more):
    """A refused launch of `mark` on two devices with something wrong: what it says."""
    x = sarek.shard(np.ones(4, np.float32), TWO)
    given = {"out": sarek.shard(np.zeros(4, np.float32), TWO), "x": x, "a": 1.0} | more
    dimensions = {"grid": given.pop("grid", 1), "block": given.pop("block", 4)}
    where = {"device": given.pop("device", None), "stream": given.pop("stream", None)}
    count = execute.counters.launches
    error = (InvalidArgument, ArgumentTypeError, CapabilityError, InvalidDimensions)
    with pytest.raises(error) as refused:
        mark.launch(**given, **dimensions, **where)
    assert execute.counters.launches == count
    assert not np.asarray(given["out"]).any()
    return first_line(refused)


def test_wrong_launches_are_refused_before_the_first():
    """Unequal numbers of devices, other devices or orders, one device, a device or stream named."""
    ones = np.ones(4, np.float32)
    three = [*TWO, "opencl"]
    assert launched(x=sarek.shard(ones, three)) == (
        "kernel 'mark': 'out' is on 2 devices and 'x' on 3"
    )
    assert launched(x=sarek.shard(ones, TWO[::-1])) == (
        "kernel 'mark': 'out' is on native, interpreter and 'x' on interpreter, native"
    )
    for single in (ones, sarek.vector(ones)):
        text = "kernel 'mark': 'x' is on one device, and others are on 2"
        assert launched(x=single) == text
    text = "is launched on 'native', and its arguments are on native, interpreter"
    assert launched(device="native") == f"kernel 'mark' {text}"
    stream = sarek.device("native").stream()
    assert "is launched on a stream, and its arguments are on" in launched(stream=stream)
    assert "block (2000, 1, 1) is 2000 threads" in launched(block=2000)
    assert "argument 'a'" in launched(a="no number")
    x = sarek.shard(ones, TWO)
    with pytest.raises(InvalidArgument) as refused:
        mark.forall(x)(sarek.zeros(4), sarek.zeros(4), 1.0)
    assert first_line(refused) == "kernel 'mark': no argument is on several devices"
    one = sarek.shard(ones, TWO[:1])
    with pytest.raises(InvalidArgument, match="'n' is on 2 devices and 'out' on 1"):
        mark.forall(x)(one, one, 1.0)


def test_reading_parts_inside_a_capture_is_refused():
    """As of any vector."""
    x = sarek.shard(np.ones(4, np.float32), TWO)
    with sarek.capture(), pytest.raises(GraphError, match="the host reads a vector"):
        np.asarray(x)
    with pytest.raises(ValueError, match="no array without a copy"):
        np.asarray(x, copy=False)
