"""Memory of a backend that other libraries have: what the launch core asks of it, in which order.

A stub plays CUDA: its device memory is NumPy's, which nothing but the stub knows.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import ArgumentTypeError, MixedDevices, UnknownDevice
from sarek_numba.execute import counters
from sarek_numba.runtime import registry
from sarek_numba.runtime.adopted import DeviceArray, NotAdopted
from sarek_numba.runtime.nowhere import Nowhere
from sarek_numba.runtime.work import AtOnce
from tests.unit.fake_backend import FakeDriver, FakeProgram, record


class Queues(AtOnce):
    """Queues by their names."""

    def default(self) -> str:
        return "default"


@dataclass(eq=False)
class Memory:
    """A device's memory; a part of a buffer is a view of it."""

    events: list[Any]
    allocator: Any = None
    pinned: Any = None

    def hold(self, memory: Any) -> Any:
        return np.zeros_like(memory)

    def part(self, buffer: Any, first: int, last: int, *, written: bool) -> Any:
        return buffer[first:last]

    def begin_part(self, part: Any, handle: Any = None) -> None:
        self.events.append(("begin", handle))

    def end_part(self, part: Any, handle: Any = None) -> bool:
        return False

    def release(self, buffer: Any) -> None:
        """Nothing is needed."""


class QueuedProgram(FakeProgram):
    def check(self, block: Any) -> None:
        """Every block is well."""

    def enqueue(self, handle: Any, grid: Any, block: Any, shared: int, arguments: Any) -> Any:
        self.launch(grid, block, shared, arguments)
        return f"mark of {handle}"


class Driver(FakeDriver):
    def prepare(self, kernel: Any) -> Any:
        return QueuedProgram(self, kernel.params)


@dataclass
class Order:
    """Writes down what it is asked for."""

    events: list[Any]
    handle: Any = None
    is_known: bool = True

    def precede(self, handle: Any) -> None:
        self.events.append(("precede", handle))

    def follow(self, handle: Any, mark: Any) -> None:
        self.events.append(("follow", handle, mark))

    def wait(self) -> None:
        self.events.append(("wait",))


@dataclass
class OnDevice:
    """An array of another library; `buffer` is what it has of device memory."""

    buffer: np.ndarray
    view: np.ndarray
    number: int = 0
    handle: Any = None
    is_known: bool = True
    fault: NotAdopted | None = None
    orders: list[Order] = field(default_factory=list)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "data": (1, False), "shape": self.view.shape, "typestr": "<f4"}


class Backend:
    name = "cuda"

    def __init__(self) -> None:
        self.devices = []
        for number in (0, 1):
            made = Driver(record(f"cuda:{number}"))
            made.memory = Memory(made.events)
            self.devices.append(made)

    def drivers(self) -> Sequence[Any]:
        return self.devices

    def adopt(self, value: Any) -> DeviceArray | None:
        if not isinstance(value, OnDevice):
            return None
        if value.fault is not None:
            raise value.fault
        driver, view = self.devices[value.number], value.view
        start = view.__array_interface__["data"][0] - value.buffer.ctypes.data
        order = Order(driver.events, value.handle, value.is_known)
        value.orders.append(order)
        return DeviceArray(
            driver, driver.record.name, value.buffer.view(np.uint8), id(value.buffer),
            value.buffer.nbytes, start, view.dtype, view.shape, view.strides, True, 16, order,
        )  # fmt: skip

    def driver_of(self, value: Any) -> Any:
        return self.devices[value.number] if isinstance(value, OnDevice) else None


class Plain:
    """A backend that adopts nothing."""

    name = "cuda"

    def drivers(self) -> Sequence[Any]:
        return [Driver(record("cuda:0"))]


