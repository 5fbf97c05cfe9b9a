"""The Metal framework for tests: host memory is the device's, a host compiler makes the kernels.

`FakeMetal` has what `sarek_metal` uses of PyObjC's module `Metal`, under the same names. Kernels
are compiled and run by the shim. Command buffers are lazy: what they were given is done when
somebody waits, in an order that nothing but queues, events and gates decide, so that a runtime
which forgets to wait finds that its data is not there. `fail` has the next call of a name give
nothing, or the next kernel end with an error.
"""

from __future__ import annotations

import ctypes
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from sarek_metal.driver import COMPLETED, FAILED, Framework
from sarek_metal.memory import PAGE
from sarek_numba.errors import SourceCompilationError
from tests.toolchains.shim import driver as shim
from tests.toolchains.shim.metal import as_cpp, kernel_names

WIDTH = 32
_LANGUAGE = "shim:metal"
_COMMITTED = 2


class Size(NamedTuple):
    """MTLSize."""

    width: int
    height: int
    depth: int


class FakeError:
    """NSError."""

    def __init__(self, code: int, text: str) -> None:
        self._code, self._text = code, text

    def code(self) -> int:
        return self._code

    def localizedDescription(self) -> str:  # noqa: N802 # Metal's name
        return self._text


class Options:
    """MTLCompileOptions."""

    has_math_mode = True

    def __init__(self) -> None:
        self.fast = True
        self.precise = False

    @classmethod
    def alloc(cls) -> type[Options]:
        return cls

    @classmethod
    def init(cls) -> Options:
        return cls()

    def respondsToSelector_(self, name: bytes) -> bool:  # noqa: N802
        assert name == b"setMathMode:"
        return self.has_math_mode

    def setMathMode_(self, mode: int) -> None:  # noqa: N802
        assert self.has_math_mode
        self.fast = mode != FakeMetal.MTLMathModeSafe

    def setMathFloatingPointFunctions_(self, mode: int) -> None:  # noqa: N802
        self.precise = mode == FakeMetal.MTLMathFloatingPointFunctionsPrecise

    def setFastMathEnabled_(self, enabled: bool) -> None:  # noqa: N802
        self.fast = enabled
        self.precise = not enabled


