"""What a capsule of DLPack says of an array: `dlpack.h`, structures DLManagedTensor and DLTensor.

ctypes is used here and in the drivers of backends alone.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

_NAME = b"dltensor"
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # DLDataTypeCode


class _Tensor(ctypes.Structure):
    """DLTensor"""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_number", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


@dataclass(frozen=True, slots=True)
class Described:
    """An array: the address of element (0, …, 0), strides in bytes. `dtype` is None for elements
    that NumPy has not, which `element` names.
    """

    device_type: int
    device_number: int
    address: int
    dtype: np.dtype[Any] | None
    element: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def described(capsule: Any) -> Described:
    """What a capsule says that nobody has consumed, and nobody is to: it must live as long as the
    array is used. Raises ValueError for another capsule.
    """
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    tensor = _Tensor.from_address(get(capsule, _NAME))
    kind, size = _KINDS.get(tensor.code), tensor.bits // 8
    dtype = None
    if kind is not None and tensor.lanes == 1 and size:
        dtype = np.dtype("?" if kind == "b" else f"{kind}{size}")
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[k] * size for k in range(tensor.ndim))
    else:
        strides = contiguous(shape, size)
    return Described(
        tensor.device_type,
        tensor.device_number,
        (tensor.data or 0) + tensor.offset,
        dtype,
        f"{tensor.bits} bits of kind {tensor.code}, {tensor.lanes} together",
        shape,
        strides,
    )


def contiguous(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """The strides of an array in C order, whose elements have so many bytes."""
    strides = [size] * len(shape)
    for k in range(len(shape) - 2, -1, -1):
        strides[k] = strides[k + 1] * shape[k + 1]
    return tuple(strides)
