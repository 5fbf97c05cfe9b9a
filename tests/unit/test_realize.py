"""Schedules: data, compiling, resolving, running. Names have the number of the requirement."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import InvalidArgument, realize
from sarek_numba.realize import (
    DEVICE_NUMBER,
    Buffers,
    CopyCall,
    CustomCall,
    ExecContext,
    KernelCall,
    LaunchInfo,
    Linear,
    MultiBuffer,
    Param,
    ProgramCall,
    Select,
    SliceCall,
    Stack,
    Variable,
    View,
    compile_linear,
    copies,
    resolve,
    resolve_buffer,
    run_linear,
)
from sarek_numba.realize.compile import program_for
from sarek_numba.runtime import graphs
from tests.unit.realize_kit import (
    INFO,
    NUMBER,
    RENAMED,
    SCALE,
    SIZE,
    N,
    buffer,
    floats,
    graph,
    scale,
    scaled,
)


def host(binding, node):
    return np.array(resolve(binding, ExecContext(), node))


def counted(made):
    def to_program(device, kernel):
        made.append((device.name, kernel.name))
        return program_for(device, kernel)

    return to_program


# --- copies ---------------------------------------------------------------------------------------


class Memory:
    """Device memory of arrays; what is in it moves natively from memory of the same `bus`."""

    allocator = pinned = None

    def __init__(self, bus):
        self.bus = bus
        self.events = []

    def hold(self, memory):
        return np.zeros(memory.size, np.uint8), memory

    def send(self, buffer, first, last):
        self.events.append("send")
        buffer[0][first:last] = buffer[1][first:last]

    def fetch(self, buffer, first, last):
        self.events.append("fetch")
        buffer[1][first:last] = buffer[0][first:last]

    def release(self, buffer):
        pass

    def transfers_from(self, source):
        return source.bus == self.bus

    def transfer(self, destination, at, source, first, size):
        self.events.append("transfer")
        destination[0][at : at + size] = source[0][first : first + size]


@pytest.mark.parametrize(("bus", "native"), [("a", True), ("b", False)])
def test_f05_copy_is_native_within_a_backend_else_through_the_host(monkeypatch, bus, native):
    """The memory of the destination decides; the text has bytes and both devices."""
    here, there = Memory("a"), Memory(bus)
    source_device, target = sarek.device("native"), sarek.device("interpreter")
    monkeypatch.setattr(source_device.driver, "memory", here)
    monkeypatch.setattr(target.driver, "memory", there)
    x, y = floats().to(source_device), sarek.zeros(N, np.float32)
    x._storage.written_on(here, 0, 4 * N)  # the host has none of it
    copies.statistics.reset()
    runner = realize.buffer_copy(target, 4 * N, "interpreter", "native")
    assert runner.display == str(runner) == "copy 256 bytes, interpreter <- native"
    here.events.clear()
    there.events.clear()
    runner([y, x])
    assert (copies.statistics.native, copies.statistics.through_host) == (native, not native)
    assert here.events == ([] if native else ["fetch"])
    assert there.events == (["transfer"] if native else ["send"])
    assert y.is_current(target)
    assert np.array_equal(y, np.arange(N, dtype=np.float32))


def test_f05_devices_on_host_memory_copy_there():
    """Between native and the interpreter nothing moves but the elements."""
    copies.statistics.reset()
    x, y = floats(), sarek.zeros(N, np.float32)
    realize.buffer_copy("native", 4 * N, "native", "interpreter")([y, x])
    assert copies.statistics.native == 1
    assert np.array_equal(y, x)


def test_f05_a_device_copies_in_its_own_memory():
    """What a kernel wrote on OpenCL is copied there, and comes to the host when it is read."""
    x, y = floats(), sarek.zeros(N, np.float32)
    scale.launch(x, x, N, 2.0, grid=4, block=16, device="opencl")
    copies.statistics.reset()
    downloads = sarek.execute.counters.downloads
    realize.buffer_copy("opencl", 4 * N, "opencl", "opencl")([y, x])
    assert copies.statistics.native == 1
    assert sarek.execute.counters.downloads == downloads
    assert np.array_equal(y, 2 * np.arange(N))
    part = sarek.zeros(N, np.float32).to("opencl")
    realize.buffer_copy("opencl", 40, "opencl", "opencl")([part[5:15], x[20:30]])
    assert copies.statistics.native == 2
    assert list(part[4:7]) == [0, 40, 42]


@pytest.mark.parametrize(
    ("buffers", "text"),
    [
        ([floats()], "a destination and a source, not 1 buffer"),
        ([floats(), floats(), floats()], "a destination and a source, not 3 buffers"),
        ([floats(), floats(0, 3)], "the destination has 64 elements, the source 3"),
        (
            [floats(), sarek.zeros(N, np.int32)],
            "the destination has elements of float32, the source of int32",
        ),
    ],
    ids=["one", "three", "size", "type"],
)
def test_f06_copies_take_two_equal_buffers(buffers, text):
    """Another number, size or type of buffers is refused by name, and nothing is copied."""
    runner = realize.buffer_copy("native", 4 * N, "native", "native")
    with pytest.raises(InvalidArgument) as refused:
        runner(buffers)
    assert str(refused.value) == f"copy 256 bytes, native <- native: {text}" or (
        str(refused.value) == f"copy 256 bytes, native <- native: a copy has {text}"
    )


# --- compiling ------------------------------------------------------------------------------------


def test_f07_compiling_rewrites_kernels_alone():
    """Kernels become programs, in graphs too; slices and copies are the same objects."""
    a, b, c = buffer(), buffer(), buffer(16)
    cut, copied = SliceCall(c, a, 0, 16), CopyCall(a, b)
    linear = Linear((scaled(a, b), cut, copied, *graph(scaled(b, a), copied)))
    made = compile_linear(sarek.device("native"), linear)
    assert [type(call) for call in made] == [ProgramCall, SliceCall, CopyCall, CustomCall]
    assert made.calls[1] is cut
    assert made.calls[2] is copied
    assert [type(call) for call in made.calls[3].linear] == [ProgramCall, CopyCall]
    assert made.calls[0].program.name == "scale"
    assert compile_linear(sarek.device("native"), made) is made


def test_f08_programs_are_cached_by_content_and_device():
    """Names and tags are no content; another device is."""
    made = []
    to_program = counted(made)
    native, oracle = sarek.device("native"), sarek.device("interpreter")
    a = buffer()
    calls = (
        scaled(a, a),
        KernelCall(RENAMED, (a, a, 1, 1.0), INFO),
        replace(scaled(a, a), tag="for readers"),
    )
    compiled = compile_linear(native, Linear(calls), to_program)
    assert made == [("native", "scale")]
    assert len({call.program for call in compiled}) == 1
    compile_linear(oracle, Linear(calls), to_program)
    assert made == [("native", "scale"), ("interpreter", "scale")]
    compile_linear(native, Linear(calls), counted(made))
    assert len(made) == 3, "another compiler makes its own"


# --- buffers and contexts -------------------------------------------------------------------------


def test_f10_buffers_are_allocated_lazily_and_seeded():
    """Memory is made when it is asked for; a seed replaces it, and says that it did."""
    a, b = buffer(), buffer()
    binding = Buffers()
    assert a not in binding
    assert len(binding) == 0
    made = binding[a]
    assert (made.shape, made.dtype) == ((N,), np.float32)
    assert binding[a] is made
    assert list(binding) == [a]
    before = binding.revision(a)
    x = floats()
    binding.seed(a, x)
    assert binding[a] is x
    assert binding.revision(a) != before
    binding.remove(a)
    assert a not in binding
    with pytest.raises(KeyError):
        binding.remove(a)
    binding.seed(b, x)
    binding.clear()
    assert list(binding) == []
    with pytest.raises(InvalidArgument, match="a buffer of 64 float32 cannot be one of 3 float32"):
        binding.seed(a, floats(0, 3))


def test_f10_a_seeded_buffer_is_followed_by_a_graph():
    """A graph that was recorded with one buffer works on the one that was seeded since."""
    a, b = buffer(), buffer()
    binding = Buffers()
    binding.seed(b, floats())
    linear = graph(scaled(a, b))
    run_linear("native", linear, binding, {"n": N})
    binding.seed(b, floats(100))
    run_linear("native", linear, binding, {"n": N})
    assert np.array_equal(host(binding, a), 2 * np.arange(100, 100 + N, dtype=np.float32))


def test_f11_contexts_have_defaults():
    """A run without context is one with an empty one."""
    assert ExecContext() == ExecContext(var_vals={}, inputs=(), jit=False, wait=False)
    a, b = buffer(), buffer()
    linear = Linear((scaled(a, b, n=N),))
    linear = Linear((replace(linear.calls[0], info=LaunchInfo(4, 16)),))
    results = []
    for stated in ({}, {"var_vals": {}, "inputs": (), "jit": False, "wait": False}):
        binding = Buffers()
        binding.seed(b, floats())
        run_linear("native", linear, binding, **stated)
        results.append(host(binding, a))
    assert np.array_equal(*results)
    assert results[0][1] == 2


# --- resolving ------------------------------------------------------------------------------------


def test_f12_a_parameter_is_an_input():
    """By its slot, a concrete buffer or another node."""
    x, b = floats(), buffer()
    binding = Buffers()
    context = ExecContext(inputs=(x, b))
    assert resolve_buffer(binding, context, Param(0)) is x
    assert resolve_buffer(binding, context, Param(1)) is binding[b]


def test_f12_a_view_is_a_part_of_its_source():
    """What is written through it is seen in the base; of several devices it is each one's part."""
    b = buffer()
    binding = Buffers()
    binding.seed(b, floats())
    part = resolve_buffer(binding, ExecContext(), View(b, 3, 4))
    assert np.array_equal(part, [3, 4, 5, 6])
    part[0] = -1
    assert binding[b][3] == -1
    shards = MultiBuffer((floats(), floats(10)), ("native", "interpreter"))
    parts = resolve_buffer(binding, ExecContext(inputs=(shards,)), View(Param(0), 1, 2))
    assert [list(shard) for shard in parts.shards] == [[1, 2], [11, 12]]
    assert parts.devices == ("native", "interpreter")


