"""The convergence checker on Python kernels: no false alarm, and nothing missed."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.execute import simulated_warp_width
from tests.conformance import convergence_warps
from tests.conformance.convergence import ACCEPTED, REFUSED, wait_if


def arguments(kernel):
    """Arguments by parameter name."""
    made = {"out": np.zeros(64, np.int32), "x": np.ones(64, np.int32), "n": 3}
    return [made[name] for name in inspect.signature(kernel.py_func).parameters]


@pytest.mark.parametrize("kernel", ACCEPTED, ids=lambda kernel: kernel.__name__)
def test_accepted(kernel):
    """A barrier that whole blocks reach compiles, and runs without a finding."""
    report = sarek.sanitize(kernel)[2, 8](*arguments(kernel))
    assert report, str(report)


@pytest.mark.parametrize(("kernel", "condition"), REFUSED, ids=lambda v: getattr(v, "__name__", ""))
def test_refused(kernel, condition):
    """A barrier that some threads may miss is refused at its line, with the condition's text."""
    with pytest.raises(sarek.DivergentBarrier) as raised:
        kernel[2, 8](*arguments(kernel))
    (diagnostic,) = raised.value.diagnostics
    assert f"`{condition}`" in diagnostic.message
    assert diagnostic.span.line == line_of_bug(kernel)


def line_of_bug(kernel):
    """The marked line; the barrier's in `wait_if` where the kernel marks none."""
    for function, mark in ((kernel.py_func, "# BUG"), (wait_if.function, "sarek.barrier()")):
        lines, first = inspect.getsourcelines(function)
        marked = [first + n for n, line in enumerate(lines) if line.rstrip().endswith(mark)]
        if len(marked) == 1:
            return marked[0]
    raise AssertionError(f"{kernel.__name__} marks no line")


@pytest.mark.parametrize("kernel", convergence_warps.ACCEPTED, ids=lambda k: k.__name__)
def test_accepted_warps(kernel):
    """A collective that whole warps reach compiles, runs without a finding, and alike on native."""
    given, again = arguments(kernel), arguments(kernel)
    with simulated_warp_width(4):
        report = sarek.sanitize(kernel)[2, 8](*given)
        assert report, str(report)
        kernel.launch(*again, grid=2, block=8, device="native")
    assert np.array_equal(given[0], again[0])


@pytest.mark.parametrize(
    ("kernel", "condition"), convergence_warps.REFUSED, ids=lambda v: getattr(v, "__name__", "")
)
def test_refused_warps(kernel, condition):
    """A collective that some threads of a warp may miss is refused, with the condition's text."""
    with simulated_warp_width(4):
        test_refused(kernel, condition)


def test_size_of_the_corpus():
    """At least 60 kernels that must be accepted, and 60 that must be refused."""
    assert len(ACCEPTED) + len(convergence_warps.ACCEPTED) >= 60
    assert len(REFUSED) + len(convergence_warps.REFUSED) >= 60
