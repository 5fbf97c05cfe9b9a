"""Arrays of other libraries on CUDA devices as arguments: where they are, in their streams."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.errors import ArgumentTypeError, CompileError, MixedDevices
from sarek_numba.runtime.cache import counters

DEVICES = [d.name for d in sarek.devices() if d.record.backend == "cuda"]
on_cuda = pytest.mark.parametrize("device", DEVICES)
N = 64
NUMBERS = np.arange(1, N + 1, dtype=np.float32)


@sarek.kernel
def add(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i]


@sarek.kernel
def add_plane(out, x):
    i, j = sarek.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] += x[i, j]


@pytest.fixture(autouse=True, params=[True, False], ids=["window", "at once"])
def _window(request):
    execute.window.configure(enabled=request.param)
    yield
    execute.window.configure(enabled=True)


@dataclass
class Theirs:
    """An array of another library: some bytes of memory that a vector lends it."""

    device: str
    values: Any
    more: dict[str, Any] = field(default_factory=dict)
    first: int = 0  # element
    strides: Any = None
    shape: Any = None

    def __post_init__(self):
        self.memory = sarek.vector(np.ascontiguousarray(self.values))
        self.memory.to(self.device)
        self.address = execute.device_buffer(self.memory, self.device)
        sarek.device(self.device).synchronize()

    @property
    def __cuda_array_interface__(self):
        array = np.asarray(self.values)
        return {
            "version": 3,
            "shape": array.shape if self.shape is None else self.shape,
            "typestr": array.dtype.str,
            "strides": self.strides,
            "data": (self.address + self.first * array.itemsize, False),
            "stream": None,
        } | self.more

    def get(self):
        """What the memory has now."""
        execute.mark_stale([self.memory], self.device)
        sarek.device(self.device).synchronize()
        return np.asarray(self.memory).copy()


def stream_of(device: str) -> tuple[Any, int]:
    """A stream that is not ours, and its number."""
    owner = sarek.device(device).driver
    with owner_context(device):
        raw = owner.cuda.stream()
    return raw, owner.cuda.number(raw)


def owner_context(device: str) -> Any:
    from sarek_cuda import driver

    return driver.check("a test", sarek.device(device).driver.access)


def is_fake(device: str) -> bool:
    return sarek.device(device).record.description.startswith("Fake")


@on_cuda
def test_nothing_is_copied_and_no_device_is_named(device):
    """A launch goes to the arrays' device, whatever is the default; what is there is used."""
    out, x = Theirs(device, np.zeros(N, np.float32)), Theirs(device, NUMBERS)
    counters.reset()
    add[1, N](out, x)
    with sarek.use_device("native"):
        add[1, N](out, x)
    add.launch(out, x, grid=1, block=N, device=device)
    assert (counters.uploads, counters.downloads) == (0, 0)
    assert sarek.device(out).name == device
    assert (out.get() == 3 * NUMBERS).all()


@on_cuda
def test_parts_strides_and_overlaps(device):
    """Elements are counted from where they are; arrays of one allocation overlap as they do."""
    whole = Theirs(device, np.arange(48, dtype=np.float32).reshape(6, 8))
    plane = Theirs(device, np.zeros((3, 4), np.float32))
    view = Theirs(device, np.zeros((3, 4), np.float32), strides=(64, -8), first=15)
    view.address = whole.address
    add_plane[(1, 1), (4, 4)](plane, view)
    expected = np.arange(48, dtype=np.float32).reshape(6, 8)[1:, ::-1]
    expected = np.lib.stride_tricks.as_strided(expected, (3, 4), (64, -8))
    assert (plane.get() == expected).all()
    line = Theirs(device, np.arange(100, dtype=np.float32))
    shifted = Theirs(device, np.zeros(50, np.float32), first=50)
    shifted.address = line.address
    add[1, N](shifted, Theirs(device, np.ones(50, np.float32)))
    add.launch(line, line, grid=2, block=N)
    model = np.arange(100, dtype=np.float32)
    model[50:] += 1
    assert (line.get() == 2 * model).all()


