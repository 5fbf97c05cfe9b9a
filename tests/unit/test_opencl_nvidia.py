"""What is printed for NVIDIA's OpenCL alone. What it computes is measured on such a device."""

from __future__ import annotations

import pytest

from sarek_numba.capability import DeviceRecord, Limits
from sarek_numba.codegen import cfamily
from sarek_numba.errors import InvalidDimensions
from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import (
    Coordinate,
    Expr,
    FenceScope,
    Index,
    MemFence,
    Stmt,
    Var,
    VarRef,
    Warp,
    WarpOp,
    constant,
    make_kernel,
)
from sarek_numba.ir.types import FLOAT32, INT32, INT64, Scalar
from sarek_numba.runtime.dimensions import check_local_bytes
from sarek_opencl import nvidia
from sarek_opencl.dialect import DIALECT

NVIDIA = nvidia.dialect_for(DIALECT)


def _text(scalar: Scalar, value: Expr, *before: Stmt, x: Var) -> str:
    fresh = b.Fresh.beyond(make_kernel("k", (b.let(x, 0),)))
    out = b.array_param(fresh, "out", INT64, 0)
    body = (b.let(x, constant(scalar, 3)), *before, b.store(out.var, 0, b.cast(INT64, value)))
    return cfamily.emit(make_kernel("k", body, params=(out,), warp_width=32), NVIDIA).text


def test_a_negation_of_16_bits_is_narrowed_where_the_compiler_cannot_look() -> None:
    """So is whatever else C would convert to a `short`; another width is cast."""
    x = b.Fresh()("x", Scalar.INT16)
    text = _text(Scalar.INT16, b.neg(VarRef(x)), x=x)
    assert "out[0] = narrow_short(-x);" in text
    assert text.count("static inline short narrow_short(int x)") == 1
    wide = b.Fresh()("x", INT32)
    assert "narrow_short" not in _text(INT32, b.neg(VarRef(wide)), x=wide)


def test_a_shuffle_is_one_instruction_for_each_word() -> None:
    """The lane, the exchange and the barrier are those of the machine."""
    fresh = b.Fresh()
    x, other = fresh("x", INT64), fresh("other", INT64)
    shuffle = Warp(WarpOp.SHUFFLE_XOR, other, 32, VarRef(x), constant(INT64, 1))
    text = _text(INT64, VarRef(other), shuffle, x=x)
    assert text.count("shfl.sync.idx.b32") == 1
    assert text.count("warp_word((uint)") == 2
    assert "%%laneid" in text
    assert "sub_group" not in text


def test_64_bits_become_32_where_the_compiler_cannot_look() -> None:
    """Signed and unsigned ones; 32 bits and fewer are cast."""
    wide = b.Fresh()("x", INT64)
    assert "out[0] = narrow_int(x);" in _text(INT64, b.cast(INT32, VarRef(wide)), x=wide)
    unsigned = _text(INT64, b.cast(Scalar.UINT32, VarRef(wide)), x=wide)
    assert "out[0] = (long)(uint)narrow_int(x);" in unsigned
    x = b.Fresh()("x", Scalar.UINT32)
    assert "narrow_int" not in _text(INT64, b.cast(INT32, VarRef(x)), x=x)


def test_the_index_in_the_grid_is_computed_in_32_bits_where_it_is_wanted_in_32() -> None:
    """In 64 bits it is what OpenCL gives."""
    for coordinate, function in (
        (Coordinate.GLOBAL_IDX, "global_index"),
        (Coordinate.GRID_SIZE, "grid_size"),
    ):
        fresh = b.Fresh()
        x = fresh("x", INT32)
        text = _text(INT32, VarRef(x), b.assign(x, Index(coordinate, 1, INT32)), x=x)
        assert f"x = {function}(1);" in text
        assert f"static inline int {function}(uint axis)" in text
        wide = fresh("x", INT64)
        text = _text(INT64, VarRef(wide), b.assign(wide, Index(coordinate, 1, INT64)), x=wide)
        assert function not in text


def test_a_fence_for_the_device_is_that_of_ptx() -> None:
    """One for the block is OpenCL's."""
    x = b.Fresh()("x", INT32)
    text = _text(INT32, VarRef(x), MemFence(FenceScope.DEVICE), x=x)
    assert "    device_fence();" in text
    assert 'asm volatile("membar.gl;"' in text
    assert "device_fence" not in _text(INT32, VarRef(x), MemFence(FenceScope.BLOCK), x=x)


def test_more_local_memory_than_a_thread_has_is_refused() -> None:
    """However few threads the block has."""
    limits = Limits(1024, (1024, 1024, 64), (9, 9, 9), 1, 1, thread_local_bytes=nvidia.LOCAL_BYTES)
    record = DeviceRecord("n", "opencl", "jit", "n", (), limits, {})
    check_local_bytes("k", nvidia.LOCAL_BYTES, 1024, record)
    with pytest.raises(InvalidDimensions, match=r"asks for 524289 bytes .* a thread; .*has 524288"):
        check_local_bytes("k", nvidia.LOCAL_BYTES + 1, 1, record)


def _quotient_kernel(fastmath: bool = False) -> str:
    fresh = b.Fresh()
    x = b.array_param(fresh, "x", FLOAT32, 0)
    quotient = b.div(b.read(x.var, 0), b.read(x.var, 1))
    floored = b.floordiv(quotient, b.read(x.var, 2))
    body = (b.store(x.var, 0, b.intrinsic("sqrt", floored)),)
    dialect = nvidia.dialect_for(DIALECT, fast=fastmath)
    return cfamily.emit(make_kernel("k", body, params=(x,), fastmath=fastmath), dialect).text


def test_quotients_and_roots_are_instructions() -> None:
    """The compiler's option for exact ones is lost where a process uses CUDA too."""
    text = _quotient_kernel()
    assert text.count("div.rn.f32") == 1
    assert text.count("sqrt.rn.f32") == 1
    assert " / " not in text.partition("*/")[2]
    assert text.index("static inline float exact_quotient") < text.index("floor_div_f32(float")
    assert "exact_root(" in text
    assert "@" not in text
    assert "copysign(0.0f, exact_quotient(a, b))" in text


def test_a_fast_kernel_divides_as_the_compiler_does() -> None:
    text = _quotient_kernel(fastmath=True)
    assert ".rn.f32" not in text
    assert "/" in text
