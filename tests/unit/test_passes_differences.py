"""Facts about differences drop wraparound, and only while both variables keep their values."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.codegen.target import Target
from sarek_numba.ir.nodes import Subscript
from sarek_numba.ir.walk import walk_body_exprs
from sarek_numba.passes import optimise

_X = np.zeros(8, np.float32)


def wraps(function) -> int:
    """Subscripts that still wrap after the passes."""
    kernel = optimise(sarek.kernel(function).ir(_X, _X), Target("test", 64))
    return sum(isinstance(expr, Subscript) for expr in walk_body_exprs(kernel.body))


def guarded_by_if(out, x):
    t = sarek.thread_idx.x
    step = len(x)
    while step > 1:
        if t >= step:
            out[t] = x[t - step]
        step //= 2


def guarded_by_conditional(out, x):
    t = sarek.thread_idx.x
    step = 1
    while step < 64:
        out[t] = x[t - step] if step <= t else 0
        step *= 2


def guarded_by_and(out, x):
    i = sarek.global_idx.x
    for k in range(3):
        if k < i and x[i - k] > 0:
            out[i] = 1


def guarded_by_return(out, x):
    i = sarek.global_idx.x
    for k in range(len(x)):
        if i < k:
            return
        out[i] = x[i - k]


@pytest.mark.parametrize(
    "function",
    [guarded_by_if, guarded_by_conditional, guarded_by_and, guarded_by_return],
    ids=lambda function: function.__name__,
)
def test_a_guard_drops_wraparound(function):
    """A difference that a condition proves not negative needs no wraparound."""
    assert wraps(function) == 0


def changed_after_the_guard(out, x):
    t = sarek.thread_idx.x
    step = len(x)
    while step > 1:
        if t >= step:
            step += 3
            out[t] = x[t - step]
        step //= 2


def guarded_the_other_way(out, x):
    t = sarek.thread_idx.x
    n = len(x)
    if t <= n:
        out[t] = x[t - n]


def changed_in_the_next_pass(out, x):
    t = sarek.thread_idx.x
    step = 1
    if t >= step:
        while step < 100:
            out[t] = x[t - step]
            step *= 2


def known_on_one_side_only(out, x):
    t = sarek.thread_idx.x
    n = len(x)
    if x[t] > 0:
        if t < n:
            return
        out[t] = 1
    out[t] = x[t - n]


@pytest.mark.parametrize(
    "function",
    [
        changed_after_the_guard,
        guarded_the_other_way,
        changed_in_the_next_pass,
        known_on_one_side_only,
    ],
    ids=lambda function: function.__name__,
)
def test_no_proof_no_drop(function):
    """Negative control: wraparound stays where a value may have changed or nothing is proven."""
    assert wraps(function) > 0
