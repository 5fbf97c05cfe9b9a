"""`sarek.capture()`: blocks that are taken down, replayed with others inputs, and refused."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sarek_numba as sarek
from sarek_numba import GraphError, InvalidArgument, execute, realize
from sarek_numba.execute import Language
from sarek_numba.ir.native import NativeFunction
from sarek_numba.realize import capturing, create_linear_with_vars
from tests.unit.realize_kit import N, floats, scale, scaled


@sarek.kernel
def combine(out: Any, x: Any, y: Any, n: Any, a: Any) -> None:
    i = sarek.global_idx.x
    if i < n and i < len(out):
        out[i] = a * x[i] + y[i]


def first_line(refused):
    return str(refused.value).splitlines()[0]


# --- the registry ---------------------------------------------------------------------------------


class Taker:
    def __init__(self):
        self.taken = []

    def add_linear(self, linear, var_vals):
        self.taken.append((linear, var_vals))


def test_f09_schedules_go_to_the_head_of_the_registry():
    """Who captures has the schedule and its variables, and an empty one is left to execute."""
    call = scaled(realize.Param(0), realize.Param(1))
    linear, values = create_linear_with_vars([call], {"n": 3})
    assert (linear.calls, values) == ((call,), {"n": 3})
    first, second = Taker(), Taker()
    capturing.extend([first, second])
    try:
        linear, values = create_linear_with_vars([call], {"n": 3})
    finally:
        capturing.clear()
    assert (len(linear), values) == (0, {"n": 3})
    assert [(taken.calls, v) for taken, v in first.taken] == [((call,), {"n": 3})]
    assert second.taken == []


def test_f09_a_capture_executes_nothing():
    """Until it is replayed; then it does what the block said, as often as it is asked."""
    x, y = floats(), sarek.zeros(N, np.float32)
    launches = execute.counters.launches
    with sarek.capture() as g:
        scale[4, 16](y, x, N, 2.0)
        scale[4, 16](x, y, N, 1.0)
    assert execute.counters.launches == launches
    assert not np.asarray(y).any()
    assert [type(call).__name__ for call in g.linear] == ["ProgramCall", "ProgramCall"]
    for k in (1, 2, 3, 4):
        g.replay()
        assert np.array_equal(y, 2.0**k * np.arange(N))
    assert execute.counters.launches == launches + 8


@sarek.kernel
def sums_of_blocks(out: Any, x: Any) -> None:
    parts = sarek.shared.dynamic(0, sarek.float32)
    t = sarek.thread_idx.x
    parts[t] = x[sarek.global_idx.x]
    sarek.barrier()
    if t == 0:
        total = sarek.float32(0)
        for k in range(len(parts)):
            total += parts[k]
        out[sarek.block_idx.x] = total


def test_blocks_and_their_shared_memory_follow_variables():
    """As grids and arguments do."""
    x, out = floats(), sarek.zeros(8, np.float32)
    with sarek.capture() as g:
        k = g.variable("k", 16)
        sums_of_blocks.launch(out, x, grid=N // k, block=k, shared_bytes=4 * k)
    for k in (16, 32, 8):
        g.replay(k=k)
        expected = np.arange(N).reshape(-1, k).sum(1)
        assert np.array_equal(np.array(out)[: len(expected)], expected)


def failing(y, x):
    scale[4, 16](y, x, N, 2.0)
    raise ZeroDivisionError


def test_f09_an_exception_clears_the_capture():
    """Launches are executed again, and the graph says why it is none."""
    x, y = floats(), sarek.zeros(N, np.float32)
    g = sarek.capture()
    with pytest.raises(ZeroDivisionError), g:
        failing(y, x)
    assert capturing == []
    with pytest.raises(GraphError) as refused:
        g.replay()
    assert str(refused.value) == (
        "the capture ended by ZeroDivisionError, so there is no graph to replay"
    )
    scale[4, 16](y, x, N, 2.0)
    assert y[1] == 2


def test_f09_captures_do_not_nest():
    """The outer one goes on, and an other thread waits for its turn outside."""
    x, y = floats(), sarek.zeros(N, np.float32)
    found = []

    def elsewhere():
        try:
            with sarek.capture():
                pass
        except GraphError as error:
            found.append(str(error).splitlines()[0])

    def replay():
        try:
            g.replay()
        except GraphError as error:
            found.append(str(error))

    with sarek.capture() as g:
        scale[4, 16](y, x, N, 2.0)
        with pytest.raises(GraphError) as refused, sarek.capture():
            pass
        thread = threading.Thread(target=replay)
        thread.start()
        thread.join()
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    text = "a capture is under way already, and captures do not nest"
    assert first_line(refused) == text
    under_way = "the capture is under way, so there is no graph to replay"
    assert found == [under_way, text]
    g.replay()
    assert y[1] == 2
    with pytest.raises(GraphError, match="has taken down a block before"), g:
        pass


def test_other_threads_execute_meanwhile():
    """A capture is of its own thread."""
    x, y = floats(), sarek.zeros(N, np.float32)
    seen = []

    def elsewhere():
        scale[4, 16](y, x, N, 2.0)
        seen.append(y[1])

    with sarek.capture() as g:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert seen == [2]
    assert len(g.linear) == 0


# --- what is taken down ---------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["native", "interpreter", "opencl"])
def test_inputs_variables_and_allocations(device):
    """Inputs and numbers by name; what the block allocates is new in each replay."""
    with sarek.use_device(device):
        x, y = floats(), sarek.zeros(N, np.float32)
        w = sarek.empty(N, np.float32)
        with sarek.capture(x=x) as g:
            n, a = g.variable("n", N, min=0), g.variable("a", 2.0)
            t = sarek.zeros(N, np.float32)
            scale[(n + 15) // 16, 16](t, x, n, a)
            scale.forall(n, 16)(y, t, n, a * 2 + 1)
            w[...] = sarek.arange(N, dtype=np.float32)
            w[2:5] = y[1:4]
            w[5:7] = [7, a]
        assert list(g.inputs) == ["x", "out", "destination"]
        for _ in range(3):
            g.replay()
            assert np.array_equal(y, 10 * np.arange(N))
            g.replay(x=sarek.full(N, 3, np.float32), n=5, a=1.0)
            expected = np.where(np.arange(N) < 5, 9, 10 * np.arange(N))
            assert np.array_equal(y, expected)
            assert list(w[:8]) == [0, 1, *expected[1:4], 7, 2, 7]
            g.replay(n=0)


def test_numbers_remember_what_they_are_made_of():
    """Arithmetic with Python's numbers, on either side."""
    x = floats()
    with sarek.capture(x=x) as g:
        n = g.variable("n", 8)
        made = [n + 1, 20 - n, 3 * n, n // 3, 20 // n, n % 3, -n, n / 4, 2 / n, 20 % n, 1 + n - 2]
        assert made == [9, 12, 24, 2, 2, 2, -8, 2.0, 0.25, 4, 7]
        for value in made:
            scale[1, 1](x, x, 0, value)
    numbers = [realize.data.substitute(c.arguments[3], {"n": 5}) for c in g.linear]
    assert numbers == [6, 15, 15, 1, 4, 2, -5, 1.25, 0.4, 0, 4]


def test_parts_of_one_vector_are_one_input():
    """Uses that overlap are of the buffer that is all of them; apart they are inputs each."""
    x = floats()
    with sarek.capture(x=x) as g:
        scale[1, 16](x[:16], x[16:32], 16, 2.0)
        scale[1, 16](x[32:48], x[:16], 16, 2.0)
    assert list(g.inputs) == ["x"]
    y = floats(100)
    g.replay(x=y)
    assert y[0] == 232
    assert y[32] == 464
    assert x[0] == 0
    with sarek.capture() as g:
        scale[1, 16](x[:16], x[16:32], 16, 2.0)
    assert list(g.inputs) == ["out", "x"]
    y = floats(100)
    g.replay(out=y[:16], x=y[40:56])
    assert y[0] == 280


def test_what_no_buffer_is_all_of_stays():
    """Parts that overlap without one that has both are no input, and work as captured."""
    x = floats()
    with sarek.capture() as g:
        scale[1, 16](x[:16], x[16:32], 16, 2.0)
        scale[1, 16](x[8:24], x[40:56], 16, 1.0)
    assert "out" not in g.inputs
    g.replay()
    assert list(x[7:9]) == [46, 40]


def test_strided_and_two_dimensional_arguments():
    """Rows, columns and reversed vectors are what they were."""

    @sarek.kernel
    def set_all(a, value):
        i, j = sarek.grid(2)
        if i < a.shape[0] and j < a.shape[1]:
            a[i, j] = value

    a = sarek.zeros((4, 6), np.int32)
    with sarek.capture(a=a) as g:
        set_all[1, (8, 8)](a, 1)
        set_all[1, (8, 8)](a[::2, ::-2], 2)
        set_all[1, (8, 8)](a.T[1:2], 3)
    expected = np.ones((4, 6), np.int32)
    expected[::2, ::-2] = 2
    expected[:, 1] = 3
    g.replay()
    assert np.array_equal(a, expected)
    b = sarek.zeros((4, 6), np.int32)
    g.replay(a=b)
    assert np.array_equal(b, expected)


def test_arrays_of_the_host_are_read():
    """As they are in each replay; what the block does not write may be an array."""
    x, y = np.arange(N, dtype=np.float32), sarek.zeros(N, np.float32)
    with sarek.capture() as g:
        scale[4, 16](y, x, N, 2.0)
    x += 1
    g.replay()
    assert y[0] == 2
    g.replay(x=np.full(N, 9, np.float32))
    assert y[0] == 18
    out = np.zeros(N, np.float32)
    g.replay(out=out)
    assert out[0] == 2


def test_records_in_columns_and_lone_records_are_held():
    """They are arguments as they are."""
    pair = np.dtype([("a", np.float32), ("b", np.int32)])

    @sarek.kernel
    def store(p, one):
        i = sarek.global_idx.x
        if i < len(p):
            p[i].a = one.a
            p[i].b += one.b

    p = sarek.soa(np.zeros(5, pair))
    with sarek.capture() as g:
        store[1, 8](p, np.array((1.5, 2), pair)[()])
    g.replay()
    g.replay()
    assert p[3].tolist() == (1.5, 4)


def test_graphs_hold_what_they_use():
    """A vector that is dropped after the block is there in the replay, and goes with the graph."""
    x, y = floats(), sarek.zeros(N, np.float32)
    with sarek.capture() as g:
        scale[4, 16](y, x, N, 2.0)
    gone = weakref.ref(x)
    del x
    gc.collect()
    g.replay()
    assert y[1] == 2
    assert gone() is not None
    del g
    gc.collect()
    assert gone() is None


def test_graphs_show_themselves():
    """As text, and as a table in notebooks."""
    x, y = floats(), sarek.zeros(N, np.float32)
    with sarek.capture() as g:
        n = g.variable("n", N)
        t = sarek.empty(N, np.float32)
        scale[n // 16, (16, 1)](t, x, n, 2.0)
        y[...] = t
    assert str(g) == (
        "graph of 2 calls\n"
        "  input x: float32[64]\n"
        "  input destination: float32[64], written\n"
        "  variable n: from 1 to 2147483647\n"
        "  0: scale[(n // 16), 16](buffer 0, x, n, 2.0)\n"
        "  1: copy(destination, buffer 0) behind 0"
    )
    shown = g._repr_html_()
    picture = ElementTree.fromstring(shown[: shown.index("</svg>") + 6])
    texts = [each.text for each in picture.iter() if each.tag.endswith("text")]
    assert texts == [
        "0: scale[(n // 16), 16]",
        "buffer 0, x, n, 2.0",
        "1: copy",
        "destination, buffer 0",
    ]
    assert len([each for each in picture.iter() if each.tag.endswith("path")]) == 1
    assert "from 1 to 2147483647" in shown


# --- what is refused ------------------------------------------------------------------------------

READ = "the host reads a vector, whose elements are not computed before the graph is replayed,"


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda x: x[0], f"{READ} inside a capture"),
        (np.asarray, f"{READ} inside a capture"),
        (str, f"{READ} inside a capture"),
        (lambda x: x.host().__enter__(), f"{READ} inside a capture"),
        (lambda x: x.gather(), f"{READ} inside a capture"),
        (np.from_dlpack, f"{READ} inside a capture"),
        (
            lambda x: x.__setitem__([1, 2], 0),
            "an index array says where a vector is written inside a capture",
        ),
        (
            lambda x: x.__setitem__(slice(4), sarek.zeros(4, np.int32)),
            "float32[4] is set to int32[4] inside a capture",
        ),
        (
            lambda x: scale[1, 1](np.zeros(1, np.float32), x, 1, 1.0),
            "kernel 'scale' writes argument 'out', an array of the host, inside a capture: the "
            "host would see what is not computed yet",
        ),
        (
            lambda x: execute.run(
                "native", "twice", None, [x], 1, 1, native_fn=NativeFunction(lambda *_: None)
            ),
            "host function 'twice' is called inside a capture",
        ),
        (
            lambda x: execute.run_source("opencl", "", Language.OPENCL, "f", [x], 1, 1),
            "kernel 'f' of a source in OPENCL is launched inside a capture",
        ),
    ],
)
def test_what_cannot_be_taken_down_is_refused(act, text):
    """By name, and nothing has changed after it."""
    x = floats()
    with pytest.raises(GraphError) as refused, sarek.capture():
        act(x)
    assert first_line(refused) == text
    assert capturing == []
    assert np.array_equal(x, np.arange(N))


