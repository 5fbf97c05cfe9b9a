"""Scans of integers on `native`: in one launch, by blocks that wait for each other or do not."""

from __future__ import annotations

import numpy as np
import pytest

from sarek_numba import settings, stdlib
from sarek_numba.stdlib import scan
from tests.executors import SEED

INTEGERS = "int8 int32 int64 uint8 uint32 uint64".split()
_UFUNCS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


@pytest.fixture
def in_a_chain(monkeypatch):
    """As on a machine of many cores, in small segments."""
    monkeypatch.setattr(settings, "threads", lambda: 8)
    monkeypatch.setattr(scan, "_CHAINED_SEGMENT", 100)


def numbers(dtype, count):
    return np.random.default_rng(SEED).integers(0, 100, count).astype(dtype)


def expected(x, op):
    dtype = np.cumsum(x[:1]).dtype if op in ("sum", "prod") else x.dtype
    return _UFUNCS[op].accumulate(x.astype(dtype))


@pytest.mark.usefixtures("in_a_chain")
@pytest.mark.parametrize(
    ("dtype", "op", "patience"),
    [
        *[(dtype, "sum", 4000) for dtype in INTEGERS],
        *[("int32", op, 4000) for op in _UFUNCS if op != "sum"],
        *[("int32", op, 0) for op in _UFUNCS],
        ("uint64", "prod", 0),
    ],
)
def test_a_chain_is_numpys(dtype, op, patience, monkeypatch):
    """Also where no block waits for the one before and each reduces what it lacks itself."""
    monkeypatch.setattr(scan, "_PATIENCE", patience)
    for count in (1, 99, 100, 101, 1234):
        x = numbers(dtype, count)
        whole = expected(x, op)
        inclusive = stdlib.inclusive_scan(x, op, device="native")
        assert inclusive.dtype == whole.dtype
        assert inclusive.tolist() == whole.tolist()
        before = stdlib.exclusive_scan(x, op, device="native")
        assert before[1:].tolist() == whole[:-1].tolist()


@pytest.mark.parametrize("patience", [0, 3])
@pytest.mark.parametrize("device", ["interpreter", "native"])
def test_a_chain_of_blocks_that_run_at_once(device, patience, monkeypatch):
    """The oracle runs blocks in step, so that none finds the one before ready."""
    monkeypatch.setattr(scan, "_PATIENCE", patience)
    x = numbers(np.int32, 77)
    out, ends = np.full(77, -1, np.int64), np.full(8, -1, np.int64)
    ready = np.zeros(9, np.int32)
    kernel = scan._CHAINED["sum", False]
    kernel.launch(out, x, ends, ready, np.int64(0), np.uint64(10), grid=8, block=1, device=device)
    whole = np.cumsum(x)
    assert out.tolist() == whole.tolist()
    assert ends.tolist() == [*whole[9::10], whole[-1]]
    assert ready.tolist() == [8] + [1] * 8


@pytest.mark.parametrize("threads", [1, 2])
def test_few_cores_scan_in_one_pass(threads, monkeypatch):
    """One thread reads everything once; the result is the same."""
    monkeypatch.setattr(settings, "threads", lambda: threads)
    x = numbers(np.int32, 70_001)
    assert stdlib.inclusive_scan(x, device="native").tolist() == np.cumsum(x).tolist()
