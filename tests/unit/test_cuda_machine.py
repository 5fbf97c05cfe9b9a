"""Launches on CUDA that machine code gives to the driver, against the fake driver."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_cuda.runtime import CudaDriver
from sarek_numba import errors, execute
from sarek_numba.runtime.cache import compiled_launches
from sarek_numba.runtime.registry import Device
from tests.fake_cuda import CONTEXT, FakeApi

N = 64
NUMBERS = np.arange(1, N + 1, dtype=np.float32)


@sarek.kernel
def add(out, x, a, b):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += a * x[i] + b


@sarek.kernel
def scale(out, by):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] *= by


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """Without the window."""
    execute.window.configure(enabled=False)
    yield FakeApi()
    execute.window.configure(enabled=True)


@pytest.fixture
def device(api: FakeApi) -> Device:
    """A device of its own, which no enumeration shows."""
    return Device(CudaDriver(api, 0, "cuda:fake"))


def given(device: Device, kernel: Any = add) -> Any:
    """A configuration that is learnt by its first launches."""
    return kernel._configured(1, N, None, 0, device)


def learnt(device: Device, *arguments: Any, kernel: Any = add) -> Any:
    call = given(device, kernel)
    for _ in range(6):
        call(*arguments)
    return call


def by_machine(api: FakeApi, run: Callable[[], Any]) -> int:
    """How many launches machine code gives to the driver; each launch is counted once."""
    before, counted = api.calls.copy(), int(compiled_launches[0])
    run()
    after = api.calls - before
    assert after["launch"] >= after["machine code"]
    assert int(compiled_launches[0]) - counted >= after["machine code"]
    return after["machine code"]


def test_numbers_are_taken_as_they_are(device: Device, api: FakeApi) -> None:
    """Other numbers need no Python code."""
    out, x = sarek.zeros(N, np.float32), sarek.vector(NUMBERS)
    call = learnt(device, out, x, np.float32(1), 2)
    model = 6 * (NUMBERS + 2)

    def run() -> None:
        nonlocal model
        for k in range(20):
            call(out, x, np.float32(k), -k)
            model = model + (k * NUMBERS - k)

    assert by_machine(api, run) == 20
    assert (out == model).all()


def test_parts_and_lengths(device: Device, api: FakeApi) -> None:
    """Of another span, another vector or other memory Python code takes note, once."""
    whole, x = sarek.zeros(4 * N, np.float32), sarek.vector(np.ones(4 * N, np.float32))
    launch = add._configured(4, N, None, 0, device)
    launch(whole, x, np.float32(0), 0)
    call = learnt(device, whole[:N], x[:N], np.float32(1), 0)
    for part in (slice(0, N), slice(N, 2 * N), slice(N, 2 * N), slice(N, N + 3)):
        call(whole[part], x[part], np.float32(1), 0)
    expected = np.repeat([7.0, 2, 0, 0], N)
    expected[N : N + 3] += 1

    call(whole[:N], x[:N], np.float32(1), 0)

    def again() -> None:
        call(whole[:N], x[:N], np.float32(1), 0)
        call(whole[N : N + 3], x[N : N + 3], np.float32(1), 0)

    assert by_machine(api, again) == 1
    expected[:N] += 2
    expected[N : N + 3] += 1
    assert (whole == expected).all()


def test_the_host_waits_for_launches_of_machine_code(device: Device, api: FakeApi) -> None:
    """Before it reads what they wrote, and writes what they read, however often it looked."""
    out, x = sarek.zeros(N, np.float32), sarek.vector(NUMBERS)
    call = learnt(device, out, x, np.float32(1), 0)
    model = 6 * NUMBERS
    values = NUMBERS.copy()
    for k in range(1, 8):
        for _ in range(k):
            call(out, x, np.float32(1), 0)
            model = model + values
        assert (x == values).all()  # a read drops what is known of launches that are done
        for _ in range(k):
            call(out, x, np.float32(1), 0)
            model = model + values
        x[k] = values[k] = -k
        if k % 2:
            assert (out == model).all()
    assert (out == model).all()


def test_reads_between_launches_that_only_read(device: Device, api: FakeApi) -> None:
    """What is noted of `x` goes when the host reads it; the next launch is noted again."""
    out, x = sarek.zeros(N, np.float32), sarek.vector(NUMBERS)
    call = learnt(device, out, x, np.float32(1), 0)
    api.advance()
    assert (x == NUMBERS).all()
    assert by_machine(api, lambda: call(out, x, np.float32(1), 0)) == 0
    assert by_machine(api, lambda: call(out, x, np.float32(1), 0)) == 1
    assert x._storage._uses
    x[:] = 0
    assert (out == 8 * NUMBERS).all()


def test_vectors_live_until_launches_are_done(device: Device, api: FakeApi) -> None:
    """Their memory is no one else's before."""
    out = sarek.zeros(N, np.float32)
    call = given(device)
    total = 0
    for k in range(60):
        x = sarek.full(N, k, np.float32)
        for _ in range(4):
            call(out, x, np.float32(1), 0)
            total += k
        del x
        if k % 7 == 0:
            gc.collect()
    assert (out == total).all()
    api.advance()
    gc.collect()
    device.synchronize()
    assert device.memory_statistics().in_use == 512


