"""Bad input at a launch: the error, its text, untouched data, and a process that goes on.

Each case launches a good kernel with one thing wrong. It must be refused twice with one text, bind
nothing, change nothing, and a good launch must work after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import errors
from tests.unit.fake_backend import fake_device

__all__ = ["fake_device"]


@sarek.kernel
def scale(out, x, factor=2.0):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i] * factor


@sarek.kernel
def stated(out: sarek.float32[:], x: sarek.float32[:, :], n: sarek.int32):
    i = sarek.global_idx.x
    if i < n:
        out[i] = x[i, 0]


@sarek.kernel
def tiled(out, x):
    tile = sarek.shared.array(200, sarek.float32)
    region = sarek.shared.array(0, sarek.float32)
    i = sarek.thread_idx.x
    tile[i] = x[i]
    region[i] = x[i]
    sarek.barrier()
    out[i] = tile[i] + region[i]


@sarek.kernel
def doubles(out, x):
    out[0] = x[0] * 2.0


OUT = np.arange(8, dtype=np.float32)
X = np.ones(8, np.float32)
MATRIX = np.ones((8, 2), np.float32)
READ_ONLY = np.ones(8, np.float32)
READ_ONLY.flags.writeable = False
PARAMETERS = "\n  note: its parameters are (out, x, factor)"

CASES: dict[str, tuple[type[Exception], Callable[[], Any], str]] = {
    "no brackets": (
        errors.LaunchError,
        lambda: scale(OUT, X),
        "kernel 'scale' is launched with a grid and a block, not called\n"
        "  hint: scale[grid, block](...) or scale.forall(n)(...)",
    ),
    "one number in brackets": (
        errors.InvalidDimensions,
        lambda: scale[1],
        "kernel 'scale' is launched as scale[grid, block](...), not as scale[1]\n"
        "  hint: or as scale[grid, block, stream, shared_bytes](...) or scale.forall(n)(...)",
    ),
    "an argument too few": (
        errors.ArgumentCountError,
        lambda: scale[1, 8](OUT),
        f"kernel 'scale' misses argument 'x'{PARAMETERS}",
    ),
    "an argument too many": (
        errors.ArgumentCountError,
        lambda: scale[1, 8](OUT, X, 1.0, 1.0),
        f"kernel 'scale' takes 3 arguments, and 4 were given{PARAMETERS}",
    ),
    "no argument": (
        errors.ArgumentCountError,
        lambda: scale[1, 8](),
        f"kernel 'scale' misses arguments 'out', 'x'{PARAMETERS}",
    ),
    "unknown keyword": (
        errors.ArgumentCountError,
        lambda: scale[1, 8](OUT, X, faktor=3.0),
        f"kernel 'scale' has no parameter 'faktor' to be given by name{PARAMETERS}\n"
        "  hint: did you mean 'factor'?",
    ),
    "repeated argument": (
        errors.ArgumentCountError,
        lambda: scale[1, 8](OUT, X, x=X),
        "kernel 'scale': argument 'x' is given by position and by name",
    ),
    "device in the call": (
        errors.ArgumentCountError,
        lambda: scale[1, 8](OUT, X, device="native"),
        f"kernel 'scale' has no parameter 'device' to be given by name{PARAMETERS}\n"
        "  hint: scale.launch(..., grid=, block=) takes device=",
    ),
    "a list": (
        errors.ArgumentTypeError,
        lambda: scale[1, 8](OUT, [1.0, 2.0]),
        "kernel 'scale': argument 'x' is a list; a kernel takes NumPy arrays and numbers\n"
        "  hint: pass a NumPy array, as in numpy.asarray(x)",
    ),
    "a string": (
        errors.ArgumentTypeError,
        lambda: scale[1, 8](OUT, X, "2"),
        "kernel 'scale': argument 'factor' is a str; a kernel takes NumPy arrays and numbers\n"
        "  hint: pass a NumPy array or a number",
    ),
    "big-endian": (
        errors.ArgumentTypeError,
        lambda: scale[1, 8](OUT, X.astype(">f4")),
        "kernel 'scale': argument 'x' is an array of >f4, whose bytes are in the order of another "
        "machine\n  hint: convert it before the launch: x = x.astype(x.dtype.newbyteorder('='))",
    ),
    "objects": (
        errors.ArgumentTypeError,
        lambda: scale[1, 8](OUT, X.astype(object)),
        "kernel 'scale': argument 'x' is an array of object: Python objects are not taken\n"
        "  hint: convert it to a number type, as in x.astype(numpy.float64)",
    ),
    "an int beyond int64": (
        errors.ArgumentTypeError,
        lambda: scale[1, 8](OUT, X, 2**64),
        "kernel 'scale': argument 'factor' is 18446744073709551616, a Python int beyond int64\n"
        "  hint: a value from 0 to 2**64 - 1 can be passed as numpy.uint64(factor)",
    ),
    "element type other than stated": (
        errors.ArgumentTypeError,
        lambda: stated[1, 8](OUT.astype(np.float64), MATRIX, 8),
        "kernel 'stated': argument 'out' is a 1-D array of float64, "
        "and the kernel states a 1-D array of float32\n"
        "  hint: convert it before the launch: out = out.astype(numpy.float32)",
    ),
    "axes other than stated": (
        errors.ArgumentTypeError,
        lambda: stated[1, 8](OUT, X, 8),
        "kernel 'stated': argument 'x' is a 1-D array of float32, "
        "and the kernel states a 2-D array of float32\n  hint: pass an array of 2 axes",
    ),
    "an array for a scalar": (
        errors.ArgumentTypeError,
        lambda: stated[1, 8](OUT, MATRIX, X),
        "kernel 'stated': argument 'n' is a 1-D array of float32, "
        "and the kernel states a scalar of int32\n  hint: pass a number, as in numpy.int32(1)",
    ),
    "a scalar for an array": (
        errors.ArgumentTypeError,
        lambda: stated[1, 8](3, MATRIX, 8),
        "kernel 'stated': argument 'out' is the Python int 3, "
        "and the kernel states a 1-D array of float32\n  hint: pass an array",
    ),
    "a scalar of another width": (
        errors.ArgumentTypeError,
        lambda: stated[1, 8](OUT, MATRIX, np.int64(8)),
        "kernel 'stated': argument 'n' is a scalar of int64, "
        "and the kernel states a scalar of int32\n  hint: convert it, as in numpy.int32(n)",
    ),
    "a number that does not fit": (
        errors.ArgumentTypeError,
        lambda: stated[1, 8](OUT, MATRIX, 2**31),
        "kernel 'stated': argument 'n' is the Python int 2147483648, "
        "and the kernel states a scalar of int32\n  hint: int32 takes -2147483648 to 2147483647",
    ),
    "a complex number where a real one is stated": (
        errors.ArgumentTypeError,
        lambda: stated[1, 8](OUT, MATRIX, 8j),
        "kernel 'stated': argument 'n' is the Python complex 8j, "
        "and the kernel states a scalar of int32\n  hint: pass n.real",
    ),
    "an array of complex numbers where one of real ones is stated": (
        errors.ArgumentTypeError,
        lambda: stated[1, 8](OUT, MATRIX.astype(np.complex64), 8),
        "kernel 'stated': argument 'x' is a 2-D array of complex64, "
        "and the kernel states a 2-D array of float32\n  hint: pass x.real",
    ),
    "records with bytes in another order": (
        errors.ArgumentTypeError,
        lambda: scale[1, 8](OUT, np.zeros(8, [("a", np.float32), ("b", [("c", ">f4")])])),
        "kernel 'scale': argument 'x' is an array of records: field 'b.c' is float32 in the byte "
        "order '>'\n"
        "  hint: convert it with a.astype(a.dtype.newbyteorder('='))",
    ),
    "a record with bytes in another order": (
        errors.ArgumentTypeError,
        lambda: scale[1, 8](OUT, X, np.zeros(3, [("a", ">f4")])[1]),
        "kernel 'scale': argument 'factor' is a record: field 'a' is float32 in the byte order "
        "'>'\n  hint: convert it with a.astype(a.dtype.newbyteorder('='))",
    ),
    "a record where a number is stated": (
        errors.ArgumentTypeError,
        lambda: stated[1, 8](OUT, MATRIX, np.zeros((), [("a", np.int32)])),
        "kernel 'stated': argument 'n' is a record (a), and the kernel states a scalar of int32\n"
        "  hint: pass a number, as in numpy.int32(1)",
    ),
    "raw bytes": (
        errors.ArgumentTypeError,
        lambda: scale[1, 8](OUT, X, np.void(b"abc")),
        "kernel 'scale': argument 'factor' is of |V3: raw bytes are not taken\n"
        "  hint: pass them as numbers, numpy.frombuffer(factor, numpy.uint8)",
    ),
    "a function": (
        errors.ArgumentTypeError,
        lambda: scale[1, 8](OUT, X, np.sin),
        "kernel 'scale': argument 'factor' is a ufunc; a kernel takes NumPy arrays and numbers\n"
        "  hint: a kernel uses functions by their names, and takes none as arguments",
    ),
    "zero grid": (
        errors.InvalidDimensions,
        lambda: scale[0, 8](OUT, X),
        "kernel 'scale': grid 0 has an axis of 0; each must be at least 1",
    ),
    "negative block": (
        errors.InvalidDimensions,
        lambda: scale[1, (8, -1)](OUT, X),
        "kernel 'scale': block (8, -1) has an axis of -1; each must be at least 1",
    ),
    "float grid": (
        errors.InvalidDimensions,
        lambda: scale[8 / 4, 8](OUT, X),
        "kernel 'scale': grid 2.0 holds a float\n"
        "  hint: give an int, or a tuple of one to three ints",
    ),
    "bool block": (
        errors.InvalidDimensions,
        lambda: scale[1, True](OUT, X),
        "kernel 'scale': block True holds a bool\n"
        "  hint: give an int, or a tuple of one to three ints",
    ),
    "four axes": (
        errors.InvalidDimensions,
        lambda: scale[(1, 1, 1, 1), 8](OUT, X),
        "kernel 'scale': grid (1, 1, 1, 1) has 4 axes\n"
        "  hint: give an int, or a tuple of one to three ints",
    ),
    "block beyond the device": (
        errors.InvalidDimensions,
        lambda: scale[1, 257](OUT, X),
        "kernel 'scale': block (257, 1, 1) is 257 threads; device 'fake:0' takes at most 256",
    ),
    "block axis beyond the device": (
        errors.InvalidDimensions,
        lambda: scale[1, (1, 1, 65)](OUT, X),
        "kernel 'scale': block (1, 1, 65) is 65 along z; device 'fake:0' takes at most 64",
    ),
    "grid beyond the device": (
        errors.InvalidDimensions,
        lambda: scale[(1, 501), 8](OUT, X),
        "kernel 'scale': grid (1, 501, 1) is 501 along y; device 'fake:0' takes at most 500",
    ),
    "forall of more blocks than the device takes": (
        errors.InvalidDimensions,
        lambda: scale.forall(8001, block=8)(OUT, X),
        "kernel 'scale': grid (1001, 1, 1) is 1001 along x; device 'fake:0' takes at most 1000",
    ),
    "negative forall": (
        errors.InvalidDimensions,
        lambda: scale.forall(-1)(OUT, X),
        "kernel 'scale': forall takes an int of at least 0, not -1",
    ),
    "forall of nothing checks its arguments": (
        errors.ArgumentCountError,
        lambda: scale.forall(0)(OUT),
        f"kernel 'scale' misses argument 'x'{PARAMETERS}",
    ),
    "negative shared bytes": (
        errors.InvalidDimensions,
        lambda: scale[1, 8, None, -4](OUT, X),
        "kernel 'scale': shared_bytes is -4; it must be an int of at least 0",
    ),
    "float shared bytes": (
        errors.InvalidDimensions,
        lambda: scale.launch(OUT, X, grid=1, block=8, shared_bytes=4.0),  # type: ignore[arg-type]
        "kernel 'scale': shared_bytes is a float, 4.0; it must be an int of at least 0",
    ),
    "shared bytes beyond the device": (
        errors.InvalidDimensions,
        lambda: tiled[1, 8, None, 232](OUT, X),
        "kernel 'tiled' asks for 1032 bytes of shared memory a block (800 static and 232 dynamic); "
        "device 'fake:0' has 1024",
    ),
    "a stream": (
        errors.StreamError,
        lambda: scale[1, 8, 7](OUT, X),
        "kernel 'scale': stream 7 is refused: device 'fake:0' has none\n"
        "  hint: leave the stream out; a launch has finished when it returns",
    ),
    "unknown device": (
        errors.UnknownDevice,
        lambda: scale.launch(OUT, X, grid=1, block=8, device="fake:2"),
        "no device is named 'fake:2'; present are fake:0, fake:1\n  hint: did you mean 'fake:1'?",
    ),
    "repeated elements written": (
        errors.InvalidArgument,
        lambda: scale[1, 8](np.lib.stride_tricks.as_strided(OUT, (3, 8), (0, 4))[:, 0], X),
        "kernel 'scale' writes argument 'out', whose elements each stand at several indices "
        "(a stride is 0)\n  hint: pass a copy of it",
    ),
}


def _good_launch() -> None:
    scale[1, 8](np.zeros(8, np.float32), X)


@pytest.mark.parametrize("name", CASES)
def test_bad_launch_is_refused(name: str, fake_device: Any) -> None:
    """With its text, twice, before anything is bound; the next good launch works."""
    expected, launch, text = CASES[name]
    for _ in range(2):
        with pytest.raises(expected) as raised:
            launch()
        assert type(raised.value) is expected
        assert str(raised.value) == text
    assert fake_device.driver.events == []
    assert OUT.tolist() == list(range(8))
    _good_launch()
    assert [event[0] for event in fake_device.driver.events].count("launch") == 1


def test_read_only_output_is_refused_when_compiling(fake_device: Any) -> None:
    """Read-only is part of the type: a write to it has a place in the source."""
    for _ in range(2):
        with pytest.raises(errors.ReadOnlyWrite) as raised:
            scale[1, 8](READ_ONLY, X)
    assert raised.value.span is not None
    assert raised.value.span.file == __file__
    assert fake_device.driver.events == []
    _good_launch()


def test_capability_names_the_line(fake_device: Any) -> None:
    """float64 on a device without it: the kernel, the line, the evidence, the remedy."""
    with pytest.raises(errors.CapabilityError) as raised:
        doubles[1, 1](np.zeros(1), np.zeros(1))
    text = str(raised.value)
    assert "kernel 'doubles' needs float64 arithmetic, which device 'fake:0' does not have" in text
    assert "out[0] = x[0] * 2.0" in text
    assert "hint: use float32, or launch on another device" in text
    assert fake_device.driver.events == []
    _good_launch()


DECORATED: dict[str, tuple[Callable[[], Any], str]] = {
    "unknown option": (
        lambda: sarek.kernel(unroll=4),
        "@sarek.kernel has no option 'unroll'\n  hint: write @sarek.kernel",
    ),
    "a class": (
        lambda: sarek.kernel(dict),  # type: ignore[arg-type]
        "@sarek.kernel takes a Python function, not a type\n  hint: define it with def",
    ),
}


@pytest.mark.parametrize("name", DECORATED)
def test_bad_decoration_is_refused(name: str) -> None:
    """Where the kernel is defined, not where it is launched."""
    decorate, text = DECORATED[name]
    with pytest.raises(errors.UnsupportedConstruct) as raised:
        decorate()
    assert str(raised.value) == text


# --- devices that are present ---------------------------------------------------------------------

DEVICES = [device.name for device in sarek.devices()]

BEYOND: dict[str, Callable[[Any], dict[str, Any]]] = {
    "block": lambda limits: {"grid": 1, "block": limits.threads_per_block + 1},
    "block axis": lambda limits: {"grid": 1, "block": (1, 1, limits.block[2] + 1)},
    "grid": lambda limits: {"grid": (1, limits.grid[1] + 1), "block": 1},
    "shared": lambda limits: {"grid": 1, "block": 8, "shared_bytes": limits.shared_bytes + 1},
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", BEYOND)
def test_limits_of_devices_present(name: str, device: str) -> None:
    """The same error everywhere, by the device's own limits; the device works afterwards."""
    out = np.zeros(8, np.float32)
    shape = BEYOND[name](sarek.device(device).limits)
    for _ in range(2):
        with pytest.raises(errors.InvalidDimensions, match=f"device '{device}'"):
            scale.launch(out, X, device=device, **shape)
    assert out.tolist() == [0] * 8
    scale.launch(out, X, 3.0, grid=1, block=8, device=device)
    assert out.tolist() == [3] * 8


@pytest.mark.parametrize("device", DEVICES)
def test_failed_launch_leaves_the_device_usable(device: str) -> None:
    """A refused type, a failed compilation and a read-only output, then a good launch."""
    out = np.zeros(8, np.float32)
    for error, bad in (
        (errors.ArgumentTypeError, (out, X.astype(">f4"))),
        (errors.ReadOnlyWrite, (READ_ONLY, X)),
        (errors.CompileError, (out, 3.0)),
    ):
        with pytest.raises(error):
            scale.launch(*bad, grid=1, block=8, device=device)
    assert out.tolist() == [0] * 8
    scale.launch(out, X, grid=1, block=8, device=device)
    assert out.tolist() == [2] * 8
