"""The verdict on what a kernel needs, and the text of a refusal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from sarek_numba.capability import (
    FEATURES,
    PROMISES,
    Basis,
    Capability,
    CapabilityKind,
    CoopmatRule,
    Fact,
    Judgement,
    Probe,
    Shortfall,
    Verdict,
    capability_of,
    check,
    judge,
    refuse,
    to_emulate,
    without_verdicts,
)
from sarek_numba.capability.model import NOTHING_KNOWN
from sarek_numba.errors import CapabilityError
from sarek_numba.ir.needs import Need
from sarek_numba.ir.nodes import AtomicOp, CoopmatConfig
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.runtime.registry import devices
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
        "  device optional: devices of the backend 'fake' may or may not\n"
        "  measured: the device's list of extensions has no fp64\n"
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
        "  device optional: devices of the backend 'fake' may or may not\n"
        "  unknown: nothing is known of it on this device\n"
        "  hint: use another type or operation, or launch on another device, such as 'native'"
    )


def test_fact_of_verdict_unknown_refuses() -> None:
    """So does a fact that says that nothing could be found out."""
    fact = Fact(Verdict.UNKNOWN, CapabilityKind.TOOLCHAIN, "the probe did not compile")
    facts = {**FACTS, Capability("barrier"): fact}
    [refusal] = check("k", [Need("barrier")], record(facts=facts))
    assert str(refusal) == (
        "kernel 'k' needs block barriers, which device 'fake:0' is not known to have\n"
        "  host toolchain: a program of this machine is missing or too old, not the device\n"
        "  quoted: the probe did not compile\n"
        "  hint: split the kernel in two, or launch on another device, such as 'native'"
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


# --- kinds, bases, remedies -----------------------------------------------------------------------


def _refusal(fact: Fact, need: Need = FLOAT64, **fields: object) -> str:
    facts = {**FACTS, capability_of(need): fact}
    [refusal] = check("k", [need], record(facts=facts, **fields))
    return str(refusal)


def test_each_kind_has_an_explanation_of_its_own() -> None:
    """It stands behind the kind in the text of a refusal."""
    texts = {
        kind: _refusal(Fact(Verdict.UNAVAILABLE, kind, "measured: no")) for kind in CapabilityKind
    }
    explained = {text.splitlines()[1] for text in texts.values()}
    assert len(explained) == len(CapabilityKind)
    for kind, text in texts.items():
        assert text.splitlines()[1] == f"  {kind.value}: {kind.explanation('fake')}"


@pytest.mark.parametrize(
    ("evidence", "basis", "line"),
    [
        ("measured: 3 of 4 differ", Basis.MEASURED, "measured: 3 of 4 differ"),
        ("by construction: no such type", Basis.CONSTRUCTION, "by construction: no such type"),
        ("OpenCL 1.2, section 6.1", Basis.QUOTED, "quoted: OpenCL 1.2, section 6.1"),
        (NOTHING_KNOWN, None, f"unknown: {NOTHING_KNOWN}"),
    ],
)
def test_evidence_shows_its_basis(evidence: str, basis: Basis | None, line: str) -> None:
    """Measured, quoted with its source, by construction, or that nothing is known."""
    fact = Fact(Verdict.UNAVAILABLE, CapabilityKind.OPTIONAL, evidence)
    assert fact.basis is basis
    assert _refusal(fact).splitlines()[2] == f"  {line}"


def test_remedy_of_the_fact_goes_before_that_of_the_feature() -> None:
    """There always is one."""
    own = Fact(Verdict.UNAVAILABLE, CapabilityKind.TOOLCHAIN, "no NVRTC", "install it")
    assert _refusal(own).endswith("\n  hint: install it")
    assert _refusal(replace(own, remedy=None)).endswith(f"  hint: {FEATURES['arithmetic'].remedy}")


def test_every_feature_has_words_a_remedy_and_its_fields() -> None:
    """The table is total: words use each field that a feature names, and no others."""
    for name, feature in FEATURES.items():
        places = {field for _, field, _, _ in Formatter().parse(feature.words) if field}
        assert places == set(feature.fields), name
        assert feature.remedy
        assert feature.coarser is None or feature.coarser in FEATURES
    assert set(PROMISES) >= {"division", "square_root", "fma", "conversion", "contraction"}


def test_every_present_record_names_its_evidence() -> None:
    """No fact of a device present is without a source or names a feature that does not exist."""
    for device in devices():
        for capability, fact in device.record.facts.items():
            feature = FEATURES[capability.feature]
            assert fact.evidence.strip(), capability
            assert fact.basis is not None, capability
            given = {one for one in _FIELDS if getattr(capability, one) is not None}
            optional = {"configuration"}  # a record may say that there are no matrices at all
            assert given - optional == set(feature.fields) - optional, capability


_FIELDS = ("scalar", "op", "space", "function", "target", "configuration")


# --- finer capabilities ---------------------------------------------------------------------------

EXP = Need("function", Scalar.FLOAT64, function="exp")
NO = Fact(Verdict.UNAVAILABLE, CapabilityKind.STRUCTURAL, "GLSL.std.450: Exp takes 16 or 32 bits")
YES = Fact(Verdict.AVAILABLE, CapabilityKind.OPTIONAL, "by construction")


def test_function_stands_on_its_arithmetic_until_the_record_says_no() -> None:
    """A record names the functions that are missing, and no others."""
    facts = {**FACTS, Capability("arithmetic", Scalar.FLOAT64): YES}
    assert check("k", [FLOAT64, EXP], record(facts=facts)) == []
    facts[capability_of(EXP)] = NO
    [refusal] = check("k", [FLOAT64, EXP], record(facts=facts))
    assert str(refusal).startswith("kernel 'k' needs exp of float64, which device 'fake:0' does")
    assert check("k", [replace(EXP, function="log")], record(facts=facts)) == []


def test_what_the_coarser_refusal_says_is_said_once() -> None:
    """Without float64 nothing is said of its functions."""
    assert [r.need for r in check("k", [FLOAT64, EXP], record())] == [FLOAT64]


def test_wide_indices_stand_on_int64() -> None:
    """Until the record says something else."""
    wide = Need("wide_index")
    assert check("k", [wide], record()) == []
    facts = {**FACTS, Capability("arithmetic", Scalar.INT64): NO}
    [refusal] = check("k", [wide], record(facts=facts))
    assert "needs 64-bit indices, which device" in str(refusal)


# --- cooperative matrices -------------------------------------------------------------------------

BYTES = CoopmatConfig(16, 16, 32, Scalar.INT8, Scalar.INT8, Scalar.INT32, Scalar.INT32)
FLOATS = CoopmatConfig(16, 16, 16, *[Scalar.FLOAT16] * 2, *[Scalar.FLOAT32] * 2)
MATRICES = [Need("coopmat"), Need("coopmat", configuration=BYTES)]


def test_matrices_that_nobody_asked_for_are_refused() -> None:
    """None is not an empty list: it is not known."""
    [refusal] = check("k", MATRICES, record())
    assert str(refusal).startswith(
        "kernel 'k' needs cooperative matrices, which device 'fake:0' is not known to have"
    )


def test_matrices_by_the_list_of_the_device() -> None:
    """Exactly the configurations that it lists."""
    assert check("k", MATRICES, record(coopmat=(BYTES,))) == []
    other = [Need("coopmat"), Need("coopmat", configuration=FLOATS)]
    [refusal] = check("k", other, record(coopmat=(BYTES,)))
    assert str(refusal).startswith(
        "kernel 'k' needs cooperative matrices 16x16x16 float16 * float16 + float32 -> float32, "
        "which device 'fake:0' does not have\n"
    )
    assert "measured: the device lists int8 * int8" in str(refusal)
    [refusal] = check("k", MATRICES, record(coopmat=()))
    assert refusal.need == MATRICES[0]


def test_matrices_by_a_rule_whose_refusal_is_a_policy() -> None:
    """A device that computes them itself takes any of integers; floats are a matter of policy."""
    refused = Fact(
        Verdict.UNAVAILABLE,
        CapabilityKind.POLICY,
        "by construction: sums of floats depend on their order",
        "grant it with sarek.accept.relaxed_accumulation",
    )
    rule = CoopmatRule("any shape of integers", lambda c: not c.a.is_float, refused)
    assert check("k", MATRICES, record(coopmat=rule)) == []
    other = [Need("coopmat"), Need("coopmat", configuration=FLOATS)]
    [refusal] = check("k", other, record(coopmat=rule))
    assert f"  policy: {CapabilityKind.POLICY.explanation('fake')}" in str(refusal)
    assert str(refusal).endswith("hint: grant it with sarek.accept.relaxed_accumulation")


# --- promises about numbers -----------------------------------------------------------------------


def _measured(feature: str, wrong: int, **fields: Any) -> dict[Capability, Probe]:
    probe = Probe(100, wrong, "1 / 3 is 0.33" if wrong else "")
    return {Capability(feature, Scalar.FLOAT32, **fields): probe}


def _judged(feature: str, wrong: int = 1, **options: Any) -> str:
    """The one place where the need is found: "refusals", "declared", …, or "kept"."""
    judged = judge(
        "k",
        [Need(feature, Scalar.FLOAT32)],
        record(measured=_measured(feature, wrong)),
        **options,
    )
    places = [
        one for one in ("refusals", "declared", "emulated", "granted") if getattr(judged, one)
    ]
    return places[0] if places else "kept"


@pytest.mark.parametrize("feature", [f for f in PROMISES if f != "conversion"])
def test_promise_that_is_kept_or_of_which_nothing_is_said(feature: str) -> None:
    """It is the arithmetic's, which is a need of its own."""
    assert _judged(feature, wrong=0) == "kept"
    need = [Need(feature, Scalar.FLOAT32)]
    assert judge("k", need, record(facts={})) == Judgement()


