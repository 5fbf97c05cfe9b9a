"""The HIP runtime and hiprtc: finding them, the calls that are made, and their errors as ours.

All calls go through `Api`, and from it through ctypes with the types of HIP's documentation. The
packages that bind HIP are made for one version of ROCm each; these calls are the same from 5.0 on,
and each is one function of C. Only this module uses ctypes. Nothing is loaded before `api()`.

A context is a device: each thread has a current one, from its start on, which is what it was again
after each call. Statuses that were handled here are taken from `hipGetLastError`, which libraries
look at after launches of their own.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p
from functools import cached_property
from typing import Any

from sarek_hip import code_object
from sarek_hip.finding import (
    INSTALL,
    INSTALL_COMPILER,
    OLDEST,
    ROCM,
    about_devices,
    file_names,
    folders,
)
from sarek_numba.runtime.cudalike.access import Access, check
from sarek_numba.runtime.cudalike.api import ApiError, Framework, ImageError
from sarek_numba.runtime.cudalike.found import Found
from sarek_numba.runtime.device import BackendUnavailable

__all__ = ["Access", "Api", "HipError", "ImageError", "api", "check", "opened", "use"]

NO_DEVICE = (100, 101)  # the latter from runtimes that look for device 0
NOT_READY = 600
STICKY = {  # after these nothing works in the process: HIP, error codes
    214: "an error of memory that could not be corrected",
    700: "an access to an address that is no memory of the kernel",
    702: "a kernel that ran for too long",
    709: "the context was destroyed",
    710: "an assertion of the kernel",
    719: "a kernel that the device stopped",
}
_NO_CODE = (200, 209, 218, 303)  # statuses of a code object that is none of this device's

HIP = Framework(
    name="HIP",
    compiler="hiprtc",
    attribute="HIP_FUNC_ATTRIBUTE_",
    usual_shared=1 << 30,  # no kernel has to be told
    out_of_memory=2,
    not_found=500,
    out_of_resources=701,
    sticky=STICKY,
)

# hip_runtime_api.h of ROCm 5.2 and of 7: the numbers are the same
ATTRIBUTES = {
    "MaxBlockDimX": 26,
    "MaxBlockDimY": 27,
    "MaxBlockDimZ": 28,
    "MaxGridDimX": 29,
    "MaxGridDimY": 30,
    "MaxGridDimZ": 31,
    "MaxThreadsPerBlock": 56,
    "MaxThreadsPerMultiProcessor": 57,
    "MultiprocessorCount": 63,
    "MaxRegistersPerBlock": 71,
    "MaxSharedMemoryPerBlock": 74,
    "WarpSize": 87,
}
FUNCTION_ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": 0,
    "SHARED_SIZE_BYTES": 1,
    "NUM_REGS": 4,
    "MAX_DYNAMIC_SHARED_SIZE_BYTES": 8,
}
_NON_BLOCKING = 1  # hipStreamNonBlocking
_TIMED, _NOT_TIMED = 0, 2  # hipEventDefault, hipEventDisableTiming
_PORTABLE = 1  # hipHostMallocPortable

_PROPERTIES_BYTES = 16384  # more than hipDeviceProp_t of any version has
# Functions that fill it, the newest first, and the byte at which gcnArchName begins there.
PROPERTIES = (
    ("hipGetDevicePropertiesR0600", 1160),
    ("hipGetDevicePropertiesR0000", 396),
    ("hipGetDeviceProperties", 396),
)
_ARCHITECTURE = re.compile(rb"gfx[0-9a-f]+(?::[a-z]+[+-])*\0")

RUNTIME_CALLS: dict[str, tuple[Any, ...]] = {
    "hipInit": (c_uint,),
    "hipDriverGetVersion": (POINTER(c_int),),
    "hipRuntimeGetVersion": (POINTER(c_int),),
    "hipGetLastError": (),
    "hipGetDeviceCount": (POINTER(c_int),),
    "hipGetDevice": (POINTER(c_int),),
    "hipSetDevice": (c_int,),
    "hipDeviceGetName": (c_void_p, c_int, c_int),
    "hipDeviceTotalMem": (POINTER(c_size_t), c_int),
    "hipDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "hipModuleLoadData": (POINTER(c_void_p), c_void_p),
    "hipModuleUnload": (c_void_p,),
    "hipModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "hipFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "hipModuleLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p),
    "hipMalloc": (POINTER(c_void_p), c_size_t),
    "hipFree": (c_void_p,),
    "hipHostMalloc": (POINTER(c_void_p), c_size_t, c_uint),
    "hipHostFree": (c_void_p,),
    "hipMemGetInfo": (POINTER(c_size_t), POINTER(c_size_t)),
    "hipMemcpyHtoDAsync": (c_void_p, c_void_p, c_size_t, c_void_p),
    "hipMemcpyDtoHAsync": (c_void_p, c_void_p, c_size_t, c_void_p),
    "hipMemcpyDtoDAsync": (c_void_p, c_void_p, c_size_t, c_void_p),
    "hipMemcpyPeerAsync": (c_void_p, c_int, c_void_p, c_int, c_size_t, c_void_p),
    "hipStreamCreateWithFlags": (POINTER(c_void_p), c_uint),
    "hipStreamSynchronize": (c_void_p,),
    "hipStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "hipEventCreateWithFlags": (POINTER(c_void_p), c_uint),
    "hipEventRecord": (c_void_p, c_void_p),
    "hipEventQuery": (c_void_p,),
    "hipEventSynchronize": (c_void_p,),
    "hipEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
}
RUNTIME_TEXTS = {"hipGetErrorName": (c_int,), "hipGetErrorString": (c_int,)}
COMPILER_CALLS: dict[str, tuple[Any, ...]] = {
    "hiprtcVersion": (POINTER(c_int), POINTER(c_int)),
    "hiprtcCreateProgram": (
        *(POINTER(c_void_p), c_char_p, c_char_p),
        *(c_int, POINTER(c_char_p), POINTER(c_char_p)),
    ),
    "hiprtcCompileProgram": (c_void_p, c_int, POINTER(c_char_p)),
    "hiprtcGetProgramLogSize": (c_void_p, POINTER(c_size_t)),
    "hiprtcGetProgramLog": (c_void_p, c_void_p),
    "hiprtcGetCodeSize": (c_void_p, POINTER(c_size_t)),
    "hiprtcGetCode": (c_void_p, c_void_p),
    "hiprtcDestroyProgram": (POINTER(c_void_p),),
}
COMPILER_TEXTS = {"hiprtcGetErrorString": (c_int,)}


class HipError(ApiError):
    """A status of a call that is no success."""


class _Devices(threading.local):
    """The devices that a thread used before those of `push_context`."""

    def __init__(self) -> None:
        self.before: list[int] = []


def _declare(library: Any, calls: dict[str, tuple[Any, ...]], result: Any) -> None:
    """Give functions their types. Raises AttributeError for one that is not there."""
    for name, types in calls.items():
        function = getattr(library, name)
        function.argtypes = types
        function.restype = result


class Api:
    """The calls of the runtime and of hiprtc that are made. Each raises HipError.

    Devices are numbers, as are modules, functions, streams and events: their addresses. A context
    is a device's number and 1.
    """

    framework = HIP

    def __init__(self, hip: Any, rtc: Any) -> None:
        self._hip = hip
        self._rtc = rtc
        self._devices = _Devices()
        self._images: dict[int, bytes] = {}  # of modules, for what they say of their kernels
        self._kernels: dict[int, tuple[int, str]] = {}  # module and name of each function

    def declare(self) -> None:
        """Give the functions of the runtime their types. Raises AttributeError."""
        _declare(self._hip, RUNTIME_CALLS, c_int)
        _declare(self._hip, RUNTIME_TEXTS, c_char_p)

    def declare_compiler(self) -> None:
        """Give the functions of hiprtc their types. Raises AttributeError."""
        _declare(self._rtc, COMPILER_CALLS, c_int)
        _declare(self._rtc, COMPILER_TEXTS, c_char_p)

    def check(self, result: tuple[int]) -> None:
        """Raise the error of what `launch` gave."""
        self._do(result[0])

    def _do(self, status: int) -> None:
        if status:
            self._hip.hipGetLastError()
            name, text = self._hip.hipGetErrorName(status), self._hip.hipGetErrorString(status)
            told = "" if text == name else (text or b"").decode(errors="replace")
            raise HipError(status, (name or b"hipError").decode(errors="replace"), told)

    def _int(self, call: Any, *arguments: Any) -> int:
        value = c_int()
        self._do(call(byref(value), *arguments))
        return value.value

    def _size(self, call: Any, *arguments: Any) -> int:
        value = c_size_t()
        self._do(call(byref(value), *arguments))
        return value.value

    def _pointer(self, call: Any, *arguments: Any) -> int:
        value = c_void_p()
        self._do(call(byref(value), *arguments))
        return value.value or 0

    # --- devices ---

    def start(self) -> None:
        """Load the driver."""
        self._do(self._hip.hipInit(0))

    def driver_version(self) -> int:
        """Of the driver: 50221153 is 5.2.21153."""
        return self._int(self._hip.hipDriverGetVersion)

    def runtime_version(self) -> int:
        """Of the runtime, likewise."""
        return self._int(self._hip.hipRuntimeGetVersion)

    def devices(self) -> list[int]:
        """All devices."""
        return list(range(self._int(self._hip.hipGetDeviceCount)))

    def device_name(self, device: int) -> str:
        """The product's name."""
        name = ctypes.create_string_buffer(256)
        self._do(self._hip.hipDeviceGetName(name, len(name), device))
        return name.value.decode(errors="replace").strip()

    def device_memory(self, device: int) -> int:
        """Bytes of memory in all."""
        return self._size(self._hip.hipDeviceTotalMem, device)

    def attribute(self, device: int, name: str) -> int:
        """An attribute by its name, without the prefix hipDeviceAttribute."""
        return self._int(self._hip.hipDeviceGetAttribute, ATTRIBUTES[name], device)

    def architecture(self, device: int) -> str:
        """The gcnArchName, as gfx90a:sramecc+:xnack-. Raises BackendUnavailable.

        It is no attribute, and the structure that has it is another one in each ROCm: the place
        in it is that of LLVM's amdgpu-arch, and a name stands there or the call is not used.
        """
        for call, place in PROPERTIES:
            function = getattr(self._hip, call, None)
            if function is None:
                continue
            function.argtypes, function.restype = (c_void_p, c_int), c_int
            room = ctypes.create_string_buffer(_PROPERTIES_BYTES)
            self._do(function(room, device))
            found = _ARCHITECTURE.match(room.raw, place)
            if found:
                return found[0].rstrip(b"\0").decode()
        raise BackendUnavailable(
            "the properties of the device name no architecture; those of ROCm 5 to 7 are known, "
            f"and this is HIP {shown(self.runtime_version())}"
        )

    # --- contexts ---

    def primary_context(self, device: int) -> int:
        """That of a device."""
        return device + 1

    def current_context(self) -> int:
        """That of this thread."""
        return self._int(self._hip.hipGetDevice) + 1

    def set_context(self, context: int) -> None:
        """Have this thread use a device."""
        self._do(self._hip.hipSetDevice(context - 1))

    def push_context(self, context: int) -> None:
        """Have this thread use a device until `pop_context`."""
        before = self.current_context()
        self.set_context(context)
        self._devices.before.append(before)

    def pop_context(self) -> None:
        """Have this thread use the device that it used before."""
        self.set_context(self._devices.before.pop())

    # --- code ---

    def compiler_version(self) -> tuple[int, int]:
        """Of hiprtc."""
        major, minor = c_int(), c_int()
        self._compiler(self._rtc.hiprtcVersion(byref(major), byref(minor)))
        return major.value, minor.value

    def _compiler(self, status: int) -> None:
        if status:
            text = self._rtc.hiprtcGetErrorString(status) or b"hiprtc failed"
            raise HipError(status, text.decode(errors="replace"))

    def compile(self, source: str, options: Sequence[str]) -> tuple[bytes, str]:
        """A code object and the log; no bytes where the compiler rejects the source."""
        rtc, program = self._rtc, c_void_p()
        self._compiler(
            rtc.hiprtcCreateProgram(byref(program), source.encode(), b"sarek.hip", 0, None, None)
        )
        try:
            given = (c_char_p * len(options))(*(option.encode() for option in options))
            status = rtc.hiprtcCompileProgram(program, len(options), given)
            log = self._text(rtc.hiprtcGetProgramLogSize, rtc.hiprtcGetProgramLog, program)
            told = log.split(b"\0")[0].decode(errors="replace").strip()
            if status:
                name = rtc.hiprtcGetErrorString(status) or b"hiprtc failed"
                return b"", told or name.decode(errors="replace")
            return self._text(rtc.hiprtcGetCodeSize, rtc.hiprtcGetCode, program), told
        finally:
            rtc.hiprtcDestroyProgram(byref(program))

    def _text(self, size_of: Any, get: Any, program: c_void_p) -> bytes:
        size = c_size_t()
        self._compiler(size_of(program, byref(size)))
        room = ctypes.create_string_buffer(size.value + 1)
        self._compiler(get(program, room))
        return room.raw[: size.value]

    def load(self, image: bytes) -> int:
        """A module of a code object. Raises ImageError."""
        try:
            module = self._pointer(self._hip.hipModuleLoadData, image)
            self._images[module] = image
            return module
        except HipError as error:
            if error.code in _NO_CODE:
                raise ImageError(error, "") from error
            raise

    def unload(self, module: int) -> None:
        """Give a module up, whose kernels nobody launches any more."""
        self._images.pop(module, None)
        for function in [f for f, (of, _) in list(self._kernels.items()) if of == module]:
            self._kernels.pop(function, None)
        self._do(self._hip.hipModuleUnload(module))

    def function(self, module: int, name: str) -> int:
        """A kernel of a module."""
        function = self._pointer(self._hip.hipModuleGetFunction, module, name.encode())
        self._kernels[function] = module, name
        return function

    def finish_loading(self, function: int) -> None:
        """Nothing is left: a module is loaded with all of its kernels."""

    def function_names(self, module: int) -> Sequence[str]:
        """The names of a module's kernels, as the linker has them, by its metadata."""
        return tuple(code_object.kernels(self._images[module]))

    def parameter_sizes(self, function: int) -> tuple[int, ...] | None:
        """Bytes of each parameter, by the metadata; None where there is none."""
        module, name = self._kernels[function]
        return code_object.kernels(self._images[module]).get(name)

    def function_attribute(self, function: int, name: str) -> int:
        """An attribute by its name, without the prefix."""
        return self._int(self._hip.hipFuncGetAttribute, FUNCTION_ATTRIBUTES[name], function)

    def set_function_attribute(self, function: int, name: str, value: int) -> None:
        """Nothing has to be set: a kernel may have all dynamic bytes that the device has."""

    @cached_property
    def launch(self) -> Any:
        """See `cudalike.api.Api.launch`."""
        call = self._hip.hipModuleLaunchKernel

        def launch(*given: Any) -> tuple[int]:
            return (call(*given),)

        return launch

    def calls_for_machine_code(self) -> tuple[int, int]:
        """The addresses of hipModuleLaunchKernel and hipGetDevice."""
        launch, current = (
            ctypes.cast(call, c_void_p).value or 0
            for call in (self._hip.hipModuleLaunchKernel, self._hip.hipGetDevice)
        )
        return launch, current

    def context_word(self, context: int) -> int:
        """A device, as hipGetDevice writes it."""
        return context - 1

    def number(self, handle: int) -> int:
        """Functions and streams are numbers."""
        return handle

    def status(self, code: int) -> int:
        """Statuses are numbers."""
        return code

    # --- memory ---

    def allocate(self, size: int) -> int:
        """The address of so many bytes of the current device's memory."""
        return self._pointer(self._hip.hipMalloc, size)

    def free(self, address: int) -> None:
        """Give memory back."""
        self._do(self._hip.hipFree(address))

    def allocate_host(self, size: int) -> int:
        """The address of so many page-locked bytes of the host, for all devices."""
        return self._pointer(self._hip.hipHostMalloc, size, _PORTABLE)

    def free_host(self, address: int) -> None:
        """Give page-locked memory back."""
        self._do(self._hip.hipHostFree(address))

    def free_memory(self) -> int:
        """Bytes that the current device has left."""
        free, total = c_size_t(), c_size_t()
        self._do(self._hip.hipMemGetInfo(byref(free), byref(total)))
        return free.value

    def copy_in(self, to: int, host: int, size: int, stream: int) -> None:
        """From the host, in a stream."""
        self._do(self._hip.hipMemcpyHtoDAsync(to, host, size, stream))

    def copy_out(self, host: int, of: int, size: int, stream: int) -> None:
        """To the host, in a stream."""
        self._do(self._hip.hipMemcpyDtoHAsync(host, of, size, stream))

    def copy_between(
        self, to: int, to_context: int, of: int, of_context: int, size: int, stream: int
    ) -> None:
        """Within a device, or from one to another, in a stream of the first one."""
        hip = self._hip
        if to_context == of_context:
            self._do(hip.hipMemcpyDtoDAsync(to, of, size, stream))
        else:
            here, there = to_context - 1, of_context - 1
            self._do(hip.hipMemcpyPeerAsync(to, here, of, there, size, stream))

    # --- streams and events ---

    def stream(self) -> int:
        """A stream that does not wait for the default one."""
        return self._pointer(self._hip.hipStreamCreateWithFlags, _NON_BLOCKING)

    def finish_stream(self, stream: int) -> None:
        """Wait for all that a stream was given."""
        self._do(self._hip.hipStreamSynchronize(stream))

    def event(self, *, timed: bool) -> int:
        """An event; only one that is timed has a time."""
        return self._pointer(self._hip.hipEventCreateWithFlags, _TIMED if timed else _NOT_TIMED)

    def record(self, event: int, stream: int) -> None:
        """Have an event happen behind all that a stream was given."""
        self._do(self._hip.hipEventRecord(event, stream))

    def has_happened(self, event: int) -> bool:
        """Whether a recorded event has."""
        status = self._hip.hipEventQuery(event)
        if status == NOT_READY:
            self._hip.hipGetLastError()
            return False
        self._do(status)
        return True

    def wait_for(self, event: int) -> None:
        """Return when an event has happened."""
        self._do(self._hip.hipEventSynchronize(event))

    def follow(self, stream: int, event: int) -> None:
        """What a stream is given from now on begins after an event."""
        self._do(self._hip.hipStreamWaitEvent(stream, event, 0))

    def elapsed_ms(self, start: int, end: int) -> float:
        """Between two timed events that have happened."""
        value = c_float()
        self._do(self._hip.hipEventElapsedTime(byref(value), start, end))
        return value.value


