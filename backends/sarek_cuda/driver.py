"""The CUDA driver and NVRTC: finding them, the calls that are made, and their errors as ours.

All calls go through `Api`, so that tests put host memory and a host compiler in its place (`use`).
Only this module sees `cuda.bindings`. Nothing is loaded before `api()`.

Contexts are the primary ones, which Numba, CuPy and PyTorch share: pointers of theirs are good
here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from sarek_cuda.graph_calls import GraphCalls
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.cudalike.access import Access, check, failure
from sarek_numba.runtime.cudalike.api import ApiError, Framework, ImageError
from sarek_numba.runtime.cudalike.found import Found
from sarek_numba.runtime.device import BackendUnavailable

__all__ = ["Access", "Api", "CudaError", "ImageError", "api", "check", "failure", "opened", "use"]

INSTALL = "pip install 'sarek-numba[cuda]'"
LOG_BYTES = 16384  # of the driver's compiler; what is longer is cut

OUT_OF_MEMORY = 2
INVALID_VALUE = 1
NOT_FOUND = 500
NOT_READY = 600
OUT_OF_RESOURCES = 701
_FUNCTIONS_VERSION = 12040  # of the driver: calls that tell of functions, and that load them
_MAP_BYTES = 128  # a CUtensorMap
_MAP_TYPES = {
    Scalar.FLOAT16: "FLOAT16",
    Scalar.BFLOAT16: "BFLOAT16",
    Scalar.INT8: "UINT8",
    Scalar.UINT8: "UINT8",
}
_ENTRY_VERSION = 4000  # of CUDA, whose calls these are: cuLaunchKernel came with 4.0
STICKY = {  # after these nothing works in the context: CUDA driver API, CUresult
    214: "an error of memory that could not be corrected",
    220: "an error of NVLink",
    700: "an access to an address that is no memory of the kernel",
    702: "a kernel that ran for too long",
    709: "the context was destroyed",
    710: "an assertion of the kernel",
    714: "an error of the device's stack",
    715: "an illegal instruction",
    716: "an access to an address that is not aligned",
    717: "an access in the wrong address space",
    718: "a wrong address of an instruction",
    719: "a launch that failed",
    721: "a launch that failed",
}


CUDA = Framework(
    name="CUDA",
    compiler="NVRTC",
    attribute="CU_FUNC_ATTRIBUTE_",
    usual_shared=48 * 1024,  # CUDA C++ Programming Guide, compute capabilities
    out_of_memory=OUT_OF_MEMORY,
    not_found=NOT_FOUND,
    out_of_resources=OUT_OF_RESOURCES,
    sticky=STICKY,
)


class CudaError(ApiError):
    """A status of a call that is no success."""


class Api:
    """The calls of the driver and of NVRTC that are made. Each raises CudaError.

    Devices, modules, functions, streams and events are the API's objects; contexts and addresses of
    memory are numbers.
    """

    framework = CUDA

    def __init__(self, cuda: Any, nvrtc: Any) -> None:
        self._cuda = cuda
        self._nvrtc = nvrtc

    def check(self, result: tuple[Any, ...]) -> Any:
        """What a call gave beside its status."""
        status = result[0]
        if int(status):
            raise self.error(int(status), getattr(status, "name", str(status)))
        return result[1] if len(result) == 2 else result[1:] or None

    def error(self, code: int, name: str) -> CudaError:
        """An error with the driver's text for it."""
        text = b""
        if name.startswith("CUDA"):
            status = self._cuda.CUresult(code)
            name = status.name
            text = self._cuda.cuGetErrorString(status)[1] or b""
        return CudaError(code, name, text.decode())

    # --- devices ---

    def start(self) -> None:
        """Load the driver."""
        self.check(self._cuda.cuInit(0))

    def driver_version(self) -> int:
        """Of the CUDA that the driver is for: 13000 is 13.0."""
        return int(self.check(self._cuda.cuDriverGetVersion()))

    def devices(self) -> list[Any]:
        """All devices."""
        count = self.check(self._cuda.cuDeviceGetCount())
        return [self.check(self._cuda.cuDeviceGet(k)) for k in range(count)]

    def device_name(self, device: Any) -> str:
        """The product's name."""
        name: bytes = self.check(self._cuda.cuDeviceGetName(256, device))
        return name.split(b"\0")[0].decode(errors="replace").strip()

    def device_memory(self, device: Any) -> int:
        """Bytes of memory in all."""
        return int(self.check(self._cuda.cuDeviceTotalMem(device)))

    def attribute(self, device: Any, name: str) -> int:
        """An attribute by its name, without the prefix."""
        which = getattr(self._cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.check(self._cuda.cuDeviceGetAttribute(which, device)))

    # --- contexts ---

    def primary_context(self, device: Any) -> int:
        """The primary context of a device, which is kept."""
        return int(self.check(self._cuda.cuDevicePrimaryCtxRetain(device)))

    def current_context(self) -> int:
        """That of this thread, or 0."""
        return int(self.check(self._cuda.cuCtxGetCurrent()))

    def set_context(self, context: int) -> None:
        """Have this thread use a context."""
        self.check(self._cuda.cuCtxSetCurrent(context))

    def push_context(self, context: int) -> None:
        """Have this thread use a context until `pop_context`."""
        self.check(self._cuda.cuCtxPushCurrent(context))

    def pop_context(self) -> None:
        """Have this thread use the context that it used before."""
        self.check(self._cuda.cuCtxPopCurrent())

    # --- code ---

    def compiler_version(self) -> tuple[int, int]:
        """Of NVRTC."""
        major, minor = self.check(self._nvrtc.nvrtcVersion())
        return int(major), int(minor)

    def architectures(self) -> tuple[int, ...]:
        """Those that NVRTC compiles for, as 90."""
        return tuple(map(int, self.check(self._nvrtc.nvrtcGetSupportedArchs())))

    def compile(self, source: str, options: Sequence[str], *, ptx: bool) -> tuple[bytes, str]:
        """Machine code or PTX, and the log; no bytes where the compiler rejects the source."""
        nvrtc, check = self._nvrtc, self.check
        program = check(nvrtc.nvrtcCreateProgram(source.encode(), b"sarek.cu", 0, [], []))
        try:
            given = [option.encode() for option in options]
            status = nvrtc.nvrtcCompileProgram(program, len(given), given)[0]
            log = _room(check(nvrtc.nvrtcGetProgramLogSize(program)))
            check(nvrtc.nvrtcGetProgramLog(program, log))
            told = log.rstrip(b"\0 \n").decode(errors="replace")
            if int(status):
                return b"", told or str(getattr(status, "name", status))
            size, get = (
                (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
                if ptx
                else (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
            )
            count = check(size(program))
            code = _room(count)
            check(get(program, code))
            return code[:count], told
        finally:
            nvrtc.nvrtcDestroyProgram(program)

    def load(self, image: bytes) -> Any:
        """A module of machine code or PTX. Raises ImageError with the log of the driver."""
        option = self._cuda.CUjit_option
        log = bytearray(LOG_BYTES)
        options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        values = [log, LOG_BYTES]
        try:
            return self.check(
                self._cuda.cuModuleLoadDataEx(image + b"\0", len(options), options, values)
            )
        except CudaError as error:
            told = bytes(log).split(b"\0")[0].decode(errors="replace").strip()
            raise ImageError(error, told) from error

    def unload(self, module: Any) -> None:
        """Give a module up, whose kernels nobody launches any more."""
        self.check(self._cuda.cuModuleUnload(module))

    def function(self, module: Any, name: str) -> Any:
        """A kernel of a module."""
        return self.check(self._cuda.cuModuleGetFunction(module, name.encode()))

    def finish_loading(self, function: Any) -> None:
        """Have a kernel's code on the device; old drivers may load it at its first launch.

        Drivers load lazily (CUDA_MODULE_LOADING). What loads waits for the work of the context, and
        a launch that waits for it, with the GIL held, would keep the host from letting that work go
        on.
        """
        if self.driver_version() >= _FUNCTIONS_VERSION:
            self.check(self._cuda.cuFuncLoad(function))

    def function_names(self, module: Any) -> list[str]:
        """The names of a module's kernels, as the linker has them; none from old drivers."""
        cuda, check = self._cuda, self.check
        if self.driver_version() < _FUNCTIONS_VERSION:
            return []
        count = check(cuda.cuModuleGetFunctionCount(module))
        functions = check(cuda.cuModuleEnumerateFunctions(count, module))
        functions = functions if isinstance(functions, list | tuple) else [functions]
        return [check(cuda.cuFuncGetName(function)).decode() for function in functions]

    def parameter_sizes(self, function: Any) -> tuple[int, ...] | None:
        """Bytes of each parameter; None from old drivers."""
        if self.driver_version() < _FUNCTIONS_VERSION:
            return None
        sizes: list[int] = []
        while True:
            try:
                _, size = self.check(self._cuda.cuFuncGetParamInfo(function, len(sizes)))
            except CudaError as error:
                if error.code != INVALID_VALUE:
                    raise
                return tuple(sizes)
            sizes.append(int(size))

    def function_attribute(self, function: Any, name: str) -> int:
        """An attribute by its name, without the prefix."""
        which = getattr(self._cuda.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(self.check(self._cuda.cuFuncGetAttribute(which, function)))

    def set_function_attribute(self, function: Any, name: str, value: int) -> None:
        """An attribute by its name, without the prefix."""
        which = getattr(self._cuda.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        self.check(self._cuda.cuFuncSetAttribute(function, which, value))

    @property
    def launch(self) -> Any:
        """The call that launches: (function, grid, block, bytes, stream, addresses, 0) beside each
        other; it gives a tuple with the status, which is false for success."""
        return self._cuda.cuLaunchKernel

    def tensor_map(
        self,
        type: Scalar,
        address: int,
        sizes: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
    ) -> bytes:
        """A `CUtensorMap`: what the copy engine must know of an array, and how much it takes.

        `sizes` are in elements, `strides` of all dimensions but the first in bytes. A box is stored
        with the swizzle of 128 bytes; what is outside of the array is zero.
        """
        cuda = self._cuda
        kinds, name = cuda.CUtensorMapDataType, _MAP_TYPES[type]
        made = self.check(
            cuda.cuTensorMapEncodeTiled(
                getattr(kinds, f"CU_TENSOR_MAP_DATA_TYPE_{name}"),
                len(sizes),
                address,
                [cuda.cuuint64_t(size) for size in sizes],
                [cuda.cuuint64_t(stride) for stride in strides],
                [cuda.cuuint32_t(size) for size in box],
                [cuda.cuuint32_t(1) for _ in box],
                cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
                cuda.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
                cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                cuda.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        )
        return ctypes.string_at(int(made.getPtr()), _MAP_BYTES)

    def graph_calls(self) -> GraphCalls:
        """The calls for graphs."""
        return GraphCalls(self._cuda, self.check)

    def calls_for_machine_code(self) -> tuple[int, int] | None:
        """The addresses of cuLaunchKernel and cuCtxGetCurrent; None where they are not told."""
        try:
            return self._address(b"cuLaunchKernel"), self._address(b"cuCtxGetCurrent")
        except (CudaError, AttributeError, TypeError):  # bindings differ in this call
            return None

    def _address(self, name: bytes) -> int:
        found = self.check(self._cuda.cuGetProcAddress(name, _ENTRY_VERSION, 0))
        address = int(found[0] if isinstance(found, tuple) else found)
        if not address:
            raise CudaError(NOT_FOUND, f"{name.decode()} has no address")
        return address

    def context_word(self, context: int) -> int:
        """A context as cuCtxGetCurrent writes it."""
        return context

    def number(self, handle: Any) -> int:
        """A function or a stream as machine code passes it."""
        return int(handle)

    def status(self, code: int) -> Any:
        """The status of a call that machine code made, as `launch` gives it."""
        return self._cuda.CUresult(code)

    # --- memory ---

    def allocate(self, size: int) -> int:
        """The address of so many bytes of the device's memory."""
        return int(self.check(self._cuda.cuMemAlloc(size)))

    def free(self, address: int) -> None:
        """Give memory back."""
        self.check(self._cuda.cuMemFree(address))

    def allocate_host(self, size: int) -> int:
        """The address of so many page-locked bytes of the host, for all devices."""
        flags = self._cuda.CU_MEMHOSTALLOC_PORTABLE
        return int(self.check(self._cuda.cuMemHostAlloc(size, flags)))

    def free_host(self, address: int) -> None:
        """Give page-locked memory back."""
        self.check(self._cuda.cuMemFreeHost(address))

    def free_memory(self) -> int:
        """Bytes that the device has left."""
        free, _ = self.check(self._cuda.cuMemGetInfo())
        return int(free)

    def copy_in(self, to: int, host: int, size: int, stream: Any) -> None:
        """From the host, in a stream."""
        self.check(self._cuda.cuMemcpyHtoDAsync(to, host, size, stream))

    def copy_out(self, host: int, of: int, size: int, stream: Any) -> None:
        """To the host, in a stream."""
        self.check(self._cuda.cuMemcpyDtoHAsync(host, of, size, stream))

    def copy_between(
        self, to: int, to_context: int, of: int, of_context: int, size: int, stream: Any
    ) -> None:
        """Within a device, or from one to another, in a stream of the first one's context."""
        cuda = self._cuda
        if to_context == of_context:
            self.check(cuda.cuMemcpyDtoDAsync(to, of, size, stream))
        else:
            self.check(cuda.cuMemcpyPeerAsync(to, to_context, of, of_context, size, stream))

    def home_of(self, address: int) -> tuple[int, int]:
        """The number of the device that has memory, and its context; 0 for memory of none."""
        which = self._cuda.CUpointer_attribute
        ask = self._cuda.cuPointerGetAttribute
        number = int(self.check(ask(which.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)))
        try:
            context = self.check(ask(which.CU_POINTER_ATTRIBUTE_CONTEXT, address))
        except CudaError:  # memory of pools and mapped memory
            context = 0
        return number, int(context or 0)

    def memory_around(self, address: int) -> tuple[int, int]:
        """The first byte, and how many there are, of the allocation that has an address."""
        first, size = self.check(self._cuda.cuMemGetAddressRange(address))
        return int(first), int(size)

    # --- streams and events ---

    def stream_of(self, number: int) -> Any:
        """A stream that another library has, by its number; 1 and 2 are default streams."""
        return self._cuda.CUstream(number)

    def finish_all(self) -> None:
        """Wait for all that the device was given."""
        self.check(self._cuda.cuCtxSynchronize())

    def stream(self) -> Any:
        """A stream that does not wait for the default one."""
        flag = self._cuda.CUstream_flags.CU_STREAM_NON_BLOCKING
        return self.check(self._cuda.cuStreamCreate(int(flag)))

    def finish_stream(self, stream: Any) -> None:
        """Wait for all that a stream was given."""
        self.check(self._cuda.cuStreamSynchronize(stream))

    def event(self, *, timed: bool) -> Any:
        """An event; only one that is timed has a time."""
        flags = self._cuda.CUevent_flags
        flag = flags.CU_EVENT_DEFAULT if timed else flags.CU_EVENT_DISABLE_TIMING
        return self.check(self._cuda.cuEventCreate(int(flag)))

    def record(self, event: Any, stream: Any) -> None:
        """Have an event happen behind all that a stream was given."""
        self.check(self._cuda.cuEventRecord(event, stream))

    def has_happened(self, event: Any) -> bool:
        """Whether a recorded event has."""
        result = self._cuda.cuEventQuery(event)
        if int(result[0]) == NOT_READY:
            return False
        self.check(result)
        return True

    def wait_for(self, event: Any) -> None:
        """Return when an event has happened."""
        self.check(self._cuda.cuEventSynchronize(event))

    def follow(self, stream: Any, event: Any) -> None:
        """What a stream is given from now on begins after an event."""
        self.check(self._cuda.cuStreamWaitEvent(stream, event, 0))

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """Between two timed events that have happened."""
        return float(self.check(self._cuda.cuEventElapsedTime(start, end)))


# --- finding it -----------------------------------------------------------------------------------


def _load() -> Api:
    try:
        from cuda.bindings import driver as cuda
        from cuda.bindings import nvrtc
    except Exception as error:  # a part that is missing shows in many ways
        raise BackendUnavailable(
            f"cuda-bindings cannot be imported ({type(error).__name__}: {error}); {INSTALL}"
        ) from error
    return opened(cuda, nvrtc)


def opened(cuda: ModuleType | Any, nvrtc: ModuleType | Any) -> Api:
    """The API of two modules, whose libraries are loaded. Raises BackendUnavailable."""
    made = Api(cuda, nvrtc)
    try:
        made.start()
        version = made.driver_version()
    except CudaError as error:
        reason = "there is no CUDA device" if error.code == 100 else f"cuInit failed: {error}"
        raise BackendUnavailable(f"{reason}; nvidia-smi tells whether the driver runs") from error
    except Exception as error:
        raise BackendUnavailable(
            f"NVIDIA's driver cannot be loaded ({_short(error)}); apt-get install nvidia-driver, "
            "or as your system has it"
        ) from error
    try:
        compiler = made.compiler_version()
    except Exception as error:
        raise BackendUnavailable(
            f"NVRTC cannot be loaded ({_short(error)}); pip install {_nvrtc(version // 1000)}"
        ) from error
    if compiler[0] > version // 1000:
        raise BackendUnavailable(
            f"NVRTC {compiler[0]}.{compiler[1]} is for a newer driver than that of CUDA "
            f"{shown(version)}; {_older(version // 1000)}"
        )
    return made


def _room(size: int) -> bytes:
    """Bytes for NVRTC to write, at least `size`, that nobody else has.

    CPython keeps one object for each bytes of length 1: NVRTC, which ends an empty log with a zero,
    would turn every b" " of the process into b"\\0".
    """
    return bytes(size + 2)


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _older(major: int) -> str:
    return f"pip install 'cuda-bindings=={major}.*' {_nvrtc(major)}"


def _nvrtc(major: int) -> str:
    """The package that has NVRTC of a version of CUDA."""
    suffix = "" if major >= 13 else f"-cu{major}"
    return f"'nvidia-cuda-nvrtc{suffix}=={major}.*'"


def shown(version: int) -> str:
    """A version as 12.6."""
    return f"{version // 1000}.{version % 1000 // 10}"


_found = Found(_load)
api = _found.api
use = _found.use
CUDA.watch_forks(_found.is_loaded)
