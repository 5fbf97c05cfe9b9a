"""Kernels outside the language: statements, expressions, types and calls."""
# ruff: noqa

import random
import time

import numpy as np

import sarek_numba as sarek

WEIGHTS = [1.0, 2.0]
NAMES = {"a": 1}
POINT = object()


class Colour:
    RED = 1

    def method(self):
        return 1


COLOUR = Colour()


@sarek.function
def pair(value):
    return value, value + 1


@sarek.function
def first(array, index=0):
    return array[index]


@sarek.function
def keyword_only(a, *, scale):
    return a * scale


@sarek.function
def variadic(*values):
    return values[0]


@sarek.function
def row_of(a):
    return a[0]


@sarek.function
def faulty(value):
    return value + None


@sarek.function
def outer_of_faulty(value):
    return faulty(value)


@sarek.function
def mixed_result(n):
    if n > 0:
        return 1
    return None


# --- statements -----------------------------------------------------------------------------------


async def asynchronous(x, n):
    x[0] = 1


def nested_decorated(x, n):
    @sarek.function
    def inner(a):
        return a

    x[0] = inner(1)


def star_arguments(x, *rest):
    x[0] = rest[0]


def keyword_arguments(x, **rest):
    x[0] = 1


def star_in_call(x, n):
    t = (1, 2)
    x[0] = max(*t)


def star_star_in_call(x, n):
    x[0] = first(x, **{"index": 1})


def set_display(x, n):
    x[0] = n in {1, 2, 3}


def del_variable(x, n):
    t = 1
    del t
    x[0] = n


def class_inside(x, n):
    class Inner:
        pass

    x[0] = 1


def except_block(x, n):
    try:
        x[0] = 1 / n
    except ZeroDivisionError:
        x[0] = 0


def superstep_with_as(x, n):
    with sarek.superstep() as step:
        x[0] = 1


def superstep_with_argument(x, n):
    with sarek.superstep(3):
        x[0] = 1


def superstep_and_other(x, n):
    with sarek.superstep(), open("f"):
        x[0] = 1


def superstep_not_called(x, n):
    with sarek.superstep:
        x[0] = 1


def superstep_without_with(x, n):
    sarek.superstep()
    x[0] = 1


def return_in_superstep(x, n):
    with sarek.superstep():
        if n > 3:
            return
        x[0] = 1


def break_out_of_superstep(x, n):
    for k in range(n):
        with sarek.superstep():
            x[0] = 1
            if k > 2:
                break


def continue_out_of_superstep(x, n):
    for k in range(n):
        with sarek.superstep():
            if k > 2:
                continue
            x[0] = 1


def return_in_nested_superstep(x, n):
    with sarek.superstep():
        with sarek.superstep():
            x[0] = 1
            return


def while_with_array(x, n):
    while x:
        n -= 1


def and_of_arrays(x, n):
    if n > 0 and x:
        x[0] = 1


def for_over_array(x, n):
    for value in x:
        x[0] = value


def for_over_int(x, n):
    for value in n:
        x[0] = value


def for_over_enumerate(x, n):
    for k, value in enumerate(x):
        x[0] = value


def chained_attribute(x, n):
    t = x.T = 1


def store_into_number(x, n):
    n[0] = 1


def store_into_tuple(x, n):
    t = (1, 2)
    t[0] = 3


def augment_attribute(x, n):
    x.size += 1


def store_none(x, n):
    x[0] = None


def store_string(x, n):
    x[0] = "one"


def store_array(x, n):
    x[0] = x


def store_tuple(x, n):
    x[0] = (1, 2)


def store_function(x, n):
    x[0] = pair


def assert_with_computed_message(x, n):
    assert n > 0, n


def unpack_too_few(x, n):
    a, b = (1, 2, 3)
    x[0] = a


def unpack_array(x, n):
    a, b = x
    x[0] = a


def unpack_number(x, n):
    a, b = n
    x[0] = a


def matrix_product(x, n):
    x[0] = x @ x


def sorted_list(x, n):
    x[0] = sorted((3, 1, 2))[0]


# --- expressions ----------------------------------------------------------------------------------


def comparison_of_tuples(x, n):
    if (n, 1) < (2, 3):
        x[0] = 1


def equality_of_tuples(x, n):
    if (n, 1) == (2, 1):
        x[0] = 1


def comparison_of_arrays(x, n):
    if x == 1:
        x[0] = 1


def is_on_numbers(x, n):
    if n is n:
        x[0] = 1


def in_array(x, n):
    if n in x:
        x[0] = 1


def in_number(x, n):
    if n in 3:
        x[0] = 1


def attribute_of_number(x, n):
    x[0] = n.real


def attribute_of_element(x, n):
    x[0] = x[0].colour


def method_of_array(x, n):
    x[0] = x.sum()


def method_of_number(x, n):
    x[0] = n.bit_length()


def calling_a_module(x, n):
    x[0] = np(n)


def calling_a_number(x, n):
    x[0] = n(1)


def calling_an_array(x, n):
    x[0] = x(1)


def calling_a_class(x, n):
    c = Colour()


def calling_a_method(x, n):
    x[0] = COLOUR.method()


def attribute_of_object(x, n):
    x[0] = COLOUR.RED


def captured_list(x, n):
    x[0] = WEIGHTS[0]


def captured_dict(x, n):
    x[0] = NAMES["a"]


def captured_object(x, n):
    x[0] = POINT + 1


def array_plus_number(x, n):
    x[0] = (x + 1)[0]


def none_plus_number(x, n, nothing):
    x[0] = nothing + 1


def tuple_plus_number(x, n):
    x[0] = (1, 2) + 3