backend: Any = None


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine with two CUDA devices, and nothing else but 'native'."""
    global backend
    backend = Backend()
    known = {"cuda": __name__, "native": "sarek_native"}
    monkeypatch.setattr(registry, "FIRST_PARTY", known)
    monkeypatch.setattr(registry, "entry_points", lambda group: ())
    monkeypatch.delenv("SAREK_DEVICE", raising=False)
    registry.forget_backends()
    yield backend
    registry.forget_backends()


@sarek.kernel
def add(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i]


def played(*arguments: Any) -> None:
    """The kernel: contiguous arrays, each with its length."""
    out, n, x, _ = arguments
    out.view(np.float32)[: int(n)] += x.view(np.float32)[: int(n)]


def array(count: int = 8, number: int = 0, first: int = 0, **options: Any) -> OnDevice:
    buffer = np.arange(64, dtype=np.float32)
    return OnDevice(buffer, buffer[first : first + count], number, **options)


def kinds(driver: Any) -> list[Any]:
    return [event[0] for event in driver.events if event[0] not in ("prepare", "begin")]


def test_a_launch_goes_to_the_arrays_device(cuda: Any) -> None:
    """To the second device, whatever is current; its memory is used where it is."""
    driver = cuda.devices[1]
    driver.behaviour = played
    out, x = array(number=1), array(number=1, first=4)
    counters.reset()
    with sarek.use_device("cuda:0"):
        add[1, 8](out, x)
    add.launch(out, x, grid=1, block=8, device="cuda:1")
    assert np.array_equal(out.view, 3 * np.arange(8) + 8)
    assert np.array_equal(out.buffer[8:], np.arange(8, 64))
    assert (counters.uploads, counters.downloads) == (0, 0)
    assert sarek.device(out) is sarek.device("cuda:1")
    assert cuda.devices[0].events == []


def test_a_device_without_queues_waits_before(cuda: Any) -> None:
    """For the library's work, of each array; a launch is done when it returns."""
    driver = cuda.devices[0]
    driver.behaviour = played
    add[1, 8](array(), array())
    assert kinds(driver) == ["wait", "wait", "launch"]


def test_launches_go_to_the_librarys_queue(cuda: Any) -> None:
    """To that of the first array that has one; others are put before it and behind it."""
    driver = cuda.devices[0]
    driver.behaviour, driver.queues = played, Queues()
    add[1, 8](array(), array(handle="theirs"))
    assert driver.events == [
        ("precede", "theirs"), ("precede", "theirs"),
        ("begin", "theirs"), ("begin", "theirs"), ("launch", (1, 1, 1), (8, 1, 1), 0),
        ("follow", "theirs", "mark of theirs"), ("follow", "theirs", "mark of theirs"),
    ]  # fmt: skip
    driver.events.clear()
    add[1, 8](array(), array())
    assert driver.events[0] == ("precede", "default")


def test_a_launch_that_nobody_can_follow_is_waited_for(cuda: Any) -> None:
    driver = cuda.devices[0]
    waited: list[Any] = []

    class Waiting(Queues):
        def wait(self, mark: Any) -> None:
            waited.append(mark)

    driver.behaviour, driver.queues = played, Waiting()
    add[1, 8](array(), array())
    assert waited == []
    add[1, 8](array(), array(is_known=False))
    assert waited == ["mark of default"]


def test_vectors_come_along(cuda: Any) -> None:
    """To the array's device, once."""
    driver = cuda.devices[1]
    driver.behaviour = played
    sent: list[int] = []

    def send(buffer: Any, first: int, last: int) -> None:
        sent.append(last - first)
        buffer[first:last] = vector._storage.host[first:last]

    driver.memory.send = send
    vector = sarek.full(8, 100, np.float32)
    out = array(number=1)
    for _ in range(3):
        add[1, 8](out, vector)
    assert np.array_equal(out.view, np.arange(8) + 300)
    assert sent == [32]
    assert vector.is_current("cuda:1")


REFUSED: dict[str, tuple[Callable[[], tuple[Any, Any, Any]], type[Exception], str]] = {
    "two devices": (
        lambda: (array(number=0), array(number=1), None),
        MixedDevices,
        "'out' is memory of cuda:0, and 'x' of cuda:1\n",
    ),
    "another is named": (
        lambda: (array(), array(), "cuda:1"),
        MixedDevices,
        "'out' is memory of cuda:0, and the launch is on 'cuda:1'\n",
    ),
    "a device on the host is named": (
        lambda: (np.ones(8, np.float32), array(), "native"),
        MixedDevices,
        "'x' is memory of cuda:0, and the launch is on 'native'\n",
    ),
    "the backend refuses": (
        lambda: (array(), array(fault=NotAdopted("is managed memory", "use x.copy()")), None),
        ArgumentTypeError,
        r"argument 'x' is managed memory\n  hint: use x.copy\(\)",
    ),
    "beyond the buffer": (
        lambda: (array(), OnDevice(np.zeros(8, np.float32), np.zeros(9, np.float32)), None),
        ArgumentTypeError,
        "spans the bytes .* of a buffer of 32",
    ),
}


