"""Kernels whose barriers all threads of a block reach, and kernels of which this is not so.

Parameters say what they are given: `out` and `x` are int32 arrays of 64 elements, `x` is only read,
`n` is the Python int 3. A refused kernel marks the line of its barrier, or of the call that
reaches it, with `# BUG`, and names the text of the condition.
"""
# ruff: noqa: B007

from __future__ import annotations

import sarek_numba as sarek
from tests.conformance.convergence_corpus import Corpus

_corpus = Corpus()
ACCEPTED, REFUSED = _corpus.accepted, _corpus.refused
accepted, refused = _corpus.accept, _corpus.refuse


# --- accepted -------------------------------------------------------------------------------------


@accepted
def under_a_scalar_argument(out, n):
    if n > 2:
        sarek.barrier()
    out[sarek.global_idx.x] = n


@accepted
def under_a_block_index(out):
    if sarek.block_idx.x % 2 == 0:
        sarek.barrier()
    out[sarek.global_idx.x] = 1


@accepted
def under_dimensions(out):
    if sarek.block_dim.x >= 8 and sarek.grid_dim.x > 1:
        sarek.barrier()
    out[sarek.global_idx.x] = 1


@accepted
def in_a_loop_with_a_scalar_bound(out, n):
    i = sarek.global_idx.x
    for k in range(n):
        out[i] = k
        sarek.barrier()


@accepted
def under_a_loop_counter(out, n):
    i = sarek.global_idx.x
    for k in range(n):
        if k % 2 == 1:
            sarek.barrier()
        out[i] = k


@accepted
def in_a_while_that_halves(out):
    i = sarek.global_idx.x
    half = sarek.block_dim.x // 2
    while half > 0:
        sarek.barrier()
        half //= 2
    out[i] = half


@accepted
def under_a_shared_value_behind_a_barrier(out, x):
    t = sarek.thread_idx.x
    flag = sarek.shared.array(1, sarek.int32)
    if t == 0:
        flag[0] = x[0]
    sarek.barrier()
    if flag[0] > 0:
        sarek.barrier()
    out[sarek.global_idx.x] = 1


@accepted
def while_a_shared_value_says_so(out, x):
    t = sarek.thread_idx.x
    flag = sarek.shared.array(1, sarek.int32)
    if t == 0:
        flag[0] = 0
    sarek.barrier()
    while flag[0] < 3:
        sarek.barrier()
        if t == 0:
            flag[0] += 1
        sarek.barrier()
    out[sarek.global_idx.x] = flag[0]


@accepted
def under_an_element_that_is_only_read(out, x, n):
    if x[sarek.block_idx.x + n] > 0:
        sarek.barrier()
    out[sarek.global_idx.x] = 1


@accepted
def as_often_as_an_element_says(out, x):
    for k in range(x[sarek.block_idx.x]):
        sarek.barrier()
    out[sarek.global_idx.x] = 1


@accepted
def behind_a_return_of_whole_blocks(out, n):
    if sarek.block_idx.x >= n:
        return
    out[sarek.global_idx.x] = 1
    sarek.barrier()


@accepted
def in_a_loop_left_by_whole_blocks(out, n):
    k = 0
    while True:
        sarek.barrier()
        k += 1
        if k * (sarek.block_idx.x + 1) > n:
            break
    out[sarek.global_idx.x] = k


@accepted
def in_a_loop_that_whole_blocks_continue(out, n):
    for k in range(n):
        if k == sarek.block_idx.x:
            continue
        sarek.barrier()
    out[sarek.global_idx.x] = n


@accepted
def behind_divergent_flow_that_has_joined(out):
    i = sarek.global_idx.x
    value = 0
    if sarek.thread_idx.x < 3:
        value = 1
    for k in range(sarek.thread_idx.x):
        if k == 2:
            break
        value += k
    sarek.barrier()
    out[i] = value


@accepted
def around_divergent_work(out, n):
    i = sarek.global_idx.x
    for k in range(n):
        if sarek.thread_idx.x > k:
            out[i] = k
        sarek.barrier()


@sarek.function
def synchronise():
    sarek.barrier()


@sarek.function
def doubled(value):
    if value > 2:
        return value * 2
    return value


