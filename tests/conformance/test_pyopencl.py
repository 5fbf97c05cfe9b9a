"""Arrays of PyOpenCL as arguments: in the user's context, on the user's queue, not copied."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.errors import (
    ArgumentTypeError,
    AssertionFailed,
    CompileError,
    MixedDevices,
    StreamError,
    UnknownDevice,
)
from sarek_numba.execute import Language, window
from sarek_numba.runtime.cache import counters

cl = pytest.importorskip("pyopencl")
cl_array = pytest.importorskip("pyopencl.array")

HOMES = [device.name for device in sarek.devices() if device.name.startswith("opencl")]
OTHERS = ["native", "interpreter"]
if not HOMES:
    pytest.skip("no OpenCL", allow_module_level=True)

SLOW = """
kernel void slow(global int *x, int value) {
    volatile int turns = 0;
    for (int k = 0; k < 300000; k++) turns += k;
    x[get_global_id(0)] = value + (turns & 0);
}
"""


class User:
    """A context and a queue that are not ours."""

    def __init__(self, home, unordered=False):
        self.home = home
        self.device = sarek.device(home).driver.device
        self.context = cl.Context([self.device])
        self.queue = self.new_queue(unordered)

    def new_queue(self, unordered=False):
        mode = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE if unordered else 0
        return cl.CommandQueue(self.context, properties=mode)

    def array(self, values, queue=None):
        return cl_array.to_device(queue or self.queue, np.ascontiguousarray(values))

    def zeros(self, shape, dtype=np.int32, **options):
        return cl_array.zeros(self.queue, shape, dtype, **options)


@pytest.fixture(scope="module", params=HOMES)
def user(request):
    return User(request.param)


@pytest.fixture(autouse=True)
def _whole_window():
    yield
    window.configure(enabled=True)


@sarek.kernel
def add(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i]


@sarek.kernel
def add_plane(out, x):
    i, j = sarek.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] += 10 * x[i, j]


def refused(error, match, *arrays):
    """A context in which a launch is refused, with nothing moved, compiled or changed."""

    class Refused:
        def __enter__(self):
            self.before = [array.get() for array in arrays]
            counters.reset()
            self.raises = pytest.raises(error, match=match)
            return self.raises.__enter__()

        def __exit__(self, *raised):
            done = self.raises.__exit__(*raised)
            assert (counters.launches, counters.uploads, counters.compiles) == (0, 0, 0)
            for array, before in zip(arrays, self.before, strict=True):
                assert np.array_equal(array.get(), before)
            return done

    return Refused()


# --- what is given --------------------------------------------------------------------------------


def test_nothing_named_goes_to_the_arrays_device(user):
    """With nothing named, and whatever is the default, in the array's context; nothing moves."""
    x, out = user.array(np.arange(1000)), user.zeros(1000, np.int64)
    counters.reset()
    add[4, 256](out, x)
    with sarek.use_device("native"):
        add[4, 256](out, x)
    add.launch(out, x, grid=4, block=256, device=user.home)
    add.launch(out, x, grid=4, block=256, device=sarek.device(x))
    add.forall(1000)(out, x)
    assert (counters.uploads, counters.downloads) == (0, 0)
    assert np.array_equal(out.get(), 5 * np.arange(1000))
    assert sarek.device(x).name.startswith(f"{user.home}@")
    assert sarek.device(x) is sarek.device(out) is sarek.device(user.queue)
    assert sarek.device(x) is sarek.device(user.context)


PARTS = {
    "from one": slice(1, None),
    "from an aligned one": slice(32, None),
    "every second": slice(None, None, 2),
    "backwards": slice(None, None, -1),
    "backwards in steps": slice(None, 3, -3),
    "one": slice(5, 6),
    "none": slice(5, 5),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.int64, np.complex64])
def test_parts(user, part, dtype):
    """Where elements begin inside of a buffer, and in whatever steps; what is beside them stays."""
    model, values = np.zeros(100, dtype), np.arange(100).astype(dtype)
    out, x = user.array(model), user.array(values)
    for _ in range(2):
        add[1, 128](out[part], x[part])
        model[part] += values[part]
    assert np.array_equal(out.get(), model)
    add[1, 128](out[part], np.ascontiguousarray(values[part]))
    model[part] += values[part]
    assert np.array_equal(out.get(), model)


