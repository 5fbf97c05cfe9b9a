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
from sarek_numba.matrix.lowering import Lowering
from sarek_numba.matrix.product import Case
from sarek_numba.matrix.rewrite.form import Direct, Form, Lines, Staged, Tiling
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