def test_nothing_grows(device: Device, api: FakeApi) -> None:
    """Batches that are done are forgotten though nobody waits; the host is not far ahead."""
    out, x = sarek.zeros(N, np.float32), sarek.vector(NUMBERS)
    call = learnt(device, out, x, np.float32(1), 0)

    def run() -> None:
        for _ in range(3000):
            call(out, x, np.float32(1), 0)

    assert by_machine(api, run) > 2900
    [use] = out._storage._uses._uses
    queue = use[3].queue
    assert len(queue._works) <= 20
    assert sum(len(work.kept) for work in queue._works) <= 100
    waiting = sum(len(stream.waiting) for stream in api.streams)
    assert waiting < 1300
    assert (out == 3006 * NUMBERS).all()


def test_two_kernels_in_turn(device: Device, api: FakeApi) -> None:
    """Each has words of its own; both are in one batch."""
    out, x = sarek.zeros(N, np.float32), sarek.vector(NUMBERS)
    first = learnt(device, out, x, np.float32(1), 0)
    second = learnt(device, out, np.float32(1), kernel=scale)
    model = 6 * NUMBERS

    def run() -> None:
        nonlocal model
        for k in range(30):
            first(out, x, np.float32(1), 0)
            second(out, np.float32(2 if k % 10 == 0 else 1))
            model = (model + NUMBERS) * (2 if k % 10 == 0 else 1)

    assert by_machine(api, run) > 50
    assert (out == model).all()


def test_with_streams_and_windows_in_between(device: Device, api: FakeApi) -> None:
    """Each is behind what it needs, whatever way the launch before it took."""
    out, x = sarek.zeros(N, np.float32), sarek.vector(NUMBERS)
    call = given(device)
    model = np.zeros(N, np.float32)
    rng = np.random.default_rng(7)
    stream = device.stream()
    for _ in range(300):
        match int(rng.integers(0, 12)):
            case 0:
                add.launch(out, x, np.float32(1), 0, grid=1, block=N, device=device, stream=stream)
            case 1:
                execute.window.configure(enabled=True)
                call(out, x, np.float32(1), 0)
                call(out, x, np.float32(1), 0)
                model = model + NUMBERS
                execute.window.configure(enabled=False)
            case 2:
                scale.launch(out, np.float32(1), grid=1, block=N, device=device)
                model = model - NUMBERS
            case 3:
                assert (out == model).all()
                call(out, x, np.float32(1), 0)
            case _:
                call(out, x, np.float32(1), 0)
        model = model + NUMBERS
    assert (out == model).all()