def test_parts_are_not_copied(user, monkeypatch):
    """What elements can be counted to from the buffer's start, or a part begins at, stays there."""

    def copied(*ignored):
        raise AssertionError("a part was copied")

    memory = sarek.device(user.queue).driver.memory
    monkeypatch.setattr(memory, "_copy", copied)
    x, model = user.array(np.arange(2000, dtype=np.int32)), np.arange(2000)
    y, values = user.array(np.arange(300, dtype=np.int32)), np.arange(300)
    for start in (1, 31, 1024, 1500):
        add[2, 256](x[start : start + 500 : 2], y[start % 7 : start % 7 + 250])
        model[start : start + 500 : 2] += values[start % 7 : start % 7 + 250]
    assert np.array_equal(x.get(), model)


@pytest.mark.parametrize("order", ["C", "F"])
def test_planes(user, order):
    """Rows, columns, transposed: in the order of the array."""
    values = np.arange(35, dtype=np.float64).reshape(5, 7)
    x = cl_array.to_device(user.queue, np.asarray(values, order=order))
    out = cl_array.zeros(user.queue, (5, 7), np.float64, order=order)
    add_plane[(1, 1), (8, 8)](out, x)
    add_plane[(1, 1), (8, 8)](out.T, x.T)
    add_plane[(1, 1), (8, 8)](out[1:, 2:5], x[1:, 2:5])
    model = 20 * values
    model[1:, 2:5] += 10 * values[1:, 2:5]
    assert np.array_equal(out.get(), model)


def test_parts_of_one_buffer(user):
    """Arguments that overlap are one memory; what one writes the other reads."""
    x = user.array(np.arange(100, dtype=np.int32))

    @sarek.kernel
    def shift(first, second):
        first[0] = 70
        second[1] = first[0] + second[0]

    for start in (32, 33):
        model = x.get()
        shift[1, 1](x[start:40], x[start : start + 5])
        model[start] = 70
        model[start + 1] = 140
        assert np.array_equal(x.get(), model)


def test_parts_of_buffers(user):
    """An array in a part of a buffer, as `buffer[a:b]` gives, overlaps one in the whole."""
    x = user.array(np.arange(1024, dtype=np.int32))
    part = cl_array.Array(user.queue, (100,), np.int32, data=x.base_data[2048:3072], offset=4)
    add[1, 128](part, x[:100])
    model = np.arange(1024)
    model[513:613] += np.arange(100)
    assert np.array_equal(x.get(), model)

    @sarek.kernel(restrict=True)
    def apart(out, y):
        out[0] = y[0]

    with refused(sarek.InvalidArgument, "overlaps 'y' in 4 bytes", x):
        apart[1, 1](part, x[513:514])


def test_records(user):
    """A record that is no multiple of what a device aligns to, at any place of a buffer."""
    ball = np.dtype([("x", np.float32), ("y", np.float32), ("n", np.int32)])

    @sarek.kernel
    def move(balls):
        i = sarek.global_idx.x
        if i < len(balls):
            balls[i].x += balls[i].y
            balls[i].n = i

    model = np.zeros(20, ball)
    model["y"] = np.arange(20)
    balls = user.array(model)
    for start in (0, 1, 7):
        move[1, 32](balls[start:])
        model["x"][start:] += model["y"][start:]
        model["n"][start:] = np.arange(20 - start)
    at = cl_array.Array(user.queue, (2,), ball, data=balls.base_data, offset=4)
    move[1, 32](at)  # begins between two records
    seen = np.frombuffer(model.tobytes(), ball, 2, 4).copy()
    seen["x"] += seen["y"]
    seen["n"] = [0, 1]
    expected = bytearray(model.tobytes())
    expected[4:28] = seen.tobytes()
    assert balls.get().tobytes() == bytes(expected)


def test_memory_pools(user):
    """Buffers that an allocator of PyOpenCL keeps."""
    pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(user.queue))
    for k in range(5):
        x = cl_array.to_device(user.queue, np.full(100, k, np.int32), allocator=pool)
        out = cl_array.zeros(user.queue, 100, np.int32, allocator=pool)
        add[1, 128](out, x)
        del x
        assert (out.get() == k).all()


def test_beside_vectors_and_arrays(user):
    """Vectors come to the array's context as to any device, and arrays of NumPy as ever."""
    x, vector = user.array(np.arange(100, dtype=np.int32)), sarek.ones(100, np.int32)
    array = np.full(100, 5, np.int32)
    for _ in range(4):
        add[1, 128](vector, x)
        add[1, 128](x, vector)
        add[1, 128](array, x)
        add[1, 128](x, array)
    y, v, a = np.arange(100), np.ones(100, np.int64), np.full(100, 5)
    for _ in range(4):
        v += y
        y += v
        a += y
        y += a
    assert vector.is_current(x)
    assert not vector.is_current(user.home)
    add.launch(vector, vector.copy(), grid=1, block=128, device=user.home)
    assert np.array_equal(x.get(), y)
    assert np.array_equal(vector, 2 * v)
    assert np.array_equal(array, a)


