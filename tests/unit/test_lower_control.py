"""Control flow through lowering: the oracle does what CPython does, and the text is readable."""

# ruff: noqa: B007, F821, F841, SIM108 # kernels use loop variables and names as users do

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba.frontend.language as sarek
from sarek_numba.errors import UnboundLocal
from sarek_numba.frontend.weak import WEAK_INT
from tests.unit.lower_kit import FLOAT32, INT32, check, kernel_of, run, text_of


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def case_55_continue_keeps_the_increment(x, n):
    total = 0
    for i in range(10):
        if i % 2 == 0:
            continue
        total += i
        if total > n:
            break
    x[0] = total


def case_56_store_before_continue(x, n):
    for i in range(4):
        if x[i] == 0:
            x[i] = 1
            continue
        if x[i] != 0:
            x[i] += n


def case_58_return_in_inner_loop(x, n):
    for i in range(n):
        for j in range(n):
            if x[i] == j:
                x[0] = i * 10 + j
                return
        x[i] += 1
    x[1] = -1


def case_61_break_in_nested_loops(x, n):
    res = 0
    for _i in range(10):
        for _j in range(3):
            break
        res += 1
    if n > 0:
        for _k in range(n):
            break
    x[0] = res


def case_62_bare_break_and_continue(x, n):
    for _i in range(n):
        continue
    for _j in range(n):
        break
    x[0] = n


def case_64_variable_of_two_loops(x, n):
    total = 0
    for j in range(3):
        total += j
    for j in range(n):
        total += 10 * j
    for i in range(n):
        i = i + 2
        total += i
    x[0] = total + i
    x[1] = j


def case_65_argument_reassigned_in_a_loop(x, n):
    for i in range(3):
        n = n + i
    x[0] = n


def case_67_ranges_that_are_empty(x, n):
    total = 0
    for i in range(5, 2):
        total += 1
    for i in range(-3):
        total += 1
    for i in range(0):
        for j in range(0):
            total += 1
    for i in range(n, 0, -2):
        total += 100 + i
    for i in range(0, n, n):
        total += 1000
    x[0] = total


def case_70_short_circuit_guards(x, n):
    i = n
    while i < 4 and x[i] > 0:
        i += 1
    if i >= 4 or x[i] == 0:
        x[0] = 7
    x[1] = 10 // n if n != 0 else -1


def case_71_chained_comparison(x, n):
    x[0] = 1 if 0 < n < 3 else 0
    x[1] = 1 if not 0 < x[2] <= x[3] < 9 else 0


def swaps(x, n):
    i = x[0]
    j = x[1]
    k = x[2]
    i, j = j, i
    i, j, k = k, i, j
    for _ in range(n):
        i, j = j, i + j
    x[0], x[1] = x[1], x[0]
    x[2] = i
    x[3] = j + k


def loop_else(x, n):
    for i in range(n):
        if x[i] == 3:
            break
    else:
        x[0] = 9
    while n > 0:
        n -= 1
        if x[n] == 5:
            x[2] = 1
            break
    else:
        x[1] = 4
    x[3] += 1


def nested_else(x, n):
    for i in range(n):
        for j in range(i):
            if x[j] > 5:
                if x[i] > 2:
                    break
                return
            if x[j] == 2:
                continue
            x[i] = j
        else:
            x[0] += 1
            continue
        x[1] += 2


def two_endless_loops(x, n):
    i = 0
    while True:
        i += 1
        if i > n:
            break
        if x[i % 4] == 0:
            continue
        while True:
            x[0] += 1
            if x[0] % 3 == 0:
                break
    x[1] = i


def values_of_and_or(x, n):
    x[0] = n and x[1]
    x[1] = x[2] or n
    x[2] = (n and 3) or 4
    x[3] = not (n and x[0])


def tuple_loop(x, n):
    total = 0
    for k in (1, 2, 5):
        if k > n:
            break
        total += k
    else:
        total += 100
    x[0] = total


def tuples_in_both_branches(x, n):
    if n > 2:
        pair = (x[0], n)
    else:
        pair = (x[1], 3)
    first, second = pair
    x[2] = first
    x[3] = second


def loops_once(x, n):
    for i in range(n):
        x[0] = i + 5
        break
    for i in range(n):
        x[1] = i + 6
        return
    x[2] = 1


def unreached_code(x, n):
    if True:
        x[0] = 1
    while 0:
        x[1] = 1
    for i in range(n):
        continue
        x[2] = i
    return
    x[3] = 1


KERNELS = [
    function
    for function in list(globals().values())
    if getattr(function, "__module__", None) == __name__ and function is not ints
]


