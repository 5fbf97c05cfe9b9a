"""Arrays of others as arguments: taken without a copy where they are on the host, else refused."""

from __future__ import annotations

import array

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import ArgumentTypeError, CompileError, MixedDevices
from sarek_numba.runtime.cache import counters

DEVICES = [device.name for device in sarek.devices()]
on_devices = pytest.mark.parametrize("device", DEVICES)
HAS_CUDA = any(device.record.backend == "cuda" for device in sarek.devices())


@sarek.kernel
def double(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i] + x[i]


def launch(device, out, x):
    double.launch(out, x, grid=1, block=32, device=device)


class Interface:
    """Memory by `__array_interface__` alone."""

    def __init__(self, held):
        self.held = held
        self.__array_interface__ = held.__array_interface__


class DLPack:
    """Memory by DLPack alone."""

    def __init__(self, held):
        self.held = held

    def __dlpack__(self, **options):
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.held.__dlpack_device__()


class OnDevice:
    """What says that its memory is of a device, and must never be asked for it."""

    def __init__(self, place):
        self.place = place

    def __dlpack__(self, **options):
        raise AssertionError("nothing is exported")

    def __dlpack_device__(self):
        return self.place


class OnCuda:
    __cuda_array_interface__ = {  # noqa: RUF012 # as the protocol has it
        "shape": (3,),
        "typestr": "<f4",
        "data": (4096, False),
        "version": 3,
    }


WRITTEN = {
    "bytearray": lambda: bytearray(5),
    "memoryview": lambda: memoryview(bytearray(5)),
    "array.array": lambda: array.array("i", [0] * 5),
    "__array_interface__": lambda: Interface(np.zeros(5, np.float32)),
    "DLPack": lambda: DLPack(np.zeros(5, np.int16)),
}


@on_devices
@pytest.mark.parametrize("make", WRITTEN.values(), ids=WRITTEN)
def test_what_is_on_the_host_is_read_and_written(device, make):
    """The kernel works on the memory itself: what it writes is there."""
    given = make()
    held = np.asarray(getattr(given, "held", given))
    launch(device, given, np.arange(5).astype(held.dtype))
    assert held.tolist() == [0, 2, 4, 6, 8]
    out = np.zeros(5, held.dtype)
    launch(device, out, given)
    assert out.tolist() == [0, 4, 8, 12, 16]


@on_devices
def test_shapes_of_views_are_kept(device):
    """A memoryview of two axes is an array of two."""

    @sarek.kernel
    def corner(x):
        x[1, 2] = 7

    rows = bytearray(6)
    corner.launch(memoryview(rows).cast("B", (2, 3)), grid=1, block=1, device=device)
    assert list(rows) == [0, 0, 0, 0, 0, 7]


@on_devices
def test_bytes_are_read_and_never_written(device):
    """Writing to them is an error at the line that does, before anything moves."""
    out = np.zeros(3, np.uint8)
    launch(device, out, b"\x01\x02\x03")
    assert out.tolist() == [2, 4, 6]
    fixed = b"\x01\x02\x03"
    counters.reset()
    with pytest.raises(CompileError, match="out"):
        launch(device, fixed, out)
    assert fixed == b"\x01\x02\x03"
    assert (counters.launches, counters.uploads) == (0, 0)


@on_devices
@pytest.mark.parametrize(
    ("make", "place", "by_cuda"),
    [
        (OnCuda, "CUDA", "says that it is memory of CUDA, which has none at the address 0x10"),
        (lambda: OnDevice((2, 77)), "CUDA 77", "is on CUDA device 77, which is not used here"),
        (lambda: OnDevice((10, 77)), "ROCm 77", ""),
        (lambda: OnDevice((99, 0)), "DLPack 99 0", ""),
    ],
    ids=["interface", "CUDA's", "ROCm's", "nobody's"],
)
def test_memory_of_a_device_is_refused(device, make, place, by_cuda):
    """By its name, before anything moves; where there is CUDA, its backend says what is wrong."""
    words = by_cuda if by_cuda and HAS_CUDA else f"is memory of {place}, which no"
    out = np.zeros(3, np.float32)
    counters.reset()
    with pytest.raises(ArgumentTypeError, match=f"argument 'x' {words}"):
        launch(device, out, make())
    assert (counters.launches, counters.uploads, counters.compiles) == (0, 0, 0)
    assert not out.any()


@on_devices
def test_memory_of_two_devices_is_refused(device):
    counters.reset()
    with pytest.raises(MixedDevices, match="'out' is memory of CUDA 76, and 'x' of CUDA 77"):
        launch(device, OnDevice((2, 76)), OnDevice((2, 77)))
    with pytest.raises(
        ArgumentTypeError, match=r"'out' is (memory of CUDA|on CUDA device) 77, whi"
    ):
        launch(device, OnDevice((2, 77)), OnDevice((2, 77)))
    assert (counters.launches, counters.uploads, counters.compiles) == (0, 0, 0)


@on_devices
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (memoryview(np.zeros(3, ">f4")), "bytes are in the order of another machine"),
        (Interface(np.zeros(3, np.longdouble)), "float128|longdouble"),
        (Interface(np.zeros(3, "S4")), "byte strings are not taken"),
        ([1, 2, 3], "is a list; a kernel takes NumPy arrays and numbers"),
        ("text", "is a str; a kernel takes NumPy arrays and numbers"),
    ],
)
def test_elements_are_checked_as_numpys(device, given, message):
    """Big-endian, longdouble, strings and what is no array: by name, as of arrays."""
    out = np.zeros(3, np.float32)
    counters.reset()
    with pytest.raises(ArgumentTypeError, match=message):
        launch(device, out, given)
    assert (counters.launches, counters.uploads, counters.compiles) == (0, 0, 0)