@sarek.function
def first_big(x, limit):
    for k in range(8):
        if x[k] > limit:
            return k
    return -1


@sarek.function
def wait_if(condition):
    if condition:
        sarek.barrier()


@accepted
def in_a_helper(out):
    synchronise()
    out[sarek.global_idx.x] = 1
    synchronise()


@accepted
def under_the_result_of_a_helper(out, n):
    if doubled(n) > 5:
        sarek.barrier()
    out[sarek.global_idx.x] = doubled(sarek.thread_idx.x)


@accepted
def under_what_a_helper_reads(out, x, n):
    if first_big(x, n) >= 0:
        sarek.barrier()
    out[sarek.global_idx.x] = 1


@accepted
def in_a_helper_under_its_argument(out, n):
    wait_if(n == 3)
    out[sarek.global_idx.x] = 1


@accepted
def under_a_conditional_expression(out, n):
    m = n if sarek.block_idx.x == 0 else n + 1
    if m > 3:
        sarek.barrier()
    out[sarek.global_idx.x] = m


@accepted
def under_a_variable_of_uniform_values(out, n):
    m = 0
    for k in range(n):
        if k == 1:
            m = k
    if m == 1:
        sarek.barrier()
    out[sarek.global_idx.x] = m


@accepted
def superstep_under_a_scalar(out, n):
    if n > 1:
        with sarek.superstep():
            out[sarek.global_idx.x] = 1


@accepted
def in_nested_uniform_loops(out, n):
    total = 0
    for a in range(n):
        for b in range(a, n):
            sarek.barrier()
            total += b
    out[sarek.global_idx.x] = total


@accepted
def before_a_variable_is_no_longer_the_same(out, x, n):
    """What is assigned later counts later: the same variable, which loops hand on."""
    t = sarek.global_idx.x
    g = 0
    for _ in range(n):
        g += 1
    if g > 2:
        sarek.barrier()
    for k in range(x[t]):
        g += k
    out[t] = g


@accepted
def after_a_variable_is_the_same_again(out, x, n):
    t = sarek.global_idx.x
    g = n
    if x[t] > 0:
        g = t
    out[t] = g
    g = n + 1
    while g > 2:
        sarek.barrier()
        g -= 1


@accepted
def a_variable_set_anew_in_each_pass(out, x, n):
    t = sarek.global_idx.x
    for k in range(n):
        g = k
        if g > 1:
            sarek.barrier()
        if x[t] > k:
            g += t
        out[t] = g


# --- refused --------------------------------------------------------------------------------------


@refused("g > 2")
def a_variable_of_the_pass_before(out, x, n):
    """It is the same in the first pass alone."""
    t = sarek.global_idx.x
    g = n
    for k in range(n):
        if g > 2:
            sarek.barrier()  # BUG
        if x[t] > k:
            g += t
    out[t] = g


@refused("g > 2")
def a_variable_assigned_before_some_leave(out, x, n):
    """Those that left a pass early have not set it anew."""
    t = sarek.global_idx.x
    g = t
    for k in range(n):
        if x[t] > k:
            continue
        g = n
    if g > 2:
        sarek.barrier()  # BUG
    out[t] = g


@refused("g > 2")
def a_variable_set_anew_by_some(out, x, n):
    t = sarek.global_idx.x
    g = t
    if x[t] > 0:
        g = n
    if g > 2:
        sarek.barrier()  # BUG
    out[t] = g


@refused("t < n")
def under_a_thread_index(out, n):
    t = sarek.thread_idx.x
    if t < n:
        sarek.barrier()  # BUG
    out[t] = 1


@refused("t < n")
def in_the_other_branch(out, n):
    t = sarek.thread_idx.x
    if t < n:
        out[t] = 1
    else:
        sarek.barrier()  # BUG


@refused("sarek.global_idx.x < len(out)")
def under_the_usual_guard(out):
    if sarek.global_idx.x < len(out):
        out[sarek.global_idx.x] = 1
        sarek.barrier()  # BUG


@refused("x[i] > 0")
def under_a_value_of_each_thread(out, x):
    i = sarek.global_idx.x
    if x[i] > 0:
        sarek.barrier()  # BUG
    out[i] = 1