class Contents:
    """objc.varlist."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def as_buffer(self, size: int) -> memoryview:
        return memoryview(self._memory)[:size]


class Buffer:
    """MTLBuffer: memory of its own, or pages of the host."""

    def __init__(self, device: FakeDevice, memory: Any) -> None:
        self.memory, self._device = memory, device
        device.allocated += memory.nbytes

    def __del__(self) -> None:
        self._device.allocated -= self.memory.nbytes

    def length(self) -> int:
        return int(self.memory.nbytes)

    def contents(self) -> Contents:
        return Contents(self.memory)

    @property
    def address(self) -> int:
        return int(self.memory.ctypes.data)


class Function:
    """MTLFunction."""

    def __init__(self, text: str, name: str) -> None:
        code = f"#define WARP_WIDTH {WIDTH}\n#include <metal_stdlib>\n"
        code += as_cpp(text, "program", "run", shim.SHARED_BYTES, name)
        self.run = shim.library_of(code).run
        self.meets = bool(re.search(shim.LANGUAGES[_LANGUAGE].meetings, text))


class Library:
    """MTLLibrary."""

    def __init__(self, text: str) -> None:
        self._functions = {name: Function(text, name) for name in kernel_names(text)}

    def newFunctionWithName_(self, name: str) -> Function | None:  # noqa: N802
        return self._functions.get(name)

    def functionNames(self) -> list[str]:  # noqa: N802
        return list(self._functions)


class PipelineState:
    """MTLComputePipelineState."""

    def __init__(self, function: Function, most: int) -> None:
        self.function = function
        self._most = most

    def maxTotalThreadsPerThreadgroup(self) -> int:  # noqa: N802
        return self._most

    def threadExecutionWidth(self) -> int:  # noqa: N802
        return WIDTH


class Event:
    """MTLSharedEvent."""

    def __init__(self) -> None:
        self.value = 0

    def signaledValue(self) -> int:  # noqa: N802
        return self.value

    def setSignaledValue_(self, value: int) -> None:  # noqa: N802
        self.value = value


class Encoder:
    """MTLComputeCommandEncoder and MTLBlitCommandEncoder."""

    def __init__(self, buffer: CommandBuffer) -> None:
        self._buffer = buffer
        self._given: dict[int, tuple[Any, int]] = {}
        self._shared = 0

    def setComputePipelineState_(self, state: PipelineState) -> None:  # noqa: N802
        self._state = state

    def setBuffer_offset_atIndex_(self, buffer: Buffer, offset: int, place: int) -> None:  # noqa: N802
        assert place < 31
        self._given[place] = buffer.memory, buffer.address + offset

    def setBytes_length_atIndex_(self, given: bytes, length: int, place: int) -> None:  # noqa: N802
        assert length <= 4096, "Metal takes no more"
        assert place < 31
        copy = np.frombuffer(given, np.uint8, length).copy()
        self._given[place] = copy, int(copy.ctypes.data)

    def setThreadgroupMemoryLength_atIndex_(self, size: int, place: int) -> None:  # noqa: N802
        assert size % 16 == 0
        assert place == 0
        self._shared = size

    def fillBuffer_range_value_(self, buffer: Buffer, span: Any, value: int) -> None:  # noqa: N802
        first, size = span

        def fill() -> None:
            buffer.memory[first : first + size] = value

        self._buffer.works.append(fill)

    def dispatchThreadgroups_threadsPerThreadgroup_(self, grid: Size, block: Size) -> None:  # noqa: N802
        function, device = self._state.function, self._buffer.queue.device
        given = dict(self._given)
        places = range(max(given, default=-1) + 1)
        addresses = (ctypes.c_void_p * (len(places) or 1))(*(given[k][1] for k in places))
        sizes = (ctypes.c_uint * 6)(*grid, *block)

        def run() -> None:
            with shim.lock:
                status = shim.machine()(function.run, addresses, sizes, WIDTH, int(function.meets))
            assert not status, "threads of a block wait for each other"
            given.clear()  # alive until now

        self._buffer.works.append(lambda: device.kernel(run))

    def endEncoding(self) -> None:  # noqa: N802
        """All is written."""


class CommandBuffer:
    """MTLCommandBuffer."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.works: list[Callable[[], Any]] = []
        self.waits: list[tuple[Event, int]] = []
        self._signals: list[tuple[Event, int]] = []
        self._status = 0
        self._error: FakeError | None = None
        self._times = (0.0, 0.0)

    def computeCommandEncoder(self) -> Encoder:  # noqa: N802
        return Encoder(self)

    def blitCommandEncoder(self) -> Encoder:  # noqa: N802
        return Encoder(self)

    def encodeSignalEvent_value_(self, event: Event, value: int) -> None:  # noqa: N802
        self._signals.append((event, value))

    def encodeWaitForEvent_value_(self, event: Event, value: int) -> None:  # noqa: N802
        self.waits.append((event, value))

    def commit(self) -> None:
        self._status = _COMMITTED
        with self.queue.device.lock:
            self.queue.waiting.append(self)

    def do(self) -> None:
        """What was given, if it is not done."""
        start = time.perf_counter()
        try:
            for work in self.works:
                work()
        except _KernelError as failure:
            self._error = failure.args[0]
        self._times = start, time.perf_counter()
        self.works.clear()
        if self._error is None:
            for event, value in self._signals:
                event.value = max(event.value, value)
        self._status = FAILED if self._error else COMPLETED

    def status(self) -> int:
        self.queue.device.advance()
        return self._status

    def error(self) -> FakeError | None:
        return self._error

    def waitUntilCompleted(self) -> None:  # noqa: N802
        self.queue.device.until(lambda: self._status in (COMPLETED, FAILED))

    def GPUStartTime(self) -> float:  # noqa: N802
        return self._times[0]

    def GPUEndTime(self) -> float:  # noqa: N802
        return self._times[1]


class Queue:
    """MTLCommandQueue."""

    def __init__(self, device: FakeDevice) -> None:
        self.device = device
        self.waiting: deque[CommandBuffer] = deque()
        self.gate: Callable[[], bool] = lambda: True

    def commandBuffer(self) -> CommandBuffer:  # noqa: N802
        return CommandBuffer(self)


class _KernelError(Exception):
    """A kernel that the device ends with an error."""


