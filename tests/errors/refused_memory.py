"""Kernels that misuse arrays of their own, atomics, places and barriers."""
# ruff: noqa

import numpy as np

import sarek_numba as sarek

TABLE = np.arange(4, dtype=np.float32)
EMPTY = np.zeros(0, np.float32)
LARGE = np.zeros(20_000, np.float32)
DURATIONS = np.zeros(4, "m8[s]")


@sarek.function
def wait_and_double(value):
    sarek.barrier()
    return value * 2


def shape_negative(x, n):
    tile = sarek.shared.array(-4, sarek.float32)


def shape_with_zero(x, n):
    tile = sarek.shared.array((4, 0), sarek.float32)


def shape_of_floats(x, n):
    tile = sarek.shared.array((4, 2.5), sarek.float32)


def shape_of_no_axes(x, n):
    tile = sarek.shared.array((), sarek.float32)


def shape_of_strings(x, n):
    tile = sarek.shared.array("4", sarek.float32)


def shape_of_an_array(x, n):
    tile = sarek.shared.array(x.shape, sarek.float32)


def shape_bool(x, n):
    tile = sarek.shared.array(True, sarek.float32)


def local_shape_at_run_time(x, n):
    buffer = sarek.local.array(n, sarek.float32)


def local_of_no_elements(x, n):
    buffer = sarek.local.array(0, sarek.float32)


def no_dtype(x, n):
    tile = sarek.shared.array(4)


def dtype_is_a_number(x, n):
    tile = sarek.shared.array(4, 32)


def dtype_is_a_string(x, n):
    tile = sarek.shared.array(4, "float32")


def dtype_of_python(x, n):
    tile = sarek.shared.array(4, dtype=bytes)


def dtype_float128(x, n):
    tile = sarek.shared.array(4, np.longdouble)


def unknown_memory(x, n):
    tile = sarek.shared.zeros(4, sarek.float32)


def dynamic_offset_at_run_time(x, n):
    view = sarek.shared.dynamic(n, sarek.float32)


def dynamic_offset_unaligned(x, n):
    view = sarek.shared.dynamic(6, sarek.float32)


def dynamic_offset_negative(x, n):
    view = sarek.shared.dynamic(-4, sarek.float32)


def constant_of_argument(x, n):
    table = sarek.const.array_like(x)


def constant_of_number(x, n):
    table = sarek.const.array_like(3)


def constant_of_tuple(x, n):
    table = sarek.const.array_like((1, 2))


def constant_empty(x, n):
    table = sarek.const.array_like(EMPTY)


def constant_too_large(x, n):
    table = sarek.const.array_like(LARGE)


def constant_of_durations(x, n):
    table = sarek.const.array_like(DURATIONS)


def write_to_constant(x, n):
    table = sarek.const.array_like(TABLE)
    table[0] = 1


def write_to_captured(x, n):
    TABLE[0] = 1


def attribute_of_captured(x, n):
    x[0] = TABLE.size


def atomic_float_index(x, n):
    sarek.atomic.add(x, 0.5, 1)


def atomic_too_few_indices(x, n, m):
    sarek.atomic.add(m, 0, 1)


def atomic_too_many_indices(x, n):
    sarek.atomic.add(x, (0, 1), 1)


def atomic_on_number(x, n):
    sarek.atomic.add(n, 0, 1)


def atomic_on_element(x, n):
    sarek.atomic.add(x[0], 1)


def atomic_without_value(x, n):
    sarek.atomic.add(x, 0)


def atomic_value_too_big(x, n, ints):
    sarek.atomic.add(ints, 0, 2**40)


def atomic_value_none(x, n, ints):
    sarek.atomic.exch(ints, 0, None)


def atomic_keyword(x, n, ints):
    sarek.atomic.cas(ints, 0, expected=1, new=2)


def atomic_on_read_only(x, n, fixed):
    sarek.atomic.add(fixed, 0, 1)


def atomic_on_local(x, n):
    buffer = sarek.local.array(4, sarek.int32)
    sarek.atomic.add(buffer, 0, 1)


def atomic_on_constant(x, n):
    table = sarek.const.array_like(TABLE)
    sarek.atomic.add(table, 0, 1)


def grid_of_four(x, n):
    x[0] = sarek.grid(4)


def grid_at_run_time(x, n):
    x[0] = sarek.grid(n)


def index_without_axis(x, n):
    x[sarek.thread_idx] = 1


def index_with_wrong_axis(x, n):
    x[sarek.thread_idx.w] = 1


def index_arithmetic(x, n):
    x[sarek.block_idx * 4] = 1


def index_called(x, n):
    x[sarek.thread_idx()] = 1


def fence_scope_at_run_time(x, n):
    sarek.mem_fence(n)


def barrier_with_argument(x, n):
    sarek.barrier(1)


def barrier_as_value(x, n):
    x[0] = sarek.barrier()


def barrier_by_loaded_value(x, n):
    if x[sarek.thread_idx.x] > 0:
        sarek.barrier()
    x[0] = 1


def barrier_in_divergent_function(x, n):
    if sarek.thread_idx.x < 4:
        x[0] = wait_and_double(x[0])


def superstep_in_divergent_flow(x, n):
    if sarek.thread_idx.x == 0:
        with sarek.superstep():
            x[0] = 1


def barrier_in_conditional_expression(x, n):
    x[0] = wait_and_double(x[0]) if sarek.thread_idx.x < 4 else 0


def barrier_after_divergent_break(x, n):
    for k in range(4):
        if sarek.thread_idx.x == k:
            break
        sarek.barrier()


def two_divergent_barriers(x, n):
    if sarek.thread_idx.x < 4:
        sarek.barrier()
    while x[sarek.thread_idx.x] > 0:
        sarek.barrier()
