"""The standard library on every device against NumPy: empty, one, odd and large lengths."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import stdlib
from sarek_numba.stdlib import arguments
from tests.executors import SEED, devices

DEVICES = devices()
SLOW = "interpreter"
LENGTHS = [0, 1, 2, 37, 70_001]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def on(*dtypes, elsewhere=2):
    """Each element type on `native`, where compiling is quick, and the first ones elsewhere."""
    pairs = [
        (device, dtype)
        for device in DEVICES
        for dtype in (dtypes if device == "native" else dtypes[:elsewhere])
    ]
    return pytest.mark.parametrize(("device", "dtype"), pairs)


@pytest.fixture
def rng():
    return np.random.default_rng(SEED)


def lengths(device):
    """The lengths to try; the large one has several segments, also where it must be smaller."""
    return [*LENGTHS[:-1], 90 if device == SLOW else LENGTHS[-1]]


@pytest.fixture(autouse=True)
def short_segments(device, monkeypatch):
    """The oracle is slow, so its few elements make several segments too."""
    if device == SLOW:
        monkeypatch.setattr(arguments, "_SEGMENT", 40)


def made(rng, dtype, length):
    """Random elements of the whole range; floats are small whole numbers, so sums are exact."""
    dtype = np.dtype(dtype)
    if dtype in arguments.FLOATS:
        return rng.integers(-9, 9, length).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, length).astype(bool)
    return rng.integers(0, 256, length * dtype.itemsize).astype(np.uint8).view(dtype)


def same(actual, expected):
    """Equal in type, shape and bits, NaN included."""
    expected = np.asarray(expected)
    actual = np.asarray(actual)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert actual.tobytes() == expected.tobytes()


@on("int32", "float32", "uint8", "bool")
def test_reductions(device, rng, dtype):
    """reduce_* equal np.sum, prod, min and max in value and type."""
    for length in lengths(device):
        x = made(rng, dtype, length)
        same(stdlib.reduce_sum(x, device=device), np.sum(x))
        if not length:
            continue
        same(stdlib.reduce_min(x, device=device), np.min(x))
        same(stdlib.reduce_max(x, device=device), np.max(x))
        if np.dtype(dtype).kind != "f" or length < 9:
            same(stdlib.reduce_prod(x, device=device), np.prod(x))


def test_sum_of_every_type(device, rng):
    """Every element type reduces, in any shape."""
    for dtype in arguments.ELEMENTS if device == "native" else arguments.ELEMENTS[:1]:
        x = made(rng, dtype, 24).reshape(2, 3, 4)
        wide = x.astype(arguments.accumulator(x.dtype))
        same(stdlib.reduce_sum(x.transpose(2, 0, 1), device=device), np.sum(wide))


def test_zeros_and_nan_of_reductions(device):
    """The sum of negative zeros is one; a NaN is the least and the greatest."""
    same(stdlib.reduce_sum(np.full(3, -0.0, np.float32), device=device), np.float32(-0.0))
    x = np.array([1, np.nan, 2], np.float32)
    assert np.isnan(stdlib.reduce_min(x, device=device))
    assert np.isnan(stdlib.reduce_max(x, device=device))


@on("int32", "float64", "uint8", elsewhere=1)
def test_scans(device, rng, dtype):
    """Scans equal NumPy's accumulations, the exclusive ones shifted by one."""
    for length in lengths(device):
        x = made(rng, dtype, length)
        for op, function, first in (
            ("sum", np.add, 0),
            ("max", np.maximum, None),
        ):
            expected = np.cumsum(x) if op == "sum" else function.accumulate(x)
            same(stdlib.inclusive_scan(x, op, device=device) + 0, expected + 0)
            before = stdlib.exclusive_scan(x, op, device=device)
            assert before.shape == x.shape
            if length and first is not None:
                same(before + 0, np.concatenate([[first], expected[:-1]]).astype(before.dtype))


def test_scan_of_products_and_bools(device, rng):
    """Products wrap as NumPy's; minima and maxima of bools are bools."""
    x = made(rng, "int64", 50)
    same(stdlib.inclusive_scan(x, "prod", device=device), np.cumprod(x))
    flags = rng.integers(0, 2, 50).astype(bool)
    same(stdlib.inclusive_scan(flags, "min", device=device), np.minimum.accumulate(flags))
    same(stdlib.exclusive_scan(flags, "max", device=device)[0], np.False_)


@on("float32", "int32", "uint32", "int64", "float64", "int8")
def test_sort(device, rng, dtype):
    """Keys come in the order of a stable np.sort, bits untouched, and values move along."""
    for length in lengths(device):
        x = made(rng, dtype, length)
        if x.dtype.kind == "f":
            x[::3] = rng.standard_normal(len(x[::3]))
            x[::5] = -0.0
            x[::7] = np.nan
            x[1::11] = -np.inf
        order = np.argsort(x, kind="stable")
        same(stdlib.sort(x, device=device), x[order])
        keys, values = stdlib.sort_by_key(x, np.arange(length, dtype=np.uint16), device=device)
        same(keys, x[order])
        same(values, order.astype(np.uint16))


def test_sort_leaves_its_input(device, rng):
    """The keys given are neither changed nor returned."""
    for x in (np.array([3, 1, 2], np.int16), np.zeros(5, np.int16), np.array([1], np.int16)):
        before = x.copy()
        result = stdlib.sort(x, device=device)
        assert not np.shares_memory(result, x)
        same(x, before)


