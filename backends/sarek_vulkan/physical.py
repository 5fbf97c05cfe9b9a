"""What a physical device says of itself: properties, features, memory, queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sarek_numba.ir.nodes import CoopmatConfig
from sarek_vulkan import driver, matrices
from sarek_vulkan.features import (
    ALL,
    COOPERATIVE_MATRIX,
    CORE,
    FLOAT_CONTROLS,
    REQUIRED,
    STRUCTURES,
    SUBGROUP_OPERATIONS,
    Feature,
)

_P11 = "VkPhysicalDeviceVulkan11Properties"
_P12 = "VkPhysicalDeviceVulkan12Properties"
_PSIZE = "VkPhysicalDeviceSubgroupSizeControlProperties"
_PMATRIX = "VkPhysicalDeviceCooperativeMatrixPropertiesKHR"
_PHOST = "VkPhysicalDeviceExternalMemoryHostPropertiesEXT"
_PRESIDENT = "VkPhysicalDeviceShaderSMBuiltinsPropertiesNV"
RESIDENT_EXTENSION = "VK_NV_shader_sm_builtins"
HOST_MEMORY = "VK_EXT_external_memory_host"
BUDGET = "VK_EXT_memory_budget"
SIZE_CONTROL_EXTENSION = "VK_EXT_subgroup_size_control"

KINDS = {2: "discrete GPU", 1: "integrated GPU", 3: "virtual GPU", 0: "other", 4: "CPU"}
_RANK = tuple(KINDS)  # the order of devices
CPU = 4

COMPUTE, TRANSFER = 0x2, 0x4  # of queue families
DEVICE_LOCAL, HOST_VISIBLE, HOST_COHERENT, HOST_CACHED = 0x1, 0x2, 0x4, 0x8  # of memory types


@dataclass(frozen=True, slots=True)
class MemoryType:
    """`heap` is its number; `flags` are Vulkan's."""

    heap: int
    flags: int


@dataclass(frozen=True, slots=True)
class Family:
    """A family of queues that compute: how many there are, and the valid bits of its times."""

    index: int
    count: int
    timestamp_bits: int


@dataclass(frozen=True, slots=True, eq=False)
class Physical:
    """A physical device. `features` are those that it has of `features.ALL`."""

    handle: Any
    name: str
    version: int
    kind: int
    vendor: int
    number: int
    uuid: bytes
    cache_uuid: bytes
    driver: tuple[tuple[str, str], ...]
    extensions: frozenset[str]
    features: frozenset[Feature]
    capabilities: frozenset[str]
    limits: Mapping[str, Any]
    controls: frozenset[str]
    subgroup: tuple[int, int, int]  # usual, least and largest size
    chooses_subgroup: bool
    import_alignment: int  # of host memory; 0 where it cannot be imported
    memory_types: tuple[MemoryType, ...]
    heaps: tuple[int, ...]
    family: Family | None
    matrices: tuple[CoopmatConfig, ...]  # of cooperative matrices, as it lists them
    subgroups_at_once: int | None = None  # that all its processors hold, where it says so

    @property
    def is_cpu(self) -> bool:
        """Whether its memory is the host's."""
        return self.kind == CPU

    @property
    def identity(self) -> tuple[Any, ...]:
        """What is equal for one device behind two drivers."""
        return self.vendor, self.number, self.uuid

    @property
    def rank(self) -> int:
        """GPUs before CPUs."""
        return _RANK.index(self.kind) if self.kind in _RANK else len(_RANK)

    def has(self, structure: str, field: str) -> bool:
        """Whether it has a feature of the table."""
        return any(f.structure == structure and f.field == field for f in self.features)

    @property
    def lacks(self) -> str:
        """Why it cannot be used, or nothing."""
        if self.version < driver.VERSION_1_2:
            return f"it has Vulkan {version_text(self.version)}, and 1.2 is needed"
        missing = [str(feature) for feature in REQUIRED if feature not in self.features]
        if missing:
            return f"it lacks {', '.join(missing)}"
        return "" if self.family is not None else "none of its queues computes"


def version_text(version: int) -> str:
    """A version of Vulkan's API in words."""
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}"


