"""Line coverage: the oracle's counts against CPython's own tracing of the emulated function."""

from __future__ import annotations

import ast
import linecache
import sys
from collections import defaultdict
from functools import cache

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.frontend import language
from sarek_numba.verify.emulation import machine
from tests.executors import SEED, compare, run
from tests.kernels.corpus import CASES

MOST_THREADS = 2_000  # tracing CPython thread by thread is slow


@cache
def _starts(file: str) -> dict[int, int]:
    """For each line of a file the first line of the innermost statement that holds it."""
    tree = ast.parse("".join(linecache.getlines(file)))
    starts: dict[int, int] = {}
    for node in ast.walk(tree):  # outer statements come first
        if isinstance(node, ast.stmt):
            starts |= dict.fromkeys(range(node.lineno, node.end_lineno + 1), node.lineno)
    return starts


class _Traced:
    """Which threads of an emulation CPython traces through which statements."""

    def __init__(self, monkeypatch, files):
        self.threads = defaultdict(set)
        self.files = files
        inner = machine._thread

        def traced(thread, *rest):
            sys.settrace(self.trace)
            try:
                inner(thread, *rest)
            finally:
                sys.settrace(None)

        monkeypatch.setattr(machine, "_thread", traced)
        for name in ("barrier", "warp", "warp_barrier"):
            waiting = getattr(machine.EmulatedThread, name)
            monkeypatch.setattr(machine.EmulatedThread, name, self.resuming(waiting))

    def resuming(self, waiting):
        """A wait at a barrier, behind which this thread is traced and no other."""

        def wait(*arguments):
            answer = waiting(*arguments)
            sys.settrace(self.trace)
            return answer

        return wait

    def trace(self, frame, event, _):
        file = frame.f_code.co_filename
        if file not in self.files:
            return None
        if event == "line":
            thread = language._context.get()
            start = _starts(file).get(frame.f_lineno, frame.f_lineno)
            self.threads[file, start].add((thread._state.block_idx, thread._thread_idx))
        return self.trace


UNORDERED = {"compare_and_swap_loop"}  # which threads lose depends on the order of threads


def _is_small(case) -> bool:
    if not case.emulated or case.name in UNORDERED:
        return False
    launch = case.launch(np.random.default_rng(SEED))
    return np.prod(launch.grid) * np.prod(launch.block) <= MOST_THREADS


@pytest.mark.parametrize(
    "case", [case for case in CASES if _is_small(case)], ids=lambda case: case.name
)
def test_threads_are_those_that_cpython_traces(case, monkeypatch):
    """For every statement the same number of threads; and marks change no result."""
    launch = case.launch(np.random.default_rng(SEED))
    configuration = (launch.grid, launch.block, None, launch.shared_bytes)
    with sarek.coverage() as coverage:
        case.kernel[configuration](*launch.arguments)
    counted = {
        (file, line): count.threads
        for file, lines in coverage.lines.items()
        for line, count in lines.items()
    }
    assert counted
    for position, pair in enumerate(zip(launch.arguments, launch.expected, strict=True)):
        if pair[1] is not None:
            compare("covered", case, position, *pair)
    again = case.launch(np.random.default_rng(SEED))
    traced = _Traced(monkeypatch, {file for file, _ in counted})
    run("emulation", case.kernel, again)
    found = {place: len(threads) for place, threads in traced.threads.items()}
    assert {place: found.get(place, 0) for place in counted} == counted
