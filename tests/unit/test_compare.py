"""`sarek.compare`: every device against the oracle, with a report that says where they part."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.verify.compare import Comparer, Comparison, Difference, Row
from sarek_numba.verify.copies import copies


@sarek.kernel
def triple(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i] * 3


def test_exact_kernel_agrees_everywhere():
    """All devices have a row, all bits are equal, the arguments are not changed."""
    out, x = np.full(10, 7, np.float32), np.arange(10, dtype=np.float32)
    report = sarek.compare(triple)[1, 32](out, x)
    names = [device.name for device in sarek.devices() if device.name != "interpreter"]
    assert [row.device for row in report.rows] == names
    assert report.agrees
    assert out.tolist() == [7] * 10


def test_chosen_devices():
    """Names choose devices; the oracle is never a row of its own."""
    report = sarek.compare(triple, ["native", "interpreter"])[1, 32](np.ones(4), x=np.ones(4))
    assert [row.device for row in report.rows] == ["native"]
    assert "native  0 (same bits)" in str(report)


def test_a_fault_is_raised_not_compared():
    """There is no reference where the oracle finds a fault."""

    @sarek.kernel
    def beyond(out):
        out[sarek.global_idx.x + 1] = 1

    with pytest.raises(sarek.OutOfBounds):
        sarek.compare(beyond)[1, 4](np.zeros(4, np.float32))


def test_a_difference_is_shown():
    """Positive control: the text names device, distance, element and both values."""
    found = Difference("out", 3.0, (1, 2), np.float32(1.5), np.float32(1.25))
    report = Comparison("k", (Row("gpu", (found,)), Row("odd", (), "LaunchFailed: lost")))
    assert not report.agrees
    text = str(report)
    assert "out[1, 2]" in text
    assert "1.5" in text
    assert "LaunchFailed: lost" in text
    assert "<table" in report._repr_html_()


@sarek.function
def stored(out, i, value):
    out[i, 0] = value


@sarek.kernel
def writers(out, count, x):
    i = sarek.global_idx.x
    out[i, 0] = 0
    if x[i] > 2:
        stored(out, i, x[i])
    sarek.atomic.add(count, 0, 1)


@pytest.mark.parametrize("last", [0, 1], ids=["store", "atomic"])
def test_a_difference_names_who_wrote_it(last, monkeypatch):
    """The thread, and the line: of a store within a device function, or of an atomic."""
    x = np.arange(64, dtype=np.float32)
    given = (np.zeros((64, 2), np.float32), np.zeros(1, np.int32), x)
    run = Comparer._run

    def wrong(self, device, *rest):
        arrays = run(self, device, *rest)
        if device == "native":
            (arrays["count"] if last else arrays["out"][37])[0] += 1
        return arrays

    monkeypatch.setattr(Comparer, "_run", wrong)
    report = sarek.compare(writers, ["native"])[4, 16](*given)
    found = next(each for each in report.rows[0].differences if each.first is not None)
    function, offset = (writers.py_func, 6) if last else (stored.function, 2)
    assert found.writer.span.line == function.__code__.co_firstlineno + offset
    assert found.writer.thread == ((15, 0, 0) if last else (5, 0, 0))
    assert last or found.writer.block == (2, 0, 0)
    assert f"written by block {found.writer.block}, thread " in str(report)
    assert not given[0].any()


def test_copies_keep_what_arrays_share():
    """Overlapping arguments still overlap in the copies, and the originals are left alone."""
    base = np.arange(20, dtype=np.int32)
    a, b, c, d, e = copies([base[2:12:2], base[::-1], base, 5, base.reshape(4, 5).T])
    c[4] = -1
    assert a[1] == -1
    assert b[15] == -1
    assert e[4, 0] == -1
    assert d == 5
    assert base[4] == 4
    assert a.strides == base[2:12:2].strides
