"""One logical device for a physical one: its functions, queues, memory objects and pipelines."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from sarek_numba.errors import DeviceLost, OutOfMemory
from sarek_vulkan import driver
from sarek_vulkan.features import CORE, PLAIN_EXTENSIONS, STRUCTURES
from sarek_vulkan.physical import (
    BUDGET,
    DEVICE_LOCAL,
    HOST_CACHED,
    HOST_COHERENT,
    HOST_VISIBLE,
    Physical,
    structures,
)

_USAGE = 0x1 | 0x2 | 0x20 | 0x20000  # both ends of a transfer, storage buffer, device address
_MOST_QUEUES = 8  # of which streams take turns
_IMPORTED = 0x80  # VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
_WHOLE = 0xFFFF_FFFF_FFFF_FFFF

MAPPED = HOST_VISIBLE | HOST_COHERENT


@dataclass(slots=True, eq=False)
class Block:
    """Memory of a device with a buffer over all of it. `mapped` is its host address, or 0."""

    memory: Any
    buffer: Any
    size: int
    address: int
    mapped: int = 0


class VulkanQueue:
    """A queue of the device. Submissions need its lock."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.lock = threading.Lock()


class Logical:
    """An open device. Safe to use from any thread."""

    def __init__(self, physical: Physical, name: str) -> None:
        assert physical.family is not None, "it was looked at"
        self.physical = physical
        self.name = name
        self.lost: DeviceLost | None = None
        self.handle = self._create()
        self.call = driver.Functions(self.handle)
        self.queues = [self._queue(k) for k in range(min(_MOST_QUEUES, physical.family.count))]
        self._next_queue = 0
        self._layouts: dict[int, Any] = {}
        self._lock = threading.Lock()

    def _create(self) -> Any:
        ffi, physical = driver.ffi, self.physical
        assert physical.family is not None
        known = structures(physical.extensions)
        chain = driver.chained(["VkPhysicalDeviceFeatures2", *known])
        chain[CORE] = chain["VkPhysicalDeviceFeatures2"].features
        for feature in physical.features:
            setattr(chain[feature.structure], feature.field, 1)
        wanted = {STRUCTURES[name] for name in known} | set(PLAIN_EXTENSIONS)
        extensions = sorted(name for name in wanted if name and name in physical.extensions)
        count = min(_MOST_QUEUES, physical.family.count)
        queues = driver.make(
            "VkDeviceQueueCreateInfo",
            queueFamilyIndex=physical.family.index,
            queueCount=count,
            pQueuePriorities=ffi.new("float[]", [1.0] * count),
        )
        info = driver.make(
            "VkDeviceCreateInfo",
            pNext=chain["VkPhysicalDeviceFeatures2"],
            queueCreateInfoCount=1,
            pQueueCreateInfos=queues,
            enabledExtensionCount=len(extensions),
            ppEnabledExtensionNames=driver.strings(extensions),
        )
        made = ffi.new("VkDevice *")
        result = driver.lib.vkCreateDevice(physical.handle, info, ffi.NULL, made)
        driver.check(result, "opening the device", self.name)
        return made[0]

    def _queue(self, number: int) -> VulkanQueue:
        found = driver.ffi.new("VkQueue *")
        assert self.physical.family is not None
        self.call.vkGetDeviceQueue(self.handle, self.physical.family.index, number, found)
        return VulkanQueue(found[0])

    def next_queue(self) -> VulkanQueue:
        """Queues in turn, the first one last: launches without a stream have it."""
        with self._lock:
            self._next_queue += 1
            return self.queues[self._next_queue % len(self.queues)]

    def check(self, result: int, action: str, asked: int = 0) -> None:
        """Raise the error of this package for a failure. A device that is lost stays so."""
        if result >= 0:
            return
        available = self.available(0) if asked else 0
        try:
            driver.check(result, action, self.name, asked, available)
        except DeviceLost as lost:
            self.lost = lost
            raise

    def refuse_lost(self) -> None:
        """Raise DeviceLost for a device that was lost before, or in a forked process."""
        driver.refuse_forked(self.name)
        if self.lost is not None:
            raise DeviceLost(
                f"{self.name} was lost before and does not come back in this process\n"
                f"  note: {self.lost}"
            )

    # --- memory -----------------------------------------------------------------------------------

    def memory_type(self, bits: int, *wishes: int) -> int:
        """The first type of memory of `bits` that has all flags of a wish, the best wish first."""
        for wish in wishes:
            for number, each in enumerate(self.physical.memory_types):
                if bits >> number & 1 and each.flags & wish == wish:
                    return number
        raise OutOfMemory(f"{self.name} has no memory of the kind {wishes[-1]:#x}", 0, 0)

    def available(self, type: int) -> int:
        """The bytes that are left of a type of memory, or all where the device does not tell."""
        heap = self.physical.memory_types[type].heap
        if BUDGET not in self.physical.extensions:
            return self.physical.heaps[heap]
        budget = driver.make("VkPhysicalDeviceMemoryBudgetPropertiesEXT")
        found = driver.make("VkPhysicalDeviceMemoryProperties2", pNext=budget)
        driver.lib.vkGetPhysicalDeviceMemoryProperties2(self.physical.handle, found)
        return max(0, int(budget.heapBudget[heap]) - int(budget.heapUsage[heap]))

    def allocate(self, size: int, *wishes: int) -> Block:
        """A block of memory of the best type; mapped if it was wished. Raises OutOfMemory."""
        self.refuse_lost()
        limit = int(self.physical.limits["maxMemoryAllocationSize"])
        heap = max(self.physical.heaps)
        if size > min(limit, heap):
            which = "memory" if heap < limit else "one allocation"
            raise OutOfMemory(
                f"allocating a buffer on {self.name} failed: {size} bytes are more than "
                f"{which} has ({min(limit, heap)})",
                size,
                min(limit, heap),
            )
        buffer = self._buffer(size, driver.ffi.NULL)
        try:
            needs = driver.ffi.new("VkMemoryRequirements *")
            self.call.vkGetBufferMemoryRequirements(self.handle, buffer, needs)
            type = self.memory_type(needs.memoryTypeBits, *wishes)
            memory = self._memory(int(needs.size), type, driver.ffi.NULL)
        except BaseException:
            self.call.vkDestroyBuffer(self.handle, buffer, driver.ffi.NULL)
            raise
        block = self._bound(memory, buffer, size)
        if self.physical.memory_types[type].flags & wishes[-1] & HOST_VISIBLE:
            self._map(block)
        return block

    def import_host(self, address: int, size: int) -> Block:
        """Host memory, of whole pages, as the device's. Raises OutOfMemory, BackendError."""
        self.refuse_lost()
        ffi = driver.ffi
        pointer = ffi.cast("void *", address)
        offered = driver.make("VkMemoryHostPointerPropertiesEXT")
        result = self.call.vkGetMemoryHostPointerPropertiesEXT(
            self.handle, _IMPORTED, pointer, offered
        )
        self.check(result, "importing host memory", size)
        external = driver.make("VkExternalMemoryBufferCreateInfo", handleTypes=_IMPORTED)
        buffer = self._buffer(size, external)
        try:
            type = self.memory_type(offered.memoryTypeBits, MAPPED, 0)
            imported = driver.make(
                "VkImportMemoryHostPointerInfoEXT", handleType=_IMPORTED, pHostPointer=pointer
            )
            memory = self._memory(size, type, imported)
        except BaseException:
            self.call.vkDestroyBuffer(self.handle, buffer, ffi.NULL)
            raise
        return self._bound(memory, buffer, size)

    def _buffer(self, size: int, following: Any) -> Any:
        info = driver.make("VkBufferCreateInfo", pNext=following, size=size, usage=_USAGE)
        made = driver.ffi.new("VkBuffer *")
        result = self.call.vkCreateBuffer(self.handle, info, driver.ffi.NULL, made)
        self.check(result, "allocating a buffer", size)
        return made[0]

    def _memory(self, size: int, type: int, following: Any) -> Any:
        flags = driver.make("VkMemoryAllocateFlagsInfo", pNext=following, flags=0x2)
        info = driver.make(
            "VkMemoryAllocateInfo", pNext=flags, allocationSize=size, memoryTypeIndex=type
        )
        made = driver.ffi.new("VkDeviceMemory *")
        result = self.call.vkAllocateMemory(self.handle, info, driver.ffi.NULL, made)
        if result in (-1, -2):
            message = f"allocating a buffer on {self.name} failed: {driver.result_name(result)}"
            raise OutOfMemory(message, size, self.available(type))
        self.check(result, "allocating a buffer", size)
        return made[0]

    def _bound(self, memory: Any, buffer: Any, size: int) -> Block:
        result = self.call.vkBindBufferMemory(self.handle, buffer, memory, 0)
        self.check(result, "binding a buffer", size)
        info = driver.make("VkBufferDeviceAddressInfo", buffer=buffer)
        address = int(self.call.vkGetBufferDeviceAddress(self.handle, info))
        return Block(memory, buffer, size, address)

    def _map(self, block: Block) -> None:
        found = driver.ffi.new("void **")
        result = self.call.vkMapMemory(self.handle, block.memory, 0, _WHOLE, 0, found)
        self.check(result, "mapping a buffer", block.size)
        block.mapped = int(driver.ffi.cast("uintptr_t", found[0]))

    def free(self, block: Block) -> None:
        """Give a block back, which nothing uses any more."""
        if self.lost is not None or driver.is_forked():
            return
        self.call.vkDestroyBuffer(self.handle, block.buffer, driver.ffi.NULL)
        self.call.vkFreeMemory(self.handle, block.memory, driver.ffi.NULL)

    def staging(self, size: int) -> Block:
        """Memory of the host's that the device copies to and from."""
        return self.allocate(size, MAPPED | HOST_CACHED, MAPPED)

    def arguments(self, size: int) -> Block:
        """Memory that the host writes and kernels read."""
        return self.allocate(size, MAPPED | DEVICE_LOCAL, MAPPED)

    # --- pipelines --------------------------------------------------------------------------------

    def pipeline_layout(self, push_bytes: int, sets: Any = ()) -> Any:
        """A layout of so many bytes of push constants, and of descriptor sets if there are any."""
        if sets:
            return self._new_layout(push_bytes, sets)
        with self._lock:
            if push_bytes not in self._layouts:
                self._layouts[push_bytes] = self._new_layout(push_bytes, ())
            return self._layouts[push_bytes]

    def _new_layout(self, push_bytes: int, sets: Any) -> Any:
        ffi = driver.ffi
        constants = driver.plain("VkPushConstantRange", stageFlags=0x20, offset=0, size=push_bytes)
        layouts = ffi.new("VkDescriptorSetLayout[]", list(sets))
        info = driver.make(
            "VkPipelineLayoutCreateInfo",
            setLayoutCount=len(sets),
            pSetLayouts=layouts,
            pushConstantRangeCount=1 if push_bytes else 0,
            pPushConstantRanges=constants,
        )
        made = ffi.new("VkPipelineLayout *")
        result = self.call.vkCreatePipelineLayout(self.handle, info, ffi.NULL, made)
        self.check(result, "making a pipeline layout")
        return made[0]

    def shader_module(self, words: bytes) -> Any:
        """A module of SPIR-V words."""
        ffi = driver.ffi
        code = ffi.new("uint32_t[]", len(words) // 4)
        ffi.memmove(code, words, len(words))
        info = driver.make("VkShaderModuleCreateInfo", codeSize=len(words), pCode=code)
        made = ffi.new("VkShaderModule *")
        result = self.call.vkCreateShaderModule(self.handle, info, ffi.NULL, made)
        self.check(result, "making a shader module")
        return made[0]

    def pipeline(
        self,
        module: Any,
        entry: str,
        layout: Any,
        constants: dict[int, int],
        cache: Any,
        subgroup: int | None,
    ) -> Any:
        """A compute pipeline. `constants` are the 32-bit values of specialisation constants;
        `subgroup` the size that its subgroups must have."""
        ffi = driver.ffi
        entries = ffi.new("VkSpecializationMapEntry[]", max(1, len(constants)))
        for k, number in enumerate(constants):
            entries[k].constantID, entries[k].offset, entries[k].size = number, 4 * k, 4
        values = ffi.new("uint32_t[]", [*constants.values(), 0])
        special = driver.plain(
            "VkSpecializationInfo",
            mapEntryCount=len(constants),
            pMapEntries=entries,
            dataSize=4 * len(constants),
            pData=values,
        )
        required = ffi.NULL
        if subgroup is not None:
            required = driver.make(
                "VkPipelineShaderStageRequiredSubgroupSizeCreateInfo", requiredSubgroupSize=subgroup
            )
        name = ffi.new("char[]", entry.encode())
        info = driver.make("VkComputePipelineCreateInfo", layout=layout)
        stage = driver.make(
            "VkPipelineShaderStageCreateInfo",
            pNext=required,
            stage=0x20,
            module=module,
            pName=name,
            pSpecializationInfo=special,
        )
        info.stage = stage[0]
        driver.keep(info, stage)
        made = ffi.new("VkPipeline *")
        result = self.call.vkCreateComputePipelines(self.handle, cache, 1, info, ffi.NULL, made)
        self.check(result, "compiling a kernel")
        return made[0]
