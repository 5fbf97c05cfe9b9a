"""A CUDA driver for tests: host memory is the device's, and a host compiler makes the kernels.

`FakeApi` has the calls of `sarek_cuda.driver.Api`. Streams are lazy: what they are given is done
when somebody asks for it, in an order that nothing but waiting, events and gates decide, so that a
runtime which forgets to wait finds that its data is not there. `fail` has a call fail, `lose` has
every call fail from the next launch on, as after an access to no memory.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import struct
import subprocess
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from sarek_cuda import driver
from sarek_cuda.driver import Api, CudaError, ImageError
from sarek_numba.codegen.cudalike import TYPES
from sarek_numba.ir.types import Scalar
from tests.fake_cuda_graphs import FakeGraphs
from tests.fake_ptx import declarations
from tests.toolchains.shim.driver import FOLDER, OPTIONS, machine, run_blocks

_DYNAMIC_BYTES = 256 << 10
_MEETS = re.compile(r"__(syncthreads|syncwarp|shfl(_sync)?)\(|warp_meeting\(")
_HEAD = """\
#define WARP_WIDTH 32
#include "{header}"
#define __constant__ static const
#define __launch_bounds__(...)
#define __forceinline__ inline
template <typename... Types> static int sizes_of(void (*)(Types...), int *sizes) {{
    const int found[] = {{(int)sizeof(Types)..., 0}};
    for (unsigned long k = 0; k < sizeof...(Types); k++) sizes[k] = found[k];
    return sizeof...(Types);
}}
#line 1
"""
_ENTRY = """
extern "C" void fake_run_{name}(void **given) {{ machine::give({name}, given); }}
extern "C" int fake_sizes_{name}(int *sizes) {{ return sizes_of({name}, sizes); }}
"""
_KERNEL = re.compile(r'(?:extern "C" )?__global__ void\s+(\w+)\s*\(')
_DYNAMIC = re.compile(r"extern __shared__ ([^;\n]+?) ?(\w+)\[\];")
_SHARED = re.compile(r"^ *__shared__ ([\w ]+?) ?\w+\[(\d+)\];", re.MULTILINE)
_BYTES = {name: max(scalar.bits, 8) // 8 for scalar, name in TYPES.items()}
_USUAL_SHARED = 48 << 10  # bytes of a kernel that was not told of more: all that may be declared
_WAITS = 20  # seconds, for a host that lets streams go on; the real driver waits for ever
_LINE = 64  # bytes that arguments may have to be aligned to
_MAGIC = b"fake cubin of 2 parts\n"
_FREE = 0xDD  # what memory is filled with

ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_BLOCK_DIM_X": 1024,
    "MAX_BLOCK_DIM_Y": 1024,
    "MAX_BLOCK_DIM_Z": 64,
    "MAX_GRID_DIM_X": 2**31 - 1,
    "MAX_GRID_DIM_Y": 65535,
    "MAX_GRID_DIM_Z": 65535,
    "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227 << 10,
    "MAX_REGISTERS_PER_BLOCK": 65536,
    "MULTIPROCESSOR_COUNT": 2,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "WARP_SIZE": 32,
}
CONTEXT = 0xC0DE
INVALID_CONTEXT = CudaError(201, "CUDA_ERROR_INVALID_CONTEXT")


class FakeEvent:
    """It has happened when what was recorded last has."""

    def __init__(self, timed: bool) -> None:
        self.timed = timed
        self.recorded = self.happened = 0
        self.at = 0.0


class FakeStream:
    """What was given and is not done."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], bool]] = deque()


class FakeFunction:
    """A kernel of a library of the host."""

    def __init__(self, library: ctypes.CDLL, name: str, meets: bool, declared: int) -> None:
        self.name = name
        self.is_loaded = False
        self.module: FakeModule | None = None
        self._run = getattr(library, f"fake_run_{name}")
        self._meets = meets
        self.shared = _USUAL_SHARED - declared  # dynamic bytes
        self.attributes = {
            "MAX_THREADS_PER_BLOCK": 1024,
            "NUM_REGS": 16,
            "SHARED_SIZE_BYTES": declared,
        }
        sizes = (ctypes.c_int * 512)()
        count = getattr(library, f"fake_sizes_{name}")(sizes)
        self.sizes = tuple(sizes[:count])

    def run(self, sizes: Any, addresses: Any) -> None:
        """All blocks, one after the other."""
        assert self.module is None or not self.module.is_unloaded, "its code is gone"
        why = run_blocks(self._run, addresses, sizes, width=32, meets=self._meets)
        assert not why, why


