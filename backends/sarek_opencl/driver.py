"""The OpenCL library: finding it and its platforms, compiling, and its errors as ours.

Only this module and `runtime` see pyopencl. Nothing is loaded before `platforms()`.

The loader that pyopencl ships reads `OCL_ICD_VENDORS`, a folder of `.icd` files that each name a
driver's library, at the first query of a process, and knows PoCL's wheel by itself. Intel's CPU
runtime installs from a wheel whose `.icd` file names a folder of the machine that built it, so that
no loader finds it. `platforms()` therefore makes that first query with the variable at a temporary
folder that names the installed library, together with the drivers of the system. A variable that
the user has set is left alone.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sarek_numba import settings
from sarek_numba.errors import (
    BackendError,
    DeviceLost,
    LaunchFailed,
    OutOfMemory,
    SourceCompilationError,
)
from sarek_numba.runtime import disk
from sarek_numba.runtime.cache import clear_launch_cache
from sarek_numba.runtime.device import BackendUnavailable, Dimensions

_VENDORS_VARIABLE = "OCL_ICD_VENDORS"
_SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
_WHEEL_LIBRARIES = {"intel-opencl-rt": "libintelocl.so"}

_compile_lock = threading.Lock()
_is_asked = False  # was a driver loaded?
_is_lost = False  # drivers have threads of their own, which a forked child has not


def _after_fork() -> None:
    """Nothing that was opened before works in the child: every launch is to find that out."""
    global _is_lost
    _is_lost = _is_asked
    if _is_lost:
        clear_launch_cache()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def is_lost() -> bool:
    """Whether this process was forked from one that had opened a device."""
    return _is_lost


def refuse_lost(device: Any) -> None:
    """Raise DeviceLost for a device that a parent of this process opened."""
    if _is_lost:
        raise DeviceLost(
            f"{_name_if_known(device)} was opened before this process was forked, and OpenCL "
            "drivers do not work in forked processes\n"
            "  hint: multiprocessing.set_start_method(\"spawn\"), or launch on the device 'native'"
        )


def _name_if_known(device: Any) -> str:
    """A driver of NVIDIA's does not tell it in a forked process."""
    try:
        return str(device.name)
    except load().Error:
        return "the OpenCL device"


enqueue: Any = None  # pyopencl's function, once a device is open: looking it up takes long


def load() -> Any:
    """The module pyopencl. Raises BackendUnavailable with what to install."""
    try:
        import pyopencl
    except ImportError as error:
        raise BackendUnavailable(
            f"pyopencl cannot be imported ({error}); pip install 'pyopencl[pocl]'"
        ) from error
    return pyopencl


def load_invoker() -> None:
    """What pyopencl imports at its first kernel: opening a device pays for it, not a launch."""
    global enqueue
    import pyopencl.characterize
    import pyopencl.invoker
    import pytools.py_codegen  # noqa: F401

    enqueue = pyopencl.enqueue_nd_range_kernel


def functions(*names: str) -> list[int]:
    """The addresses of functions of the OpenCL library that pyopencl is bound to."""
    library = ctypes.CDLL(load()._cl.__file__)
    return [ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names]


def platforms() -> list[Any]:
    """All OpenCL platforms. Raises BackendUnavailable where there is none, with the reasons."""
    global _is_asked
    cl = load()
    _is_asked = True
    found, reasons = _wheel_drivers()
    try:
        with _visible(found):
            result: list[Any] = cl.get_platforms()
    except cl.Error as error:
        reasons.append(f"the loader found no platform ({error})")
        result = []
    if not result:
        raise BackendUnavailable("; ".join(reasons) + "; pip install 'pyopencl[pocl]'")
    return result


def _wheel_drivers() -> tuple[list[Path], list[str]]:
    """Drivers that wheels installed where no loader looks; why others are absent."""
    found, reasons = [], []
    for distribution, library in _WHEEL_LIBRARIES.items():
        try:
            files = importlib.metadata.files(distribution) or []
        except importlib.metadata.PackageNotFoundError:
            reasons.append(f"{distribution} is not installed")
            continue
        for file in files:
            if file.name != library:
                continue
            path = Path(str(file.locate())).resolve()
            try:
                ctypes.CDLL(str(path))
            except OSError as error:
                reasons.append(f"{distribution}: {error}")
            else:
                found.append(path)
    return found, reasons


