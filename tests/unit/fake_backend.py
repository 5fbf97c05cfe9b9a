"""A backend for tests of the launch core: its devices record what is asked and compute nothing.

`Fake.behaviour`, where a test sets it, plays the kernel: it is called with the launch's arguments,
memory as the uint8 arrays that were bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from sarek_numba.capability import (
    Capability,
    CapabilityKind,
    DeviceRecord,
    Fact,
    Limits,
    Verdict,
)
from sarek_numba.codegen.target import Target
from sarek_numba.ir.nodes import AtomicOp, Kernel, ParamDecl
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.runtime import registry

LIMITS = Limits(
    threads_per_block=256,
    block=(256, 128, 64),
    grid=(1000, 500, 50),
    shared_bytes=1024,
    global_bytes=2**30,
)
AVAILABLE = Fact(Verdict.AVAILABLE, CapabilityKind.OPTIONAL, "by construction")
NO_FLOAT64 = Fact(
    Verdict.UNAVAILABLE,
    CapabilityKind.OPTIONAL,
    "measured: the device's list of extensions has no fp64",
    "use float32, or launch on another device",
)


def _facts() -> dict[Capability, Fact]:
    facts = {Capability(feature): AVAILABLE for feature in ("shared", "dynamic_shared", "barrier")}
    for scalar in Scalar:
        for feature in ("storage", "arithmetic"):
            fact = NO_FLOAT64 if scalar is Scalar.FLOAT64 else AVAILABLE
            facts[Capability(feature, scalar)] = fact
    facts[Capability("atomic", Scalar.INT32, AtomicOp.ADD, MemSpace.GLOBAL)] = AVAILABLE
    return facts


FACTS = _facts()


@dataclass
class FakeProgram:
    driver: FakeDriver
    params: tuple[ParamDecl, ...]
    source: str = "// fake"
    static_shared_bytes: int = 0

    def launch(self, grid: Any, block: Any, shared_bytes: int, arguments: Sequence[Any]) -> None:
        self.driver.events.append(("launch", grid, block, shared_bytes))
        self.driver.arguments = list(arguments)
        if self.driver.behaviour:
            self.driver.behaviour(*arguments)


@dataclass
class FakeDriver:
    record: DeviceRecord
    target: Target | None = Target("fake")
    memory: Any = None
    externals: Any = None
    queues: Any = None
    plans: Any = None
    events: list[Any] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    behaviour: Callable[..., None] | None = None

    def prepare(self, kernel: Kernel) -> FakeProgram:
        self.events.append(("prepare", kernel.name))
        return FakeProgram(self, kernel.params)

    def source(self, kernel: Kernel) -> str:
        return f"// {kernel.name}"

    def bind(self, memory: Any, *, read: bool, written: bool) -> Any:
        self.events.append(("bind", memory.size, read, written))
        return memory

    def unbind(self, buffer: Any) -> None:
        self.events.append(("unbind", buffer.size))


def record(name: str = "fake:0", **fields: Any) -> DeviceRecord:
    fields = {"limits": LIMITS, "facts": FACTS, **fields}
    return DeviceRecord(name, "fake", "jit", f"the device {name}", (("driver", "1"),), **fields)


class FakeBackend:
    name = "fake"

    def drivers(self) -> Sequence[FakeDriver]:
        return (FakeDriver(record("fake:0")), FakeDriver(record("fake:1")))


backend = FakeBackend()


@pytest.fixture
def fake_device(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The device fake:0, which launches go to while the test runs."""
    monkeypatch.setattr(registry, "FIRST_PARTY", {"fake": __name__})
    monkeypatch.setattr(registry, "entry_points", lambda group: ())
    monkeypatch.delenv("SAREK_DEVICE", raising=False)
    monkeypatch.delenv("SAREK_DISABLE", raising=False)
    registry.forget_backends()
    with registry.use_device("fake:0") as device:
        yield device
    registry.forget_backends()
