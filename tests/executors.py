"""Everything that can run a kernel, by name: CPython emulation, each device found, the shim.

A parity failure prints kernel, executor, first differing index, both values, their distance in ULP
and the command that runs it again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.capability import Capability, Verdict
from sarek_numba.verify.ulp import ulp_distance
from tests.kernels.case import Case, Launch
from tests.toolchains import shim

SEED = 20261130
EMULATION = "emulation"
WARP_WIDTH = 32  # of which warps are in the cases


@cache
def executors() -> tuple[str, ...]:
    """Names of all executors present, emulation first, then devices, then texts on the shim."""
    return (EMULATION, *devices(), *(() if shim.why_not() else shim.LANGUAGES))


@cache
def devices() -> tuple[str, ...]:
    """Names of all devices present."""
    return tuple(device.name for device in sarek.devices())


def device_of(executor: str) -> sarek.Device:
    """The device that an executor's name stands for."""
    return shim.device(executor) if executor.startswith("shim:") else sarek.device(executor)


def run(executor: str, kernel: Any, launch: Launch) -> None:
    """Run one launch; results are in its arguments."""
    configuration = (launch.grid, launch.block, None, launch.shared_bytes)
    if executor == EMULATION:
        sarek.emulate(kernel)[configuration](*launch.arguments)
        return
    with sarek.use_device(device_of(executor)):
        kernel[configuration](*launch.arguments)


def warp_width(executor: str) -> int | None:
    """The width of an executor's warps, where a launch asks for none; None where it has none."""
    if executor == EMULATION:
        return WARP_WIDTH
    record = device_of(executor).record
    fact = record.facts[Capability("warp")]
    return record.limits.warp_width if fact.verdict is Verdict.AVAILABLE else None


def has_warps(executor: str) -> bool:
    """Whether an executor has warps of the width that cases are made for."""
    return warp_width(executor) == WARP_WIDTH


def check(executor: str, case: Case, *, launch: Callable[..., Launch] | None = None) -> None:
    """Run a case; compare every argument that has an expectation, within the case's ULP."""
    made = (launch or case.launch)(np.random.default_rng(SEED))
    width = warp_width(executor)
    if case.warps and width not in (None, WARP_WIDTH):
        pytest.skip(f"warps of {executor} have {width} threads, and the case is for {WARP_WIDTH}")
    if case.warps and width is None:
        with pytest.raises(sarek.CapabilityError, match="needs warp operations"):
            run(executor, case.kernel, made)
        return
    before = [np.copy(a) if isinstance(a, np.ndarray) else None for a in made.arguments]
    run(executor, case.kernel, made)
    for position, (actual, expected) in enumerate(zip(made.arguments, made.expected, strict=True)):
        if expected is not None:
            compare(executor, case, position, actual, expected)
        elif isinstance(actual, np.ndarray) and not _written(made, position):
            assert np.array_equal(actual, before[position], equal_nan=actual.dtype.kind in "fc"), (
                f"{case.name} on {executor}: argument {position} was only to be read, and changed"
            )


def _written(launch: Launch, position: int) -> bool:
    """Whether an argument shares memory with one that the kernel writes."""
    return any(
        expected is not None
        and np.shares_memory(launch.arguments[other], launch.arguments[position])
        for other, expected in enumerate(launch.expected)
    )


def compare(executor: str, case: Case, position: int, actual: np.ndarray, expected: Any) -> None:
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, f"{case.name}: the case expects shape {expected.shape}"
    assert actual.dtype == expected.dtype, f"{case.name}: the case expects {expected.dtype}"
    distance = ulp_distance(actual, expected)
    wrong = np.argwhere(distance > case.ulp)
    if len(wrong):
        first = tuple(int(i) for i in wrong[0])
        raise AssertionError(
            f"{case.name} on {executor}: argument {position} differs at {len(wrong)} of "
            f"{actual.size} elements, first at {first}: {actual[first]!r}, expected "
            f"{expected[first]!r}, {distance[first]:.0f} ULP apart (allowed {case.ulp})\n"
            f"again: pytest 'tests/conformance/test_corpus.py::test_case[{case.name}-{executor}]'"
        )
