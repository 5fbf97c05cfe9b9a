"""What the record of an OpenCL device says of numbers on a driver that nobody measured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sarek_numba.capability import Capability, Probe, Verdict, check
from sarek_numba.ir.needs import Need
from sarek_numba.ir.types import Scalar
from tests.unit.fake_backend import record

cl = pytest.importorskip("pyopencl")
opencl = pytest.importorskip("sarek_opencl.record")

SUM = Need("arithmetic", Scalar.FLOAT32)
QUOTIENT = Need("division", Scalar.FLOAT32)


def _facts(flags: int, platform: str = "Somebody's OpenCL") -> Any:
    device = SimpleNamespace(
        platform=SimpleNamespace(name=platform),
        type=cl.device_type.GPU,
        single_fp_config=flags,
        double_fp_config=0,
        extensions="",
        address_bits=64,
    )
    return opencl._facts(device)


def _refused(facts: Any, **fields: Any) -> list[str]:
    made = check("k", [SUM, QUOTIENT], record(facts=facts, **fields))
    return [refusal.need.feature for refusal in made]


def test_unmeasured_division_is_refused_until_it_is_measured() -> None:
    """Sums are specified; quotients only where the device advertises them, or the doctor saw."""
    facts = _facts(0)
    assert _refused(facts) == ["division"]
    exact = {Capability("division", Scalar.FLOAT32): Probe(1000, 0)}
    assert _refused(facts, measured=exact) == []
    inexact = {Capability("division", Scalar.FLOAT32): Probe(1000, 1, "x")}
    assert _refused(facts, measured=inexact) == ["division"]


def test_advertised_division_is_believed() -> None:
    """CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT."""
    assert _refused(_facts(cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT)) == []


@pytest.mark.parametrize(
    ("flag", "verdict"), [("DENORM", Verdict.AVAILABLE), ("INF_NAN", Verdict.UNAVAILABLE)]
)
def test_subnormals_are_as_advertised(flag: str, verdict: Verdict) -> None:
    """CL_FP_DENORM, for operands and results."""
    facts = _facts(int(getattr(cl.device_fp_config, flag)))
    for feature in ("subnormal_inputs", "subnormal_results"):
        assert facts[Capability(feature, Scalar.FLOAT32)].verdict is verdict


def test_measured_drivers_say_nothing_beside_their_arithmetic() -> None:
    """It is measured as a whole."""
    facts = _facts(0, "Portable Computing Language")
    assert Capability("division", Scalar.FLOAT32) not in facts
    assert _refused(facts) == []
