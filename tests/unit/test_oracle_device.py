"""The interpreter as a device, and `sarek.sanitize` on top of it, with IR made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sarek_numba.capability import Capability, Verdict, fact_of
from sarek_numba.errors import CapabilityError, OutOfBounds
from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import AtomicOp, Kernel
from sarek_numba.ir.types import FLOAT32, INT32, INT64, MemSpace, Scalar
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime.arguments import describe
from sarek_numba.runtime.registry import Device, device
from sarek_numba.verify.sanitize import sanitize
from tests.unit.oracle_kit import Builder, gid


@pytest.fixture
def interpreter() -> Device:
    return device("interpreter")


def shifted_copy(shift: int) -> Kernel:
    k = Builder("copy")
    out, src = k.array("out"), k.array("src")
    index = b.subscript(src, 0, b.add(gid(), b.const_int(shift)), b.const_int(8))
    return k.kernel(b.store(out, gid(), b.read(src, index)))


class HandMade:
    """IR behind the face of a kernel: what `sanitize` needs of one."""

    def __init__(self, kernel: Kernel) -> None:
        self.analysed = launching.analyse(kernel, [p.var.name for p in kernel.params])

    def launch(
        self, *given: Any, grid: Any, block: Any, device: Device, stream: Any, shared_bytes: int
    ) -> None:
        names = self.analysed.names
        arguments = describe("copy", names, list(given), [None] * len(names))
        launching.check(device, self.analysed, arguments, shared_bytes)
        launching.launch(
            device, self.analysed, arguments, (grid, 1, 1), (block, 1, 1), shared_bytes
        )


def test_the_record_is_that_of_the_oracle(interpreter: Device) -> None:
    record = interpreter.record
    assert (record.name, record.backend, record.model) == ("interpreter", "interpreter", "custom")
    limits = record.limits
    assert limits.threads_per_block == 1024
    assert limits.block == (1024, 1024, 64)
    assert limits.grid == (2**31 - 1, 65_535, 65_535)
    assert limits.shared_bytes == 65_536
    assert interpreter.driver.target is None


def test_everything_of_this_version_is_available(interpreter: Device) -> None:
    wanted = [Capability("storage", Scalar.FLOAT64), Capability("arithmetic", Scalar.INT8)]
    wanted += [Capability("barrier"), Capability("shared"), Capability("dynamic_shared")]
    wanted += [
        Capability("atomic", scalar, op, space)
        for scalar in (INT32, Scalar.UINT32, FLOAT32)
        for op in (AtomicOp.LOAD, AtomicOp.CAS, AtomicOp.ADD)
        for space in (MemSpace.GLOBAL, MemSpace.SHARED)
    ]
    for capability in wanted:
        assert fact_of(capability, interpreter.record).verdict is Verdict.AVAILABLE, capability


def test_a_launch_writes_the_callers_array(interpreter: Device) -> None:
    kernel = HandMade(shifted_copy(0))
    out, src = np.zeros(8, np.int32), np.arange(8, dtype=np.int32)
    kernel.launch(out, src, grid=2, block=4, device=interpreter, stream=None, shared_bytes=0)
    assert out.tolist() == src.tolist()


def test_a_launch_raises_what_it_finds(interpreter: Device) -> None:
    kernel = HandMade(shifted_copy(1))
    out, src = np.zeros(8, np.int32), np.arange(8, dtype=np.int32)
    with pytest.raises(OutOfBounds, match="index 8 is out of range"):
        kernel.launch(out, src, grid=2, block=4, device=interpreter, stream=None, shared_bytes=0)
    assert out.tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


def test_sanitize_gives_the_report() -> None:
    out, src = np.zeros(8, np.int32), np.arange(8, dtype=np.int32)
    report = sanitize(HandMade(shifted_copy(1)))[2, 4](out, src)
    assert [finding.error for finding in report.findings] == [OutOfBounds]
    assert report.kernel == "copy"
    assert report.threads == 8
    assert sanitize(HandMade(shifted_copy(0)))[2, 4](out, src)
    assert out.tolist() == src.tolist()


def test_sanitize_passes_its_options_on() -> None:
    k = Builder("same")
    out = k.array("out")
    kernel = HandMade(k.kernel(b.store(out, 0, b.floordiv(b.lit(INT32, 7), b.read(out, 1)))))
    data = np.zeros(2, np.int32)
    assert sanitize(kernel)[1, 4](data).findings == ()
    strict = sanitize(kernel, races="strict", checks=["division"], seed=5)[1, 4](data)
    names = [finding.error.__name__ for finding in strict.findings]
    assert names == ["ArithmeticFault", "DataRace"]
    assert strict.seed == 5


def test_sanitize_takes_dynamic_shared_memory() -> None:
    k = Builder("dynamic")
    s = k.shared("s", None)
    kernel = HandMade(k.kernel(b.store(s, b.coordinate("thread_idx"), 1)))
    assert sanitize(kernel)[1, 4, None, 16]()
    assert not sanitize(kernel)[1, 4, None, 12]()


def test_the_seed_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAREK_SEED", "7")
    out, src = np.zeros(8, np.int32), np.arange(8, dtype=np.int32)
    assert sanitize(HandMade(shifted_copy(0)))[2, 4](out, src).seed == 7


def test_a_refusal_is_raised_as_ever() -> None:
    """What the device lacks refuses before anything runs."""
    k = Builder("count")
    out = k.array("out", Scalar.UINT8)
    kernel = HandMade(k.kernel(b.atomic("add", out, 0, 1)))
    with pytest.raises(CapabilityError, match="atomic add"):
        sanitize(kernel)[1, 1](np.zeros(1, np.uint8))


def test_source_is_the_ir(interpreter: Device) -> None:
    assert "copy" in interpreter.driver.source(shifted_copy(0))
    program = interpreter.driver.prepare(shifted_copy(0))
    assert [param.var.name for param in program.params] == ["out", "src"]
    assert program.static_shared_bytes == 0


def test_static_shared_bytes_are_those_of_the_kernel(interpreter: Device) -> None:
    k = Builder()
    k.shared("s", 10, INT64)
    k.shared("t", 3, Scalar.UINT8)
    k.shared("u", None, FLOAT32)
    assert interpreter.driver.prepare(k.kernel()).static_shared_bytes == 83