def captured():
    x, y, m = floats(), sarek.zeros(N, np.float32), sarek.zeros((2, 3), np.float32)
    with sarek.capture(x=x, y=y, m=m) as g:
        n = g.variable("n", N)
        scale[4, 16](y, x, n, 2.0)
        m[...] = 1
    return g


READ_ONLY = np.zeros(N, np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"z": floats()}, "the graph has no input 'z'; its inputs are: x, y, m, n"),
        ({"x": [1.0]}, "input 'x' is a list, not a vector or an array of NumPy"),
        (
            {"x": sarek.zeros(N, np.float64)},
            "input 'x' was captured as float32, and is given float64",
        ),
        (
            {"x": floats(0, 63)},
            "input 'x' was captured as an array of shape (64,), and is given (63,)",
        ),
        (
            {"m": sarek.zeros((3, 2), np.float32).T},
            "input 'm' was captured as an array of strides (12, 4), and is given (4, 8)",
        ),
        ({"y": READ_ONLY}, "input 'y' is written by the graph, and can be read only"),
    ],
)
def test_wrong_inputs_are_refused(inputs, text):
    """Each with a text of its own; the graph can be replayed after."""
    g = captured()
    with pytest.raises(GraphError) as refused:
        g.replay(**inputs)
    assert first_line(refused) == text
    g.replay()


