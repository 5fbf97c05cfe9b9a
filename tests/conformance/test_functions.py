"""Functions of kernels: what is rebound, what is too deep, and what device sources hold."""

from __future__ import annotations

import re

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.everywhere import everywhere, gives
from tests.conformance.made import made
from tests.executors import EMULATION, device_of, executors
from tests.kernels.recursion import bounded, inlined, tails

devices = pytest.mark.parametrize("device", [name for name in executors() if name != EMULATION])

REBOUND = """
import collections, enum

Limits = collections.namedtuple("Limits", "low high")

@sarek.function
def plus(v):
    return v + 1

@sarek.function
def times(v):
    return v * 10

@sarek.function
def apply(f, v):
    return f(v)

class Ops:
    first = plus

class Mode(enum.Enum):
    A = 1
    B = 2

PAIR = (plus, times)
LIMITS = Limits(2, 5)
MODE = Mode.A

def factory(f):
    def rebind(g):
        nonlocal f
        f = g

    @sarek.kernel
    def k(out, x):
        t = sarek.thread_idx.x
        v = f(x[t]) + PAIR[1](x[t]) + apply(Ops.first, x[t]) + LIMITS.high
        if MODE is Mode.B:
            v = -v
        out[t] = v

    return k, rebind

k, rebind = factory(plus)
"""


@everywhere
def test_captured_functions_count_as_they_are_at_the_launch(executor):
    """A function rebound in a cell, a tuple or a class, a named tuple, an enum: never old code."""
    kernel = made(REBOUND, "k")
    scope = kernel.py_func.__globals__
    plus, times, rebind = (scope[name] for name in ("plus", "times", "rebind"))
    x = np.arange(3, dtype=np.int32)
    gives(executor, kernel, x + 1 + x * 10 + x + 1 + 5, x)
    rebind(times)
    gives(executor, kernel, x * 10 + x * 10 + x + 1 + 5, x)
    scope["PAIR"] = (times, plus)
    gives(executor, kernel, x * 10 + x + 1 + x + 1 + 5, x)
    scope["Ops"].first = times
    gives(executor, kernel, x * 10 + x + 1 + x * 10 + 5, x)
    scope["LIMITS"] = scope["Limits"](2, 6)
    gives(executor, kernel, x * 10 + x + 1 + x * 10 + 6, x)
    scope["MODE"] = scope["Mode"].B
    gives(executor, kernel, -(x * 10 + x + 1 + x * 10 + 6), x)
    rebind(plus)
    gives(executor, kernel, -(x + 1 + x + 1 + x * 10 + 6), x)


TAIL = """
@sarek.function
def down(n, total=0):
    return total if n == 0 else down(n - 1, total + n)

first = down

@sarek.kernel
def k(out):
    t = sarek.thread_idx.x
    out[t] = first(t)
"""


@everywhere
def test_a_rebound_name_ends_the_tail_recursion(executor):
    """The name by which a function calls itself is a captured value, loop or not."""
    kernel = made(TAIL, "k")
    gives(executor, kernel, [0, 1, 3, 6])
    kernel.py_func.__globals__["down"] = made(
        "@sarek.function\ndef down(n, total=0):\n    return total * 100\n", "down"
    )
    gives(executor, kernel, [0, 100, 200, 300])


DEEP = """
@sarek.function(inline_depth={})
def total(n):
    return 0 if n == 0 else n + total(n - 1)

@sarek.kernel
def k(out):
    t = sarek.thread_idx.x
    out[t] = total(t)
"""


