"""Rewritten kernels of all that is recognised, and what is launched of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matrix_kernels  # noqa: F401  # has examples
import matrix_sums  # noqa: F401  # has examples
import numpy as np
import pytest
from matrix_examples import EXAMPLES, Example, arguments, dimensions
from matrix_examples import kernel as example_of
from matrix_kit import roots

import sarek_numba as sarek
from sarek_numba import accept, policy
from sarek_numba.errors import InvalidArgument
from sarek_numba.ir.nodes import CoopmatConfig
from sarek_numba.ir.parse import parse
from sarek_numba.ir.text import text
from sarek_numba.ir.types import INT64, Scalar
from sarek_numba.ir.verify import check_convergence, verify
from sarek_numba.matrix import Specialised, kinds, launches, outcome_text, testing, variant_name
from sarek_numba.matrix import choose as choosing
from sarek_numba.matrix.bind import Bound, Placement
from sarek_numba.matrix.lowering import Lowering
from sarek_numba.matrix.product import Case, Product
from sarek_numba.matrix.rewrite.form import Direct, Form, Lines, Staged, Tiling
from sarek_numba.matrix.rewrite.kernel import rewritten as rewritten_kernel
from sarek_numba.matrix.rewrite.numbers import values
from sarek_numba.matrix.rewrite.scheme import scheme_of
from sarek_numba.runtime.outcome import Original

f32 = np.float32
SIZES = [(5, 6, 7), (1, 3, 9), (20, 17, 4)]
CONSENT = (
    accept.relaxed_accumulation("a test"),
    accept.operand_rounding("tf32", "small integers are exact"),
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("SAREK_OPT_DISABLE", raising=False)
    policy.clear_report()
    yield
    policy.clear_report()


@pytest.fixture
def float32_fragments(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if matrix units of all devices took float32: the arithmetic of tf32 on CPUs."""
    monkeypatch.setattr(kinds, "_TF32_BACKENDS", {"cuda", "interpreter", "native"})


def rewritten(example: Example, args: list[Any], grid: Any, block: Any, device: str) -> Any:
    with policy.grant(*CONSENT):
        return sarek.matrix.run(example.kernel, *args, grid=grid, block=block, device=device)


