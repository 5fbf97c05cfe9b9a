"""Products of matrices as people write them: orders of indices, guards, operands."""

from __future__ import annotations

import numpy as np
from matrix_examples import product

import sarek_numba as sarek

f32 = np.float32


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