# --- finding it -----------------------------------------------------------------------------------


def find(library: str) -> Any:
    """A library as the loader finds it, which is the one that another package has loaded, or from
    a folder of ROCm. Raises OSError: FileNotFoundError where there is none.
    """
    names, broken = file_names(library), ""
    files = (str(folder / name) for folder in folders() for name in names)
    for name in (*names, *(file for file in files if os.path.exists(file))):
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            if not str(error).startswith(f"{name}: cannot open") and not broken:
                broken = str(error)  # it is there, and a part of it is not
    raise OSError(broken) if broken else FileNotFoundError(names[-1])


def _load() -> Api:
    try:
        hip = find("amdhip64")
    except FileNotFoundError as error:
        raise BackendUnavailable(
            f"the HIP runtime is not here ({error}); install {ROCM}: {INSTALL}"
        ) from error
    except OSError as error:
        raise BackendUnavailable(
            f"the HIP runtime cannot be loaded ({_short(error)}); it is installed in part: "
            f"{INSTALL}"
        ) from error
    try:
        rtc = find("hiprtc")
    except OSError as error:
        rtc, missing = hip, str(error)  # old runtimes have it in the same library
    else:
        missing = "libhiprtc has no such function"
    return opened(hip, rtc, missing)


def opened(hip: Any, rtc: Any, missing: str = "") -> Api:
    """The API of two libraries, with the driver started. Raises BackendUnavailable.

    `missing` says why there may be no compiler in `rtc`.
    """
    made = Api(hip, rtc)
    try:
        made.declare()
    except AttributeError as error:
        raise BackendUnavailable(
            f"the HIP runtime is too old ({_short(error)}); install {ROCM}: {INSTALL}"
        ) from error
    try:
        version = made.runtime_version()
        if version < OLDEST:
            raise BackendUnavailable(f"HIP {shown(version)} is too old; install {ROCM}: {INSTALL}")
        made.start()
        made.devices()
    except HipError as error:
        if error.code in NO_DEVICE:
            raise BackendUnavailable(f"there is no HIP device; {about_devices()}") from error
        raise BackendUnavailable(f"hipInit failed: {error}; {about_devices()}") from error
    try:
        made.declare_compiler()
        made.compiler_version()
    except (AttributeError, HipError) as error:
        raise BackendUnavailable(
            f"hiprtc cannot be loaded ({missing or _short(error)}); {INSTALL_COMPILER}"
        ) from error
    return made


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def shown(version: int) -> str:
    """A version as 5.2.21153."""
    return f"{version // 10_000_000}.{version // 100_000 % 100}.{version % 100_000}"


_found = Found(_load)
api = _found.api
use = _found.use
HIP.watch_forks(_found.is_loaded)