def test_f12_select_and_stack():
    """One of several, and several as one."""
    a, b = buffer(), buffer()
    binding = Buffers()
    stack = Stack((a, b))
    both = resolve_buffer(binding, ExecContext(), stack)
    assert both.shards == (binding[a], binding[b]) or both.shards[0] is binding[a]
    assert resolve(binding, ExecContext(), Select(stack, 1)) is binding[b]


NO_CONTEXT = ExecContext()


@pytest.mark.parametrize(
    ("context", "node", "text"),
    [
        (NO_CONTEXT, Param(0), "parameter 0 is bound to no input: there are 0"),
        (
            ExecContext(inputs=(Param(0),)),
            Param(0),
            "parameter 0 is bound to another parameter, 0",
        ),
        (ExecContext(inputs=(3,)), Param(0), "parameter 0 is bound to a int, which is no buffer"),
        (NO_CONTEXT, View(buffer(), SIZE, 1), "the offset n of a view is symbolic"),
        (
            NO_CONTEXT,
            View(buffer(), 60, 5),
            "a view of 5 elements from 60 on is not within 64",
        ),
        (NO_CONTEXT, View(buffer(), 1.5, 5), "the offset of a view is an int, not 1.5"),
        (
            ExecContext(inputs=(np.zeros((8, 8), np.float32).T,)),
            View(Param(0), 0, 5),
            "a view is of a buffer whose elements lie one after the other",
        ),
        (NO_CONTEXT, 7, "7 names no buffer"),
        (
            NO_CONTEXT,
            Select(buffer(), 0),
            "number 0 of a buffer of 64 float32 selects of a buffer on one device",
        ),
        (
            NO_CONTEXT,
            Select(Stack((buffer(),)), 1),
            "number 1 of a stack of 1 buffers selects number 1 of a buffer on 1 devices",
        ),
        (NO_CONTEXT, Stack(()), "a stack of no buffers is on no device"),
        (
            NO_CONTEXT,
            Stack((buffer(), buffer(3))),
            "a stack is of equal buffers, not of 64 float32 and 3 float32",
        ),
        (
            NO_CONTEXT,
            Stack((Stack((buffer(),)),)),
            "a stack is of buffers on one device each, not on several",
        ),
    ],
)
def test_f12_what_cannot_be_resolved_is_refused(context, node, text):
    """Each with a text of its own."""
    with pytest.raises(InvalidArgument) as refused:
        resolve_buffer(Buffers(), context, node)
    assert str(refused.value).splitlines()[0] == text