@on_cuda
def test_a_stream_is_honoured(device):
    """A launch goes to the stream that the array names, and nobody waits for it."""
    raw, number = stream_of(device)
    out = Theirs(device, np.zeros(N, np.float32), {"stream": number})
    x = Theirs(device, NUMBERS, {"stream": number})
    opened = None
    if is_fake(device):
        opened = sarek.device(device).driver.cuda.gate(raw)
    for _ in range(3):
        add[1, N](out, x)
    if opened is not None:
        assert len(raw.waiting) >= 4
        opened()
    with owner_context(device):
        sarek.device(device).driver.cuda.finish_stream(raw)
    assert (out.get() == 3 * NUMBERS).all()


@on_cuda
def test_two_streams(device):
    """The launch is behind what both were given; both go on behind it."""
    first, second = stream_of(device), stream_of(device)
    out = Theirs(device, np.zeros(N, np.float32), {"stream": first[1]})
    x = Theirs(device, NUMBERS, {"stream": second[1]})
    y = Theirs(device, np.zeros(N, np.float32), {"stream": second[1]})
    for _ in range(4):
        add[1, N](out, x)  # in the first
        add[1, N](y, out)  # in the second
    with owner_context(device):
        for raw, _ in (first, second):
            sarek.device(device).driver.cuda.finish_stream(raw)
    assert (out.get() == 4 * NUMBERS).all()
    assert (y.get() == (1 + 2 + 3 + 4) * NUMBERS).all()


@on_cuda
@pytest.mark.parametrize("more", [{}, {"version": 2}], ids=["ready", "not told"])
def test_without_a_stream_a_launch_is_waited_for(device, more):
    """Nobody else could."""
    out, x = Theirs(device, np.zeros(N, np.float32), more), Theirs(device, NUMBERS, more)
    add[1, N](out, x)
    if is_fake(device):
        found = (ctypes.c_float * N).from_address(out.address)
        assert list(found) == NUMBERS.tolist()
    assert (out.get() == NUMBERS).all()


@on_cuda
def test_with_vectors_and_numpy(device):
    """All are arguments together."""
    out, x = Theirs(device, np.zeros(N, np.float32)), sarek.vector(NUMBERS)
    y = sarek.zeros(N, np.float32)
    add[1, N](out, x)
    add[1, N](out, NUMBERS)
    add[1, N](y, out)
    assert (y == 2 * NUMBERS).all()
    assert (out.get() == 2 * NUMBERS).all()


@on_cuda
def test_an_array_of_nothing(device):
    """Without memory."""
    out = Theirs(device, np.zeros(N, np.float32))
    none = Theirs(device, np.zeros(1, np.float32), shape=(0,))
    none.address = 0
    add[1, N](none, none)
    assert (out.get() == 0).all()


@on_cuda
def test_what_is_refused(device):
    """By name, with nothing moved."""
    out, x = Theirs(device, np.zeros(N, np.float32)), Theirs(device, NUMBERS)
    readonly = Theirs(device, np.zeros(N, np.float32), {"data": (out.address, True)})
    masked = Theirs(device, NUMBERS, {"mask": x})
    with pytest.raises(ArgumentTypeError, match="'x' has a mask"):
        add[1, N](out, masked)
    with pytest.raises(CompileError, match="this array is read-only"):
        add[1, N](readonly, x)
    with pytest.raises(MixedDevices, match=f"'out' is memory of {device}.*'native'"):
        add.launch(out, x, grid=1, block=N, device="native")
    assert (out.get() == 0).all()


@pytest.mark.skipif(len(DEVICES) < 2, reason="there is one CUDA device")
def test_two_devices():
    """Arrays on two are refused; each alone has its launch there."""
    first, second = (Theirs(name, NUMBERS) for name in DEVICES[:2])
    with pytest.raises(MixedDevices, match=f"'out' is memory of {DEVICES[0]}.*{DEVICES[1]}"):
        add[1, N](first, second)
    add[1, N](second, second)
    assert (second.get() == 2 * NUMBERS).all()
    assert sarek.device(second).name == DEVICES[1]


@on_cuda
def test_memory_of_another_context(device):
    """Is refused; the fake has such memory."""
    if not is_fake(device):
        pytest.skip("there is one context")
    out, x = Theirs(device, np.zeros(N, np.float32)), Theirs(device, NUMBERS)
    api = sarek.device(device).driver.cuda
    home_of = api.home_of
    api.home_of = lambda address: (home_of(address)[0], 0xBAD)
    try:
        with pytest.raises(ArgumentTypeError, match="'out' is memory of another context of cuda"):
            add[1, N](out, x)
    finally:
        del api.home_of


