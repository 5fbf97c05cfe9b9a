"""Kernels that are products of matrices: found, and what is found computes what they compute."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
from matrix_kernels import EXAMPLES, Example, arguments, dimensions
from matrix_kit import compute, facts, roots
from matrix_others import OTHERS, Other

from sarek_numba.matrix.product import Product
from sarek_numba.matrix.reasons import NotAProduct
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
        assert compute(kernel, product, other, launch) is None
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