def test_duplicate_inputs_are_refused():
    """One vector for two inputs, one that is another's captured one, one that overlaps."""
    g, same = captured(), floats()
    text = "input 'x' shares memory with input 'y', and did not when it was captured"
    for inputs in (
        {"x": same, "y": same},
        {"x": g.inputs["y"].captured},
        {"x": (both := floats(0, 2 * N))[:N], "y": both[5 : N + 5]},
    ):
        with pytest.raises(GraphError) as refused:
            g.replay(**inputs)
        assert first_line(refused) in (text, text.replace("'x'", "'?'"))  # in either order
    x = floats()
    with sarek.capture() as g:
        t = sarek.zeros(N, np.float32)
        scale[4, 16](t, x, N, 2.0)
    with pytest.raises(GraphError, match="input 'x' shares memory with memory that the graph h"):
        g.replay(x=t)


def test_wrong_variables_are_refused():
    """Out of range, made twice, of no number, outside of a block."""
    g = captured()
    with pytest.raises(InvalidArgument, match="variable 'n' is 0, and goes from 1 to 2147483647"):
        g.replay(n=0)
    for value in (2.5, "a", True):
        with pytest.raises(GraphError) as refused:
            g.replay(n=value)
        text = f"variable 'n' was captured as an int, and is given {value!r}"
        assert str(refused.value) == text
    with pytest.raises(GraphError, match="a variable is made inside"):
        g.variable("k", 1)
    with sarek.capture() as g:
        g.variable("n", 1)
        with pytest.raises(GraphError, match="has a variable 'n' already"):
            g.variable("n", 1)
        with pytest.raises(GraphError, match="variable 'k' is an int or a float, not True"):
            g.variable("k", True)
        with pytest.raises(GraphError, match="variable 'k' is 0, and goes from 1 to"):
            g.variable("k", 0)
    with pytest.raises(GraphError, match=r"capture\(\): input 'x' is a int, not a vector"):
        sarek.capture(x=3)
    with pytest.raises(GraphError, match="has taken down nothing yet, so there is no graph"):
        sarek.capture().replay()


