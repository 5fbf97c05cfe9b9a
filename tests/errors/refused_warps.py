"""Warp operations with arguments that have no meaning, and in flow that is not uniform."""

import sarek_numba as sarek


def warp_shuffle_of_an_array(x, n):
    x[0] = sarek.warp.shuffle(x, 0)


def warp_shuffle_from_a_float(x, n):
    x[0] = sarek.warp.shuffle(x[0], 1.5)


def warp_distance_is_a_float(x, n):
    x[0] = sarek.warp.shuffle_down(x[0], x[1])


def warp_mask_is_a_bool(x, n):
    x[0] = sarek.warp.shuffle_xor(x[0], n > 2)


def warp_width_at_run_time(x, n):
    x[0] = sarek.warp.shuffle(x[0], 0, n)


def warp_width_of_no_power(x, n):
    x[0] = sarek.warp.shuffle_up(x[0], 1, width=24)


def warp_width_beyond_the_warp(x, n):
    x[0] = sarek.warp.shuffle_down(x[0], 1, 64)


def warp_width_of_a_float(x, n):
    x[0] = sarek.warp.shuffle_xor(x[0], 1, width=8.0)


def warp_sum_of_bools(x, n):
    x[0] = sarek.warp.sum(x[0] > 1)


def warp_maximum_of_a_tuple(x, n):
    x[0] = sarek.warp.max((x[0], x[1]))


def warp_vote_on_a_string(x, n):
    if sarek.warp.any("yes"):
        x[0] = 1


def warp_shuffle_without_a_lane(x, n):
    x[0] = sarek.warp.shuffle(x[0])


def warp_unknown_operation(x, n):
    x[0] = sarek.warp.broadcast(x[0], 0)


def warp_size_is_no_function(x, n):
    x[0] = sarek.warp.size()


def warp_barrier_takes_nothing(x, n):
    sarek.warp_barrier(32)


def warp_sum_under_a_guard(x, n):
    i = sarek.global_idx.x
    if i < len(x):
        x[i] = sarek.warp.sum(x[i])


def warp_vote_after_a_return(x, n):
    i = sarek.global_idx.x
    if i >= len(x):
        return
    if sarek.warp.all(x[i] > 0):
        x[i] = 1


def warp_barrier_in_a_loop_left_apart(x, n):
    for _ in range(sarek.thread_idx.x):
        sarek.warp_barrier()


@sarek.function
def total(value):
    return sarek.warp.sum(value)


def warp_collective_of_a_helper(x, n):
    t = sarek.thread_idx.x
    if t % 2 == 0:
        x[t] = total(x[t])


def warp_collective_in_a_conditional_expression(x, n):
    t = sarek.thread_idx.x
    x[t % 8] = sarek.warp.max(x[t % 8]) if t > n else 0


def warp_collective_behind_and(x, n):
    t = sarek.thread_idx.x
    if t > n and sarek.warp.any(x[t % 8] > 1):
        x[t % 8] = 1


def block_barrier_where_a_warp_agrees(x, n):
    if sarek.warp.any(x[sarek.thread_idx.x % 8] > 7):
        sarek.barrier()
