"""Launches that are like earlier ones on devices with memory and queues of their own."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import dispatcher, errors
from sarek_numba.errors import LaunchFailed, OutOfMemory
from sarek_numba.execute import window
from sarek_numba.runtime.cache import counters
from sarek_numba.runtime.storage import Access, ready_key
from sarek_numba.runtime.window import window_of
from tests.gates import on_launch
from tests.unit.test_fast_path import LongWay, learnt, no_long_way  # noqa: F401 # a fixture

NAMES = [d.name for d in sarek.devices() if d.driver.plans and d.driver.memory]
N = 64


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Each device, on which launches are made, its kernels forgotten."""
    for kernel in KERNELS:
        kernel._configurations.clear()
    window.flush()
    window.statistics.reset()
    with sarek.use_device(request.param):
        yield request.param


@pytest.fixture(params=[True, False], ids=["window", "at once"])
def enabled(request: pytest.FixtureRequest) -> Iterator[bool]:
    """With the window and without."""
    window.configure(enabled=request.param)
    yield request.param
    window.configure(enabled=True)


@sarek.kernel
def axpy(y, x, a, n):
    i = sarek.global_idx.x
    if i < n:
        y[i] += a * x[i]


@sarek.kernel
def ignores(y, x):
    pass


@sarek.kernel
def reversed_by(out, x):
    tile = sarek.shared.array(0, sarek.float32)
    i = sarek.thread_idx.x
    tile[i] = x[i]
    sarek.barrier()
    out[i] = tile[sarek.block_dim.x - 1 - i]


KERNELS = (axpy, ignores, reversed_by)


def pair() -> tuple[Any, Any]:
    return sarek.zeros(N, np.float32), sarek.arange(N, dtype=np.float32)


def moved() -> tuple[int, int, int]:
    return counters.launches, counters.uploads, counters.downloads


ARANGE = np.arange(N, dtype=np.float32)

# --- it is taken ----------------------------------------------------------------------------------


def test_vectors_stay_on_the_device(name: str, enabled: bool, no_long_way: Any) -> None:  # noqa: F811
    """Launches on what is there move nothing, and set new arguments where they differ."""
    y, x = pair()
    other, third = sarek.full(N, 2, np.float32), sarek.zeros(N, np.float32)
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    launch(third, other, 1.0, N)
    no_long_way()
    launches, uploads, downloads = moved()
    launch(y, x, 2.0, N)
    launch(y, x, 2.0, N)
    launch(y, other, 1.0, 4)
    launch(third, x, 1.0, N)
    launch(y, x, 1.0, N)
    assert moved() == (launches + 5, uploads, downloads)
    expected = ARANGE * 8
    expected[:4] += 2
    assert np.array_equal(y, expected)
    assert np.array_equal(third, ARANGE + 2)
    with pytest.raises(LongWay):  # positive control: what is not alike takes it
        launch(y, x, 2.0, np.int32(N))


def test_what_is_not_there_is_brought(name: str, enabled: bool, no_long_way: Any) -> None:  # noqa: F811
    """New vectors, what the host wrote, what was freed: moved as the long way moves it."""
    launch = learnt(axpy[1, N], *pair(), 1.0, N)
    y, x = pair()
    no_long_way()
    _, uploads, downloads = moved()
    launch(y, x, 1.0, N)
    x[0] = 100
    launch(y, x, 1.0, N)
    y[1] = -1
    launch(y, x, 1.0, N)
    x.free()
    y.free()
    for _ in range(2):
        launch(y, x, 1.0, N)
    expected = ARANGE * 5
    expected[:2] = 400, 2
    assert np.array_equal(y, expected)
    assert counters.uploads - uploads == 6  # two at first, x[0], y[1], two after `free`
    assert counters.downloads - downloads <= 3


def test_host_and_device_take_turns(name: str, enabled: bool, no_long_way: Any) -> None:  # noqa: F811
    """What one writes the other sees, each time; what was written on the device is stale here."""
    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 0.0, N)
    no_long_way()
    for turn in range(5):
        launch(y, x, 1.0, N)
        assert not y.is_current()
        assert y[2] == 2 * (turn + 1) + turn
        y[2] += 1
    assert x.is_current()
    assert np.array_equal(y, ARANGE * 5 + 5 * (ARANGE == 2))


