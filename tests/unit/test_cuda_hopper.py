"""Products of matrices for Hopper: the text compiles, and the shim runs it."""

from __future__ import annotations

import ctypes
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sarek_cuda import hopper
from sarek_cuda.hopper import Epilogue, Major, Tiling
from sarek_numba.ir.types import Scalar
from tests.toolchains import nvidia
from tests.toolchains.shim import driver as shim

F16, S8 = Scalar.FLOAT16, Scalar.INT8
DTYPES: dict[Scalar, Any] = {
    Scalar.FLOAT16: np.float16,
    Scalar.BFLOAT16: ml_dtypes.bfloat16,
    Scalar.INT8: np.int8,
    Scalar.UINT8: np.uint8,
}
HALVES = (Scalar.FLOAT16, Scalar.BFLOAT16)
BYTES = (Scalar.INT8, Scalar.UINT8)
TILINGS = [
    *(
        Tiling(half, half, a, b, consumers, columns, stages)
        for half, (a, b), (consumers, columns, stages) in product(
            HALVES, product(Major, Major), ((1, 64, 2), (2, 128, 3))
        )
    ),
    *(Tiling(a, b, Major.K, Major.K, 1, 48, 2) for a, b in product(BYTES, BYTES)),
    Tiling(Scalar.FLOAT16, Scalar.FLOAT16, consumers=3, columns=192),
    Tiling(Scalar.INT8, Scalar.INT8, Major.K, Major.K, columns=256, group=1),
]


class Map(ctypes.Structure):
    """A tensor map of the shim."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.c_ulonglong * 3),
        ("strides", ctypes.c_ulonglong * 2),
        ("box", ctypes.c_uint * 2),
        ("bytes", ctypes.c_uint),
        ("unused", ctypes.c_uint * 15),
    )


def described(array: np.ndarray[Any, Any], box: tuple[int, int]) -> Map:
    """Of an array (batches, rows, columns) whose columns lie side by side."""
    assert array.strides[2] == array.itemsize
    sizes = (ctypes.c_ulonglong * 3)(*reversed(array.shape))
    strides = (ctypes.c_ulonglong * 2)(array.strides[1], array.strides[0])
    return Map(array.ctypes.data, sizes, strides, (ctypes.c_uint * 2)(*box), array.itemsize)


def operand(generator: Any, dtype: Any, shape: tuple[int, ...], turned: bool) -> Any:
    """Small integers, in an array whose last two dimensions are stored the other way where turned;
    rows are longer than they need be, and what is behind them is no zero."""
    low = 0 if dtype is np.uint8 else -8
    stored = (shape[0], shape[2], shape[1]) if turned else shape
    room = generator.integers(low, 9, (stored[0], stored[1], stored[2] + 3)).astype(dtype)
    part = room[:, :, : stored[2]]
    return part.swapaxes(1, 2) if turned else part


def run(tiling: Tiling, shape: tuple[int, int, int, int], blocks: int) -> Any:
    """A, B, and C with a sentinel around what the kernel may write."""
    batches, m, n, k = shape
    generator = np.random.default_rng(m * n + k)
    a = operand(generator, DTYPES[tiling.a], (batches, m, k), tiling.a_major is Major.OUTER)
    b = operand(generator, DTYPES[tiling.b], (batches, k, n), tiling.b_major is Major.K)
    dtype = np.float32 if tiling.a.is_float else np.int32
    room = np.full((batches, m + 2, n + 3), 77, dtype)
    c = room[:, 1 : m + 1, 1 : n + 1]
    maps = [
        described(a.swapaxes(1, 2) if tiling.a_major is Major.OUTER else a, tiling.a_box),
        described(b.swapaxes(1, 2) if tiling.b_major is Major.K else b, tiling.b_box),
    ]
    words = [
        *map(ctypes.c_int, (m, n, k, batches, 1, 1)),
        *(ctypes.c_void_p(c.ctypes.data), ctypes.c_longlong(c.strides[1] // c.itemsize)),
        ctypes.c_longlong(c.strides[0] // c.itemsize),
    ]
    given = [*maps, *words]
    addresses = (ctypes.c_void_p * len(given))(*(ctypes.addressof(word) for word in given))
    sizes = (ctypes.c_uint * 6)(blocks, 1, 1, tiling.threads, 1, 1)
    why = shim.run_blocks(compiled(tiling), addresses, sizes, width=32, meets=True)
    assert not why, why
    untouched = np.ones(room.shape, bool)
    untouched[:, 1 : m + 1, 1 : n + 1] = False
    assert (room[untouched] == 77).all()
    return a, b, c


def text_of(tiling: Tiling) -> str:
    """A kernel that stores the sums."""
    number = "float" if tiling.a.is_float else "int"
    store = "c[batch * c_batch + ({row}) * c_row + ({column})] = {sum};"
    parameters = (f"{number} *__restrict__ c", "long long c_row", "long long c_batch")
    return hopper.emit(tiling, Epilogue(store, parameters))


def compiled(tiling: Tiling) -> Any:
    language = shim.LANGUAGES["shim:cuda"]
    return shim.library_of('#include "hopper.h"\n' + shim.unit(language, text_of(tiling), 32)).run


@pytest.mark.skipif(bool(shim.why_not()), reason=shim.why_not() or "-")
@pytest.mark.parametrize("tiling", TILINGS, ids=str)
def test_products(tiling: Tiling) -> None:
    """Sums of whole numbers are exact; sizes are no multiples of tiles; blocks have several."""
    for shape, blocks in (((1, 65, 70, 40), 1), ((2, 131, 193, 150), 3)):
        a, b, c = run(tiling, shape, blocks)
        wide = np.float64 if tiling.a.is_float else np.int64
        assert (c == a.astype(wide) @ b.astype(wide)).all()


@pytest.mark.skipif(bool(nvidia.why_not()), reason=nvidia.why_not() or "-")
@pytest.mark.parametrize("tiling", [*TILINGS, Tiling(F16, F16, columns=128, cluster=2)], ids=str)
def test_the_text_compiles(tiling: Tiling) -> None:
    assert not nvidia.refusal(text_of(tiling), "sm_90a")


def test_what_is_no_tiling() -> None:
    """Types, shapes and stages that the machine does not have."""
    for wrong in (
        {"b": Scalar.BFLOAT16},
        {"a": Scalar.FLOAT32, "b": Scalar.FLOAT32},
        {"a": Scalar.INT8, "b": Scalar.INT8},
        {"columns": 260},
        {"a": S8, "b": S8, "a_major": Major.K, "b_major": Major.K, "columns": 40},
        {"columns": 512},
        {"consumers": 4},
        {"columns": 96},
        {"stages": 5},
    ):
        with pytest.raises(ValueError, match=r"."):
            Tiling(**({"a": F16, "b": F16} | wrong))