@pytest.mark.parametrize("feature", [f for f in PROMISES if f != "conversion"])
def test_promise_that_is_broken(feature: str) -> None:
    """Declared, emulated where the backend can, else refused; a grant gives some up."""
    row = FEATURES[feature]
    expected = "declared" if row.shortfall is Shortfall.DECLARED else "refusals"
    assert _judged(feature) == expected
    emulated = "emulated" if row.shortfall is Shortfall.EMULATED else expected
    assert _judged(feature, emulates={feature}) == emulated
    assert _judged(feature, fastmath=True) == ("granted" if row.granted else expected)


def test_text_of_a_broken_promise() -> None:
    """What was measured is the evidence."""
    [refusal] = check(
        "k", [Need("division", Scalar.FLOAT32)], record(measured=_measured("division", 7))
    )
    assert str(refusal) == (
        "kernel 'k' needs correctly rounded float32 division, "
        "which device 'fake:0' does not have\n"
        "  device optional: devices of the backend 'fake' may or may not\n"
        "  measured: 7 of 100 results are wrong, as 1 / 3 is 0.33\n"
        "  hint: grant it with sarek.accept.fastmath, or launch on another device, such as 'native'"
    )


def test_measuring_lifts_what_is_unknown_and_not_what_is_denied() -> None:
    """A sample is better than nothing, and no proof against a statement."""
    division = Capability("division", Scalar.FLOAT32)
    need = [Need("division", Scalar.FLOAT32)]
    unknown = Fact(Verdict.UNKNOWN, CapabilityKind.OPTIONAL, "not advertised")
    exact = _measured("division", 0)
    assert check("k", need, record(facts={division: unknown}))
    assert not check("k", need, record(facts={division: unknown}, measured=exact))
    assert check("k", need, record(facts={division: NO}, measured=exact))