def test_devices_take_turns(name: str, enabled: bool) -> None:
    """A vector that another device, or this process, has written is brought here."""
    y, x = pair()
    for _ in range(4):
        for other in sarek.devices():
            axpy.launch(y, x, 1.0, N, grid=1, block=N, device=other)
            axpy.launch(y, x, 1.0, N, grid=1, block=N, device=name)
    assert np.array_equal(y, ARANGE * 8 * len(sarek.devices()))


def test_unused_vectors_take_no_long_way(name: str, enabled: bool, no_long_way: Any) -> None:  # noqa: F811
    """They are not brought, and their work is not waited for."""
    y, x = pair()
    launch = learnt(ignores[1, 1], y, x)
    no_long_way()
    before = moved()
    for _ in range(3):
        launch(y, x)
    y[0] = 1
    launch(y, x)
    launch(*pair())
    assert moved() == (before[0] + 5, *before[1:])
    assert y.is_current()
    assert x.is_current()
    assert window.statistics.flushes.keys() <= {"configure"}


@pytest.mark.parametrize("earlier", [0, 3])
def test_unused_vectors_are_freed_after_their_launch(name: str, earlier: int) -> None:
    """Their buffers are arguments; the first launch goes the long way."""
    launch = ignores[1, 1]
    for _ in range(earlier):
        launch(*pair())
    y, x = pair()
    launch(y, x)
    window.statistics.reset()
    y.free()
    assert window.statistics.flushes == {"free": 1}
    x.free()
    sarek.device(name).synchronize()


def test_freed_buffer_is_not_used_again(name: str, enabled: bool) -> None:
    """Memory that is given up and taken anew is another buffer, wherever it lies."""
    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    for turn in range(20):
        y = sarek.zeros(N, np.float32)
        launch(y, x, 1.0, N)
        launch(y, x, 1.0, N)
        assert np.array_equal(y, ARANGE * 2), turn


def test_part_of_a_vector_is_no_whole_one(name: str, enabled: bool) -> None:
    """A vector that begins within its memory gets what it means, and so does a first part."""
    y, x = pair()
    half = N // 2
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    before = counters.launches
    for _ in range(3):
        launch(y[half:], x[:half], 1.0, half)
        launch(y[:half], x[:half], 1.0, half)
    assert counters.launches - before == 6
    expected = ARANGE * 3
    expected[:half] *= 2
    expected[half:] += ARANGE[:half] * 3
    assert np.array_equal(y, expected)


def test_one_vector_twice(name: str, enabled: bool, no_long_way: Any) -> None:  # noqa: F811
    """It is read and written."""
    launch = learnt(axpy[1, N], *pair(), 1.0, N)
    no_long_way()
    y = sarek.arange(N, dtype=np.float32)
    for _ in range(3):
        launch(y, y, 1.0, N)
    assert not y.is_current()
    assert np.array_equal(y, ARANGE * 8)


def test_shared_memory_and_swapped_vectors(name: str, enabled: bool, no_long_way: Any) -> None:  # noqa: F811
    """Arguments are those of each launch, whichever the kernel object had before."""
    y, x = pair()
    launch = learnt(reversed_by._configured(1, N, None, 4 * N), y, x)
    no_long_way()
    a, b = sarek.zeros(N, np.float32), sarek.zeros(N, np.float32)
    launch(a, x)
    launch(b, a)
    launch(y, b)
    assert np.array_equal(a, ARANGE[::-1])
    assert np.array_equal(b, ARANGE)
    assert np.array_equal(y, ARANGE[::-1])


# --- the window -----------------------------------------------------------------------------------


def test_they_wait_in_the_window(name: str, no_long_way: Any) -> None:  # noqa: F811
    """Counted, up to its limit, and submitted by who needs them."""
    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    no_long_way()
    window.flush()
    window.statistics.reset()
    for _ in range(100):
        launch(y, x, 1.0, N)
    assert window.statistics.deferred == 100
    assert window.statistics.flushes == {"full": 1}
    assert x[1] == 1
    assert window.statistics.flushes == {"full": 1}
    assert y[1] == 103
    assert window.statistics.flushes == {"full": 1, "host read": 1}