def test_f13_one_device_is_not_several():
    """`resolve` refuses a buffer on two devices."""
    node = Stack((buffer(), buffer()))
    with pytest.raises(InvalidArgument) as refused:
        resolve(Buffers(), ExecContext(), node)
    text = str(refused.value).splitlines()[0]
    assert text == "a stack of 2 buffers is on 2 devices, and one is wanted"


# --- running --------------------------------------------------------------------------------------


def test_f14_calls_are_done_in_order_and_compiled_first():
    """jit=True takes a compiled schedule, and refuses another one by the kernel's name."""
    a, b = buffer(), buffer()
    linear = Linear((scaled(a, Param(0)), scaled(b, a, 3.0), CopyCall(a, b)))
    binding = run_linear("native", linear, None, {"n": N}, [floats()])
    assert np.array_equal(host(binding, a), 6 * np.arange(N, dtype=np.float32))
    with pytest.raises(InvalidArgument, match="kernel 'scale' is not compiled, and jit=True says"):
        run_linear("native", linear, binding, {"n": N}, [floats()], jit=True)
    compiled = compile_linear(sarek.device("native"), linear)
    run_linear("native", compiled, binding, {"n": N}, [floats(1)], jit=True)
    assert np.array_equal(host(binding, b), 6 * np.arange(1, N + 1, dtype=np.float32))