def test_variables_of_lengths_and_counts_that_cannot_become_others():
    """The memory of the block is as long as it was captured; what 0 threads did is nothing."""
    x = floats()
    with sarek.capture() as g:
        n = g.variable("n", 0, min=0)
        with pytest.raises(GraphError) as refused:
            scale.forall(n)(x, x, n, 1.0)
        assert first_line(refused) == (
            "kernel 'scale' is launched for a variable that is 0 inside a capture"
        )
        with pytest.raises(GraphError) as refused:
            sarek.zeros((2, n + 1))
        assert first_line(refused) == (
            "the length (n + 1) of a vector that the block makes depends on a variable"
        )


def test_a_replay_within_a_capture_is_refused():
    """A graph is no part of another one."""
    g = captured()
    with sarek.capture(), pytest.raises(GraphError, match="a graph is replayed inside a capture"):
        g.replay()


# --- random programs ------------------------------------------------------------------------------

LENGTH, PART = 24, 8
PLACES = st.tuples(st.integers(0, 3), st.sampled_from([0, 8, 16]))
STATEMENTS = st.one_of(
    st.tuples(st.just("parts"), PLACES, PLACES, PLACES, st.integers(-2, 2)),
    st.tuples(
        st.just("whole"), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.booleans()
    ),
    st.tuples(st.just("fill"), PLACES, st.integers(-3, 3)),
    st.tuples(st.just("copy"), PLACES, PLACES),
    st.tuples(st.just("clear"), st.integers(0, 3)),
)


