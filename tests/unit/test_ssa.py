"""Static single assignment form: what Numba's own pass gives, and each name assigned once."""

from __future__ import annotations

import inspect
import re

import pytest
from numba.core import ir, types
from numba.core.ssa import reconstruct_ssa

from sarek_numba.frontend import bytecode
from sarek_numba.frontend.source import read
from tests.kernels import control

KERNELS = [value for value in vars(control).values() if hasattr(value, "py_func")]


def loops(n):
    a = b = 0
    for i in range(n):
        if a > i:
            a, b = b, a
            continue
        while b < a:
            b += 1
            if b == 7:
                break
        else:
            a += b
        if i == 3:
            c = a
        a = a + 1 if i > 2 else b
    return a + b + c


def interpreted(function, monkeypatch, construct=None):
    if construct is not None:
        monkeypatch.setattr(bytecode, "construct_ssa", construct)
    arguments = tuple(types.int64 for _ in inspect.signature(function).parameters)
    return bytecode.interpret(read(function), arguments).blocks


def text(blocks):
    lines = [str(statement) for label in sorted(blocks) for statement in blocks[label].body]
    return re.sub(r", \w+\.py:\d+", "", "\n".join(lines))


FUNCTIONS = [loops, *(kernel.py_func for kernel in KERNELS)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_numba(function, monkeypatch):
    """The same names, phis and incoming values as Numba's pass gives."""
    ours = text(interpreted(function, monkeypatch))
    theirs = text(interpreted(function, monkeypatch, reconstruct_ssa))
    assert ours == theirs
    assert "phi" in ours or function.__name__ == "chained"


def test_each_name_is_assigned_once(monkeypatch):
    """No two assignments have one target."""
    blocks = interpreted(loops, monkeypatch)
    names = [s.target.name for b in blocks.values() for s in b.body if isinstance(s, ir.Assign)]
    assert len(names) == len(set(names))


def test_a_function_that_never_ends(monkeypatch):
    """What is assigned where control never comes back from is read there alone."""

    def endless(n, m):
        while True:
            if n > 1:
                while True:
                    if n > 2:
                        m = 3
                        while True:
                            n = m
                    n = m
            n = m

    blocks = interpreted(endless, monkeypatch)
    given = [
        s for b in blocks.values() for s in b.body if str(s).startswith("n.") and "= m" in str(s)
    ]
    assert sorted(str(s.value) for s in given) == ["m", "m", "m.1"]
    assert "undef" not in text(blocks)


def test_many_joins_in_a_row(monkeypatch):
    """A chain of a thousand joins needs no recursion."""
    lines = ["def chain(n):", "    a = n"]
    lines += [f"    if n > {k}:\n        a = a + {k}" for k in range(1000)]
    scope = {}
    exec("\n".join([*lines, "    return a", ""]), scope)
    blocks = interpreted(scope["chain"], monkeypatch)
    phis = [s for b in blocks.values() for s in b.body if bytecode._is_phi(s)]
    assert len(phis) == 1000
