"""The layer below launches: external kernels, launches of IR, what moves."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.errors import (
    ArgumentCountError,
    ArgumentTypeError,
    InvalidArgument,
    InvalidDimensions,
    InvalidFile,
    LengthOverflow,
    SourceCompilationError,
    StreamError,
    TransferFailed,
    UnsupportedLanguage,
)
from sarek_numba.execute import Language
from sarek_numba.runtime.cache import counters

DEVICES = [device.name for device in sarek.devices()]
OPENCL = [name for name in DEVICES if name.startswith("opencl")]
on_devices = pytest.mark.parametrize("device", DEVICES)
on_opencl = pytest.mark.parametrize("device", OPENCL)

SAXPY = """
kernel void saxpy(global float *y, int y_length, global const float *x, int x_length, float a) {
    int i = get_global_id(0);
    if (i < y_length && i < x_length) y[i] += a * x[i];
}
kernel void count(global int *out, int n, long wide, local int *scratch) {
    scratch[0] = n;
    out[0] = scratch[0] + (int)wide;
}
"""


@sarek.kernel
def saxpy(y, x, a):
    i = sarek.global_idx.x
    if i < len(y):
        y[i] += a * x[i]


def arrays(make=np.array):
    return make(np.ones(100, np.float32)), make(np.arange(100, dtype=np.float32))


# --- external kernels -----------------------------------------------------------------------------


@on_opencl
@pytest.mark.parametrize("make", [np.array, sarek.vector])
def test_a_source_with_lengths(device, make):
    """A length follows each array; a Python number takes the type of its parameter."""
    y, x = arrays(make)
    run = [device, SAXPY, Language.OPENCL, "saxpy", [y, x, 2], 64, 2]
    execute.run_source(*run)
    counters.reset()
    execute.run_source(*run)
    assert (y == 1 + 4 * np.arange(100)).all()
    assert counters.compiles == 0


@on_opencl
def test_a_source_without_lengths_and_with_shared_bytes(device):
    """Arguments exactly as given: a user's int is no length."""
    out = sarek.zeros(1, np.int32)
    arguments = [out, np.int32(7), np.int64(35)]
    execute.run_source(
        device, SAXPY, Language.OPENCL, "count", arguments, 1, 1, 64, inject_lengths=False
    )
    assert out[0] == 42


@on_opencl
def test_parts_of_vectors(device):
    """A contiguous part is a pointer of its own, wherever it begins."""
    y, x = arrays(sarek.vector)
    execute.run_source(device, SAXPY, Language.OPENCL, "saxpy", [y[3:50], x[:47], 1.0], 64, 1)
    expected, values = arrays()
    expected[3:50] += values[:47]
    assert (y == expected).all()


@on_opencl
def test_a_file(device, tmp_path):
    """The suffix tells the language."""
    path = tmp_path / "saxpy.cl"
    path.write_text(SAXPY)
    y, x = arrays()
    execute.run_source_file(device, path, "saxpy", [y, x, 3.0], 128, 1)
    assert (y == 1 + 3 * x).all()


def test_files_that_are_none(tmp_path):
    """Unknown suffixes and missing files are named."""
    assert execute.detect_language("a.b.CU") is Language.CUDA
    assert execute.detect_language("x.comp") is execute.detect_language("x.glsl") is Language.GLSL
    with pytest.raises(InvalidFile, match=r"no language has the suffix '\.txt'"):
        execute.detect_language("kernel.txt")
    with pytest.raises(InvalidFile, match="cannot be read"):
        execute.load_source(tmp_path / "gone.cl")
    binary = tmp_path / "k.spv"
    binary.write_bytes(b"\x03\x02")
    assert execute.load_source(binary) == b"\x03\x02"


TAKEN = {  # by backend
    "opencl": "it takes OPENCL",
    "cuda": "it takes CUDA, PTX",
    "hip": "it takes HIP",
    "vulkan": "it takes GLSL, SPIRV",
    "metal": "it takes METAL",
}


@on_devices
def test_languages(device):
    """A device takes what its API compiles, and says what that is."""
    assert execute.supports_language(device, Language.OPENCL) == (device in OPENCL)
    assert execute.supports_language(device, Language.METAL) == device.startswith("metal")
    hint = TAKEN.get(device.partition(":")[0], "kernels of this package alone")
    other = Language.HIP if device.startswith("metal") else Language.METAL
    with pytest.raises(UnsupportedLanguage, match=hint):
        execute.run_source(device, "", other, "k", [], 1, 1)


WRONG = [
    ([np.zeros(3, np.float32)], ArgumentCountError, "5 parameters, and the arguments fill 2"),
    ([1, 2, 3, 4, 5.0], ArgumentTypeError, "argument 0 is the Python int 1, and its parameter"),
    (
        [np.zeros(4, np.float32), np.zeros(4, np.float32), np.float64(1)],
        ArgumentTypeError,
        "argument 2 is of float64, and its parameter is float32",
    ),
    (
        [np.zeros(4, np.float32), np.zeros(8, np.float32)[::2], 1.0],
        ArgumentTypeError,
        "argument 1 is an array with gaps",
    ),
    ([np.zeros(4, np.float32), np.zeros(4, np.float32), "a"], ArgumentTypeError, "is a str"),
    ([np.zeros(4, ">f4"), np.zeros(4, np.float32), 1.0], ArgumentTypeError, "another machine"),
]


@on_opencl
@pytest.mark.parametrize(("arguments", "error", "message"), WRONG)
def test_wrong_arguments_of_a_source(device, arguments, error, message):
    """Each is named, and nothing has moved or run."""
    counters.reset()
    with pytest.raises(error, match=message):
        execute.run_source(device, SAXPY, Language.OPENCL, "saxpy", arguments, 1, 1)
    assert (counters.launches, counters.uploads) == (0, 0)