def perform(program, vectors, n, a):
    """Do the statements on three vectors and a temporary."""
    memory = [*vectors, sarek.zeros(LENGTH, np.float32)]

    def part(place):
        return memory[place[0]][place[1] : place[1] + PART]

    for kind, *rest in program:
        if kind == "parts":
            out, x, y, factor = rest
            combine[1, PART](part(out), part(x), part(y), n, factor * a + 1)
        elif kind == "whole":
            out, x, y, alone = rest
            grid = (n + PART - 1) // PART if alone else 3
            combine[grid, PART](memory[out], memory[x], memory[y], n, a)
        elif kind == "fill":
            part(rest[0])[...] = rest[1]
        elif kind == "copy":
            part(rest[0])[...] = part(rest[1])
        else:
            memory[rest[0]].fill(a)


@pytest.mark.parametrize("device", ["native", "opencl", "interpreter"])
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    program=st.lists(STATEMENTS, min_size=1, max_size=7),
    replays=st.lists(
        st.tuples(
            st.sets(st.integers(0, 2)), st.integers(1, LENGTH), st.sampled_from([-1.5, 0.5, 2.0])
        ),
        min_size=1,
        max_size=4,
    ),
    seed=st.integers(0, 99),
)
def test_replays_equal_direct_execution(device, program, replays, seed):
    """Whatever the program, inputs, sizes and aliasing are."""
    generator = np.random.default_rng(seed)

    def arrays():
        return list(generator.integers(-4, 5, (3, LENGTH)).astype(np.float32))

    with sarek.use_device(device):
        captured = list(map(sarek.vector, arrays()))
        with sarek.capture(u=captured[0], v=captured[1], w=captured[2]) as g:
            perform(program, captured, g.variable("n", LENGTH), g.variable("a", 1.0))
        for replaced, n, a in replays:
            given_ = {"uvw"[k]: sarek.vector(arrays()[k]) for k in replaced}
            used = [given_.get("uvw"[k], captured[k]) for k in range(3)]
            direct = [v.copy() for v in used]
            perform(program, direct, n, a)
            g.replay(n=n, a=a, **given_)
            for left, right in zip(used, direct, strict=True):
                assert np.array_equal(left, right, equal_nan=True)
