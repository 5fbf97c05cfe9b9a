"""The launch window: what waits, until when, in which order, and what a failure names."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import errors, execute
from sarek_numba.errors import LaunchFailed
from sarek_numba.execute import window
from tests.executors import SEED, compare, has_warps
from tests.gates import QUEUED, on_launch
from tests.kernels.corpus import CASES

PARTS = 12  # of the corpus, each launched together
on_windows = pytest.mark.parametrize("name", QUEUED)
each_way = pytest.mark.parametrize("enabled", [True, False], ids=["window", "at once"])


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test begins with empty windows and statistics, and leaves the settings as they were."""
    window.flush()
    window.statistics.reset()
    yield
    window.configure(enabled=True, limit=64)


@sarek.kernel
def add(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i]


@sarek.kernel
def neighbours(out, x):
    """Each element needs those beside it."""
    i = sarek.global_idx.x
    n = len(x)
    if i < n:
        out[i] = x[(i + n - 1) % n] + x[(i + 1) % n]


@sarek.kernel
def copy_strided(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i]


def numbers(count=64):
    return np.arange(1, count + 1, dtype=np.float32)


def pair():
    return sarek.zeros(64, np.float32), sarek.vector(numbers())


def flushes():
    return dict(window.statistics.flushes)


# --- what waits -----------------------------------------------------------------------------------


@on_windows
def test_launches_wait_for_a_reader(name):
    """A hundred small launches: none is submitted before the window is full or the host reads."""
    outs, x = [sarek.zeros(64, np.float32) for _ in range(100)], sarek.vector(numbers())
    for out in outs:
        add.launch(out, x, grid=1, block=64, device=name)
    assert window.statistics.deferred == 100
    assert flushes() == {"full": 1}
    assert all((out == numbers()).all() for out in outs)
    assert flushes() == {"full": 1, "host read": 1}


def _synchronize(device, out, x):
    device.synchronize()


def _stream(device, out, x):
    other, one = pair()
    add.launch(other, one, grid=1, block=64, device=device, stream=device.stream())


def _event(device, out, x):
    device.stream().record()


def _argument(device, out, x):
    add.launch(np.zeros(64, np.float32), x, grid=1, block=64, device=device)


def _flush(device, out, x):
    window.flush(device)


def _flush_all(device, out, x):
    window.flush()


def _configure(device, out, x):
    window.configure(sarek.device(device).record.backend, limit=3)


def _read(device, out, x):
    assert out[0] == 1


def _write(device, out, x):
    x[3] = 0


def _free(device, out, x):
    out.free()


def _move(device, out, x):
    out.to(device)


def _native(device, out, x):
    add.launch(x, x, grid=1, block=64, device="native")


def _buffer(device, out, x):
    execute.device_buffer(out, device)


POINTS = {
    "synchronize": _synchronize,
    "stream": _stream,
    "event": _event,
    "argument": _argument,
    "flush": _flush,
    "configure": _configure,
    "host read": _read,
    "host write": _write,
    "free": _free,
    "transfer": _move,
    "buffer": _buffer,
}


@on_windows
@pytest.mark.parametrize("why", POINTS)
def test_points_that_submit(name, why):
    """Each is counted by its name, and what was launched before it is done."""
    device = sarek.device(name)
    out, x = pair()
    add.launch(out, x, grid=1, block=64, device=device)
    assert flushes() == {}
    POINTS[why](device, out, x)
    assert flushes() == {why: 1}
    assert (out == numbers()).all()
    assert flushes() == {why: 1}


@on_windows
def test_points_that_do_not(name):
    """Looking at what waiting launches only read, moving and making other vectors."""
    out, x = pair()
    add.launch(out, x, grid=1, block=64, device=name)
    assert (x == numbers()).all()
    other = sarek.ones(8, np.float32).to(name)
    other[0] = 5
    assert other[0] == 5
    assert not out.is_current()
    assert flushes() == {}
    _native(sarek.device(name), out, x)
    assert flushes() == {"host write": 1}
    assert (out == numbers()).all()
    assert (x == 2 * numbers()).all()


@pytest.mark.parametrize("name", ["native", "interpreter"])
def test_devices_that_run_at_once(name):
    """They have no window."""
    out, x = pair()
    add.launch(out, x, grid=1, block=64, device=name)
    assert window.statistics.deferred == 0
    assert (out == numbers()).all()


