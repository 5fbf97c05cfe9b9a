"""Kernels that are products of matrices: found, and what is found computes what they compute."""

from __future__ import annotations

import linecache
from dataclasses import replace
from typing import Any

import matrix_kernels  # noqa: F401  # has examples
import matrix_sums  # noqa: F401  # has examples
import numpy as np
import pytest
from matrix_examples import EXAMPLES, Example, arguments, dimensions
from matrix_examples import kernel as example
from matrix_kit import compute, facts, roots
from matrix_others import OTHERS, Other

from sarek_numba.ir import nodes as ir
from sarek_numba.ir.types import FLOAT32, INT64
from sarek_numba.matrix import execution
from sarek_numba.matrix.product import Product
from sarek_numba.matrix.reasons import NotAProduct, Reason
from sarek_numba.matrix.recognise import recognise

SIZES = [(5, 6, 7), (1, 3, 9), (8, 4, 4)]


def found(example: Example, args: list[Any]) -> tuple[Any, Product]:
    kernel = example.kernel.ir(*args)
    product = recognise(kernel)
    assert isinstance(product, Product), str(product)
    return kernel, product


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_product_computes_what_the_kernel_computes(example: Example) -> None:
    """NumPy, given the product alone, changes memory as the interpreter does, byte for byte."""
    for seed, (m, n, k) in enumerate(SIZES):
        original, other = (arguments(example, m, n, k, seed) for _ in range(2))
        grid, block = dimensions(example, m, n, k)
        kernel, product = found(example, other)
        launch = facts(kernel, other, grid, block)
        refused = compute(kernel, product, other, launch)
        assert refused is None or refused.reason is Reason.EMPTY, refused  # then nothing changes
        example.kernel.launch(*original, grid=grid, block=block, device="interpreter")
        for ours, theirs in zip(roots(other), roots(original), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def arguments_of(other: Other) -> list[Any]:
    """Arguments of 4 by 4 matrices; nothing runs here."""
    made: dict[str, Any] = {"k": 4, "m": 4, "indices": np.zeros(4, np.int64)}
    made["bias"] = np.zeros(4, other.operand)
    made["residual"] = np.zeros((4, 4), other.result)
    made["a"] = made["b"] = np.zeros((4, 4), other.operand)
    made["c"], made["cv"] = np.zeros((4, 4), other.result), np.zeros(4, other.result)
    return [made[word] for word in other.words]


@pytest.mark.filterwarnings("ignore::sarek_numba.CompileWarning")
@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.name)
def test_what_is_no_product_says_why(other: Other) -> None:
    """Each reason, with the user's line."""
    refused = recognise(other.kernel.ir(*arguments_of(other)))
    assert isinstance(refused, NotAProduct), refused
    assert refused.reason is other.reason, str(refused)
    assert refused.span is not None
    assert other.line in linecache.getline(refused.span.file, refused.span.line), str(refused)
    assert "{" not in refused.text


OF_LAUNCHES = {
    Reason.GRID,
    Reason.CONDITION,
    Reason.OUTSIDE,
    Reason.WIDTH,
    Reason.ALIAS,
    Reason.OVERLAP,
    Reason.REPEATED,
    Reason.EMPTY,
    Reason.UNKNOWN,
}
BEFORE = {  # a statement put before a product
    Reason.COOPMAT: ir.Coopmat(ir.CMDecl("f", ir.Fragment("a", FLOAT32, 16, 16))),
    Reason.NATIVE: ir.Native((("cuda", ";"),), ()),
    Reason.STATEMENT: ir.Match(ir.constant(INT64, 0), ()),
}


def a_product() -> ir.Kernel:
    kernel: ir.Kernel = example("guarded").ir(*(np.zeros((4, 4), np.float32) for _ in range(3)))
    return kernel


@pytest.mark.parametrize("reason", list(BEFORE))
def test_statements_that_no_kernel_here_has(reason: Reason) -> None:
    """What only kernels by hand contain."""
    kernel = a_product()
    refused = recognise(replace(kernel, body=(BEFORE[reason], *kernel.body)))
    assert isinstance(refused, NotAProduct)
    assert refused.reason is reason


def test_a_kernel_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The analysis ends."""
    monkeypatch.setattr(execution, "_MOST_NODES", 10)
    refused = recognise(a_product())
    assert isinstance(refused, NotAProduct)
    assert refused.reason is Reason.TOO_LARGE


def test_every_reason_has_a_kernel() -> None:
    """No refusal without a test."""
    seen = {other.reason for other in OTHERS} | BEFORE.keys() | OF_LAUNCHES | {Reason.TOO_LARGE}
    assert seen == set(Reason)
