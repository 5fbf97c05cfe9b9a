"""Kernels whose warps reach their collectives whole, and kernels of which this is not so.

As `convergence`, with warps of 4 threads in blocks of 8; a refused kernel marks its line with
`# BUG`.
"""
# ruff: noqa: B007

from __future__ import annotations

import sarek_numba as sarek
from tests.conformance.convergence import doubled
from tests.conformance.convergence_corpus import Corpus

_corpus = Corpus()
ACCEPTED, REFUSED = _corpus.accepted, _corpus.refused
accepted, refused = _corpus.accept, _corpus.refuse


@sarek.function
def total(value):
    return sarek.warp.sum(value)


@sarek.function
def total_if(condition, value):
    if condition:
        return sarek.warp.sum(value)
    return value


@sarek.function
def rounds(limit, value):
    for k in range(limit):
        value += sarek.warp.shuffle_xor(value, 1)
    return value


# --- accepted -------------------------------------------------------------------------------------


@accepted
def sum_of_everything(out, x):
    i = sarek.global_idx.x
    out[i] = sarek.warp.sum(x[i])


@accepted
def sum_under_an_argument(out, x, n):
    i = sarek.global_idx.x
    if n > 2:
        out[i] = sarek.warp.sum(x[i])


@accepted
def sum_under_a_block_index(out, x):
    i = sarek.global_idx.x
    if sarek.block_idx.x == 1:
        out[i] = sarek.warp.sum(x[i])


@accepted
def sum_under_dimensions(out, x):
    i = sarek.global_idx.x
    if sarek.gridsize(1) > 8 or sarek.block_dim.y == 2:
        out[i] = sarek.warp.sum(x[i])


@accepted
def sum_under_the_size_of_a_warp(out, x):
    i = sarek.global_idx.x
    if sarek.warp.size >= 4:
        out[i] = sarek.warp.sum(x[i])


@accepted
def shuffles_in_a_loop_over_distances(out, x):
    value = x[sarek.global_idx.x]
    distance = sarek.warp.size // 2
    while distance > 0:
        value += sarek.warp.shuffle_xor(value, distance)
        distance //= 2
    out[sarek.global_idx.x] = value


@accepted
def shuffles_under_a_loop_counter(out, x, n):
    value = x[sarek.global_idx.x]
    for k in range(n):
        if k % 2 == 0:
            value = sarek.warp.shuffle_up(value, k)
    out[sarek.global_idx.x] = value


@accepted
def shuffle_of_a_padded_value(out, x):
    i = sarek.global_idx.x
    value = x[i] if i < len(x) - 3 else 0
    out[i] = sarek.warp.shuffle_down(value, 1)


@accepted
def vote_under_a_vote(out, x):
    i = sarek.global_idx.x
    if sarek.warp.any(x[i] > 0):
        out[i] = 1
        if sarek.warp.all(x[i] > 0):
            out[i] = sarek.warp.max(x[i])


@accepted
def sum_under_a_sum(out, x):
    i = sarek.global_idx.x
    if sarek.warp.sum(x[i]) > 3:
        out[i] = sarek.warp.min(x[i])


@accepted
def sum_under_a_ballot(out, x):
    i = sarek.global_idx.x
    votes = sarek.warp.ballot(sarek.warp.lane < 2)
    if votes & 1 != 0:
        out[i] = sarek.warp.sum(x[i])


@accepted
def sum_under_the_value_of_one_lane(out, x):
    i = sarek.global_idx.x
    first = sarek.warp.shuffle(x[i], 0)
    if first > 0:
        out[i] = sarek.warp.sum(x[i])


@accepted
def sum_under_an_extreme(out, x):
    i = sarek.global_idx.x
    if sarek.warp.max(i) % 3 == 0:
        out[i] = sarek.warp.sum(x[i])


@accepted
def loop_while_any(out, x):
    i = sarek.global_idx.x
    left = sarek.warp.lane
    while sarek.warp.any(left > 0):
        left -= 1
    out[i] = left


@accepted
def loop_left_by_whole_warps(out, x):
    i = sarek.global_idx.x
    value = x[i]
    while True:
        value += 1
        if sarek.warp.all(value > sarek.block_idx.x):
            break
        value += sarek.warp.shuffle_xor(value, 1)
    out[i] = value


@accepted
def loop_that_whole_warps_continue(out, n):
    i = sarek.global_idx.x
    count = i
    for k in range(n):
        if sarek.warp.any(i == k):
            continue
        count += sarek.warp.sum(k)
    out[i] = count


@accepted
def loop_as_long_as_a_warp_says(out, x):
    i = sarek.global_idx.x
    value = 0
    for k in range(sarek.warp.max(x[i])):
        value += sarek.warp.sum(k)
    out[i] = value


