"""Cases from the field: lifetime, processes, memory (section L), copies of vectors (section F)."""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import subprocess
import sys

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import CompileError, DeviceLost, OutOfMemory
from sarek_numba.execute import window

DEVICES = [device.name for device in sarek.devices()]
on_devices = pytest.mark.parametrize("device", DEVICES)
on_windows = pytest.mark.parametrize("enabled", [True, False])
HAVE_MEMORY = [name for name in DEVICES if sarek.device(name).driver.memory is not None]


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
def copy(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i]


@sarek.kernel
def fill(out, value):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = value


@sarek.kernel
def weighted(out, a, b, c):
    i, j = sarek.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = a[i, j] * 100 + b[i, j] * 10 + c[i, j]


# --- vectors: orders, offsets, exchange -----------------------------------------------------------


@on_devices
@on_windows
def test_case_94_vectors(device, enabled):
    """Vectors of different memory orders are combined by index, not in the order of memory."""
    window.configure(enabled=enabled)
    base = np.arange(35, dtype=np.float32).reshape(5, 7)
    wide = sarek.vector(np.repeat(np.repeat(base, 2, 0), 3, 1))
    orders = {
        "c": sarek.vector(base),
        "fortran": sarek.vector(np.asfortranarray(base)),
        "strided": wide[::2, ::3],
        "transposed": sarek.vector(base.T.copy()).T,
        "broadcast": sarek.vector(np.broadcast_to(base[1], (5, 7))),
    }
    names = list(orders)
    for k in range(len(names)):
        a, b, c = (orders[names[(k + step) % len(names)]] for step in (0, 1, 3))
        for order in "CF":
            out = sarek.vector(np.full((5, 7), np.nan, np.float32, order=order))
            for _ in range(3):
                weighted.launch(out, a, b, c, grid=(2, 2), block=(4, 4), device=device)
            expected = np.asarray(a) * 100 + np.asarray(b) * 10 + np.asarray(c)
            assert np.array_equal(out, expected), (names[k], order)


@on_devices
@on_windows
def test_case_98_vectors(device, enabled):
    """Copies and fills of strided parts write those elements alone, by kernels and by the host."""
    window.configure(enabled=enabled)
    out, x = sarek.full(24, -1, np.int16), sarek.arange(100, 120, dtype=np.int16)
    model, values = np.full(24, -1, np.int16), np.arange(100, 120, dtype=np.int16)
    for step in (1, 2, 3):
        copy.launch(out[3:20:4], x[1:11:2], grid=1, block=8, device=device)
        model[3:20:4] = values[1:11:2]
        fill.launch(out[5 + step :: 7], np.int16(step), grid=1, block=8, device=device)
        model[5 + step :: 7] = step
        x[step:20:4] = -step
        values[step:20:4] = -step
    assert np.array_equal(out, model)
    assert np.array_equal(x, values)


@on_devices
def test_case_98_far_apart(device):
    """Views 2 GiB apart in one array: an offset of more than 31 bits."""
    space = np.zeros(2**31 + 4096, np.uint8)
    near, far = space[8:16], space[2**31 + 16 : 2**31 + 32 : 2]
    near[:] = np.arange(8) + 1
    copy.launch(far, near, grid=1, block=8, device=device)
    fill.launch(near, np.uint8(9), grid=1, block=8, device=device)
    assert far.tolist() == list(range(1, 9))
    assert space[2**31 + 15 : 2**31 + 33].tolist() == [
        0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 0
    ]  # fmt: skip
    assert near.tolist() == [9] * 8


class _Tensor(ctypes.Structure):
    """DLManagedTensor"""

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


class WithOffset:
    """Exports memory from an offset that DLPack states apart from the address."""

    def __init__(self, memory, offset, count, code, bits):
        self.memory = memory
        self.shape = (ctypes.c_int64 * 1)(count)
        self.tensor = _Tensor(
            data=memory.ctypes.data, device=(1, 0), ndim=1, code=code, bits=bits, lanes=1,
            shape=self.shape, byte_offset=offset,
        )  # fmt: skip

    def __dlpack__(self, **options):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self.tensor), b"dltensor", None)

    def __dlpack_device__(self):
        return (1, 0)