def tuple_concatenation(x, n):
    t = (n, 2) + (3,)
    x[0] = t[0]


def function_without_call(x, n):
    x[0] = pair + 1


def float_bits(x, n):
    x[0] = x[1] & 3


def float_shift(x, n):
    x[0] = 1 << x[1]


def constant_division_by_zero(x, n):
    x[0] = 1 // 0


def constant_root(x, n):
    x[0] = (-1) ** 0.5


def huge_constant(x, n):
    x[0] = 10**10000


def too_big_for_int64(x, n):
    x[0] = n + 2**70


def join_of_bool_and_int(x, n):
    t = True
    if n > 0:
        t = n
    x[0] = t


def join_of_none(x, n):
    t = None
    if n > 0:
        t = x[0]
    x[1] = t


def join_of_tuples(x, n):
    t = (1, 2)
    if n > 0:
        t = (1, 2, 3)
    x[0] = t[0]


def join_in_expression(x, n, small):
    x[0] = small[0] if n > 0 else x[1]


def join_in_loop(x, n, small):
    t = small[0]
    for k in range(n):
        t = x[k]
    x[0] = t


def conditional_array(x, n, small):
    a = x if n > 0 else small
    x[0] = a[0]


def rebound_parameter(x, n, m):
    for k in range(n):
        x = m[k]
    x[0] = 1


def tuple_of_no_common_type(x, n, small):
    t = (small[0], x[0])
    x[0] = t[n]


def tuple_index_outside(x, n):
    x[0] = (1, 2)[2]


def tuple_float_index(x, n):
    t = (1, 2)
    x[0] = t[1.0]


def tuple_slice_at_run_time(x, n):
    t = (1, 2, 3)[:n]


def number_indexed(x, n):
    x[0] = n[0]


def bool_index(x, n):
    x[n > 0] = 1


def none_index(x, n):
    x[None, 0] = 1


def ellipsis_index(x, n, m):
    m[..., 0] = 1


def array_index(x, n, ints):
    x[ints] = 1


def string_index(x, n):
    x["a"] = 1


def float_slice(x, n):
    row = x[0.5:2]


def zero_slice_step(x, n):
    row = x[::0]


def second_index_float(x, n, m):
    m[0, n / 2] = 1


def store_into_row(x, n, m):
    m[0] = 1


# --- calls ----------------------------------------------------------------------------------------


def too_few_for_builtin(x, n):
    x[0] = abs()


def too_many_for_math(x, n):
    import_free = np.sqrt(x[0], x[1])


def keyword_for_math(x, n):
    x[0] = np.sqrt(x=x[0])


def math_of_array(x, n):
    x[0] = np.sin(x)


def missing_argument(x, n):
    x[0] = first()


def argument_twice(x, n):
    x[0] = first(x, array=x)


def keyword_only_missing(x, n):
    x[0] = keyword_only(1)


def variadic_function(x, n):
    x[0] = variadic(1, 2)


def result_is_an_array(x, n, m):
    x[0] = row_of(m)[0]


def result_of_two_kinds(x, n):
    x[0] = mixed_result(n)


def error_in_a_function(x, n):
    x[0] = outer_of_faulty(x[1])


def tuple_result_as_number(x, n):
    x[0] = pair(1) * 2


def range_without_arguments(x, n):
    for k in range():
        x[k] = 1


def range_of_array(x, n):
    for k in range(x):
        x[k] = 1


def range_keyword(x, n):
    for k in range(0, n, 1.0):
        x[k] = 1


def len_of_number(x, n):
    x[0] = len(n)


def min_of_one(x, n):
    x[0] = min(n)


def min_of_tuple(x, n):
    x[0] = min((n, 1))


def min_of_signs(x, n, big, longs):
    x[0] = min(big[0], longs[0])


def sum_of_array(x, n):
    x[0] = sum(x)


def round_to_run_time_digits(x, n):
    x[0] = round(x[1], n)


def int_of_text(x, n):
    x[0] = int("3")


def str_of_number(x, n):
    s = str(n)


def isinstance_call(x, n):
    if isinstance(n, int):
        x[0] = 1


def numpy_arange(x, n):
    for k in np.arange(3):
        x[k] = 1


def numpy_dot(x, n):
    x[0] = np.dot(x, x)


def random_number(x, n):
    x[0] = random.random()


def numpy_random(x, n):
    x[0] = np.random.rand()


def clock(x, n):
    x[0] = time.time()


def open_file(x, n):
    f = open("file")


def popcount_of_float(x, n):
    x[0] = sarek.math.popcount(x[1])


def reinterpret_widths(x, n):
    x[0] = sarek.math.reinterpret(x[1], sarek.int64)


def reinterpret_to_no_type(x, n):
    x[0] = sarek.math.reinterpret(x[1], 3)


def constructor_too_big(x, n):
    x[0] = sarek.uint8(300)


def constructor_of_array(x, n):
    x[0] = np.float32(x)


def a_pass_over_a_tuple_that_has_no_meaning(x, n):
    for item in (n, x):
        x[0] = item + 1


def never_assigned_but_from_itself(ints, n):
    while n != sarek.thread_idx.x:
        fuel += 1
    ints[0] = n


def never_assigned_but_from_another(ints, n):
    if n > 2:
        y = fuel + 1
    else:
        y = fuel - 1
    ints[0] = y
    fuel = y


def never_assigned_but_in_dead_code(ints, n):
    c = 0
    if c == 3:
        b = n
    else:
        if b > 7:
            ints[0] = 1


def never_assigned_but_in_the_other_branch(ints, n):
    if ints[0] == 3:
        b = n % 100
    elif b > 7 if b > -1 else b > 5:
        ints[0] = 1
