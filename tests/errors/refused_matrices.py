"""Cooperative matrices that do not fit: fragments, arrays, strides, other uses, divergent flow."""
# ruff: noqa: F841, B007, RET504, RUF100

import numpy as np

import sarek_numba as sarek

config = sarek.coopmat.Config(8, 8, 8, "int8", "int8", "int32", "int32")
wide = sarek.coopmat.Config(16, 16, 16, "int8", "int8", "int32", "int32")
floats = sarek.coopmat.Config(8, 8, 8, "float32", "float32", "float32", "float32")
table = np.zeros(64, np.float32)


@sarek.function
def plain(f):
    return 1


@sarek.function
def _declares(x):
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.store(f, x, 0, 8)


def matrix_configuration_inside(x, n):
    inner = sarek.coopmat.Config(8, 8, 8, "int8", "int8", "int32", "int32")


def matrix_of_no_configuration(x, n):
    f = sarek.coopmat.fragment(8, "a")


def matrix_use_unknown(x, n):
    f = sarek.coopmat.fragment(config, "d")


def matrix_use_at_run_time(x, n):
    f = sarek.coopmat.fragment(config, n)


def matrix_load_of_a_number(x, n):
    sarek.coopmat.load(x[0], x, 0, 8)


def matrix_load_from_a_number(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.load(f, x[0], 0, 8)


def matrix_load_from_around(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.load(f, table, 0, 8)


def matrix_element_type(x, n):
    f = sarek.coopmat.fragment(config, "a")
    sarek.coopmat.load(f, x, 0, 8)


def matrix_in_local_memory(x, n):
    own = sarek.local.array(64, sarek.float32)
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.load(f, own, 0, 8)


def matrix_in_gaps(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.load(f, x[::2], 0, 8)


def matrix_slice_as_place(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.load(f, x, slice(0, 4), 8)


def matrix_stride_misaligned(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.load(f, x, 0, 9)


def matrix_stride_negative(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.store(f, x, 0, -8)


def matrix_stride_of_a_float(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.load(f, x, 0, 8.0)


def matrix_place_misaligned(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.load(f, x, 2, 8)


def matrix_layout_unknown(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.load(f, x, 0, 8, layout="diagonal")


def matrix_store_to_what_is_read_only(fixed, n):
    f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.store(f, fixed, 0, 8)


def matrix_fragments_mismatched(x, n):
    a = sarek.coopmat.fragment(config, "a")
    b = sarek.coopmat.fragment(wide, "b")
    c = sarek.coopmat.fragment(config, "c")
    sarek.coopmat.muladd(c, a, b, c)


def matrix_operands_exchanged(x, n):
    a = sarek.coopmat.fragment(config, "a")
    b = sarek.coopmat.fragment(config, "b")
    c = sarek.coopmat.fragment(config, "c")
    sarek.coopmat.muladd(c, b, a, c)


def matrix_muladd_of_a_number(x, n):
    c = sarek.coopmat.fragment(config, "c")
    sarek.coopmat.muladd(c, x[0], c, c)


def matrix_fill_beyond_the_type(x, n):
    f = sarek.coopmat.fragment(config, "a")
    sarek.coopmat.fill(f, 300)


def matrix_fill_with_an_array(x, n):
    f = sarek.coopmat.fragment(config, "a")
    sarek.coopmat.fill(f, x)


def matrix_second_name(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    g = f
    sarek.coopmat.store(g, x, 0, 8)


def matrix_second_assignment(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    if n > 1:
        f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.store(f, x, 0, 8)


def matrix_as_argument(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    x[0] = plain(f)


def matrix_in_a_tuple(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    both = (f, 1)


def matrix_indexed(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    x[0] = f[0, 0]


def matrix_added_to(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    x[0] = f + 1


def matrix_printed(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    print(f)


def matrix_returned(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    return f


def matrix_in_a_device_function(x, n):
    _declares(x)


def matrix_beyond_its_block(x, n):
    for i in range(n):
        f = sarek.coopmat.fragment(floats, "a")
    sarek.coopmat.store(f, x, 0, 8)


def matrix_in_divergent_flow(x, n):
    f = sarek.coopmat.fragment(floats, "a")
    if sarek.thread_idx.x < 3:
        sarek.coopmat.load(f, x, 0, 8)


def matrix_unknown_operation(x, n):
    sarek.coopmat.transpose(x)
