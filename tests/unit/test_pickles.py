"""Kernels, functions, graphs and vectors as pickles, in this process and in another one."""

from __future__ import annotations

import linecache
import pickle
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import GraphError, execute, realize
from tests.unit.realize_kit import SIZE, N, buffer, floats, graph, scale, scaled

OTHER = """
import pickle, sys
given, arguments = pickle.loads(sys.stdin.buffer.read())
result = {body}
sys.stdout.buffer.write(pickle.dumps(result))
"""


def elsewhere(given: Any, *arguments: Any, body: str) -> Any:
    """What a new process makes of a pickle."""
    done = subprocess.run(
        [sys.executable, "-c", OTHER.format(body=body)],
        input=pickle.dumps((given, arguments)),
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    return pickle.loads(done.stdout)


def launched(kernel, *arguments):
    kernel.forall(len(arguments[0]))(*arguments)
    return np.asarray(arguments[0])


LAUNCH = "(given.forall(len(arguments[0]))(*arguments), arguments[0])[1]"


def local_kernels():
    """Kernels of no module, of all that they may reach."""
    factor, table = 3.0, np.arange(4, dtype=np.float32)

    @sarek.function
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    factorial = sarek.function(inline_depth=8)(factorial.function)

    def by_ten(x):
        return x * 10

    tenth = sarek.inline_source({"opencl": "$x * 10"}, fallback=by_ten)

    @sarek.kernel(wraparound=False)
    def plain(out, x):
        i = sarek.global_idx.x
        constants = sarek.const.array_like(table)
        if i < len(out):
            out[i] = factor * x[i] + constants[i % 4]

    @sarek.kernel
    def calls(out, x):
        i = sarek.global_idx.x
        if i < len(out):
            out[i] = factorial(i % 5) + tenth(x[i])

    @sarek.kernel(debug=True)
    def steps(out, x):
        i = sarek.global_idx.x
        with sarek.superstep():
            assert i < 1000
        total = sarek.block.reduce_sum(x[min(i, 7)])
        if i < len(out):
            match i % 2:
                case 0:
                    out[i] = total
                case _:
                    out[i] = 1

    return {"plain": plain, "calls": calls, "steps": steps}


KERNELS = {"of a module": scale, **local_kernels()}


@pytest.mark.parametrize("name", ["plain", "calls", "steps"])
def test_kernels_of_no_module_go_whole(name):
    """With captured values, functions, texts and the text they are written in, to a process."""
    kernel = KERNELS[name]
    out, x = np.zeros(8, np.float32), np.arange(8, dtype=np.float32)
    expected = launched(kernel, out.copy(), x)
    here = pickle.loads(pickle.dumps(kernel))
    assert here is not kernel
    assert (here.__name__, here.hints, here.debug) == (name, kernel.hints, kernel.debug)
    assert np.array_equal(launched(here, out.copy(), x), expected)
    assert str(here.ir(out, x)) == str(kernel.ir(out, x))
    assert np.array_equal(elsewhere(kernel, sarek.vector(out), x, body=LAUNCH), expected)


def test_kernels_of_a_module_go_by_name():
    """Here they are the same object."""
    assert pickle.loads(pickle.dumps(scale)) is scale
    assert len(pickle.dumps(scale)) < 200
    assert pickle.loads(pickle.dumps(MODULE_FUNCTION)) is MODULE_FUNCTION
    assert pickle.loads(pickle.dumps(MODULE_JIT)) is MODULE_JIT
    assert elsewhere(scale, body="given.__module__") == "tests.unit.realize_kit"


@sarek.function
def MODULE_FUNCTION(x):  # noqa: N802 # it is told from what is local
    return x + 1


@sarek.jit
def MODULE_JIT(x):  # noqa: N802
    scale[1, 1](x, x, 1, 2.0)


def test_functions_know_each_other():
    """Two kernels in one pickle share what they call; a device function is itself recursive."""
    kernels = local_kernels()
    here = pickle.loads(sarek_dumps([kernels["calls"], kernels["calls"]]))
    assert here[0] is here[1]
    function = closed(here[0], "factorial")
    assert closed(function, "factorial") is function
    assert function(5) == 120


def sarek_dumps(value):
    from sarek_numba.frontend.shipped import dumps

    return dumps(value)


def closed(function, name):
    """What a kernel or function has in a cell."""
    plain = getattr(function, "py_func", None) or function.function
    return dict(zip(plain.__code__.co_freevars, plain.__closure__, strict=True))[name].cell_contents


def written(text, file):
    """A kernel of a text that only `linecache` has."""
    text = textwrap.dedent(text)
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"sarek": sarek, "__name__": "written"}
    exec(compile(text, file, "exec"), names)
    return names["k"]


TEXT = """
@sarek.kernel
def k(out):
    for v in (1, 2, 3):
        out[v] = {value} * v
"""


def test_texts_go_along():
    """A kernel of a notebook is compiled from its text, whatever is under its name."""
    out = np.zeros(4, np.int32)
    kernel = written(TEXT.format(value=5), "<cell 1>")
    assert list(elsewhere(kernel, sarek.vector(out), body=LAUNCH)) == [0, 5, 10, 15]
    data = pickle.dumps(kernel)
    written(TEXT.format(value=7), "<cell 1>")
    made = pickle.loads(data)
    assert list(launched(made, out.copy())) == [0, 5, 10, 15]
    assert made.py_func.__code__.co_filename.startswith("<cell 1> (")
    assert linecache.getlines("<cell 1>")[4] == "        out[v] = 7 * v\n"


