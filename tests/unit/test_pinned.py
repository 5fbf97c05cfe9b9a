"""Page-locked memory: a device that counts what it gives, and OpenCL's devices."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import InvalidArgument, OutOfMemory, UnknownDevice
from sarek_numba.runtime.pinned import PAGE, PinnedMemory
from tests.unit.fake_backend import fake_device

__all__ = ["fake_device"]

DEVICES = [device.name for device in sarek.devices()]
OPENCL = [name for name in DEVICES if name.startswith("opencl")]
on_devices = pytest.mark.parametrize("device", DEVICES)
on_opencl = pytest.mark.parametrize("device", OPENCL)


class Locked:
    """Page-locked memory of so many bytes. Addresses are of arrays, and begin inside of a page."""

    def __init__(self, size: int = 1 << 20) -> None:
        self.free = size
        self.asked: list[int] = []
        self.given: dict[int, np.ndarray] = {}

    def allocate(self, size: int) -> tuple[int, int]:
        self.asked.append(size)
        if size > self.free:
            raise OutOfMemory(f"{size} bytes are too many", size, self.free)
        self.free -= size
        room = np.empty(size + 64, np.uint8)
        start = room.ctypes.data + 48
        self.given[start] = room
        return start, start

    def release(self, start: int) -> None:
        self.free += self.given.pop(start).size - 64


class StubMemory:
    """What a device with page-locked memory has; nothing is launched there."""

    allocator = None

    def __init__(self, locked: Locked) -> None:
        self.pinned = PinnedMemory(locked.allocate, locked.release)


@sarek.kernel
def add(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i]


# --- a device that counts -------------------------------------------------------------------------


def test_memory_begins_at_a_page_and_goes_with_its_last_view() -> None:
    locked = Locked()
    memory = PinnedMemory(locked.allocate, locked.release)
    for size in (0, 1, PAGE - 1, 5 * PAGE):
        held = memory.acquire(size)
        assert held.size == size
        assert size == 0 or held.ctypes.data % PAGE == 0
        assert memory.bytes == size + PAGE
        held[:] = 7
        view = held[size // 2 :].view()
        del held
        assert memory.bytes == size + PAGE
        assert (view == 7).all()
        del view
        assert (memory.bytes, locked.free, locked.given) == (0, 1 << 20, {})


def test_one_more_attempt_without_garbage() -> None:
    """What only cycles hold makes room; without it the second failure is raised."""
    locked = Locked(4 * PAGE)
    memory = PinnedMemory(locked.allocate, locked.release)
    gc.disable()
    try:
        cycle: list[Any] = [memory.acquire(2 * PAGE)]
        cycle.append(cycle)
        del cycle
        held = memory.acquire(2 * PAGE)
        assert locked.asked == [3 * PAGE] * 3
    finally:
        gc.enable()
    with pytest.raises(OutOfMemory) as caught:
        memory.acquire(2 * PAGE)
    assert (caught.value.asked, caught.value.available) == (3 * PAGE, PAGE)
    assert locked.asked == [3 * PAGE] * 5
    assert memory.bytes == 3 * PAGE
    del held
    assert memory.acquire(2 * PAGE).size == 2 * PAGE


def test_a_device_that_is_gone_raises_nothing_from_the_collector() -> None:
    def gone(handle: Any) -> None:
        raise RuntimeError("no such device")

    locked = Locked()
    memory = PinnedMemory(locked.allocate, gone)
    held = memory.acquire(8)
    del held
    assert memory.bytes == 0


MAKERS: dict[str, Callable[[Any], Any]] = {
    "vector": lambda p: sarek.vector([1.0, 2.0], pinned=p),
    "empty": lambda p: sarek.empty(3, np.int32, pinned=p),
    "zeros": lambda p: sarek.zeros((2, 3), pinned=p),
    "ones": lambda p: sarek.ones(3, pinned=p),
    "full": lambda p: sarek.full(3, 7, pinned=p),
    "like": lambda p: sarek.like(np.ones(3), pinned=p),
    "arange": lambda p: sarek.arange(5, pinned=p),
    "from_dlpack": lambda p: sarek.from_dlpack(np.ones(3), pinned=p),
    "fortran": lambda p: sarek.vector(np.ones((2, 3), order="F"), pinned=p),
    "nothing": lambda p: sarek.zeros(0, pinned=p),
    "soa": lambda p: sarek.soa(np.zeros(3, [("a", "i4"), ("b", "f8")]), pinned=p).columns[1],
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_way_to_make_a_vector(fake_device: Any, make: Callable[[Any], Any]) -> None:
    """Each takes memory of the device, with the same elements as without; copies do not."""
    locked = Locked()
    fake_device.driver.memory = StubMemory(locked)
    made, ordinary = make(True), make(False)
    assert (made.pinned, ordinary.pinned) == ("fake:0", None)
    statistics = fake_device.memory_statistics()
    assert statistics.pinned == sum(room.size - 64 for room in locked.given.values())
    assert statistics.pinned > made.nbytes
    assert statistics.in_use == 0
    start = made._storage.host.ctypes.data
    assert any(k <= start <= k + room.size for k, room in locked.given.items())
    if make not in (MAKERS["empty"], MAKERS["like"]):
        assert np.asarray(made).tolist() == np.asarray(ordinary).tolist()
    assert made.copy().pinned is None
    assert made.T.pinned == made[:1].pinned == "fake:0"
    del made
    assert fake_device.memory_statistics().pinned == 0
    assert fake_device.memory_statistics() == type(statistics)()


def test_the_device_is_the_current_one_or_the_first_that_can(fake_device: Any) -> None:
    """A name or a device chooses it; one without such memory gives ordinary memory."""
    second = sarek.device("fake:1")
    assert sarek.zeros(3, pinned=True).pinned is None
    second.driver.memory = StubMemory(Locked())
    assert sarek.zeros(3, pinned=True).pinned == "fake:1"
    assert sarek.zeros(3, pinned="fake:0").pinned is None
    fake_device.driver.memory = StubMemory(Locked())
    assert sarek.zeros(3, pinned=True).pinned == "fake:0"
    assert sarek.zeros(3, pinned=second).pinned == "fake:1"
    with sarek.use_device(second):
        assert sarek.zeros(3, pinned=True).pinned == "fake:1"


def test_records_in_columns(fake_device: Any) -> None:
    """Every column is."""
    fake_device.driver.memory = StubMemory(Locked())
    made = sarek.soa(np.zeros(3, [("a", "i4"), ("b", "f8")]), pinned=True)
    assert {made.pinned, made["a"].pinned, made[1:]["b"].pinned} == {"fake:0"}


@pytest.mark.parametrize("wrong", [1, 0, None, 2.5])
def test_what_is_no_device_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="True, False or a device, not"):
        sarek.zeros(3, pinned=wrong)


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(UnknownDevice, match="'nowhere'"):
        sarek.zeros(3, pinned="nowhere")


def test_no_memory_leaves_everything_as_it_was(fake_device: Any) -> None:
    locked = Locked(2 * PAGE)
    fake_device.driver.memory = StubMemory(locked)
    held = sarek.arange(9, pinned=True)
    with pytest.raises(OutOfMemory, match="too many"):
        sarek.zeros(PAGE, np.uint8, pinned=True)
    assert held.tolist() == list(range(9))
    assert fake_device.memory_statistics().pinned == 9 * 8 + PAGE
    del held
    assert sarek.zeros(PAGE, np.uint8, pinned=True).pinned == "fake:0"


# --- devices --------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["native", "interpreter"])
def test_devices_on_host_memory_have_ordinary_memory(device: str) -> None:
    vector = sarek.arange(100, pinned=device)
    assert vector.pinned is None
    assert vector._storage.start % PAGE == 0
    assert sarek.device(device).memory_statistics().pinned == 0


@on_opencl
def test_opencl_locks_and_counts(device: str) -> None:
    """From the start of a page on, for as long as anything views it."""
    gc.collect()
    before = sarek.device(device).memory_statistics().pinned
    vector = sarek.arange(10_000, pinned=device)
    assert vector.pinned == device
    assert vector._storage.start % PAGE == 0
    assert sarek.device(device).memory_statistics().pinned == before + 80_000 + PAGE
    view, part = np.asarray(vector), np.from_dlpack(vector)[5_000:]
    del vector
    gc.collect()
    assert sarek.device(device).memory_statistics().pinned == before + 80_000 + PAGE
    assert view[9_999] == part[4_999] == 9_999
    del view
    assert part[0] == 5_000
    del part
    gc.collect()
    assert sarek.device(device).memory_statistics().pinned == before


@on_devices
@pytest.mark.parametrize("home", [None, *OPENCL])
def test_launches_use_it_as_any_vector(device: str, home: str | None) -> None:
    """Wherever it was made: parts, writes of the host in between, moves, streams, arrays."""
    pinned = True if home is None else home
    out, x = sarek.zeros(1000, np.int64, pinned=pinned), sarek.arange(1000, pinned=pinned)
    model, values = np.zeros(1000, np.int64), np.arange(1000)
    for step in range(4):
        add.launch(out, x, grid=4, block=256, device=device)
        add.launch(out[100:901], x[3:804], grid=4, block=256, device=device)
        model += values
        model[100:901] += values[3:804]
        x[step] = values[step] = -step
        stream = sarek.device(device).stream()
        add.launch(x, np.arange(1000), grid=4, block=256, device=device, stream=stream)
        values += np.arange(1000)
        if step == 2:
            out.free(device)
    assert np.array_equal(out, model)
    assert np.array_equal(x, values)


@on_opencl
def test_it_goes_after_the_launches_that_use_it(device: str) -> None:
    """Vectors dropped while their launches wait are theirs until they are done."""
    gc.collect()
    target = sarek.device(device)
    before = target.memory_statistics().pinned
    out = sarek.zeros(100_000, np.int64)
    for stream in (None, target.stream()):
        for k in range(20):
            x = sarek.full(100_000, k, np.int64, pinned=device)
            add.launch(out, x, grid=400, block=256, device=device, stream=stream)
            del x
            if k % 5 == 0:
                gc.collect()
    assert np.array_equal(out, np.full(100_000, 2 * sum(range(20))))
    target.synchronize()
    gc.collect()
    assert target.memory_statistics().pinned == before


@on_opencl
def test_opencl_without_memory(device: str, monkeypatch: Any) -> None:
    """The driver's refusal has the bytes and the device; afterwards there is memory again."""
    driver = sarek.device(device).driver
    asked = 4 * driver.record.limits.global_bytes
    with pytest.raises(OutOfMemory, match="allocating page-locked memory on") as caught:
        sarek.empty(asked, np.uint8, pinned=device)
    assert caught.value.asked == asked + PAGE
    assert 0 < caught.value.available < asked
    assert sarek.ones(3, pinned=device).tolist() == [1, 1, 1]


