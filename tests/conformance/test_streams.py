"""Streams and events: order, what is waited for, what lives on, refusals.

Where a device has queues, a test holds a stream back with an event of its own, so that what runs
before what is not a matter of luck.
"""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import contextmanager

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.errors import StreamError
from sarek_numba.execute import Language
from sarek_numba.runtime.cache import counters
from sarek_numba.runtime.work import _busy
from tests import gates
from tests.gates import QUEUED

DEVICES = [device.name for device in sarek.devices()]
on_devices = pytest.mark.parametrize("name", DEVICES)
on_queues = pytest.mark.parametrize("name", QUEUED)


@sarek.kernel
def add(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i]


@sarek.kernel
def checked(out, x):
    i = sarek.global_idx.x
    assert x[i] < 5
    out[i] = x[i]


def numbers(count=64):
    return np.arange(1, count + 1, dtype=np.float32)


def launch(out, x, stream):
    add.launch(out, x, grid=1, block=64, device=stream.device, stream=stream)


@contextmanager
def held_back(stream, *others):
    """As of `gates`, with `add` loaded, for distinct arguments and for one that is both.

    CUDA puts code on a device when all that its streams were given is done.
    """
    for device in (stream.device, *others):
        x = sarek.zeros(64, np.float32)
        for given in ((sarek.zeros(64, np.float32), x), (x, x)):
            add.launch(*given, grid=1, block=64, device=device)
        device.synchronize()
    with gates.held_back(stream) as let_go:
        yield let_go


@contextmanager
def let_go_soon(stream, *others):
    """What the stream is given in the body begins some time later."""
    with held_back(stream, *others) as let_go:
        timer = threading.Timer(0.05, let_go)
        yield timer
        timer.join()


# --- every device ---------------------------------------------------------------------------------


@on_devices
def test_a_stream_is_done_in_order(name):
    """Each launch sees what the ones before it wrote; events come in order."""
    device = sarek.device(name)
    stream = device.stream()
    out, x = sarek.zeros(64, np.float32), sarek.vector(numbers())
    start = stream.record()
    for _ in range(10):
        add[1, 64, stream](out, x) if name == "native" else launch(out, x, stream)
    end = stream.record()
    stream.synchronize()
    assert start.is_done
    assert end.is_done
    assert (out == 10 * numbers()).all()
    assert start.elapsed_ms(end) >= 0
    assert end.elapsed_ms(start) <= 0
    assert repr(stream) == f"<sarek stream of {name}>"
    assert repr(end) == f"<sarek event of {name}>"


@on_devices
def test_streams_that_share_a_vector(name):
    """Whoever writes it comes after all before, whoever reads it after those that write."""
    device = sarek.device(name)
    streams = [device.stream() for _ in range(3)]
    out, x = sarek.zeros(64, np.float32), sarek.vector(numbers())
    for k in range(30):
        launch(out, x, streams[k % 3])
        launch(x, x, streams[(k + 1) % 3]) if k % 10 == 0 else None
    expected, values = np.zeros(64, np.float32), numbers()
    for k in range(30):
        expected += values
        values += values if k % 10 == 0 else 0
    assert (out == expected).all()
    assert (x == values).all()


@on_devices
def test_a_stream_waits_for_events_of_any_device(name):
    """On the same device and on others."""
    stream = sarek.device(name).stream()
    for other in DEVICES:
        second = sarek.device(other).stream()
        out, x = sarek.zeros(64, np.float32), sarek.vector(numbers())
        launch(out, x, second)
        stream.wait(second.record())
        launch(out, x, stream)
        stream.record().synchronize()
        assert (out == 2 * numbers()).all()
    sarek.device(name).synchronize()


@on_devices
def test_arrays_of_numpy_are_done_when_the_call_returns(name):
    """As arguments beside vectors, read and written."""
    stream = sarek.device(name).stream()
    out, x = np.zeros(64, np.float32), sarek.vector(numbers())
    launch(out, x, stream)
    assert (out == numbers()).all()
    launch(x, out, stream)
    assert (x == 2 * numbers()).all()
    launch(x[::2], x[1::2].copy(), stream)
    assert x[0] == 2 + 4