@accepted
def return_of_whole_warps(out, x):
    i = sarek.global_idx.x
    if sarek.warp.all(i < 4):
        return
    out[i] = sarek.warp.sum(x[i])


@accepted
def return_of_whole_blocks(out, x, n):
    i = sarek.global_idx.x
    if sarek.block_idx.x > n:
        return
    out[i] = sarek.warp.sum(x[i])


@accepted
def behind_divergent_flow(out, x):
    i = sarek.global_idx.x
    value = x[i]
    if sarek.warp.lane == 0:
        value = 7
    for k in range(i):
        if k == 3:
            break
        value += k
    out[i] = sarek.warp.sum(value)


@accepted
def a_helper_that_sums(out, x):
    i = sarek.global_idx.x
    out[i] = total(x[i]) + total(1)


@accepted
def a_helper_under_an_argument(out, x, n):
    i = sarek.global_idx.x
    out[i] = total_if(n == 3, x[i])


@accepted
def a_helper_under_a_vote(out, x):
    i = sarek.global_idx.x
    out[i] = total_if(sarek.warp.any(i == 2), x[i])


@accepted
def a_helper_that_loops(out, x, n):
    i = sarek.global_idx.x
    out[i] = rounds(n, x[i])


@accepted
def under_what_a_helper_sums(out, x):
    i = sarek.global_idx.x
    if total(x[i]) > 2:
        out[i] = sarek.warp.ballot(x[i] > 0)


@accepted
def under_what_a_helper_computes(out, x, n):
    i = sarek.global_idx.x
    if doubled(n) > 5:
        out[i] = sarek.warp.sum(x[i])


@accepted
def under_an_element_of_the_block(out, x):
    i = sarek.global_idx.x
    if x[sarek.block_idx.x] > 0:
        out[i] = sarek.warp.sum(x[i])


@accepted
def under_a_shared_value(out, x):
    flag = sarek.shared.array(1, sarek.int32)
    i = sarek.global_idx.x
    if sarek.thread_idx.x == 0:
        flag[0] = 1
    sarek.barrier()
    if flag[0] > 0:
        out[i] = sarek.warp.sum(x[i])


@accepted
def a_block_barrier_under_a_sum_of_uniform_values(out, n):
    if sarek.warp.sum(n) > 3:
        sarek.barrier()
    out[sarek.global_idx.x] = n


@accepted
def a_block_barrier_under_a_shuffled_argument(out, n):
    if sarek.warp.shuffle(n, sarek.warp.lane) > 2:
        sarek.barrier()
    out[sarek.global_idx.x] = n


@accepted
def warp_barrier_under_a_vote(out, x):
    tile = sarek.shared.array(8, sarek.int32)
    t = sarek.thread_idx.x
    tile[t] = x[sarek.global_idx.x]
    if sarek.warp.any(tile[t] > 0):
        sarek.warp_barrier()
        out[sarek.global_idx.x] = tile[t ^ 1]


@accepted
def warp_barriers_in_a_uniform_loop(out, n):
    tile = sarek.shared.array(8, sarek.int32)
    t = sarek.thread_idx.x
    tile[t] = t
    for k in range(n):
        sarek.warp_barrier()
        value = tile[t ^ 1]
        sarek.warp_barrier()
        tile[t] = value + 1
    out[sarek.global_idx.x] = tile[t]