@on_devices
@pytest.mark.parametrize("offset", [0, 12, 2**31 + 20])
def test_case_103_offsets(device, offset):
    """A byte offset of DLPack counts, also beyond 32 bits; as an argument and as a vector."""
    memory = np.zeros(offset + 64, np.uint8)
    memory[offset : offset + 20].view(np.float32)[:] = np.arange(5) + 0.5
    given = WithOffset(memory, offset, 5, 2, 32)
    out, other = sarek.zeros(5, np.float32), np.zeros(5, np.float32)
    copy.launch(out, sarek.from_dlpack(given), grid=1, block=8, device=device)
    copy.launch(other, given, grid=1, block=8, device=device)
    assert out.tolist() == other.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]


@on_devices
def test_case_103_kinds(device):
    """Parts, bool, nothing at all, float16."""
    x = np.arange(8.0)
    for part in (x[3:], x[1::2], x[::-1], x[:0]):
        out = sarek.zeros(len(part), np.float64)
        copy.launch(out, sarek.from_dlpack(part), grid=1, block=8, device=device)
        assert np.array_equal(out, part)
    flags = np.array([True, False, True])
    chosen = sarek.zeros(3, np.bool_)
    copy.launch(chosen, sarek.from_dlpack(flags), grid=1, block=8, device=device)
    assert chosen.tolist() == [True, False, True]
    halves = sarek.zeros(8, np.float16)
    given = sarek.from_dlpack(x.astype(np.float16))
    copy.launch(halves, given, grid=1, block=8, device=device)
    assert halves.tolist() == x.tolist()


# --- lifetime -------------------------------------------------------------------------------------


@on_devices
@on_windows
@pytest.mark.parametrize("make", [np.array, sarek.vector])
def test_case_151_temporaries(device, make, enabled):
    """Arguments that nobody has any more when the launch returns, on a stream and without."""
    window.configure(enabled=enabled)
    out = sarek.zeros(64, np.int64)
    model = np.zeros(64, np.int64)
    for stream in (None, sarek.device(device).stream()):
        for k in range(40):
            given = np.full(64, k, np.int64)
            add.launch(out, make(given), grid=1, block=64, device=device, stream=stream)
            model += k
            given[:] = -1
            if k % 8 == 0:
                gc.collect()
        assert np.array_equal(out, model)


DTYPES = (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.float32)


@on_devices
@pytest.mark.parametrize("make", [np.array, sarek.vector])
def test_case_152_addresses(device, make):
    """Small arrays made and dropped again, of many types and lengths, where others were."""
    steps = {"native": 50_000, "interpreter": 300}.get(device, 2_000)
    rng = np.random.default_rng(152)
    lengths = rng.integers(1, 9, steps).tolist()
    with sarek.use_device(device):
        launch = copy[1, 8]
        for step, length in enumerate(lengths):
            dtype = DTYPES[step * 5 % 7]
            out, x = make(np.zeros(length, dtype)), make(np.full(length, step % 100, dtype))
            launch(out, x)
            assert out[length - 1] == out[0] == step % 100, (step, dtype)


def in_child(work):
    """What a forked child says, within a minute; nothing that it does reaches the tests."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, work().encode())
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(write)
    try:
        ready, _, _ = select.select([read], [], [], 60)
        if not ready:
            os.kill(child, signal.SIGKILL)
            return "it hangs"
        return os.read(read, 4096).decode()
    finally:
        os.waitpid(child, 0)
        os.close(read)


def on_native():
    """Another device works in a child that lost one."""
    out = sarek.ones(3, np.int32)
    add.launch(out, np.ones(3, np.int32), grid=1, block=8, device="native")
    return str(out[2])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@on_devices
@pytest.mark.parametrize("make", [np.array, sarek.vector])
def test_case_155_fork(device, make):
    """After a launch, a child launches too, or is told why not; the parent goes on."""
    out, x = make(np.zeros(100_000, np.int32)), make(np.arange(100_000, dtype=np.int32))

    def launch():
        add.launch(out, x, grid=400, block=256, device=device)

    def work():
        launch()
        return f"last is {out[99_999]}"

    for times in (3, 6):
        for _ in range(3):
            launch()
        said = in_child(work)
        if device in HAVE_MEMORY:
            assert said.startswith(f"{DeviceLost.__name__}: "), said
            assert "was opened before this process was forked" in said
            assert "hint: multiprocessing.set_start_method" in said
            assert in_child(on_native) == "2"
        else:
            assert said == f"last is {99_999 * (times + 1)}"
        assert out[99_999] == 99_999 * times


SPAWN = """
import multiprocessing, sys
import numpy as np
import sarek_numba as sarek