def test_only_bytes_that_are_used_submit(name: str, no_long_way: Any) -> None:  # noqa: F811
    """Reading beside what is written, and writing beside what is read."""
    half = N // 2
    y, x = pair()
    low, read = y[:half], x[:half]
    launch = learnt(axpy[1, N], low, read, 1.0, half)
    no_long_way()
    window.flush()
    window.statistics.reset()
    launch(low, read, 1.0, half)
    assert y[half] == 0
    x[half] = 5
    assert not window.statistics.flushes
    x[half - 1] = 7
    assert window.statistics.flushes == {"host write": 1}
    assert np.array_equal(low, ARANGE[:half] * 4)


def test_a_failure_names_its_launch(name: str, monkeypatch: Any, no_long_way: Any) -> None:  # noqa: F811
    """The kernel and the line; the other launches of the window run."""
    calls: list[Any] = []

    def failing(start: Any, *arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise LaunchFailed("the device did not want to")
        return start(*arguments)

    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    window.flush()
    no_long_way()
    on_launch(monkeypatch, name, failing)
    launch(y, x, 1.0, N)
    launch(y, x, 1.0, N)  # this one fails
    launch(y, x, 1.0, N)
    with pytest.raises(LaunchFailed) as error:
        np.asarray(y)
    line = test_a_failure_names_its_launch.__code__.co_firstlineno + 16
    assert str(error.value) == (
        f"the device did not want to\n  note: of the launch of kernel 'axpy' at {__file__}:{line}"
    )
    assert np.array_equal(y, ARANGE * 5)
    sarek.device(name).synchronize()


def test_order_with_streams(name: str, monkeypatch: Any) -> None:
    """A launch in the window is put behind what a stream does with its vectors, once."""
    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    driver: Any = sarek.device(name).driver
    stream = sarek.device(name).stream()
    waiting = window_of(driver)
    assert waiting is not None
    followed: list[Any] = []
    follow = type(waiting).follow

    def noted(queue: Any, work: Any, why: str) -> None:
        followed.append(queue)
        follow(queue, work, why)

    monkeypatch.setattr(type(waiting), "follow", noted)
    monkeypatch.setattr(type(driver.queues), "status", lambda *_: 1)  # nothing is done yet
    for _ in range(5):
        launch(y, x, 1.0, N)
        axpy[1, N, stream](y, x, 1.0, N)
        followed.clear()
        launch(y, x, 1.0, N)
        launch(y, x, 1.0, N)
        assert followed == [waiting]
    monkeypatch.undo()
    assert np.array_equal(y, ARANGE * 23)


def test_what_a_stream_uses_is_not_ready(name: str) -> None:
    """For the window's launches; what the window uses is not, for those that wait for no one."""
    y, x = pair()
    learnt(axpy[1, N], y, x, 1.0, N)
    assert y._storage.ready
    assert x._storage.ready
    axpy[1, N, sarek.device(name).stream()](y, x, 1.0, N)
    assert not y._storage.ready
    assert not x._storage.ready
    axpy[1, N](y, x, 1.0, N)
    memory = sarek.device(name).driver.memory
    for vector in (y, x):
        assert all(key[:2] != (memory, None) for key in vector._storage.ready)


def test_what_is_in_use_is_not_ready(name: str, monkeypatch: Any) -> None:
    """As long as a stream may be at it, for nobody; what the window may be at, for the window."""
    y, x = pair()
    driver: Any = sarek.device(name).driver
    monkeypatch.setattr(type(driver.queues), "status", lambda *_: 1)  # nothing is done yet
    axpy[1, N](y, x, 1.0, N)
    for queue, expected in ((None, 0), (window_of(driver), 1)):
        x._storage.note(driver.memory, Access.READ, queue)
        assert len(x._storage.ready) == expected
    axpy[1, N, sarek.device(name).stream()](y, x, 1.0, N)
    for queue in (None, window_of(driver)):
        x._storage.note(driver.memory, Access.READ, queue)
        assert not x._storage.ready
    monkeypatch.undo()
    assert np.array_equal(y, ARANGE * 2)


def test_what_the_host_has_is_not_ready_to_be_written(name: str) -> None:
    """The launch has to make it stale; to be read it is ready."""
    y, x = pair()
    axpy[1, N](y, x, 1.0, N)
    assert y[1] == 1
    memory, queue = sarek.device(name).driver.memory, window_of(sarek.device(name).driver)
    assert memory is not None
    for access in Access:
        y._storage.note(memory, access, queue)
    assert list(y._storage.ready) == [ready_key(memory, queue, Access.READ)]


def test_arguments_live_until_they_are_used(name: str, no_long_way: Any) -> None:  # noqa: F811
    """Vectors that nobody has any more, of launches that wait; afterwards they are gone."""
    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    no_long_way()
    storages = []
    for k in range(30):
        x = sarek.full(N, k, np.float32)
        storages.append(weakref.ref(x._storage))
        launch(y, x, 1.0, N)
    del x
    gc.collect()
    assert all(storage() is not None for storage in storages)
    assert np.array_equal(y, ARANGE * 3 + sum(range(30)))
    gc.collect()
    assert all(storage() is None for storage in storages)


def test_turned_off_and_on(name: str, no_long_way: Any) -> None:  # noqa: F811
    """The same plan waits or does not, as the window is at the launch."""
    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    no_long_way()
    window.statistics.reset()
    try:
        for turn in range(1, 4):
            window.configure(enabled=False)
            launch(y, x, 1.0, N)
            window.configure(enabled=True)
            launch(y, x, 1.0, N)
            assert window.statistics.deferred == turn
    finally:
        window.configure(enabled=True)
    assert np.array_equal(y, ARANGE * 9)


def test_nothing_grows(name: str, no_long_way: Any) -> None:  # noqa: F811
    """Thousands of launches without a point."""
    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    no_long_way()
    for _ in range(3000):
        launch(y, x, 1.0, N)
    assert len(y._storage._uses._uses) == 1
    queue = y._storage._uses._uses[0][3].queue
    assert len(queue._works) <= 3 * 64
    assert np.array_equal(y, ARANGE * 3003)


# --- guards ---------------------------------------------------------------------------------------


def test_who_measures_has_the_long_way(name: str, enabled: bool, monkeypatch: Any) -> None:
    """`sarek.profile` sees each launch, SAREK_DEBUG tells of each."""
    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    taken = []
    through = dispatcher.describe
    monkeypatch.setattr(dispatcher, "describe", lambda *a: taken.append(a) or through(*a))
    with sarek.profile() as profile:
        for _ in range(3):
            launch(y, x, 1.0, N)
    assert len(taken) == 3
    assert "axpy" in str(profile)
    monkeypatch.setenv("SAREK_DEBUG", "execute,2")
    launch(y, x, 1.0, N)
    assert len(taken) == 4
    monkeypatch.delenv("SAREK_DEBUG")
    launch(y, x, 1.0, N)
    assert len(taken) == 4
    assert np.array_equal(y, ARANGE * 8)


BAD = {
    "too few": lambda y, x: (y, x, 1.0),
    "another type": lambda y, x: (y, sarek.zeros(N, np.int8), "1", N),
    "a string": lambda y, x: (y, x, "1", N),
    "None": lambda y, x: (y, None, 1.0, N),
    "an int beyond int64": lambda y, x: (y, x, 1.0, 2**63),
}


@pytest.mark.parametrize("bad", BAD)
def test_refusals(name: str, enabled: bool, bad: str) -> None:
    """What is refused starts, sends and submits nothing, and holds no memory."""
    y, x = pair()
    with pytest.raises(errors.SarekError) as expected:
        axpy[1, N](*BAD[bad](y, x))
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    window.statistics.reset()
    before = moved()
    with pytest.raises(type(expected.value)) as error:
        launch(*BAD[bad](y, x))
    assert str(error.value) == str(expected.value)
    assert moved() == before
    assert not window.statistics.flushes
    assert window.statistics.deferred == 0
    assert is_free(y)
    assert is_free(x)


def is_free(vector: Any) -> bool:
    """Whether no thread holds the memory."""
    lock = vector._storage.lock
    with ThreadPoolExecutor(1) as pool:
        return bool(pool.submit(lambda: lock.acquire(False) and not lock.release()).result())


def test_memory_that_cannot_be_had(name: str, enabled: bool, monkeypatch: Any) -> None:
    """The device's refusal is the launch's; no launch is counted, and no memory held."""
    launch = learnt(axpy[1, N], *pair(), 1.0, N)
    y, x = pair()

    def refuse(*_: Any) -> Any:
        raise OutOfMemory("there is no room", 256, 0)

    launches, deferred = counters.launches, window.statistics.deferred
    monkeypatch.setattr(type(sarek.device(name).driver.memory), "send", refuse)
    with pytest.raises(OutOfMemory, match="there is no room"):
        launch(y, x, 1.0, N)
    assert (counters.launches, window.statistics.deferred) == (launches, deferred)
    assert is_free(y)
    assert is_free(x)
    monkeypatch.undo()
    launch(y, x, 1.0, N)
    assert np.array_equal(y, ARANGE)


def test_full_window_that_fails(name: str, monkeypatch: Any) -> None:
    """The launch that finds the window full meets the failure of an earlier one, and is none."""

    def failing(*_: Any) -> Any:
        raise LaunchFailed("the device did not want to")

    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    window.configure(limit=2)
    try:
        for _ in range(2):
            launch(y, x, 1.0, N)
        launches = counters.launches
        on_launch(monkeypatch, name, failing)
        with pytest.raises(LaunchFailed, match="note: of the launch of kernel 'axpy'"):
            launch(y, x, 1.0, N)
        assert counters.launches == launches
        assert is_free(y)
        assert is_free(x)
    finally:
        monkeypatch.undo()
        window.configure(limit=64)


def test_vector_in_use_is_waited_for(name: str, enabled: bool) -> None:
    """A launch waits while another thread has the elements on the host."""
    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 1.0, N)

    def other() -> None:
        with sarek.use_device(name):
            launch(y, x, 1.0, N)

    with ThreadPoolExecutor(1) as pool:
        with y.host() as array:
            done = pool.submit(other)
            array[:] = 100
            assert not done.done()
        done.result()
    assert np.array_equal(y, ARANGE + 100)


