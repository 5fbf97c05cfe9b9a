"""The decision on each kind of device, with devices that are records alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import matrix_kernels  # noqa: F401  # has examples
import matrix_sums  # noqa: F401  # has examples
import numpy as np
import pytest
from matrix_examples import kernel
from matrix_kit import facts

from sarek_numba import accept, policy
from sarek_numba.capability import DeviceRecord, Limits
from sarek_numba.ir.nodes import CoopmatConfig, Kernel
from sarek_numba.ir.types import Scalar
from sarek_numba.matrix import choose as choosing
from sarek_numba.matrix import kinds, testing
from sarek_numba.matrix.choose import Plan, choose
from sarek_numba.matrix.kinds import RULES, When
from sarek_numba.matrix.lowering import Lowering, evidence_for, lowering_for
from sarek_numba.matrix.product import Case
from sarek_numba.policy import Budget, Granted, Proof
from sarek_numba.runtime.outcome import Original

f32 = np.float32
ACCUMULATION = accept.relaxed_accumulation("a test")
AUTOMATIC = accept.automatic_float_rewrite("a test")
FLOAT16 = accept.operand_rounding("float16", "a test")
BFLOAT16 = accept.operand_rounding("bfloat16", "a test")
TF32 = accept.operand_rounding("tf32", "a test")
SPLIT = accept.operand_rounding("bf16x3", "a test")
EVERYTHING = (ACCUMULATION, AUTOMATIC, FLOAT16)

_COMPONENTS = [Scalar.INT8, Scalar.UINT8, Scalar.FLOAT16, Scalar.BFLOAT16, Scalar.FLOAT32]
CONFIGURATIONS = tuple(
    CoopmatConfig(edge, edge, edge, one, one, total, total)
    for edge in (8, 16)
    for one in _COMPONENTS
    for total in [Scalar.INT32 if one.is_integer else Scalar.FLOAT32]
)
LIMITS = Limits(1024, (1024, 1024, 64), (2**31 - 1, 65535, 65535), 49152, 1 << 30)


@dataclass
class FakeDevice:
    record: DeviceRecord


def fake(backend: str, description: str = "", coopmat: Any = CONFIGURATIONS) -> FakeDevice:
    name = f"{backend}:fake"
    return FakeDevice(DeviceRecord(name, backend, "jit", description, (), LIMITS, coopmat=coopmat))


CASES = {
    Case.INT8: ("int8_to_int32", np.int8, np.int32),
    Case.INT32: ("int32_wraps", np.int32, np.int32),
    Case.FLOAT16: ("float16_to_float32", np.float16, f32),
    Case.FLOAT32: ("guarded", f32, f32),
}


def launched(case: Case, size: int = 8) -> tuple[Kernel, Any]:
    """The kernel of a case, and what tells the facts of a launch of it."""
    name, operand, result = CASES[case]
    args = [np.zeros((size, size), kind) for kind in (result, operand, operand)]
    ir: Kernel = kernel(name).ir(*args)
    return ir, lambda: facts(ir, args, (size, size), (1, 1))


def chosen(device: FakeDevice, case: Case = Case.FLOAT32, **options: Any) -> Any:
    ir, launch = launched(case)
    return choose(device=device, ir=ir, launch=launch, **options)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("SAREK_OPT_DISABLE", raising=False)
    policy.clear_report()
    yield
    policy.clear_report()


def test_the_table_is_total() -> None:
    """Each kind of device has a rule for each case."""
    assert all(set(rules) == set(Case) for rules in RULES.values())
    assert set(RULES) == {"cuda", "vulkan", "hip", "metal", "interpreter", "native"}


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("backend", sorted(RULES))
def test_an_explicit_request(backend: str, case: Case) -> None:
    """With all consent it is a plan on every kind of device that can, and named where it cannot."""
    found = chosen(fake(backend), case, explicit=True, grants=EVERYTHING)
    if RULES[backend][case] is When.NEVER:
        assert isinstance(found, Original)
        assert backend in found.reason
    else:
        assert isinstance(found, Plan)
        assert found.lowering.case is case
        assert found.config.m == 16


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("backend", sorted(RULES))
def test_an_automatic_rewrite(backend: str, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the table: where measured, where quoted, else only when asked for."""
    rule = RULES[backend][case]
    without = chosen(fake(backend, "a model"), case, grants=EVERYTHING)
    assert isinstance(without, Plan) is (rule is When.QUOTED)
    monkeypatch.setitem(kinds.MEASURED, (backend, "a model", case), 8**3)
    measured = chosen(fake(backend, "a model"), case, grants=EVERYTHING)
    assert isinstance(measured, Plan) is (rule in (When.QUOTED, When.MEASURED))
    monkeypatch.setitem(kinds.MEASURED, (backend, "a model", case), 8**3 + 1)
    slower = chosen(fake(backend, "a model"), case, grants=EVERYTHING)
    assert isinstance(slower, Plan) is (rule is When.QUOTED)


