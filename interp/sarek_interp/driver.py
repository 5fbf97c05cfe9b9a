"""The interpreter as a device: driver, program and record."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarek_interp.launch import (
    DEFAULT_STEP_LIMIT,
    Compiled,
    compile_kernel,
    execute,
    static_shared_bytes,
)
from sarek_interp.memory import Bytes
from sarek_interp.report import Report
from sarek_numba import settings
from sarek_numba.capability import (
    Capability,
    CapabilityKind,
    CoopmatRule,
    DeviceRecord,
    Fact,
    Limits,
    Verdict,
    host_facts,
)
from sarek_numba.codegen.target import Target
from sarek_numba.ir.matrices import COMPONENTS, is_computed
from sarek_numba.ir.nodes import AtomicOp, Kernel, ParamDecl
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.ir.warps import WARP_WIDTHS
from sarek_numba.runtime.device import DeviceMemory, Dimensions, Driver, Queues
from sarek_numba.runtime.languages import Externals
from sarek_numba.runtime.plans import Plans
from sarek_numba.runtime.work import AT_ONCE

_EVIDENCE = "by construction: the interpreter is the meaning of the IR"
_ATOMIC_SCALARS = (
    Scalar.INT32,
    Scalar.UINT32,
    Scalar.INT64,
    Scalar.UINT64,
    Scalar.FLOAT32,
    Scalar.FLOAT64,
)


class InterpreterProgram:
    """A kernel compiled for the oracle. A launch raises what the oracle finds."""

    def __init__(self, kernel: Kernel, source: str) -> None:
        self.params: tuple[ParamDecl, ...] = kernel.params
        self.source = source
        self._kernel = kernel
        self._compiled: dict[frozenset[str], Compiled] = {}
        self._lock = threading.Lock()
        self.static_shared_bytes = static_shared_bytes(self._compiled_for(frozenset()))

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """Run the kernel with all checks. Raises the first finding, which carries the others."""
        self.check(grid, block, shared_bytes, arguments).raise_first()

    def check(
        self,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        arguments: Sequence[Any],
        *,
        checks: Collection[str] = (),
        races: str = "default",
        seed: int | None = None,
        step_limit: int = DEFAULT_STEP_LIMIT,
        watch: tuple[int, int] | None = None,
    ) -> Report:
        """Run the kernel with all checks and say what they found; see `execute`."""
        report = execute(
            self._compiled_for(frozenset(checks)),
            grid,
            block,
            arguments,
            shared_bytes,
            races=races,
            seed=settings.seed() if seed is None else seed,
            step_limit=step_limit,
            watch=watch,
        )
        sys.stdout.write(report.printed)
        return report

    def _compiled_for(self, checks: frozenset[str]) -> Compiled:
        with self._lock:
            if checks not in self._compiled:
                self._compiled[checks] = compile_kernel(self._kernel, checks)
            return self._compiled[checks]


class InterpreterDriver:
    """The interpreter; memory is used where it lies."""

    def __init__(self) -> None:
        self.record = _record()
        self.target: Target | None = None
        self.memory: DeviceMemory | None = None
        self.externals: Externals | None = None
        self.queues: Queues | None = AT_ONCE
        self.plans: Plans | None = None

    def prepare(self, kernel: Kernel) -> InterpreterProgram:
        return InterpreterProgram(kernel, self.source(kernel))

    def source(self, kernel: Kernel) -> str:
        """The IR itself: it is what runs."""
        from sarek_numba.ir.text import text

        return text(kernel)

    def bind(self, memory: Bytes, *, read: bool, written: bool) -> Bytes:
        return memory

    def unbind(self, buffer: Bytes) -> None:
        """Nothing to bring back: a launch works on the host array itself."""


@dataclass(frozen=True, slots=True)
class InterpreterBackend:
    """The one device of this package."""

    name: str = "interpreter"

    def drivers(self) -> Sequence[Driver]:
        return (InterpreterDriver(),)


def _record() -> DeviceRecord:
    return DeviceRecord(
        name="interpreter",
        backend="interpreter",
        model="custom",
        description="the oracle: runs Sarek IR on NumPy lanes and checks every access",
        identity=(("numpy", np.__version__),),
        limits=Limits(
            threads_per_block=1024,
            block=(1024, 1024, 64),
            grid=(2**31 - 1, 65_535, 65_535),
            shared_bytes=64 * 1024,
            local_bytes=2**30,
            global_bytes=2**63 - 1,
            warp_widths=WARP_WIDTHS,
        ),
        facts={
            **dict.fromkeys(_capabilities(), _FACT),
            **host_facts(_AT_ONCE),
        },
        is_cpu=True,
        coopmat=MATRICES,
    )


_FACT = Fact(Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, _EVIDENCE)
MATRICES = CoopmatRule(
    f"every shape, components {', '.join(each.value for each in COMPONENTS)}",
    is_computed,
    Fact(Verdict.UNAVAILABLE, CapabilityKind.STRUCTURAL, "by construction: it does not compute it"),
)
_AT_ONCE = Fact(
    Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, "by construction: work is done when it is given"
)


def _capabilities() -> list[Capability]:
    scalars = [s for s in Scalar if s not in (Scalar.FLOAT16, Scalar.BFLOAT16)]
    features = ("shared", "barrier", "warp", "dynamic_shared", "print")
    found = [Capability(feature) for feature in features]
    found += [Capability(feature, s) for feature in ("storage", "arithmetic") for s in scalars]
    found += [
        Capability("atomic", s, op, space)
        for op in AtomicOp
        for s in _ATOMIC_SCALARS
        for space in (MemSpace.GLOBAL, MemSpace.SHARED)
    ]
    return found