def test_buffers_of_vectors_in_the_users_context(user):
    """The other way: a vector's buffer as an array of PyOpenCL."""
    device = sarek.device(user.queue)
    vector = sarek.arange(100, dtype=np.int32).to(device)
    buffer = execute.device_buffer(vector, device)
    there = cl_array.Array(user.queue, (100,), np.int32, data=buffer)
    there += 7
    user.queue.finish()
    execute.mark_stale([vector], device)
    assert np.array_equal(vector, np.arange(100) + 7)


def test_our_own_context(user):
    """An array in the context of a device of ours is on that device itself."""
    device = sarek.device(user.home)
    queue = cl.CommandQueue(device.driver.context)
    x = cl_array.to_device(queue, np.arange(100, dtype=np.int32))
    vector = sarek.ones(100, np.int32)
    add.launch(vector, vector.copy(), grid=1, block=128, device=device)
    add[1, 128](vector, x)
    assert sarek.device(x) is device
    assert vector.is_current(device)
    assert np.array_equal(vector, np.arange(100) + 2)


# --- order ----------------------------------------------------------------------------------------


def test_between_the_users_own_work(user):
    """Launches and the user's operations alternate, and nobody waits."""
    x, model = user.array(np.ones(1000, np.int32)), np.ones(1000, np.int64)
    for k in range(30):
        add[4, 256](x, x)
        x += k
        model = 2 * model + k
        model %= 2**20
        x &= 2**20 - 1
    assert np.array_equal(x.get(), model)


def slowly(user, queue, array, value):
    """Work of the user that takes a while, and that the array has no event of."""
    program = cl.Program(user.context, SLOW).build()
    program.slow(queue, array.shape, None, array.base_data, np.int32(value))
    queue.flush()


@pytest.mark.parametrize("unordered", [False, True])
@pytest.mark.parametrize("measured", [False, True])
def test_arrays_of_several_queues(user, unordered, measured):
    """A launch comes behind the work of all queues of its arrays, and what follows behind it."""
    first, second = user.new_queue(unordered), user.new_queue(unordered)
    for k in range(1, 5):
        x, out = user.array(np.zeros(64, np.int32), first), user.array([0] * 64, second)
        slowly(user, first, x, k)
        if measured:
            with sarek.profile():
                add[1, 64](out, x)
        else:
            add[1, 64](out, x)
        x.fill(-1)
        out += 100
        assert (out.get() == k + 100).all()


def test_out_of_order_queues(user):
    """Work that the user's queue may do in any order is done before a launch, or after it."""
    queue = user.new_queue(unordered=True)
    program = cl.Program(user.context, "kernel void put(global int *x) { *x = 9; }").build()
    for k in range(1, 5):
        x = user.array(np.zeros(64, np.int32), queue)
        out = user.array(np.zeros(64, np.int32), queue)
        slowly(user, queue, x, k)
        add[1, 64](out, x)
        program.put(queue, (1,), None, x.base_data)
        add[1, 64](out, out)
        assert (out.get() == 2 * k).all()
        assert x.get()[0] == 9


def test_arrays_without_a_queue(user):
    """Nobody could wait for the launch, so it is done when it returns; events are waited for."""
    other = user.new_queue()
    x, out = user.array(np.full(64, 3, np.int32)), user.array(np.zeros(64, np.int32))
    user.queue.finish()
    program = cl.Program(user.context, SLOW).build()
    event = program.slow(other, (64,), None, x.base_data, np.int32(8))
    other.flush()
    x.events.append(event)
    add[1, 64](out.with_queue(None), x.with_queue(None))
    found = np.empty(64, np.int32)
    cl.enqueue_copy(user.new_queue(), found, out.base_data)
    assert (found == 8).all()


def test_streams(user):
    """Those of the array's device; one of another context is refused."""
    device = sarek.device(user.queue)
    x, out = user.array(np.zeros(64, np.int32)), user.array(np.zeros(64, np.int32))
    stream = device.stream()
    for k in range(1, 4):
        slowly(user, user.queue, x, k)
        add.launch(out, x, grid=1, block=64, stream=stream)
        x.fill(-1)
    assert (out.get() == 6).all()
    with refused(StreamError, f"'{user.home}', and the launch is on '{user.home}@", out):
        foreign = sarek.device(user.home).stream()
        add.launch(out, x, grid=1, block=64, stream=foreign)


