"""Which device has the memory of an object of another library, and which backend knows it.

DLPack, `__cuda_array_interface__` and the classes of PyOpenCL tell. No library is imported for it.
"""

from __future__ import annotations

from typing import Any

from sarek_numba.errors import ArgumentTypeError
from sarek_numba.runtime.adopted import Adopter, NotAdopted
from sarek_numba.runtime.device import BackendUnavailable
from sarek_numba.runtime.registry import Device, backend_of, device_of

_HOST = {1, 3}  # DLPack's numbers of devices: the host, and memory of it pinned for CUDA
_NAMES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA", 14: "oneAPI"}
_BACKENDS = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "hip", 13: "cuda"}
_PYOPENCL = ("Array", "MemoryObjectHolder", "SVMPointer", "CommandQueue", "Context")


def place_of(value: Any) -> str | None:
    """The device that has the memory of an array; None for the host, and for what is no array."""
    if isinstance(value, type):
        return None
    if _is_of_pyopencl(value, "Array", "MemoryObjectHolder", "SVMPointer"):
        return f"OpenCL {_opencl_device(value)}".rstrip()
    if hasattr(value, "__dlpack_device__"):
        kind, number = value.__dlpack_device__()
        return None if kind in _HOST else f"{_NAMES.get(int(kind), f'DLPack {kind}')} {number}"
    return "CUDA" if hasattr(value, "__cuda_array_interface__") else None


def _is_of_pyopencl(value: Any, *names: str) -> bool:
    """Whether a value is of one of PyOpenCL's classes, which is not imported for this."""
    return any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == "pyopencl"
        for kind in type(value).__mro__
    )


def _opencl_device(value: Any) -> str:
    queue, context = getattr(value, "queue", None), getattr(value, "context", None)
    if queue is not None:
        return str(queue.device.name)
    devices = [] if context is None else context.devices
    return str(devices[0].name) if len(devices) == 1 else ""


def _backend_name(value: Any) -> str | None:
    """The backend that may work on memory of a device."""
    if _is_of_pyopencl(value, *_PYOPENCL):
        return "opencl"
    if hasattr(value, "__dlpack_device__"):
        return _BACKENDS.get(int(value.__dlpack_device__()[0]))
    return "cuda" if hasattr(value, "__cuda_array_interface__") else None


def adopter_of(value: Any) -> Adopter | None:
    """The backend that works on a value's memory, if it is here."""
    name = _backend_name(value)
    backend = None if name is None else backend_of(name)
    return backend if isinstance(backend, Adopter) else None


def device_of_foreign(value: Any) -> Device | None:
    """The device of an array, a queue or a context of another library; None for what is none.

    Raises ArgumentTypeError for one that no device here works on.
    """
    adopter = adopter_of(value)
    if adopter is None:
        place = place_of(value)
        if place is None:
            return None
        raise ArgumentTypeError(f"memory of {place} is of no device here")
    try:
        driver = adopter.driver_of(value)
    except (NotAdopted, BackendUnavailable) as error:
        raise ArgumentTypeError(f"it {error}") from error
    return None if driver is None else device_of(driver)
