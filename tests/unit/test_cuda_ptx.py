"""Parameters of kernels of others by the PTX that declares them, and launches that they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_cuda.ptx import parameters
from sarek_cuda.runtime import CudaDriver
from sarek_numba import errors, execute
from sarek_numba.execute import Language
from sarek_numba.runtime.cudalike.parameters import Parameter
from sarek_numba.runtime.registry import Device
from tests.fake_cuda import FakeApi
from tests.toolchains import nvidia

WRITTEN = """
.version 8.0
.target sm_75 .address_size 64
// .visible .entry scaled(.param .u8 of_a_comment)
.visible .entry scaled_twice(.param .u8 other) { ret; }
.visible .entry scaled( /* two
    lines */
    .param .u64 .ptr .global .align 4 scaled_param_0,
    .param .u32 scaled_param_1,   // a comment, with a comma
    .param .f64 scaled_param_2,
    .param .align 4 .b8 scaled_param_3[16],
    .param .b32 scaled_param_4,
    .param .s16 scaled_param_5
)
.maxntid 128, 1, 1
{ ret; }
.entry nothing { ret; }
.entry empty() { ret; }
.entry strange(.param .u32 a, .param .texref t) { ret; }
"""


def test_declarations() -> None:
    """Widths and, where the text tells them, types; comments are left out."""
    assert parameters(WRITTEN, "scaled") == (
        Parameter(".u64 .ptr", 8, None),
        Parameter(".u32", 4, is_integer=True),
        Parameter(".f64", 8, np.dtype(np.float64)),
        Parameter(".b8[16]", 16),
        Parameter(".b32", 4),
        Parameter(".s16", 2, is_integer=True),
    )


def test_kernels_without_parameters() -> None:
    assert parameters(WRITTEN, "nothing") == parameters(WRITTEN, "empty") == ()


def test_what_is_not_known() -> None:
    """A kernel that is not there, the beginning of a name, a form that is not known here."""
    assert parameters(WRITTEN, "scale") is None
    assert parameters(WRITTEN, "strange") is None
    assert parameters("no PTX", "scaled") is None


@pytest.mark.skipif(nvidia.nvrtc() is None, reason="there is no NVRTC")
def test_what_nvrtc_declares() -> None:
    """Numbers, pointers, structures by value, and a name that is mangled."""
    text = nvidia.ptx(
        "struct S { int a; float b[3]; };\n"
        'extern "C" __global__ void __launch_bounds__(128) mixed(\n'
        "    float *y, int n, float a, double b, unsigned long long c, short d, bool e, S f) {}\n"
        "__global__ void plain(const char *x) {}\n"
    )
    found = parameters(text, "mixed")
    assert found is not None
    assert [each.size for each in found] == [8, 4, 4, 8, 8, 2, 1, 16]
    types = [each.type for each in found]
    assert [types[2], types[3]] == [np.dtype(np.float32), np.dtype(np.float64)]
    assert found[1].is_integer
    assert not found[7].is_integer
    plain = parameters(text, "_Z5plainPKc")
    assert plain is not None
    assert [each.size for each in plain] == [8]


# --- launches -------------------------------------------------------------------------------------

SOURCE = """
extern "C" __global__ void scaled(float *y, int n, float a, double b, long c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * b + c;
}
"""


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture(params=["told", "not told"])
def device(api: FakeApi, request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """With a driver that tells widths, and with one that is too old."""
    if request.param == "not told":
        monkeypatch.setattr(api, "parameter_sizes", lambda function: None)
    made = Device(CudaDriver(api, 0, "cuda:0"))
    yield made
    api.mend()


def run(device: Device, *given: Any) -> np.ndarray[Any, Any]:
    y = sarek.zeros(4, np.float32)
    execute.run_source(device, SOURCE, Language.CUDA, "scaled", [y, *given], 4, 1)
    execute.window.flush()
    return np.asarray(y)


def test_python_numbers_take_declared_types(device: Device) -> None:
    """An int for a float, and a float for a double."""
    assert (run(device, 2, 0.25, np.int64(3)) == 3.5).all()
    assert (run(device, np.float32(2), np.float64(0.25), np.int64(3)) == 3.5).all()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ((2.0, 0.25), errors.ArgumentCountError, "has 5 parameters, and the arguments fill 4"),
        ((2.0, 0.25, np.int64(1), 1), errors.ArgumentCountError, "the arguments fill 6"),
        ((np.int32(2), 0.25, np.int64(1)), errors.ArgumentTypeError, "argument 1 is of int32"),
        ((2.0, np.float32(1), np.int64(1)), errors.ArgumentTypeError, "argument 2 is of float32"),
        ((2.0, 0.25, 1), errors.ArgumentTypeError, "parameter 4 has 8 bytes.*int32, of 4"),
        (
            (2.0, 0.25, np.float64(1)),
            errors.ArgumentTypeError,
            r"parameter 4 is an integer, \.u64, and what fills it is of float64",
        ),
    ],
)
def test_misuse(
    device: Device, api: FakeApi, given: Any, error: type[Exception], words: str
) -> None:
    """Wrong counts, widths and kinds are refused by name; nothing is launched."""
    with pytest.raises(error, match=f"kernel 'scaled'.*{words}"):
        run(device, *given)
    assert api.calls["launch"] == 0


def test_an_array_for_a_number(device: Device) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="argument 2 is an array"):
        execute.run_source(
            device,
            SOURCE,
            Language.CUDA,
            "scaled",
            [sarek.zeros(4, np.float32), np.int32(4), np.zeros(4), 0.5, np.int64(1)],
            4,
            1,
            inject_lengths=False,
        )


def test_a_driver_that_differs_is_believed(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the text and the driver say other things, the driver has the code."""
    device = Device(CudaDriver(api, 0, "cuda:0"))
    monkeypatch.setattr(
        "tests.fake_cuda.declarations", lambda source: ".entry scaled(.param .u8 a)"
    )
    source, y = f"{SOURCE}// told otherwise\n", sarek.zeros(4, np.float32)
    given = [y, 2.0, np.float64(0.25), np.int64(3)]
    execute.run_source(device, source, Language.CUDA, "scaled", given, 4, 1)
    assert (y == 3.5).all()