@on_windows
def test_what_is_checked_is_checked_in_the_call(name):
    """A refused launch is refused at once, and what waits goes on waiting."""
    out, x = pair()
    add.launch(out, x, grid=1, block=64, device=name)
    with pytest.raises(errors.ArgumentCountError):
        add.launch(out, grid=1, block=64, device=name)
    with pytest.raises(errors.InvalidDimensions):
        add.launch(out, x, grid=1, block=10**6, device=name)
    with pytest.raises(errors.ArgumentTypeError):
        add.launch(out, "x", grid=1, block=64, device=name)
    assert window.statistics.deferred == 1
    assert flushes() == {}
    assert (out == numbers()).all()


@on_windows
def test_limits_and_switches(name):
    """`configure` by backend, and for all."""
    backend = sarek.device(name).record.backend
    window.configure(backend, limit=2)
    out, x = pair()
    for _ in range(5):
        add.launch(out, x, grid=1, block=64, device=name)
    assert flushes() == {"full": 2}
    window.configure(backend, enabled=False)
    add.launch(out, x, grid=1, block=64, device=name)
    assert window.statistics.deferred == 5
    assert flushes() == {"full": 2, "configure": 1}
    window.configure("native", enabled=True)
    add.launch(out, x, grid=1, block=64, device=name)
    assert window.statistics.deferred == 5
    window.configure(enabled=True)
    add.launch(out, x, grid=1, block=64, device=name)
    assert window.statistics.deferred == 6
    assert (out == 8 * numbers()).all()


def test_refusals():
    """Words for what is no backend, no limit and no switch."""
    with pytest.raises(errors.UnknownDevice, match="no such backend"):
        window.configure("opengl", enabled=True)
    for limit in (0, -1, 2.5, True):
        with pytest.raises(errors.InvalidArgument, match="room for at least 1"):
            window.configure(limit=limit)
    with pytest.raises(errors.InvalidArgument, match="True or False, not 1"):
        window.configure(enabled=1)
    with pytest.raises(errors.UnknownDevice):
        window.flush("opencl:nothing:0")


# --- order ----------------------------------------------------------------------------------------


@on_windows
@each_way
def test_a_consumer_of_neighbours_comes_after_their_producer(name, enabled):
    """Launches that depend on each other keep their order: a chain of stencils (case 119)."""
    window.configure(enabled=enabled)
    count = 1000
    a, b = sarek.vector(numbers(count)), sarek.zeros(count, np.float32)
    model = numbers(count)
    for _ in range(12):
        neighbours.launch(b, a, grid=4, block=256, device=name)
        neighbours.launch(a, b, grid=4, block=256, device=name)
        for _ in range(2):
            model = np.roll(model, 1) + np.roll(model, -1)
    assert (a == model).all()


@on_windows
@each_way
def test_strided_parts(name, enabled):
    """As `out[3:20:4] = x[1:9:2]`, and fills of parts, many in one window."""
    window.configure(enabled=enabled)
    out, x = sarek.zeros(64, np.int32), sarek.arange(64, dtype=np.int32)
    model, values = np.zeros(64, np.int32), np.arange(64, dtype=np.int32)
    for first in range(20):
        target = slice(3 + first, 20 + first, 4)
        of = slice(1 + first, 11 + first, 2)
        copy_strided.launch(out[target], x[of], grid=1, block=8, device=name)
        model[target] = values[of]
        copy_strided.launch(x[first + 5 :], out[first + 5 :], grid=1, block=64, device=name)
        values[first + 5 :] = model[first + 5 :]
    assert (out == model).all()
    assert (x == values).all()


@on_windows
def test_windows_and_streams_share_vectors(name):
    """Whatever is launched where, in the order of the calls."""
    stream = sarek.device(name).stream()
    out, x = pair()
    for k in range(20):
        on = [None, stream][k % 2]
        add.launch(out, x, grid=1, block=64, device=name, stream=on)
        add.launch(x, out, grid=1, block=64, device=name, stream=on) if k == 10 else None
    total, values = np.zeros(64, np.float32), numbers()
    for k in range(20):
        total += values
        values += total if k == 10 else 0
    assert (out == total).all()
    assert (x == values).all()


