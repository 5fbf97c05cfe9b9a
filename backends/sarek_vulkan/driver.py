"""The Vulkan library: finding it, the instance, its results as our errors.

Only this module imports the `vulkan` package, and nothing is loaded before `load()`. Of the package
its C declarations and the loader's functions are used (`ffi`, `lib`): its own wrappers take
microseconds, do not know newer results, and lose the parts of nested structures. `make` gives a
structure that keeps its parts.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from functools import cache
from typing import Any

from sarek_numba import settings
from sarek_numba.errors import BackendError, DeviceLost, LaunchFailed, OutOfMemory
from sarek_numba.runtime.cache import clear_launch_cache
from sarek_numba.runtime.device import BackendUnavailable

VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"
VERSION_1_2 = 1 << 22 | 2 << 12
VERSION_1_3 = 1 << 22 | 3 << 12

SUCCESS, NOT_READY, TIMEOUT, INCOMPLETE = 0, 1, 2, 5
RESULTS = {
    -1: "VK_ERROR_OUT_OF_HOST_MEMORY",
    -2: "VK_ERROR_OUT_OF_DEVICE_MEMORY",
    -3: "VK_ERROR_INITIALIZATION_FAILED",
    -4: "VK_ERROR_DEVICE_LOST",
    -5: "VK_ERROR_MEMORY_MAP_FAILED",
    -6: "VK_ERROR_LAYER_NOT_PRESENT",
    -7: "VK_ERROR_EXTENSION_NOT_PRESENT",
    -8: "VK_ERROR_FEATURE_NOT_PRESENT",
    -9: "VK_ERROR_INCOMPATIBLE_DRIVER",
    -10: "VK_ERROR_TOO_MANY_OBJECTS",
    -12: "VK_ERROR_FRAGMENTED_POOL",
    -13: "VK_ERROR_UNKNOWN",
    -1000069000: "VK_ERROR_OUT_OF_POOL_MEMORY",
    -1000072003: "VK_ERROR_INVALID_EXTERNAL_HANDLE",
    -1000257000: "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS",
    -1000012000: "VK_ERROR_INVALID_SHADER_NV",
}
_OUT_OF_MEMORY = frozenset({-1, -2, -1000257000})
_DEVICE_LOST = -4

_TYPES = {  # whose constant is not the type's words with underscores
    "VkPhysicalDeviceVulkan11Features": "PHYSICAL_DEVICE_VULKAN_1_1_FEATURES",
    "VkPhysicalDeviceVulkan12Features": "PHYSICAL_DEVICE_VULKAN_1_2_FEATURES",
    "VkPhysicalDeviceVulkan11Properties": "PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES",
    "VkPhysicalDeviceVulkan12Properties": "PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES",
    "VkPhysicalDeviceFeatures2": "PHYSICAL_DEVICE_FEATURES_2",
    "VkPhysicalDeviceProperties2": "PHYSICAL_DEVICE_PROPERTIES_2",
    "VkPhysicalDeviceMemoryProperties2": "PHYSICAL_DEVICE_MEMORY_PROPERTIES_2",
    "VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT": (
        "PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT"
    ),
}

vk: Any = None  # the module, its library and its declarations, once loaded
lib: Any = None
ffi: Any = None

messages: list[str] = []  # of the validation layer
_callbacks: list[Any] = []  # live as long as the instance
_parts: weakref.WeakKeyDictionary[Any, tuple[Any, ...]] = weakref.WeakKeyDictionary()
_lock = threading.RLock()
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


def refuse_forked(name: str) -> None:
    """Raise DeviceLost for a device that a parent of this process opened."""
    if _is_lost:
        raise DeviceLost(
            f"{name} was opened before this process was forked, and Vulkan drivers do not work in "
            "forked processes\n"
            "  hint: multiprocessing.set_start_method(\"spawn\"), or launch on the device 'native'"
        )


def is_forked() -> bool:
    """Whether what this process knows of drivers was its parent's."""
    return _is_lost