@pytest.mark.parametrize("enabled", [True, False])
def test_launches_that_wait(user, enabled):
    """Vectors written by launches in the window, by launches beside arrays, by the host."""
    window.configure(enabled=enabled)
    device = sarek.device(user.queue)
    x, vector = user.array(np.ones(64, np.int32)), sarek.zeros(64, np.int32)
    one = sarek.ones(64, np.int32)
    model = np.zeros(64)
    for k in range(5):
        add.launch(vector, one, grid=1, block=64, device=device)
        add[1, 64](vector, x)
        add[1, 64](x, vector)
        add.launch(vector, one, grid=1, block=64, device=user.home)
        vector[k] = model[k] = 0 if k else 1
    y, v = np.ones(64, np.int64), np.zeros(64, np.int64)
    for k in range(5):
        v += 1
        v += y
        y += v
        v += 1
        v[k] = 0 if k else 1
    assert np.array_equal(vector, v)
    assert np.array_equal(x.get(), y)


def test_arrays_dropped_under_launches(user):
    """What a launch uses lives until it is done, whoever has forgotten it."""
    out = user.zeros(50_000)
    for k in range(30):
        add[200, 256](out, user.array(np.full(50_000, k, np.int32)))
        gc.collect()
        user.array(np.full(50_000, -1, np.int32))
    assert (out.get() == sum(range(30))).all()


# --- the layers below -----------------------------------------------------------------------------


def test_kernels_of_others(user):
    """`run_source` and `run_vectors`, with nothing named and with the device named."""
    source = (
        "kernel void twice(global int *x, int n) { int i = get_global_id(0); if (i < n) x[i] *= 2;}"
    )
    x = user.array(np.arange(100, dtype=np.int32))
    ir = add.ir(np.zeros(1, np.int32), np.zeros(1, np.int32))
    for where in (None, user.home):
        execute.run_source(where, source, Language.OPENCL, "twice", [x], 128, 1)
        execute.run_vectors(where, ir, [x, x], 128, 1)
    assert np.array_equal(x.get(), 16 * np.arange(100))
    for launch in (
        lambda: execute.run_interpreter_vectors(ir, [x, x], 128, 1),
        lambda: execute.run_vectors("native", ir, [x, x], 128, 1),
    ):
        with refused(MixedDevices, f"is memory of {user.home}, and the launch is on '", x):
            launch()


def test_host_functions_never_get_device_memory(user):
    from sarek_numba.ir.native import NativeFunction

    x = user.array(np.arange(10, dtype=np.int32))
    called = []
    function = NativeFunction(lambda *args: called.append(args))
    with refused(MixedDevices, "the launch is on 'native'", x):
        execute.run("native", "host", None, [x], 1, 1, native_fn=function)
    assert called == []


def test_checks_and_prints(user, capsys):
    """Kernels that report wait, and tell."""

    @sarek.kernel(debug=True)
    def checked(x):
        i = sarek.global_idx.x
        if i < 2:
            print("at", i)
        assert x[i] < 3

    x = user.array(np.arange(8, dtype=np.int32))
    slowly(user, user.queue, x, 1)
    checked[1, 8](x)
    assert sorted(capsys.readouterr().out.split()) == ["0", "1", "at", "at"]
    x[4] = 7
    with pytest.raises(AssertionFailed):
        checked[1, 8](x)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", OTHERS)
def test_another_device_is_refused(user, other):
    x = user.array(np.arange(10, dtype=np.int32))
    match = rf"'out' is memory of {user.home}, and the launch is on '{other}'\n.*out\.get\(\)"
    with refused(MixedDevices, match, x):
        add.launch(x, x, grid=1, block=32, device=other)


@pytest.mark.skipif(len(HOMES) < 2, reason="one OpenCL device")
def test_two_devices_are_refused(user):
    other = User(next(name for name in HOMES if name != user.home))
    x, y = user.array(np.arange(9, dtype=np.int32)), other.array(np.arange(9, dtype=np.int32))
    with refused(MixedDevices, "'out' is memory of OpenCL .*, and 'x' of OpenCL ", x, y):
        add[1, 32](x, y)
    with refused(MixedDevices, f"memory of {user.home}, and the launch is on '{other.home}'", x):
        add.launch(x, x, grid=1, block=32, device=other.home)
    with refused(MixedDevices, "the launch is on", x):
        add.launch(x, x, grid=1, block=32, device=sarek.device(other.queue))