@on_devices
def test_findings_of_a_launch_on_a_stream(name):
    """What is checked is raised when the call returns."""
    kernel = sarek.kernel(checked.py_func, debug=True)
    device = sarek.device(name)
    out, x = sarek.zeros(64, np.float32), sarek.vector(numbers())
    with pytest.raises(sarek.AssertionFailed):
        kernel.launch(out, x, grid=1, block=64, device=device, stream=device.stream())


@on_devices
def test_ir_on_a_stream(name):
    """`run_vectors`, and `run_source` where the device takes OpenCL C."""
    device = sarek.device(name)
    stream = device.stream()
    out, x = sarek.zeros(64, np.float32), sarek.vector(numbers())
    execute.run_vectors(name, add.ir(out._array, x._array), [out, x], 64, 1, stream=stream)
    if execute.supports_language(name, Language.OPENCL):
        source = "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }"
        options = {"inject_lengths": False, "stream": stream}
        execute.run_source(name, source, Language.OPENCL, "twice", [out], 64, 1, **options)
        assert (out == 2 * numbers()).all()
    else:
        assert (out == numbers()).all()


# --- what is waited for ---------------------------------------------------------------------------


@on_queues
def test_a_launch_returns_before_it_is_done(name):
    """And its event tells."""
    stream = sarek.device(name).stream()
    out, x = sarek.zeros(64, np.float32), sarek.vector(numbers())
    with held_back(stream) as let_go:
        launch(out, x, stream)
        event = stream.record()
        assert not event.is_done
        let_go()
        event.synchronize()
        assert event.is_done
    assert (out == numbers()).all()


@on_queues
def test_only_what_shares_written_bytes_waits(name):
    """Other vectors, other parts of a vector, and vectors that are only read, do not."""
    device = sarek.device(name)
    first, second = device.stream(), device.stream()
    out, x = sarek.zeros(4096, np.float32), sarek.vector(numbers())
    out.to(name)
    with held_back(first) as let_go:
        launch(out[:64], x, first)
        launch(out[2048:2112], x, second)
        second.synchronize()
        launch(out[:64], x, second)
        event = second.record()
        assert not event.is_done
        let_go()
        event.synchronize()
    assert (out[:64] == 2 * numbers()).all()
    assert (out[2048:2112] == numbers()).all()


@on_queues
def test_a_writer_waits_for_readers(name):
    """A stream that reads a vector is done with it before another changes it."""
    device = sarek.device(name)
    first, second = device.stream(), device.stream()
    out, x = sarek.zeros(64, np.float32), sarek.vector(numbers())
    with held_back(first) as let_go:
        launch(out, x, first)
        launch(x, x, second)
        assert not second.record().is_done
        let_go()
    assert (out == numbers()).all()
    assert (x == 2 * numbers()).all()


def _read(out, x):
    return np.asarray(out)


def _write(out, x):
    x[:] = 0


def _write_in_host(out, x):
    with x.host() as array:
        array[:] = 0


def _free(out, x):
    out.free()
    x.free()


def _export(out, x):
    np.from_dlpack(x)[:] = 0


def _elsewhere(out, x):
    add.launch(x, sarek.full(64, -1, np.float32), grid=1, block=64, device="native")


def _without_stream(out, x):
    add.launch(x, sarek.full(64, -1, np.float32), grid=1, block=64, device=out_device[0])


def _other_devices(out, x):
    for each in DEVICES:
        x.to(each)
        add.launch(x, sarek.full(64, -1, np.float32), grid=1, block=64, device=each)


out_device = [""]


@on_queues
@pytest.mark.parametrize(
    "use",
    [_read, _write, _write_in_host, _free, _export, _elsewhere, _without_stream, _other_devices],
)
def test_the_host_waits(name, use):
    """For the work that last used a vector, whatever it does with it."""
    out_device[0] = name
    stream = sarek.device(name).stream()
    out, x = sarek.zeros(64, np.float32), sarek.vector(numbers())
    others = map(sarek.device, DEVICES if use is _other_devices else [])
    with let_go_soon(stream, *others) as timer:
        launch(out, x, stream)
        timer.start()
        use(out, x)
    assert (out == numbers()).all()