def physical(handle: Any) -> Physical:
    """All that is asked of a device."""
    lib, ffi = driver.lib, driver.ffi
    basic = ffi.new("VkPhysicalDeviceProperties *")
    lib.vkGetPhysicalDeviceProperties(handle, basic)
    found = driver.listed(
        lib.vkEnumerateDeviceExtensionProperties, "VkExtensionProperties", handle, ffi.NULL
    )
    extensions = frozenset(driver.text(each.extensionName) for each in found)
    modern = basic.apiVersion >= driver.VERSION_1_2
    features = _features(handle, extensions) if modern else frozenset()
    more = _properties(handle, extensions) if modern else {}
    types, heaps = _memory(handle)
    twelve, eleven = more.get(_P12), more.get(_P11)
    controls = frozenset(n for n in FLOAT_CONTROLS if twelve is not None and getattr(twelve, n))
    capabilities = {"Shader"} | {c for f in features for c in f.capabilities}
    capabilities |= {FLOAT_CONTROLS[name] for name in controls}
    if eleven is not None and eleven.subgroupSupportedStages & 0x20:
        operations = eleven.subgroupSupportedOperations
        capabilities |= {name for bit, name in SUBGROUP_OPERATIONS.items() if operations & bit}
    size = int(eleven.subgroupSize) if eleven is not None else 1
    sizes = more.get(_PSIZE)
    return Physical(
        handle=handle,
        name=driver.text(basic.deviceName),
        version=int(basic.apiVersion),
        kind=int(basic.deviceType),
        vendor=int(basic.vendorID),
        number=int(basic.deviceID),
        uuid=bytes(eleven.deviceUUID) if eleven is not None else b"",
        cache_uuid=bytes(basic.pipelineCacheUUID),
        driver=_driver(basic, twelve),
        extensions=extensions,
        features=features,
        capabilities=frozenset(capabilities),
        limits=_limits(basic.limits, eleven),
        controls=controls,
        subgroup=(size, *((int(sizes.minSubgroupSize), int(sizes.maxSubgroupSize))
                          if sizes is not None else (size, size))),
        chooses_subgroup=sizes is not None and bool(sizes.requiredSubgroupSizeStages & 0x20),
        import_alignment=(
            int(more[_PHOST].minImportedHostPointerAlignment) if _PHOST in more else 0
        ),
        memory_types=types,
        heaps=heaps,
        family=_family(handle),
        matrices=(
            matrices.configurations(handle, int(more[_PMATRIX].cooperativeMatrixSupportedStages))
            if any(f.structure == COOPERATIVE_MATRIX for f in features)
            else ()
        ),
        subgroups_at_once=(
            int(more[_PRESIDENT].shaderSMCount) * int(more[_PRESIDENT].shaderWarpsPerSM)
            if _PRESIDENT in more else None
        ),
    )  # fmt: skip


def structures(extensions: frozenset[str]) -> list[str]:
    """The structures of features that a device knows."""
    return [name for name, wanted in STRUCTURES.items() if wanted is None or wanted in extensions]


def _features(handle: Any, extensions: frozenset[str]) -> frozenset[Feature]:
    names = structures(extensions)
    chain = driver.chained(["VkPhysicalDeviceFeatures2", *names])
    driver.lib.vkGetPhysicalDeviceFeatures2(handle, chain["VkPhysicalDeviceFeatures2"])
    chain[CORE] = chain["VkPhysicalDeviceFeatures2"].features
    return frozenset(
        f for f in ALL if f.structure in chain and getattr(chain[f.structure], f.field)
    )


def _properties(handle: Any, extensions: frozenset[str]) -> dict[str, Any]:
    names = [_P11, _P12]
    names += [_PSIZE] if SIZE_CONTROL_EXTENSION in extensions else []
    names += [_PHOST] if HOST_MEMORY in extensions else []
    names += [_PRESIDENT] if RESIDENT_EXTENSION in extensions else []
    names += [_PMATRIX] if matrices.EXTENSION in extensions else []
    chain = driver.chained(["VkPhysicalDeviceProperties2", *names])
    driver.lib.vkGetPhysicalDeviceProperties2(handle, chain["VkPhysicalDeviceProperties2"])
    return chain


def _driver(basic: Any, twelve: Any) -> tuple[tuple[str, str], ...]:
    named = (
        (("driver", driver.text(twelve.driverName)), ("info", driver.text(twelve.driverInfo)))
        if twelve is not None
        else ()
    )
    return (
        ("device", driver.text(basic.deviceName)),
        ("vendor", f"{basic.vendorID:#06x}:{basic.deviceID:#06x}"),
        ("api", version_text(basic.apiVersion)),
        ("version", f"{basic.driverVersion:#x}"),
        *named,
        ("cache", bytes(basic.pipelineCacheUUID).hex()),
    )


def _limits(limits: Any, eleven: Any) -> dict[str, Any]:
    numbers = (
        "maxPushConstantsSize",
        "maxMemoryAllocationCount",
        "maxComputeSharedMemorySize",
        "maxComputeWorkGroupInvocations",
        "maxStorageBufferRange",
        "maxPerStageDescriptorStorageBuffers",
        "minStorageBufferOffsetAlignment",
        "nonCoherentAtomSize",
    )
    found: dict[str, Any] = {name: int(getattr(limits, name)) for name in numbers}
    found["maxComputeWorkGroupCount"] = tuple(int(n) for n in limits.maxComputeWorkGroupCount)
    found["maxComputeWorkGroupSize"] = tuple(int(n) for n in limits.maxComputeWorkGroupSize)
    found["timestampPeriod"] = float(limits.timestampPeriod)
    if eleven is not None:
        found["maxMemoryAllocationSize"] = int(eleven.maxMemoryAllocationSize)
    return found


def _memory(handle: Any) -> tuple[tuple[MemoryType, ...], tuple[int, ...]]:
    found = driver.ffi.new("VkPhysicalDeviceMemoryProperties *")
    driver.lib.vkGetPhysicalDeviceMemoryProperties(handle, found)
    types = tuple(
        MemoryType(int(found.memoryTypes[k].heapIndex), int(found.memoryTypes[k].propertyFlags))
        for k in range(found.memoryTypeCount)
    )
    return types, tuple(int(found.memoryHeaps[k].size) for k in range(found.memoryHeapCount))


def _family(handle: Any) -> Family | None:
    """The family of queues that computes, the one that does nothing but that if there is one."""
    found = driver.listed(
        driver.lib.vkGetPhysicalDeviceQueueFamilyProperties, "VkQueueFamilyProperties", handle
    )
    computing = [
        (bool(each.queueFlags & 0x1), k)
        for k, each in enumerate(found)
        if each.queueFlags & COMPUTE
    ]
    if not computing:
        return None
    index = min(computing)[1]
    return Family(index, int(found[index].queueCount), int(found[index].timestampValidBits))
