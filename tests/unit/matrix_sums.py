"""Products of matrices as people write them: loops over k, sums, epilogues, types."""

from __future__ import annotations

import numpy as np
from matrix_examples import product

import sarek_numba as sarek
from sarek_numba import math

f32 = np.float32


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


# --- rarer forms ----------------------------------------------------------------------------------


@product("c a b")
def from_the_second_on(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(1, a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b")
def bounded_below_within(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            if k >= 2:
                t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b")
def without_the_first_row(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1] and i >= 1:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b")
def every_other_row(c, a, b):
    i, j = sarek.grid(2)
    if 2 * i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[2 * i, k] * b[k, j]
        c[2 * i, j] = t


@product("c a b")
def one_row(c, a, b):
    i, j = sarek.grid(2)
    if i == 0 and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b")
def rows_backwards(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[c.shape[0] - 1 - i, j] = t


@product("c a b")
def updated_after_the_store(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t
        c[i, j] += 1
        if t < 0:
            c[i, j] = -c[i, j]


@product("c a b")
def two_that_go_down(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        k = a.shape[1] - 1
        p = a.shape[1] - 1
        while k >= 0:
            t += a[i, p] * b[k, j]
            p -= 1
            k -= 1
        c[i, j] = t


@product("c a b")
def range_of_an_int32(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(np.int32(a.shape[1])):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@product("c a b")
def unrolled_by_while(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        k = 0
        while k + 2 <= a.shape[1]:
            t += a[i, k] * b[k, j] + a[i, k + 1] * b[k + 1, j]
            k += 2
        while k < a.shape[1]:
            t += a[i, k] * b[k, j]
            k += 1
        c[i, j] = t


@product("c a b")
def counts_before_it_reads(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        k = 0
        while k < a.shape[1]:
            k += 1
            t += a[i, k - 1] * b[k - 1, j]
        c[i, j] = t + f32(k)


@product("c a b")
def operands_in_opposite_order(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = f32(0)
        for k in range(a.shape[1]):
            t += a[i, a.shape[1] - 1 - k] * b[k, j]
        c[i, j] = t


@product("c a b alpha beta")
def factor_on_an_operand(c, a, b, alpha, beta):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        t = beta * c[i, j]
        for k in range(a.shape[1]):
            x = a[i, k] * alpha
            t += x * b[k, j]
        c[i, j] = t if t > 0 else f32(j)


@product("c a b", "3 n")
def strides_of_a_constant_block(c, a, b):
    x, j = sarek.thread_idx.x, sarek.global_idx.y
    if j < c.shape[1]:
        for y in range(x, c.shape[0], 4):
            t = f32(0)
            for k in range(a.shape[1]):
                t += a[y, k] * b[k, j]
            c[y, j] = t


@product("c a b", "3 n")
def strides_of_the_grid_with_an_offset(c, a, b):
    i, j = sarek.grid(2)
    for y in range(i, c.shape[0] - 1, sarek.gridsize(2)[0]):
        if j < c.shape[1]:
            t = f32(0)
            for k in range(a.shape[1]):
                t += a[y, k] * b[k, j]
            c[y + 1, j] = t


@product("c a b")
def bounded_within_in_the_output(c, a, b):
    i, j = sarek.grid(2)
    if j < c.shape[1] and i < c.shape[0]:
        c[i, j] = 0
        for k in range((a.shape[1] + 7) // 8 * 8):
            if k < a.shape[1]:
                c[i, j] += a[i, k] * b[k, j]


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
