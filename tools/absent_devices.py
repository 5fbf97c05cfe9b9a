"""Records of devices that nobody here has, for `tools.device_table --record`.

Each is made by the function that makes those of present devices, of what the maker's documents say
in place of what the driver would: HIP, hardware features and device properties; LLVM, user guide
for AMDGPU backend, processors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sarek_hip.record import record_of
from sarek_numba.capability import DeviceRecord


@dataclass(frozen=True)
class _Told:
    """What a driver would say of a device."""

    product: str
    target: str
    warp_width: int
    memory: int
    processors: int  # compute units, or pairs of them where a block may have two

    def attribute(self, device: int, name: str) -> int:
        return {
            "MaxThreadsPerBlock": 1024,
            "MaxThreadsPerMultiProcessor": 2048,
            "MultiprocessorCount": self.processors,
            "MaxBlockDimX": 1024,
            "MaxBlockDimY": 1024,
            "MaxBlockDimZ": 1024,
            "MaxGridDimX": 2**31 - 1,
            "MaxGridDimY": 65536,
            "MaxGridDimZ": 65536,
            "MaxSharedMemoryPerBlock": 64 << 10,
            "MaxRegistersPerBlock": 65536,
            "WarpSize": self.warp_width,
        }[name]

    def device_name(self, device: int) -> str:
        return self.product

    def device_memory(self, device: int) -> int:
        return self.memory

    def architecture(self, device: int) -> str:
        return self.target

    def runtime_version(self) -> int:
        return 50_700_000

    driver_version = runtime_version

    def compiler_version(self) -> tuple[int, int]:
        return 9, 0


def _hip(told: _Told) -> DeviceRecord:
    record = record_of(told, 0, "hip:0")  # type: ignore[arg-type] # it answers as the driver does
    identity = (*record.identity[:2], ("runtime", "of ROCm 5.7 or later, never run"))
    return replace(record, identity=identity)


def hip_gfx90a() -> DeviceRecord:
    """CDNA 2: wavefronts of 64."""
    return _hip(_Told("AMD Instinct MI210", "gfx90a", 64, 64 << 30, 104))


def hip_gfx1100() -> DeviceRecord:
    """RDNA 3: wavefronts of 32."""
    return _hip(_Told("AMD Radeon RX 7900 XTX", "gfx1100", 32, 24 << 30, 48))