def test_functions_of_jit_are_captured_anew():
    """Where the pickle is read, with the same options."""
    kernels = local_kernels()
    plain = kernels["plain"]

    @sarek.jit(variables=["n"])
    def step(out, x, n):
        plain.forall(n, 1)(out, x)

    for made in (pickle.loads(pickle.dumps(step)), step):
        assert made.variables == ("n",)
        assert made.graphs == []
        for n in (8, 8, 4):
            out = sarek.zeros(8, np.float32)
            made(out, np.ones(8, np.float32), n)
            assert np.count_nonzero(out) == n
        assert len(made.graphs) == 1


@pytest.mark.parametrize("order", ["C", "F"])
def test_vectors_are_what_they_are(order):
    """The newest elements, in ordinary memory; records in columns."""
    x = sarek.vector(np.asarray(np.arange(6, dtype=np.float32).reshape(2, 3), order=order))
    scale.launch(x.reshape(-1) if order == "C" else x.T.reshape(-1), floats(), 6, 3.0,
                 grid=1, block=8, device="opencl")  # fmt: skip
    for made in (pickle.loads(pickle.dumps(x)), elsewhere(x, body="given")):
        assert np.array_equal(made, x)
        assert (made.strides, made.dtype) == (x.strides, x.dtype)
    part = pickle.loads(pickle.dumps(x[1:, ::2]))
    assert np.array_equal(part, np.asarray(x)[1:, ::2])
    pair = np.zeros(3, [("a", "f4"), ("b", "i8")])
    pair["b"] = 5, 6, 7
    made = elsewhere(sarek.soa(pair), body="given")
    assert isinstance(made, sarek.SoAVector)
    assert list(made["b"]) == [5, 6, 7]


# --- graphs ---------------------------------------------------------------------------------------


def captured(device):
    """A graph with inputs of vectors and arrays, a variable, memory of its own, and parts."""
    x, y, table = floats(), sarek.full(N, -1, np.float32), np.full(N, 2, np.float32)
    with sarek.use_device(device), sarek.capture(x=x) as g:
        n, a = g.variable("n", N), g.variable("a", 2.0)
        t = sarek.ones(N, np.float32)
        scale.forall(n, 16)(t, x, n, a)
        scale[1, 16](y[16:32], t[::-1][:16], 16, 1.0)
        scale[1, 16](y[:16], table, 16, a + 1)
        y[32:40] = t[:8]
    return g, x, y


REPLAYED = """[
    (given.replay(**named), [v for v in map(lambda i: __import__('numpy').array(i.captured),
     given.inputs.values())])[1] for named in arguments
]"""


@pytest.mark.parametrize("device", ["native", "opencl", "interpreter"])
def test_graphs_replay_elsewhere(device):
    """As here, with other inputs and variables; what a process replays is of its own memory."""
    g, x, y = captured(device)
    replays = [{}, {"n": 5}, {"x": floats(100), "a": -1.0}, {}]
    found = elsewhere(g, *replays, body=REPLAYED)
    assert not np.any(np.asarray(y) + 1)  # nothing was replayed here
    made = pickle.loads(pickle.dumps(g))
    assert str(made) == str(g)
    assert list(made.inputs) == list(g.inputs)
    for named, elements in zip(replays, found, strict=True):
        g.replay(**named)
        made.replay(**named)
        for k, (here, copy) in enumerate(zip(g.inputs.values(), made.inputs.values(), strict=True)):
            assert np.array_equal(here.captured, copy.captured)
            assert np.array_equal(here.captured, elements[k])
    assert made.inputs["x"].captured is not x
    both = floats()
    with pytest.raises(GraphError, match="shares memory with"):
        made.replay(x=both, out=both[:16])


def test_a_replayed_graph_is_pickled():
    """After it was recorded, and again after it was read."""
    g, _, y = captured("native")
    g.replay()
    made = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(g))))
    for _ in range(2):
        made.replay(n=5)
        g.replay(n=5)
        for here, copy in zip(g.inputs.values(), made.inputs.values(), strict=True):
            assert np.array_equal(here.captured, copy.captured)
    assert y[40] == -1


def test_graphs_on_several_devices():
    """Each program is compiled for the device of its name."""
    x = sarek.shard(np.arange(10, dtype=np.float32), ["native", "opencl"])
    with sarek.capture() as g:
        scale.forall(x)(x, x, 5, 2.0)
    made = pickle.loads(pickle.dumps(g))
    counts = execute.counters.launches
    made.replay()
    assert execute.counters.launches == counts + 2
    parts = [np.asarray(given.captured) for given in made.inputs.values()]
    assert np.array_equal(np.concatenate(parts), 2 * np.arange(10))
    assert x.parts[0][1] == 1


def test_schedules_are_data():
    """A schedule of kernels in IR runs in another process."""
    out = buffer()
    schedule = graph(scaled(out, realize.Param(0)))
    out_there = elsewhere(
        (schedule, out),
        floats(),
        body="""(
        __import__('sarek_numba').realize.run_linear('native', given[0], var_vals={'n': 64},
        inputs=[arguments[0]])[given[1]])""",
    )
    assert np.array_equal(out_there, 2 * np.arange(N))
    assert pickle.loads(pickle.dumps(SIZE)) == SIZE


def test_what_is_no_graph_is_not_pickled():
    """Before, within and after a block that failed."""
    g = sarek.capture()
    text = "only a graph that can be replayed can be pickled"
    with pytest.raises(GraphError, match=text):
        pickle.dumps(g)
    with g, pytest.raises(GraphError, match="a graph is pickled inside a capture"):
        pickle.dumps(g)
    pickle.loads(pickle.dumps(g)).replay()


def test_a_device_that_is_not_there():
    """Where the pickle is read, by its name."""
    g, _, _ = captured("native")
    data = pickle.dumps(g).replace(b"native", b"nativf")
    with pytest.raises(sarek.UnknownDevice, match="nativf"):
        pickle.loads(data)