class FakeModule:
    """A library of the host, from the bytes of one."""

    def __init__(self, image: bytes) -> None:
        head, _, code = image.removeprefix(_MAGIC).partition(b"\n")
        # by the names of kernels: do their threads meet, and how many bytes are declared
        self.kernels: dict[str, tuple[bool, int]] = json.loads(head)
        self.names = list(self.kernels)
        machine()  # kernels find its symbols
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(code)
            file.flush()
            self.library = ctypes.CDLL(file.name)
        self.is_unloaded = False


class FakeApi(Api):
    """One device, and calls of every name of `Api`. `calls` counts them.

    `header` is that of the shim of `tests/toolchains` for the language of kernels.
    """

    header = "cuda.h"
    most_declared = _USUAL_SHARED

    def __init__(self, devices: int = 1, memory: int = 1 << 30) -> None:
        self.calls: Counter[str] = Counter()
        self.failures: dict[str, deque[CudaError]] = {}
        self.broken: CudaError | None = None
        self.size = memory
        self.memory: dict[int, np.ndarray[Any, Any]] = {}
        self.homes: dict[int, int] = {}  # contexts that have memory
        self.host: dict[int, np.ndarray[Any, Any]] = {}
        self.streams: list[FakeStream] = []
        self.attributes = dict(ATTRIBUTES)
        self._count = devices
        self._lose: CudaError | None = None
        self._last = CudaError(0, "CUDA_SUCCESS")
        self._numbered: dict[int, Any] = {}
        self._entries: tuple[Any, Any]
        self._lock = threading.RLock()
        self._contexts = threading.local()
        self._gates: list[threading.Event] = []
        self.graphs = FakeGraphs(self)

    # --- for tests ---

    def fail(self, call: str, code: int, name: str, times: int = 1) -> None:
        """Have the next calls of a name fail."""
        self.failures.setdefault(call, deque()).extend([CudaError(code, name)] * times)

    def lose(self, code: int = 700, name: str = "CUDA_ERROR_ILLEGAL_ADDRESS") -> None:
        """Have the next launch break the context when it runs."""
        self._lose = CudaError(code, name)

    def mend(self) -> None:
        """As a new process finds it."""
        self.broken = self._lose = None
        self.failures.clear()
        for stream in self.streams:
            stream.waiting.clear()

    def gate(self, stream: FakeStream) -> Callable[[], None]:
        """Have a stream wait for a call of what is given."""
        opened = threading.Event()
        with self._lock:
            self._gates.append(opened)
            stream.waiting.append(opened.is_set)
        return opened.set

    def _call(self, name: str, *, context: bool = True) -> None:
        with self._lock:
            self.calls[name] += 1
            if self.broken is not None:
                raise self.broken
            failures = self.failures.get(name)
            if failures:
                raise failures.popleft()
        if context and not self._stack:
            raise INVALID_CONTEXT

    @property
    def _stack(self) -> list[int]:
        if not hasattr(self._contexts, "stack"):
            self._contexts.stack = []
        stack: list[int] = self._contexts.stack
        return stack

    def error(self, code: int, name: str) -> CudaError:
        return self._last if self._last.code == code else CudaError(code, name)

    # --- devices and contexts ---

    def start(self) -> None:
        self._call("start", context=False)

    def driver_version(self) -> int:
        return 13000

    def devices(self) -> list[Any]:
        return list(range(self._count))

    def device_name(self, device: Any) -> str:
        return "Fake of host memory"

    def device_memory(self, device: Any) -> int:
        return self.size

    def attribute(self, device: Any, name: str) -> int:
        return self.attributes[name]

    def primary_context(self, device: Any) -> int:
        self._call("primary_context", context=False)
        return CONTEXT + int(device)

    def current_context(self) -> int:
        self._call("current_context", context=False)
        return self._stack[-1] if self._stack else 0

    def set_context(self, context: int) -> None:
        self._call("set_context", context=False)
        self._stack[-1:] = [context]

    def push_context(self, context: int) -> None:
        self._call("push_context", context=False)
        self._stack.append(context)

    def pop_context(self) -> None:
        self.calls["pop_context"] += 1
        self._stack.pop()

    # --- code ---

    def compiler_version(self) -> tuple[int, int]:
        return 13, 0

    def architectures(self) -> tuple[int, ...]:
        return (75, 80, 90)

    def compile(self, source: str, options: Any, *, ptx: bool) -> tuple[bytes, str]:
        self._call("compile", context=False)
        if ptx and not any("=compute_" in option for option in options):
            return declarations(source).encode(), ""
        names = _KERNEL.findall(source)
        region = rf"static thread_local \1 \2[{_DYNAMIC_BYTES} / sizeof(\1)];"
        head = _HEAD.format(header=self.header)
        if "TensorMap" in source:
            head = head.replace("#line 1", '#include "hopper.h"\n#line 1')
        text = head + _DYNAMIC.sub(region, source)
        code, log = _compiled(text + "".join(_ENTRY.format(name=name) for name in names))
        # its ptxas puts arrays side by side by their alignment, so there is nothing between them
        declared = sum(_BYTES[item] * int(count) for item, count in _SHARED.findall(source))
        if code and declared > self.most_declared:
            return b"", (
                f"ptxas error   : Entry function '{names[0]}' uses too much shared data "
                f"({declared:#x} bytes, {self.most_declared:#x} max)"
            )
        head = json.dumps(dict.fromkeys(names, (bool(_MEETS.search(source)), declared)))
        return (_MAGIC + head.encode() + b"\n" + code if code else b""), log

    def load(self, image: bytes) -> Any:
        self._call("load")
        self._wait_as_loading_does()
        if not image.startswith(_MAGIC):
            error = CudaError(218, "CUDA_ERROR_INVALID_PTX")
            raise ImageError(error, "ptxas application ptx input, line 1; fatal: no PTX")
        return FakeModule(image)

    def function(self, module: FakeModule, name: str) -> Any:
        self._call("function")
        if name not in module.names:
            raise CudaError(driver.NOT_FOUND, "CUDA_ERROR_NOT_FOUND")
        made = FakeFunction(module.library, name, *module.kernels[name])
        made.module = module
        return made

    def unload(self, module: FakeModule) -> None:
        self._call("unload")
        self._wait_as_loading_does()
        assert not module.is_unloaded
        module.is_unloaded = True

    def finish_loading(self, function: FakeFunction) -> None:
        self._call("finish_loading")
        self._wait_as_loading_does()
        function.is_loaded = True

    def _wait_as_loading_does(self) -> None:
        """Code is put on the device when what the context was given is done."""
        for opened in self._gates:
            assert opened.wait(_WAITS), "a kernel is loaded while the host holds a stream back"
        self._gates.clear()

    def function_names(self, module: FakeModule) -> list[str]:
        return module.names

    def parameter_sizes(self, function: FakeFunction) -> tuple[int, ...] | None:
        return function.sizes

    def function_attribute(self, function: FakeFunction, name: str) -> int:
        return function.attributes[name]

    def set_function_attribute(self, function: FakeFunction, name: str, value: int) -> None:
        self._call("set_function_attribute")
        assert name == "MAX_DYNAMIC_SHARED_SIZE_BYTES"
        declared = function.attributes["SHARED_SIZE_BYTES"]
        if declared + value > self.attributes["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]:
            raise CudaError(driver.INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE")
        function.shared = value

    @property
    def launch(self) -> Any:
        return self._launch

    def calls_for_machine_code(self) -> tuple[int, int] | None:
        if not hasattr(self, "_entries"):
            sizes = [ctypes.c_uint] * 7
            launch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, *sizes, *[ctypes.c_size_t] * 3)
            current = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
            self._entries = launch(self._launch_by_number), current(self._tell_context)
        first, second = (ctypes.cast(each, ctypes.c_void_p).value for each in self._entries)
        return (first, second) if first and second else None

    def _launch_by_number(self, function: int, *given: int) -> int:
        *sizes, stream, address, extra = given
        self.calls["machine code"] += 1
        handles = (self._numbered[function], *sizes, self._numbered[stream])
        return self._launch(*handles, address, extra)[0]

    def _tell_context(self, where: int) -> int:
        self.calls["current_context"] += 1
        ctypes.c_uint64.from_address(where).value = self._stack[-1] if self._stack else 0
        return 0

    def context_word(self, context: int) -> int:
        return context

    def number(self, handle: Any) -> int:
        self._numbered[id(handle)] = handle
        return id(handle)

    def status(self, code: int) -> Any:
        return code

    def _launch(self, function: FakeFunction, *given: Any) -> tuple[int]:
        *sizes, shared, stream, address, extra = given
        try:
            self._call("launch")
        except CudaError as error:  # this call gives its status
            self._last = error
            return (error.code,)
        assert function.is_loaded, "it would be loaded here, with the GIL held"
        if shared > function.shared or extra:
            return (driver.INVALID_VALUE,)
        self._add(stream, self.launch_of(function, sizes, address))
        return (0,)

    def launch_of(self, function: FakeFunction, sizes: Any, address: int) -> Callable[[], None]:
        """A launch with the arguments that stand at addresses now."""
        places = list(accumulate(_whole(size) for size in (0, *function.sizes)))
        addresses = (ctypes.c_void_p * len(function.sizes))()
        words = ctypes.create_string_buffer(places[-1] + _LINE)
        first = _whole(ctypes.addressof(words))
        for k, size in enumerate(function.sizes):
            source = ctypes.c_uint64.from_address(address + 8 * k).value
            addresses[k] = first + places[k]
            ctypes.memmove(first + places[k], source, size)

        def run() -> None:
            if self._lose is not None:
                self.broken, self._lose = self._lose, None
                raise self.broken
            function.run((ctypes.c_uint * 6)(*sizes), addresses)
            words[:0]  # alive until now

        return run

    def tensor_map(
        self,
        type: Scalar,
        address: int,
        sizes: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
    ) -> bytes:
        """That of the shim (`hopper.h`); refuses what the driver does."""
        self._call("tensor_map")
        lines = [address, *strides]
        inside = all(0 < size < 2**32 for size in sizes) and all(0 < size <= 256 for size in box)
        if any(line % 16 or line <= 0 for line in lines) or not inside or max(strides) >= 2**40:
            raise CudaError(driver.INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE")
        if box[0] * type.bits // 8 > 128:  # what the swizzle takes
            raise CudaError(driver.INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE")
        assert len(sizes) == 3
        assert box[2] == 1
        words = address, *sizes, *strides, *box[:2], type.bits // 8
        return struct.pack("<6Q3I", *words).ljust(128, b"\0")

    def graph_calls(self) -> Any:
        return self.graphs

    # --- memory ---

    def allocate(self, size: int) -> int:
        self._call("allocate")
        assert size, "the driver refuses nothing at all"
        with self._lock:
            if size > self.free_memory():
                raise CudaError(driver.OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY")
            room = np.full(size + 256, _FREE, np.uint8)
            address = -(-room.ctypes.data // 256) * 256
            self.memory[address] = room
            self.homes[address] = self._stack[-1]
            return address

    def free(self, address: int) -> None:
        self._call("free")
        with self._lock:
            self.advance()
            self.memory.pop(address)[:] = _FREE

    def allocate_host(self, size: int) -> int:
        self._call("allocate_host")
        room = np.full(size, _FREE, np.uint8)
        self.host[room.ctypes.data] = room
        return int(room.ctypes.data)

    def free_host(self, address: int) -> None:
        self._call("free_host")
        del self.host[address]

    def free_memory(self) -> int:
        with self._lock:
            return self.size - sum(room.size - 256 for room in self.memory.values())

    def copy_in(self, to: int, host: int, size: int, stream: Any) -> None:
        self._call("copy_in")
        self._add(stream, lambda: ctypes.memmove(to, host, size))

    def copy_out(self, host: int, of: int, size: int, stream: Any) -> None:
        self._call("copy_out")
        self._add(stream, lambda: ctypes.memmove(host, of, size))

    def copy_between(
        self, to: int, to_context: int, of: int, of_context: int, size: int, stream: Any
    ) -> None:
        self._call("copy_between")
        assert self.homes[self.memory_around(to)[0]] == to_context
        assert self.homes[self.memory_around(of)[0]] == of_context
        self._add(stream, lambda: ctypes.memmove(to, of, size))

    def home_of(self, address: int) -> tuple[int, int]:
        self._call("home_of")
        first, _ = self.memory_around(address)
        return self.homes[first] - CONTEXT, self.homes[first]

    def memory_around(self, address: int) -> tuple[int, int]:
        with self._lock:
            for first, room in self.memory.items():
                if first <= address < first + room.size - 256:
                    return first, room.size - 256
        raise CudaError(driver.INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE")

    # --- streams and events ---

    def stream_of(self, number: int) -> Any:
        stream: FakeStream = self._numbered[number]
        return stream

    def finish_all(self) -> None:
        self._call("finish_all")
        for stream in list(self.streams):
            self.finish_stream(stream)

    def _add(self, stream: FakeStream, do: Callable[[], Any]) -> None:
        def once() -> bool:
            do()
            return True

        with self._lock:
            stream.waiting.append(once)

    def advance(self) -> None:
        """Do all that can be done."""
        with self._lock:
            moved = True
            while moved:
                moved = False
                for stream in self.streams:
                    while stream.waiting and stream.waiting[0]():
                        stream.waiting.popleft()
                        moved = True

    def _until(self, done: Callable[[], bool]) -> None:
        while True:
            self.advance()
            if done():
                return
            time.sleep(0.001)

    def stream(self) -> Any:
        self._call("stream")
        with self._lock:
            self.streams.append(FakeStream())
            return self.streams[-1]

    def finish_stream(self, stream: FakeStream) -> None:
        self._call("finish_stream")
        with self._lock:
            last = stream.waiting[-1] if stream.waiting else None
        self._until(lambda: last is None or last not in stream.waiting)

    def event(self, *, timed: bool) -> Any:
        self._call("event")
        return FakeEvent(timed)

    def record(self, event: FakeEvent, stream: FakeStream) -> None:
        self._call("record")
        event.recorded += 1
        number = event.recorded

        def happen() -> None:
            event.happened = max(event.happened, number)
            event.at = time.perf_counter()

        self._add(stream, happen)

    def has_happened(self, event: FakeEvent) -> bool:
        self._call("has_happened")
        self.advance()
        return event.happened >= event.recorded

    def wait_for(self, event: FakeEvent) -> None:
        self._call("wait_for")
        number = event.recorded
        self._until(lambda: event.happened >= number)

    def follow(self, stream: FakeStream, event: FakeEvent) -> None:
        self._call("follow")
        number = event.recorded
        with self._lock:
            stream.waiting.append(lambda: event.happened >= number)

    def elapsed_ms(self, start: FakeEvent, end: FakeEvent) -> float:
        self._call("elapsed_ms")
        assert start.timed
        assert end.timed
        return (end.at - start.at) * 1e3


def _whole(size: int) -> int:
    """So that whatever is next is aligned."""
    return -(-size // _LINE) * _LINE


def _compiled(text: str) -> tuple[bytes, str]:
    """A library of the host and the compiler's log; kept for the next process of these tests."""
    headers = "".join(path.read_text() for path in sorted(FOLDER.glob("*.h")))
    digest = hashlib.sha256((text + headers).encode()).hexdigest()
    folder = Path(tempfile.gettempdir()) / "sarek-fake-cuda"
    folder.mkdir(exist_ok=True)
    kept = folder / digest
    if kept.exists():
        return kept.read_bytes(), ""
    with tempfile.TemporaryDirectory() as place:
        source, library = Path(place, "sarek.cpp"), Path(place, "sarek.so")
        source.write_text(text)
        command = ["g++", *OPTIONS, f"-I{FOLDER}", "-o", str(library), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return b"", done.stderr
        written = kept.with_suffix(f".{threading.get_ident()}.{time.time_ns()}")
        written.write_bytes(library.read_bytes())
        written.replace(kept)
        return kept.read_bytes(), ""
