"""The self-test of numerics: what it finds, that it can find it, and what becomes of that."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.capability import FEATURES, Capability, Fact, Probe, Shortfall, to_emulate
from sarek_numba.capability.model import CapabilityKind, Verdict
from sarek_numba.codegen.target import Target
from sarek_numba.errors import CapabilityError, DeviationWarning
from sarek_numba.execute import clear_launch_cache, counters, run_vectors
from sarek_numba.ir import build
from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.types import FLOAT32, FLOAT64, INT32, INT64, Scalar
from sarek_numba.runtime import promised
from sarek_numba.runtime.registry import Device, devices
from sarek_numba.verify import operands
from sarek_numba.verify.numerics import (
    FLOAT_PROMISES,
    OPERATIONS,
    converted,
    elementwise,
    measure,
    self_test,
)
from sarek_numba.verify.parity import Outcome, parity
from tests.unit import tampering
from tests.unit.measured_devices import measured
from tests.unit.tampering import tampered

DIVISION = Capability("division", FLOAT32)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    clear_launch_cache()
    promised.forget_declared()
    yield
    promised.forget_declared()


# --- operands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [24, 53])
def test_hard_quotients_lie_next_to_a_middle(bits: int) -> None:
    """Nearer than 2^-(p-4) of the distance of floats; ordinary quotients lie anywhere."""
    for dividend, divisor in operands._quotients(bits, Random(1)):
        quotient = Fraction(dividend) / Fraction(divisor) * 2 ** (bits + 1)
        assert quotient.denominator > 1
        middle = round(quotient)
        assert middle % 2 == 1
        assert middle.bit_length() == bits + 1
        assert abs(quotient - middle) < Fraction(16, 2**bits)


@pytest.mark.parametrize("bits", [24, 53])
def test_hard_roots_lie_next_to_a_middle(bits: int) -> None:
    """The radicand is the square of a middle and a little."""
    found = list(operands._roots(bits))
    assert len(found) >= 400
    for radicand, below in found:
        middle = 2 * int(below) + 1
        assert middle.bit_length() == bits + 1
        assert 0 < middle**2 - int(radicand) < 2**16


def test_tables_are_total() -> None:
    """Every promise about floats has operations, and every operation serves one."""
    floats = {n for n, f in FEATURES.items() if f.shortfall and f.fields == ("scalar",)}
    assert set(FLOAT_PROMISES) == floats - {"integer_division"}
    assert {name for names in FLOAT_PROMISES.values() for name in names} == set(OPERATIONS)


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (float("nan"), INT32, 0),
        (float("inf"), Scalar.UINT64, 2**64 - 1),
        (-1.5, Scalar.UINT32, 0),
        (-2.9, INT64, -2),
        (2.0**31, INT32, 2**31 - 1),
    ],
)
def test_conversion_to_integers(value: float, target: Scalar, expected: int) -> None:
    """Truncated and saturated; NaN gives 0."""
    assert converted(np.array([value]), target).tolist() == [expected]


def test_conversion_to_float_rounds_once() -> None:
    """Through float64 this one would be rounded twice, to the wrong side."""
    value = 2**60 + 2**36 + 1
    [once] = converted(np.array([value], np.int64), FLOAT32)
    assert once == np.float32(2**60 + 2**37)
    assert np.float32(np.float64(value)) == np.float32(2**60)


# --- devices --------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", devices(), ids=lambda d: d.name)
def test_present_devices_break_only_what_is_declared(device: Device) -> None:
    """Everything else is exact, or emulated exactly."""
    found = measured(device.name)
    assert DIVISION in found
    broken = {
        capability: str(probe)
        for capability, probe in found.items()
        if probe.wrong and FEATURES[capability.feature].shortfall is not Shortfall.DECLARED
    }
    assert broken == {}
    assert all(probe.count > 100 for probe in found.values())


@pytest.mark.parametrize("device", devices(), ids=lambda d: d.name)
def test_present_devices_compute_as_the_oracle(device: Device) -> None:
    """Every kernel of the check of `sarek doctor`, or it is refused."""
    for one in parity(device):
        assert not one.outcome.is_fault, one


CONTROLS: list[tuple[tampering.Tamper, Capability]] = [
    (tampering.reciprocal_division, DIVISION),
    (tampering.reciprocal_division, Capability("division", FLOAT64)),
    (tampering.root_by_reciprocal, Capability("square_root", FLOAT32)),
    (tampering.contracting, Capability("contraction", FLOAT64)),
    (tampering.fma_of_two_roundings, Capability("fma", FLOAT32)),
    (tampering.flushing_results, Capability("subnormal_results", FLOAT32)),
    (tampering.flushing_operands, Capability("subnormal_inputs", FLOAT64)),
    (tampering.rounding_to_zero, Capability("rounding", FLOAT64)),
    (tampering.losing_nan, Capability("nan", FLOAT32)),
    (tampering.losing_signs_of_zeros, Capability("signed_zeros", FLOAT64)),
    (tampering.wrapping_conversion, Capability("conversion", FLOAT32, target=INT32)),
    (tampering.rounding_twice, Capability("conversion", INT64, target=FLOAT32)),
    (tampering.truncating_division, Capability("integer_division", INT32)),
]


@pytest.mark.parametrize(
    ("tamper", "promise"), CONTROLS, ids=lambda one: getattr(one, "__name__", None) or one.feature
)
def test_broken_promise_is_found(tamper: tampering.Tamper, promise: Capability) -> None:
    """Positive control: a device that is wrong in one way is seen to be."""
    found = measure(tampered(tamper))
    assert 0 < found[promise].wrong <= found[promise].count
    assert found[promise].example
    assert not measure(tampered(tampering.unchanged))[promise].wrong


def test_every_promise_has_a_control() -> None:
    """None is measured by a check that nobody has seen fail."""
    assert {c.feature for _, c in CONTROLS} == {n for n, f in FEATURES.items() if f.shortfall}


def test_flushing_is_not_taken_for_something_else() -> None:
    """Division and rounding are judged where no subnormal takes part."""
    found = measure(tampered(lambda e: tampering.flushing_results(tampering.flushing_operands(e))))
    assert {c.feature for c, probe in found.items() if probe.wrong} == {
        "subnormal_inputs",
        "subnormal_results",
    }


@pytest.mark.parametrize(
    ("tamper", "promise"),
    [
        (tampering.reciprocal_division, "division"),
        (tampering.root_by_reciprocal, "square_root"),
        (tampering.fma_of_two_roundings, "fma"),
        (tampering.contracting, "contraction"),
    ],
)
def test_inexact_operation_is_blamed_for_itself_alone(
    tamper: tampering.Tamper, promise: str
) -> None:
    """Its wrong results are no flushed subnormals."""
    found = measure(tampered(tamper))
    assert {c.feature for c, probe in found.items() if probe.wrong} == {promise}


def test_parity_sees_a_wrong_device() -> None:
    """Positive control: division by the reciprocal."""
    outcomes = {one.kernel: one for one in parity(tampered(tampering.reciprocal_division))}
    assert outcomes["float32"].outcome is Outcome.DIFFERS
    assert "the oracle has" in outcomes["float32"].text
    assert outcomes["integers"].outcome is Outcome.SAME


# --- what becomes of it ---------------------------------------------------------------------------


def _kernel(promise: str, scalar: Scalar = FLOAT32, fastmath: bool = False) -> Kernel:
    """out[i] = the operation of a promise, on operands a, b and c."""
    name = FLOAT_PROMISES[promise][0]

    def results(given: Any) -> list[Any]:
        letters, made, _ = OPERATIONS[name]
        return [made(*(given[one] for one in letters))]

    kernel = elementwise("k", results, dict.fromkeys("abc", scalar), [scalar])
    return replace(kernel, fastmath=fastmath)


def _go(device: Device, kernel: Kernel, scalar: Scalar = FLOAT32) -> None:
    given = [np.ones(8, scalar.value) for _ in range(4)]
    run_vectors(device, kernel, given, 8, 1)


def test_device_that_breaks_division_refuses_it_after_the_self_test(disk_cache: Any) -> None:
    """And nothing else: sums go on; before it was measured nobody knew."""
    device = tampered(tampering.reciprocal_division)
    _go(device, _kernel("division"))
    assert self_test(device).measured[DIVISION].wrong
    counters.reset()
    with pytest.raises(CapabilityError) as raised:
        _go(device, _kernel("division"))
    assert counters.launches == 0
    assert "needs correctly rounded float32 division" in str(raised.value)
    assert "  measured: " in str(raised.value)
    _go(device, _kernel("rounding"))
    _go(device, _kernel("division", fastmath=True))
    assert counters.launches == 2


def test_backend_that_emulates_is_told_and_not_refused() -> None:
    """What it says it emulates, it is asked to."""
    measured = {DIVISION: Probe(10, 1, "x")}
    target = Target("tampered", emulates=frozenset({"division"}))
    device = tampered(tampering.unchanged, target=target, measured=measured)
    _go(device, _kernel("division"))
    assert to_emulate(device.record) == {DIVISION}
    assert to_emulate(device.record, fastmath=True) == frozenset()


def test_missing_subnormals_are_declared_once_for_each_device() -> None:
    """One warning in the process, with the evidence; kernels without floats do not cause it."""
    fact = Fact(Verdict.UNAVAILABLE, CapabilityKind.OPTIONAL, "shaderDenormPreserveFloat32 is 0")
    facts = {Capability("subnormal_results", FLOAT32): fact}
    device = tampered(tampering.unchanged)
    device.driver.record = replace(device.record, facts={**device.record.facts, **facts})
    integers = elementwise("ints", lambda g: [build.add(g["a"], g["a"])], {"a": INT32}, [INT32])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_vectors(device, integers, [np.zeros(8, np.int32), np.ones(8, np.int32)], 8, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for promise in ("rounding", "division", "fma"):
            _go(device, _kernel(promise))
    [warning] = caught
    assert warning.category is DeviationWarning
    assert str(warning.message) == (
        "device 'tampered:0' does not keep subnormal numbers, and its results may differ there "
        "from those of other devices\n"
        "  float32 subnormals as results: shaderDenormPreserveFloat32 is 0\n"
        "  hint: scale the data into the normal range, or launch on another device"
    )


def test_measuring_leaves_the_record_as_it_was() -> None:
    """It is the self-test that writes it."""
    device = tampered(tampering.reciprocal_division)
    before = device.record
    measure(device)
    assert device.driver.record is before


# --- kept -----------------------------------------------------------------------------------------


def test_measured_once_and_known_to_later_processes(disk_cache: Any) -> None:
    """By the identity of the device: another driver is measured anew."""
    device = tampered(tampering.reciprocal_division)
    blank = device.record
    measured = self_test(device)
    assert promised.recalled(blank) == measured
    other = replace(blank, identity=(("driver", "another"),))
    assert promised.recalled(other) == other


def test_broken_entry_is_no_measurement(disk_cache: Any) -> None:
    """As after another version wrote it."""
    record = tampered(tampering.unchanged).record
    key = promised._key(record)
    for content in (b"no json", b"[[1, 2]]", b'[["telepathy", "float32", null, 1, 0, ""]]'):
        promised.disk.save(promised.KIND, key, content)
        assert promised.recalled(record) == record
        assert promised.disk.load(promised.KIND, key) is None


def test_without_a_cache_it_holds_for_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """SAREK_CACHE=0 keeps nothing on disk."""
    monkeypatch.setenv("SAREK_CACHE", "0")
    device = tampered(tampering.unchanged)
    blank = device.record
    assert self_test(device).measured
    assert promised.recalled(blank) == blank


def test_grant_gives_division_up_in_a_kernel_of_python(disk_cache: Any) -> None:
    """`accept.fastmath` lets a kernel run where division is not exact."""

    @sarek.kernel
    def halves(out, x):  # type: ignore[no-untyped-def]
        i = sarek.global_idx.x
        if i < len(out):
            out[i] = x[i] / x[0]

    device = tampered(tampering.reciprocal_division)
    self_test(device)
    out, x = np.zeros(4, np.float32), np.ones(4, np.float32)
    with pytest.raises(CapabilityError, match=r"test_numerics\.py:\d+:\d+: kernel 'halves'"):
        halves.launch(out, x, grid=1, block=4, device=device)
    with sarek.policy.grant(sarek.accept.fastmath("a picture")):
        halves.launch(out, x, grid=1, block=4, device=device)
    assert out.tolist() == [1, 1, 1, 1]


def test_promise_of_what_passes_take_away_is_not_refused() -> None:
    """A constant of float64 that becomes one of float32 is converted by no device."""
    promise = Capability("conversion", FLOAT64, target=FLOAT32)
    kernel = elementwise(
        "k",
        lambda given: [build.mul(given["a"], build.cast(FLOAT32, build.lit(FLOAT64, 0.1)))],
        {"a": FLOAT32},
        [FLOAT32],
    )
    given = [np.zeros(4, np.float32), np.ones(4, np.float32)]
    measured = {promise: Probe(9, 1, "0.1 becomes 0.2")}
    device = tampered(tampering.unchanged, target=Target("tampered"), measured=measured)
    run_vectors(device, kernel, given, 4, 1)
    as_lowered = tampered(tampering.unchanged, measured=measured)
    with pytest.raises(CapabilityError, match="exact conversion from float64 to float32"):
        run_vectors(as_lowered, kernel, given, 4, 1)
