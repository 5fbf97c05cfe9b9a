"""Grants, budgets, what is recorded of decisions, and what a grant of `fastmath` changes."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import accept, policy
from sarek_numba.policy import Applied, Consent, Granted, Knowledge, Refused
from tests.executors import devices

DEVICES = devices()
FAST = accept.fastmath("a preview")


@pytest.fixture(autouse=True)
def fresh():
    policy.clear_report()
    yield
    policy.withdraw()
    policy.clear_report()


def multiply_add(out, a, b, c):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = a[i] * b[i] + c[i]


# --- grants ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["", "  ", None, 3])
@pytest.mark.parametrize(
    "grant",
    [
        accept.relaxed_accumulation,
        accept.automatic_float_rewrite,
        accept.fastmath,
        lambda why: accept.operand_rounding("tf32", why),
        lambda why: sarek.kernel(fastmath=why),
    ],
)
def test_a_grant_needs_a_reason(grant, why):
    with pytest.raises(sarek.PolicyError, match="needs a reason"):
        grant(why)


def test_a_rounding_is_one_of_four():
    with pytest.raises(sarek.PolicyError, match="'float16', 'bfloat16', 'tf32', 'bf16x3', not"):
        accept.operand_rounding("float8", "why")
    assert accept.operand_rounding("tf32", "ten bits will do").detail == "tf32"


@pytest.mark.parametrize("grants", ["fastmath", FAST, ["why"], {FAST}])
def test_what_is_no_sequence_of_grants_is_refused(grants):
    with pytest.raises(sarek.PolicyError, match=r"accept=\.\.\.\) takes grants, not"):
        sarek.kernel(accept=grants)
    with pytest.raises(sarek.PolicyError, match=r"sarek.policy.always takes grants"):
        policy.always("why")  # type: ignore[arg-type]


def test_a_budget_is_what_kernel_surroundings_and_process_grant(monkeypatch):
    other = accept.relaxed_accumulation("sums of millions")
    tf32 = accept.operand_rounding("tf32", "noise is larger")
    assert policy.budget().grants == ()
    policy.always(other)
    with policy.grant(tf32):
        assert policy.budget((FAST,)).grants == (FAST, tf32, other)
        assert policy.budget((FAST,)).of(Consent.OPERAND_ROUNDING, "tf32") == (tf32,)
        assert policy.budget((FAST,)).of(Consent.OPERAND_ROUNDING, "float16") == ()
    assert policy.budget((FAST,)).grants == (FAST, other)
    monkeypatch.setenv("SAREK_OPT_DISABLE", "fastmath, fusion")
    assert policy.budget((FAST,)).grants == (other,)
    assert policy.budget((FAST,)).revoked == (FAST,)
    assert policy.disabled("fusion")
    assert not policy.disabled("matrix_rewrite")
    monkeypatch.setenv("SAREK_OPT_DISABLE", "all")
    assert policy.budget((FAST,)).grants == ()
    assert policy.disabled("matrix_rewrite")


def test_grants_around_a_launch_are_of_the_thread_alone():
    seen = []
    with policy.grant(FAST):
        thread = threading.Thread(target=lambda: seen.append(policy.budget().grants))
        thread.start()
        thread.join()
    assert seen == [()]


# --- deviations -----------------------------------------------------------------------------------


def test_a_bound_in_closed_form_is_told_of_once():
    def ask(budget=policy.NOTHING):
        text = "sums differ by n ulp"
        return policy.deviation(
            "fusion", Knowledge.CLOSED_FORM, text, Consent.RELAXED_ACCUMULATION, budget
        )

    with pytest.warns(sarek.DeviationWarning, match="fusion: sums differ by n ulp"):
        first = ask()
    assert isinstance(first, Applied)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask() == first
    policy.clear_report()
    granted = accept.relaxed_accumulation("it does not matter")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask(policy.Budget((granted,))) == Applied(
            Granted((granted,), "sums differ by n ulp")
        )
        assert isinstance(ask(policy.Budget(revoked=(granted,))), Refused)


def test_a_measured_bound_needs_consent_and_none_is_refused():
    granted = policy.Budget((accept.relaxed_accumulation("fine"),))
    consent = Consent.RELAXED_ACCUMULATION
    refused = policy.deviation("x", Knowledge.MEASURED, "1 ulp", consent, policy.NOTHING)
    assert refused == Refused("nothing grants relaxed_accumulation: 1 ulp")
    assert isinstance(policy.deviation("x", Knowledge.MEASURED, "1 ulp", consent, granted), Applied)
    assert isinstance(policy.deviation("x", Knowledge.UNMEASURED, "?", consent, granted), Refused)


# --- fastmath -------------------------------------------------------------------------------------


def arguments():
    """Products whose rounding shows: fma(a, b, c) is 2^-46, and a * b + c is 0."""
    a = np.full(64, 1 + 2.0**-23, np.float32)
    return np.full(64, 9, np.float32), a, a, np.full(64, -(1 + 2.0**-22), np.float32)


@pytest.mark.parametrize("device", DEVICES)
def test_fastmath_allows_contraction_and_nothing_else_does(device):
    exact, fast = sarek.kernel(multiply_add), sarek.kernel(fastmath="a preview")(multiply_add)
    out, *rest = arguments()
    exact.launch(out, *rest, grid=1, block=64, device=device)
    assert (out == 0).all()
    fast.launch(out, *rest, grid=1, block=64, device=device)
    assert np.isin(out, np.array([0, 2.0**-46], np.float32)).all()
    if device == "native":  # its processor has the instruction, and the compiler uses it
        contracts = (out == np.float32(2.0**-46)).all()
        assert contracts == ("fmul reassoc arcp contract afn" in fast.source(device, out, *rest))
    with policy.grant(FAST):
        exact.launch(out, *rest, grid=1, block=64, device=device)
        assert np.isin(out, np.array([0, 2.0**-46], np.float32)).all()
    exact.launch(out, *rest, grid=1, block=64, device=device)
    assert (out == 0).all()


@pytest.mark.parametrize("device", DEVICES)
def test_fastmath_keeps_nan_and_infinity(device):
    @sarek.kernel(accept=[FAST])
    def special(out, x):
        i = sarek.global_idx.x
        out[i, 0] = 1 if x[i] != x[i] else 0
        out[i, 1] = 1 if x[i] - x[i] == 0 else 0
        out[i, 2] = 1 if abs(x[i]) * np.float32(2) > np.float32(3e38) else 0

    x = np.array([np.nan, np.inf, -np.inf, 1.5], np.float32)
    out = np.full((4, 3), 7, np.int32)
    special.launch(out, x, grid=1, block=4, device=device)
    assert out.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize("device", [d for d in DEVICES if d.startswith("opencl")])
def test_the_source_says_whether_products_and_sums_may_be_one(device):
    out, *rest = arguments()
    fast = sarek.kernel(fastmath="a preview")(multiply_add)
    assert "FP_CONTRACT ON" in fast.source(device, out, *rest)
    assert "FP_CONTRACT OFF" in sarek.kernel(multiply_add).source(device, out, *rest)


def test_decisions_are_recorded_and_explained(monkeypatch, capsys):
    monkeypatch.setenv("SAREK_EXPLAIN", "1")
    fast = sarek.kernel(fastmath="a preview")(multiply_add)
    out, *rest = arguments()
    for device in ("native", "interpreter", "native"):
        fast.launch(out, *rest, grid=1, block=64, device=device)
    applied, refused = policy.report()
    granted = Granted((FAST,), "contraction, reassociation, approximations")
    assert (applied.device, applied.outcome) == ("native", Applied(granted))
    assert (refused.device, refused.outcome) == (
        "interpreter",
        Refused("the oracle computes exactly"),
    )
    printed = capsys.readouterr().err.splitlines()
    assert printed == [f"sarek: {applied}", f"sarek: {refused}"]
    assert "fastmath (a preview)" in printed[0]


def test_a_revoked_grant_changes_nothing_and_says_so(monkeypatch):
    monkeypatch.setenv("SAREK_OPT_DISABLE", "fastmath")
    fast = sarek.kernel(fastmath="a preview")(multiply_add)
    out, *rest = arguments()
    for _ in range(3):
        fast.launch(out, *rest, grid=1, block=64, device="native")
        assert (out == 0).all()
    (record,) = policy.report()
    assert str(record) == (
        "kernel 'multiply_add' on native: fastmath not applied: SAREK_OPT_DISABLE revokes fastmath"
    )
    monkeypatch.delenv("SAREK_OPT_DISABLE")
    fast.launch(out, *rest, grid=1, block=64, device="native")
    assert isinstance(policy.report()[-1].outcome, Applied)


def test_ir_says_fastmath_and_reads_it_back():
    from sarek_numba.ir.hash import content_hash
    from sarek_numba.ir.parse import parse
    from sarek_numba.ir.text import text

    plain = sarek.kernel(multiply_add).ir(*arguments())
    fast = text(plain).replace(" index 32 {", " index 32 fastmath {", 1)
    kernel = parse(fast)
    assert kernel.fastmath
    assert text(kernel) == fast
    assert content_hash(kernel) != content_hash(plain)


def test_launches_like_earlier_ones_follow_grants_too(monkeypatch):
    """The short way of a launch notices each place that a grant can come from or be revoked."""
    kernel = sarek.kernel(multiply_add)
    vectors = [sarek.vector(array) for array in arguments()]

    def contracted():
        for _ in range(4):  # the later ones go the short way
            kernel.launch(*vectors, grid=1, block=64, device="native")
        return float(vectors[0][0]) != 0

    assert not contracted()
    with policy.grant(FAST):
        granted = contracted()
    assert not contracted()
    policy.always(FAST)
    assert contracted() == granted
    monkeypatch.setenv("SAREK_OPT_DISABLE", "fastmath")
    assert not contracted()
    monkeypatch.delenv("SAREK_OPT_DISABLE")
    assert contracted() == granted
    policy.withdraw()
    assert not contracted()
