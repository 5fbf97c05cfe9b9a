"""A HIP runtime and a hiprtc for tests: functions of C, whose device is the one of `fake_cuda`.

`Library` has every function that `sarek_hip.driver` declares, made of its own types, so a call goes
through ctypes as one of the real library does. `calls` has their names in order; `fake` does what
they ask, lazily, and has a call fail. What goes wrong in the library itself is in `faults`.
"""

# ruff: noqa: N802, N815 # the names are HIP's

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int, c_void_p
from functools import partial
from typing import Any

from sarek_cuda.driver import CudaError, ImageError
from sarek_hip import driver
from tests.fake_cuda import CONTEXT, FakeApi, FakeFunction, FakeModule

NOT_READY = driver.NOT_READY
_INVALID_VALUE, _INVALID_IMAGE, _UNKNOWN = 1, 200, 999
ARCHITECTURE = "gfx90a:sramecc+:xnack-"
VERSION = 70154321  # 7.1.54321
NAMES = {
    1: b"hipErrorInvalidValue",
    2: b"hipErrorOutOfMemory",
    100: b"hipErrorNoDevice",
    200: b"hipErrorInvalidImage",
    500: b"hipErrorNotFound",
    600: b"hipErrorNotReady",
    700: b"hipErrorIllegalAddress",
    701: b"hipErrorLaunchOutOfResources",
    719: b"hipErrorLaunchFailure",
}
ATTRIBUTES = {
    "MaxBlockDimX": 1024,
    "MaxBlockDimY": 1024,
    "MaxBlockDimZ": 1024,
    "MaxGridDimX": 2**31 - 1,
    "MaxGridDimY": 65536,
    "MaxGridDimZ": 65536,
    "MaxThreadsPerBlock": 1024,
    "MaxThreadsPerMultiProcessor": 2048,
    "MultiprocessorCount": 2,
    "MaxRegistersPerBlock": 65536,
    "MaxSharedMemoryPerBlock": 64 << 10,
    "WarpSize": 64,
}


_HEAD = b"\x7fELF\x02\x01\x01\x40".ljust(16, b"\0")


def packed(value: Any) -> bytes:
    """A value as MessagePack, in the forms that have a length of 16 bits or are numbers of 8."""
    if isinstance(value, int):
        return struct.pack(">BB", 0xCC, value)
    if isinstance(value, str):
        return struct.pack(">BH", 0xDA, len(value)) + value.encode()
    if isinstance(value, dict):
        parts = [part for pair in value.items() for part in pair]
        return struct.pack(">BH", 0xDE, len(value)) + b"".join(map(packed, parts))
    return struct.pack(">BH", 0xDC, len(value)) + b"".join(map(packed, value))


def elf(content: bytes, code: bytes) -> bytes:
    """ELF with a note of AMD's, and a library of the host behind it.

    Where the library is stands in fields of the head that a loader of programs would read.
    """
    note = struct.pack("<III8s", 7, len(content), 32, b"AMDGPU\0") + content
    first = 64 + 56 + len(note)
    head = struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, first, 64, len(code), 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(note), len(note), 4)
    return _HEAD + head + segment + note + code


def image(code: bytes) -> bytes:
    """A code object that tells of the kernels of a library of the host."""
    module = FakeModule(code)
    told = []
    for name in module.names:
        sizes = FakeFunction(module.library, name, *module.kernels[name]).sizes
        parts = [{".size": size, ".value_kind": "by_value"} for size in sizes]
        told.append({".name": name, ".args": [*parts, {".size": 8, ".value_kind": "hidden_none"}]})
    return elf(packed({"amdhsa.kernels": told}), code)


class _Program:
    """A program of hiprtc."""

    def __init__(self, source: bytes) -> None:
        self.source = source.decode()
        self.code, self.log = b"", b""


class _Thread(threading.local):
    device = 0
    last = 0


def _by_number(table: dict[str, int]) -> dict[int, str]:
    return {number: name for name, number in table.items()}