def test_two_contexts_are_refused(user):
    """Of the same device; with what to do."""
    other = User(user.home)
    x, y = user.array(np.arange(9, dtype=np.int32)), other.array(np.arange(9, dtype=np.int32))
    match = rf"'out' and 'x' are of two contexts of {user.home}.*\n  hint: make both on queues of"
    with refused(MixedDevices, match, x, y):
        add[1, 32](x, y)
    with refused(MixedDevices, "the launch is on", x):
        add.launch(x, x, grid=1, block=32, device=sarek.device(other.queue))
    assert sarek.device(x) is not sarek.device(y)


def test_buffers_are_refused(user):
    x = user.array(np.arange(9, dtype=np.int32))
    with refused(ArgumentTypeError, "'x' is a pyopencl.Buffer, which has no shape.*\n.*Array", x):
        add[1, 32](x, x.base_data)


def test_shared_virtual_memory_is_refused(user):
    if not user.device.svm_capabilities & cl.device_svm_capabilities.COARSE_GRAIN_BUFFER:
        pytest.skip("the device has none")
    allocator = cl.tools.SVMAllocator(user.context, queue=user.queue)
    given = cl_array.zeros(user.queue, 9, np.int32, allocator=allocator)
    x = user.array(np.arange(9, dtype=np.int32))
    with refused(ArgumentTypeError, "'x' is an array in shared virtual memory.*\n.*buffer", x):
        add[1, 32](x, given)


def test_arrays_that_lie_are_refused(user):
    """Beyond their buffer, or between the places of elements: never launched."""
    x = user.array(np.arange(16, dtype=np.int32))
    for options in ({"shape": (17,)}, {"shape": (16,), "offset": 4}, {"shape": (9,), "strides": 8}):
        strides = options.pop("strides", None)
        given = cl_array.Array(
            user.queue, dtype=np.int32, data=x.base_data, strides=strides and (strides,), **options
        )
        with refused(ArgumentTypeError, r"spans the bytes \d+ to 68 of a buffer of 64", x):
            add[1, 32](x, given)
    for options in ({"offset": 2}, {"strides": (6,)}):
        given = cl_array.Array(user.queue, (3,), np.int32, data=x.base_data, **options)
        with refused(ArgumentTypeError, r"'x' is not aligned.*\n.*x\.copy\(\)", x):
            add[1, 32](x, given)


def test_elements_are_checked_as_numpys(user):
    x = user.array(np.arange(16, dtype=np.int32))
    for dtype, match in ((">i4", "order of another machine"), (np.longdouble, "this version")):
        given = cl_array.Array(user.queue, (3,), np.dtype(dtype), data=x.base_data)
        with refused(ArgumentTypeError, match, x):
            add[1, 32](x, given)


def test_buffers_to_be_read_only(user):
    """A kernel that writes to one is refused at its line."""
    values = np.arange(16, dtype=np.int32)
    flags = cl.mem_flags
    buffer = cl.Buffer(user.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=values)
    given = cl_array.Array(user.queue, (16,), np.int32, data=buffer)
    x = user.array(values)
    add[1, 32](x, given)
    assert np.array_equal(x.get(), 2 * values)
    with refused(CompileError, "out", x):
        add[1, 32](given, x)


def test_contexts_of_several_devices(user):
    """The queue says which device it is; without one it is not known."""
    try:
        parts = user.device.create_sub_devices([cl.device_partition_property.EQUALLY, 1])
    except cl.Error:
        pytest.skip("the device has no parts")
    context = cl.Context(parts)
    if len(context.devices) < 2:
        pytest.skip("the device has one part, or says so")
    queue = cl.CommandQueue(context, parts[1])
    x = cl_array.to_device(queue, np.arange(16, dtype=np.int32))
    add[1, 32](x, x)
    assert np.array_equal(x.get(), 2 * np.arange(16))
    with pytest.raises(ArgumentTypeError, match=r"context with \d devices .*\n.*with_queue"):
        add[1, 32](x, x.with_queue(None))
    assert np.array_equal(x.get(), 2 * np.arange(16))
    assert sarek.device(x).name.startswith(f"{user.home}@")


def test_what_is_of_no_device():
    for value in (3, 2.5, [], object()):
        with pytest.raises(UnknownDevice, match="is of no device"):
            sarek.device(value)


def test_a_disabled_backend_adopts_nothing(user, monkeypatch):
    x = user.array(np.arange(16, dtype=np.int32))
    monkeypatch.setenv("SAREK_DISABLE", "opencl")
    with refused(ArgumentTypeError, "is memory of OpenCL .*, which no device here works on", x):
        add[1, 32](x, x)
    with refused(ArgumentTypeError, "memory of OpenCL .* is of no device here", x):
        sarek.device(x)
