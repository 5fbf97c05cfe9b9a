"""bfloat16 by DLPack, which NumPy neither imports nor exports, and float16, which it does."""

from __future__ import annotations

import ctypes
import weakref

import ml_dtypes
import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.runtime.dlpack.driver import array_on_host

BF16 = np.dtype(ml_dtypes.bfloat16)
PATTERNS = np.arange(1 << 16, dtype=np.uint16)


class Theirs:
    """An array of another library, which has DLPack only; `code` is that of its elements."""

    def __init__(self, bits: np.ndarray, code: int = 4) -> None:
        self.bits, self.code = bits, code

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        """As by a library that knows no versions: DLManagedTensor, patched."""
        if options.get("max_version"):
            raise TypeError("max_version is not known")
        capsule = self.bits.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
        code = ctypes.c_uint8.from_address(get(capsule, b"dltensor") + 20)
        assert code.value == 1
        code.value = self.code
        return capsule


@sarek.kernel
def doubled(y, x):
    i = sarek.global_idx.x
    if i < len(y):
        y[i] = x[i] * 2


@pytest.mark.parametrize("device", ["native", "interpreter"])
def test_arguments(device):
    """What a kernel writes is the library's memory; strides count."""
    given = np.array([1, 2, 0.1, 3, -5, 7], BF16)
    out = np.zeros(3, np.uint16)
    doubled.launch(Theirs(out), Theirs(given.view(np.uint16)[::2]), grid=1, block=4, device=device)
    assert out.view(BF16).tolist() == [2, 2 * float(given[2]), -10]


def test_vectors_of_others():
    """A vector made of such an array is a copy of its patterns."""
    bits = PATTERNS.copy()
    vector = sarek.from_dlpack(Theirs(bits))
    bits[:] = 0
    assert vector.dtype == BF16
    assert np.array_equal(np.asarray(vector).view(np.uint16), PATTERNS)


@pytest.mark.parametrize("half", [np.float16, BF16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}], ids=["plain", "versioned"])
def test_vectors_are_exported(half, options):
    """All patterns, with a strided part; the consumer writes the vector's own memory."""
    vector = sarek.vector(PATTERNS.view(half))

    class Again:
        def __dlpack_device__(self):
            return vector.__dlpack_device__()

        def __dlpack__(self, **_):
            return vector[::2].__dlpack__()

    part = sarek.from_dlpack(Again())
    assert part.dtype == half
    assert np.array_equal(np.asarray(part).view(np.uint16), PATTERNS[::2])
    capsule = vector.__dlpack__(**options)
    assert ("versioned" in repr(capsule)) == bool(options)


def test_the_library_writes():
    """After an export the elements on the host are the newest."""
    vector = sarek.zeros(3, BF16)
    doubled.launch(vector, vector, grid=1, block=4, device="native")
    capsule = vector.__dlpack__()
    address = ctypes.cast(
        ctypes.pythonapi.PyCapsule_GetPointer(capsule, b"dltensor"),
        ctypes.POINTER(ctypes.c_void_p),
    )[0]
    ctypes.c_uint16.from_address(address).value = 0x3FC0
    doubled.launch(vector, vector, grid=1, block=4, device="native")
    assert vector.tolist() == [3, 0, 0]


def test_memory_lives_as_long_as_it_is_used():
    """The capsule goes with the last array of its memory."""
    given = PATTERNS[:4].copy()
    memory = weakref.ref(given)
    array = array_on_host(Theirs(given))[1:]
    del given
    assert memory() is not None
    assert array.view(np.uint16).tolist() == [1, 2, 3]
    del array
    assert memory() is None


def test_other_elements_are_refused():
    """Elements that no array has, by what they are."""
    with pytest.raises(BufferError, match="elements of 16 bits of kind 9"):
        sarek.from_dlpack(Theirs(PATTERNS.copy(), code=9))


def test_torch():
    torch = pytest.importorskip("torch")
    given = torch.tensor([1.0, 2.0, 3.0], dtype=torch.bfloat16)
    out = torch.zeros(3, dtype=torch.bfloat16)
    doubled.launch(out, given, grid=1, block=4, device="native")
    assert out.tolist() == [2, 4, 6]