def test_f14_unknown_custom_functions_are_refused():
    """By name, with those that there are."""
    with pytest.raises(InvalidArgument) as refused:
        run_linear("native", Linear((CustomCall("polish"),)))
    assert str(refused.value) == "there is no custom function 'polish'; there are: fill, graph"
    with pytest.raises(InvalidArgument, match="'graph' has no schedule to record"):
        run_linear("native", Linear((CustomCall("graph"),)))
    with pytest.raises(InvalidArgument, match="custom function 'graph' stands within a graph"):
        run_linear("native", graph(*graph()))
    with pytest.raises(InvalidArgument, match="custom function 'fill' has other arguments"):
        run_linear("native", Linear((CustomCall("fill"),)))


def test_f15_dimensions_and_scalars_are_substituted():
    """Another n is another launch of the same program."""
    made, a = [], buffer()
    linear = Linear((CustomCall("fill", (a, 0)), scaled(a, Param(0))))
    binding, to_program = Buffers(), counted(made)
    for n in (64, 5, 0, 33):
        run_linear("native", linear, binding, {"n": n}, [floats(1)], to_program=to_program)
        expected = np.where(np.arange(N) < n, 2 * np.arange(1, N + 1), 0)
        assert np.array_equal(host(binding, a), expected)
    assert len(made) == 1
    with pytest.raises(InvalidArgument, match="variable 'n' is 65, and goes from 0 to 64"):
        run_linear("native", linear, binding, {"n": 65}, [floats()])
    with pytest.raises(InvalidArgument, match="from 3 to 2, which holds no number"):
        Variable("k", 3, 2)


def test_f15_scalars_fit_their_parameters():
    """A number that its parameter cannot hold is refused."""
    a = buffer()
    call = KernelCall(NUMBER, (a, 2**70), LaunchInfo(4, 16))
    with pytest.raises(InvalidArgument, match=r"argument 'position' is 1180591620717411303424"):
        run_linear("native", Linear((call,)))


def test_f16_slices_bind_views_and_copies_transfer():
    """What a kernel writes through a slice is in the base."""
    a, part, c = buffer(), buffer(16), buffer(16)
    linear = Linear(
        (
            CustomCall("fill", (a, 1)),
            SliceCall(part, a, 8, 16),
            scaled(part, part, 5.0, 16),
            CopyCall(c, part),
        )
    )
    binding = run_linear("native", linear, None, {"n": 16})
    assert list(host(binding, a)[6:10]) == [1, 1, 5, 5]
    assert list(host(binding, a)[22:26]) == [5, 5, 1, 1]
    assert np.array_equal(host(binding, c), np.full(16, 5))


