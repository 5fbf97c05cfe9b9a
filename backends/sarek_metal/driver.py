"""The Metal framework: finding it, compiling, and its errors as ours.

Its objects are those of PyObjC, whose methods have the names of Metal's selectors with underscores
for colons; a method with an `error:` gives a pair of the result and the error. Only this module
sees where they come from, so that tests put others in their place (`use`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from sarek_numba.errors import (
    BackendError,
    DeviceLost,
    LaunchFailed,
    OutOfMemory,
    SourceCompilationError,
)
from sarek_numba.runtime.device import BackendUnavailable

INSTALL = "pip install pyobjc-framework-Metal"

# MTLCommandBufferStatus, MTLCommandBufferError
COMPLETED, FAILED = 4, 5
_PAGE_FAULT, _OUT_OF_MEMORY, _DEVICE_REMOVED = 3, 8, 11
_REASONS = {
    1: "an internal error",
    2: "a kernel that ran for too long",
    _PAGE_FAULT: "an access to an address that is no memory of the kernel",
    4: "too many errors of this process",
    7: "no permission",
    9: "memory that is gone",
    12: "a stack that is too small",
}
_LOSES = frozenset({4, _DEVICE_REMOVED})  # after these nothing of the device works


@dataclass(frozen=True, slots=True)
class Framework:
    """The module `Metal`, and what drops the objects that its calls leave to be dropped."""

    metal: Any
    pool: Callable[[], AbstractContextManager[Any]]


_lock = threading.RLock()
_framework: Framework | None = None


def load() -> Framework:
    """The framework. Raises BackendUnavailable with what helps."""
    global _framework
    with _lock:
        if _framework is None:
            _framework = _load()
        return _framework


def use(replacement: Framework | None) -> None:
    """Have another framework, as tests do; None is what the machine has."""
    global _framework
    with _lock:
        _framework = replacement


def _load(system: str = sys.platform) -> Framework:
    if system != "darwin":
        raise BackendUnavailable(f"Metal is only on macOS, and this system is {system}")
    try:
        import Metal
        import objc
    except Exception as error:  # a part that is missing shows in many ways
        raise BackendUnavailable(
            f"the module Metal cannot be imported ({type(error).__name__}: {error}); {INSTALL}"
        ) from error
    return Framework(Metal, objc.autorelease_pool)


def devices(framework: Framework) -> list[Any]:
    """All devices, the system's default one first. Raises BackendUnavailable."""
    metal = framework.metal
    default = metal.MTLCreateSystemDefaultDevice()
    if default is None:
        raise BackendUnavailable("there is no Metal device")
    found = list(metal.MTLCopyAllDevices() or ())
    others = [device for device in found if device.registryID() != default.registryID()]
    return [default, *others]


def options(framework: Framework) -> Any:
    """Options of the compiler that keep results as the text has them."""
    metal = framework.metal
    made = metal.MTLCompileOptions.alloc().init()
    if has_math_mode(made):
        made.setMathMode_(metal.MTLMathModeSafe)
        made.setMathFloatingPointFunctions_(metal.MTLMathFloatingPointFunctionsPrecise)
    else:
        made.setFastMathEnabled_(False)
    return made


def has_math_mode(options: Any) -> bool:
    """Whether the system is macOS 15 or later, which has version 3.2 of the language."""
    return bool(options.respondsToSelector_(b"setMathMode:"))


def compile_library(framework: Framework, device: Any, source: str, name: str, given: Any) -> Any:
    """An MTLLibrary. Raises SourceCompilationError with the source and the log."""
    with framework.pool():
        library, error = device.newLibraryWithSource_options_error_(source, given, None)
    if library is None:
        raise SourceCompilationError(
            f"Metal's compiler rejects the program for {name}", source, described(error)
        )
    return library


def pipeline(framework: Framework, device: Any, function: Any, name: str, source: str) -> Any:
    """An MTLComputePipelineState. Raises SourceCompilationError."""
    with framework.pool():
        made, error = device.newComputePipelineStateWithFunction_error_(function, None)
    if made is None:
        raise SourceCompilationError(
            f"{name} makes no code of the program", source, described(error)
        )
    return made


def described(error: Any) -> str:
    """An NSError in its own words."""
    return "" if error is None else str(error.localizedDescription())


class Access:
    """One device, and whether it is lost: then `lost` says how, in words."""

    def __init__(self, framework: Framework, device: Any, name: str) -> None:
        self.framework = framework
        self.device = device
        self.name = name
        self.lost: str | None = None

    def refuse_lost(self) -> None:
        """Raise DeviceLost where nothing works any more."""
        if self.lost is not None:
            raise DeviceLost(self.lost)

    def out_of_memory(self, asked: int) -> OutOfMemory:
        """The error of memory that there is not."""
        whole = int(self.device.recommendedMaxWorkingSetSize())
        free = max(0, whole - int(self.device.currentAllocatedSize()))
        return OutOfMemory(
            f"allocating memory on {self.name} failed: {asked} bytes, and {free} are free",
            asked,
            free,
        )

    def failure(self, error: Any, action: str) -> BackendError:
        """The error of this package for an NSError of a command buffer."""
        code = int(error.code()) if error is not None else 0
        message = f"{action} on {self.name} failed: {described(error)}"
        if code in _REASONS:
            message += f" ({_REASONS[code]})"
        if code in _LOSES:
            self.lost = (
                f"{self.name} was lost: {message}\n"
                "  hint: run the launch on the device 'interpreter', which says what is wrong with "
                "it; then start the program again"
            )
            return DeviceLost(self.lost)
        if code == _OUT_OF_MEMORY:
            return OutOfMemory(message, 0, 0)
        if code == _PAGE_FAULT:
            message += "\n  hint: run the launch on the device 'interpreter', which names the index"
        return LaunchFailed(message)
