"""Which device, driver and processor something was measured on."""

from __future__ import annotations

import platform

import llvmlite.binding as llvm

from sarek_numba.capability import DeviceRecord


def family(device: str) -> str:
    """The device without its number, as its bounds do not depend on that."""
    return device.rstrip("0123456789").rstrip(":")


def instruction_set() -> str:
    """The level of the processor, since libraries choose their code by it."""
    if platform.machine() != "x86_64":
        return platform.machine()
    features = llvm.get_host_cpu_features()
    if all(features.get(f) for f in ("avx512f", "avx512bw", "avx512vl", "avx512dq")):
        return "x86-64-v4"
    return "x86-64-v3" if features.get("avx2") and features.get("fma") else "x86-64"


_IDENTITY = {
    "opencl": ("platform", "driver"),
    "vulkan": ("device", "driver", "info"),
    "native": ("LLVM",),
    "interpreter": ("numpy",),
}


def driver(record: DeviceRecord) -> str:
    """The versions that decide a device's results."""
    identity = dict(record.identity)
    keys = _IDENTITY.get(record.backend, tuple(identity))
    words = [f"{key} {identity[key]}" for key in keys if key in identity]
    if record.backend in ("native", "interpreter"):
        words.append(" ".join(platform.libc_ver()) or platform.system())
    return ", ".join(words)
