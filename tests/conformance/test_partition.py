"""Vectors over several devices: which rows each has, that they go there, and all come back."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import UnknownDevice
from sarek_numba.runtime.cache import counters
from sarek_numba.runtime.partition import row_bounds

DEVICES = [device.name for device in sarek.devices()]
APART = [name for name in DEVICES if sarek.device(name).driver.memory is not None]
Pair = np.dtype([("a", np.int64), ("b", np.float32)])


@sarek.kernel
def add(x, n):
    i = sarek.global_idx.x
    if i < len(x):
        x[i] += n


@sarek.kernel
def add_rows(x, n):
    i, j = sarek.global_idx.y, sarek.global_idx.x
    if i < x.shape[0] and j < x.shape[1]:
        x[i, j] += n


@sarek.kernel
def add_field(p, n):
    i = sarek.global_idx.x
    if i < len(p):
        p[i].a += n


@pytest.mark.parametrize("rows", range(12))
@pytest.mark.parametrize("parts", range(1, 6))
def test_rows_are_shared_out_like_numpys(rows, parts):
    """As equal as can be, in order, the first ones larger; all rows once."""
    expected = [list(part) for part in np.array_split(np.arange(rows), parts)]
    assert [list(range(*bounds)) for bounds in row_bounds(rows, parts)] == expected


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 9, 1023])
def test_each_part_is_current_on_its_device(rows):
    """Every device works on its own rows, and the whole has all results."""
    whole, model = sarek.arange(rows, dtype=np.int64), np.arange(rows)
    parts = whole.partition(DEVICES)
    assert sum(map(len, parts)) == rows
    for n, (part, device, rest) in enumerate(
        zip(parts, DEVICES, np.array_split(model, len(DEVICES)), strict=True)
    ):
        assert part.is_current(device)
        add.launch(part, n + 1, grid=4, block=256, device=device)
        rest += n + 1
    assert whole.gather() is whole
    assert whole.is_current()
    assert (whole == model).all()


@pytest.mark.parametrize("device", APART)
def test_only_its_rows_go_to_a_device(device):
    """Parts move by themselves, and back by themselves."""
    whole = sarek.zeros(1000, np.float32)
    counters.reset()
    first, second = whole.partition([device, "native"])
    assert (counters.uploads, counters.uploaded_bytes) == (1, 2000)
    add.launch(first, 1.0, grid=2, block=256, device=device)
    add.launch(second, 2.0, grid=2, block=256, device="native")
    assert (counters.uploads, counters.downloads) == (1, 0)
    assert not whole.is_current()
    whole.gather()
    assert (counters.downloads, counters.downloaded_bytes) == (1, 2000)
    assert whole.tolist() == [1] * 500 + [2] * 500


@pytest.mark.parametrize("turned", [False, True])
def test_several_axes(turned):
    """Rows go together; of a transposed one the rows lie apart, and stay whole all the same."""
    model = np.arange(35, dtype=np.float64).reshape(5, 7)
    whole = sarek.vector(model)
    if turned:
        whole, model = whole.T, model.T
    for part, device in zip(whole.partition(DEVICES), DEVICES, strict=True):
        assert part.shape[1:] == model.shape[1:]
        add_rows.launch(part, 1.0, grid=1, block=(8, 8), device=device)
    assert (whole.gather() == model + 1).all()


def test_records_in_columns():
    whole = sarek.soa(np.zeros(10, Pair))
    for n, (part, device) in enumerate(zip(whole.partition(DEVICES), DEVICES, strict=True)):
        assert part.is_current(device)
        add_field.launch(part, n, grid=1, block=16, device=device)
    expected = [n for n, rows in enumerate(np.array_split(range(10), len(DEVICES))) for _ in rows]
    assert whole.gather() is whole
    assert whole["a"].tolist() == expected


def test_a_device_may_have_several_parts():
    whole = sarek.arange(7, dtype=np.int64)
    parts = whole.partition(["native", APART[0] if APART else "native", "native"])
    assert [part.tolist() for part in parts] == [[0, 1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("make", [lambda: sarek.arange(6), lambda: sarek.soa(np.zeros(6, Pair))])
def test_refusals(make):
    """Nothing moves."""
    whole = make()
    counters.reset()
    with pytest.raises(UnknownDevice, match="no device is named 'nowhere'"):
        whole.partition([*DEVICES, "nowhere"])
    with pytest.raises(ValueError, match="needs devices, and there are none"):
        whole.partition([])
    with pytest.raises(TypeError, match="takes several devices"):
        whole.partition("native")
    with pytest.raises(ValueError, match="needs axes of the vector"):
        whole[(0, ...)].partition(DEVICES)
    assert (counters.uploads, counters.downloads) == (0, 0)
