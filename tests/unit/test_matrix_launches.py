"""Products in launches: numbers, and launches in which a product may not be computed otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import matrix_kernels  # noqa: F401  # has examples
import matrix_sums  # noqa: F401  # has examples
import numpy as np
import pytest
from matrix_examples import EXAMPLES, arguments, kernel
from matrix_kit import compute, facts, roots

from sarek_numba.ir.nodes import Const
from sarek_numba.matrix.bind import Bound, bind
from sarek_numba.matrix.product import Linear, Product
from sarek_numba.matrix.reasons import NotAProduct, Reason
from sarek_numba.matrix.recognise import recognise

f32 = np.float32


def bound(example: Any, args: list[Any], grid: Any, block: Any) -> Bound | NotAProduct:
    ir = example.ir(*args)
    product = recognise(ir)
    assert isinstance(product, Product), str(product)
    return bind(ir, product, facts(ir, args, grid, block))


def reason(example: Any, args: list[Any], grid: Any, block: Any) -> Reason | None:
    found = bound(example, args, grid, block)
    return found.reason if isinstance(found, NotAProduct) else None


def matrices(m: int = 4, n: int = 6, k: int = 5) -> list[Any]:
    return [np.zeros(shape, f32) for shape in ((m, n), (m, k), (k, n))]


def test_numbers() -> None:
    """Counts, offsets and strides of all three matrices, transposed and part of larger ones."""
    c, b = np.zeros((4, 6), f32), np.zeros((9, 9), f32)[1:6, 2:8]
    found = bound(kernel("transposed_a"), [c, np.zeros((5, 4), f32), b], (1, 1), (8, 8))
    assert isinstance(found, Bound)
    assert (found.m, found.n, found.k, found.batch) == (4, 6, 5, ())
    assert (found.a.row_stride, found.a.column_stride) == (1, 4)
    assert (found.b.row_stride, found.b.column_stride) == (9, 1)
    assert (found.c.row_stride, found.c.column_stride) == (6, 1)


def test_batch_of_one_operand_has_a_stride_of_zero_in_the_other() -> None:
    """Where B is the same for all of a batch."""
    args = [np.zeros((3, 4, 6), f32), np.zeros((3, 4, 5), f32), np.zeros((5, 6), f32)]
    found = bound(kernel("batch_of_one_operand"), args, (4, 6), (1, 1))
    assert isinstance(found, Bound)
    assert found.batch == (3,)
    strides = found.a.batch_strides, found.b.batch_strides, found.c.batch_strides
    assert strides == ((20,), (0,), (24,))


def test_backwards_is_forwards() -> None:
    """A loop that goes down reads the same elements, from the first on."""
    found = bound(kernel("backwards"), matrices(), (4, 6), (1, 1))
    assert isinstance(found, Bound)
    assert (found.a.offset, found.a.column_stride, found.b.row_stride) == (0, 1, 6)


def test_a_grid_that_is_too_small_is_told() -> None:
    """Elements without a thread stay as they are, so nothing may write them."""
    assert reason(kernel("guarded"), matrices(), (4, 6), (1, 1)) is None
    assert reason(kernel("guarded"), matrices(), (3, 6), (1, 1)) is Reason.GRID
    assert reason(kernel("strides_of_the_grid"), matrices(), (2, 1), (1, 1)) is None


def test_the_result_in_the_memory_of_an_operand() -> None:
    """Byte for byte: next to each other is apart, one element in common is not."""
    room = np.zeros(60, f32)
    a, b = np.zeros((4, 5), f32), np.zeros((5, 6), f32)
    inside, beside = room[:24].reshape(4, 6), room[24:44].reshape(4, 5)
    assert reason(kernel("guarded"), [inside, beside, b], (4, 6), (1, 1)) is None
    overlapping = room[23:43].reshape(4, 5)
    assert reason(kernel("guarded"), [inside, overlapping, b], (4, 6), (1, 1)) is Reason.ALIAS
    tail = room[19:49].reshape(5, 6)
    assert reason(kernel("guarded"), [inside, a, tail], (4, 6), (1, 1)) is Reason.ALIAS


def test_the_result_in_the_memory_of_the_bias() -> None:
    """What the epilogue reads counts as well."""
    c, a, b = matrices()
    launch = [c, a, b, c[0]], (4, 6), (1, 1)
    assert reason(kernel("bias_and_relu"), *launch) is Reason.ALIAS


def test_operands_may_share_memory() -> None:
    """A and B are only read."""
    square = np.ones((4, 4), f32)
    assert (
        reason(kernel("guarded"), [np.zeros((4, 4), f32), square, square], (4, 4), (1, 1)) is None
    )


def test_an_access_outside() -> None:
    """Where B has fewer rows than A has columns the original runs, and the oracle tells."""
    c, a, _ = matrices()
    assert (
        reason(kernel("guarded"), [c, a, np.zeros((4, 6), f32)], (4, 6), (1, 1)) is Reason.OUTSIDE
    )


def test_a_subscript_that_would_count_from_the_end() -> None:
    """A negative size of an argument reaches before the first element."""
    c, a, b = (one.ravel() for one in matrices())
    args = [c, a, b, 4, 6, -5]
    assert reason(kernel("flat_memory"), args, (4, 6), (1, 1)) is Reason.EMPTY


def test_a_flat_index_that_ends_within_a_row() -> None:
    """A result that is no rectangle."""
    args = [np.zeros(23, f32), np.zeros(20, f32), np.zeros(30, f32), 6, 5]
    assert reason(kernel("flat_with_divmod"), args, (24,), (1,)) is Reason.CONDITION


def test_rows_that_are_longer_than_they_lie_apart() -> None:
    """Two elements of the result in one place: the last thread to write it wins."""
    c = np.zeros(24, f32)
    strided = np.lib.stride_tricks.as_strided(c, (4, 6), (4, 4))
    args = [strided, *matrices()[1:]]
    ir = kernel("parts_of_larger").ir(np.zeros((9, 9), f32)[:4, :6], *args[1:])
    product = recognise(ir)
    assert isinstance(product, Product)
    found = bind(ir, product, facts(ir, args, (4, 6), (1, 1)))
    assert isinstance(found, NotAProduct)
    assert found.reason is Reason.OVERLAP


def test_an_assertion_that_fails() -> None:
    """The oracle tells of it, so the original runs."""
    c, a, b = matrices()
    found = bound(kernel("asserts_its_shapes"), [c, a, b[:4]], (4, 6), (1, 1))
    assert isinstance(found, NotAProduct)
    assert found.text.endswith("shapes")


@pytest.mark.parametrize("name", ["in_the_output", "adds_to_the_output", "alpha_and_beta"])
def test_several_threads_for_an_element_that_is_updated(name: str) -> None:
    """What is only written may be written twice, what is updated may not."""
    args = [*matrices(), *((f32(1), f32(1)) if name == "alpha_and_beta" else ())]
    grid = (4, 6, 2)
    assert reason(kernel(name), args, grid, (1, 1, 1)) is Reason.REPEATED
    assert reason(kernel("guarded"), matrices(), grid, (1, 1, 1)) is None


def test_an_index_that_leaves_int32() -> None:
    """Products of int32 wrap in the kernel, and not in a rewrite."""
    args = [*(one.ravel() for one in matrices()), np.int32(6), np.int32(2**30)]
    assert reason(kernel("flat_in_int32"), args, (24,), (1,)) in (Reason.WIDTH, Reason.OUTSIDE)


@pytest.mark.parametrize("sizes", [(0, 6, 5), (4, 0, 5), (4, 6, 0)])
def test_nothing_to_do(sizes: tuple[int, int, int]) -> None:
    """A product without elements is not rewritten."""
    assert reason(kernel("guarded"), matrices(*sizes), (4, 6), (1, 1)) is Reason.EMPTY


def test_a_wrong_product_is_seen() -> None:
    """The comparison that the recogniser is held to fails for an operand that is transposed."""
    example = next(e for e in EXAMPLES if e.name == "guarded")
    ours, theirs = (arguments(example, 6, 6, 6, 1) for _ in range(2))
    ir = example.kernel.ir(*ours)
    product = recognise(ir)
    assert isinstance(product, Product)
    (first, one), (second, other) = product.a.index.strides
    turned = Linear(product.a.index.offset, ((first, other), (second, one)))
    broken = replace(product, a=replace(product.a, index=turned))
    for used, args in ((product, ours), (broken, theirs)):
        assert compute(ir, used, args, facts(ir, args, (6, 6), (1, 1))) is None
    assert not np.array_equal(roots(ours)[0], roots(theirs)[0])


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("guarded", (), ("1.0f32", "0.0f32")),
        ("alpha_and_beta", (f32(2), f32(3)), ("alpha", "beta")),
        ("alpha_in_the_loop", (f32(2), f32(3)), ("alpha", "beta")),
        ("adds_to_the_output", (), ("1.0f32", "1.0f32")),
        ("leaky_relu", (), None),
        ("bias_and_relu", (np.zeros(6, f32),), None),
    ],
)
def test_alpha_and_beta(name: str, more: tuple[Any, ...], expected: tuple[str, str] | None) -> None:
    """They are found where the kernel is such a product, and not where it has another epilogue."""
    product = recognise(kernel(name).ir(*matrices(), *more))
    assert isinstance(product, Product)
    found = None
    if product.alpha is not None and product.beta is not None:
        found = tuple(str(_named(one)) for one in (product.alpha, product.beta))
    assert found == expected


def _named(expr: Any) -> str:
    return f"{expr.value}f32" if isinstance(expr, Const) else str(expr.var.name)
