"""Vulkan devices for tests: each as it is found, and with its memory reached in the other ways."""

from __future__ import annotations

from functools import cache

import pytest

from sarek_numba.runtime.device import BackendUnavailable
from sarek_numba.runtime.registry import Device
from sarek_vulkan.memory import SHARED, STAGED
from sarek_vulkan.runtime import VulkanDriver, backend


@cache
def devices() -> dict[str, Device]:
    """All Vulkan devices, by name."""
    try:
        return {driver.record.name: Device(driver) for driver in backend.drivers()}
    except BackendUnavailable:
        return {}


@cache
def other_ways() -> dict[str, Device]:
    """CPU devices whose memory is reached as that of GPUs is; the name says how."""
    found = {}
    for name, device in devices().items():
        driver = device.driver
        assert isinstance(driver, VulkanDriver)
        if driver.physical.is_cpu:
            for way in (SHARED, STAGED):
                found[f"{name}-{way}"] = Device(VulkanDriver(driver.physical, name, way))
    return found


def every_device() -> dict[str, Device]:
    """Both."""
    return devices() | other_ways()


on_vulkan = pytest.mark.parametrize("device", devices().values(), ids=devices())
on_every_vulkan = pytest.mark.parametrize("device", every_device().values(), ids=every_device())


def driver_of(device: Device) -> VulkanDriver:
    """The driver, as what it is."""
    assert isinstance(device.driver, VulkanDriver)
    return device.driver
