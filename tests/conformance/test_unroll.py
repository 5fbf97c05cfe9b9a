"""`sarek.unroll`: the loop's meaning stays on every executor, and its passes stand in the code."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import passes
from sarek_numba.codegen.target import Target
from sarek_numba.ir.nodes import For, Pragma
from sarek_numba.ir.text import text
from sarek_numba.ir.walk import walk_stmts
from tests.conformance.everywhere import everywhere
from tests.executors import run
from tests.kernels.case import Launch

OPENCL = [d.name for d in sarek.devices() if d.name.startswith("opencl")]
RANGES = [(0, 7, 1), (0, 8, 1), (3, -9, -2), (5, 5, 1), (0, 100, 3), (2, 3, 1), (-4, 30, 5)]
COUNTS = [None, 1, 2, 3, 4, 50]


def looping(bounds, count):
    """A kernel with one loop of constant bounds."""
    first, stop, step = bounds
    if count is None:

        def k(out, x):
            i = sarek.global_idx.x
            total = 0
            for j in sarek.unroll(range(first, stop, step)):
                part = x[i] * j
                total = total * 3 + part
            out[i] = total

    else:

        def k(out, x):
            i = sarek.global_idx.x
            total = 0
            for j in sarek.unroll(range(first, stop, step), count):
                part = x[i] * j
                total = total * 3 + part
            out[i] = total

    return sarek.kernel(k)


@everywhere
@pytest.mark.parametrize("count", COUNTS)
def test_the_value_is_that_of_the_loop(executor, count):
    """Whatever the count, the rest of the division and the sign of the step."""
    x = np.array([1, -2, 3, 7], np.int32)
    for bounds in RANGES:
        out = np.full(4, -1, np.int32)
        run(executor, looping(bounds, count), Launch(1, 4, (out, x), ()))
        expected = np.zeros(4, np.int32)
        for j in range(*bounds):
            expected = expected * np.int32(3) + x * np.int32(j)
        assert out.tolist() == expected.tolist(), bounds


@everywhere
def test_loops_that_leave_nest_or_are_known_at_launch(executor):
    """What stays a loop has its meaning too."""

    @sarek.kernel
    def k(out, x, n):
        i = sarek.global_idx.x
        total = 0
        for j in sarek.unroll(range(n), 4):
            if j == x[i]:
                continue
            for m in sarek.unroll(range(5), 2):
                total += j * m
            if total > 90:
                break
        else:
            total += 1000
        out[i] = total

    x, out = np.array([1, 2, 3, 50], np.int32), np.zeros(4, np.int32)
    run(executor, k, Launch(1, 4, (out, x, 5), ()))
    expected = []
    for skipped in x.tolist():
        total = 0
        for j in range(5):
            if j == skipped:
                continue
            total += j * 10
            if total > 90:
                break
        else:
            total += 1000
        expected.append(total)
    assert out.tolist() == expected


def loops(kernel):
    arrays = np.zeros(1, np.int32), np.zeros(1, np.int32)
    legal = passes.optimise(kernel.ir(*arrays), Target(name="opencl", address_bits=64))
    return [stmt for stmt in walk_stmts(legal.body) if isinstance(stmt, For)]


def test_as_many_passes_as_asked_stand_in_the_code():
    """All of seven; or two at once, three times, and one behind; a plain range keeps its loop."""
    assert loops(looping((0, 7, 1), None)) == []
    (loop,) = loops(looping((0, 7, 1), 2))
    assert len(range(*(int(e.value) for e in (loop.first, loop.stop, loop.step)))) == 3

    @sarek.kernel
    def plain(out, x):
        for j in range(7):
            out[0] += x[j]

    (kept,) = loops(plain)
    assert len(range(*(int(e.value) for e in (kept.first, kept.stop, kept.step)))) == 7


def test_the_ir_has_the_pragma():
    arrays = np.zeros(1, np.int32), np.zeros(1, np.int32)
    kernel = looping((0, 7, 1), 2).ir(*arrays)
    assert any(isinstance(s, Pragma) for s in walk_stmts(kernel.body))
    assert 'pragma "unroll" "2" {' in text(kernel)


@pytest.mark.parametrize("device", [d.name for d in sarek.devices() if d.name != "interpreter"])
def test_devices_compile_the_unrolled_loop(device):
    """The source is another than that of the loop."""
    arrays = np.zeros(1, np.int32), np.zeros(1, np.int32)
    assert looping((0, 7, 1), None).source(device, *arrays) != looping((0, 7, 1), 1).source(
        device, *arrays
    )


@pytest.mark.parametrize("device", OPENCL)
def test_bounds_of_the_launch_leave_a_pragma_to_the_compiler(device):
    @sarek.kernel
    def k(out, n):
        total = 0
        for j in sarek.unroll(range(n), 4):
            total += out[j]
        for j in sarek.unroll(range(n)):
            total += out[j]
        out[0] = total

    lines = k.source(device, np.zeros(4, np.int32), 3).splitlines()
    found = [n for n, line in enumerate(lines) if "#pragma unroll" in line]
    assert [lines[n].strip() for n in found] == ["#pragma unroll 4", "#pragma unroll"]
    assert all(lines[n + 1].strip().startswith("for (") for n in found)
