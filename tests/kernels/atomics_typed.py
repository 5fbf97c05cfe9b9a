"""Every atomic operation on every type that has it, in global and shared memory."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()

INTEGERS = {name: np.dtype(name) for name in ("int32", "uint32", "int64", "uint64")}
FLOATS = {name: np.dtype(name) for name in ("float32", "float64")}
COUNT = 70


def _bits(rng, dtype, size):
    """Random bits, and the ends of the type."""
    values = rng.integers(0, 256, size * dtype.itemsize, dtype=np.uint8).view(dtype).copy()
    info = np.iinfo(dtype)
    values[:4] = [info.min, info.max, 0, 1]
    return values


def _numbers(rng, dtype, size):
    """Floats with the special ones among them."""
    values = (rng.standard_normal(size) * 100).astype(dtype)
    values[:6] = [0.0, -0.0, np.nan, np.inf, -np.inf, np.finfo(dtype).tiny / 8]
    return rng.permutation(values)


# --- one thread to each element: every old and new value is known ---------------------------------


@sarek.kernel
def integers_alone(cells, old, values, others):
    i = sarek.global_idx.x
    if i < len(values):
        value = values[i]
        old[0, i] = sarek.atomic.add(cells, (0, i), value)
        old[1, i] = sarek.atomic.sub(cells, (1, i), value)
        old[2, i] = sarek.atomic.min(cells, (2, i), value)
        old[3, i] = sarek.atomic.max(cells, (3, i), value)
        old[4, i] = sarek.atomic.and_(cells, (4, i), value)
        old[5, i] = sarek.atomic.or_(cells, (5, i), value)
        old[6, i] = sarek.atomic.xor(cells, (6, i), value)
        old[7, i] = sarek.atomic.exch(cells, (7, i), value)
        old[8, i] = sarek.atomic.cas(cells, (8, i), others[i], value)
        old[9, i] = sarek.atomic.inc(cells, (9, i))
        old[10, i] = sarek.atomic.dec(cells, (10, i))
        old[11, i] = sarek.atomic.load(cells, (11, i))
        old[12, i] = 3
        sarek.atomic.store(cells, (12, i), value)
        old[13, i] = sarek.atomic.inc(cells, (13, i), value)
        old[14, i] = sarek.atomic.dec(cells, (14, i), value)


def _wraps_up(old, top):
    """CUDA's atomicInc, of unsigned integers."""
    old, top = int(old), int(top)
    return 0 if old >= top else old + 1


def _wraps_down(old, top):
    """CUDA's atomicDec, of unsigned integers."""
    old, top = int(old), int(top)
    return top if old == 0 or old > top else old - 1


def _wrapped(step, cells, values):
    unsigned = f"u{cells.dtype.itemsize}"
    pairs = zip(cells.view(unsigned), values.view(unsigned), strict=True)
    return np.array([step(*pair) for pair in pairs], unsigned).view(cells.dtype)


def _integers_alone(rng, dtype):
    values = _bits(rng, dtype, COUNT)
    cells = np.stack([rng.permutation(_bits(rng, dtype, COUNT)) for _ in range(15)])
    cells[13, 5:30] = values[5:30]  # exactly at the wrap
    cells[14, 5:30] = 0
    others = np.where(np.arange(COUNT) % 2 == 0, cells[8], 77).astype(dtype)
    old = cells.copy()
    old[12] = 3
    one = dtype.type(1)
    new = [
        cells[0] + values,
        cells[1] - values,
        np.minimum(cells[2], values),
        np.maximum(cells[3], values),
        cells[4] & values,
        cells[5] | values,
        cells[6] ^ values,
        values,
        np.where(cells[8] == others, values, cells[8]),
        cells[9] + one,
        cells[10] - one,
        cells[11],
        values,
        _wrapped(_wraps_up, cells[13], values),
        _wrapped(_wraps_down, cells[14], values),
    ]
    arguments = (cells, poison(cells.shape, dtype), values, others)
    return Launch(3, 32, arguments, (np.stack(new), old, None, None))


@sarek.kernel
def floats_alone(cells, old, values, others):
    i = sarek.global_idx.x
    if i < len(values):
        value = values[i]
        old[0, i] = sarek.atomic.add(cells, (0, i), value)
        old[1, i] = sarek.atomic.sub(cells, (1, i), value)
        old[2, i] = sarek.atomic.min(cells, (2, i), value)
        old[3, i] = sarek.atomic.max(cells, (3, i), value)
        old[4, i] = sarek.atomic.exch(cells, (4, i), value)
        old[5, i] = sarek.atomic.cas(cells, (5, i), others[i], value)
        old[6, i] = sarek.atomic.load(cells, (6, i))
        old[7, i] = 3
        sarek.atomic.store(cells, (7, i), value)


def _floats_alone(rng, dtype):
    values = _numbers(rng, dtype, COUNT)
    cells = np.stack([_numbers(rng, dtype, COUNT) for _ in range(8)])
    cells[2:4, 10:20] = values[10:20]
    others = np.where(np.arange(COUNT) % 2 == 0, cells[5], 77).astype(dtype)
    old = cells.copy()
    old[7] = 3
    unsigned = f"u{dtype.itemsize}"
    hit = cells[5].view(unsigned) == others.view(unsigned)
    with np.errstate(invalid="ignore"):
        new = [
            cells[0] + values,
            cells[1] - values,
            np.where((cells[2] <= values) | np.isnan(values), cells[2], values),
            np.where((cells[3] >= values) | np.isnan(values), cells[3], values),
            values,
            np.where(hit, values, cells[5]),
            cells[6],
            values,
        ]
    arguments = (cells, poison(cells.shape, dtype), values, others)
    return Launch(3, 32, arguments, (np.stack(new), old, None, None))


