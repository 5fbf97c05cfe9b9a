"""Bad launches, each in every way to launch, on every device.

A refusal has a name, is the same each time, counts nothing, moves nothing, changes no array, and
the next good launch works: the long way, the short way that good launches before it have learnt,
with arrays and with vectors, on a stream and without, with and without a launch window.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import errors, execute
from sarek_numba.execute import Language
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.cache import counters
from tests.executors import warp_width

DEVICES = [device.name for device in sarek.devices()]
on_devices = pytest.mark.parametrize("device", DEVICES)
COUNT = 8

OPENCL = """
kernel void scale(
    global float *out, int outs, global const float *x, int xs, float factor, int n
) {
    int i = get_global_id(0);
    if (i < n) out[i] = x[i] * factor;
}
"""


@sarek.kernel
def scale(out: sarek.float32[:], x: sarek.float32[:], factor: sarek.float32, n: sarek.int32):
    i = sarek.global_idx.x
    if i < n:
        out[i] = x[i] * factor


@sarek.kernel
def shifted(out, x):
    i = sarek.thread_idx.x
    out[i] = sarek.warp.shuffle_down(x[i], 1)


@sarek.kernel
def first_of(out, x):
    out[0] = x[0]


IR = scale.ir()


@dataclass
class Given:
    """What one launch is given; a bad launch is a good one with something exchanged."""

    arguments: list[Any]
    grid: Any = 1
    block: Any = COUNT
    stream: Any = None


@dataclass(frozen=True)
class Bad:
    """One fault. `kernel`, `ir`, `source` are the errors of each entry; None: it is no fault."""

    spoil: Callable[[Given, str], None]
    kernel: type[Exception]
    ir: type[Exception] | None
    source: type[Exception] | None
    text: str = ""


class OnDevice:
    """What says that its memory is of a device; nobody may ask for it."""

    def __init__(self, place: tuple[int, int]) -> None:
        self.place = place

    def __dlpack__(self, **options: Any) -> Any:
        raise AssertionError("nothing is exported")

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place


def argument(position: int, make: Callable[[Any], Any]) -> Callable[[Given, str], None]:
    """Another argument at a position, made of the good one."""

    def spoil(given: Given, _: str) -> None:
        given.arguments[position] = make(given.arguments[position])

    return spoil


def like(dtype: Any) -> Callable[[Any], Any]:
    """An array or a vector of another type; no vector has some."""

    def make(good: Any) -> Any:
        array = np.ones(COUNT, dtype)
        is_vector = isinstance(good, sarek.Vector) and array.dtype.isnative
        return sarek.vector(array) if is_vector and array.dtype != object else array

    return make


def read_only(good: Any) -> Any:
    if isinstance(good, sarek.Vector):
        frozen = np.asarray(good)
        return sarek.Vector(good._storage, frozen)
    frozen = np.ones(COUNT, np.float32)
    frozen.flags.writeable = False
    return frozen


def limit(name: str, axis: int | None = None) -> Callable[[Given, str], None]:
    """A block or a grid one beyond what the device takes."""

    def spoil(given: Given, device: str) -> None:
        limits = sarek.device(device).limits
        if axis is None:
            given.block = limits.threads_per_block + 1
            return
        shape = [1, 1, 1]
        shape[axis] = getattr(limits, name)[axis] + 1
        setattr(given, name, tuple(shape))

    return spoil


def shape(name: str, value: Any) -> Callable[[Given, str], None]:
    return lambda given, _: setattr(given, name, value)


def swapped(first: int, second: int) -> Callable[[Given, str], None]:
    def spoil(given: Given, _: str) -> None:
        values = given.arguments
        values[first], values[second] = values[second], values[first]

    return spoil


def foreign_stream(given: Given, device: str) -> None:
    given.stream = next(sarek.device(name) for name in DEVICES if name != device).stream()


def two_foreign(given: Given, _: str) -> None:
    given.arguments[:2] = OnDevice((2, 0)), OnDevice((2, 1))


COUNT_ERROR, TYPE_ERROR = errors.ArgumentCountError, errors.ArgumentTypeError
SIZES = errors.InvalidDimensions
TYPES = (TYPE_ERROR, TYPE_ERROR, TYPE_ERROR)
ONE_TYPE = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (COUNT,), (0,))

BAD: dict[str, Bad] = {
    "an argument too few": Bad(
        lambda given, _: given.arguments.pop() and None, COUNT_ERROR, COUNT_ERROR, COUNT_ERROR
    ),
    "an argument too many": Bad(
        lambda given, _: given.arguments.append(1), COUNT_ERROR, COUNT_ERROR, COUNT_ERROR
    ),
    "no arguments": Bad(
        lambda given, _: given.arguments.clear(), COUNT_ERROR, COUNT_ERROR, COUNT_ERROR
    ),
    "array and number swapped": Bad(swapped(1, 2), *TYPES),
    "numbers swapped": Bad(swapped(2, 3), *TYPES),
    "a wider float": Bad(argument(2, np.float64), *TYPES, "float64"),
    "a wider int": Bad(argument(3, np.int64), *TYPES, "int64"),
    "a narrower int": Bad(argument(3, np.int16), *TYPES, "int16"),
    "an unsigned int": Bad(argument(3, np.uint32), *TYPES, "uint32"),
    "None": Bad(argument(1, lambda _: None), *TYPES, "None"),
    "a list": Bad(argument(1, lambda _: [1.0] * COUNT), *TYPES, "list"),
    "a string": Bad(argument(2, lambda _: "2"), *TYPES, "str"),
    "wider elements": Bad(argument(1, like(np.float64)), TYPE_ERROR, TYPE_ERROR, None, "float64"),
    "elements as wide": Bad(argument(1, like(np.int32)), TYPE_ERROR, TYPE_ERROR, None, "int32"),
    "bytes": Bad(argument(0, like(np.uint8)), TYPE_ERROR, TYPE_ERROR, None, "uint8"),
    "records": Bad(argument(1, like([("a", "f4")])), TYPE_ERROR, TYPE_ERROR, None, "record"),
    "big-endian": Bad(argument(1, like(">f4")), *TYPES, "another machine"),
    "objects": Bad(argument(1, like(object)), *TYPES, "Python objects"),
    "two axes": Bad(
        argument(1, lambda good: good.reshape(2, COUNT // 2)), TYPE_ERROR, TYPE_ERROR, None, "2-D"
    ),
    "read-only output": Bad(argument(0, read_only), errors.ReadOnlyWrite, TYPE_ERROR, None),
    "output without strides": Bad(
        argument(0, lambda _: ONE_TYPE), errors.InvalidArgument, TYPE_ERROR, TYPE_ERROR
    ),
    "memory of two devices": Bad(two_foreign, *[errors.MixedDevices] * 3, "CUDA 0.*CUDA 1"),
    "memory of a device": Bad(
        argument(1, lambda _: OnDevice((10, 0))), *TYPES, "ROCm 0"
    ),
    "a foreign stream": Bad(foreign_stream, *[errors.StreamError] * 3, "is one of device"),
    "no stream": Bad(shape("stream", 7), *[errors.StreamError] * 3, "7 is no stream"),
    "block beyond the device": Bad(limit("block"), SIZES, SIZES, SIZES, "takes at most"),
    "block beyond along z": Bad(limit("block", 2), SIZES, SIZES, SIZES, "along z|takes at most"),
    "grid beyond along x": Bad(limit("grid", 0), SIZES, SIZES, SIZES, "along x"),
    "grid beyond along y": Bad(limit("grid", 1), SIZES, SIZES, SIZES, "along y"),
    "zero grid": Bad(shape("grid", 0), SIZES, SIZES, SIZES, "axis of 0"),
    "zero block": Bad(shape("block", (8, 0)), SIZES, SIZES, SIZES, "axis of 0"),
    "negative grid": Bad(shape("grid", (1, 1, -1)), SIZES, SIZES, SIZES, "axis of -1"),
    "negative block": Bad(shape("block", -8), SIZES, SIZES, SIZES, "axis of -8"),
    "a float block": Bad(shape("block", 8.0), SIZES, SIZES, SIZES, "holds a float"),
    "four axes": Bad(shape("grid", (1, 1, 1, 1)), SIZES, SIZES, SIZES, "4 axes"),
}  # fmt: skip


# --- ways to launch -------------------------------------------------------------------------------


def by_kernel(device: str, given: Given) -> None:
    place = (given.grid, given.block, given.stream)[: 2 if given.stream is None else 3]
    with sarek.use_device(device):
        scale[place](*given.arguments)


def by_ir(device: str, given: Given) -> None:
    execute.run_vectors(device, IR, given.arguments, given.block, given.grid, stream=given.stream)


def by_source(device: str, given: Given) -> None:
    execute.run_source(
        device,
        OPENCL,
        Language.OPENCL,
        "scale",
        given.arguments,
        given.block,
        given.grid,
        stream=given.stream,
    )


ENTRIES = {"kernel": by_kernel, "ir": by_ir, "source": by_source}
MAKES = {"arrays": np.copy, "vectors": sarek.vector}


@dataclass(frozen=True)
class Way:
    """`learnt`: good launches before have shown the short way. `windowed`: launches are deferred
    where the device has a window.
    """

    entry: str
    make: str
    streamed: bool
    learnt: bool
    windowed: bool

    def __str__(self) -> str:
        words = [self.entry, self.make, "stream" * self.streamed, "learnt" * self.learnt]
        return " ".join([*filter(None, words), "window" if self.windowed else "no window"])


def ways(device: str) -> list[Way]:
    """All ways that differ on a device."""
    found = []
    for entry in ENTRIES:
        if entry == "source" and not execute.supports_language(device, Language.OPENCL):
            continue
        for make in MAKES:
            found += [
                Way(entry, make, False, learnt=False, windowed=False),
                Way(entry, make, True, learnt=False, windowed=True),
                Way(entry, make, False, learnt=True, windowed=True),
            ]
            if entry == "kernel":
                found.append(Way(entry, make, False, learnt=True, windowed=False))
    return found


class Scene:
    """Good arguments of one way on one device, and everything that a refusal must not change."""

    def __init__(self, device: str, way: Way) -> None:
        self.device, self.way = device, way
        self.out = MAKES[way.make](np.zeros(COUNT, np.float32))
        self.x = MAKES[way.make](np.arange(COUNT, dtype=np.float32))
        self.stream = sarek.device(device).stream() if way.streamed else None
        self.expected = np.zeros(COUNT, np.float32)

    def given(self, factor: float = 2.0) -> Given:
        arguments = [self.out, self.x, np.float32(factor), np.int32(COUNT)]
        return Given(arguments, stream=self.stream)

    def good(self, factor: float = 2.0) -> None:
        ENTRIES[self.way.entry](self.device, self.given(factor))
        self.expected = np.arange(COUNT, dtype=np.float32) * np.float32(factor)

    def learn(self) -> None:
        """Launch until the short way is known, where there is one."""
        for factor in (5.0, 6.0, 7.0, 8.0):
            self.good(factor)
        driver = sarek.device(self.device).driver
        if self.way.entry != "kernel" or driver.plans is None or self.way.windowed:
            return
        if driver.memory is None or self.way.make == "vectors":
            with sarek.use_device(self.device):
                assert scale[1, COUNT].attempts

    def state(self) -> dict[str, Any]:
        """Counters, where vectors are current, what waits in windows."""
        found: dict[str, Any] = {f.name: getattr(counters, f.name) for f in fields(counters)}
        found["launches"] = counters.launches
        for name, value in (("out", self.out), ("x", self.x)):
            if isinstance(value, sarek.Vector):
                places = (None, *DEVICES)
                found[name] = [value.is_current(place) for place in places]
            else:
                found[name] = value.tolist()
        statistics = execute.window.statistics
        found["window"] = (statistics.deferred, dict(statistics.flushes))
        return found

    def results(self) -> None:
        assert np.array_equal(self.out, self.expected), (np.asarray(self.out), self.expected)
        assert np.array_equal(self.x, np.arange(COUNT))


@pytest.fixture(autouse=True)
def _whole_window() -> Any:
    yield
    execute.window.configure(enabled=True)


def refuse_everywhere(device: str, way: Way, bad: Bad) -> None:
    """A bad launch twice between good ones; both refusals are alike and change nothing."""
    expected = getattr(bad, way.entry)
    if expected is None:
        return
    execute.window.configure(enabled=way.windowed)
    scale._configurations.clear()
    scene = Scene(device, way)
    if way.learnt:
        scene.learn()
    elif way.entry == "source":  # its parameters are known when it is compiled
        Scene(device, way).good()
    given, texts = scene.given(3.0), []
    bad.spoil(given, device)
    before = scene.state()
    for _ in range(2):
        with pytest.raises(expected) as raised:
            ENTRIES[way.entry](device, given)
        assert type(raised.value) is expected, raised.value
        texts.append(str(raised.value))
        assert scene.state() == before
    assert texts[0] == texts[1]
    if bad.text:
        assert re.search(bad.text, texts[0]), texts[0]
    scene.results()
    scene.good(9.0)
    scene.results()


@on_devices
@pytest.mark.parametrize("name", BAD)
def test_bad_launch(device: str, name: str) -> None:
    """By its name, in every way."""
    for way in ways(device):
        try:
            refuse_everywhere(device, way, BAD[name])
        except BaseException as error:
            error.add_note(f"way: {way}")
            raise


@on_devices
def test_good_launches_pass(device: str) -> None:
    """Positive control: what is spoilt above is nothing that is refused anyhow."""
    for way in ways(device):
        scene = Scene(device, way)
        scene.good(3.0)
        scene.results()
        scene.learn()
        scene.results()


def made() -> Any:
    """A kernel that nobody has launched."""

    @sarek.kernel
    def scale(out: sarek.float32[:], x: sarek.float32[:], factor: sarek.float32, n: sarek.int32):
        i = sarek.global_idx.x
        if i < n:
            out[i] = x[i] * factor

    return scale


@on_devices
@pytest.mark.parametrize("make", MAKES)
def test_a_kernel_that_was_never_launched(device: str, make: str) -> None:
    """Every bad launch before the first good one, with the texts of later ones."""
    kernel = made()
    scene = Scene(device, Way("kernel", make, False, learnt=False, windowed=True))
    counters.reset()
    for name, bad in BAD.items():
        given, texts = scene.given(), []
        bad.spoil(given, device)
        for each in (kernel, scale):
            with sarek.use_device(device), pytest.raises(bad.kernel) as raised:
                each[given.grid, given.block, given.stream](*given.arguments)
            texts.append(re.sub(r"[^ ]*\.py:\d+|\d+ \|.*|\d+ ", "", str(raised.value)))
        assert bad.kernel is errors.ReadOnlyWrite or texts[0] == texts[1], name
    assert (counters.launches, counters.compiles) == (0, 0)
    assert (counters.uploads, counters.downloads) == (0, 0)
    kernel.launch(*scene.given(2.0).arguments, grid=1, block=COUNT, device=device)
    assert np.array_equal(scene.out, np.arange(COUNT) * 2)


@on_devices
def test_freed_vectors_are_no_fault(device: str) -> None:
    """What only the device had comes to the host first; the short way notices."""
    for way in ways(device):
        if way.make == "vectors":
            execute.window.configure(enabled=way.windowed)
            scene = Scene(device, way)
            scene.learn()
            for place in (device, None):
                scene.out.free(place)
                scene.x.free(place)
                scene.results()
                scene.good(4.0)
                scene.results()


# --- warps ----------------------------------------------------------------------------------------


@on_devices
@pytest.mark.parametrize("make", MAKES)
def test_parts_of_warps(device: str, make: str) -> None:
    """A block that is no whole number of warps, where there are warps; first and later launches."""
    out, x = (MAKES[make](np.arange(64, dtype=np.int32)) for _ in range(2))
    width = warp_width(device)
    if width is None:
        with pytest.raises(errors.CapabilityError, match="needs warp operations"):
            shifted.launch(
                *[MAKES[make](np.zeros(64, np.int32))] * 2, grid=1, block=64, device=device
            )
        return
    out, x = (MAKES[make](np.arange(64, dtype=np.int32)) for _ in range(2))
    with execute.simulated_warp_width(width):
        ir = shifted.ir(sarek.int32[:], sarek.int32[:])
    for launches in (0, 3):
        for _ in range(launches):
            shifted.launch(out, x, grid=1, block=64, device=device)
        model = np.array(out)
        before = counters.launches, counters.uploads, counters.compiles
        text = f"no whole number of warps of {width}"
        for block in (width + width // 2, 2 * width - 1, (1, width + 1), (width // 2, 3)):
            with pytest.raises(errors.InvalidDimensions, match=text):
                shifted.launch(out, x, grid=1, block=block, device=device)
            with pytest.raises(errors.InvalidDimensions, match=text):
                execute.run_vectors(device, ir, [out, x], block, 1)
        assert (counters.launches, counters.uploads, counters.compiles) == before
        assert np.array_equal(out, model)


# --- lengths --------------------------------------------------------------------------------------


def long() -> np.ndarray[Any, Any]:
    """2**31 elements, whose memory the system gives when somebody touches it: nobody may."""
    return np.zeros(2**31, np.int8)


@pytest.fixture
def without_int64(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A function that takes int64 out of what is known of a device."""

    def take(name: str) -> None:
        driver = sarek.device(name).driver
        facts = driver.record.facts.items()
        kept = {capability: fact for capability, fact in facts if capability.scalar not in WIDE}
        assert len(kept) < len(facts)
        monkeypatch.setattr(driver, "record", replace(driver.record, facts=kept))

    return take


