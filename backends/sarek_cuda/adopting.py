"""Arrays of other libraries on CUDA devices as arguments: where they are, in the order they say.

`__cuda_array_interface__` (Numba's documentation, version 3) says on which stream a library works
on an array; PyTorch, which does not, tells its current stream. A launch goes to that stream, so all
of it is in order. DLPack orders only what was before; there, and where nothing is said of a stream,
a launch is waited for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_cuda import driver
from sarek_numba.runtime.adopted import DeviceArray, NotAdopted
from sarek_numba.runtime.cudalike.memory import Held
from sarek_numba.runtime.cudalike.queues import Stream
from sarek_numba.runtime.device import Bytes
from sarek_numba.runtime.dlpack.driver import contiguous, described

if TYPE_CHECKING:
    from sarek_cuda.runtime import CudaDriver

_NOTHING: Bytes = np.empty(0, np.uint8)  # in place of host memory
_LEGACY = 1  # the number of the default stream, which 0 stands for in some libraries
_MANAGED = 13  # DLPack's kDLCUDAManaged
_CUDA = 2  # and kDLCUDA


@dataclass(frozen=True, slots=True)
class _Given:
    """An array: its address, and the number of the stream it is used on. None where there is none;
    `is_ready` says that there is nothing to wait for. `kept` has the memory as long.
    """

    address: int
    device: int | None
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool
    stream: int | None
    is_ready: bool
    kept: Any
    is_behind: bool = False  # is our default stream behind what the library did?


class StreamOrder:
    """See `sarek_numba.runtime.adopted.Order`."""

    def __init__(self, owner: CudaDriver, given: _Given) -> None:
        self._owner = owner
        self._is_ready = given.is_ready
        self._behind = owner.stream if given.is_behind else None
        self._kept = given.kept
        self.handle = None if given.stream is None else owner.stream_of(given.stream)
        self.is_known = self.handle is not None

    def precede(self, handle: Stream) -> None:
        """By an event; the whole device is waited for where no stream is known."""
        if handle in (self.handle, self._behind):
            return
        if self.handle is None:
            self.wait()
            return
        owner = self._owner
        access = owner.access
        with driver.check("waiting for an array's stream", access):
            event, pool = owner.streams.event(timed=False)
            access.api.record(event, self.handle.raw)
            access.api.follow(handle.raw, event)
            pool.append(event)

    def follow(self, handle: Stream, mark: Any) -> None:
        """By the launch's event."""
        if self.handle is not None and self.handle is not handle:
            self._owner.streams.follow(self.handle, mark)

    def wait(self) -> None:
        """For the stream, or for all of the device."""
        api, access = self._owner.cuda, self._owner.access
        with driver.check("waiting for an array's stream", access):
            stream = self.handle or self._behind
            if stream is not None:
                api.finish_stream(stream.raw)
            elif not self._is_ready:
                api.finish_all()


def adopt(value: Any, own: Sequence[CudaDriver]) -> DeviceArray | None:
    """See `sarek_numba.runtime.adopted.Adopter`; `own` are the drivers of all devices."""
    found = _given(value, own)
    if found is None:
        return None
    owner = _driver_for(found, own)
    first, size = _buffer_of(owner, found)
    return DeviceArray(
        driver=owner,
        home=owner.record.name,
        buffer=Held(first, _NOTHING),
        key=first,
        size=size,
        offset=found.address - first,
        dtype=found.dtype,
        shape=found.shape,
        strides=found.strides,
        writable=found.writable,
        alignment=1,  # a part is an address
        order=StreamOrder(owner, found),
    )


def driver_of(value: Any, own: Sequence[CudaDriver]) -> CudaDriver | None:
    """See `sarek_numba.runtime.adopted.Adopter`."""
    found = _given(value, own)
    return None if found is None else _driver_for(found, own)


# --- what libraries say ---------------------------------------------------------------------------


def _given(value: Any, own: Sequence[CudaDriver]) -> _Given | None:
    try:
        interface = getattr(value, "__cuda_array_interface__", None)
    except Exception as error:  # as PyTorch's, of a tensor with a gradient
        raise NotAdopted(f"does not tell its memory: {error}", "pass x.detach()") from error
    if interface is not None:
        return _by_interface(value, interface)
    if hasattr(value, "__dlpack__") and int(value.__dlpack_device__()[0]) in (_CUDA, _MANAGED):
        return _by_dlpack(value, own)
    return None