@refused("out[0] > 0")
def under_an_element_that_is_written(out):
    out[sarek.global_idx.x] = 1
    if out[0] > 0:
        sarek.barrier()  # BUG


@refused("flag[0] > 0")
def under_a_shared_value_without_a_barrier(out):
    flag = sarek.shared.array(1, sarek.int32)
    flag[0] = 1
    if flag[0] > 0:
        sarek.barrier()  # BUG
    out[sarek.global_idx.x] = 1


@refused("i >= len(out)")
def behind_a_return_of_some_threads(out):
    i = sarek.global_idx.x
    if i >= len(out):
        return
    out[i] = 1
    sarek.barrier()  # BUG


@refused("k == t")
def in_a_loop_that_some_threads_leave(out, n):
    t = sarek.thread_idx.x
    for k in range(n):
        if k == t:
            break
        sarek.barrier()  # BUG
    out[t] = 1


@refused("k == t")
def in_a_loop_that_some_threads_continue(out, n):
    t = sarek.thread_idx.x
    for k in range(n):
        if k == t:
            continue
        sarek.barrier()  # BUG
    out[t] = 1


@refused("t")
def in_a_for_of_differing_length(out):
    t = sarek.thread_idx.x
    for k in range(t):
        sarek.barrier()  # BUG
    out[t] = 1


@refused("k < t")
def in_a_while_of_differing_length(out):
    t = sarek.thread_idx.x
    k = 0
    while k < t:
        sarek.barrier()  # BUG
        k += 1
    out[t] = k


@refused("v > 0")
def in_a_while_on_a_value_of_each_thread(out, x):
    i = sarek.global_idx.x
    v = x[i]
    while v > 0:
        v -= 1
        sarek.barrier()  # BUG
    out[i] = v


@refused("m > 0")
def through_a_variable(out):
    t = sarek.thread_idx.x
    a = t * 2
    m = a - 3
    if m > 0:
        sarek.barrier()  # BUG
    out[t] = m


@refused("m > 0")
def through_a_variable_assigned_apart(out):
    t = sarek.thread_idx.x
    m = 0
    if t == 0:
        m = 1
    if m > 0:
        sarek.barrier()  # BUG
    out[t] = m


@refused("count > 2")
def through_a_counter_of_a_loop_left_apart(out, n):
    t = sarek.thread_idx.x
    count = 0
    for k in range(n):
        if k == t:
            break
        count += 1
    if count > 2:
        sarek.barrier()  # BUG
    out[t] = count


@refused("m > 0")
def through_a_conditional_expression(out, n):
    t = sarek.thread_idx.x
    m = n if t == 0 else 0
    if m > 0:
        sarek.barrier()  # BUG
    out[t] = m


@refused("n > 2 and t > 2")
def under_a_uniform_and_a_divergent_condition(out, n):
    t = sarek.thread_idx.x
    if n > 2 and t > 2:
        sarek.barrier()  # BUG
    out[t] = 1


@refused("condition")
def through_the_argument_of_a_helper(out, n):
    t = sarek.thread_idx.x
    wait_if(t < n)
    out[t] = 1


@refused("doubled(t) > 2")
def through_the_result_of_a_helper(out):
    t = sarek.thread_idx.x
    if doubled(t) > 2:
        sarek.barrier()  # BUG
    out[t] = 1


@refused("t < n")
def in_a_helper_that_some_threads_call(out, n):
    t = sarek.thread_idx.x
    if t < n:
        synchronise()  # BUG
    out[t] = 1


@refused("t < n")
def superstep_in_a_divergent_branch(out, n):
    t = sarek.thread_idx.x
    if t < n:
        with sarek.superstep():  # BUG
            out[t] = 1


@refused("old == 0")
def under_the_old_value_of_an_atomic(out):
    old = sarek.atomic.add(out, 0, 1)
    if old == 0:
        sarek.barrier()  # BUG


@refused("t > 4")
def behind_a_return_within_a_uniform_loop(out, n):
    t = sarek.thread_idx.x
    for k in range(n):
        if t > 4:
            return
        sarek.barrier()  # BUG
    out[t] = 1