class FakeDevice:
    """MTLDevice. `calls` counts what was asked for by name; `copies` refuses pages of the host."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.calls: Counter[str] = Counter()
        self.lock = threading.RLock()
        self.queues: list[Queue] = []
        self.size = 1 << 32
        self.allocated = 0
        self.copies = False
        self.is_apple = True
        self.most_threads = 1024
        self._failures: dict[str, deque[Any]] = {}
        self._advancing = False

    def fail(self, call: str, error: FakeError | None = None, times: int = 1) -> None:
        """Have the next calls of a name, or kernels ("kernel"), fail."""
        self._failures.setdefault(call, deque()).extend([error] * times)

    def _fails(self, call: str) -> bool:
        self.calls[call] += 1
        return bool(self._failures.get(call)) and not self._failures[call].clear()

    def kernel(self, run: Callable[[], None]) -> None:
        self.calls["kernel"] += 1
        failures = self._failures.get("kernel")
        if failures:
            raise _KernelError(failures.popleft())
        run()

    def advance(self) -> None:
        """Do all that can be done."""
        with self.lock:
            if self._advancing:
                return
            self._advancing = True
            try:
                while any(self._step(queue) for queue in list(self.queues)):
                    pass
            finally:
                self._advancing = False

    def _step(self, queue: Queue) -> bool:
        if not queue.waiting or not queue.gate():
            return False
        if any(event.value < value for event, value in queue.waiting[0].waits):
            return False
        queue.waiting[0].do()
        queue.waiting.popleft()
        return True

    def until(self, done: Callable[[], bool]) -> None:
        while not done():
            self.advance()
            if not done():
                time.sleep(0.001)

    # --- Metal's names ---

    def name(self) -> str:
        return f"Fake {self.number}"

    def registryID(self) -> int:  # noqa: N802
        return 100 + self.number

    def supportsFamily_(self, family: int) -> bool:  # noqa: N802
        return self.is_apple and family <= FakeMetal.MTLGPUFamilyApple7

    def maxThreadsPerThreadgroup(self) -> Size:  # noqa: N802
        return Size(1024, 1024, 1024)

    def maxThreadgroupMemoryLength(self) -> int:  # noqa: N802
        return 32 << 10

    def recommendedMaxWorkingSetSize(self) -> int:  # noqa: N802
        return self.size

    def currentAllocatedSize(self) -> int:  # noqa: N802
        return self.allocated

    def maxBufferLength(self) -> int:  # noqa: N802
        return self.size

    def newLibraryWithSource_options_error_(self, text: str, options: Options, error: None) -> Any:  # noqa: N802
        self.calls["library"] += 1
        assert not options.fast, "results would change"
        assert options.precise
        try:
            return Library(text), None
        except SourceCompilationError as refusal:
            return None, FakeError(3, refusal.log)

    def newComputePipelineStateWithFunction_error_(self, function: Function, error: None) -> Any:  # noqa: N802
        if self._fails("pipeline"):
            return None, FakeError(3, "no registers")
        return PipelineState(function, self.most_threads), None

    def newBufferWithLength_options_(self, size: int, options: int) -> Buffer | None:  # noqa: N802
        assert size, "Metal has no empty buffers"
        assert options == 0, "shared memory"
        if self._fails("buffer") or self.allocated + size > self.size:
            return None
        return Buffer(self, np.full(size, 0xDD, np.uint8))

    def newBufferWithBytes_length_options_(self, given: bytes, size: int, options: int) -> Buffer:  # noqa: N802
        return Buffer(self, np.frombuffer(given, np.uint8, size).copy())

    def newBufferWithBytesNoCopy_length_options_deallocator_(  # noqa: N802
        self, pages: Any, size: int, options: int, deallocator: None
    ) -> Buffer | None:
        assert pages.ctypes.data % PAGE == size % PAGE == 0, "Metal takes whole pages"
        assert options == 0
        self.calls["pages"] += 1
        return None if self.copies else Buffer(self, pages)

    def newCommandQueue(self) -> Queue:  # noqa: N802
        self.queues.append(Queue(self))
        return self.queues[-1]

    def newSharedEvent(self) -> Event:  # noqa: N802
        return Event()


class FakeMetal:
    """The module `Metal`."""

    MTLMathModeSafe = 0
    MTLMathFloatingPointFunctionsPrecise = 1
    MTLGPUFamilyApple7 = 1007
    MTLSizeMake = Size
    MTLCompileOptions = Options

    def __init__(self, devices: int = 1) -> None:
        self.devices = [FakeDevice(number) for number in range(devices)]

    def MTLCreateSystemDefaultDevice(self) -> FakeDevice | None:  # noqa: N802
        return self.devices[0] if self.devices else None

    def MTLCopyAllDevices(self) -> list[FakeDevice]:  # noqa: N802
        return self.devices[::-1]


def framework(fake: FakeMetal | None = None) -> Framework:
    """What `sarek_metal.driver.use` takes."""
    return Framework(fake or FakeMetal(), nullcontext)
