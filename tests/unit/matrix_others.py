"""Kernels that add up products and are none of a matrix that could be computed otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.matrix.reasons import Reason

f32 = np.float32


@dataclass(frozen=True)
class Other:
    """A kernel, words for its arguments, the reason and what the line it names contains."""

    kernel: Any
    words: tuple[str, ...]
    reason: Reason
    line: str
    operand: str = "float32"
    result: str = "float32"

    @property
    def name(self) -> str:
        return str(self.kernel.__name__)


OTHERS: list[Other] = []


def other(
    reason: Reason, line: str, words: str = "c a b", operand: str = "float32", result: str = ""
) -> Any:
    def keep(function: Any) -> Any:
        kernel = sarek.kernel(function)
        made = Other(kernel, tuple(words.split()), reason, line, operand, result or operand)
        OTHERS.append(made)
        return kernel

    return keep


# --- not this kind of kernel ----------------------------------------------------------------------


@other(Reason.NO_SUM, "", "c")
def no_sum(c):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = 1


@other(Reason.TILED, "shared.array")
def tiled(c, a, b):
    tile = sarek.shared.array((4, 4), f32)
    x, y = sarek.thread_idx.x, sarek.thread_idx.y
    i, j = sarek.grid(2)
    t = f32(0)
    for k0 in range(0, a.shape[1], 4):
        tile[x, y] = a[i, k0 + y]
        sarek.barrier()
        for k in range(4):
            t += tile[x, k] * b[k0 + k, j]
        sarek.barrier()
    c[i, j] = t


@other(Reason.TILED, "barrier()")
def barrier_without_shared_memory(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    sarek.barrier()
    c[i, j] = t


@other(Reason.ATOMICS, "atomic")
def atomics(c, a, b):
    i, j = sarek.grid(2)
    for k in range(a.shape[1]):
        sarek.atomic.add(c, (i, j), a[i, k] * b[k, j])


@other(Reason.WARP, "warp")
def warps(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    t = sarek.warp.sum(t)
    c[i, j] = t


@other(Reason.EFFECTS, "print")
def prints(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    print(t)
    c[i, j] = t


@other(Reason.EFFECTS, "assert")
def asserts_about_elements(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    assert t >= 0
    c[i, j] = t


@other(Reason.LOCAL_ARRAY, "local.array")
def local_array(c, a, b):
    part = sarek.local.array(2, f32)
    i, j = sarek.grid(2)
    part[0] = 0
    for k in range(a.shape[1]):
        part[0] += a[i, k] * b[k, j]
    c[i, j] = part[0]


@other(Reason.ELEMENTS, "", operand="complex64")
def complex_numbers(c, a, b):
    i, j = sarek.grid(2)
    t = np.complex64(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    c[i, j] = t


WEIGHTS = np.ones((4, 4), f32)


@other(Reason.CONSTANTS, "t +=", "c a")
def operand_of_constants(c, a):
    weights = sarek.const.array_like(WEIGHTS)
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * weights[k, j]
    c[i, j] = t


# --- sums -----------------------------------------------------------------------------------------


@other(Reason.MORE_PRODUCTS, "", "c a b residual")
def two_products(c, a, b, d):
    i, j = sarek.grid(2)
    t = f32(0)
    s = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
        s += d[i, k] * b[k, j]
    c[i, j] = t + s


@other(Reason.MORE_PRODUCTS, "for k", "c a b residual")
def two_products_in_one_sum(c, a, b, d):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j] + d[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.OPERATOR, "max(")
def tropical(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t = max(t, a[i, k] * b[k, j])
    c[i, j] = t


@other(Reason.OPERATOR, "t *")
def multiplied_up(c, a, b):
    i, j = sarek.grid(2)
    t = f32(1)
    for k in range(a.shape[1]):
        t = t * (a[i, k] * b[k, j])
    c[i, j] = t


@other(Reason.COMPUTED_OPERAND, "t +=")
def adds_operands_first(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += (a[i, k] - b[k, j]) * (a[i, k] - b[k, j])
    c[i, j] = t


@other(Reason.COMPUTED_OPERAND, "t +=")
def function_of_an_operand(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += np.exp(a[i, k]) * b[k, j]
    c[i, j] = t


@other(Reason.ONE_ARRAY, "t +=")
def sum_of_one(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[0, j]
    c[i, j] = t


@other(Reason.MANY_FACTORS, "t +=")
def three_factors(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j] * a[i, k]
    c[i, j] = t


@other(Reason.CONDITIONAL_SUM, "!= 0")
def skips_zeros(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        if a[i, k] != 0:
            t += a[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.STATE, "")
def compensated(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    lost = f32(0)
    for k in range(a.shape[1]):
        y = a[i, k] * b[k, j] - lost
        s = t + y
        lost = (s - t) - y
        t = s
    c[i, j] = t


@other(Reason.EARLY_EXIT, "break")
def breaks(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        if t > 100:
            break
        t += a[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.NESTED_SUM, "for")
def convolution(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for y in range(3):
        for x in range(3):
            t += a[i + y, j + x] * b[y, x]
    c[i, j] = t


# --- types ----------------------------------------------------------------------------------------


@other(Reason.FLOAT64, "t +=", operand="float64")
def double(c, a, b):
    i, j = sarek.grid(2)
    t = 0.0
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.ACCUMULATOR, "t +=", operand="int8", result="int32")
def int8_sum(c, a, b):
    i, j = sarek.grid(2)
    t = 0
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.ACCUMULATOR, "+=", operand="int8", result="int8")
def int8_sum_in_the_output(c, a, b):
    i, j = sarek.grid(2)
    c[i, j] = 0
    for k in range(a.shape[1]):
        c[i, j] += a[i, k] * b[k, j]


@other(Reason.ACCUMULATOR, "t +=", operand="int32", result="int64")
def int64_sum(c, a, b):
    i, j = sarek.grid(2)
    t = np.int64(0)
    for k in range(a.shape[1]):
        t += np.int64(a[i, k]) * np.int64(b[k, j])
    c[i, j] = t


@other(Reason.NARROW_PRODUCT, "t +=", operand="int8", result="int32")
def int8_products(c, a, b):
    i, j = sarek.grid(2)
    t = np.int32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.OPERANDS, "", operand="int32", result="float32")
def integers_in_float32(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += f32(a[i, k]) * f32(b[k, j])
    c[i, j] = t


@other(Reason.ACCUMULATOR, "+=", operand="float16")
def float16_sum_in_the_output(c, a, b):
    i, j = sarek.grid(2)
    c[i, j] = 0
    for k in range(a.shape[1]):
        c[i, j] += a[i, k] * b[k, j]


# --- indices --------------------------------------------------------------------------------------


@other(Reason.DATA_INDEX, "", "c a b indices")
def gathers(c, a, b, indices):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[indices[k], j]
    c[i, j] = t


@other(Reason.INDEX, "")
def squared_index(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k * k, j]
    c[i, j] = t


@other(Reason.DATA_BOUND, "for k", "c a b indices")
def rows_of_different_length(c, a, b, indices):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(indices[i]):
        t += a[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.DATA_BOUND, "for k")
def triangular_sum(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(i):
        t += a[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.GUARD, "i <= j")
def triangular_result(c, a, b):
    i, j = sarek.grid(2)
    if i <= j:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@other(Reason.GUARD, "i != 3")
def a_row_left_out(c, a, b):
    i, j = sarek.grid(2)
    if i != 3:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@other(Reason.STEP, "for k", "c a b k")
def unknown_step(c, a, b, step):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(0, a.shape[1], step):
        t += a[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.LOOP, "while")
def doubling(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    k = 1
    while k < a.shape[1]:
        t += a[i, k] * b[k, j]
        k *= 2
    c[i, j] = t


@other(Reason.WITHOUT_K, "", "c a b m")
def operand_without_k(c, a, b, m):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k - k + j, j]
    c[i, j] = t


@other(Reason.VECTOR, "", "cv a bias")
def vector(c, a, x):
    i = sarek.global_idx.x
    if i < len(c):
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * x[k]
        c[i] = t


@other(Reason.RACE, "", "cv a b")
def several_threads_for_an_element(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    c[i] = t


@other(Reason.PARTS, "")
def index_in_whole_and_in_part(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    c[i, j] = t + f32(sarek.thread_idx.x)


@other(Reason.UNUSED_INDEX, "", "c a b m")
def index_of_an_operand_alone(c, a, b, m):
    g, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[g % m, k] * b[k, j]
    c[g // m, j] = t


@other(Reason.RACE, "for k")
def parts_of_a_sum_in_threads(c, a, b):
    i, j = sarek.block_idx.x, sarek.block_idx.y
    t = f32(0)
    for k in range(sarek.thread_idx.x, a.shape[1], sarek.block_dim.x):
        t += a[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.PARTS, "")
def some_threads_of_each_block(c, a, b):
    i, j = sarek.grid(2)
    if sarek.thread_idx.x < 2:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@other(Reason.PARTS, "", "c a b m")
def half_of_a_flat_index(c, a, b, m):
    j = sarek.global_idx.x % m
    i = sarek.global_idx.y
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    c[i, j] = t


# --- stores ---------------------------------------------------------------------------------------


@other(Reason.STORE_GUARD, "")
def store_outside_of_the_guard(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    if i < a.shape[0] and j < b.shape[1]:
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.LAST_VALUE, "c[i, j] = t")
def stores_in_one_pass(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
        if k == 2:
            c[i, j] = t


@other(Reason.NESTED_SUM, "for j")
def sums_that_go_on(c, a, b):
    i = sarek.global_idx.x
    t = f32(0)
    for j in range(c.shape[1]):
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@other(Reason.DATA_STORE, "c[i, j] = t")
def stores_what_is_positive(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    if t > 0:
        c[i, j] = t


@other(Reason.OTHER_STORE, "d[i, j] =", "c a b residual")
def stores_twice(c, a, b, d):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    c[i, j] = t
    d[i, j] = 0


@other(Reason.MORE_PRODUCTS, "d[i, j] =", "c a b residual")
def stores_the_sum_twice(c, a, b, d):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    c[i, j] = t
    d[i, j] = t


@other(Reason.READS_OTHER, "")
def reads_a_neighbour(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(a.shape[1]):
        t += a[i, k] * b[k, j]
    c[i, j] = t + c[i, j + 1]


@other(Reason.SAME_ARRAY, "", "c b")
def result_is_an_operand(c, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(b.shape[0]):
        t += c[i, k] * b[k, j]
    c[i, j] = t


@other(Reason.LAST_VALUE, "")
def last_factor(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    last = f32(0)
    for k in range(a.shape[1]):
        last = a[i, k]
        t += last * b[k, j]
    c[i, j] = t + last
