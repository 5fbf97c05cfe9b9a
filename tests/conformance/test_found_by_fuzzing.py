"""Kernels on which a device differed from CPython, or that were refused, as the fuzzer shrank them.

Each is shown failing by the revision before the one that added it.
"""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from tests.executors import executors
from tests.executors import run as run_on
from tests.kernels.case import Launch


@sarek.kernel
def twice_negated_arm(x, n):
    """The arms of a condition have two types: only their truth is asked for."""
    p = x[0]
    if ((not (not p)) if n > 2 else (x[1] > 3)) if x[2] > 1 else n < 5:  # noqa: SIM208 - the fault
        x[3] = 1


@sarek.kernel
def two_calls_in_arms(x, n):
    """The arms of a conditional expression call two functions on one line."""
    w = 0.5
    w = min((abs(n / 8) if w > x[1] else float(x[1])), (float(n) if x[2] > 2 else w) * 4.0)
    x[3] = int(w * 16.0)


@sarek.kernel
def conditional_in_while(x, n):
    """The test of a loop, which CPython compiles twice, has arms of two types."""
    fuel = 0
    while fuel < 5 and (((n in (1, 2, 5)) if x[0] else (n > 1)) if x[1] != -1 else x[2]):
        fuel += 1
    x[3] = fuel


@sarek.kernel
def comparison_in_bits_in_while(x, n):
    """The two copies of a test agree in parts only: a value waits while another is compared."""
    fuel, y = 0, x[3] > n
    while ((n == x[2] << 2 > n) or (y & (x[0] < n >= x[1]))) and fuel < 5:
        fuel += 1
    x[3] = fuel


@sarek.kernel
def for_in_else_of_while(x, n):
    """A `for` ends where the loop around it does."""
    fuel = 0
    while n == 2:
        fuel += 1
        if fuel > 3:
            break
    else:
        for _ in range(n):
            pass
    x[3] = n


@sarek.kernel
def for_whose_else_goes_on(x, n):
    """The `else` of a `for` starts the next pass of the loop around it; a `break` ends that."""
    k = 4
    while k > n:
        k -= 1
        for i in range(k):
            if x[i % 3] == 3:
                x[0] += 1
                break
            if x[i % 3] == 1:
                x[2] += 1
                break
        else:
            x[1] += 1
            continue
        if x[2] > 3:
            break
    else:
        x[3] += 1


POINT = np.dtype([("i", np.int32), ("j", np.int32)])


@sarek.kernel
def record_with_two_first_values(x, n):
    """A record is assigned twice before anything branches, and then is one of two."""
    points = sarek.local.array(2, POINT)
    for k in range(2):
        points[k].i = x[k]
        points[k].j = x[k + 1]
    r = points[0].copy()
    r = points[1].copy()
    if n > 1:
        r.j = n
        if n > 2:
            r = points[0].copy()
            r.i += n
    x[3] = r.i * 10 + r.j


@sarek.kernel
def condition_known_in_part(x, n):
    """A value is made only where a condition holds that never does, and is read behind a jump."""
    b = 1
    if x[2] > 2:
        if x[1] > 2:
            b = 3
    elif (
        (b > b <= n if np.int8(x[0]) != 300 else x[1])
        if (n in (1, 2)) != (x[b % 3] > -1)
        else b in (2, 5)
    ):
        x[3] = n


@sarek.kernel
def assigned_only_where_never(x, n):
    """What assigns a local never runs, nor does what reads it."""
    c = 0
    if c & c == 3:
        b = n % 100
        z = complex(n, b)
    if n > 1000:
        x[3] = b + int(z.real)


@sarek.kernel
def for_before_a_loop_that_never_ends(x, n):
    """Where a `for` ends is reached from elsewhere too, behind it and before an endless loop."""
    for k in range(n):
        if x[0] > -5:
            if x[k % 3] > 2:
                x[1] += 1
                continue
            if x[2] > -5:
                break
        while True:
            x[1] += 1
    x[3] += 1


@sarek.kernel
def for_that_makes_one_pass(x, n):
    """The body of a `for` never ends, so that the loop around it comes back to the same node."""
    while True:
        x[0] += 1
        for k in range(x[0] - 3):
            while True:
                x[1] += 1
                if x[1] > n + k:
                    return


@sarek.kernel
def array_under_an_or(x, n):
    """In both copies of the test the array waits on the stack while its index is chosen."""
    fuel = 0
    row = x[1:]
    while fuel < 5 and x[(n or 5) % 3] > row[(n and 4) % 2]:
        fuel += 1
    x[3] = fuel


KERNELS = (
    twice_negated_arm,
    two_calls_in_arms,
    conditional_in_while,
    comparison_in_bits_in_while,
    for_in_else_of_while,
    for_whose_else_goes_on,
    record_with_two_first_values,
    condition_known_in_part,
    assigned_only_where_never,
    for_before_a_loop_that_never_ends,
    for_that_makes_one_pass,
    array_under_an_or,
)


@pytest.mark.parametrize("executor", executors()[1:])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_equals_cpython(kernel, executor):
    """The same elements as CPython's, on arguments that take every way."""
    rng = np.random.default_rng(1)
    for n in (-1, 0, 1, 2, 3, 5):
        given = rng.integers(-1, 5, 4).astype(np.int32)
        expected, actual = given.copy(), given.copy()
        sarek.emulate(kernel)[1, 1](expected, n)
        run_on(executor, kernel, Launch(1, 1, (actual, n), (None, None)))
        assert actual.tolist() == expected.tolist(), f"of {given.tolist()} and {n}"
