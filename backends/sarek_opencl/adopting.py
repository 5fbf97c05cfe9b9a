"""Arrays of PyOpenCL as arguments, in the context and on the queue that they have.

For each context of others there is a driver of ours, made when the first array of it is seen; it
lives as long as the process. A launch goes to the array's queue if that is in order. Other queues,
and events of the array, are put before and behind it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.runtime.adopted import DeviceArray, NotAdopted
from sarek_numba.runtime.device import Bytes
from sarek_opencl import driver
from sarek_opencl.memory import Held

if TYPE_CHECKING:
    from sarek_opencl.runtime import OpenCLDriver

Make = Callable[[Any, str, Any], "OpenCLDriver"]
"""A driver of a device, a name, a context."""

_NOTHING: Bytes = np.empty(0, np.uint8)  # in place of host memory
_lock = threading.Lock()
_drivers: dict[tuple[int, int], OpenCLDriver] = {}  # by context and device, which they hold
_names: dict[str, int] = {}


class ArrayOrder:
    """See `sarek_numba.runtime.adopted.Order`."""

    def __init__(self, array: Any, device: Any) -> None:
        cl = driver.load()
        queue = array.queue
        self._array = array
        self._queue = queue
        self._device = device
        self.is_known = queue is not None
        unordered = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        in_order = queue is not None and not queue.properties & unordered
        self.handle = queue if in_order else None

    def precede(self, handle: Any) -> None:
        """Events that the array has of other queues, and a marker of its own."""
        cl = driver.load()
        with driver.check("waiting for an array's queue", self._device):
            before = [event for event in self._array.events if event.command_queue != handle]
            if self._queue is not None and self._queue != handle:
                before.append(cl.enqueue_marker(self._queue))
                self._queue.flush()
            if before:
                cl.enqueue_barrier(handle, wait_for=before)

    def follow(self, handle: Any, mark: Any) -> None:
        """A barrier in the array's queue, and an event of the array."""
        cl = driver.load()
        with driver.check("ordering an array's queue", self._device):
            if self._queue is not None and self._queue != handle:
                cl.enqueue_barrier(self._queue, wait_for=[mark])
            self._array.add_event(mark)

    def wait(self) -> None:
        """For the queue and the events."""
        with driver.check("waiting for an array's queue", self._device):
            self._array.finish()
            if self._queue is not None:
                self._queue.finish()


def adopt(value: Any, own: Sequence[OpenCLDriver], make: Make) -> DeviceArray | None:
    """See `sarek_numba.runtime.adopted.Adopter`; `own` are the drivers of our contexts."""
    cl = driver.load()
    import pyopencl.array

    if isinstance(value, cl.MemoryObjectHolder):
        raise NotAdopted(
            "is a pyopencl.Buffer, which has no shape and no element type",
            "pyopencl.array.Array(queue, shape, dtype, data=buffer) has",
        )
    if isinstance(value, cl.SVMPointer):
        raise _refused_svm()
    if not isinstance(value, pyopencl.array.Array):
        return None
    if isinstance(value.base_data, cl.SVMPointer):
        raise _refused_svm()
    found, home = _driver_for(*_place_of(value), own, make)
    buffer, offset, size = _whole(value, found)
    info = cl.mem_info
    return DeviceArray(
        driver=found,
        home=home,
        buffer=Held(buffer, _NOTHING),
        key=buffer.int_ptr,
        size=size,
        offset=offset,
        dtype=value.dtype,
        shape=tuple(map(int, value.shape)),
        strides=tuple(map(int, value.strides)),
        writable=not buffer.get_info(info.FLAGS) & cl.mem_flags.READ_ONLY,
        alignment=max(1, int(found.device.mem_base_addr_align) // 8),
        order=ArrayOrder(value, found.device),
    )


def driver_of(value: Any, own: Sequence[OpenCLDriver], make: Make) -> OpenCLDriver | None:
    """See `sarek_numba.runtime.adopted.Adopter`."""
    cl = driver.load()
    import pyopencl.array

    if isinstance(value, pyopencl.array.Array):
        return _driver_for(*_place_of(value), own, make)[0]
    if isinstance(value, cl.CommandQueue):
        return _driver_for(value.context, value.device, own, make)[0]
    if isinstance(value, cl.Context):
        return _driver_for(value, _only_device(value), own, make)[0]
    return None


def _refused_svm() -> NotAdopted:
    return NotAdopted(
        "is an array in shared virtual memory of OpenCL, which kernels do not take",
        "make it without allocator=, in a buffer",
    )


def _place_of(array: Any) -> tuple[Any, Any]:
    """The context and the device of an array."""
    if array.queue is not None:
        return array.queue.context, array.queue.device
    context = array.context or array.base_data.context
    return context, _only_device(context)


def _only_device(context: Any) -> Any:
    devices = context.devices
    if len(devices) > 1:
        names = ", ".join(device.name for device in devices)
        raise NotAdopted(
            f"is of a context with {len(devices)} devices ({names}), and has no queue",
            "x.with_queue(queue) says which device works on it",
        )
    return devices[0]


def _driver_for(
    context: Any, device: Any, own: Sequence[OpenCLDriver], make: Make
) -> tuple[OpenCLDriver, str]:
    """The driver of a context and a device, and the device's name."""
    home = next((each for each in own if each.device in (device, device.parent_device)), None)
    name = f"opencl:{device.name}" if home is None else home.record.name
    if home is not None and home.device == device and home.has_context(context):
        return home, name
    key = (context.int_ptr, device.int_ptr)
    with _lock:
        found = _drivers.get(key)
        if found is None:
            number = _names[name] = _names.get(name, 0) + 1
            found = _drivers[key] = make(device, f"{name}@{number}", context)
        return found, name


def _whole(array: Any, owner: OpenCLDriver) -> tuple[Any, int, int]:
    """The buffer of an array, where in it the array begins, and the bytes it has.

    OpenCL has no parts of parts: what stands for a part gives way to its whole.
    """
    cl = driver.load()
    info = cl.mem_info
    memory, offset = array.base_data, int(array.offset)
    if memory is None:  # nothing has no memory
        return cl.Buffer(owner.context, cl.mem_flags.READ_WRITE, 1), 0, 0
    whole = memory.get_info(info.ASSOCIATED_MEMOBJECT)
    if whole is not None:
        offset += int(memory.get_info(info.OFFSET))
        memory = whole
    buffer = cl.Buffer.from_int_ptr(memory.int_ptr, retain=True)
    return buffer, offset, int(buffer.size)
