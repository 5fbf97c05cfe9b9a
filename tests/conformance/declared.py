"""What a device does not run of the conformance tests or fails, and why: all of it stands here.

Refusals that are tests' own subject are not skipped but checked where they are met; a device that
flushes subnormal numbers says so in its record, by which tests choose their operands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from sarek_numba.capability import DeviceRecord
from sarek_numba.errors import SourceCompilationError


def _compiles_slowly(record: DeviceRecord) -> bool:
    """llvmpipe takes minutes for kernels of thousands of operations."""
    return record.backend == "vulkan" and record.is_cpu


@dataclass(frozen=True)
class Skip:
    """Tests whose names begin so are skipped on the devices that `on` holds for."""

    tests: str
    on: Callable[[DeviceRecord], bool]
    reason: str


def _nvidia_vulkan(record: DeviceRecord) -> bool:
    return record.backend == "vulkan" and dict(record.identity).get("driver") == "NVIDIA"


FAILURES = (  # strict: what the driver gets right one day is seen
    Skip(
        "test_case_118_local_limit[",
        _nvidia_vulkan,
        "driver 580 makes no pipeline of 64 KiB of local arrays a thread (docs/status.md)",
    ),
)

SKIPS = (
    Skip(
        "test_case_107_grid[threads_beyond",
        lambda record: record.limits.grid[0] <= 2**23,
        "the device takes no grid of 2^23 + 1 blocks, and refuses it by name",
    ),
    Skip(
        "test_case_107_grid[threads_of_three_axes",
        _compiles_slowly,
        "8 million blocks, which llvmpipe begins one by one, take a minute",
    ),
)


def every_nth(record: DeviceRecord | None) -> int:
    """Of how many generated operations a device computes one."""
    return 4 if record is not None and _compiles_slowly(record) else 1


def mark(items: list[pytest.Item]) -> None:
    """Mark the tests of a device that it does not run, and those that it fails."""
    from tests.executors import EMULATION, device_of, executors

    records = {n: device_of(n).record for n in executors() if n != EMULATION}
    for item in items:
        for skip in (*SKIPS, *FAILURES):
            if not item.name.startswith(skip.tests):
                continue
            names = item.callspec.params.values() if hasattr(item, "callspec") else ()
            if any(isinstance(n, str) and n in records and skip.on(records[n]) for n in names):
                item.add_marker(
                    pytest.mark.skip(reason=skip.reason)
                    if skip in SKIPS
                    else pytest.mark.xfail(
                        strict=True, raises=SourceCompilationError, reason=skip.reason
                    )
                )