# --- DLPack ---------------------------------------------------------------------------------------


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class ByDLPack:
    """Memory that only DLPack tells of; what it was asked is kept."""

    def __init__(self, theirs, shape, *, strides=None, offset=0, code=2, bits=32):
        self.theirs = theirs
        self.asked = []
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * len(shape))(*strides)
        number = int(theirs.device.partition(":")[2])
        self.tensor = _Tensor(
            data=theirs.address, device=(2, number), ndim=len(shape), code=code, bits=bits,
            lanes=1, shape=self.shape, byte_offset=offset,
        )  # fmt: skip
        if self.strides is not None:
            self.tensor.strides = self.strides

    def __dlpack_device__(self):
        return tuple(self.tensor.device)

    def __dlpack__(self, *, stream=None):
        self.asked.append(stream)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


@on_cuda
def test_dlpack(device):
    """Offsets and strides of elements; the library is told our stream, and the launch is done."""
    memory = Theirs(device, np.arange(2 * N, dtype=np.float32))
    out = Theirs(device, np.zeros(N, np.float32))
    x = ByDLPack(memory, (N,), strides=(2,), offset=4)
    counters.reset()
    add[1, N](ByDLPack(out, (N,)), x)
    assert (counters.uploads, counters.downloads) == (0, 0)
    owner = sarek.device(device).driver
    assert set(x.asked) == {owner.cuda.number(owner.stream.raw)}
    assert (out.get() == np.arange(1, 2 * N, 2)).all()


@on_cuda
def test_dlpack_of_elements_that_numpy_has_not(device):
    """An 8-bit float is refused by what it is."""
    out = Theirs(device, np.zeros(N, np.float32))
    with pytest.raises(ArgumentTypeError, match="'out' has elements of 8 bits of kind 10"):
        add[1, N](ByDLPack(out, (N,), code=10, bits=8), out)


@on_cuda
def test_dlpack_of_bfloat16(device):
    """bfloat16, which NumPy has by another library, is an element as others."""
    half = np.dtype(ml_dtypes.bfloat16)
    out = Theirs(device, np.zeros(N, np.uint16))
    x = np.linspace(-3, 3, N, dtype=np.float32).astype(half)
    memory = Theirs(device, x.view(np.uint16))
    add[1, N](ByDLPack(out, (N,), code=4, bits=16), ByDLPack(memory, (N,), code=4, bits=16))
    assert np.array_equal(out.get().view(half), x)


@on_cuda
def test_what_is_not_exported(device):
    """An array whose library refuses, and one whose capsule is another's."""
    out = Theirs(device, np.zeros(N, np.float32))
    x = ByDLPack(out, (N,))

    def refuse(**options):
        raise BufferError("it has a gradient")

    for export, words in ((refuse, "it has a gradient"), (lambda **_: 7, "PyCapsule")):
        x.__class__ = type("Other", (ByDLPack,), {"__dlpack__": lambda _, e=export, **o: e(**o)})
        with pytest.raises(ArgumentTypeError, match=f"'x' is not exported by DLPack.*{words}"):
            add[1, N](out, x)


# --- the libraries --------------------------------------------------------------------------------


@on_cuda
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_libraries(device, library):
    """On their current streams: what they do before and after is in order, without waiting."""
    module = pytest.importorskip(library)
    if is_fake(device) or device != DEVICES[0]:
        pytest.skip("no memory of this library")
    stream = module.cuda.Stream()
    with stream if library == "cupy" else module.cuda.stream(stream):
        made = module.ones(1 << 20, dtype=module.float32, **where(library))
        out = module.zeros(1 << 20, dtype=module.float32, **where(library))
        for _ in range(20):
            made += 1
            add.forall(1 << 20)(out, made)
            made *= 1
        total = out.sum(dtype=module.float64)  # exact in any order
    stream.synchronize()
    assert int(total) == sum(range(2, 22)) << 20
    assert add.forall(4)(out[:8:2], out[1:8:2]) is None
    assert out[:2].tolist() == [2 * sum(range(2, 22)), sum(range(2, 22))]


def where(library):
    return {"device": "cuda"} if library == "torch" else {}