@pytest.mark.parametrize("device", ["native", "interpreter", "opencl"])
def test_f17_graphs_record_then_replay_what_changed(device):
    """Inputs, seeds, variables and dimensions of each run are those that count."""
    a, b, part = buffer(), buffer(), buffer(8)
    linear = graph(
        CustomCall("fill", (a, 0)),
        scaled(a, Param(0)),
        SliceCall(part, a, 4, 8),
        scaled(View(b, 0, 8), part, Variable("factor", -10, 10), 8),
        CopyCall(part, View(b, 0, 8)),
    )
    binding, before = Buffers(), realize.graph_launches
    inputs = [floats(1), floats(1), floats(100), np.arange(N, dtype=np.float32)]
    runs = [(inputs[k % 4], (64, 9, 40)[k % 3], (2.0, -3.0)[k % 2]) for k in range(8)]
    for x, n, factor in runs:
        run_linear(device, linear, binding, {"n": n, "factor": factor}, [x])
        expected = np.where(np.arange(N) < n, 2 * np.asarray(x), 0)
        whole = expected[4:12] * factor
        assert np.array_equal(host(binding, b)[:8], whole)
        expected[4:12] = whole
        assert np.array_equal(host(binding, a), expected)
    assert realize.graph_launches - before == len(runs)


def test_f17_a_replay_that_is_refused_changes_nothing():
    """The next one is as if it had not been."""
    a = buffer()
    linear, binding = graph(scaled(a, Param(0))), Buffers()
    run_linear("native", linear, binding, {"n": N}, [floats()])
    with pytest.raises(sarek.ArgumentTypeError):
        run_linear("native", linear, binding, {"n": N}, [sarek.zeros(N, np.int32)])
    run_linear("native", linear, binding, {"n": N}, [floats(1)])
    assert host(binding, a)[0] == 2


@pytest.mark.parametrize("wrap", [Linear, lambda calls: graph(*calls)], ids=["list", "graph"])
def test_f18_calls_on_several_devices_run_once_for_each(wrap):
    """With the position bound; copies go pair by pair, between unlike devices too."""
    names = ("native", "interpreter", "opencl")
    a, b = buffer(16, names), buffer(16, names)
    call = KernelCall(NUMBER, (a, DEVICE_NUMBER), LaunchInfo(1, 16))
    linear = wrap((call, CopyCall(b, a)))
    binding = Buffers()
    for _ in range(3):
        run_linear("native", linear, binding)
        assert [list(set(np.asarray(shard))) for shard in binding[a].shards] == [[0], [1], [2]]
        assert [list(set(np.asarray(shard))) for shard in binding[b].shards] == [[0], [1], [2]]
    assert len({id(shard) for shard in binding[b].shards}) == 3


def test_f18_unequal_numbers_of_devices_are_refused():
    """For kernels and copies, one and several too."""
    two, three, one = (
        buffer(16, ("native", "interpreter")),
        buffer(16, ("native",) * 3),
        buffer(16),
    )
    with pytest.raises(InvalidArgument, match="'scale' is given buffers on 2 and 3 devices"):
        run_linear("native", Linear((scaled(two, three, n=1),)), None, {"n": 1})
    with pytest.raises(InvalidArgument, match="'scale' is given buffers on 1 and 2 devices"):
        run_linear("native", Linear((scaled(two, one, n=1),)), None, {"n": 1})
    with pytest.raises(InvalidArgument, match="the destination is on 2 devices, the source on 3"):
        run_linear("native", Linear((CopyCall(two, three),)))
    with pytest.raises(InvalidArgument, match="one of the buffers is on several devices"):
        run_linear("native", Linear((CopyCall(one, two),)))


def test_f19_debugging_waits_and_tells(monkeypatch, caplog):
    """SAREK_DEBUG=2 has the time of each launch; what is copied is told from 1 on."""
    a, b = buffer(), buffer()
    linear = Linear((scaled(a, a), CopyCall(b, a)))
    waited = []
    device = sarek.device("native")
    monkeypatch.setattr(type(device), "synchronize", lambda self: waited.append(self.name))
    run_linear("native", linear, None, {"n": N})
    assert waited == []
    monkeypatch.setenv("SAREK_DEBUG", "2")
    run_linear("native", linear, None, {"n": N})
    assert waited == ["native", "native"]
    assert "scale on native: grid (4, 1, 1), block (16, 1, 1)" in caplog.text
    assert "copy 256 bytes to native, on the device" in caplog.text