def test_gfx11_is_automatic_and_other_targets_are_not() -> None:
    """As quoted; the architecture stands in the device's description."""
    assert isinstance(chosen(fake("hip", "A (HIP 6, gfx1100)"), Case.INT8), Plan)
    found = chosen(fake("hip", "B (HIP 6, gfx942)"), Case.INT8)
    assert isinstance(found, Original)
    assert "gfx11" in found.reason


@pytest.mark.parametrize("backend", ["opencl", "someone's"])
def test_other_backends_are_declined_before_any_analysis(backend: str) -> None:
    """Nothing is looked at and nothing recorded."""
    ir, _ = launched(Case.FLOAT32)
    with testing.fail_analysis():
        found = choose(device=fake(backend), ir=ir, launch=unasked, explicit=True)
    assert isinstance(found, Original)
    assert backend in found.reason
    assert not policy.report()


def unasked() -> Any:
    raise AssertionError("nobody needs the facts of this launch")


@pytest.mark.parametrize(
    ("grants", "explicit", "missing"),
    [
        ((), True, "operand_rounding to float16, bfloat16 or tf32"),
        ((FLOAT16,), True, "relaxed_accumulation"),
        ((ACCUMULATION,), True, "operand_rounding"),
        ((FLOAT16, ACCUMULATION), False, "automatic_float_rewrite"),
        ((SPLIT, ACCUMULATION), True, "bf16x3"),
    ],
)
def test_a_missing_consent_is_named(grants: Any, explicit: bool, missing: str) -> None:
    """And recorded, once, without a look at the launch."""
    ir, _ = launched(Case.FLOAT32)
    for _ in range(2):
        found = choose(device=fake("cuda"), ir=ir, launch=unasked, explicit=explicit, grants=grants)
        assert isinstance(found, Original)
        assert missing in found.reason
    assert [str(one.outcome) for one in policy.report()] == [f"not applied: {found.reason}"]
    assert policy.report()[0].optimisation == "matrix_rewrite"


def test_a_revoked_grant_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own name, by that of the optimisation, and by `all`."""
    device = fake("cuda")
    assert isinstance(chosen(device, explicit=True, grants=EVERYTHING), Plan)
    for word in ("relaxed_accumulation", "matrix_rewrite", "all"):
        monkeypatch.setenv("SAREK_OPT_DISABLE", word)
        found = chosen(device, explicit=True, grants=EVERYTHING)
        assert isinstance(found, Original)
        assert "SAREK_OPT_DISABLE" in found.reason
    monkeypatch.setenv("SAREK_OPT_DISABLE", "fusion")
    assert isinstance(chosen(device, explicit=True, grants=EVERYTHING), Plan)


@pytest.mark.parametrize(
    ("grants", "precision", "rounding"),
    [
        ((FLOAT16, BFLOAT16), None, "float16"),
        ((BFLOAT16, FLOAT16), None, "float16"),
        ((BFLOAT16,), None, "bfloat16"),
        ((TF32, BFLOAT16), None, "bfloat16"),
        ((TF32,), None, "tf32"),
        ((FLOAT16, SPLIT), "bf16x3", "bf16x3"),
        ((FLOAT16, BFLOAT16), "bfloat16", "bfloat16"),
    ],
)
def test_the_rounding_of_float32(grants: Any, precision: str | None, rounding: str) -> None:
    """float16, then bfloat16, whichever is granted; another one only by name."""
    found = lowering_for(
        budget=Budget(grants), explicit=True, case=Case.FLOAT32, precision=precision
    )
    assert isinstance(found, Lowering)
    assert found.rounding == rounding


def test_a_precision_that_is_not_granted() -> None:
    """It is named: a request is no grant."""
    found = lowering_for(
        budget=Budget((FLOAT16,)), explicit=True, case=Case.FLOAT32, precision="bfloat16"
    )
    assert isinstance(found, str)
    assert "to bfloat16" in found


def test_tf32_is_for_cuda() -> None:
    """Other devices have none."""
    grants = (ACCUMULATION, TF32)
    assert isinstance(chosen(fake("cuda"), explicit=True, grants=grants), Plan)
    found = chosen(fake("vulkan"), explicit=True, grants=grants)
    assert isinstance(found, Original)
    assert "tf32" in found.reason


def test_integers_need_no_consent() -> None:
    """Their evidence is a proof."""
    plan = chosen(fake("cuda"), Case.INT8, explicit=True)
    assert isinstance(plan, Plan)
    evidence = evidence_for(
        budget=plan.budget,
        explicit=True,
        lowering=plan.lowering,
        variant="Staged",
        config=plan.config,
    )
    assert isinstance(evidence, Proof)
    assert evidence.text.endswith("int8, summed in int32, Staged, 16x16x16 int8 to int32")


def test_evidence_of_floats() -> None:
    """The grants that were needed, each once; the automatic one only where it was."""
    plan = chosen(fake("cuda"), explicit=True, grants=(*EVERYTHING, ACCUMULATION))
    assert isinstance(plan, Plan)
    for explicit, expected in (
        (True, (ACCUMULATION, FLOAT16)),
        (False, (AUTOMATIC, ACCUMULATION, FLOAT16)),
    ):
        evidence = evidence_for(
            budget=plan.budget,
            explicit=explicit,
            lowering=plan.lowering,
            variant="Staged",
            config=plan.config,
        )
        assert isinstance(evidence, Granted)
        assert evidence.grants == expected


def test_a_device_without_a_configuration() -> None:
    """It is named, and what it would have needed."""
    found = chosen(fake("cuda", coopmat=None), Case.INT8, explicit=True)
    assert isinstance(found, Original)
    assert "no cooperative matrices" in found.reason
    found = chosen(fake("cuda", coopmat=CONFIGURATIONS[2:3]), Case.INT8, explicit=True)
    assert isinstance(found, Original)
    assert "int8 to int32" in found.reason


def test_a_launch_that_nothing_is_known_of() -> None:
    """It runs as it was given."""
    ir, _ = launched(Case.INT8)
    found = choose(device=fake("cuda"), ir=ir, launch=lambda: None, explicit=True)
    assert isinstance(found, Original)
    assert "nothing is known" in found.reason


def test_streams_of_the_interpreter() -> None:
    """It has none to run a rewrite on."""
    assert isinstance(chosen(fake("interpreter"), Case.INT8, explicit=True), Plan)
    found = chosen(fake("interpreter"), Case.INT8, explicit=True, stream=True)
    assert isinstance(found, Original)
    assert "stream" in found.reason


def test_a_fault_in_the_analysis() -> None:
    """The original runs, and the record says why; later launches try again."""
    choosing._found.clear()
    choosing._recent.clear()
    with testing.fail_analysis():
        found = chosen(fake("cuda"), Case.INT8, explicit=True)
    assert isinstance(found, Original)
    assert "the analysis failed" in found.reason
    assert "the analysis failed" in str(policy.report()[-1])
    assert isinstance(chosen(fake("cuda"), Case.INT8, explicit=True), Plan)


def test_a_fault_in_the_facts() -> None:
    """A launch that cannot tell of itself runs as it was given."""
    ir, _ = launched(Case.INT8)
    found = choose(device=fake("cuda"), ir=ir, launch=unasked, explicit=True)
    assert isinstance(found, Original)
    assert "AssertionError" in found.reason


def test_a_kernel_without_a_product_costs_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second launch on nothing is hashed, analysed or recorded."""
    from matrix_others import OTHERS

    ir = next(one for one in OTHERS if one.name == "no_sum").kernel.ir(np.zeros((4, 4), f32))
    assert isinstance(choose(device=fake("cuda"), ir=ir, launch=unasked), Original)
    monkeypatch.setattr(choosing, "content_hash", unasked)
    monkeypatch.setattr(choosing, "recognise", unasked)
    assert isinstance(choose(device=fake("cuda"), ir=ir, launch=unasked), Original)
    assert not policy.report()


