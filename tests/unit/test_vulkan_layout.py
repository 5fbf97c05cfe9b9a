"""What Vulkan's emitter and runtime agree on: where arguments lie, and as which bytes."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from sarek_numba.ir.types import Scalar
from sarek_vulkan.layout import (
    Argument,
    Module,
    arguments_of,
    dynamic_shared_bytes,
    pack,
)


def _module(types):
    arguments, size = arguments_of(types)
    return Module(b"", arguments, size, False, 0, False, (), ())


def test_places():
    """Each argument lies at a multiple of its size, a narrow one takes 4 bytes, the block 8s."""
    types = [Scalar.INT8, None, Scalar.FLOAT16, Scalar.FLOAT64, Scalar.BOOL]
    assert arguments_of(types) == (
        (
            Argument(0, Scalar.INT8),
            Argument(8, None),
            Argument(16, Scalar.FLOAT16),
            Argument(24, Scalar.FLOAT64),
            Argument(32, Scalar.BOOL),
        ),
        40,
    )
    assert arguments_of([]) == ((), 0)


def test_bytes():
    """Scalars are little-endian, narrow ones in the low bits of 32; a gap is zero."""
    types = [Scalar.INT8, None, Scalar.FLOAT16, Scalar.UINT64, Scalar.BOOL, Scalar.BFLOAT16]
    values = [
        np.int8(-2),
        1 << 40,
        np.float16(1.5),
        np.uint64(2**64 - 1),
        np.bool_(True),
        ml_dtypes.bfloat16(1),
    ]
    expected = (
        b"\xfe\xff\xff\xff" + bytes(4) + (1 << 40).to_bytes(8, "little") + b"\x00\x3e\x00\x00"
    )
    expected += bytes(4) + b"\xff" * 8 + b"\x01\x00\x00\x00" + b"\x80\x3f\x00\x00"
    assert pack(_module(types), values) == expected


def test_every_scalar_is_packed():
    """All scalar types have a form."""
    for type in Scalar:
        dtype = np.dtype(getattr(ml_dtypes, type.value, type.value))
        size = max(4, type.bits // 8)
        data = pack(_module([type]), [dtype.type(1)])
        assert np.frombuffer(data[: dtype.itemsize], dtype)[0] == 1
        assert len(data) == 8
        assert data[size:] == bytes(8 - size)


def test_dynamic_shared_bytes():
    """The region is a whole number of 8 bytes, and never empty."""
    assert [dynamic_shared_bytes(n) for n in (0, 1, 8, 9, 4096)] == [8, 8, 8, 16, 4096]
