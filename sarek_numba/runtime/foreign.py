"""Arrays of others as arguments: what has host memory becomes an array of NumPy, without a copy.

That are objects with the buffer protocol, with `__array_interface__`, and with DLPack on the host.
Memory of other devices is recognised by DLPack, `__cuda_array_interface__` and pyopencl's classes,
and refused by name: a launch copies nothing in secret that its user keeps on a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sarek_numba.errors import ArgumentTypeError, MixedDevices
from sarek_numba.frontend.variants import VariantValue
from sarek_numba.runtime.reading import Readable

_OWN = (np.ndarray, np.generic, int, float, complex, type(None), Readable, VariantValue, type)
_HOST = {1, 3}  # DLPack's numbers of devices: the host, and memory of it pinned for CUDA
_NAMES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA", 14: "oneAPI"}


def adopted(kernel: str, names: Sequence[str], values: Sequence[Any]) -> Sequence[Any]:
    """The values of a launch with arrays in place of what others have as arrays on the host.

    Raises ArgumentTypeError for memory of a device, MixedDevices for memory of several.
    """
    if all(isinstance(value, _OWN) for value in values):
        return values
    places = [None if isinstance(value, _OWN) else place_of(value) for value in values]
    apart = [k for k, place in enumerate(places) if place is not None]
    if apart:
        raise _refused(kernel, names, places, apart)
    return [value if isinstance(value, _OWN) else _on_host(value) for value in values]


def place_of(value: Any) -> str | None:
    """The device that has the memory of an array; None for the host, and for what is no array."""
    if isinstance(value, type):
        return None
    if hasattr(value, "__dlpack_device__"):
        kind, number = value.__dlpack_device__()
        return None if kind in _HOST else f"{_NAMES.get(int(kind), f'DLPack {kind}')} {number}"
    if hasattr(value, "__cuda_array_interface__"):
        return "CUDA"
    module, name = type(value).__module__, type(value).__name__
    if module.partition(".")[0] == "pyopencl" and name in ("Array", "Buffer", "SVM"):
        queue = getattr(value, "queue", None)
        return f"OpenCL {queue.device.name}" if queue is not None else "OpenCL"
    return None


def _refused(
    kernel: str, names: Sequence[str], places: Sequence[str | None], apart: Sequence[int]
) -> MixedDevices | ArgumentTypeError:
    first = apart[0]
    other = next((k for k in apart if places[k] != places[first]), None)
    if other is not None:
        return MixedDevices(
            f"kernel '{kernel}': argument '{names[first]}' is memory of {places[first]}, and "
            f"'{names[other]}' of {places[other]}\n  hint: bring both to one place"
        )
    name = names[first]
    return ArgumentTypeError(
        f"kernel '{kernel}': argument '{name}' is memory of {places[first]}, which no device of "
        f"this version works on\n  hint: copy it to the host, as in {name}.get(), and pass that "
        "as sarek.vector(...)"
    )


def _on_host(value: Any) -> Any:
    """An array of the same memory; the value itself where it is no array."""
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError):
        return value