def load() -> Any:
    """The module vulkan. Raises BackendUnavailable with what to install."""
    global vk, lib, ffi
    if vk is not None:
        return vk
    try:
        import vulkan
    except OSError as error:
        raise BackendUnavailable(
            f"the Vulkan loader cannot be loaded ({error}); apt-get install libvulkan1 "
            "mesa-vulkan-drivers"
        ) from error
    except Exception as error:  # a half-installed package may fail in any way
        raise BackendUnavailable(
            f"the package vulkan cannot be imported ({error}); pip install 'sarek-numba[vulkan]'"
        ) from error
    if not hasattr(vulkan, "lib") or not hasattr(vulkan, "ffi"):
        raise BackendUnavailable(
            f"the package vulkan at {getattr(vulkan, '__path__', '?')} is not whole; "
            "pip install --force-reinstall vulkan"
        )
    lib, ffi = vulkan.lib, vulkan.ffi
    vk = vulkan
    return vk


# --- structures -----------------------------------------------------------------------------------


@cache
def _structure_type(name: str) -> int:
    words = _TYPES.get(name)
    if words is None:
        # a word begins at a capital behind a small letter, and at the last capital of several
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name[2:]).upper()
    return int(getattr(vk, f"VK_STRUCTURE_TYPE_{words}"))


def make(name: str, **fields: Any) -> Any:
    """A new structure with its type set; the structures, arrays and strings in it live as long."""
    made = ffi.new(f"{name} *")
    made.sType = _structure_type(name)
    for field, value in fields.items():
        setattr(made, field, value)
    _parts[made] = tuple(fields.values())
    return made


def plain(name: str, **fields: Any) -> Any:
    """As `make`, for a structure that has no type."""
    made = ffi.new(f"{name} *")
    for field, value in fields.items():
        setattr(made, field, value)
    _parts[made] = tuple(fields.values())
    return made


def keep(owner: Any, *parts: Any) -> Any:
    """A structure that keeps further parts."""
    _parts[owner] = (*_parts.get(owner, ()), *parts)
    return owner


def strings(words: list[str]) -> Any:
    """An array of C strings, which keeps them."""
    texts = [ffi.new("char[]", word.encode()) for word in words]
    return keep(ffi.new("char *[]", texts), *texts)


def text(characters: Any) -> str:
    """A C string as Python's."""
    return str(ffi.string(characters).decode("utf-8", "replace"))


def chained(names: list[str]) -> dict[str, Any]:
    """New structures, each with the next one behind it, by name; the first begins the chain."""
    made: dict[str, Any] = {}
    following: Any = ffi.NULL
    for name in reversed(names):
        following = made[name] = make(name, pNext=following)
    return dict(reversed(made.items()))


# --- results --------------------------------------------------------------------------------------


def result_name(result: int) -> str:
    """The name of a result, or its number where it is newer than this table."""
    return RESULTS.get(result, f"VkResult {result}")


def check(result: int, action: str, device: str, asked: int = 0, available: int = 0) -> None:
    """Raise the error of this package for a result that is a failure; bytes asked and available."""
    if result >= 0:
        return
    message = f"{action} on {device} failed: {result_name(result)}"
    if result in _OUT_OF_MEMORY:
        raise OutOfMemory(message, asked, available)
    if result == _DEVICE_LOST:
        raise DeviceLost(message)
    if action.startswith("a launch"):
        raise LaunchFailed(message)
    raise BackendError(message)


# --- the instance ---------------------------------------------------------------------------------