@on_queues
@pytest.mark.parametrize("first", [0, 1, 16, 1024])
def test_parts_on_a_stream(name, first):
    """Those that no buffer may begin at go through copies, in the order of the stream."""
    stream = sarek.device(name).stream()
    whole, x = sarek.zeros(2048, np.float32), sarek.vector(numbers())
    with let_go_soon(stream) as timer:
        for _ in range(3):
            launch(whole[first : first + 64], x, stream)
        timer.start()
    model = np.zeros(2048, np.float32)
    model[first : first + 64] = 3 * numbers()
    assert (whole == model).all()


# --- what lives on --------------------------------------------------------------------------------


@on_queues
def test_arguments_live_until_the_work_is_done(name):
    """Although nobody has them, the stream or its events any more."""
    stream = sarek.device(name).stream()
    out = sarek.zeros(64, np.float32)
    with held_back(stream) as let_go:
        storages = []
        for k in range(20):
            x = sarek.full(64, k, np.float32)
            storages.append(weakref.ref(x._storage))
            launch(out, x, stream)
            stream.record()
        queue = weakref.ref(stream.queue)
        del x, stream
        gc.collect()
        assert all(storage() is not None for storage in storages)
        assert queue() is not None
        let_go()
        assert (out == sum(range(20))).all()
    gc.collect()
    assert all(storage() is None for storage in storages)


@on_queues
def test_results_that_nobody_wants(name):
    """A stream dropped with all that it works on; the device can still be waited for."""
    device = sarek.device(name)
    stream = device.stream()
    with held_back(stream) as let_go:
        launch(sarek.zeros(64, np.float32), sarek.vector(numbers()), stream)
        del stream
        gc.collect()
        let_go()
        device.synchronize()
    assert not [queue for queue in _busy if queue.queues is device.driver.queues]


@on_queues
def test_nothing_grows(name):
    """What is done is forgotten, also by vectors that are used again and again."""
    stream = sarek.device(name).stream()
    out, x = sarek.zeros(64, np.float32), sarek.vector(numbers())
    for _ in range(500):
        launch(out, x, stream)
        assert len(x._storage._uses._uses) == 1
    stream.synchronize()
    assert not stream.queue._works
    assert (out == 500 * numbers()).all()


@on_queues
def test_threads_share_vectors_and_streams(name):
    """Each launch is behind those before it, whatever thread it is of."""
    device = sarek.device(name)
    streams = [device.stream() for _ in range(2)]
    out, x = sarek.zeros(64, np.float32), sarek.vector(numbers())

    def work(k):
        for i in range(20):
            launch(out, x, streams[(k + i) % 2])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (out == 80 * numbers()).all()


# --- refusals -------------------------------------------------------------------------------------


@on_devices
def test_foreign_streams_are_refused(name):
    """Before anything moves, every time; also what is no stream."""
    device = sarek.device(name)
    out, x = sarek.zeros(64, np.float32), sarek.vector(numbers())
    foreign = [sarek.device(other).stream() for other in DEVICES if other != name]
    counters.reset()
    for stream in [*foreign, 7, object()] * 2:
        with pytest.raises(StreamError) as error:
            add.launch(out, x, grid=1, block=64, device=device, stream=stream)
        assert error.value.reason == "foreign"
        with pytest.raises(StreamError):
            execute.run_vectors(name, add.ir(out._array, x._array), [out, x], 64, 1, stream=stream)
        with pytest.raises(StreamError):
            execute.run_source(name, "", Language.OPENCL, "k", [out], 64, 1, stream=stream)
    assert (counters.launches, counters.uploads, counters.compiles) == (0, 0, 0)
    assert out.is_current()


def test_misuse_of_events():
    """Words for what is no event, and for clocks that differ."""
    native, interpreter = sarek.device("native").stream(), sarek.device("interpreter").stream()
    with pytest.raises(StreamError, match="different clocks") as error:
        native.record().elapsed_ms(interpreter.record())
    assert error.value.reason == "foreign"
    with pytest.raises(TypeError, match="not for 3"):
        native.wait(3)
    with pytest.raises(TypeError, match="3 is none"):
        native.record().elapsed_ms(3)
