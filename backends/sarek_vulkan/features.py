"""Features of devices: the structures that have them, and the SPIR-V that each one allows.

What a device has of this table is enabled on its logical device, and nothing else is.
"""

from __future__ import annotations

from dataclasses import dataclass

CORE = "VkPhysicalDeviceFeatures"
V11 = "VkPhysicalDeviceVulkan11Features"
V12 = "VkPhysicalDeviceVulkan12Features"
SIZE_CONTROL = "VkPhysicalDeviceSubgroupSizeControlFeatures"
ATOMIC_FLOAT = "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT"
ATOMIC_FLOAT2 = "VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT"
COOPERATIVE_MATRIX = "VkPhysicalDeviceCooperativeMatrixFeaturesKHR"
EXPLICIT_LAYOUT = "VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR"

STRUCTURES = {  # the extension that each one is of; None for those of Vulkan 1.2
    V11: None,
    V12: None,
    SIZE_CONTROL: "VK_EXT_subgroup_size_control",
    ATOMIC_FLOAT: "VK_EXT_shader_atomic_float",
    ATOMIC_FLOAT2: "VK_EXT_shader_atomic_float2",
    EXPLICIT_LAYOUT: "VK_KHR_workgroup_memory_explicit_layout",
    COOPERATIVE_MATRIX: "VK_KHR_cooperative_matrix",
}

PLAIN_EXTENSIONS = (  # used where they are, without a feature
    "VK_EXT_external_memory_host",
    "VK_EXT_memory_budget",
    "VK_KHR_portability_subset",
)


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature bit of a structure, and the capabilities of SPIR-V that it allows."""

    structure: str
    field: str
    capabilities: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.structure}.{self.field}"


REQUIRED = (  # of every device
    Feature(V12, "bufferDeviceAddress", ("PhysicalStorageBufferAddresses",)),
    Feature(V12, "timelineSemaphore"),
)
OPTIONAL = (
    Feature(CORE, "shaderInt64", ("Int64",)),
    Feature(CORE, "shaderFloat64", ("Float64",)),
    Feature(CORE, "shaderInt16", ("Int16",)),
    Feature(V11, "storageBuffer16BitAccess", ("StorageBuffer16BitAccess",)),
    Feature(V11, "uniformAndStorageBuffer16BitAccess", ("UniformAndStorageBuffer16BitAccess",)),
    Feature(V11, "storagePushConstant16", ("StoragePushConstant16",)),
    Feature(V11, "variablePointersStorageBuffer", ("VariablePointersStorageBuffer",)),
    Feature(V11, "variablePointers", ("VariablePointers",)),
    Feature(V12, "storageBuffer8BitAccess", ("StorageBuffer8BitAccess",)),
    Feature(V12, "uniformAndStorageBuffer8BitAccess", ("UniformAndStorageBuffer8BitAccess",)),
    Feature(V12, "storagePushConstant8", ("StoragePushConstant8",)),
    Feature(V12, "shaderInt8", ("Int8",)),
    Feature(V12, "shaderFloat16", ("Float16",)),
    Feature(V12, "shaderBufferInt64Atomics", ("Int64Atomics",)),
    Feature(V12, "shaderSharedInt64Atomics"),
    Feature(V12, "scalarBlockLayout"),
    Feature(V12, "uniformBufferStandardLayout"),
    Feature(V12, "shaderSubgroupExtendedTypes"),
    Feature(V12, "vulkanMemoryModel", ("VulkanMemoryModel",)),
    Feature(V12, "vulkanMemoryModelDeviceScope", ("VulkanMemoryModelDeviceScope",)),
    Feature(SIZE_CONTROL, "subgroupSizeControl"),
    Feature(SIZE_CONTROL, "computeFullSubgroups"),
    Feature(ATOMIC_FLOAT, "shaderBufferFloat32AtomicAdd", ("AtomicFloat32AddEXT",)),
    Feature(ATOMIC_FLOAT, "shaderSharedFloat32AtomicAdd"),
    Feature(ATOMIC_FLOAT, "shaderBufferFloat64AtomicAdd", ("AtomicFloat64AddEXT",)),
    Feature(ATOMIC_FLOAT, "shaderSharedFloat64AtomicAdd"),
    Feature(ATOMIC_FLOAT, "shaderBufferFloat32Atomics"),
    Feature(ATOMIC_FLOAT, "shaderSharedFloat32Atomics"),
    Feature(ATOMIC_FLOAT, "shaderBufferFloat64Atomics"),
    Feature(ATOMIC_FLOAT, "shaderSharedFloat64Atomics"),
    Feature(ATOMIC_FLOAT2, "shaderBufferFloat32AtomicMinMax", ("AtomicFloat32MinMaxEXT",)),
    Feature(ATOMIC_FLOAT2, "shaderSharedFloat32AtomicMinMax"),
    Feature(
        EXPLICIT_LAYOUT, "workgroupMemoryExplicitLayout", ("WorkgroupMemoryExplicitLayoutKHR",)
    ),
    Feature(
        EXPLICIT_LAYOUT,
        "workgroupMemoryExplicitLayoutScalarBlockLayout",
    ),
    Feature(
        EXPLICIT_LAYOUT,
        "workgroupMemoryExplicitLayout8BitAccess",
        ("WorkgroupMemoryExplicitLayout8BitAccessKHR",),
    ),
    Feature(
        EXPLICIT_LAYOUT,
        "workgroupMemoryExplicitLayout16BitAccess",
        ("WorkgroupMemoryExplicitLayout16BitAccessKHR",),
    ),
    Feature(COOPERATIVE_MATRIX, "cooperativeMatrix", ("CooperativeMatrixKHR",)),
)
ALL = (*REQUIRED, *OPTIONAL)

SUBGROUP_OPERATIONS = {  # bits of subgroupSupportedOperations
    0x01: "GroupNonUniform",
    0x02: "GroupNonUniformVote",
    0x04: "GroupNonUniformArithmetic",
    0x08: "GroupNonUniformBallot",
    0x10: "GroupNonUniformShuffle",
    0x20: "GroupNonUniformShuffleRelative",
    0x40: "GroupNonUniformClustered",
    0x80: "GroupNonUniformQuad",
}

FLOAT_CONTROLS = {  # properties of Vulkan 1.2, by width, and what each one allows
    f"shader{name}Float{bits}": capability
    for bits in (16, 32, 64)
    for name, capability in (
        ("SignedZeroInfNanPreserve", "SignedZeroInfNanPreserve"),
        ("DenormPreserve", "DenormPreserve"),
        ("DenormFlushToZero", "DenormFlushToZero"),
        ("RoundingModeRTE", "RoundingModeRTE"),
        ("RoundingModeRTZ", "RoundingModeRTZ"),
    )
}