@pytest.mark.parametrize(("make", "error", "match"), REFUSED.values(), ids=REFUSED)
def test_refusals(cuda: Any, make: Any, error: Any, match: str) -> None:
    """By name, before anything is asked of the device."""
    out, x, where = make()
    counters.reset()
    with pytest.raises(error, match=match):
        add.launch(out, x, grid=1, block=8, device=where)
    assert (counters.launches, counters.uploads, counters.compiles) == (0, 0, 0)
    assert [driver.events for driver in cuda.devices] == [[], []]


def test_without_the_backend_it_is_refused(cuda: Any, monkeypatch: Any) -> None:
    """Disabled, absent, or one that adopts nothing: by the memory's name."""
    match = "argument 'out' is memory of CUDA, which no device here works on\n.*out.get"
    x = array()
    with monkeypatch.context() as patched:
        patched.setenv("SAREK_DISABLE", "cuda")
        with pytest.raises(ArgumentTypeError, match=match):
            add[1, 8](x, x)
    with monkeypatch.context() as patched:
        patched.setitem(globals(), "backend", Plain())
        with pytest.raises(ArgumentTypeError, match=match):
            add[1, 8](x, x)
    with monkeypatch.context() as patched:
        patched.setattr(registry, "FIRST_PARTY", {"native": "sarek_native"})
        registry.forget_backends()
        with pytest.raises(ArgumentTypeError, match=match):
            add[1, 8](x, x)
        with pytest.raises(ArgumentTypeError, match="memory of CUDA is of no device here"):
            sarek.device(x)
    with pytest.raises(UnknownDevice):
        sarek.device(object())


def test_contexts_of_one_device(cuda: Any, monkeypatch: Any) -> None:
    """A driver of its own for another context: a device by itself, with the name of its home."""
    driver = cuda.devices[0]
    other = Driver(replace(driver.record, name="cuda:0@1"))
    other.memory, other.behaviour = Memory(other.events), played
    plain = Backend.adopt

    def adopt(self: Any, value: Any) -> Any:
        found = plain(self, value)
        is_other = isinstance(value, OnDevice) and value.handle == "other"
        return replace(found, driver=other, order=Order(other.events)) if is_other else found

    monkeypatch.setattr(Backend, "adopt", adopt)
    add.launch(array(handle="other"), array(handle="other"), grid=1, block=8, device="cuda:0")
    assert kinds(other) == ["wait", "wait", "launch"]
    assert driver.events == []
    with pytest.raises(MixedDevices, match="'out' and 'x' are of two contexts of cuda:0"):
        add[1, 8](array(handle="other"), array())


# --- addresses ------------------------------------------------------------------------------------


def test_addresses_are_apart_and_read_as_zeros() -> None:
    """Whoever looks at what describes an array, a debugger say, finds zeros, and takes no memory.

    That also is so of an array that is larger than the machine's memory.
    """
    space = Nowhere([100, 1 << 40, 5000])
    starts = space.starts
    assert starts[1] - starts[0] >= 100
    assert starts[2] - starts[1] >= 1 << 40
    dtype = np.dtype([("a", "i1"), ("b", "f8")])
    for start in starts:
        made = space.array(start, dtype, (5, 2), (18, 9), True)
        assert (made.shape, made.strides, made.dtype) == ((5, 2), (18, 9), dtype)
        assert made.__array_interface__["data"] == (start, False)
        assert not made["b"].any()
        assert "0" in repr(made)
    del space
    gc.collect()
    assert not made["a"].any()
    assert not Nowhere([8]).array(Nowhere([8]).starts[0], np.dtype("f4"), (), (), False).any()