@cache
def instance() -> Any:
    """The instance of this process. Raises BackendUnavailable."""
    global _is_asked
    load()
    version = ffi.new("uint32_t *")
    if lib.vkEnumerateInstanceVersion(version) != SUCCESS or version[0] < VERSION_1_2:
        raise BackendUnavailable("the Vulkan loader is older than 1.2; apt-get install libvulkan1")
    validated = settings.vulkan_validation()
    if validated and VALIDATION_LAYER not in layers():
        raise BackendUnavailable(
            f"SAREK_VULKAN_VALIDATION is set, and the loader finds no {VALIDATION_LAYER}; "
            "apt-get install vulkan-validationlayers"
        )
    application = make(
        "VkApplicationInfo",
        pApplicationName=ffi.new("char[]", b"sarek_numba"),
        apiVersion=min(int(version[0]), VERSION_1_3),
    )
    enabled_layers = [VALIDATION_LAYER] if validated else []
    extensions = ["VK_EXT_debug_utils"] if validated else []
    extensions += sorted({"VK_KHR_portability_enumeration"} & _instance_extensions())
    info = make(
        "VkInstanceCreateInfo",
        flags=1 if "VK_KHR_portability_enumeration" in extensions else 0,
        pApplicationInfo=application,
        enabledLayerCount=len(enabled_layers),
        ppEnabledLayerNames=strings(enabled_layers),
        enabledExtensionCount=len(extensions),
        ppEnabledExtensionNames=strings(extensions),
    )
    _is_asked = True
    made = ffi.new("VkInstance *")
    result = lib.vkCreateInstance(info, ffi.NULL, made)
    if result < 0:
        raise BackendUnavailable(
            f"no Vulkan instance: {result_name(result)}; apt-get install mesa-vulkan-drivers"
        )
    if validated:
        _listen(made[0])
    return made[0]


def layers() -> frozenset[str]:
    """Names of the layers that the loader finds."""
    found = listed(lib.vkEnumerateInstanceLayerProperties, "VkLayerProperties")
    return frozenset(text(each.layerName) for each in found)


def _instance_extensions() -> frozenset[str]:
    found = listed(lib.vkEnumerateInstanceExtensionProperties, "VkExtensionProperties", ffi.NULL)
    return frozenset(text(each.extensionName) for each in found)


def listed(function: Any, type: str, *arguments: Any) -> Any:
    """All that an enumerating function of the library gives: an array of `type`, maybe empty."""
    count = ffi.new("uint32_t *")
    while True:
        if (function(*arguments, count, ffi.NULL) or 0) < 0 or not count[0]:
            return ffi.new(f"{type}[]", 0)
        found = ffi.new(f"{type}[]", int(count[0]))
        result = function(*arguments, count, found) or 0
        if result != INCOMPLETE:
            return (
                found if count[0] == len(found) else ffi.new(f"{type}[]", list(found)[: count[0]])
            )


def _listen(made: Any) -> None:
    """Collect what the validation layer says."""
    signature = (
        "VkBool32(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT, "
        "const VkDebugUtilsMessengerCallbackDataEXT *, void *)"
    )

    def hear(severity: int, types: int, data: Any, user: Any) -> int:
        messages.append(text(data.pMessage))
        return 0

    callback = ffi.callback(signature, hear)
    _callbacks.append(callback)
    info = make(
        "VkDebugUtilsMessengerCreateInfoEXT",
        messageSeverity=vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT
        | vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        messageType=vk.VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        pfnUserCallback=callback,
    )
    create = instance_function(made, "vkCreateDebugUtilsMessengerEXT")
    check(
        create(made, info, ffi.NULL, ffi.new("VkDebugUtilsMessengerEXT *")), "listening", "Vulkan"
    )


def instance_function(made: Any, name: str) -> Any:
    """A function of an extension of the instance."""
    return ffi.cast(f"PFN_{name}", lib.vkGetInstanceProcAddr(made, name.encode()))


def physical_devices() -> list[Any]:
    """Handles of all devices, as the loader lists them. Raises BackendUnavailable if none."""
    with _lock:
        found = list(
            listed(lib_or_load().vkEnumeratePhysicalDevices, "VkPhysicalDevice", instance())
        )
    if not found:
        raise BackendUnavailable(
            "the Vulkan loader finds no driver; apt-get install mesa-vulkan-drivers"
        )
    return found


def lib_or_load() -> Any:
    """The loader's functions."""
    load()
    return lib


class Functions:
    """Functions of a logical device, looked up once each, without the loader's dispatch."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        found = lib.vkGetDeviceProcAddr(self._device, name.encode())
        if found == ffi.NULL:
            raise BackendError(f"the Vulkan driver has no {name}")
        function = ffi.cast(f"PFN_{name}", found)
        setattr(self, name, function)
        return function
