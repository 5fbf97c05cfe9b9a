"""Where the libraries of ROCm are, and what helps where they or their devices are not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from sarek_numba import settings

ROCM = "ROCm 5.7 or later"  # earlier ones lack atomicMin of 64-bit integers
OLDEST = 50_700_000  # its HIP_VERSION
INSTALL = "apt-get install rocm-hip-runtime (AMD's repository) or libamdhip64-5 (Debian 13)"
INSTALL_COMPILER = (
    "apt-get install hip-runtime-amd (AMD's repository), or the package of your ROCm that has "
    "libhiprtc.so"
)
_VERSIONS = (7, 6, 5)  # of the libraries' interfaces, the newest first
_KFD = Path("/dev/kfd")  # what AMD's kernel driver opens for programs


def file_names(library: str, system: str = sys.platform) -> list[str]:
    """What a library is called: "amdhip64" or "hiprtc"."""
    if system == "win32":
        return [*(f"{library}_{version}.dll" for version in _VERSIONS), f"{library}.dll"]
    return [*(f"lib{library}.so.{version}" for version in _VERSIONS), f"lib{library}.so"]


def folders() -> Iterator[Path]:
    """Folders of ROCm that are not on the loader's path: stated, pip's, AMD's packages'."""
    stated = settings.rocm_folder()
    if stated is not None:
        yield stated / ("bin" if sys.platform == "win32" else "lib")
    for entry in sys.path:
        yield Path(entry, "_rocm_sdk_core", "lib")
    yield Path("/opt/rocm/lib")
    yield from sorted(Path("/opt").glob("rocm-*/lib"), reverse=True)


def about_devices(kfd: Path = _KFD) -> str:
    """What helps where the runtime sees no device."""
    if sys.platform == "win32":
        return "install AMD's driver"
    if not kfd.exists():
        return f"AMD's kernel driver has no {kfd}: apt-get install amdgpu-dkms, and an AMD GPU"
    if not os.access(kfd, os.R_OK | os.W_OK):
        return f"{kfd} is not yours to open: usermod -aG render,video USER, and log in again"
    return "rocminfo tells what the driver has; HIP_VISIBLE_DEVICES may hide a device"
