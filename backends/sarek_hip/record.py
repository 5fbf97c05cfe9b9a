"""The record of a HIP device: its limits, its identity, and what it can do with the evidence."""

from __future__ import annotations

from sarek_hip.dialect import DIALECT
from sarek_hip.driver import Api, shown
from sarek_hip.matrices import SOURCE, configurations
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

MATRICES = Fact(Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, SOURCE)
# Bytes of a thread: what a wave of 64 may have (LLVM, GCNSubtarget::getMaxWaveScratchSize: 13 bits
# of 1 KiB up to gfx10; later ones have more), by its threads.
LOCAL_BYTES = ((1 << 13) - 1) * 1024 // 64
THREADS_PER_AXIS = 2**32 - 1  # HIP, hipModuleLaunchKernel: grid times block is below 2^32
_ARGUMENT_BYTES = 4096  # by construction: what every device of this form takes
_AXES = ("X", "Y", "Z")

_FEATURES = {
    "shared": "__shared__: HIP C++ language extensions, memory space qualifiers",
    "dynamic_shared": "extern __shared__: the same section",
    "barrier": "__syncthreads(): HIP C++ language extensions, synchronization functions",
    "print": "by construction: atomicAdd on the words of a report buffer",
    "warp": "__shfl: HIP C++ language extensions, warp shuffle functions; lanes follow the linear "
    "index in the block (programming model, thread hierarchy)",
}
_FLOATS = {
    Scalar.FLOAT32: "AMD ISA, floating-point modes: + - * and fma are IEEE 754, with subnormal "
    "numbers by -fno-gpu-flush-denormals-to-zero; / by -fhip-fp32-correctly-rounded-divide-sqrt "
    "(Clang, HIP options), sqrt by construction; -ffp-contract=off contracts nothing",
    Scalar.FLOAT64: "AMD ISA, floating-point modes: + - * and fma are IEEE 754; / and sqrt are "
    "sequences of them with the last bit right (LLVM, AMDGPU usage); -ffp-contract=off contracts "
    "nothing",
}
_EVIDENCE = Evidence(
    features=_FEATURES,
    streams="HIP runtime API, sections on stream and event management",
    floats=_FLOATS,
    atomic="HIP C++ language extensions, atomic functions; -mno-unsafe-fp-atomics keeps subnormal "
    "numbers in sums",
    atomic_loop="by construction: a loop of atomicCAS on the bits",
)

_EXACT = (
    "-ffp-contract=off",
    "-fhip-fp32-correctly-rounded-divide-sqrt",
    "-fno-gpu-flush-denormals-to-zero",
)
_FAST = (
    "-ffp-contract=on",
    "-fno-hip-fp32-correctly-rounded-divide-sqrt",
    "-fgpu-flush-denormals-to-zero",
)
_ALWAYS = ("-fno-fast-math", "-mno-unsafe-fp-atomics", "-Wno-unused-command-line-argument")


def plain_options(architecture: str) -> tuple[str, ...]:
    """hiprtc's options for texts of others: its default arithmetic."""
    return (f"--offload-arch={architecture}", "-std=c++17")


def options_for(architecture: str, *, fast: bool = False) -> tuple[str, ...]:
    """hiprtc's options; `fast` for a kernel with `accept.fastmath`: none that assumes NaN or
    infinity away.
    """
    return (*plain_options(architecture), "-O3", *_ALWAYS, *(_FAST if fast else _EXACT))


def record_of(api: Api, device: int, name: str) -> DeviceRecord:
    """The record of a device under its canonical name. Raises BackendUnavailable."""

    def attribute(which: str) -> int:
        return api.attribute(device, which)

    def sizes(which: str) -> tuple[int, int, int]:
        x, y, z = (attribute(f"{which}{axis}") for axis in _AXES)
        return x, y, z

    product_name, architecture = api.device_name(device), api.architecture(device)
    runtime, compiler = shown(api.runtime_version()), api.compiler_version()
    return DeviceRecord(
        name=name,
        backend="hip",
        model="jit",
        description=f"{product_name} (HIP {runtime}, {architecture})",
        identity=(
            ("device", product_name),
            ("architecture", architecture),
            ("driver", shown(api.driver_version())),
            ("runtime", runtime),
            ("hiprtc", f"{compiler[0]}.{compiler[1]}"),
        ),
        limits=Limits(
            threads_per_block=attribute("MaxThreadsPerBlock"),
            block=sizes("MaxBlockDim"),
            grid=sizes("MaxGridDim"),
            shared_bytes=attribute("MaxSharedMemoryPerBlock"),
            global_bytes=api.device_memory(device),
            argument_bytes=_ARGUMENT_BYTES,
            warp_width=attribute("WarpSize"),
            thread_local_bytes=LOCAL_BYTES,
            registers=attribute("MaxRegistersPerBlock"),
            residency=Residency(
                attribute("MultiprocessorCount") * attribute("MaxThreadsPerMultiProcessor"),
                "MultiprocessorCount times MaxThreadsPerMultiProcessor of hipDeviceGetAttribute",
            ),
            threads_per_axis=THREADS_PER_AXIS,
        ),
        facts=facts(DIALECT, _EVIDENCE) | {Capability("coopmat"): MATRICES},
        coopmat=configurations(architecture),
    )