@pytest.mark.parametrize("function", KERNELS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_same_as_cpython(function, n):
    """The oracle gives what CPython gives, whatever way the flow takes."""
    if function is case_67_ranges_that_are_empty and n == 0:
        pytest.skip("a step of zero is an error in CPython")
    for values in ((0, 1, 2, 3), (3, 3, 0, 5), (9, 5, 2, 7)):
        try:
            check(function, ints(*values), n)
        except UnboundLocalError:
            # where CPython raises, the oracle reports
            assert run(function, ints(*values), n) != []


def test_while_is_a_while():
    """A loop that CPython rotated is printed as it was written."""

    def kernel(x, n):
        i = 0
        while i < n and x[i] > 0:
            i += 1
        x[0] = i

    assert text_of(kernel, INT32, WEAK_INT) == (
        "  var i: i64 = 0\n"
        "  while i < n and x[wrap(x, 0, i, i64(x_length))] > 0i32 {\n"
        "    i = i +.w 1\n"
        "  }\n"
        "  x[at(x, 0, 0, i64(x_length))] = i32.w(i)"
    )


def test_for_reuses_the_users_variable():
    """A loop variable that nothing else touches is the loop's own."""

    def kernel(x, n):
        for i in range(1, n):
            x[i] = i

    assert text_of(kernel, INT32, WEAK_INT) == (
        "  for i: i64 in range(1, n, 1) {\n    x[wrap(x, 0, i, i64(x_length))] = i32.w(i)\n  }"
    )


def test_two_loops_over_one_name():
    """Each has its own variable if none is read behind its loop."""

    def kernel(x, n):
        for i in range(n):
            x[i] = 1
        for i in range(n, 0, -1):
            if x[i] == 2:
                break

    shown = text_of(kernel, INT32, WEAK_INT)
    assert "var " not in shown
    assert "downto" in shown or "range(n, 0, -1)" in shown


def test_conditional_expression_is_one_store():
    """`x[0] = a if c else b` is one store, also where CPython 3.12 has two."""

    def kernel(x, n):
        x[0] = n if n > x[1] else 5

    assert text_of(kernel, INT32, WEAK_INT) == (
        "  x[at(x, 0, 0, i64(x_length))] = i32.w((n > i64(x[at(x, 0, 1, i64(x_length))]) ? n : 5))"
    )


def test_accumulator_takes_the_type_it_ends_with():
    """`acc = 0.0; acc += x_f32[j]` is a float32 from the start."""

    def kernel(x):
        acc = 0.0
        for j in range(x.size):
            acc += x[j]
        x[0] = acc

    assert text_of(kernel, FLOAT32).startswith("  var acc: f32 = 0.0f32\n")


def test_assert_is_a_statement():
    """An assertion stands alone, with its message."""

    def kernel(x, n):
        assert n > 0, "n must be positive"
        x[0] = n

    assert '  assert n > 0, "n must be positive"' in text_of(kernel, INT32, WEAK_INT)
    assert any("n must be positive" in found for found in run(kernel, ints(1), -1))


def test_unbound_on_some_paths_is_reported_by_the_oracle():
    """What only some paths assign has no value: the oracle reports its read."""

    def kernel(x, n):
        if n > 0:
            s = 2
        x[0] = s

    assert run(kernel, ints(1), 1) == []
    (finding,) = run(kernel, ints(1), 0)
    assert "'s'" in finding or " s " in finding or "s" in finding


def test_unbound_on_every_path_is_an_error():
    """What no path assigns before it is read does not compile."""

    def kernel(x, n):
        x[0] = s
        s = n

    with pytest.raises(UnboundLocal, match="s"):
        kernel_of(kernel, INT32, WEAK_INT)


def test_empty_loop_leaves_its_variable_unbound():
    """The variable of a loop that made no pass has no value."""

    def kernel(x, n):
        for i in range(n):
            pass
        x[0] = i

    assert run(kernel, ints(1), 2) == []
    assert len(run(kernel, ints(1), 0)) == 1


def test_loads_are_not_moved_over_stores():
    """A value loaded before a store is what it was before the store."""

    def kernel(x, n):
        a = x[0] + x[1]
        x[0] = 5
        x[1] = a
        x[2], x[3] = x[3] + x[0], x[2]

    (x, _) = check(kernel, ints(1, 2, 3, 4), 0)
    assert list(x) == [5, 3, 9, 3]


def test_barrier_orders_loads():
    """A load before a barrier stays before it."""

    def kernel(x):
        t = sarek.thread_idx.x
        s = sarek.shared.array(4, np.int32)
        s[t] = x[t]
        sarek.barrier()
        v = s[3 - t]
        sarek.barrier()
        s[t] = v + 1
        sarek.barrier()
        x[t] = s[3 - t] * v

    check(kernel, ints(1, 2, 3, 4), block=4)
