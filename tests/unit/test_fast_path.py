"""Launches that are like earlier ones: done without the long way, and refused as it refuses."""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import dispatcher, errors, settings
from sarek_numba.runtime.cache import clear_launch_cache, counters
from sarek_numba.runtime.machine import driver, tables
from sarek_numba.runtime.machine.tables import Layout
from sarek_numba.runtime.plans import Guard, Place
from tests.unit import test_launch_refusals as refusals

FACTOR = 3
TABLE = np.array([1, 2, 3], np.int32)
module = ModuleType("made")
module.SCALE = 5  # type: ignore[attr-defined] # what a kernel captures of a module


@pytest.fixture(autouse=True)
def _on_native() -> Iterator[None]:
    clear_launch_cache()
    counters.reset()
    with sarek.use_device("native"):
        yield


class LongWay(Exception):
    """Raised in place of the long way of a launch."""


@pytest.fixture
def no_long_way(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function after whose call no launch can go the long way."""

    def refuse(*_: Any) -> Any:
        raise LongWay

    def close() -> None:
        monkeypatch.setattr(dispatcher, "describe", refuse)

    return close


def learnt(configuration: Any, *arguments: Any) -> Any:
    """A configuration that has done launches with such arguments until it knew how."""
    for _ in range(3):
        configuration(*arguments)
    assert configuration.attempts
    return configuration


@sarek.kernel
def axpy(y, x, a, n):
    i = sarek.global_idx.x
    if i < n:
        y[i] += a * x[i]


@sarek.kernel
def captured(out):
    out[0] = FACTOR


@sarek.kernel
def of_module(out):
    out[0] = module.SCALE


@sarek.kernel
def of_table(out):
    out[0] = sarek.const.array_like(TABLE)[1]


@sarek.kernel
def shapes(out, x):
    out[0] = len(x)
    out[1] = x.shape[0]
    out[2] = x.shape[1]
    out[3] = x[1, 0]


@sarek.kernel(restrict=True)
def apart(out, x):
    out[0] = x[0] + 1


@sarek.kernel
def number(out, x):
    out[0] = x


@sarek.kernel
def count_up(out):
    sarek.atomic.add(out, 0, 1)


@sarek.kernel
def work(out, n):
    i = sarek.global_idx.x
    total = out[i]
    for _ in range(n):
        total = total * 1664525 + 1013904223
    out[i] = total


def vectors_and_arrays(n: int = 100) -> tuple[Any, Any]:
    y, x = np.zeros(n, np.float32), np.arange(n, dtype=np.float32)
    return y, x


# --- it is taken ----------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [np.copy, sarek.vector])
def test_later_launches_do_not_go_the_long_way(made: Any, no_long_way: Any) -> None:
    """Nothing describes their arguments, and they compute and count as any launch."""
    y, x = map(made, vectors_and_arrays())
    launch = learnt(axpy[4, 32], y, x, 2.0, 100)
    no_long_way()
    before = counters.launches
    for other in (100, 50):
        launch(y, x, 3.0, other)
    new_y, new_x = map(made, vectors_and_arrays(7))
    launch(new_y, new_x, 0.5, 7)
    expected = np.arange(100) * 9.0
    expected[:50] += np.arange(50) * 3.0
    assert np.array_equal(y, expected)
    assert np.array_equal(new_y, np.arange(7) * 0.5)
    assert counters.launches - before == 3
    with pytest.raises(LongWay):  # positive control: what is not alike takes it
        launch(new_y, new_x, 0.5, np.int32(7))


def test_every_way_to_write_a_launch_is_fast(no_long_way: Any) -> None:
    """Brackets, `launch`, `forall`, names and defaults."""

    @sarek.kernel
    def scaled(out, x, factor=2.0):
        i = sarek.global_idx.x
        if i < len(out):
            out[i] = x[i] * factor

    out, x = vectors_and_arrays(10)
    ways = [
        lambda: scaled[2, 8](out, x),
        lambda: scaled[(2, 1), (8, 1, 1)](x=x, out=out),
        lambda: scaled.forall(10, 8)(out, x, factor=2.0),
        lambda: scaled.launch(out, x, 2.0, grid=2, block=8, device="native"),
        lambda: scaled.launch(out, x, grid=2, block=8, device=sarek.device("native")),
    ]
    for way in ways * 3:
        way()
    no_long_way()
    for way in ways:
        out[:] = 0
        way()
        assert np.array_equal(out, x * 2)


def test_hundred_launches_check_and_compile_once() -> None:
    """Also when the kernel is made anew from the same definition."""

    def make() -> Any:
        @sarek.kernel
        def fresh(out):
            out[sarek.global_idx.x] += 1

        return fresh

    out = np.zeros(8, np.int32)
    for kernel in (make(), make()):
        for _ in range(50):
            kernel[1, 8](out)
        kernel.source("native", out)
    assert (counters.capability_checks, counters.sources, counters.compiles) == (1, 1, 1)
    assert counters.launches == 100
    assert (out == 100).all()
    clear_launch_cache()
    make()[1, 8](out)
    kernel[1, 8](out)
    assert (counters.capability_checks, counters.compiles, counters.launches) == (2, 2, 102)


def test_cleared_cache_reaches_a_launch_that_was_learnt() -> None:
    """After `clear_launch_cache` it checks and compiles again."""
    out = np.zeros(1, np.int32)
    launch = learnt(captured[1, 1], out)
    clear_launch_cache()
    launch(out)
    assert (counters.capability_checks, counters.compiles) == (2, 2)


# --- what must still hold -------------------------------------------------------------------------


def test_rebound_global_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel computes with what the global is at the launch."""
    out = np.zeros(1, np.int32)
    launch = learnt(captured[1, 1], out)
    monkeypatch.setitem(globals(), "FACTOR", 40_000)
    launch(out)
    assert out[0] == 40_000
    monkeypatch.setitem(globals(), "FACTOR", 3)
    launch(out)
    assert out[0] == 3
    monkeypatch.delitem(globals(), "FACTOR")
    with pytest.raises(errors.UnknownName):
        launch(out)


def test_hidden_builtin_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A global that hides a builtin is another function."""
    out, x = np.zeros(4, np.int32), np.zeros((3, 2), np.int32)
    launch = learnt(shapes[1, 1], out, x)
    monkeypatch.setitem(globals(), "len", abs)
    with pytest.raises(errors.CompileError):
        launch(out, x)


def test_rebound_cell_and_attribute_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of a closure, and what a module has."""
    value = 1

    @sarek.kernel
    def fill(out):
        out[0] = value

    out = np.zeros(1, np.int32)
    launch = learnt(fill[1, 1], out)
    value = 2
    launch(out)
    assert out[0] == 2
    launch = learnt(of_module[1, 1], out)
    monkeypatch.setattr(module, "SCALE", 6)
    launch(out)
    assert out[0] == 6


def test_captured_array_that_changes_counts() -> None:
    """The kernel has a copy, which is compared at each launch."""
    out = np.zeros(1, np.int32)
    launch = learnt(of_table[1, 1], out)
    TABLE[1] = 70
    try:
        launch(out)
        assert out[0] == 70
    finally:
        TABLE[1] = 2


def test_attribute_of_an_object_counts() -> None:
    """Of classes, which are no modules, too."""

    class Config:
        N = 4

    @sarek.kernel
    def fill(out):
        out[0] = Config.N

    out = np.zeros(1, np.int32)
    launch = learnt(fill[1, 1], out)
    Config.N = 5
    launch(out)
    assert out[0] == 5


def test_device_of_the_launch_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """`use_device`, SAREK_DEVICE and SAREK_DISABLE decide at each launch."""
    used: list[str] = []
    through = dispatcher.check_limits

    def noted(name: Any, grid: Any, block: Any, record: Any) -> None:
        used.append(record.name)
        through(name, grid, block, record)

    out = np.zeros(1, np.int32)
    launch = learnt(captured[1, 1], out)
    monkeypatch.setattr(dispatcher, "check_limits", noted)
    with sarek.use_device("interpreter"):
        launch(out)
    assert used == ["interpreter"]
    launch(out)
    assert used == ["interpreter"]
    token = sarek.runtime.registry.current_device.set(None)
    try:
        launch = learnt(captured[1, 1], out)
        monkeypatch.setenv("SAREK_DEVICE", "interpreter")
        launch(out)
        monkeypatch.delenv("SAREK_DEVICE")
        monkeypatch.setenv("SAREK_DISABLE", "native")
        with pytest.raises(errors.UnknownDevice):
            launch(out)
    finally:
        sarek.runtime.registry.current_device.reset(token)
    assert used[-1] == "interpreter"


def test_width_of_warps_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that knows the width is another one for another width."""

    @sarek.kernel
    def width(out):
        out[0] = sarek.warp.size

    out = np.zeros(1, np.int32)
    with settings.simulated_warp_width(8):
        launch = learnt(width[1, 64], out)
    with settings.simulated_warp_width(16):
        launch(out)
    assert out[0] == 16
    monkeypatch.setenv("SAREK_WARP_WIDTH", "4")
    launch(out)
    assert out[0] == 4


def test_guards_fail_alone() -> None:
    """Each kind of guard by itself: it holds for its very object, and for no other."""
    from contextvars import ContextVar

    held: dict[str, Any] = {"a": 1000}
    variable: ContextVar[Any] = ContextVar("v", default=None)
    cell = (lambda: held).__closure__[0]  # type: ignore[index] # it has one
    assert Guard(Place.ITEM, held, "a", held["a"]).holds()
    assert not Guard(Place.ITEM, held, "a", "other").holds()
    assert Guard(Place.CONTEXT, variable, None, None).holds()
    assert not Guard(Place.CONTEXT, variable, None, 1).holds()
    assert Guard(Place.CELL, cell, None, held).holds()
    assert not Guard(Place.CELL, cell, None, {}).holds()
    assert Guard(Place.CALL, lambda: True, None, None).holds()
    assert not Guard(Place.CALL, lambda: 1, None, None).holds()


# --- refusals -------------------------------------------------------------------------------------


def outcome(launch: Any) -> tuple[Any, str]:
    """The class and text of the error of a launch, or that there was none."""
    try:
        launch()
    except errors.SarekError as error:
        return type(error), str(error)
    return None, ""


def forget(*kernels: Any) -> None:
    for kernel in kernels:
        kernel._configurations.clear()


@pytest.mark.parametrize("name", refusals.CASES)
def test_refusals_are_those_of_the_long_way(name: str) -> None:
    """After good launches a bad one is refused with the same text, each time, and does nothing."""
    _, launch, _ = refusals.CASES[name]
    kernels = (refusals.scale, refusals.stated, refusals.tiled)
    forget(*kernels)
    expected = outcome(launch)
    out, x = np.zeros(8, np.float32), np.ones(8, np.float32)
    for _ in range(3):
        refusals.scale[1, 8](out, x, 2.0)
        refusals.scale[1, 8](out, x)
        refusals.stated[1, 8](out, refusals.MATRIX, 8)
    assert refusals.scale[1, 8].attempts
    before = counters.launches
    assert outcome(launch) == expected
    assert outcome(launch) == expected
    assert counters.launches == before or expected[0] is None


BAD: dict[str, Any] = {
    "too few": lambda y, x: (y, x, 2.0),
    "too many": lambda y, x: (y, x, 2.0, 4, 5),
    "swapped": lambda y, x: (2.0, x, y, 4),
    "big-endian": lambda y, x: (y, x.astype(">f4"), 2.0, 4),
    "objects": lambda y, x: (y, x.astype(object), 2.0, 4),
    "read-only output": lambda y, x: (refusals.READ_ONLY, x, 2.0, 4),
    "two axes": lambda y, x: (y.reshape(4, 2), x, 2.0, 4),
    "a list": lambda y, x: (y, [1.0], 2.0, 4),
    "None": lambda y, x: (y, None, 2.0, 4),
    "an int beyond int64": lambda y, x: (y, x, 2.0, 2**63),
    "a string": lambda y, x: (y, x, "2", 4),
    "masked": lambda y, x: (y, np.ma.masked_array(x), 2.0, 4),
    "repeated elements": lambda y, x: (np.broadcast_to(y[:1], 8), x, 2.0, 4),
}


@pytest.mark.parametrize("made", [np.copy, sarek.vector])
@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_after_good_ones(name: str, made: Any) -> None:
    """The same refusal as of a kernel that was never launched, and nothing is written."""
    y, x = vectors_and_arrays(8)
    bad = BAD[name](y, x)
    forget(axpy)
    expected = outcome(lambda: axpy[1, 8](*bad))
    assert expected[0] is not None
    good, other = made(np.zeros(8, np.float32)), made(x)
    launch = learnt(axpy[1, 8], good, other, 2.0, 4)
    before = (counters.launches, y.copy())
    for _ in range(2):
        assert outcome(lambda: launch(*bad)) == expected
    assert counters.launches == before[0]
    assert np.array_equal(y, before[1])


def test_overlaps_mean_what_they_mean_the_long_way() -> None:
    """One array twice, and arrays that share some bytes."""
    y, x = vectors_and_arrays(16)
    launch = learnt(axpy[1, 16], y, x, 1.0, 8)
    both = np.arange(16, dtype=np.float32)
    launch(both, both, 1.0, 16)
    assert np.array_equal(both, np.arange(16) * 2)
    whole = np.arange(16, dtype=np.float32)
    launch(whole[8:], whole[:8], 1.0, 8)
    assert np.array_equal(whole[8:], np.arange(8) * 2 + 8)
    launch(whole[:8], whole[4:12], 0.0, 8)
    one = learnt(apart[1, 1], y, x)
    with pytest.raises(errors.InvalidArgument, match="overlaps"):
        one(y[1:], y[:4])
    with pytest.raises(errors.InvalidArgument, match="overlaps"):
        one(y, y)


# --- what reaches the kernel ----------------------------------------------------------------------

NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64"
TYPES = [np.dtype(name) for name in NAMES.split()]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_scalars_of_numpy_arrive_bit_for_bit(dtype: Any, no_long_way: Any) -> None:
    """At the ends of their range."""
    out = np.zeros(1, dtype)
    launch = learnt(number[1, 1], out, dtype.type(1))
    no_long_way()
    if dtype.kind == "f":
        values = [dtype.type(v) for v in (-0.0, np.inf, np.nan, 1e-40, np.finfo(dtype).max)]
    elif dtype.kind == "b":
        values = [np.bool_(False), np.bool_(True)]
    else:
        values = [dtype.type(np.iinfo(dtype).min), dtype.type(np.iinfo(dtype).max)]
    for value in values:
        launch(out, value)
        assert out.tobytes() == value.tobytes()


@sarek.kernel
def stated_numbers(out, a: sarek.float32, b: sarek.float64, c: sarek.int16, d: int):
    out[0] = a
    out[1] = b
    out[2] = c
    out[3] = d


@pytest.mark.parametrize("seed", range(20))
def test_python_numbers_round_as_the_long_way_rounds(seed: int, no_long_way: Any) -> None:
    """Ints to floats, floats to float32, at random and at the edges."""
    rng = np.random.default_rng(seed)
    sets = [
        (int(rng.integers(-(2**63), 2**63 - 1)), int(rng.integers(-(2**63), 2**63 - 1))),
        (float(rng.standard_normal() * 10.0 ** rng.integers(-46, 38)), float(rng.random())),
        (float("nan"), float("inf")),
        (3.4028235677973362e38, -0.0),
        (2**24 + 1, 2**53 + 1),
    ]
    for a, b in sets:
        forget(stated_numbers)
        first, second = np.zeros(4), np.zeros(4)
        c, d = int(rng.integers(-(2**15), 2**15)), int(rng.integers(-(2**31), 2**31))
        stated_numbers[1, 1](first, a, b, c, d)
        alike = type(a)(1), type(b)(1), 1, 1
        launch = learnt(stated_numbers[1, 1], second, *alike)
        launch(second, a, b, c, d)
        assert first.tobytes() == second.tobytes()


def test_numbers_beyond_the_stated_type_are_refused() -> None:
    """As the long way refuses them."""
    out = np.zeros(4)
    for bad in [(1e39, 1.0, 1, 1), (1.0, 1.0, 2**15, 1), (1.0, 1.0, -(2**15) - 1, 1)]:
        forget(stated_numbers)
        expected = outcome(lambda bad=bad: stated_numbers[1, 1](out, *bad))
        assert expected[0] is errors.ArgumentTypeError
        launch = learnt(stated_numbers[1, 1], out, 1.0, 1.0, 1, 1)
        assert outcome(lambda bad=bad, launch=launch: launch(out, *bad)) == expected


@pytest.mark.parametrize("order", ["C", "F"])
def test_shapes_arrive(order: Any, no_long_way: Any) -> None:
    """Lengths and extents of other arrays of the same layout, empty ones included."""
    out = np.zeros(4, np.int64)
    made = np.array([[1, 2], [3, 4], [5, 6]], np.int32, order=order)
    launch = learnt(shapes[1, 1], out, made)
    no_long_way()
    other = np.asarray(np.arange(20, dtype=np.int32).reshape(4, 5), order=order)
    launch(out, other)
    assert out.tolist() == [4, 4, 5, 5]


def test_empty_arrays_are_arrays(no_long_way: Any) -> None:
    """They share nothing with any other."""
    y = np.zeros(0, np.float32)
    launch = learnt(axpy[1, 8], y, y, 1.0, 0)
    no_long_way()
    launch(y, np.zeros(0, np.float32), 1.0, 0)


@pytest.mark.parametrize("made", [np.copy, sarek.vector])
def test_long_launches_are_shared_out(made: Any, no_long_way: Any) -> None:
    """What the first blocks show to be long is done by several threads, each element once."""
    n, passes = 64 * 400, 300
    out = made(np.zeros(n, np.uint32))
    launch = learnt(work[400, 64], out, passes)
    no_long_way()
    launch(out, passes)
    value = 0
    for _ in range(4 * passes):
        value = (value * 1664525 + 1013904223) % 2**32
    assert (np.asarray(out) == value).all()
    out[0] = 1  # nobody holds the memory any more


def test_much_shared_memory_is_not_taken_from_the_stack(no_long_way: Any) -> None:
    """A launch that needs more than the stack should give."""

    @sarek.kernel
    def reversed_tile(out, x):
        tile = sarek.shared.array(6000, sarek.float64)
        i = sarek.thread_idx.x
        tile[i + 5000] = x[i]
        sarek.barrier()
        out[i] = tile[5000 + 63 - i]

    x = np.arange(64.0)
    out = np.zeros(64)
    launch = learnt(reversed_tile[1, 64], out, x)
    no_long_way()
    out[:] = 0
    launch(out, x)
    assert np.array_equal(out, x[::-1])


# --- vectors --------------------------------------------------------------------------------------


def test_vector_whose_elements_are_elsewhere_takes_the_long_way() -> None:
    """It is fetched; what a device holds of a vector that native writes is stale."""
    others = [d for d in sarek.devices() if d.driver.memory is not None]
    if not others:
        pytest.skip("no device has memory of its own")
    y, x = map(sarek.vector, vectors_and_arrays(8))
    launch = learnt(axpy[1, 8], y, x, 1.0, 8)
    with sarek.use_device(others[0]):
        axpy[1, 8](y, x, 1.0, 8)
    assert not y.is_current()
    launch(y, x, 1.0, 8)
    assert np.array_equal(y, np.arange(8) * 5)
    launch(y, x, 1.0, 8)
    assert not y.is_current(others[0])
    y.free()
    x.free()
    launch(y, x, 1.0, 8)
    assert np.array_equal(y, np.arange(8) * 7)


def test_vector_in_use_is_waited_for() -> None:
    """A launch waits while another thread has the elements on the host."""
    y, x = map(sarek.vector, vectors_and_arrays(8))
    launch = learnt(axpy[1, 8], y, x, 1.0, 8)
    with ThreadPoolExecutor(1) as pool:
        with y.host() as array:
            done = pool.submit(launch, y, x, 1.0, 8)
            array[:] = 100
            assert not done.done()
        done.result()
    assert np.array_equal(y, np.arange(8) + 100)


# --- threads, memory, machines --------------------------------------------------------------------


def test_threads_launch_at_the_same_time() -> None:
    """Each launch has parameters of its own; launches on one vector follow each other."""
    shared = sarek.vector(np.zeros(1, np.int32))
    launch = learnt(axpy[1, 8], *vectors_and_arrays(8), 2.0, 8)
    counting = learnt(count_up[1, 8], shared)
    start = Barrier(8)

    def one(factor: int) -> bool:
        y, x = vectors_and_arrays(8)
        start.wait()
        for _ in range(500):
            launch(y, x, float(factor), 8)
            counting(shared)
        return bool(np.array_equal(y, np.arange(8) * factor * 500))

    before = counters.launches
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(8)))
    assert counters.launches - before == 8000
    assert shared[0] == 8 * (8 * 500 + 3)


def test_many_launches_take_no_memory() -> None:
    """20,000 of them: neither Python's blocks nor the process grow. Refusals count too."""
    y, x = vectors_and_arrays(8)
    vector = sarek.vector(y)
    launch = learnt(axpy[1, 8], y, x, 2.0, 8)
    learnt(launch, vector, x, 2.0, 8)

    def some(count: int) -> None:
        for _ in range(count):
            launch(y, x, 2.0, 8)
            launch(vector, x, 2.0, 8)
        for _ in range(20):
            with pytest.raises(errors.ArgumentTypeError):
                launch(y, [], 2.0, 8)
            launch(x[::-1], y, 2.0, 8)

    some(100)
    gc.collect()
    import sys

    blocks, size = sys.getallocatedblocks(), _resident()
    some(10_000)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500
    assert _resident() - size < 4 << 20


def _resident() -> int:
    """Bytes of memory of this process."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_other_object_layouts_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where objects lie otherwise in memory there is no machine code that looks into them."""
    word = driver.word
    assert Layout().is_true(word)
    for wrong in (
        Layout(ndim=28), Layout(extents=40), Layout(strides=32), Layout(dtype=48), Layout(flags=72),
        Layout(scalar=24), Layout(data=8), Layout(parts=8),
    ):  # fmt: skip
        assert not wrong.is_true(word)
    monkeypatch.setattr(tables, "Layout", lambda: Layout(ndim=28))
    assert tables.Launchers("").function(None) is None  # type: ignore[arg-type] # not looked at


def test_launches_without_attempts_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device without plans goes the long way each time."""
    monkeypatch.setattr(sarek.device("native").driver, "plans", None)
    forget(axpy)
    y, x = vectors_and_arrays(8)
    launch = axpy[1, 8]
    for _ in range(5):
        launch(y, x, 1.0, 8)
    assert not launch.attempts
    assert np.array_equal(y, np.arange(8) * 5)