def test_f20_graph_launches_counts_recordings_and_replays():
    """One recording and three replays are four."""
    before = realize.graph_launches
    linear, binding = graph(scaled(buffer(), Param(0))), Buffers()
    for _ in range(4):
        run_linear("native", linear, binding, {"n": N}, [floats()])
    assert realize.graph_launches - before == 4
    run_linear("native", Linear((scaled(buffer(), Param(0)),)), binding, {"n": N}, [floats()])
    assert realize.graph_launches - before == 4, "a launch by itself is no graph's"


def steps(*pairs):
    """Copies between parts of one array of 100 bytes: ((to, from), …), each of 10 bytes."""
    memory = np.zeros(100, np.uint8)
    native = sarek.device("native")
    return [
        [graphs.CopyStep(native, memory[to : to + 10], memory[of : of + 10])] for to, of in pairs
    ]


@pytest.mark.parametrize(
    ("pairs", "behind"),
    [
        ([(0, 50), (20, 5)], [set(), {0}]),  # read after write
        ([(50, 0), (5, 20)], [set(), {0}]),  # write after read
        ([(0, 50), (9, 70)], [set(), {0}]),  # write after write
        ([(0, 50), (10, 60)], [set(), set()]),  # neighbours
        ([(0, 50), (20, 50)], [set(), set()]),  # both read
        ([(0, 50), (20, 0), (40, 20)], [set(), {0}, {1}]),  # what follows is left out
    ],
)
def test_f21_dependencies_are_by_byte_range(pairs, behind):
    """Overlapping parts of one memory depend on each other as far as one of them writes."""
    assert list(graphs.dependencies(steps(*pairs))) == behind


def test_f21_launches_depend_by_what_the_kernel_uses():
    """Two launches that read one vector are independent, a third that writes it is behind both."""
    native = sarek.device("native")
    a, b, c = buffer(), buffer(), buffer()
    compiled = compile_linear(native, Linear((scaled(a, c), scaled(b, c), scaled(c, c))))
    from sarek_numba.realize.steps import steps_of

    binding, context = Buffers(), ExecContext({"n": N})
    made = [steps_of(native, call, binding, context) for call in compiled]
    assert list(graphs.dependencies(made)) == [set(), set(), {0, 1}]


def test_f22_a_missing_variable_is_named():
    """When it is recorded and when it is replayed."""
    linear, binding = graph(scaled(buffer(), Param(0))), Buffers()
    with pytest.raises(InvalidArgument) as refused:
        run_linear("native", linear, binding, {"m": 1}, [floats()])
    assert str(refused.value) == (
        "variable 'n' has no value; values are given for: m\n"
        "  hint: var_vals={'n': ...}, from 0 to 64"
    )
    run_linear("native", linear, binding, {"n": 1}, [floats()])
    with pytest.raises(InvalidArgument, match="values are given for: none"):
        run_linear("native", linear, binding, {}, [floats()])
    with pytest.raises(InvalidArgument, match="parameter 0 is bound to no input: there are 0"):
        run_linear("native", linear, binding, {"n": 1})


def test_f22_buffers_live_as_long_as_their_graph():
    """What the user has dropped is there in the next replay, and goes with the graph."""
    a, b = buffer(), buffer()
    linear, binding = graph(scaled(a, b)), Buffers()
    x = floats()
    gone = weakref.ref(x)
    binding.seed(b, x)
    del x
    for _ in range(3):
        gc.collect()
        assert gone() is not None
        run_linear("native", linear, binding, {"n": N})
        assert host(binding, a)[1] == 2
    binding.clear()
    del binding
    gc.collect()
    assert gone() is None


def test_launches_of_a_schedule_are_checked_as_any():
    """A block that the device does not take is refused."""
    call = KernelCall(SCALE, (buffer(), buffer(), 1, 1.0), LaunchInfo(1, 10**6))
    with pytest.raises(sarek.InvalidDimensions, match="1000000 threads"):
        run_linear("native", Linear((call,)))