AT_EXIT = """
import atexit

atexit.register(lambda: print(kept.sum()))  # what is registered first comes last

import numpy as np
import sarek_numba as sarek

kept = np.from_dlpack(sarek.arange(10_000_000, pinned=%r))
"""


@on_opencl
def test_arrays_outlive_the_package_at_exit(device: str) -> None:
    """Memory that others still have at the end of the process is there until it is over."""
    command = [sys.executable, "-c", AT_EXIT % device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "49999995000000\n", "")


# --- exchange -------------------------------------------------------------------------------------


class Interface:
    """What a library finds that knows `__array_interface__` alone."""

    def __init__(self, vector: Any) -> None:
        self.vector = vector
        self.__array_interface__ = vector.__array_interface__


@on_devices
@pytest.mark.parametrize("pinned", [False, True])
def test_array_interface(device: str, pinned: bool) -> None:
    """The elements as they are now, brought from where they are, and read only."""
    vector = sarek.vector(np.arange(12, dtype=np.float32).reshape(3, 4), pinned=pinned)
    flat = vector.reshape(12)
    add.launch(flat, flat.copy(), grid=1, block=32, device=device)
    seen = np.asarray(Interface(vector.T[1:]))
    assert np.array_equal(seen, (2 * np.arange(12).reshape(3, 4)).T[1:])
    assert not seen.flags.writeable
    assert vector.T[1:].is_current()
    assert seen.ctypes.data == vector._storage.start + 4


def test_array_interface_of_what_it_has_no_name_for() -> None:
    """Records have none, and are arrays all the same, padding and names kept."""
    padded = np.dtype({"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 8]})
    vector = sarek.vector(np.ones(3, padded))
    assert not hasattr(vector, "__array_interface__")
    assert np.asarray(vector).dtype == padded


@on_devices
@pytest.mark.parametrize("pinned", [False, True])
def test_dlpack_both_ways(device: str, pinned: bool) -> None:
    """What comes out is the memory itself, which others may write: launches then see it."""
    source = np.arange(20, dtype=np.int32)[::2]
    vector = sarek.from_dlpack(source, pinned=pinned)
    ones = sarek.ones(10, np.int32)
    add.launch(vector, ones, grid=1, block=32, device=device)
    out = np.from_dlpack(vector)
    assert out.tolist() == list(range(1, 20, 2))
    out[3] = 100
    again = sarek.from_dlpack(vector[2:5], pinned=pinned)
    assert again.tolist() == [5, 100, 9]
    add.launch(vector, ones, grid=1, block=32, device=device)
    assert vector[3] == 101
    assert source.tolist() == list(range(0, 20, 2))
