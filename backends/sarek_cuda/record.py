"""The record of a CUDA device: its limits, its identity, and what it can do with the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sarek_cuda.dialect import DIALECT
from sarek_cuda.driver import Api, shown
from sarek_cuda.matrices import SOURCE, configurations
from sarek_numba.capability import (
    Capability,
    CapabilityKind,
    DeviceRecord,
    Fact,
    Limits,
    Residency,
    Verdict,
)
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.cudalike.facts import Evidence, facts
from sarek_numba.runtime.device import BackendUnavailable

MATRICES = Fact(Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, SOURCE)
LOCAL_BYTES = 512 * 1024  # of a thread: the same table
_AXES = ("X", "Y", "Z")
_LARGE_ARGUMENTS = 32764  # bytes, from compute capability 7.0 and CUDA 12.1 on; else 4 KiB

_FEATURES = {
    "shared": "__shared__ memory: CUDA C++ Programming Guide, variable memory space specifiers",
    "dynamic_shared": "extern __shared__ memory: the same section",
    "barrier": "__syncthreads(): CUDA C++ Programming Guide, synchronization functions",
    "print": "by construction: atomicAdd on the words of a report buffer",
    "warp": "__shfl_sync: CUDA C++ Programming Guide, warp shuffle functions; lanes follow the "
    "linear index in the block (thread hierarchy)",
}
_FLOATS = {
    Scalar.FLOAT32: "CUDA C++ Programming Guide, standard functions: + - * are IEEE 754, / and "
    "sqrt with --prec-div=true --prec-sqrt=true --ftz=false; --fmad=false contracts nothing",
    Scalar.FLOAT64: "CUDA C++ Programming Guide, standard functions: + - * / and sqrt are IEEE "
    "754; --fmad=false contracts nothing",
}
_EVIDENCE = Evidence(
    features=_FEATURES,
    streams="CUDA driver API, sections on stream and event management",
    floats=_FLOATS,
    atomic="CUDA C++ Programming Guide, atomic functions",
    atomic_loop="by construction: a loop of atomicCAS on the bits",
)

_EXACT = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")
_FAST = ("--fmad=true", "--prec-div=false", "--prec-sqrt=false", "--ftz=true")


@dataclass(frozen=True, slots=True)
class Architecture:
    """What is compiled for: machine code of the device itself, or PTX where NVRTC is older."""

    option: str
    ptx: bool


def architecture_for(capability: int, known: tuple[int, ...]) -> Architecture:
    """For a device of a compute capability, as 90. Raises BackendUnavailable with what helps."""
    if capability in known:
        return Architecture(f"sm_{capability}", ptx=False)
    older = [each for each in known if each < capability]
    if not older:
        least = min(known, default=0)
        raise BackendUnavailable(
            f"NVRTC compiles for compute capability {least // 10}.{least % 10} and later, and the "
            f"device has {capability // 10}.{capability % 10}; pip install 'cuda-bindings==12.*' "
            "'nvidia-cuda-nvrtc-cu12'"
        )
    return Architecture(f"compute_{max(older)}", ptx=True)


def options_for(architecture: Architecture, *, fast: bool = False) -> tuple[str, ...]:
    """NVRTC's options; `fast` for a kernel with `accept.fastmath`: none that assumes NaN or
    infinity away.
    """
    exact = _FAST if fast else _EXACT
    return (f"--gpu-architecture={architecture.option}", "--std=c++17", *exact)


def record_of(api: Api, device: Any, name: str) -> DeviceRecord:
    """The record of a device under its canonical name."""

    def attribute(which: str) -> int:
        return api.attribute(device, which)

    def sizes(which: str) -> tuple[int, int, int]:
        x, y, z = (attribute(f"{which}_{axis}") for axis in _AXES)
        return x, y, z

    capability = capability_of(api, device)
    driver, compiler = api.driver_version(), api.compiler_version()
    product_name = api.device_name(device)
    large = capability >= 70 and driver >= 12010 and compiler >= (12, 1)
    return DeviceRecord(
        name=name,
        backend="cuda",
        model="jit",
        description=f"{product_name} (CUDA {shown(driver)}, sm_{capability})",
        identity=(
            ("device", product_name),
            ("architecture", f"sm_{capability}"),
            ("driver", shown(driver)),
            ("nvrtc", f"{compiler[0]}.{compiler[1]}"),
        ),
        limits=Limits(
            threads_per_block=attribute("MAX_THREADS_PER_BLOCK"),
            block=sizes("MAX_BLOCK_DIM"),
            grid=sizes("MAX_GRID_DIM"),
            shared_bytes=max(
                attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
                attribute("MAX_SHARED_MEMORY_PER_BLOCK"),
            ),
            global_bytes=api.device_memory(device),
            argument_bytes=_LARGE_ARGUMENTS if large else 4096,
            warp_width=attribute("WARP_SIZE"),
            thread_local_bytes=LOCAL_BYTES,
            registers=attribute("MAX_REGISTERS_PER_BLOCK"),
            residency=Residency(
                attribute("MULTIPROCESSOR_COUNT") * attribute("MAX_THREADS_PER_MULTIPROCESSOR"),
                "MULTIPROCESSOR_COUNT times MAX_THREADS_PER_MULTIPROCESSOR of cuDeviceGetAttribute",
            ),
        ),
        facts=facts(DIALECT, _EVIDENCE) | {Capability("coopmat"): MATRICES},
        coopmat=configurations(capability),
    )


def capability_of(api: Api, device: Any) -> int:
    """The compute capability, as 90."""
    major = api.attribute(device, "COMPUTE_CAPABILITY_MAJOR")
    return 10 * major + api.attribute(device, "COMPUTE_CAPABILITY_MINOR")