def test_threads_launch_at_the_same_time(name: str, enabled: bool) -> None:
    """Each has its own vectors, and all one more that is read."""
    x = sarek.arange(N, dtype=np.float32)
    launch = learnt(axpy[1, N], sarek.zeros(N, np.float32), x, 1.0, N)
    start = Barrier(4)
    wrong: list[Any] = []

    def one(factor: int) -> None:
        with sarek.use_device(name):
            y = sarek.zeros(N, np.float32)
            start.wait()
            for turn in range(100):
                launch(y, x, float(factor), N)
                if turn % 30 == 0:
                    np.asarray(y)
            if not np.array_equal(y, ARANGE * factor * 100):
                wrong.append(factor)

    before = counters.launches
    threads = [threading.Thread(target=one, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert counters.launches - before == 400


# --- plans that cannot be -------------------------------------------------------------------------


def test_no_plan_is_looked_for_seldom(name: str, monkeypatch: Any) -> None:
    """Launches on arrays of NumPy have none; that costs less the longer it goes on."""
    y, x = np.zeros(N, np.float32), ARANGE.copy()
    looked: list[Any] = []
    through = dispatcher.guards_of
    monkeypatch.setattr(dispatcher, "guards_of", lambda *a: looked.append(a) or through(*a))
    for _ in range(200):
        axpy[1, N](y, x, 1.0, N)
    assert 3 <= len(looked) <= 9
    assert np.array_equal(y, ARANGE * 200)
    learnt_later = axpy[1, N]
    vectors = pair()
    for _ in range(64):
        learnt_later(*vectors, 1.0, N)
    assert learnt_later.attempts


def test_one_plan_is_not_learnt_twice(name: str) -> None:
    """What takes the long way although there is a plan for it does not push others out."""
    y, x = pair()
    launch = learnt(axpy[1, N], y, x, 1.0, N)
    for _ in range(20):
        launch(y[1:], x[1:], 1.0, N - 1)
    assert len(launch.attempts) == len(launch.plans) == 1
    with sarek.use_device("native"):
        for _ in range(20):
            launch(y, x, 1.0, N)
    assert len(launch.attempts) == len(launch.plans) == 2