WIDE = (Scalar.INT64, Scalar.UINT64)


@on_devices
def test_a_long_array_without_int64(device: str, without_int64: Any) -> None:
    """Refused where nothing can count so far; also after good launches."""
    out = np.zeros(1, np.int8)
    narrow = first_of.ir(sarek.int8[:], sarek.int8[:])
    for _ in range(3):
        first_of.launch(out, np.ones(4, np.int8), grid=1, block=1, device=device)
    without_int64(device)
    counters.reset()
    for _ in range(2):
        with pytest.raises(errors.LengthOverflow, match=r"'x' spans 2147483648 elements.*no int64"):
            first_of.launch(out, long(), grid=1, block=1, device=device)
        with pytest.raises(errors.LengthOverflow, match="takes lengths as int32"):
            execute.run_vectors(device, narrow, [out, long()], 1, 1)
    assert (counters.launches, counters.uploads, counters.compiles) == (0, 0, 0)
    assert out[0] == 1
    first_of.launch(out, np.full(4, 2, np.int8), grid=1, block=1, device=device)
    assert out[0] == 2


@pytest.mark.parametrize("device", [d for d in DEVICES if d.startswith("opencl")])
def test_a_long_array_of_a_source(device: str) -> None:
    """A length that no int32 holds, first and later; the user may pass it another way."""
    for way in ways(device):
        if way.entry == "source" and way.make == "arrays":
            bad = Bad(argument(1, lambda _: long()), *[errors.LengthOverflow] * 3)
            refuse_everywhere(device, way, replace(bad, text="argument 1 has 2147483648 elements"))
