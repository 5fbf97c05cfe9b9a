"""Devices whose launches are not done when they return: what a test does to them.

It holds their streams back, and has their launches fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

import sarek_numba as sarek
from sarek_numba.runtime.work import AT_ONCE

QUEUED = [d.name for d in sarek.devices() if d.driver.queues not in (None, AT_ONCE)]


@contextmanager
def held_back(stream: Any) -> Iterator[Callable[[], None]]:
    """In the body nothing that the stream is given from now on begins; gives how to let it go."""
    let_go = _GATES[stream.device.record.backend](stream)
    try:
        yield let_go
    finally:
        let_go()


def _opencl(stream: Any) -> Callable[[], None]:
    import pyopencl as cl

    gate = cl.UserEvent(stream.device.driver.context)
    stream.queue.queues.follow(stream.queue.handle, gate)

    def let_go() -> None:
        if gate.command_execution_status > 0:
            gate.set_status(cl.command_execution_status.COMPLETE)

    return let_go


def _cuda(stream: Any) -> Callable[[], None]:
    """The stream waits for a word of page-locked memory."""
    from sarek_cuda import driver
    from tests.fake_cuda import FakeApi

    raw, access = stream.queue.handle.raw, stream.device.driver.access
    if isinstance(access.api, FakeApi):
        return access.api.gate(raw)
    import ctypes

    from cuda.bindings import driver as cuda

    with driver.check("making a gate", access):
        address = int(access.api.check(cuda.cuMemHostAlloc(4, cuda.CU_MEMHOSTALLOC_DEVICEMAP)))
        word = ctypes.c_uint32.from_address(address)
        word.value = 0
        equal = cuda.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ
        access.api.check(cuda.cuStreamWaitValue32(raw, address, 1, int(equal)))

    def let_go() -> None:
        word.value = 1

    return let_go


def _hip(stream: Any) -> Callable[[], None]:
    """The stream waits for a word of page-locked memory."""
    import ctypes

    from tests.fake_hip import Library

    raw, api = stream.queue.handle.raw, stream.device.driver.access.api
    if isinstance(api._hip, Library):
        return api._hip.fake.gate(api._hip.object(raw))
    word = ctypes.c_uint32.from_address(api.allocate_host(4))
    word.value = 0
    equal, all_bits = 1, 0xFFFFFFFF
    place = ctypes.c_void_p(ctypes.addressof(word))
    wait = api._hip.hipStreamWaitValue32
    api.check((wait(ctypes.c_void_p(raw), place, ctypes.c_uint32(1), equal, all_bits),))

    def let_go() -> None:
        word.value = 1

    return let_go


def _metal(stream: Any) -> Callable[[], None]:
    """The stream waits for an event of the host's."""
    handle = stream.queue.handle
    event = stream.device.driver.access.device.newSharedEvent()
    handle.give(lambda buffer: buffer.encodeWaitForEvent_value_(event, 1))
    return partial(event.setSignaledValue_, 1)


def _vulkan(stream: Any) -> Callable[[], None]:
    """The lane follows another one, whose semaphore the host counts up."""
    from sarek_vulkan import driver
    from sarek_vulkan.queues import Lane, Mark

    logical = stream.device.driver.logical
    if len(logical.queues) == 1:
        pytest.skip(f"{stream.device.name} has one queue: what holds a stream back holds all back")
    gate = Lane(logical, logical.queues[0], timed=False)
    gate._submitted = 1  # as if work were on its way
    stream.queue.handle.follow(Mark(gate, 1))
    signal = driver.make("VkSemaphoreSignalInfo", semaphore=gate._semaphore[0], value=1)

    def let_go() -> None:
        if not gate.is_counted(1):
            logical.check(logical.call.vkSignalSemaphore(logical.handle, signal), "a gate")

    return let_go


_GATES = {
    "opencl": _opencl, "cuda": _cuda, "hip": _hip, "metal": _metal, "vulkan": _vulkan
}  # fmt: skip


def on_launch(monkeypatch: Any, name: str, instead: Callable[..., Any]) -> None:
    """Have `instead` be called for the driver's launch, which it is given, with its arguments."""
    owner: Any = sarek.device(name).driver
    if owner.record.backend == "opencl":
        from sarek_opencl import driver

        monkeypatch.setattr(driver, "enqueue", partial(instead, driver.enqueue))
    elif owner.record.backend == "vulkan":
        call = owner.logical.call
        monkeypatch.setattr(call, "vkCmdDispatch", partial(instead, call.vkCmdDispatch))
    elif owner.record.backend == "metal":
        from sarek_metal.runtime import Pipeline

        start = Pipeline.start
        monkeypatch.setattr(Pipeline, "start", lambda *given: instead(start, *given))
    else:
        monkeypatch.setattr(owner.access, "launch", partial(instead, owner.access.launch))
