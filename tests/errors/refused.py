"""Kernels that must be refused. Each function is compiled for `ARGUMENTS` by `test_refusals`.

The line a refusal points at is part of the golden text, so new kernels go to the end.
"""
# ruff: noqa: F841, B018, E501, PLW0642, SIM115, B007, RUF100, B035, C416, F811, SIM117, RUF005, UP031, SIM108

import math

import numpy as np

import sarek_numba as sarek

TABLE = np.arange(4)
FACTOR = 3


@sarek.function
def half(value):
    return value * 0.5


@sarek.function
def forever(n):
    return 1 + forever(n - 1) if n > 0 else 0


def plain(value):
    return value + 1


def walrus(x, n):
    if (v := x[0]) > 0:
        x[1] = v


def comprehension(x, n):
    x[0] = sum([k for k in range(3)])


def formatted(x, n):
    print(f"{n}")


def try_block(x, n):
    try:
        x[0] = 1
    finally:
        x[1] = 2


def generator(x, n):
    yield x[0]


def inner_function(x, n):
    def inner(a):
        return a + n

    x[0] = inner(1)


def a_lambda(x, n):
    f = lambda a: a + 1  # noqa: E731
    x[0] = f(n)


def a_list(x, n):
    values = [1, 2, 3]
    x[0] = values[0]


def a_dict(x, n):
    x[0] = {1: 2}[1]


def star_unpacking(x, n):
    a, *b = (1, 2, 3)
    x[0] = a


def match_mapping(x, n):
    match n:
        case {"a": 1}:
            x[0] = 1


def raise_statement(x, n):
    if n > 3:
        raise ValueError("n")


def foreign_with(x, n):
    with open("file"):
        x[0] = 1


def import_inside(x, n):
    import math as m

    x[0] = m.pi


def global_statement(x, n):
    global FACTOR
    FACTOR = 4


def make_array(x, n):
    t = np.zeros(4)
    x[0] = t[0]


def string_value(x, n):
    s = "abc"
    x[0] = len(s)


def calls_python_function(x, n):
    x[0] = plain(n)


def recursion(x, n):
    x[0] = forever(n)


def captured_array(x, n):
    x[0] = TABLE[n]


def unknown_name(x, n):
    x[0] = missing + n  # noqa: F821


def unknown_attribute(x, n):
    x[0] = x.colour


def unknown_member(x, n):
    x[0] = math.cosine(n)


def wrong_arity(x, n):
    x[0] = half(1.0, 2.0)


def unknown_keyword(x, n):
    x[0] = half(amount=1.0)


def float_index(x, n):
    x[n / 2] = 1


def too_many_indices(x, n):
    x[0, 1] = 1


def float_range(x, n):
    for k in range(1.5):
        x[k] = 1


def zero_step(x, n):
    for k in range(0, n, 0):
        x[k] = 1


def array_as_condition(x, n):
    if x:
        x[0] = 1


def bool_arithmetic(x, n):
    x[0] = (n > 1) + (n > 2)


def constant_too_big(x, n, small):
    small[0] = small[1] + 300


def store_too_big(x, n, small):
    small[0] = 256


def runtime_weak_into_uint8(x, n, small):
    small[0] = small[1] + n


def negative_power(x, n, small):
    small[0] = small[1] ** -1


def join_int_float(x, n, small):
    if n > 0:
        t = small[0]
    else:
        t = x[0]
    x[1] = t


def join_signs(x, n, big):
    if n > 0:
        t = big[0]
    else:
        t = n_as_int32(n)
    big[1] = t


@sarek.function
def n_as_int32(n):
    return np.int32(n)


def and_of_signs(x, n, big):
    big[0] = big[1] & np.int64(n)


def never_assigned(x, n):
    x[0] = t  # noqa: F821
    t = 1


def returns_a_value(x, n):
    return x[0]


def write_to_read_only(x, n, fixed):
    fixed[0] = 1


def assign_to_argument_shape(x, n):
    x.shape = (1,)


def divergent_barrier(x, n):
    if sarek.thread_idx.x < n:
        sarek.barrier()
        x[0] = 1


def barrier_after_divergent_return(x, n):
    i = sarek.global_idx.x
    if i >= len(x):
        return
    x[i] = 1
    sarek.barrier()


def barrier_in_divergent_loop(x, n):
    for k in range(sarek.thread_idx.x):
        sarek.barrier()


def shape_not_constant(x, n):
    tile = sarek.shared.array(n, sarek.float32)
    tile[0] = x[0]


def unsupported_dtype(x, n):
    tile = sarek.shared.array(16, np.timedelta64)
    x[0] = tile[0]


def atomic_xor_on_float(x, n):
    sarek.atomic.xor(x, 0, 1)


def atomic_on_uint8(x, n, small):
    sarek.atomic.add(small, 0, 1)


def different_arrays(x, n, small):
    a = x
    if n > 0:
        a = sarek.shared.array(4, sarek.float32)
    x[0] = a[0]


def keyword_to_intrinsic(x, n):
    sarek.mem_fence(scope="warp")


def complex_number(x, n):
    x[0] = 1 + 2j


def delete_element(x, n):
    del x[0]


def slice_assignment(x, n):
    x[1:3] = 0


def two_mistakes(x, n):
    x[0] = x[n / 2]
    x[1] = math.cosine(n)


def stated_result(x) -> sarek.float32:
    x[0] = 1