class Library:
    """Both libraries. `properties` are the functions that fill the properties of a device."""

    def __init__(self, devices: int = 1, memory: int = 1 << 30) -> None:
        self.fake = FakeApi(devices, memory)
        self.fake.header = "hip.h"
        self.calls: list[str] = []
        self.faults: list[BaseException] = []
        self.attributes = dict(ATTRIBUTES)
        self.fake.most_declared = self.attributes["MaxSharedMemoryPerBlock"]
        self.architecture = ARCHITECTURE
        self.threads = _Thread()
        self._objects: dict[int, Any] = {}
        self._texts: dict[int, Any] = {}
        tables = (driver.RUNTIME_CALLS, driver.COMPILER_CALLS)
        for name, types in (item for table in tables for item in table.items()):
            self._make(name, CFUNCTYPE(c_int, *types), partial(self._run, name))
        for name, types in (driver.RUNTIME_TEXTS | driver.COMPILER_TEXTS).items():
            self._make(name, CFUNCTYPE(c_void_p, *types), self._text)
        self.provide("hipGetDevicePropertiesR0600", 1160)

    def _make(self, name: str, kind: Any, do: Callable[..., Any]) -> None:
        setattr(self, name, kind(do))

    def provide(self, name: str, place: int) -> None:
        """Have a function that fills the properties of a device, with the name at a place."""

        def fill(room: int, device: int) -> int:
            self.calls.append(name)
            ctypes.memmove(room + place, self.architecture.encode(), len(self.architecture))
            return 0

        self._make(name, CFUNCTYPE(c_int, c_void_p, c_int), fill)

    # --- how a call is done ---

    def _run(self, name: str, *given: Any) -> int:
        self.calls.append(name)
        if name == "hipGetLastError":
            status, self.threads.last = self.threads.last, 0
            return status
        self.fake._contexts.stack = [CONTEXT + self.threads.device]
        try:
            status = getattr(self, f"_{name}")(*given) or 0
        except CudaError as error:
            status = error.code
        except ImageError:
            status = _INVALID_IMAGE
        except BaseException as fault:  # it would be lost in ctypes
            self.faults.append(fault)
            status = _UNKNOWN
        self.threads.last = status or self.threads.last
        return status

    def _text(self, status: int) -> int:
        made = ctypes.create_string_buffer(NAMES.get(status, b"hipErrorUnknown"))
        return ctypes.addressof(self._texts.setdefault(status, made))

    def _keep(self, out: Any, made: Any) -> None:
        self._objects[id(made)] = made
        out[0] = id(made)

    def object(self, address: Any) -> Any:
        """What a pointer stands for."""
        return self._objects[address]

    # --- devices ---

    def _hipInit(self, flags: int) -> None:
        self.fake._call("start")

    def _hipDriverGetVersion(self, out: Any) -> None:
        out[0] = VERSION

    _hipRuntimeGetVersion = _hipDriverGetVersion

    def _hipGetDeviceCount(self, out: Any) -> None:
        out[0] = len(self.fake.devices())

    def _hipGetDevice(self, out: Any) -> None:
        self.fake._call("current_context")
        out[0] = self.threads.device

    def _hipSetDevice(self, device: int) -> int:
        if device not in self.fake.devices():
            return 101
        self.threads.device = device
        return 0

    def _hipDeviceGetName(self, room: int, size: int, device: int) -> None:
        name = f"{self.fake.device_name(device)}\0".encode()
        assert len(name) <= size
        ctypes.memmove(room, name, len(name))

    def _hipDeviceTotalMem(self, out: Any, device: int) -> None:
        out[0] = self.fake.device_memory(device)

    def _hipDeviceGetAttribute(self, out: Any, attribute: int, device: int) -> None:
        out[0] = self.attributes[_by_number(driver.ATTRIBUTES)[attribute]]

    # --- code ---

    def _hiprtcVersion(self, major: Any, minor: Any) -> None:
        major[0], minor[0] = 9, 0

    def _hiprtcCreateProgram(self, out: Any, source: bytes, name: bytes, *headers: Any) -> None:
        self._keep(out, _Program(source))

    def _hiprtcCompileProgram(self, program: int, count: int, options: Any) -> int:
        made = self.object(program)
        given = [options[k].decode() for k in range(count)]
        code, log = self.fake.compile(made.source, given, ptx=False)
        made.code, made.log = (image(code) if code else b""), log.encode() + b"\0"
        return 0 if code else 6

    def _hiprtcGetProgramLogSize(self, program: int, out: Any) -> None:
        out[0] = len(self.object(program).log)

    def _hiprtcGetProgramLog(self, program: int, room: int) -> None:
        ctypes.memmove(room, self.object(program).log, len(self.object(program).log))

    def _hiprtcGetCodeSize(self, program: int, out: Any) -> None:
        out[0] = len(self.object(program).code)

    def _hiprtcGetCode(self, program: int, room: int) -> None:
        ctypes.memmove(room, self.object(program).code, len(self.object(program).code))

    def _hiprtcDestroyProgram(self, program: Any) -> None:
        del self._objects[program[0]]

    def _hipModuleLoadData(self, out: Any, place: int) -> int:
        if not ctypes.string_at(place).startswith(_HEAD[:4]):
            return _INVALID_IMAGE
        first, _, size = struct.unpack_from("<QQQ", ctypes.string_at(place, 64), 24)
        self._keep(out, self.fake.load(ctypes.string_at(place + first, size)))
        return 0

    def _hipModuleUnload(self, module: int) -> None:
        self.fake.unload(self.object(module))
        del self._objects[module]

    def _hipModuleGetFunction(self, out: Any, module: int, name: bytes) -> None:
        function = self.fake.function(self.object(module), name.decode())
        function.shared = self.attributes["MaxSharedMemoryPerBlock"]
        function.is_loaded = True
        self._keep(out, function)

    def _hipFuncGetAttribute(self, out: Any, attribute: int, function: int) -> None:
        name = _by_number(driver.FUNCTION_ATTRIBUTES)[attribute]
        out[0] = self.fake.function_attribute(self.object(function), name)

    def _hipModuleLaunchKernel(self, function: int, *given: Any) -> int:
        *sizes, stream, addresses, extra = given
        if extra:
            return _INVALID_VALUE
        launch = self.fake.launch
        return int(launch(self.object(function), *sizes, self.object(stream), addresses, 0)[0])

    # --- memory ---

    def _hipMalloc(self, out: Any, size: int) -> None:
        out[0] = self.fake.allocate(size)

    def _hipFree(self, address: int) -> None:
        self.fake.free(address)

    def _hipHostMalloc(self, out: Any, size: int, flags: int) -> None:
        out[0] = self.fake.allocate_host(size)

    def _hipHostFree(self, address: int) -> None:
        self.fake.free_host(address)

    def _hipMemGetInfo(self, free: Any, total: Any) -> None:
        free[0], total[0] = self.fake.free_memory(), self.fake.size

    def _hipMemcpyHtoDAsync(self, to: int, host: int, size: int, stream: int) -> None:
        self.fake.copy_in(to, host, size, self.object(stream))

    def _hipMemcpyDtoHAsync(self, host: int, of: int, size: int, stream: int) -> None:
        self.fake.copy_out(host, of, size, self.object(stream))

    def _hipMemcpyDtoDAsync(self, to: int, of: int, size: int, stream: int) -> None:
        fake = self.fake
        home = fake.homes[fake.memory_around(to)[0]]
        fake.copy_between(to, home, of, home, size, self.object(stream))

    def _hipMemcpyPeerAsync(
        self, to: int, here: int, of: int, there: int, size: int, stream: int
    ) -> None:
        assert here != there
        fake = self.fake
        homes = [fake.homes[fake.memory_around(address)[0]] for address in (to, of)]
        fake.copy_between(to, homes[0], of, homes[1], size, self.object(stream))

    # --- streams and events ---

    def _hipStreamCreateWithFlags(self, out: Any, flags: int) -> None:
        assert flags == 1, "a stream that waits for the default one"
        self._keep(out, self.fake.stream())

    def _hipStreamSynchronize(self, stream: int) -> None:
        self.fake.finish_stream(self.object(stream))

    def _hipStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        self.fake.follow(self.object(stream), self.object(event))

    def _hipEventCreateWithFlags(self, out: Any, flags: int) -> None:
        self._keep(out, self.fake.event(timed=not flags & 2))

    def _hipEventRecord(self, event: int, stream: int) -> None:
        self.fake.record(self.object(event), self.object(stream))

    def _hipEventQuery(self, event: int) -> int:
        return 0 if self.fake.has_happened(self.object(event)) else NOT_READY

    def _hipEventSynchronize(self, event: int) -> None:
        self.fake.wait_for(self.object(event))

    def _hipEventElapsedTime(self, out: Any, start: int, end: int) -> None:
        out[0] = self.fake.elapsed_ms(self.object(start), self.object(end))


def api(library: Library | None = None) -> driver.Api:
    """The API of a library."""
    made = library or Library()
    return driver.opened(made, made)