# --- all threads on few elements: what is left does not depend on their order ---------------------


@sarek.function
def update_integers(cells, value):
    """All that can be done to a row of eight, whatever memory it stands in."""
    sarek.atomic.add(cells, 0, value)
    sarek.atomic.sub(cells, 1, value)
    sarek.atomic.min(cells, 2, value)
    sarek.atomic.max(cells, 3, value)
    sarek.atomic.and_(cells, 4, value | 3)
    sarek.atomic.or_(cells, 5, value & 12)
    sarek.atomic.xor(cells, 6, value)
    return sarek.atomic.inc(cells, 7, 9)


def _together(dtype):
    """A kernel that updates one row in global memory, and one in shared memory."""

    @sarek.kernel
    def integers_together(out, turns, values):
        tile = sarek.shared.array((2, 8), dtype)
        t = sarek.thread_idx.x
        i = sarek.global_idx.x
        if t < 8:
            tile[1, t] = 5
        sarek.barrier()
        if i < len(values):
            turn = update_integers(out[0], values[i])
            sarek.atomic.add(turns, turn, 1)
            update_integers(tile[1], values[i])
            sarek.atomic.dec(out[2], 0, 6)
        sarek.barrier()
        if t < 7:
            out[1, t] = tile[1, t]
        if t == 7:
            sarek.atomic.xor(out, (1, -1), tile[1, 7])

    return integers_together


def _reduced(values, start):
    dtype = values.dtype
    return [
        start + values.sum(dtype=dtype),
        start - values.sum(dtype=dtype),
        min(start, values.min()),
        max(start, values.max()),
        start & np.bitwise_and.reduce(values | dtype.type(3)),
        start | np.bitwise_or.reduce(values & dtype.type(12)),
        start ^ np.bitwise_xor.reduce(values),
        dtype.type((start + values.size) % 10),
    ]


def _integers_together(rng, dtype):
    values = _bits(rng, dtype, 60)
    out = np.full((3, 8), 5, dtype)
    expected = out.copy()
    with np.errstate(over="ignore"):
        five = dtype.type(5)
        expected[0] = _reduced(values, five)
        expected[1] = _reduced(values, five)
    expected[1, 7] ^= 5
    expected[2, 0] = (5 - 60) % 7
    turns = np.full(10, 6, np.int32)
    return Launch(1, 64, (out, np.zeros(10, np.int32), values), (expected, turns, None))


def _sums(dtype):
    @sarek.kernel
    def floats_together(out, values):
        tile = sarek.shared.array(4, dtype)
        t = sarek.thread_idx.x
        i = sarek.global_idx.x
        if t < 4:
            tile[t] = 0
        sarek.barrier()
        if i < len(values):
            sarek.atomic.add(tile, i % 2, values[i])
            sarek.atomic.sub(tile, 2 + i % 2, values[i])
            sarek.atomic.min(out[1], 0, values[i])
            sarek.atomic.max(out, (1, 1), values[i])
        sarek.barrier()
        if t < 4:
            sarek.atomic.add(out[0], t, tile[t])

    return floats_together


def _floats_together(rng, dtype):
    values = rng.integers(-99, 99, 200).astype(dtype)  # whole numbers: every order is exact
    expected = np.zeros((2, 4), dtype)
    pairs = values.reshape(100, 2).sum(0)
    expected[0] = [*pairs, *-pairs]
    expected[1, :2] = values.min(), values.max()
    return Launch(4, 64, (np.zeros((2, 4), dtype), values), (expected, None))


def _add(kernel, make, name, dtype):
    def launch(rng):
        return make(rng, dtype)

    launch.__name__ = f"{make.__name__.lstrip('_')}_{name}"
    corpus.add(kernel)(launch)


for _name, _dtype in INTEGERS.items():
    _add(integers_alone, _integers_alone, _name, _dtype)
    _add(_together(_dtype), _integers_together, _name, _dtype)
for _name, _dtype in FLOATS.items():
    _add(floats_alone, _floats_alone, _name, _dtype)
    _add(_sums(_dtype), _floats_together, _name, _dtype)


# --- strides and views ----------------------------------------------------------------------------


@sarek.kernel
def on_strided_views(out, values):
    i = sarek.global_idx.x
    if i < len(values):
        sarek.atomic.add(out[1::2, ::-1][values[i] % 2], values[i] % 3, 1)
        sarek.atomic.max(out, (0, values[i] % 3), values[i])


@corpus.add(on_strided_views)
def atomics_on_strided_views(rng):
    values = rng.integers(0, 1000, 100).astype(np.int64)
    out = np.zeros((8, 6), np.int64)[::2, ::2]
    expected = np.zeros((4, 3), np.int64)
    np.add.at(expected[1::2, ::-1], (values % 2, values % 3), 1)
    for column in range(3):
        expected[0, column] = values[values % 3 == column].max()
    return Launch(2, 64, (out, values), (expected, None))