@sarek.kernel
def double(x):
    x[sarek.global_idx.x] *= 2

def work(device):
    x = sarek.ones(8, np.int32)
    for _ in range(3):
        double.launch(x, grid=1, block=8, device=device)
    return x.tolist()

if __name__ == "__main__":
    device = sys.argv[1]
    here = work(device)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(work, [device]) == [here] == [[8] * 8]
    print("alike")
"""


@on_devices
def test_case_155_spawn(device, tmp_path):
    """A spawned process opens the devices for itself."""
    path = tmp_path / "spawning.py"
    path.write_text(SPAWN)
    command = [sys.executable, str(path), device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "alike\n"), done.stderr


@pytest.mark.parametrize("device", HAVE_MEMORY)
def test_case_157_no_memory(device, monkeypatch):
    """Twice the device's memory: the error has the bytes and the device, which works on."""
    driver = sarek.device(device).driver
    asked = 2 * driver.record.limits.global_bytes
    with pytest.raises(OutOfMemory, match="allocating") as error:
        driver.memory._allocate(asked)
    assert error.value.asked == asked
    assert 0 < error.value.available < asked
    name = driver.device.name if driver.record.backend == "opencl" else device
    assert name in str(error.value)
    out, x = sarek.ones(8, np.int32), sarek.ones(8, np.int32)

    def full(memory):
        return driver.memory._allocate(asked)

    with monkeypatch.context() as patched:
        patched.setattr(driver.memory, "hold", full)
        for _ in range(2):
            with pytest.raises(OutOfMemory, match=name):
                add.launch(out, x, grid=1, block=8, device=device)
        assert out.is_current()
    add.launch(out, x, grid=1, block=8, device=device)
    assert out.tolist() == [2] * 8


@on_devices
@on_windows
def test_case_160_neighbours(device, enabled):
    """Upload of one buffer, fill of another, copy of a third, over and over: each stays its own."""
    window.configure(enabled=enabled)
    repeats = 1000 if device != "interpreter" else 60
    a, b, c = (sarek.zeros(33, np.int32) for _ in range(3))
    for step in range(repeats):
        a[:] = step
        fill.launch(b, np.int32(-step), grid=1, block=64, device=device)
        copy.launch(c, a, grid=1, block=64, device=device)
        if step % 50 == 0 or step == repeats - 1:
            assert (a.tolist(), b.tolist(), c.tolist()) == (
                [step] * 33, [-step] * 33, [step] * 33,
            )  # fmt: skip


@sarek.kernel
def with_list(out):
    values = [1, 2, 3]
    out[0] = values[0]


@sarek.kernel
def with_dict(out):
    values = {1: 2}
    out[0] = values[1]


@sarek.kernel
def with_string(out):
    word = "a" + str(len(out))
    out[0] = len(word)


@sarek.kernel
def with_array(out):
    values = np.zeros(3)
    out[0] = values[0]


@sarek.kernel
def with_set(out):
    out[0] = len({1, 2})


@on_devices
@pytest.mark.parametrize(
    "kernel", [with_list, with_dict, with_string, with_array, with_set], ids=lambda k: k.__name__
)
def test_case_161_constructs(device, kernel):
    """What a kernel cannot have is refused where it stands, each time; nothing runs."""
    out = sarek.full(1, 7, np.int32)
    for _ in range(2):
        with pytest.raises(CompileError) as error:
            kernel.launch(out, grid=1, block=1, device=device)
        assert error.value.span is not None
        assert error.value.span.file == __file__
    assert out.is_current()
    assert out[0] == 7