def test_another_context_is_left_to_python(device: Device, api: FakeApi) -> None:
    """The thread's context is what it was."""
    out, x = sarek.zeros(N, np.float32), sarek.vector(NUMBERS)
    call = learnt(device, out, x, np.float32(1), 0)
    api.push_context(CONTEXT + 9)
    assert by_machine(api, lambda: call(out, x, np.float32(1), 0)) == 0
    assert api.current_context() == CONTEXT + 9
    api.pop_context()
    assert by_machine(api, lambda: call(out, x, np.float32(1), 0)) == 1
    assert (out == 8 * NUMBERS).all()


def test_a_launch_that_the_driver_refuses(device: Device, api: FakeApi) -> None:
    """It is raised, once, and the next one works; a device that is lost stays so."""
    out, x = sarek.zeros(N, np.float32), sarek.vector(NUMBERS)
    call = learnt(device, out, x, np.float32(1), 0)
    api.fail("launch", 1, "CUDA_ERROR_INVALID_VALUE")
    before = api.calls["launch"]
    with pytest.raises(errors.LaunchFailed, match="a launch on cuda:fake failed: CUDA_ERROR_INV"):
        call(out, x, np.float32(1), 0)
    assert api.calls["launch"] == before + 1
    call(out, x, np.float32(1), 0)
    assert (out == 7 * NUMBERS).all()
    call(out, x, np.float32(1), 0)
    api.fail("launch", 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")
    with pytest.raises(errors.InvalidDimensions, match="64 threads"):
        call(out, x, np.float32(1), 0)
    api.fail("launch", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    for _ in range(3):
        with pytest.raises(errors.DeviceLost, match="nothing of CUDA works"):
            call(out, x, np.float32(1), 0)


def test_a_lost_device_names_kernels(device: Device, api: FakeApi) -> None:
    """Those of the batch, which machine code adds no others to."""
    out, x = sarek.zeros(N, np.float32), sarek.vector(NUMBERS)
    first = learnt(device, out, x, np.float32(1), 0)
    second = learnt(device, out, np.float32(1), kernel=scale)
    api.lose()
    for _ in range(3):
        first(out, x, np.float32(1), 0)
        second(out, np.float32(1))
    with pytest.raises(errors.DeviceLost, match=r"launch of kernel '(add|scale)' or '(add|scale)'"):
        np.asarray(out)


def test_an_opening_that_ends_during_a_launch(device: Device, api: FakeApi) -> None:
    """The launch was given: Python code takes note of it, and gives it to nobody again."""
    out, x = sarek.zeros(N, np.float32), sarek.vector(NUMBERS)
    call = learnt(device, out, x, np.float32(1), 0)
    launch, plans = api._launch, device.driver.plans

    def ends(*words: Any) -> Any:
        plans._batches.end()  # type: ignore[union-attr] # of CUDA
        return launch(*words)

    api._launch = ends  # type: ignore[method-assign] # for this test
    before = api.calls["launch"]
    for _ in range(5):
        call(out, x, np.float32(1), 0)
    assert api.calls["launch"] == before + 5
    del api._launch
    [use] = out._storage._uses._uses
    assert use[3].launches >= 5
    assert (out == 11 * NUMBERS).all()


def test_without_calls_for_machine_code(device: Device, api: FakeApi) -> None:
    """Where the bindings do not tell addresses Python code gives all launches."""
    api.calls_for_machine_code = lambda: None  # type: ignore[method-assign] # for this test
    out, x = sarek.zeros(N, np.float32), sarek.vector(NUMBERS)
    call = learnt(device, out, x, np.float32(1), 0)
    assert by_machine(api, lambda: call(out, x, np.float32(1), 0)) == 0
    assert (out == 7 * NUMBERS).all()


def test_threads(device: Device, api: FakeApi) -> None:
    """Threads that share a kernel, each with vectors of its own, see their own results."""
    failed: list[str] = []
    call = given(device)

    def work(number: int) -> None:
        out, x = sarek.zeros(N, np.float32), sarek.full(N, number, np.float32)
        for turn in range(1, 200):
            call(out, x, np.float32(1), 0)
            if turn % 17 == 0 and not (out == turn * number).all():
                failed.append(f"{number} {turn}: {out[0]}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