def test_a_product_that_is_none_is_recorded() -> None:
    """With the user's line: whoever wrote the loop learns why it stays."""
    from matrix_others import OTHERS

    tiled = next(one for one in OTHERS if one.name == "tiled")
    ir = tiled.kernel.ir(*(np.zeros((4, 4), f32) for _ in range(3)))
    choose(device=fake("cuda"), ir=ir, launch=unasked)
    (record,) = policy.report()
    assert "tiled by hand" in str(record)
    assert "matrix_others.py:" in str(record)


def test_the_hooks_are_reset() -> None:
    """Contexts for tests: their values, and values that are none."""
    with testing.subgroup_width(64), testing.fragment_edge(8):
        assert (testing.width.get(), testing.edge.get()) == (64, 8)
    assert (testing.width.get(), testing.edge.get()) == (32, 16)
    for wrong in (testing.subgroup_width(16), testing.fragment_edge(4)):
        with pytest.raises(ValueError, match="not"), wrong:
            pass


def test_launches_of_equal_sizes_are_bound_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their numbers are; whether memory is shared is asked for each."""
    args = [np.zeros((8, 8), np.int32) for _ in range(3)]
    ir = kernel("int32_wraps").ir(*args)
    device = fake("cuda")

    def plan(of: list[Any]) -> Any:
        known = facts(ir, of, (8, 8), (1, 1))
        return choose(device=device, ir=ir, launch=lambda: known, explicit=True)

    first = plan(args)
    assert isinstance(first, Plan)
    monkeypatch.setattr(choosing, "numbers", unasked)
    again = plan(args)
    assert isinstance(again, Plan)
    assert again.bound is first.bound
    shared = plan([args[0], args[0], args[2]])
    assert isinstance(shared, Original)
    assert "share memory" in shared.reason
    monkeypatch.undo()
    smaller = plan([one[:4, :4].copy() for one in args])
    assert isinstance(smaller, Plan)
    assert (smaller.bound.m, smaller.bound.k) == (4, 4)
