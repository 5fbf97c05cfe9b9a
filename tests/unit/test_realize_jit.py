"""`@sarek.jit`: run, captured, replayed; what makes another graph, and what is refused."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sarek_numba as sarek
from sarek_numba import ArgumentCountError, GraphError, InvalidArgument, execute, realize
from sarek_numba.realize import capturing
from tests.unit.realize_kit import N, floats, scale


def first_line(refused):
    return str(refused.value).splitlines()[0]


class Counted:
    """A jitted function that counts how often Python ran its body."""

    def __init__(self, body, **options):
        self.runs = 0

        @sarek.jit(**options)
        def step(*arguments, **named):
            self.runs += 1
            return body(*arguments, **named)

        self.step = step


@pytest.mark.parametrize("device", ["native", "interpreter", "opencl"])
def test_run_captured_replayed(device):
    """Each call does what the function says; Python runs it twice."""
    runs = []

    @sarek.jit
    def step(out, x, a):
        runs.append(a)
        t = sarek.zeros(N, np.float32)
        scale[4, 16](t, x, N, a)
        scale[4, 16](out, t, N, 2.0)

    with sarek.use_device(device):
        for k in range(6):
            out, x = sarek.zeros(N, np.float32), floats(k)
            launches = realize.graph_launches
            step(out, x, 3.0)
            assert np.array_equal(out, 6 * (k + np.arange(N)))
            assert realize.graph_launches == launches + (k > 0)
    assert runs == [3.0, 3.0]
    assert [len(graph.linear) for graph in step.graphs] == [3]  # the zeros, and two launches


@pytest.mark.parametrize("device", ["native", "interpreter", "opencl"])
def test_results_are_the_callers(device):
    """Vectors that the function makes are new in each call; those of arguments are these."""

    class Made(NamedTuple):
        double: Any
        parts: Any
        same: Any

    @sarek.jit
    def step(x):
        double = sarek.empty((2, N // 2), np.float32)
        scale[4, 16](double.reshape(-1), x, N, 2.0)
        return Made(double, [double[1], x[3:7]], {"x": x, "nothing": None})

    with sarek.use_device(device):
        kept = []
        for k in range(4):
            x = floats(k)
            kept.append((k, x, step(x)))
        for k, x, made in kept:
            expected = 2 * (k + np.arange(N, dtype=np.float32)).reshape(2, -1)
            assert isinstance(made, Made)
            assert np.array_equal(made.double, expected)
            assert np.array_equal(made.parts[0], expected[1])
            made.double[1] = 5
            assert made.parts[0][0] == 5  # one memory, as the function made it
            assert np.array_equal(made.parts[1], np.asarray(x)[3:7])
            made.parts[1][0] = -1
            assert x[3] == -1
            assert made.same["x"] is x
            assert made.same["nothing"] is None


def test_what_makes_another_graph():
    """Types, shapes, layouts, kinds of arrays, static values, the device; equal ones do not."""
    step = Counted(lambda x, *rest, **named: scale[1, 1](x, x, 0, 1.0))
    m = sarek.zeros((4, 6), np.float32)
    different: list[tuple[Any, ...]] = [
        (floats(),),
        (floats(0, 7),),
        (m.reshape(-1)[::2],),
        (m.reshape(-1)[::-1],),
        (floats(), 1),
        (floats(), True),
        (floats(), 1.0),
        (floats(), 0.0),
        (floats(), -0.0),
        (floats(), np.float32(1)),
        (floats(), "a"),
        (floats(), (1, 2)),
        (floats(), [1, 2]),
        (floats(), {"a": 1}),
        (floats(), {"b": 1}),
        (floats(), scale),
        (floats(), np.dtype("i4")),
        (floats(), np.zeros(3)),
        (floats(), sarek.zeros(3)),
        (floats(), [sarek.zeros(3)]),
    ]
    for count, arguments in enumerate(different, start=1):
        for _ in range(4):
            step.step(*arguments)
        assert step.runs == 2 * count, arguments
    assert len(step.step.graphs) == len(different)
    step.step(floats(), float("nan"))
    step.step(floats(), float("nan"))
    assert step.runs == 2 * len(different) + 2
    with sarek.use_device("interpreter"):
        step.step(floats())
    assert step.runs == 2 * len(different) + 3
    step.step.clear()
    assert step.step.graphs == []


FACTOR = 2.0


def test_globals_and_cells_count_as_they_are(monkeypatch):
    """A rebound number, vector or kernel is another graph, as it is in kernels."""
    weights = floats()
    x = sarek.zeros(N, np.float32)

    @sarek.jit
    def step(out):
        scale[4, 16](out, weights, N, FACTOR)

    for factor in (2.0, 3.0, 2.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        for _ in range(3):
            step(x)
            assert x[1] == factor
    weights = floats(10)
    for _ in range(3):
        step(x)
        assert x[1] == 22
    weights[1] = 50  # the same vector
    step(x)
    assert x[1] == 100


def test_variables_are_others_in_one_graph():
    """Ints and floats; ints beyond 32 bits are another kind of argument."""
    runs = []

    @sarek.jit(variables=["n", "a"])
    def step(out, x, n, a=1.0):
        runs.append(n)
        scale.forall(n, 16)(out, x, n, a * 2)

    for k, (n, a) in enumerate([(N, 1.0), (5, 2.0), (0, 3.0), (9, -1.5), (N, float("inf"))]):
        out, x = sarek.full(N, -7, np.float32), floats(1)
        step(out, x, n, a=a)
        expected = np.full(N, -7, np.float32)
        expected[:n] = 2 * a * (1 + np.arange(n, dtype=np.float32))
        assert np.array_equal(out, expected), k
    assert len(runs) == 3  # 0 is a kind of its own: Python launches nothing then
    for n in (-1, 2**40):
        with pytest.raises(sarek.SarekError) as direct:
            scale.forall(n, 16)(out, x, n, 1.0)
        for _ in range(3):
            with pytest.raises(type(direct.value)):
                step(out, x, n)
    with pytest.raises(GraphError) as refused:
        step(out, x, "4")
    assert str(refused.value) == "function 'step': variable 'n' is an int or a float, not '4'"


def test_arrays_of_the_host_and_containers():
    """Arrays are read as they are then; vectors within tuples, lists and dicts are inputs."""

    @sarek.jit
    def step(x, out):
        for array, into in zip(x, out["to"], strict=True):
            scale[4, 16](into, array, N, 2.0)

    for k in range(4):
        x = np.arange(N, dtype=np.float32) + k, floats(2 * k)
        out = {"to": [sarek.zeros(N, np.float32), sarek.zeros(N, np.float32)]}
        step(x, out)
        assert (out["to"][0][0], out["to"][1][0]) == (2 * k, 4 * k)
    assert list(step.graphs[0].inputs) == ["x[0]", "x[1]", "out['to'][0]", "out['to'][1]"]


def test_within_a_capture_it_is_part_of_that():
    """And a function that calls another one has the launches of both."""

    @sarek.jit
    def inner(out, x):
        scale[4, 16](out, x, N, 2.0)

    @sarek.jit
    def outer(out, x):
        t = sarek.empty(N, np.float32)
        inner(t, x)
        inner(out, t)

    out, x = sarek.zeros(N, np.float32), floats()
    for _ in range(3):
        out.fill(0)
        outer(out, x)
        assert out[1] == 4
    assert [len(graph.linear) for graph in outer.graphs] == [2]
    with sarek.capture() as g:
        inner(out, x)
    g.replay()
    assert out[1] == 2


def test_it_can_be_turned_off(monkeypatch):
    """SAREK_JIT=0 runs the function in each call."""
    monkeypatch.setenv("SAREK_JIT", "0")
    step = Counted(lambda out, x: scale[4, 16](out, x, N, 2.0))
    for _ in range(3):
        step.step(sarek.zeros(N, np.float32), floats())
    assert step.runs == 3
    assert step.step.graphs == []


def test_threads_share_a_function():
    """Each has its own results, whoever captures."""

    @sarek.jit
    def step(x):
        out = sarek.empty(N, np.float32)
        scale[4, 16](out, x, N, 2.0)
        return out

    wrong = []

    def work(k):
        for j in range(20):
            if step(floats(k + j))[0] != 2 * (k + j):
                wrong.append((k, j))

    threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(step.graphs) == 1


def test_while_another_thread_captures_it_runs():
    """Captures do not nest; a function is captured by a later call then."""
    step = Counted(lambda out, x: scale[4, 16](out, x, N, 2.0))
    out, x = sarek.zeros(N, np.float32), floats()
    step.step(out, x)

    def elsewhere():
        step.step(out, x)

    with sarek.capture():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert out[1] == 2
    assert step.step.graphs == []
    step.step(out, x)
    assert len(step.step.graphs) == 1


def test_the_least_used_graphs_are_dropped(monkeypatch):
    """There are so many of one function."""
    monkeypatch.setattr("sarek_numba.realize.jitted._MOST_GRAPHS", 2)
    step = Counted(lambda x, k: scale[1, 1](x, x, 0, 1.0))
    for k in (1, 2, 1, 3, 1):
        step.step(floats(), k)
        step.step(floats(), k)
    assert step.runs == 6
    step.step(floats(), 2)
    assert step.runs == 7


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (lambda x: (x,), "function 'step': missing a required argument: 'x'"),
        (lambda x: (x, x, 1, 2, 3), "function 'step': too many positional arguments"),
    ],
)
def test_wrong_numbers_of_arguments(arguments, text):
    """As Python has it."""

    @sarek.jit
    def step(out, x, n=1, m=2):
        scale[1, 1](out, x, n, 1.0)

    with pytest.raises(ArgumentCountError) as refused:
        step(*arguments(floats()))
    assert str(refused.value) == text


def test_arguments_that_no_graph_takes():
    """By name, at the first call; two that share memory too."""

    @sarek.jit
    def step(out, x, more=None):
        scale[4, 16](out, x, 1, 2.0)

    x, pair = floats(), np.dtype([("a", "f4")])
    for value, what in (
        (object(), "object"),
        ({1, 2}, "set"),
        (sarek.soa(np.zeros(3, pair)), "SoAVector"),
    ):
        with pytest.raises(GraphError) as refused:
            step(floats(), x, value)
        assert first_line(refused) == (
            f"function 'step': argument 'more' is a {what}, which a graph neither takes for an "
            "input nor compares by its value"
        )
    both = floats(0, 2 * N)
    for _ in range(3):
        for out, given_ in ((x, x), (both[:N], both[1 : N + 1])):
            with pytest.raises(GraphError) as refused:
                step(out, given_)
            assert str(refused.value) == (
                "function 'step': argument 'x' shares memory with argument 'out'\n"
                "  hint: pass a copy, as in x.copy()"
            )
        step(both[:N], both[N:])  # apart
        step(floats(), x)
    assert (both[0], both[1]) == (2 * N, 1)


def test_a_vector_that_comes_two_ways():
    """As an argument and as a part of a global: refused when it is captured, and in a replay."""
    whole = floats()

    @sarek.jit
    def step(out):
        scale[1, 8](out, whole, 8, 2.0)

    step(whole[:8])
    with pytest.raises(GraphError) as refused:
        step(whole[:8])
    assert first_line(refused) == (
        "function 'step': argument 'out' shares memory with a vector that the function has by "
        "another way"
    )
    step(floats(0, 8))
    step(floats(0, 8))
    with pytest.raises(GraphError, match="shares memory with input"):
        step(whole[:8])


@pytest.mark.parametrize(
    ("give", "what"), [(lambda: 1.5, "float"), (lambda: np.zeros(2), "ndarray")]
)
def test_results_that_no_graph_gives(give, what):
    """Numbers and arrays of the host are no results, and nothing is captured."""

    @sarek.jit
    def step(x):
        return give()

    for _ in range(3):
        with pytest.raises(GraphError) as refused:
            step(floats())
        assert first_line(refused) == (
            f"function 'step' gives a {what}; a function of sarek.jit gives vectors, tuples, "
            "lists and dicts of these, or None"
        )
    assert step.graphs == []


def test_what_cannot_be_captured_is_refused_when_it_is():
    """A read on the host; the function that raises leaves no capture behind."""

    @sarek.jit
    def step(x, fails):
        if fails:
            raise ZeroDivisionError
        if x[0] > 0:
            scale[4, 16](x, x, N, 2.0)

    x = floats(1)
    step(x, False)
    assert x[0] == 2
    for _ in range(2):
        with pytest.raises(GraphError, match="the host reads a vector"):
            step(x, False)
        with pytest.raises(ZeroDivisionError):
            step(x, True)
        assert capturing == []
    assert x[0] == 2


def test_lengths_of_new_vectors_are_not_variable():
    """Their memory is as long as it was captured."""

    @sarek.jit(variables="n")
    def step(x, n):
        t = sarek.empty((n * 2,), np.float32)
        scale[4, 16](t, x, n, 2.0)

    step(floats(), 4)
    with pytest.raises(GraphError) as refused:
        step(floats(), 5)
    assert first_line(refused) == (
        "the length (n * 2) of a vector that the block makes depends on a variable"
    )


def test_what_is_no_function():
    """Kernels, classes and wrong names of variables."""
    for given_, what in ((scale, "kernel 'scale'"), (int, "type")):
        with pytest.raises(GraphError) as refused:
            sarek.jit(given_)
        assert str(refused.value) == f"@sarek.jit takes a Python function, not a {what}"
    with pytest.raises(GraphError) as refused:
        sarek.jit(variables=["m"])(first_line)
    assert str(refused.value) == (
        "@sarek.jit: 'm' is no parameter of 'first_line'\n  note: its parameters are (refused)"
    )


def test_a_refused_replay_changes_nothing():
    """A grid that is too large, of a variable: then calls go on."""

    @sarek.jit(variables=["n"])
    def step(out, x, n):
        scale[n, 1024](out, x, N, 2.0)

    out, x = sarek.zeros(N, np.float32), floats()
    for _ in range(3):
        step(out, x, 1)
    count = execute.counters.launches
    with pytest.raises((InvalidArgument, sarek.InvalidDimensions)):
        step(out, floats(7), -3)
    assert execute.counters.launches == count
    step(out, x, 1)
    assert out[1] == 2


@settings(max_examples=40, deadline=None)
@given(
    program=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([-1.0, 0.5, 2.0])),
        min_size=1,
        max_size=6,
    ),
    given_back=st.lists(st.integers(0, 3), max_size=3),
    calls=st.lists(
        st.tuples(st.integers(1, N), st.sampled_from([0.5, 2.0])), min_size=3, max_size=5
    ),
)
def test_calls_equal_the_function(program, given_back, calls):
    """Whatever it launches and gives, and whatever its inputs are."""

    def body(u, v, n, a):
        memory = [u, v, sarek.zeros(N, np.float32), sarek.ones(N, np.float32)]
        for into, of, factor in program:
            scale[4, 16](memory[into], memory[of], n, factor * a)
        return [memory[k] for k in given_back]

    step = sarek.jit(body, variables=("n", "a"))
    for n, a in calls:
        direct, jitted = [floats(n), floats(3)], [floats(n), floats(3)]
        expected, found = body(*direct, n, a), step(*jitted, n, a)
        for left, right in zip(expected + direct, found + jitted, strict=True):
            assert np.array_equal(left, right)
    assert len(step.graphs) == 1