@on_windows
def test_threads_share_a_window(name):
    """Nothing is lost, and each sees its own results."""
    failed = []

    def work():
        out, x = pair()
        for _ in range(50):
            add.launch(out, x, grid=1, block=64, device=name)
        if not (out == 50 * numbers()).all():
            failed.append(out)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert window.statistics.deferred == 200


@on_windows
def test_arguments_live_until_they_are_used(name):
    """Vectors that nobody has any more, of launches that wait."""
    out = sarek.zeros(64, np.float32)
    storages = []
    for k in range(30):
        x = sarek.full(64, k, np.float32)
        storages.append(weakref.ref(x._storage))
        add.launch(out, x, grid=1, block=64, device=name)
    del x
    gc.collect()
    assert all(storage() is not None for storage in storages)
    assert (out == sum(range(30))).all()
    gc.collect()
    assert all(storage() is None for storage in storages)


@on_windows
def test_nothing_keeps_memory_of_vectors_that_are_gone(name):
    """Not plans either, which remember what they launched on."""
    out, memory = sarek.zeros(64, np.float32), []
    for _ in range(30):
        x = sarek.ones(64, np.float32)
        memory.append(weakref.ref(x._storage.host.base))
        add.launch(out, x, grid=1, block=64, device=name)
    assert out[0] == 30
    del x
    gc.collect()
    assert [one() for one in memory] == [None] * 30


@on_windows
def test_nothing_grows(name):
    """Thousands of launches without a point, or with vectors of their own."""
    out, x = pair()
    for _ in range(3000):
        add.launch(out, x, grid=1, block=64, device=name)
    assert len(x._storage._uses._uses) == 1
    queue = x._storage._uses._uses[0][3].queue
    assert len(queue._works) <= 3 * 64
    assert (out == 3000 * numbers()).all()


# --- failures -------------------------------------------------------------------------------------


@on_windows
def test_a_failure_names_its_launch(name, monkeypatch):
    """The launch and the line that made it; what waited behind it runs all the same."""
    calls = []

    def failing(launch, *arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise LaunchFailed("the device did not want to")
        return launch(*arguments)

    (out, x), other = pair(), sarek.zeros(64, np.float32)
    add.launch(other, x, grid=1, block=64, device=name)
    window.flush()
    on_launch(monkeypatch, name, failing)
    add.launch(out, x, grid=1, block=64, device=name)
    neighbours.launch(other, x, grid=1, block=64, device=name)  # this one fails
    add.launch(out, x, grid=1, block=64, device=name)
    assert calls == []
    with pytest.raises(LaunchFailed) as error:
        np.asarray(out)
    line = test_a_failure_names_its_launch.__code__.co_firstlineno + 16
    assert str(error.value) == (
        "the device did not want to\n"
        f"  note: of the launch of kernel 'neighbours' at {__file__}:{line}"
    )
    assert (out == 2 * numbers()).all()
    assert (other == numbers()).all()
    sarek.device(name).synchronize()


# --- on and off -----------------------------------------------------------------------------------


def as_vectors(arguments):
    """The arguments, with a vector for each array that shares no memory with another one."""
    arrays = [(k, a) for k, a in enumerate(arguments) if isinstance(a, np.ndarray)]
    given = list(arguments)
    for k, array in arrays:
        alone = not any(np.shares_memory(array, other) for j, other in arrays if j != k)
        if alone and array.ndim and array.flags.forc and array.flags.writeable:
            given[k] = sarek.vector(array)
    return given


def launched(case, name):
    """A case as it is made for every executor, launched with vectors; they are not read yet."""
    made = case.launch(np.random.default_rng(SEED))
    given = as_vectors(made.arguments)
    options = {"grid": made.grid, "block": made.block, "shared_bytes": made.shared_bytes}
    case.kernel.launch(*given, device=name, **options)
    return case, made, given


@pytest.mark.parametrize("part", range(PARTS))
@on_windows
def test_the_corpus_with_vectors(name, part):
    """Many kernels in one window give what they give alone, and with none."""
    cases = [case for case in CASES[part::PARTS] if not case.warps or has_warps(name)]
    for enabled in (True, False):  # both of what was compiled once
        window.configure(enabled=enabled)
        window.statistics.reset()
        made = [launched(case, name) for case in cases]
        for case, launch, given in made:
            for position, expected in enumerate(launch.expected):
                actual = np.asarray(given[position])
                if expected is not None:
                    compare(name, case, position, actual, expected)
        assert bool(window.statistics.deferred) == enabled
