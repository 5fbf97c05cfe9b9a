"""What fences and atomics order between threads: no false alarm, and nothing missed."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance import handover_patterns
from tests.conformance.handover import ORDERED, RACING, Handover

__all__ = ["handover_patterns"]  # importing it fills ORDERED and RACING

SEEDS = (0, 1, 2)


def arguments() -> dict[str, np.ndarray]:
    return {name: np.zeros(64, np.int32) for name in ("out", "data", "flag")}


def line_of_bug(handover: Handover) -> int:
    lines, first = inspect.getsourcelines(handover.kernel.py_func)
    (line,) = [first + n for n, text in enumerate(lines) if text.rstrip().endswith("# BUG")]
    return line


@pytest.mark.parametrize("handover", ORDERED, ids=lambda h: h.name)
def test_ordered(handover):
    """Nothing is found, in any order of the blocks, and the data did arrive."""
    arrived = False
    for seed in SEEDS:
        given = arguments()
        report = sarek.sanitize(handover.kernel, seed=seed, races="strict")[
            handover.grid, handover.block
        ](**given)
        assert report, str(report)
        arrived |= bool(given["out"].any())
    assert arrived


@pytest.mark.parametrize("handover", RACING, ids=lambda h: h.name)
def test_racing(handover, golden):
    """Races alone are found, the one at the marked line; the text of it is as written down."""
    launch = sarek.sanitize(handover.kernel)[handover.grid, handover.block]
    report = launch(**arguments())
    assert {finding.error for finding in report.findings} == {sarek.DataRace}, str(report)
    at_line = [f for f in report.findings if f.span.line == line_of_bug(handover)]
    assert at_line, str(report)
    text = str(at_line[0]).replace(f"{Path(__file__).parent}/", "")
    golden(text + "\n", f"race_{handover.name}")


def test_size_of_the_corpus():
    """At least 20 kernels that are in order, and 20 that race."""
    assert len(ORDERED) >= 20
    assert len(RACING) >= 20


# --- waits that cannot end ------------------------------------------------------------------------


@sarek.kernel
def barrier_of_the_grid(out, data, flag):
    if sarek.thread_idx.x == 0:
        sarek.mem_fence("device")
        sarek.atomic.add(flag, 0, 1)
        while sarek.atomic.load(flag, 0) < sarek.grid_dim.x:
            pass
        sarek.mem_fence("device")


@sarek.kernel
def lock_behind_the_loop(out, data, flag):
    while sarek.atomic.cas(flag, 0, 0, 1) != 0:
        pass
    sarek.mem_fence("device")
    data[0] += 1
    sarek.mem_fence("device")
    sarek.atomic.store(flag, 0, 0)


@sarek.kernel
def wait_that_counts(out, data, flag):
    waited = 0
    sarek.mem_fence("device")
    while sarek.atomic.load(flag, 0) == 0:
        waited += 1
    out[0] = waited


@sarek.kernel
def wait_by_exchanges(out, data, flag):
    sarek.mem_fence("device")
    sarek.atomic.store(flag, 0, 1)
    while sarek.atomic.exch(flag, 0, 1) != 0:
        pass


WAITS = (barrier_of_the_grid, lock_behind_the_loop, wait_that_counts, wait_by_exchanges)


@pytest.mark.parametrize("kernel", WAITS, ids=lambda kernel: kernel.__name__)
def test_wait_that_cannot_end(kernel):
    """A wait for what need not happen before ends with `NoProgress`, at its loop."""
    report = sarek.sanitize(kernel)[3, 4](**arguments())
    lines, first = inspect.getsourcelines(kernel.py_func)
    loop = first + next(n for n, line in enumerate(lines) if "while" in line)
    (finding,) = [f for f in report.findings if f.error is sarek.NoProgress]
    assert finding.span.line == loop, str(report)


# --- size and cost --------------------------------------------------------------------------------


@sarek.kernel
def every_thread_hands_over(out, data, flag):
    i = sarek.global_idx.x
    data[i] = i
    sarek.mem_fence("device")
    ticket = sarek.atomic.add(flag, 0, 1)
    sarek.mem_fence("device")
    if ticket == len(data) - 1:
        for k in range(0, len(data), 1000):
            out[0] += data[k]


def test_many_threads():
    """100,000 threads that all release and acquire at one counter take seconds, not minutes."""
    n = 400 * 256
    data, flag, out = np.zeros(n, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    report = sarek.sanitize(every_thread_hands_over)[400, 256](out, data, flag)
    assert report, str(report)
    assert out[0] == sum(range(0, n, 1000))
    assert report.seconds < 20


@sarek.kernel
def fences_alone(out, data, flag):
    data[sarek.global_idx.x] = 1
    sarek.mem_fence("device")


@sarek.kernel
def atomics_alone(out, data, flag):
    sarek.atomic.add(flag, 0, 1)


@pytest.mark.parametrize("kernel", [fences_alone, atomics_alone], ids=lambda k: k.__name__)
def test_no_clocks_without_need(kernel, monkeypatch):
    """A kernel without both atomics and fences makes no clocks."""

    def fail(*args, **options):
        raise AssertionError("clocks are made")

    monkeypatch.setattr("sarek_interp.fences.Clocks", fail)
    assert sarek.sanitize(kernel)[2, 8](**arguments())
    with pytest.raises(AssertionError, match="clocks are made"):
        sarek.sanitize(every_thread_hands_over)[1, 1](**arguments())
