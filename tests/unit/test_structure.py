"""Structuring: regions run as CPython does, and have the shape that was written."""

# ruff: noqa: SIM102 # the functions under test are written as users write

from __future__ import annotations

import ast
import copy
import inspect
import random
import textwrap
from typing import Any

import pytest

from sarek_numba.frontend import regions as r
from tests.unit.region_runner import OutOfFuel, Runner, structured


def tree_of(function: Any) -> ast.AST:
    return ast.parse("if 1:\n" + textwrap.indent(textwrap.dedent(inspect.getsource(function)), " "))


def kinds(regions: r.Regions) -> list[str]:
    """The classes of regions, nested ones in brackets, straight code and copies left out."""
    result = []
    for region in regions:
        match region:
            case r.Decide(_, then, orelse):
                result.append(f"if[{' '.join(kinds(then))}|{' '.join(kinds(orelse))}]")
            case r.Loop(_, body):
                result.append(f"loop[{' '.join(kinds(body))}]")
            case r.TestFlag(_, _, body):
                result.append(f"flag[{' '.join(kinds(body))}]")
            case r.Straight() | r.Copies():
                pass
            case _:
                result.append(type(region).__name__.lower())
    return result


def short_circuits(x, n, m):
    if (n > 0 and m > 0) or not (n < 3 or x[0] == 1):
        x[1] = n
    while (n < 5 and x[n] != 2) or m > 4:
        n += 1
        m -= 1
    x[2] = n if 0 < n < m <= 4 else (m and x[0]) or -1


def returns_everywhere(x, n, m):
    if n < 0:
        return 1
    for i in range(n):
        for j in range(m):
            if x[i] == j:
                return i * 10 + j
            if x[j] < 0:
                break
        else:
            x[i] += 1
    while m > 0:
        m -= 1
        if m == 2:
            return x[m]
    return n + m


def loops_with_else(x, n, m):
    while n > m:
        n -= 1
        if x[n % 4] == 2:
            continue
        for i in range(n):
            if x[i % 4] == 3:
                x[0] += 1
                break
            if x[i % 4] == 1:
                m += 1
                break
        else:
            x[1] += 1
            continue
        if m > 3:
            break
    else:
        x[2] += 1
    x[3] = n


def guarded_call(x, n, m):
    if n > 0 and max(x[0], m) > 2:
        x[1] = 1
    else:
        x[1] = 2
    x[2] = 3


def two_heads(x, n, m):
    while True:
        n += 1
        if n > 6:
            break
        if x[n % 4] == 0:
            continue
        while True:
            m += 1
            if m % 3 == 0:
                break
        if m > 9:
            return m
        x[0] += m


FUNCTIONS = (short_circuits, returns_everywhere, loops_with_else, guarded_call, two_heads)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_runs_as_cpython(function):
    """The same result and the same list, on random arguments."""
    result = structured(function, tree_of(function))
    rng = random.Random(7)
    ended = 0
    for _ in range(200):
        arguments = [[rng.randrange(-1, 5) for _ in range(8)], rng.randrange(-1, 6)]
        arguments.append(rng.randrange(-1, 6))
        ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
        try:
            actual = Runner(result, 2000).run(*ours)
        except OutOfFuel:
            continue
        assert actual == function(*theirs)
        assert ours == theirs
        ended += 1
    assert ended > 100


def test_conditions_are_one_test():
    """`and`, `or`, `not` and chains in a condition are one branch."""

    def function(x, n, m):
        if (n > 0 and m > 0) or not (n < 3 or x[0] == 1):
            x[1] = n
        else:
            x[1] = m

    assert kinds(structured(function).regions) == ["if[|]"]


def test_while_has_one_test():
    """CPython's copy of the test at the end of a loop is gone."""

    def function(x, n):
        while n > 0 and x[n] < 3:
            n -= 1
        x[0] = n

    assert kinds(structured(function).regions) == ["loop[if[|leave]]"]


def test_nested_ifs_stay_two():
    """Two statements are not made one condition."""

    def function(x, n, m):
        if n > 0:
            if m > 0:
                x[0] = 1

    assert kinds(structured(function).regions) == ["if[if[|]|]"]


def test_else_of_a_for_needs_one_flag():
    """A `break` past the `else` of a `for` sets a flag."""

    def function(x, n):
        for i in range(n):
            if x[i] == 3:
                break
        else:
            x[0] = 1
        x[1] = 2

    result = structured(function)
    assert len(result.flags) == 1


def test_break_and_continue_need_no_flag():
    """Plain loops have plain jumps."""

    def function(x, n):
        for i in range(n):
            if x[i] == 3:
                continue
            if x[i] == 4:
                break
            x[i] = 1
        x[0] = 2

    assert structured(function).flags == {}


def _nested(loops: int, ifs: int) -> str:
    lines = ["def f(x, n):"]
    for k in range(loops):
        lines.append(" " * (k + 1) + f"i{k} = 0")
        lines.append(" " * (k + 1) + f"while i{k} < n:")
        lines.append(" " * (k + 2) + f"i{k} += 1")
    for k in range(ifs):
        lines.append(" " * (loops + k + 1) + f"if x[0] < {ifs - k}:")
    lines.append(" " * (loops + ifs + 1) + "x[0] += 1")
    return "\n".join(lines) + "\n"


def test_deep_nesting():
    """Nesting as deep as CPython's compiler takes: 20 loops, and below them 60 branches."""
    namespace: dict[str, Any] = {}
    exec(_nested(20, 60), namespace)
    result = structured(namespace["f"])
    x = [0]
    Runner(result).run(x, 1)
    assert x == [1]


def test_long_sequences():
    """The length of a sequence is no nesting."""
    lines = ["def f(x, n):"]
    for k in range(1500):
        lines += [f" if x[{k % 5}] > n:", f"  x[{k % 7}] += 1"]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines) + "\n", namespace)
    result = structured(namespace["f"])
    ours, theirs = [1, 5, 2, 0, 3, 1, 2], [1, 5, 2, 0, 3, 1, 2]
    Runner(result).run(ours, 1)
    namespace["f"](theirs, 1)
    assert ours == theirs
