"""Products of matrices as people write them: kernels that are recognised, with their arguments.

`arguments` makes what a word stands for: `c` is the result (m by n), `a` is m by k, `b` is k by n;
with `t` they are transposed, with `f` flat, with `s` parts of larger matrices, with `3` batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # noqa: F401  # NumPy knows bfloat16 by it
import numpy as np

import sarek_numba as sarek
from sarek_numba import math

f32 = np.float32
BATCH = 3


@dataclass(frozen=True)
class Example:
    """A kernel, the words for its arguments, the grid's word, the element types of A and B, of C,
    and what its `scaling` is: whether alpha and beta are found.
    """

    kernel: Any
    words: tuple[str, ...]
    grid: str
    operand: str
    result: str

    @property
    def name(self) -> str:
        return str(self.kernel.__name__)


EXAMPLES: list[Example] = []


def product(
    words: str, grid: str = "m n", operand: str = "float32", result: str = ""
) -> Callable[[Any], Any]:
    def keep(function: Any) -> Any:
        kernel = sarek.kernel(function)
        made = Example(kernel, tuple(words.split()), grid, operand, result or operand)
        EXAMPLES.append(made)
        return kernel

    return keep


# --- orders of indices and guards -----------------------------------------------------------------


@product("c a b")
def guarded(c, a, b):
    i, j = sarek.global_idx.x, sarek.global_idx.y
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b", "n m")
def column_first(c, a, b):
    j, i = sarek.global_idx.x, sarek.global_idx.y
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t = b[k, j] * a[i, k] + t
        c[i, j] = t


@product("c a b")
def returns_early(c, a, b):
    i, j = sarek.grid(2)
    if i >= c.shape[0] or j >= c.shape[1]:
        return
    t = f32(0)
    for k in range(b.shape[0]):
        t += a[i, k] * b[k, j]
    c[i, j] = t


@product("c a b")
def returns_twice(c, a, b):
    i, j = sarek.grid(2)
    if i >= c.shape[0]:
        return
    if c.shape[1] <= j:
        return
    t = f32(0)
    for k in range(b.shape[0]):
        t += a[i, k] * b[k, j]
    c[i, j] = t


@product("c a b")
def guards_kept_in_a_variable(c, a, b):
    i, j = sarek.grid(2)
    inside = i < c.shape[0] and j < c.shape[1]
    if inside:
        t = f32(0)
        for k in range(b.shape[0]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b")
def two_guards_of_one_condition(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    if i < c.shape[0] and j < c.shape[1]:
        for k in range(b.shape[0]):
            t += a[i, k] * b[k, j]
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = t


@product("c a b", "M N")
def without_guards(c, a, b):
    i, j = sarek.grid(2)
    t = f32(0)
    for k in range(b.shape[0]):
        t += a[i, k] * b[k, j]
    c[i, j] = t


@product("c a b m n k")
def sizes_as_arguments(c, a, b, m, n, k):
    i, j = sarek.grid(2)
    if i < m and j < n:
        t = f32(0)
        for p in range(k):
            t += a[i, p] * b[p, j]
        c[i, j] = t


@product("c a b m n k")
def smaller_of_two_sizes(c, a, b, m, n, k):
    i, j = sarek.grid(2)
    if i < min(m, c.shape[0]) and j < n:
        t = f32(0)
        for p in range(min(k, a.shape[1])):
            t += a[i, p] * b[p, j]
        c[i, j] = t


@product("c a b", "m 1")
def a_thread_for_a_row(c, a, b):
    i = sarek.global_idx.x
    if i < c.shape[0]:
        for j in range(c.shape[1]):
            t = f32(0)
            for k in range(a.shape[1]):
                t += a[i, k] * b[k, j]
            c[i, j] = t


@product("c a b", "m 1")
def guarded_within_the_loop(c, a, b):
    i = sarek.global_idx.x
    for j in range(c.shape[1]):
        if i >= c.shape[0]:
            continue
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b", "3 2")
def strides_of_the_grid(c, a, b):
    for i in range(sarek.global_idx.x, c.shape[0], sarek.gridsize(2)[0]):
        for j in range(sarek.global_idx.y, c.shape[1], sarek.gridsize(2)[1]):
            t = f32(0)
            for k in range(a.shape[1]):
                t += a[i, k] * b[k, j]
            c[i, j] = t


@product("c a b", "3 1")
def a_block_for_a_row(c, a, b):
    for i in range(sarek.block_idx.x, c.shape[0], sarek.grid_dim.x):
        for j in range(sarek.thread_idx.x, c.shape[1], sarek.block_dim.x):
            t = f32(0)
            for k in range(a.shape[1]):
                t += a[i, k] * b[k, j]
            c[i, j] = t


@product("c a b", "3 1")
def strides_of_the_grid_by_while(c, a, b):
    i = sarek.global_idx.x
    while i < c.shape[0]:
        for j in range(c.shape[1]):
            t = f32(0)
            for k in range(a.shape[1]):
                t += a[i, k] * b[k, j]
            c[i, j] = t
        i += sarek.gridsize(1)


@product("c a b", "1 1 one")
def one_thread(c, a, b):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            t = f32(0)
            for k in range(a.shape[1]):
                t += a[i, k] * b[k, j]
            c[i, j] = t


@product("c a b", "m n 16")
def blocks_times_a_constant(c, a, b):
    i = sarek.block_idx.x * 16 + sarek.thread_idx.x
    j = sarek.block_idx.y * sarek.block_dim.y + sarek.thread_idx.y
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b", "m/4 n")
def four_rows_for_a_thread(c, a, b):
    u, j = sarek.grid(2)
    if j < c.shape[1]:
        for i in range(u * 4, min(u * 4 + 4, c.shape[0])):
            t = f32(0)
            for k in range(a.shape[1]):
                t += a[i, k] * b[k, j]
            c[i, j] = t


@product("c a b", "1 1 one")
def tiles_of_loops(c, a, b):
    for i0 in range((c.shape[0] + 3) // 4):
        for i in range(i0 * 4, min(i0 * 4 + 4, c.shape[0])):
            for j in range(c.shape[1]):
                t = f32(0)
                for k in range(a.shape[1]):
                    t += a[i, k] * b[k, j]
                c[i, j] = t


# --- transposed, flat, parts, batches -------------------------------------------------------------


@product("c at b")
def transposed_a(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[0]):
            t += a[k, i] * b[k, j]
        c[i, j] = t


@product("c a bt")
def transposed_b(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[j, k]
        c[i, j] = t


@product("ct at bt")
def all_transposed(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[1] and j < c.shape[0]:
        t = f32(0)
        for k in range(a.shape[0]):
            t += a[k, i] * b[j, k]
        c[j, i] = t


@product("cq a", "m m")
def product_with_itself(c, a):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * a[j, k]
        c[i, j] = t


@product("cs as bs")
def parts_of_larger(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("cF aF bF")
def fortran_order(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("cf af bf m n k", "mn")
def flat(c, a, b, m, n, k):
    g = sarek.global_idx.x
    if g < m * n:
        i = g // n
        j = g % n
        t = f32(0)
        for p in range(k):
            t += a[i * k + p] * b[p * n + j]
        c[g] = t


@product("cf af bf n k", "mn")
def flat_with_divmod(c, a, b, n, k):
    g = sarek.global_idx.x
    if g >= len(c):
        return
    i, j = divmod(g, n)
    t = f32(0)
    for p in range(k):
        t += a[i * k + p] * b[p * n + j]
    c[i * n + j] = t


@product("cf af bf m n k", "m n")
def flat_memory(c, a, b, m, n, k):
    i, j = sarek.grid(2)
    if i < m and j < n:
        t = f32(0)
        for p in range(k):
            t += a[p + i * k] * b[p * n + j]
        c[j + i * n] = t


@product("cf af bf np.n np.k", "mn")
def flat_in_int32(c, a, b, n, k):
    g = sarek.global_idx.x
    if g < len(c):
        i = g // n
        j = g % n
        t = f32(0)
        p = 0
        while p < k:
            t += a[i * k + p] * b[p * n + j]
            p += 1
        c[i * n + j] = t


@product("cf af bf m n k", "m n")
def moving_pointers(c, a, b, m, n, k):
    i, j = sarek.grid(2)
    if i < m and j < n:
        left = i * k
        right = j
        t = f32(0)
        for _ in range(k):
            t += a[left] * b[right]
            left += 1
            right += n
        c[i * n + j] = t


@product("cf as bs m n k lda ldb", "m n")
def leading_dimensions(c, a, b, m, n, k, lda, ldb):
    i, j = sarek.grid(2)
    if i < m and j < n:
        t = f32(0)
        for p in range(k):
            t += a[i, p] * b[p, j]
        c[i * n + j] = t


@product("c3 a3 b3", "n m b")
def batched(c, a, b):
    j, i, x = sarek.grid(3)
    if i < c.shape[1] and j < c.shape[2] and x < c.shape[0]:
        t = f32(0)
        for k in range(a.shape[2]):
            t += a[x, i, k] * b[x, k, j]
        c[x, i, j] = t


@product("c3 a3 b", "m n")
def batch_of_one_operand(c, a, b):
    i, j = sarek.grid(2)
    for x in range(c.shape[0]):
        if i < c.shape[1] and j < c.shape[2]:
            t = f32(0)
            for k in range(a.shape[2]):
                t += a[x, i, k] * b[k, j]
            c[x, i, j] = t


@product("c3f a3f b3f m n k", "bmn")
def batch_in_a_flat_index(c, a, b, m, n, k):
    g = sarek.global_idx.x
    if g < len(c):
        x = g // (m * n)
        i = g // n % m
        j = g % n
        t = f32(0)
        for p in range(k):
            t += a[(x * m + i) * k + p] * b[(x * k + p) * n + j]
        c[g] = t


@product("c3f a3f b3f m n k", "bmn")
def batch_in_a_flat_index_by_steps(c, a, b, m, n, k):
    g = sarek.global_idx.x
    if g < len(c):
        row, j = g // n, g % n
        x, i = row // m, row % m
        t = f32(0)
        for p in range(k):
            t += a[row * k + p] * b[(x * k + p) * n + j]
        c[(x * m + i) * n + j] = t


# --- loops over k ---------------------------------------------------------------------------------


@product("c a b")
def backwards(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1] - 1, -1, -1):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b")
def backwards_by_while(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        k = a.shape[1] - 1
        while k >= 0:
            t += a[i, k] * b[k, j]
            k -= 1
        c[i, j] = t


@product("c a b")
def every_other(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(0, a.shape[1], 2):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b")
def unrolled(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        whole = a.shape[1] // 4 * 4
        for k in range(0, whole, 4):
            t += a[i, k] * b[k, j] + a[i, k + 1] * b[k + 1, j]
            t += a[i, k + 2] * b[k + 2, j] + a[i, k + 3] * b[k + 3, j]
        for k in range(whole, a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b")
def unrolled_by_remainder(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        size = a.shape[1]
        for k in range(0, size - size % 2, 2):
            t += a[i, k] * b[k, j]
            t += a[i, k + 1] * b[k + 1, j]
        for k in range(size - size % 2, size):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b")
def blocks_of_k(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for u in range((a.shape[1] + 3) // 4):
            part = f32(0)
            for k in range(u * 4, min(u * 4 + 4, a.shape[1])):
                part += a[i, k] * b[k, j]
            t += part
        c[i, j] = t


@product("c a b")
def bounded_within(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range((a.shape[1] + 7) // 8 * 8):
            if k < a.shape[1]:
                t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b", "m 1")
def k_outside_of_j(c, a, b):
    i = sarek.global_idx.x
    if i < c.shape[0]:
        for j in range(c.shape[1]):
            c[i, j] = 0
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@product("c a b", "1 1 one")
def k_outermost(c, a, b):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = 1
    for k in range(a.shape[1]):
        for i in range(c.shape[0]):
            x = a[i, k]
            for j in range(c.shape[1]):
                c[i, j] += x * b[k, j]


# --- accumulators, alpha and beta, epilogues ------------------------------------------------------


@product("c a b")
def in_the_output(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = 0
        for k in range(a.shape[1]):
            c[i, j] += a[i, k] * b[k, j]


@product("c a b")
def adds_to_the_output(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        for k in range(a.shape[1]):
            c[i, j] += a[i, k] * b[k, j]


@product("c a b")
def stores_each_sum(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
            c[i, j] = t


@product("c a b")
def subtracts(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = c[i, j]
        for k in range(a.shape[1]):
            t -= a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b alpha beta")
def alpha_and_beta(c, a, b, alpha, beta):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = alpha * t + beta * c[i, j]


@product("c a b alpha beta")
def alpha_in_the_loop(c, a, b, alpha, beta):
    i, j = sarek.grid(2)
    if i >= c.shape[0] or j >= c.shape[1]:
        return
    c[i, j] *= beta
    for k in range(a.shape[1]):
        c[i, j] += alpha * a[i, k] * b[k, j]


@product("c a b bias")
def bias_and_relu(c, a, b, bias):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        t += bias[j]
        c[i, j] = max(t, f32(0))


@product("c a b bias")
def begins_with_bias(c, a, b, bias):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = bias[j]
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b")
def relu_by_branches(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        if t < 0:
            c[i, j] = 0
        else:
            c[i, j] = t


@product("c a b")
def leaky_relu(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        if t < 0:
            t *= f32(0.125)
        c[i, j] = t


@sarek.function
def sigmoid(x):
    return f32(1) / (f32(1) + np.exp(-x))


@product("c a b")
def sigmoid_of_a_function(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = sigmoid(t)


@product("c a b residual")
def gelu_and_residual(c, a, b, residual):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        inner = f32(0.7978846) * (t + f32(0.044715) * t * t * t)
        c[i, j] = f32(0.5) * t * (f32(1) + np.tanh(inner)) + residual[i, j]


@product("c a b")
def index_in_the_epilogue(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        if i == j:
            t += 1
        c[i, j] = t + f32(i)


@product("c a b rows")
def factor_of_a_row(c, a, b, scale):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += scale[i] * (a[i, k] * b[k, j])
        c[i, j] = t


@product("c a b")
def fused_multiply_add(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t = math.fma(a[i, k], b[k, j], t)
        c[i, j] = t


@product("c a b")
def asserts_its_shapes(c, a, b):
    assert a.shape[1] == b.shape[0], "shapes"
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


# --- integers -------------------------------------------------------------------------------------


@product("c a b", operand="int32")
def int32_wraps(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = np.int32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j] * np.int32(1 << 28)
        c[i, j] = t


@product("c a b", operand="int8", result="int32")
def int8_to_int32(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = np.int32(0)
        for k in range(a.shape[1]):
            t += np.int32(a[i, k]) * np.int32(b[k, j])
        c[i, j] = t


@product("c a b", operand="uint8", result="int32")
def uint8_in_the_output(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = 0
        for k in range(a.shape[1]):
            c[i, j] += np.int32(a[i, k]) * np.int32(b[k, j])


@product("c a b", operand="int8", result="int8")
def int8_with_a_clamp(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = np.int32(0)
        for k in range(a.shape[1]):
            t += np.int32(a[i, k]) * np.int32(b[k, j])
        t = min(max(t, np.int32(-128)), np.int32(127))
        c[i, j] = np.int8(t)


@product("c a b", operand="uint32")
def uint32(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = np.uint32(0)
        for k in range(a.shape[1]):
            t -= a[i, k] * b[k, j]
        c[i, j] = t


# --- halves ---------------------------------------------------------------------------------------


@product("c a b", operand="float16", result="float32")
def float16_to_float32(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += f32(a[i, k]) * f32(b[k, j])
        c[i, j] = t


@product("c a bt", operand="float16")
def float16_throughout(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[j, k]
        c[i, j] = t


@product("c a b bias", operand="bfloat16")
def bfloat16_with_bias(c, a, b, bias):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = max(t + bias[j], f32(0))


# --- arguments ------------------------------------------------------------------------------------


def arguments(example: Example, m: int, n: int, k: int, seed: int) -> list[Any]:
    """Arguments of small whole numbers; what is not given to the kernel around them is theirs."""
    source = np.random.default_rng(seed)
    shapes = {"c": (m, n), "a": (m, k), "b": (k, n)}

    def made(word: str) -> Any:
        if word.startswith("np."):
            return np.int32(made(word[3:]))
        if word[0] in shapes and word not in ("beta", "bias", "alpha"):
            return matrix(word[0], word[1:])
        vectors = {"bias": (n,), "rows": (m,), "residual": (m, n)}
        if word in vectors:
            return source.integers(-4, 5, vectors[word]).astype(example.result)
        numbers: dict[str, Any] = {
            "m": m, "n": n, "k": k, "alpha": f32(2), "beta": f32(-3), "lda": k + 3, "ldb": n + 3
        }  # fmt: skip
        return numbers[word]

    def matrix(which: str, how: str) -> Any:
        shape: tuple[int, ...] = (m, m) if how == "q" else shapes[which]
        kind = example.result if which == "c" else example.operand
        low = 0 if kind.startswith("u") else -3
        if how.startswith("3"):
            shape = (BATCH, *shape)
        if "t" in how:
            shape = shape[::-1]
        room = tuple(size + 3 for size in shape) if how == "s" else shape
        values = source.integers(low, 4, room).astype(kind)
        if "f" in how:
            return values.ravel()
        if how == "F":
            return np.asfortranarray(values)
        return values[1 : shape[0] + 1, 2 : shape[1] + 2] if how == "s" else values

    return [made(word) for word in example.words]


def dimensions(example: Example, m: int, n: int, k: int) -> tuple[Any, Any]:
    """Grid and block for the word of an example."""
    words = example.grid.split()
    sizes = {"m": m, "n": n, "mn": m * n, "bmn": BATCH * m * n, "b": BATCH, "m/4": -(-m // 4)}
    block = [4, 2, 2][: max(2, len(words))]
    if words[-1] == "one":
        return (1, 1), (1, 1)
    if words[-1] == "16":
        words, block = words[:-1], [16, 2]
    grid = []
    for at, word in enumerate(words):
        if word.isupper():  # as many threads as elements
            block[at] = 1
            grid.append(sizes[word.lower()])
        elif word.isdigit():
            block[at] = block[at] if int(word) > 1 else 1
            grid.append(int(word))
        else:
            grid.append(-(-sizes[word] // block[at]))
    return tuple(grid), tuple(block[: len(grid)])