@contextmanager
def _visible(libraries: Sequence[Path]) -> Iterator[None]:
    """Let the loader's first query see these drivers beside the system's."""
    if _VENDORS_VARIABLE in os.environ or not libraries:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="sarek-icd-") as folder:
        for library in libraries:
            Path(folder, f"{library.stem}.icd").write_text(f"{library}\n", encoding="utf-8")
        for system in sorted(_SYSTEM_VENDORS.glob("*.icd")):
            Path(folder, system.name).write_bytes(system.read_bytes())
        os.environ[_VENDORS_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[_VENDORS_VARIABLE]


def compile_program(context: Any, device: Any, source: str, options: Sequence[str]) -> Any:
    """A built program, from the cache on disk if it is there.

    Raises SourceCompilationError with the source and the compiler's log.
    """
    refuse_lost(device)
    cl = load()
    key = disk.key_of("opencl", identity_of(device), source, tuple(options))
    kept = _from_disk(context, device, key, options)
    if kept is not None:
        return kept
    # Some compilers write a log although all is well; pyopencl warns of it. Catching warnings is
    # not safe among threads.
    with _compile_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            built = cl.Program(context, source).build(list(options), [device], cache_dir=False)
        except cl.Error as error:
            raise SourceCompilationError(
                f"the OpenCL compiler of {device.name} rejects the program", source, str(error)
            ) from error
        _keep(built, device, key)
        return built


def identity_of(device: Any) -> tuple[tuple[str, str], ...]:
    """What tells a device and its compiler from others: part of every key of a cache."""
    return (
        ("platform", f"{device.platform.name} {device.platform.version}"),
        ("vendor", device.vendor),
        ("device", device.name),
        ("version", device.version),
        ("driver", device.driver_version),
    )


def _from_disk(context: Any, device: Any, key: str, options: Sequence[str]) -> Any:
    """A program from what the driver's compiler made before, or None."""
    binary = disk.load("opencl", key)
    if binary is None:
        return None
    cl = load()
    with _compile_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = cl.Program(context, [device], [binary])
            return program.build(list(options), [device], cache_dir=False)
        except cl.Error:  # the driver does not take it any more, whatever its version says
            disk.drop("opencl", key)
            return None


def _keep(program: Any, device: Any, key: str) -> None:
    """Keep a program's binary for a device, one of its context's. A driver may have none."""
    cl = load()
    if settings.cache_folder() is None:
        return
    try:
        place = program.get_info(cl.program_info.DEVICES).index(device)
        binary = program.get_info(cl.program_info.BINARIES)[place]
    except (cl.Error, IndexError, ValueError):
        return
    if binary:
        disk.save("opencl", key, bytes(binary))


def start(
    queue: Any,
    kernel: Any,
    lock: threading.Lock,
    grid: Dimensions,
    block: Dimensions,
    arguments: Sequence[Any],
) -> Any:
    """Give a kernel to a queue; its arguments are set under `lock`. Gives the event.

    Raises the driver's error.
    """
    total = (grid[0] * block[0], grid[1] * block[1], grid[2] * block[2])
    with lock:
        kernel.set_args(*arguments)
        return enqueue(queue, kernel, total, block)


@contextmanager
def check(action: str, device: Any, asked: int = 0) -> Iterator[None]:
    """Turn an error of the driver during `action` into the error of this package; bytes `asked`."""
    refuse_lost(device)
    cl = load()
    try:
        yield
    except cl.Error as error:
        raise failure(error, action, device, asked) from error


def failure(error: Any, action: str, device: Any, asked: int = 0) -> BackendError:
    """The error of this package for an error of the driver."""
    status = load().status_code
    message = f"{action} on {device.name} failed: {error}"
    match error.code:
        case status.MEM_OBJECT_ALLOCATION_FAILURE | status.OUT_OF_HOST_MEMORY:
            return OutOfMemory(message, asked, int(device.global_mem_size))
        case status.INVALID_BUFFER_SIZE:
            limit = int(device.max_mem_alloc_size)
            return OutOfMemory(f"{message} (one buffer: at most {limit} bytes)", asked, limit)
        case status.DEVICE_NOT_AVAILABLE:
            return DeviceLost(message)
        case status.INVALID_BINARY | status.BUILD_PROGRAM_FAILURE:
            return BackendError(message)
        case _:
            return LaunchFailed(message)