@everywhere
def test_calls_nest_as_deep_as_stated(executor):
    """`inline_depth=N` holds N calls nested in the first one."""
    gives(executor, made(DEEP.format(3), "k"), [0, 1, 3, 6])
    gives(executor, made(DEEP.format(16), "k"), [n * (n + 1) // 2 for n in range(17)])


def test_the_oracle_reports_a_call_that_is_too_deep():
    """One level more fails on the oracle, in the threads that get there."""
    kernel = made(DEEP.format(2), "k")
    with pytest.raises(sarek.AssertionFailed) as caught:
        kernel.launch(np.zeros(4, np.int64), grid=1, block=4, device="interpreter")
    assert "total() calls itself deeper than its inline_depth" in str(caught.value)
    assert "thread (3, 0, 0)" in str(caught.value)
    assert len(caught.value.findings) == 1
    assert caught.value.findings[0].threads == 1


def calls_in(source: str) -> dict[str, set[str]]:
    """For each function of a C-like or LLVM text, the functions of the text that it calls."""
    heads = re.compile(
        r"^(?:define\b[^@\n]*@|(?:__attribute__\(\(.*?\)\) |extern \"C\" )?\w[\w ]*[ *])"
        r"([\w.]+)\((?!\().*$",
        re.M,
    )
    found = [(match[1], match.start(), match.end()) for match in heads.finditer(source)]
    names = {name for name, _, _ in found}
    ends = [start for _, start, _ in found[1:]] + [len(source)]
    graph: dict[str, set[str]] = {}
    for (name, _, start), end in zip(found, ends, strict=True):
        called = set(re.findall(r"([\w.]+)\(", source[start:end]))
        graph.setdefault(name, set()).update(called & names)
    return graph


def calls_in_module(source: str) -> dict[str, set[str]]:
    """The same of SPIR-V as text."""
    graph: dict[str, set[str]] = {}
    for part in re.split(r"^\s*(?=%\S+ = OpFunction )", source, flags=re.M)[1:]:
        name = part.partition(" ")[0].lstrip("%")
        key = "sarek_kernel" if name.startswith("sarek_kernel_") else name
        graph[key] = set(re.findall(r"OpFunctionCall %\S+ %(\S+)", part))
    return graph


def has_cycle(graph: dict[str, set[str]]) -> bool:
    open_names: set[str] = set()
    done: set[str] = set()

    def visit(name: str) -> bool:
        if name in open_names:
            return True
        if name in done:
            return False
        open_names.add(name)
        found = any(map(visit, sorted(graph[name])))
        open_names.remove(name)
        done.add(name)
        return found

    return any(map(visit, sorted(graph)))


@devices
@pytest.mark.parametrize("kernel", [bounded, tails], ids=["bounded", "tails"])
def test_no_recursion_in_any_device_source(kernel, device):
    """No function of the text that a device compiles reaches itself."""
    if device == "interpreter":
        pytest.skip("the interpreter compiles no text")
    rows = sarek.int64[:, :]
    given = [rows] if kernel is bounded else [rows, sarek.float32[:], sarek.int32[:], rows]
    if kernel is tails:
        given[3] = sarek.int64[:]
    is_module = device.startswith("vulkan")
    read = calls_in_module if is_module else calls_in
    graph = read(kernel.source(device_of(device), *given))
    names = {"native": "kernel", "vulkan": "sarek_kernel"}
    entry = names.get(device.partition(":")[0], kernel.__name__)
    assert entry in graph, "the text was not understood"
    if device != "native" or kernel is bounded:
        assert graph[entry], "the text was not understood"
    assert not has_cycle(graph)


def test_recursion_in_a_text_is_found():
    """The check above does find recursion, in each language."""
    c = "long f(long n) {\n    return g(n);\n}\n\nlong g(long n) {\n    return f(n);\n}\n"
    assert has_cycle(calls_in(c))
    module = "%f = OpFunction %2 None %3\n%1 = OpFunctionCall %2 %f\n"
    assert has_cycle(calls_in_module(module))
    llvm = "define i64 @f(i64 %n) {\n  %r = call i64 @f(i64 %n)\n  ret i64 %r\n}\n"
    assert has_cycle(calls_in(llvm))


def test_inlined_functions_are_in_no_device_source():
    """`inline=True` leaves no call, on a device that has calls; the IR says what was asked."""
    rows = sarek.int64[:, ::1]
    opencl = next(name for name in executors() if name.startswith("opencl"))
    assert calls_in(inlined.source(opencl, rows, rows)).keys() == {"inlined"}
    assert [helper.inline for helper in inlined.ir(rows, rows).functions] == [True] * 3


EXEC = """
import enum, numba

class Shade(enum.IntEnum):
    DARK = 2

@numba.njit
def dark(v):
    return v * Shade.DARK

@sarek.function
def down(n, f):
    return f(n) if n < 3 else down(n - 2, f)

class Holder:
    @staticmethod
    @sarek.kernel
    def k(out):
        t = sarek.thread_idx.x
        out[t] = down(t, dark)

k = Holder.k
"""


@everywhere
def test_functions_without_source_text(executor):
    """Kernels and functions made by `exec`, in a class, with no text to be found."""
    kernel = made(EXEC, "k")
    gives(executor, kernel, [0, 2, 4, 2, 4, 2])


@devices
def test_a_refused_launch_of_a_recursive_function_is_refused_again(device):
    """Recursion without a bound fails at each launch and leaves arrays alone."""
    kernel = made(DEEP.replace("(inline_depth={})", ""), "k")
    out = np.full(4, 7)
    for _ in range(2):
        with pytest.raises(sarek.UnsupportedConstruct, match="total\\(\\) calls itself"):
            kernel.launch(out, grid=1, block=4, device=device_of(device))
    assert out.tolist() == [7] * 4