@accepted
def collectives_between_block_barriers(out, x):
    partial = sarek.shared.array(2, sarek.int32)
    i = sarek.global_idx.x
    mine = sarek.warp.sum(x[i])
    if sarek.warp.lane == 0:
        partial[sarek.thread_idx.x // sarek.warp.size] = mine
    sarek.barrier()
    out[i] = sarek.warp.sum(partial[sarek.warp.lane] if sarek.warp.lane < 2 else 0)


@accepted
def conditional_expression_of_an_argument(out, x, n):
    i = sarek.global_idx.x
    out[i] = sarek.warp.sum(x[i]) if n > 1 else 0


@accepted
def behind_and_of_uniform_values(out, x, n):
    i = sarek.global_idx.x
    if n > 1 and sarek.warp.any(x[i] > 0) and sarek.warp.all(x[i] < 9):
        out[i] = 1


@accepted
def in_nested_uniform_loops(out, x, n):
    value = x[sarek.global_idx.x]
    for a in range(n):
        for b in range(a, n):
            value += sarek.warp.shuffle_down(value, a + b)
    out[sarek.global_idx.x] = value


@accepted
def behind_a_loop_left_by_an_argument(out, n):
    i = sarek.global_idx.x
    for k in range(8):
        if k == n:
            break
    out[i] = sarek.warp.sum(k)


@accepted
def under_a_block_index_and_a_loop_counter(out, n):
    i = sarek.global_idx.x
    value = 0
    for k in range(n):
        if (k + sarek.block_idx.x) % 2 == 0 or k > sarek.block_dim.x:
            value += sarek.warp.max(i + k)
    out[i] = value


# --- refused --------------------------------------------------------------------------------------


@refused("i < len(x)")
def sum_under_the_usual_guard(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i] = sarek.warp.sum(x[i])  # BUG


@refused("i >= len(x)")
def sum_behind_the_usual_return(out, x):
    i = sarek.global_idx.x
    if i >= len(x):
        return
    out[i] = sarek.warp.sum(x[i])  # BUG


@refused("sarek.warp.lane < 2")
def sum_of_the_lower_lanes(out, x):
    if sarek.warp.lane < 2:
        out[0] = sarek.warp.sum(x[0])  # BUG


@refused("sarek.warp.lane == 0")
def shuffle_to_one_lane(out, x):
    i = sarek.global_idx.x
    if sarek.warp.lane == 0:
        out[i] = sarek.warp.shuffle(x[i], 3)  # BUG


@refused("t // sarek.warp.size == 0")
def sum_of_the_first_row(out, x):  # in a block of rows it is not the first warp
    t = sarek.thread_idx.x
    if t // sarek.warp.size == 0:
        out[t] = sarek.warp.sum(x[t])  # BUG


@refused("sarek.thread_idx.y > 0")
def sum_of_some_rows(out, x):
    if sarek.thread_idx.y > 0:
        out[0] = sarek.warp.sum(x[0])  # BUG


@refused("x[i] > 0")
def vote_under_a_value(out, x):
    i = sarek.global_idx.x
    if x[i] > 0:
        out[i] = sarek.warp.ballot(x[i] > 1)  # BUG


@refused("x[i] > 0")
def vote_in_the_other_branch(out, x):
    i = sarek.global_idx.x
    if x[i] > 0:
        out[i] = 1
    elif sarek.warp.any(x[i] < 0):  # BUG
        out[i] = 2


@refused("out[0] > 0")
def sum_under_an_element_that_is_written(out, x):
    i = sarek.global_idx.x
    if out[0] > 0:
        out[i] = sarek.warp.sum(x[i])  # BUG


@refused("old > 3")
def sum_under_an_old_value(out, x):
    old = sarek.atomic.add(out, 0, 1)
    if old > 3:
        out[1] = sarek.warp.sum(x[0])  # BUG


@refused("other > 0")
def sum_under_a_shuffled_value(out, x):
    i = sarek.global_idx.x
    other = sarek.warp.shuffle_down(x[i], 1)
    if other > 0:
        out[i] = sarek.warp.sum(x[i])  # BUG


@refused("other > 0")
def sum_under_the_value_of_differing_lanes(out, x):
    i = sarek.global_idx.x
    other = sarek.warp.shuffle(x[i], i)
    if other > 0:
        out[i] = sarek.warp.sum(x[i])  # BUG


@refused("other > 0")
def sum_under_the_value_of_a_segment(out, x):
    i = sarek.global_idx.x
    other = sarek.warp.shuffle(x[i], 0, 2)
    if other > 0:
        out[i] = sarek.warp.sum(x[i])  # BUG


@refused("other > 0")
def sum_under_the_value_of_a_lane_outside(out, x):
    i = sarek.global_idx.x
    other = sarek.warp.shuffle(x[i], 9)
    if other > 0:
        out[i] = sarek.warp.sum(x[i])  # BUG


@refused("other > 0")
def sum_under_the_value_of_a_lane_that_may_be_outside(out, x, n):
    i = sarek.global_idx.x
    other = sarek.warp.shuffle(x[i], n)
    if other > 0:
        out[i] = sarek.warp.sum(x[i])  # BUG


@refused("i % 8")
def a_loop_of_differing_length(out, x):
    i = sarek.global_idx.x
    for k in range(i % 8):
        out[i] = sarek.warp.sum(k)  # BUG


@refused("value > 0")
def a_while_of_differing_length(out, x):
    i = sarek.global_idx.x
    value = x[i]
    while value > 0:
        value = sarek.warp.shuffle_up(value, 1) - 1  # BUG
    out[i] = value


@refused("k == i")
def a_loop_that_some_lanes_leave(out, n):
    i = sarek.global_idx.x
    for k in range(n):
        if k == i:
            break
        out[i] = sarek.warp.sum(k)  # BUG


@refused("k == i")
def a_loop_that_some_lanes_continue(out, n):
    i = sarek.global_idx.x
    for k in range(n):
        if k == i:
            continue
        out[i] = sarek.warp.sum(k)  # BUG


@refused("i > 5")
def a_return_within_a_uniform_loop(out, n):
    i = sarek.global_idx.x
    for k in range(n):
        if i > 5:
            return
        out[i] = sarek.warp.sum(k)  # BUG


@refused("count > 1")
def a_counter_of_a_loop_left_apart(out, n):
    i = sarek.global_idx.x
    count = 0
    for k in range(n):
        if k == i:
            break
        count += 1
    if count > 1:
        out[i] = sarek.warp.sum(count)  # BUG


@refused("m > 0")
def a_variable_assigned_apart(out, n):
    i = sarek.global_idx.x
    m = 0
    if sarek.warp.lane == 1:
        m = n
    if m > 0:
        out[i] = sarek.warp.sum(m)  # BUG


@refused("m > 0")
def a_conditional_expression_of_lanes(out, n):
    i = sarek.global_idx.x
    m = n if sarek.warp.lane == 1 else 0
    if m > 0:
        out[i] = sarek.warp.sum(m)  # BUG


@refused("i > 2")
def one_side_of_a_conditional_expression(out, x):
    i = sarek.global_idx.x
    out[i] = sarek.warp.sum(x[i]) if i > 2 else 0  # BUG


@refused("i > 2")
def behind_and_of_a_thread(out, x):
    i = sarek.global_idx.x
    if i > 2 and sarek.warp.any(x[i] > 0):  # BUG
        out[i] = 1


@refused("i > 2")
def behind_or_of_a_thread(out, x):
    i = sarek.global_idx.x
    if i > 2 or sarek.warp.any(x[i] > 0):  # BUG
        out[i] = 1


@refused("i % 2 == 0")
def a_helper_called_by_some(out, x):
    i = sarek.global_idx.x
    if i % 2 == 0:
        out[i] = total(x[i])  # BUG


@refused("doubled(i) > 2")
def under_what_a_helper_gives_a_thread(out, x):
    i = sarek.global_idx.x
    if doubled(i) > 2:
        out[i] = sarek.warp.sum(x[i])  # BUG


@refused("flag[0] > 0")
def under_a_shared_value_without_a_barrier(out, x):
    flag = sarek.shared.array(1, sarek.int32)
    i = sarek.global_idx.x
    flag[0] = 1
    if flag[0] > 0:
        out[i] = sarek.warp.sum(x[i])  # BUG


@refused("flag[0] > 0")
def under_a_shared_value_behind_a_warp_barrier(out, x):  # another warp may still write it
    flag = sarek.shared.array(1, sarek.int32)
    i = sarek.global_idx.x
    flag[0] = 1
    sarek.warp_barrier()
    if flag[0] > 0:
        out[i] = sarek.warp.sum(x[i])  # BUG


@refused("i > 2")
def a_warp_barrier_of_some(out, x):
    i = sarek.global_idx.x
    if i > 2:
        sarek.warp_barrier()  # BUG
    out[i] = 1


@refused("i % 8")
def warp_barriers_of_differing_number(out, x):
    i = sarek.global_idx.x
    for k in range(i % 8):
        sarek.warp_barrier()  # BUG
    out[i] = 1


@refused("sarek.warp.any(x[i] > 0)")
def a_block_barrier_under_a_vote(out, x):
    i = sarek.global_idx.x
    if sarek.warp.any(x[i] > 0):
        sarek.barrier()  # BUG
    out[i] = 1


@refused("sarek.warp.sum(x[i]) > 0")
def a_block_barrier_while_a_warp_says_so(out, x):
    i = sarek.global_idx.x
    while sarek.warp.sum(x[i]) > 0:
        sarek.barrier()  # BUG
    out[i] = 1


@refused("sarek.warp.all(x[i] > 3)")
def a_block_barrier_behind_a_return_of_warps(out, x):
    i = sarek.global_idx.x
    if sarek.warp.all(x[i] > 3):
        return
    sarek.barrier()  # BUG
    out[i] = 1


@refused("sarek.warp.any(x[i] > 0) and i > 2")
def under_a_vote_and_a_thread(out, x):
    i = sarek.global_idx.x
    if sarek.warp.any(x[i] > 0) and i > 2:
        out[i] = sarek.warp.sum(x[i])  # BUG


@refused("sarek.warp.lane > 0")
def active_mask_of_some_lanes(out, x):
    i = sarek.global_idx.x
    if sarek.warp.lane > 0:
        out[i] = sarek.warp.active_mask()  # BUG