@on_opencl
def test_wrong_launches_of_a_source(device):
    """Blocks, names, streams and texts."""
    y, x = arrays()
    good = device, SAXPY, Language.OPENCL, "saxpy", [y, x, 1.0]
    with pytest.raises(InvalidDimensions, match="block"):
        execute.run_source(*good, 0, 1)
    with pytest.raises(InvalidDimensions, match="grid"):
        execute.run_source(*good, 1, (1, -1))
    with pytest.raises(InvalidArgument, match="no kernel 'daxpy'\n  hint: it has count, saxpy"):
        execute.run_source(device, SAXPY, Language.OPENCL, "daxpy", [], 1, 1)
    with pytest.raises(SourceCompilationError):
        execute.run_source(device, "kernel void k( {", Language.OPENCL, "k", [], 1, 1)
    with pytest.raises(StreamError):
        execute.run_source(*good, 1, 1, stream="s")


@on_opencl
def test_a_length_that_no_int32_holds(device):
    """Refused before the array is touched: it is longer than its memory."""
    long = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (2**31,), (1,), writeable=False)
    with pytest.raises(LengthOverflow, match="2147483648 elements"):
        execute.run_source(device, SAXPY, Language.OPENCL, "saxpy", [long, 1.0], 1, 1)


# --- IR -------------------------------------------------------------------------------------------


@on_devices
@pytest.mark.parametrize("make", [np.array, sarek.vector])
def test_a_launch_of_ir(device, make):
    """One argument for each of the kernel's; IR may be made when it is needed."""
    y, x = arrays(make)
    ir = saxpy.ir(sarek.float32[:], sarek.float32[:], sarek.float32)
    execute.run_vectors(device, ir, [y, x, np.float32(2)], 64, 2)
    execute.run_vectors(device, lambda: ir, [y, x, 0.5], 64, 2)
    assert (y == 1 + 2.5 * np.arange(100)).all()


F32, F64 = np.zeros(4, np.float32), np.zeros(4, np.float64)
WRONG_IR = [
    ([F32, F32], ArgumentCountError, "takes 3 arguments, and 2 are given"),
    ([F32, F64, 1.0], ArgumentTypeError, "'x' is a 1-D array of float64, and its IR declares"),
    ([F32, 1.0, F32], ArgumentTypeError, "'x' is a Python float"),
    ([F32, F32, F32], ArgumentTypeError, "'a' is a 1-D array of float32"),
    ([F32, F32, np.float64(1)], ArgumentTypeError, "'a' is a scalar of float64"),
    ([F32, F32, 1], ArgumentTypeError, "'a' is a Python int"),
    ([F32[::2], F32, 1.0], ArgumentTypeError, "float32, strided, writable, and .* in C order"),
    ([np.broadcast_to(F32, 4), F32, 1.0], ArgumentTypeError, "read-only, and .*, writable"),
    ([F32.reshape(2, 2), F32, 1.0], ArgumentTypeError, "'y' is a 2-D array"),
    ([F32, F32, None], ArgumentTypeError, "'a' is None"),
]


@on_devices
@pytest.mark.parametrize(("arguments", "error", "message"), WRONG_IR)
def test_wrong_arguments_of_ir(device, arguments, error, message):
    """Exactly what the IR declares, or a refusal that names the parameter."""
    ir = saxpy.ir(sarek.float32[:], sarek.float32[:], sarek.float32)
    counters.reset()
    with pytest.raises(error, match=message):
        execute.run_vectors(device, ir, arguments, 4, 1)
    assert (counters.launches, counters.uploads) == (0, 0)


# --- what moves -----------------------------------------------------------------------------------


@on_devices
def test_moving_everything_there_and_back(device):
    """`transfer_all` uploads the vectors, `sync_all` brings back what is newer."""
    y, x = arrays(sarek.vector)
    execute.transfer_all([y, 1, x], device)
    assert y.is_current(device)
    assert x.is_current(device)
    counters.reset()
    saxpy.launch(y, x, np.float32(1), grid=1, block=128, device=device)
    assert counters.uploads == 0
    execute.sync_all([y, x, None])
    assert y.is_current()
    assert (y == 1 + np.arange(100)).all()


@on_devices
def test_device_buffers(device):
    """The buffer of the API, once there is one; asking transfers nothing."""
    y, _ = arrays(sarek.vector)
    with pytest.raises(TransferFailed, match="no buffer on"):
        execute.device_buffer(y, device)
    if sarek.device(device).driver.memory is None:
        execute.mark_stale([y], device)
        assert y.is_current()
        return
    with pytest.raises(TransferFailed, match="never used there"):
        execute.mark_stale([y], device)
    y.to(device)
    counters.reset()
    buffer = execute.device_buffer(y, device)
    if device.startswith(("opencl", "vulkan")):
        assert buffer.size >= y.nbytes  # memory of a device's own comes in size classes
    elif device.startswith("metal"):
        assert buffer.length() >= y.nbytes
    else:
        assert buffer > 0  # an address
    assert counters.uploads == counters.downloads == 0
    execute.mark_stale([y], device)
    assert not y.is_current()
    assert (y == 1).all()
    assert counters.downloads == 1


def test_dimensions():
    """Ceiling division, and axes that are one."""
    assert execute.dims_1d(3) == (3, 1, 1)
    assert execute.dims_2d(3, 4) == (3, 4, 1)
    assert execute.dims_3d(3, 4, 5) == (3, 4, 5)
    blocks = [execute.grid_for(n, 256)[0] for n in (0, 1, 255, 256, 257)]
    assert blocks == [0, 1, 1, 1, 2]
    assert execute.grid_for_size(1000) == ((4, 1, 1), (256, 1, 1))
