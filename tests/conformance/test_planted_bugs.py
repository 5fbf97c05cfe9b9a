"""Planted bugs in Python kernels, each found and placed by the oracle, beside near misses."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import (
    BarrierDivergence,
    DivergentBarrier,
    MisalignedMatrix,
    OracleError,
    WarpDivergence,
)
from tests.conformance import planted_access, planted_flow
from tests.conformance.planted import PLANTS, Plant

__all__ = ["planted_access", "planted_flow"]  # importing them fills PLANTS

BUGS = [plant for plant in PLANTS if plant.expected is not None]
NEAR_MISSES = [plant for plant in PLANTS if plant.expected is None]


def name_of(plant: Plant) -> str:
    return plant.name


@pytest.mark.parametrize("plant", BUGS, ids=name_of)
def test_bug(plant):
    """One finding: its kind, line, block, thread, number of threads, array and index."""
    launch = sarek.sanitize(plant.kernel, **plant.options)
    report = launch[plant.grid, plant.block, None, plant.shared_bytes](*plant.arguments())
    assert [finding.error for finding in report.findings] == [plant.expected.error], str(report)
    finding = report.findings[0]
    assert finding.kernel == plant.name
    assert (finding.span.file, finding.span.line) == (file_of(plant), plant.line()), str(report)
    for name in ("place", "thread", "threads", "array", "index"):
        wanted = getattr(plant.expected, name)
        actual = getattr(finding, "block" if name == "place" else name)
        assert wanted is None or actual == wanted, f"{name}: {report}"
    assert plant.expected.says in finding.message
    assert not report


def file_of(plant: Plant) -> str:
    return plant.kernel.py_func.__code__.co_filename


@pytest.mark.parametrize("plant", NEAR_MISSES, ids=name_of)
def test_near_miss(plant):
    """Nothing is found."""
    launch = sarek.sanitize(plant.kernel, **plant.options)
    report = launch[plant.grid, plant.block, None, plant.shared_bytes](*plant.arguments())
    assert report, str(report)


@pytest.mark.parametrize("plant", [p for p in BUGS if not p.options], ids=name_of)
def test_launch_on_the_interpreter_raises(plant):
    """A launch raises the class of its first finding, with all of them, and the next one runs."""
    with sarek.use_device("interpreter"):
        with pytest.raises(plant.expected.error) as raised:
            plant.kernel[plant.grid, plant.block, None, plant.shared_bytes](*plant.arguments())
        assert [finding.error for finding in raised.value.findings] == [plant.expected.error]
        assert f":{plant.line()}" in str(raised.value)
        good = np.zeros(6, np.int32)
        planted_access.writes_with_guard[1, 8](good)
    assert good.tolist() == [0, 1, 2, 3, 4, 5]


def test_every_check_is_planted():
    """Each error of the oracle has a bug here; divergence is found when a kernel is compiled, and
    `test_matrices` has the bugs of matrices.
    """
    elsewhere = {BarrierDivergence, WarpDivergence, MisalignedMatrix}
    every = set(OracleError.__subclasses__()) - elsewhere
    assert {plant.expected.error for plant in BUGS} == every


def test_two_faults_are_both_found():
    """All findings of a launch are told, in the order of the program."""

    @sarek.kernel
    def two(out, x):
        t = sarek.thread_idx.x
        out[0] = t
        out[t + 1] = x[t + 4]

    with pytest.raises(sarek.DataRace) as raised, sarek.use_device("interpreter"):
        two[1, 8](np.zeros(9, np.int32), np.ones(8, np.int32))
    assert [f.error for f in raised.value.findings] == [sarek.DataRace, sarek.OutOfBounds]
    assert "1 more finding" in str(raised.value)


def test_divergent_barrier_is_refused_before_the_oracle():
    """What would be a `BarrierDivergence` is a compile error of the Python kernel."""

    @sarek.kernel
    def some_wait(out):
        if sarek.thread_idx.x < 4:
            sarek.barrier()
        out[sarek.thread_idx.x] = 1

    with pytest.raises(DivergentBarrier, match="thread_idx"):
        sarek.sanitize(some_wait)[1, 8](np.zeros(8, np.int32))
