"""The IR, the OpenCL, the CUDA and the Metal text of a few kernels, exactly.

`pytest --update-golden` after a change. A refactoring changes none of these files. The same text
comes from every CPython version.
"""

from __future__ import annotations

import numpy as np
import pytest

from sarek_cuda import dialect as cuda
from sarek_metal import dialect as metal
from sarek_numba.cli.demo import kernels
from sarek_numba.codegen import cfamily
from sarek_numba.codegen.target import Target
from sarek_numba.ir.text import text
from sarek_numba.passes import optimise
from sarek_numba.passes.coarsen import asked
from sarek_opencl.dialect import DIALECT
from tests.kernels import atomics, control, elementwise, functions, memory

_F2 = np.zeros((4, 4), np.float32)
_F1 = np.zeros(4, np.float32)
_I1 = np.zeros(4, np.int32)
_L1 = np.zeros(4, np.int64)
_STRIDED = np.zeros((8, 8), np.float32)[::2, ::2]

CORPUS = {
    "saxpy": (elementwise.saxpy, (_F1, _F1, 2.0, 3)),
    "two_dimensions": (elementwise.two_dimensions, (_F2, _F2)),
    "two_dimensions_strided": (elementwise.two_dimensions, (_STRIDED, _STRIDED)),
    "floor_division": (elementwise.floor_division, (_I1, _I1, _I1, _I1)),
    "shifts": (elementwise.shifts, (_I1, _I1, _I1, _I1)),
    "exact_float": (elementwise.exact_float, (_F2, _F1, _F1)),
    "collatz": (control.collatz, (_I1, _L1)),
    "for_else": (control.first_prime_factor, (_I1, _I1)),
    "nested_exits": (control.nested_exits, (_I1, 3)),
    "swaps": (control.swaps, (_L1, 3)),
    "range_ends": (control.range_ends, (np.zeros((4, 2), np.int64), _L1, _L1, _L1)),
    "superstep_scan": (memory.superstep_scan, (_I1, _I1)),
    "row_views": (memory.row_views, (np.zeros((4, 4), np.int32), np.zeros((4, 8), np.int32))),
    "local_sort": (memory.local_sort, (np.zeros((4, 6), np.int16), np.zeros((4, 6), np.int16))),
    "convolve": (memory.convolve, (_F1, _F1)),
    "histogram": (atomics.histogram, (np.zeros(16, np.uint32), np.zeros(9, np.uint8))),
    "cas_in_a_helper": (atomics.cas_in_a_helper, (_I1, _I1, _I1)),
    "helpers": (functions.helpers, (np.zeros((4, 4), np.int32), _I1)),
    "barrier_in_helper": (functions.barrier_in_helper, (_I1, _I1)),
    "matmul_tiled": (kernels.matmul_tiled, (_F2, _F2, _F2)),
    "mandelbrot": (kernels.mandelbrot, (np.zeros((4, 4), np.int32), 0.0, 0.0, 1.0, 9)),
    "nbody_step": (kernels.nbody_step, (_F2, _F2, _F2, _F1, 0.1)),
    "heat_step": (kernels.heat_step, (_F2, _F2, 0.1)),
}
TARGETS = {"opencl_cpu": Target("opencl", 64), "opencl_gpu": Target("opencl", 32)}


@pytest.mark.parametrize("name", CORPUS)
def test_ir(name, golden):
    """The kernel as lowered."""
    kernel, arguments = CORPUS[name]
    golden(text(kernel.ir(*arguments)) + "\n", f"{name}.ir")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CORPUS)
def test_opencl(name, target, golden):
    """OpenCL C for a device with 64-bit and with 32-bit addresses."""
    kernel, arguments = CORPUS[name]
    legal = optimise(kernel.ir(*arguments), TARGETS[target])
    golden(cfamily.emit(legal, DIALECT, entry=kernel.__name__).text, f"{name}.{target}")


@pytest.mark.parametrize("name", CORPUS)
def test_cuda(name, golden):
    """CUDA C++."""
    kernel, arguments = CORPUS[name]
    legal = optimise(kernel.ir(*arguments), cuda.TARGET)
    golden(cfamily.emit(legal, cuda.DIALECT, entry=kernel.__name__).text, f"{name}.cuda")


@pytest.mark.parametrize("name", ["saxpy", "two_dimensions_strided"])
def test_coarsened(name, golden):
    """CUDA C++ of large launches, whose threads do the work of several."""
    kernel, arguments = CORPUS[name]
    with asked():
        legal = optimise(kernel.ir(*arguments), cuda.TARGET)
    golden(cfamily.emit(legal, cuda.DIALECT, entry=kernel.__name__).text, f"{name}.coarsened")


@pytest.mark.parametrize("name", [name for name in CORPUS if name != "mandelbrot"])  # float64
def test_metal(name, golden):
    """The Metal Shading Language, for a device whose division is known to be exact."""
    kernel, arguments = CORPUS[name]
    legal = optimise(kernel.ir(*arguments), metal.TARGET)
    golden(cfamily.emit(legal, metal.DIALECT, entry=kernel.__name__).text, f"{name}.metal")
