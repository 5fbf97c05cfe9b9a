"""Cooperative matrices: which multiply-adds a device lists (VK_KHR_cooperative_matrix)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sarek_numba.capability import Capability, CapabilityKind, Fact, Verdict
from sarek_numba.ir.nodes import CoopmatConfig
from sarek_numba.ir.types import Scalar
from sarek_vulkan import driver
from sarek_vulkan.features import ALL, Feature

EXTENSION = "VK_KHR_cooperative_matrix"
_NEEDED = ("cooperativeMatrix", "vulkanMemoryModel", "vulkanMemoryModelDeviceScope")
FEATURES = tuple(f for f in ALL if f.field in _NEEDED)  # SPIR-V has none with another memory model

_LISTED = "VkCooperativeMatrixPropertiesKHR"
_FUNCTION = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"
_COMPUTE = 0x20  # the stage

COMPONENTS = {  # VkComponentTypeKHR; what is not here (bfloat16, eight bits of float) is left out
    0: Scalar.FLOAT16,
    1: Scalar.FLOAT32,
    2: Scalar.FLOAT64,
    3: Scalar.INT8,
    4: Scalar.INT16,
    5: Scalar.INT32,
    6: Scalar.INT64,
    7: Scalar.UINT8,
    8: Scalar.UINT16,
    9: Scalar.UINT32,
    10: Scalar.UINT64,
}
SUBGROUP = 3  # VkScopeKHR; fragments of a larger scope are another extension's


def configurations(handle: Any, stages: int) -> tuple[CoopmatConfig, ...]:
    """What a physical device with the feature lists, each once, in its order.

    `stages` are cooperativeMatrixSupportedStages.
    """
    if not stages & _COMPUTE:
        return ()
    ask = driver.instance_function(driver.instance(), _FUNCTION)
    count = driver.ffi.new("uint32_t *")
    if ask(handle, count, driver.ffi.NULL) < 0:
        return ()
    found = driver.ffi.new(f"{_LISTED}[]", int(count[0]))
    for each in found:
        each.sType = driver.make(_LISTED).sType
    if ask(handle, count, found) < 0:
        return ()
    made = (_configuration(each) for each in list(found)[: int(count[0])])
    return tuple(dict.fromkeys(config for config in made if config is not None))


def _configuration(listed: Any) -> CoopmatConfig | None:
    numbers = (listed.AType, listed.BType, listed.CType, listed.ResultType)
    if int(listed.scope) != SUBGROUP or not all(int(n) in COMPONENTS for n in numbers):
        return None
    a, b, c, result = (COMPONENTS[int(number)] for number in numbers)
    m, n, k = int(listed.MSize), int(listed.NSize), int(listed.KSize)
    return CoopmatConfig(m, n, k, a, b, c, result, bool(listed.saturatingAccumulation))


def facts(extensions: Collection[str], has: Collection[Feature]) -> dict[Capability, Fact]:
    """Why a device of these extensions and features has none; nothing where it may have some."""
    missing = [feature for feature in FEATURES if feature not in has]
    if not missing:
        return {}
    evidence = f"the device's list of extensions has no {EXTENSION}"
    if EXTENSION in extensions:
        evidence = ", ".join(f"{feature} = 0" for feature in missing)
    fact = Fact(Verdict.UNAVAILABLE, CapabilityKind.OPTIONAL, evidence)
    return {Capability("coopmat"): fact}