def test_backends_are_told_what_to_emulate() -> None:
    """What is stated or measured to be inexact, or not known, unless it is granted."""
    division = Capability("division", Scalar.FLOAT32)
    root = Capability("square_root", Scalar.FLOAT32)
    unknown = Fact(Verdict.UNKNOWN, CapabilityKind.OPTIONAL, "Vulkan 1.3, 2.5 ULP allowed")
    facts = {**FACTS, root: unknown, Capability("subnormal_results", Scalar.FLOAT32): NO}
    made = record(facts=facts, measured=_measured("division", 3))
    assert to_emulate(made) == {division, root}
    assert to_emulate(made, fastmath=True) == frozenset()
    assert to_emulate(record()) == frozenset()


def test_measured_devices_forget_for_measuring() -> None:
    """Unknown facts of the features in question count as available, nothing else does."""
    single = Capability("arithmetic", Scalar.FLOAT32)
    unknown = Fact(Verdict.UNKNOWN, CapabilityKind.OPTIONAL, "not advertised")
    made = record(facts={**FACTS, single: unknown}, measured=_measured("division", 3))
    lifted = without_verdicts(made, {"arithmetic"})
    assert lifted.facts[single].verdict is Verdict.AVAILABLE
    assert lifted.facts[Capability("arithmetic", Scalar.FLOAT64)].verdict is Verdict.UNAVAILABLE
    assert not lifted.measured
