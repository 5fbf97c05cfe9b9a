"""What a capsule of DLPack says of an array: `dlpack.h`, structures DLManagedTensor and DLTensor.

NumPy neither imports nor exports bfloat16, which is none of its own types: `array_on_host` and
`exported` do.

ctypes is used here and in the drivers of backends alone.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

_NAME = b"dltensor"
_VERSIONED = b"dltensor_versioned"  # DLManagedTensorVersioned, whose tensor comes last
_BEFORE = 32  # bytes before it: version, context, deleter, flags
_BFLOAT = 4  # DLDataTypeCode
_BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
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
    tensor = _Tensor.from_address(_address(capsule, _NAME))
    size = tensor.bits // 8
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[k] * size for k in range(tensor.ndim))
    else:
        strides = contiguous(shape, size)
    return Described(
        tensor.device_type,
        tensor.device_number,
        (tensor.data or 0) + tensor.offset,
        _element(tensor.code, tensor.bits, tensor.lanes),
        f"{tensor.bits} bits of kind {tensor.code}, {tensor.lanes} together",
        shape,
        strides,
    )


def _address(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return int(get(capsule, name))


def _element(code: int, bits: int, lanes: int) -> np.dtype[Any] | None:
    if (code, bits, lanes) == (_BFLOAT, 16, 1):
        return _BFLOAT16
    kind = _KINDS.get(code)
    if kind is None or lanes != 1 or bits < 8:
        return None
    return np.dtype("?" if kind == "b" else f"{kind}{bits // 8}")


class _Lent:
    """Memory on the host of another library, which lives as long as its capsule."""

    def __init__(self, capsule: Any, found: Described) -> None:
        self._capsule = capsule
        self.__array_interface__ = {
            "version": 3,
            "typestr": "<u2",
            "data": (found.address, False),
            "shape": found.shape,
            "strides": found.strides,
        }


def array_on_host(value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """The elements of an object with DLPack on the host: an array of the same memory.

    Raises BufferError for elements that no array has, and what the object raises.
    """
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as error:
        capsule = value.__dlpack__()
        found = described(capsule)
        if found.dtype != _BFLOAT16:
            raise BufferError(f"elements of {found.element}: {error}") from error
        return np.asarray(_Lent(capsule, found)).view(_BFLOAT16)


def exported(array: np.ndarray[Any, np.dtype[Any]], options: dict[str, Any]) -> Any:
    """The capsule of an array on the host; `options` are those of `__dlpack__`."""
    if array.dtype != _BFLOAT16:
        return array.__dlpack__(**options)
    capsule = array.view(np.uint16).__dlpack__(**options)
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes, is_valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
    if is_valid(capsule, _VERSIONED):
        address = _address(capsule, _VERSIONED) + _BEFORE
    else:
        address = _address(capsule, _NAME)
    _Tensor.from_address(address).code = _BFLOAT
    return capsule


def contiguous(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """The strides of an array in C order, whose elements have so many bytes."""
    strides = [size] * len(shape)
    for k in range(len(shape) - 2, -1, -1):
        strides[k] = strides[k + 1] * shape[k + 1]
    return tuple(strides)