@on("float32", "uint8", "float64", elsewhere=1)
def test_histogram(device, rng, dtype):
    """Counts and edges equal NumPy's, on the edges too."""
    for length in lengths(device):
        x = made(rng, dtype, length)
        if dtype == "float32" and length > 2:
            x += rng.random(length).astype(np.float32)
        for bins, limits in ((10, None), (7, (-3.0, 5.5)), (3000, (0, 100))):
            counts, edges = stdlib.histogram(x, bins, limits, device=device)
            expected, expected_edges = np.histogram(x, bins, limits)
            same(edges, expected_edges)
            same(counts, expected)


def test_compact(device, rng):
    """compact(x, mask) is x[mask]."""
    for length in lengths(device):
        x = made(rng, "float64", length)
        for mask in (rng.random(length) < 0.4, np.zeros(length, bool), np.ones(length, bool)):
            same(stdlib.compact(x, mask, device=device), x[mask])


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 50), (33, 17), (32, 16)])
def test_transpose(device, rng, shape):
    """transpose(a) is a.T, in C order."""
    a = made(rng, "int16", shape[0] * shape[1]).reshape(shape)
    result = stdlib.transpose(a, device=device)
    same(result, a.T)
    assert result.flags.c_contiguous


@pytest.mark.parametrize("shape", [(0, 3, 2), (1, 1, 1), (3, 0, 2), (17, 33, 20), (32, 16, 48)])
def test_matmul(device, rng, shape):
    """Products of small whole numbers are exact; of others within the bound of their sums."""
    m, k, n = shape
    a = made(rng, "float32", m * k).reshape(m, k)
    b = made(rng, "float32", k * n).reshape(k, n)
    same(stdlib.matmul(a, b, device=device) + 0, a @ b + 0)
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a, b = a.astype(np.float32), b.astype(np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = (k + 1) * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    assert np.all(np.abs(stdlib.matmul(a, b, device=device) - exact) <= 1.01 * bound)


def _levels(offsets, targets, source):
    """Breadth-first search with a queue."""
    levels = np.full(len(offsets) - 1, -1, np.int32)
    levels[source] = 0
    queue = [source]
    for v in queue:
        for w in targets[offsets[v] : offsets[v + 1]]:
            if levels[w] < 0:
                levels[w] = levels[v] + 1
                queue.append(w)
    return levels


def test_bfs(device, rng):
    """Levels are those of a queue, on random graphs, a path, and a lone vertex."""
    large = 60 if device == SLOW else 3000
    graphs = [(np.zeros(2, np.int32), np.empty(0, np.int32))]
    for count, edges in ((9, 12), (large, large), (large, 4 * large)):
        sources = np.sort(rng.integers(0, count, edges))
        offsets = np.searchsorted(sources, np.arange(count + 1))
        graphs.append((offsets, rng.integers(0, count, edges)))
    graphs.append((np.minimum(np.arange(31), 29), np.arange(1, 30)))
    for offsets, targets in graphs:
        root = (len(offsets) - 1) // 3
        same(stdlib.bfs(offsets, targets, root, device=device), _levels(offsets, targets, root))


@pytest.mark.parametrize("shape", [(0, 4), (1,), (2,), (8,), (3, 64), (2, 2, 256)])
def test_fft(device, rng, shape):
    """Transforms are NumPy's within the error of their steps, and the inverse leads back."""
    x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
    result = stdlib.fft(x, device=device)
    back = stdlib.ifft(result, device=device)
    assert result.dtype == back.dtype == np.complex64
    assert result.shape == back.shape == shape
    steps = max(1, shape[-1].bit_length())
    size = np.sqrt(np.sum(np.abs(x.astype(np.complex128)) ** 2, axis=-1, keepdims=True))
    exact = np.fft.fft(x.astype(np.complex128))
    assert np.all(np.abs(result - exact) <= 4 * steps * 2.0**-24 * np.sqrt(shape[-1]) * size)
    assert np.all(np.abs(back - x) <= 8 * steps * 2.0**-24 * size)


def test_devices_agree(rng):
    """Sums and transforms of floats are the same bits on every device."""
    x = rng.standard_normal(200).astype(np.float32)
    z = x.view(np.complex64)[:64]
    sums = {stdlib.reduce_sum(x, device=d).tobytes() for d in DEVICES}
    scans = {stdlib.inclusive_scan(x, device=d).tobytes() for d in DEVICES}
    transforms = {stdlib.fft(z, device=d).tobytes() for d in DEVICES}
    assert (len(sums), len(scans), len(transforms)) == (1, 1, 1)


@pytest.mark.parametrize("name", [d for d in DEVICES if d != SLOW])
def test_current_device(name):
    """Without `device` the current one is used."""
    with sarek.use_device(name):
        same(stdlib.sort(np.array([2, 1], np.int32)), np.array([1, 2], np.int32))


def _block_of(threads):
    x = np.arange(threads, dtype=np.int64) % 7
    return x, np.cumsum(x)


@sarek.kernel
def _large_block(out, x):
    t = sarek.thread_idx.x
    out[t, 0] = sarek.block.reduce_sum(x[t])
    out[t, 1] = sarek.block.scan_sum(x[t])
    out[t, 2] = sarek.block.scan_exclusive_sum(x[t])


def test_blocks_larger_than_shared_memory(device):
    """Collectives work in every block that a device allows, beyond 1024 threads too."""
    threads = min(3000, sarek.device(device).limits.threads_per_block)
    x, sums = _block_of(threads)
    out = np.zeros((threads, 3), np.int64)
    _large_block.launch(out, x, grid=1, block=threads, device=device)
    same(out, np.stack([np.full(threads, sums[-1]), sums, sums - x], 1))