@pytest.mark.usefixtures("float32_fragments")
@pytest.mark.parametrize("device", ["native", "interpreter"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_rewrite_does_what_the_kernel_does(example: Example, device: str) -> None:
    """All memory, that around the arguments too, is the same afterwards. The IR is valid."""
    outcomes = []
    for seed, (m, n, k) in enumerate(SIZES):
        original, other = (arguments(example, m, n, k, seed) for _ in range(2))
        grid, block = dimensions(example, m, n, k)
        example.kernel.launch(*original, grid=grid, block=block, device="interpreter")
        with testing.fragment_edge(8):
            outcomes.append(rewritten(example, other, grid, block, device))
        for ours, theirs in zip(roots(other), roots(original), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    made = [one for one in outcomes if isinstance(one, Specialised)]
    if not made and any("no cooperative matrix" in one.reason for one in outcomes):
        pytest.skip(outcomes[0].reason)
    assert made, outcomes
    for outcome in made:
        check_ir(outcome)


def check_ir(outcome: Specialised) -> None:
    """The kernel is valid, all threads meet at its barriers, and its text gives it again."""
    verify(outcome.ir)
    assert check_convergence(outcome.ir) == []
    assert text(parse(text(outcome.ir))) == text(outcome.ir)


def matrices(m: int = 9, n: int = 8, k: int = 7) -> list[Any]:
    rng = np.random.default_rng(m)
    shapes = ((m, n), np.int32), ((m, k), np.int8), ((k, n), np.int8)
    return [rng.integers(-9, 9, shape).astype(kind) for shape, kind in shapes]


def run_int8(*args: Any, device: str = "native", **options: Any) -> Any:
    given = list(args) or matrices()
    return sarek.matrix.run(
        example_of("int8_to_int32"), *given, grid=(4, 5), block=(4, 4), device=device, **options
    )


def test_the_outcome_tells_what_ran(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """Text, names and evidence; also for whoever asks by `SAREK_EXPLAIN`, and in the report."""
    monkeypatch.setenv("SAREK_EXPLAIN", "1")
    outcome = run_int8()
    assert isinstance(outcome, Specialised)
    assert outcome_text(outcome) == (
        "Specialised: kernel 'int8_to_int32' runs as another one, proven: sums of integers modulo "
        "2^32 do not depend on their order; int8, summed in int32, Staged, 16x16x16 int8 to int32"
    )
    assert f"sarek: kernel 'int8_to_int32': {outcome}" in capsys.readouterr().err
    (record,) = policy.report()
    assert record.optimisation == "matrix_rewrite"
    assert record.outcome == policy.Applied(outcome.evidence)
    assert (variant_name(Staged()), variant_name(Direct(4))) == ("Staged", "Direct(4)")
    assert not outcome.via_interpreter
    assert run_int8(device="interpreter").via_interpreter


def test_without_consent_the_kernel_runs_as_given() -> None:
    """And the missing grant is named; nothing is raised."""
    c, a, b = (np.ones((4, 4), f32) for _ in range(3))
    kernel = example_of("guarded")
    outcome = sarek.matrix.run(kernel, c, a, b, grid=(4, 4), block=(1, 1), device="native")
    assert isinstance(outcome, Original)
    assert "operand_rounding" in outcome.reason
    assert outcome_text(outcome).startswith("Original: ")
    assert (c == 4).all()
    assert isinstance(policy.report()[0].outcome, policy.Refused)


@pytest.mark.parametrize("word", ["matrix_rewrite", "all"])
def test_it_can_be_disabled(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the environment; the result is the same."""
    args = matrices()
    expected = args[1].astype(np.int32) @ args[2].astype(np.int32)
    monkeypatch.setenv("SAREK_OPT_DISABLE", word)
    outcome = run_int8(*args)
    assert isinstance(outcome, Original)
    assert "SAREK_OPT_DISABLE" in outcome.reason
    np.testing.assert_array_equal(args[0], expected)


def test_a_fault_in_the_rewriter_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel as given runs, and the fault is the reason."""

    def broken(*_: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(launches, "specialise", broken)
    args = matrices()
    outcome = run_int8(*args)
    assert isinstance(outcome, Original)
    assert outcome.reason == "the rewrite failed: RuntimeError: a defect"
    np.testing.assert_array_equal(args[0], args[1].astype(np.int32) @ args[2].astype(np.int32))


def test_launches_of_many_sizes_share_a_kernel() -> None:
    """Sizes are arguments."""
    first, other = run_int8(), run_int8(*matrices(12, 15, 40))
    assert first.ir is other.ir
    assert first.extra != other.extra


def test_an_ordinary_launch_is_rewritten_where_that_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the measured size on, and never below; the kernel as given runs in between."""
    record = sarek.device("native").record
    monkeypatch.setitem(kinds.RULES["native"], Case.INT8, kinds.When.MEASURED)
    monkeypatch.setitem(kinds.MEASURED, ("native", record.description, Case.INT8), 10**3)
    launched: list[Any] = []
    real = launches.specialise
    monkeypatch.setattr(launches, "specialise", lambda *of: launched.append(of) or real(*of))
    kernel = sarek.kernel(example_of("int8_to_int32").py_func)
    for size, count in ((9, 0), (9, 0), (9, 0), (10, 1), (9, 1), (10, 2), (10, 3)):
        args = matrices(size, size, size)
        kernel.launch(*args, grid=(3, 3), block=(4, 4), device="native")
        np.testing.assert_array_equal(args[0], args[1].astype(np.int32) @ args[2].astype(np.int32))
        assert len(launched) == count


def test_other_kernels_and_launches_are_left_alone() -> None:
    """What is no product has no record; nor has anything on a device without rewrites."""

    @sarek.kernel
    def double(x):
        x[sarek.global_idx.x] *= 2

    x = np.ones(4, np.int32)
    outcome = sarek.matrix.run(double, x, grid=1, block=4, device="native")
    assert isinstance(outcome, Original)
    assert (x == 2).all()
    assert policy.report() == ()


def test_vectors_and_streams() -> None:
    """Vectors are arguments like arrays, and a stream of the device takes the launch."""
    c, a, b = matrices()
    held = sarek.vector(c), sarek.vector(a), sarek.vector(b)
    outcome = run_int8(*held)
    assert isinstance(outcome, Specialised)
    np.testing.assert_array_equal(np.asarray(held[0]), a.astype(np.int32) @ b.astype(np.int32))


def test_shared_memory_between_result_and_operand() -> None:
    """Then the kernel as given runs."""
    room = np.ones(300, np.int32)
    c, a = room[:36].reshape(6, 6), room[30:66].reshape(6, 6)
    outcome = sarek.matrix.run(
        example_of("int32_wraps"), c, a, a, grid=(2, 2), block=(4, 4), device="native"
    )
    assert isinstance(outcome, Original)
    assert "share memory" in outcome.reason


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"precision": "float8"}, "precision is 'float8'"),
        ({"k": np.zeros(3)}, "takes a kernel, not ndarray"),
    ],
)
def test_requests_that_are_refused(given: dict[str, Any], message: str) -> None:
    """Before anything is launched."""
    args = matrices()
    kernel = given.pop("k", example_of("int8_to_int32"))
    args[0][:] = 5
    with pytest.raises(InvalidArgument, match=message):
        sarek.matrix.run(kernel, *args, grid=(3, 3), block=(4, 4), device="native", **given)
    assert (args[0] == 5).all()


def test_places_beyond_int32() -> None:
    """Matrices that span more than 2^30 elements have indices of 64 bits."""
    room = np.zeros(2**30 + 100, np.int8)  # of which the system gives what is touched
    a = np.lib.stride_tricks.as_strided(room, (2, 3), (2**30, 1))
    a[:] = [[1, 2, 3], [4, 5, 6]]
    c, b = np.zeros((2, 2), np.int32), np.ones((3, 2), np.int8)
    outcome = run_int8(c, a, b)
    assert isinstance(outcome, Specialised)
    assert outcome.ir.params[-1].var.type is INT64
    assert run_int8().ir.params[-1].var.type is Scalar.INT32
    assert c.tolist() == [[6, 6], [15, 15]]


@pytest.mark.parametrize("case", [case for case in Case if case is not Case.BFLOAT16])
@pytest.mark.parametrize("index", [Scalar.INT32, INT64])
def test_kernels_of_all_cases_are_valid(case: Case, index: Scalar) -> None:
    """Also of types that no device here multiplies."""
    check_forms(case, index)


ROUNDINGS = {"float16": Scalar.FLOAT16, "bfloat16": Scalar.BFLOAT16, "bf16x3": Scalar.BFLOAT16}
KERNELS = {
    Case.INT8: ("int8_to_int32", "int8", "int32"),
    Case.INT32: ("int32_wraps", "int32", "int32"),
    Case.FLOAT16: ("float16_to_float32", "float16", "float32"),
    Case.FLOAT32: ("guarded", "float32", "float32"),
}


_ANYWHERE = Placement(0, 4, 1, ())


def check_forms(case: Case, index: Scalar) -> None:
    """Build a kernel for each rounding, variant and order of memory, and verify it."""
    name, operand, result = KERNELS[case]
    args = [np.zeros((4, 4), kind) for kind in (result, operand, operand)]
    kernel = example_of(name).ir(*args)
    product = choosing.product_of(kernel)
    assert isinstance(product, Product)
    firsts = tuple((axis.var.id, 0) for axis in (product.m, product.n, product.k))
    some = Bound(4, 4, 4, (), _ANYWHERE, _ANYWHERE, _ANYWHERE, firsts, ((0, 16),) * 3)
    total = Scalar(product.accumulator.value if case.value.startswith("float") else "int32")
    component = {Case.INT8: Scalar.INT8, Case.INT32: Scalar.INT8}.get(case, Scalar.FLOAT16)
    for rounding in ROUNDINGS if case is Case.FLOAT32 else (None,):
        kind = component if rounding is None else ROUNDINGS[rounding]
        config = CoopmatConfig(16, 16, 16, kind, kind, total, total)
        lowering = Lowering(case, kind, total, rounding)
        direct = product.a.type is kind and len(scheme_of(product, lowering).terms) == 1
        for variant in (Staged(), Direct(2)) if direct else (Staged(),):
            for lines in Lines:
                tiling = Tiling((1, 2), (2, 1), 2)
                form = Form(lowering, variant, tiling, config, 32, index, lines, lines, lines)
                names = values(product, some, form, (1, 1, 1), (1, 1, 1))
                made = rewritten_kernel(kernel, product, form, names, 3)
                verify(made)
                assert check_convergence(made) == []
                assert text(parse(text(made))) == text(made)