def _by_interface(value: Any, interface: Mapping[str, Any]) -> _Given:
    if interface.get("mask") is not None:
        raise NotAdopted("has a mask, which kernels do not see", "pass its data and its mask")
    dtype = np.dtype(interface["typestr"])
    if dtype.kind == "V":
        dtype = np.dtype(interface.get("descr", interface["typestr"]))
    shape = tuple(map(int, interface["shape"]))
    strides = interface.get("strides")
    address, readonly = interface["data"]
    stream, is_ready = _stream(value, interface)
    return _Given(
        address=int(address or 0),
        device=None,
        dtype=dtype,
        shape=shape,
        strides=contiguous(shape, dtype.itemsize) if strides is None else tuple(map(int, strides)),
        writable=not readonly,
        stream=stream,
        is_ready=is_ready,
        kept=value,
    )


def _stream(value: Any, interface: Mapping[str, Any]) -> tuple[int | None, bool]:
    """The number of the stream that an array is used on, or None; is there nothing to wait for?"""
    number = interface.get("stream")
    if number is not None:
        return int(number) or _LEGACY, False
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return int(torch.cuda.current_stream(value.device).cuda_stream) or _LEGACY, False
    return None, interface.get("version", 0) >= 3


def _by_dlpack(value: Any, own: Sequence[CudaDriver]) -> _Given:
    number = int(value.__dlpack_device__()[1])
    owner = _numbered(number, own)
    try:
        capsule = value.__dlpack__(stream=owner.cuda.number(owner.stream.raw))
        found = described(capsule)
    except Exception as error:  # as of a tensor with a gradient, or of a library that has gone
        raise NotAdopted(
            f"is not exported by DLPack: {error}", "pass what can be, as x.detach()"
        ) from error
    if found.dtype is None:
        raise NotAdopted(
            f"has elements of {found.element}, which NumPy does not have", "pass x as float32"
        )
    return _Given(
        address=found.address,
        device=number,
        dtype=found.dtype,
        shape=found.shape,
        strides=found.strides,
        writable=True,
        stream=None,
        is_ready=False,
        kept=(value, capsule),
        is_behind=True,
    )


# --- where it is ----------------------------------------------------------------------------------


def _driver_for(given: _Given, own: Sequence[CudaDriver]) -> CudaDriver:
    """The driver of the device that has an array; the first one for an array of nothing."""
    if given.device is not None:
        return _numbered(given.device, own)
    if not given.address:
        return own[0]
    asker = own[0]
    with driver.check("looking for an array's device", asker.access):
        try:
            number, context = asker.cuda.home_of(given.address)
        except driver.CudaError as error:
            if error.code != driver.INVALID_VALUE:
                raise
            raise NotAdopted(
                f"says that it is memory of CUDA, which has none at the address {given.address:#x}",
                "pass an array whose memory is still there, made in this process",
            ) from error
    owner = _numbered(number, own)
    if context and context != owner.access.context:
        raise NotAdopted(
            f"is memory of another context of {owner.record.name} than the primary one",
            "make it in the device's primary context, as CuPy, PyTorch and Numba do",
        )
    return owner


def _numbered(number: int, own: Sequence[CudaDriver]) -> CudaDriver:
    for each in own:
        if int(each.access.device) == number:
            return each
    raise NotAdopted(f"is on CUDA device {number}, which is not used here", "move it to another")


def _buffer_of(owner: CudaDriver, given: _Given) -> tuple[int, int]:
    """The address and the size of the memory that an array is a part of; what the array spans
    itself, where the driver does not tell.
    """
    reach = [(n - 1) * step for n, step in zip(given.shape, given.strides, strict=True)]
    if 0 in given.shape:
        return given.address, 0
    lowest = given.address + sum(step for step in reach if step < 0)
    end = given.address + sum(step for step in reach if step > 0) + given.dtype.itemsize
    with driver.check("looking for an array's memory", owner.access):
        try:
            first, size = owner.cuda.memory_around(given.address)
        except driver.CudaError:
            return lowest, end - lowest
    if lowest < first or end > first + size:  # as mapped memory may be, in pieces
        return lowest, end - lowest
    return first, size
