"""The verdict on what a kernel needs, and the text of a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from sarek_numba.capability import Capability, CapabilityKind, Fact, Verdict, check, refuse
from sarek_numba.errors import CapabilityError
from sarek_numba.ir.needs import Need
from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.span import Span
from tests.unit.fake_backend import FACTS, record

FLOAT64 = Need("arithmetic", Scalar.FLOAT64)
ATOMIC_MAX = Need("atomic", Scalar.FLOAT32, AtomicOp.MAX, MemSpace.SHARED)


def test_available_needs_are_not_refused() -> None:
    """Nothing is raised for a kernel that the device can run."""
    needs = [Need("storage", Scalar.INT8), Need("barrier"), Need("arithmetic", Scalar.INT64)]
    refusals = check("k", needs, record())
    assert refusals == []
    refuse(refusals)


def test_refusal_names_everything(tmp_path: Path) -> None:
    """Place, kernel, capability, device, kind, evidence and remedy, with the line."""
    source = tmp_path / "kernels.py"
    source.write_text("def k(x):\n    x[0] = x[1] * 2.0\n")
    need = Need("arithmetic", Scalar.FLOAT64, span=Span(str(source), 2, 11, 2, 21))
    with pytest.raises(CapabilityError) as error:
        refuse(check("k", [need], record()))
    assert str(error.value) == (
        f"{source}:2:12: kernel 'k' needs float64 arithmetic, "
        "which device 'fake:0' does not have\n"
        "  2 |     x[0] = x[1] * 2.0\n"
        "    |            ^^^^^^^^^^\n"
        "  device optional: measured: the device's list of extensions has no fp64\n"
        "  hint: use float32, or launch on another device"
    )
    assert isinstance(error.value, NotImplementedError)


def test_unknown_refuses() -> None:
    """A capability without a fact is as good as missing, and the text says that it is unknown."""
    with pytest.raises(CapabilityError) as error:
        refuse(check("k", [ATOMIC_MAX], record()))
    assert str(error.value) == (
        "kernel 'k' needs atomic max on float32 in shared memory, "
        "which device 'fake:0' is not known to have\n"
        "  device optional: nothing is known of it on this device"
    )


def test_fact_of_verdict_unknown_refuses() -> None:
    """So does a fact that says that nothing could be found out."""
    fact = Fact(Verdict.UNKNOWN, CapabilityKind.TOOLCHAIN, "the probe did not compile")
    facts = {**FACTS, Capability("barrier"): fact}
    [refusal] = check("k", [Need("barrier")], record(facts=facts))
    assert str(refusal) == (
        "kernel 'k' needs block barriers, which device 'fake:0' is not known to have\n"
        "  host toolchain: the probe did not compile"
    )


def test_every_need_is_reported_at_once() -> None:
    """All refusals of a launch make one error, which holds each."""
    needs = [FLOAT64, Need("barrier"), ATOMIC_MAX]
    with pytest.raises(CapabilityError) as error:
        refuse(check("k", needs, record()))
    assert [r.need for r in error.value.verdicts] == [FLOAT64, ATOMIC_MAX]  # type: ignore[attr-defined]


def test_memory_space_and_operation_count() -> None:
    """An atomic in one space says nothing of another."""
    add = Need("atomic", Scalar.INT32, AtomicOp.ADD, MemSpace.GLOBAL)
    assert check("k", [add], record()) == []
    assert check("k", [Need("atomic", Scalar.INT32, AtomicOp.ADD, MemSpace.SHARED)], record())
    assert check("k", [Need("atomic", Scalar.INT32, AtomicOp.CAS, MemSpace.GLOBAL)], record())
