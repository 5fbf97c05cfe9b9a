"""Functions that are given by texts, used in ways that have no meaning. New ones go to the end."""

import numpy as np

import sarek_numba as sarek


def _doubled(value):
    return value * 2


def _first(row):
    return row[0]


def _both(value):
    return value, value


def _waiting(value):
    sarek.barrier()
    return value


def _shuffled(value):
    return sarek.warp.shuffle(value, 0)


def _refused(value):
    return value + "1"


def _given(fallback, text="1"):
    return sarek.inline_source({"opencl": text, "native": text}, fallback=fallback)


double = _given(_doubled)
first = _given(_first)
both = _given(_both)
waiting = _given(_waiting)
shuffled = _given(_shuffled)
broken = _given(_refused)
SOURCE = {"opencl": "1"}


def _halved(value):
    return value / 2


def _double_of(value):
    return np.float64(value)


sarek.register_intrinsic("test_halved", ["float32(float32)", "float32(int16)"], SOURCE, _halved)
sarek.register_intrinsic("test_widened", "float32(float32)", SOURCE, _double_of)


def text_takes_a_record(x, points):
    x[0] = double(points[0])


def text_takes_an_array_of_records(x, points):
    x[0] = first(row=points)


def text_takes_a_complex_number(x, z):
    x[0] = double(z[0]).real


def text_takes_a_tuple(x, n):
    x[0] = double((n, n))


def text_takes_a_local_array(x, n):
    buffer = sarek.local.array(4, np.float32)
    buffer[0] = n
    x[0] = first(buffer)


def text_takes_every_second_element(x, n):
    x[0] = first(x[::2])


def text_takes_a_string(x, n):
    x[0] = double("n")


def text_of_wrong_arity(x, n):
    x[0] = double(n, n)


def text_for_a_tuple(x, n):
    x[0] = both(n)[0]


def text_for_a_barrier(x, n):
    x[0] = waiting(n)


def text_for_a_shuffle(x, n):
    x[0] = shuffled(x[0])


def text_with_a_refused_fallback(x, n):
    x[0] = broken(x[0])


def inline_source_in_a_kernel(x, n):
    double = sarek.inline_source(SOURCE, fallback=_doubled)
    x[0] = double(n)


def intrinsic_of_wider_type(x, longs):
    x[0] = sarek.math.test_halved(longs[0])


def intrinsic_of_an_array(x, n):
    x[0] = sarek.math.test_halved(x)


def intrinsic_of_wrong_arity(x, n):
    x[0] = sarek.math.test_halved(x[0], n)


def intrinsic_with_another_result(x, n):
    x[0] = sarek.math.test_widened(x[0])


def misspelt_intrinsic(x, n):
    x[0] = sarek.math.test_halfed(x[0])


def register_intrinsic_in_a_kernel(x, n):
    sarek.register_intrinsic("f", "float32(float32)", None, _halved)
