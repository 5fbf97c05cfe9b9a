"""Counters that wrap: their meaning, and the oracle's and the emulation's history of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.ir import build as b
from sarek_numba.ir import semantics
from sarek_numba.ir.types import INT32, Scalar
from tests.unit.oracle_kit import Builder, gid, run

TYPES = ("int32", "uint32", "int64", "uint64")


def inc(old: int, top: int) -> int:
    """CUDA's atomicInc on unsigned integers."""
    return 0 if old >= top else old + 1


def dec(old: int, top: int) -> int:
    """CUDA's atomicDec on unsigned integers."""
    return top if old == 0 or old > top else old - 1


STEPS = {"inc": inc, "dec": dec}


def edges(dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    middle = int(info.max) // 2
    return np.array([info.min, info.min + 1, 0, 1, 2, middle, info.max - 1, info.max], dtype)


def unsigned(values: np.ndarray) -> list[int]:
    return values.view(f"u{values.dtype.itemsize}").tolist()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", STEPS)
def test_one_step_is_cudas(name: str, dtype: str) -> None:
    """Every pair of edges, and every value beside its wrap."""
    old, top = (grid.ravel() for grid in np.meshgrid(edges(dtype), edges(dtype)))
    function = {"inc": semantics.increment, "dec": semantics.decrement}[name]
    result = function(old, top)
    assert result.dtype == old.dtype
    expected = [STEPS[name](*pair) for pair in zip(unsigned(old), unsigned(top), strict=True)]
    assert unsigned(result) == expected


def history(name: str, start: int, tops: np.ndarray) -> tuple[list[int], list[int], int]:
    """The order of threads, the old values in that order, and the last, in the oracle."""
    k = Builder()
    type = Scalar(tops.dtype.name)
    out, top, cell = k.array("out", type), k.array("top", type), k.array("cell", type)
    order, turn = k.array("order"), k.array("turn")
    old, place = k.var("old", type), k.var("place", INT32)
    kernel = k.kernel(
        b.atomic(name, cell, 0, b.read(top, gid()), result=old),
        b.store(out, gid(), old),
        b.atomic("add", turn, 0, 1, result=place),
        b.store(order, gid(), place),
    )
    result, target = np.zeros_like(tops), np.array([start], tops.dtype)
    places, counter = np.zeros(tops.size, np.int32), np.zeros(1, np.int32)
    report = run(kernel, tops.size // 8, 8, result, tops, target, places, counter)
    assert report.findings == ()
    threads = np.argsort(places)
    return threads.tolist(), unsigned(result[threads]), unsigned(target)[0]


def replay(step: Callable[[int, int], int], start: int, tops: list[int]) -> tuple[list[int], int]:
    seen, current = [], start
    for top in tops:
        seen.append(current)
        current = step(current, top)
    return seen, current


@pytest.mark.parametrize("mixed", [False, True], ids=["one wrap", "many wraps"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", STEPS)
def test_the_oracle_counts_step_by_step(name: str, dtype: str, mixed: bool) -> None:
    """Whatever the wraps and the start are, old values are those of one thread after another."""
    for top in edges(dtype):
        for start in edges(dtype):
            tops = np.full(64, top)
            if mixed:
                tops[::3], tops[5:9] = 3, start
            threads, old, last = history(name, start, tops)
            first = unsigned(np.array([start]))[0]
            given = unsigned(tops[threads])
            assert (old, last) == replay(STEPS[name], first, given), (top, start)


def test_the_oracle_counts_many_elements_at_once() -> None:
    """Each element has a circle of its own."""
    k = Builder()
    cells, tops = k.array("cells"), k.array("tops")
    which = b.floormod(gid(), b.const_int(5))
    kernel = k.kernel(b.atomic("inc", cells, which, b.read(tops, which)))
    values = np.array([0, 1, 2, 90, 7], np.int32)
    tops_given = np.array([0, 3, 10, 40, 5], np.int32)
    assert run(kernel, 8, 16, values, tops_given).findings == ()
    expected = []
    for element, start in enumerate([0, 1, 2, 90, 7]):
        count = len(range(element, 128, 5))
        expected.append(replay(inc, start, [int(tops_given[element])] * count)[1])
    assert values.tolist() == expected


@sarek.kernel
def counted(cells, old, tops):
    i = sarek.global_idx.x
    old[i, 0] = sarek.atomic.inc(cells, 0, tops[i])
    old[i, 1] = sarek.atomic.dec(cells, 1, tops[i])


@pytest.mark.parametrize("dtype", TYPES)
def test_emulation_counts_as_cuda_does(dtype: str) -> None:
    """Threads come one after another, so the whole history is known."""
    tops = np.concatenate([edges(dtype), np.full(20, 3, dtype), edges(dtype)[::-1]])
    cells, old = np.array([2, 2], dtype), np.zeros((tops.size, 2), dtype)
    sarek.emulate(counted)[1, tops.size](cells, old, tops)
    for column, step in enumerate((inc, dec)):
        seen, last = replay(step, 2, unsigned(tops))
        assert unsigned(old[:, column].copy()) == seen
        assert unsigned(cells)[column] == last
