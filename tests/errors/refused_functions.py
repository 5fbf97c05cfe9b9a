"""Functions and named tuples used in ways that have no meaning. New kernels go to the end."""

from collections import namedtuple

import numba

import sarek_numba as sarek

Pair = namedtuple("Pair", "left right")
Other = namedtuple("Other", "left right")


class Sorted(namedtuple("Both", "left right")):
    def __new__(cls, left, right):
        return super().__new__(cls, min(left, right), max(left, right))


@sarek.function
def apply(function, value):
    return function(value)


@sarek.function
def chosen(value):
    return apply


@sarek.function
def either(value):
    if value > 0:
        return Pair(value, 1)
    return Other(value, 1)


def undecorated(value):
    return value + 1


@numba.njit("float64(float64)")
def with_signature(value):
    return value + 1


@numba.njit(fastmath=True)
def with_fastmath(value):
    return value + 1


def undecorated_as_argument(x, n):
    x[0] = apply(undecorated, x[1])


def number_as_function(x, n):
    x[0] = apply(3, x[1])


def function_with_wrong_arity(x, n):
    x[0] = apply(apply, x[1])


def function_as_result(x, n):
    x[0] = chosen(x[1])(apply)


def named_tuple_lacks_a_field(x, n):
    x[0] = Pair(x[1]).left


def named_tuple_with_unknown_field(x, n):
    x[0] = Pair(x[1], middle=n).left


def named_tuple_without_such_field(x, n):
    x[0] = Pair(x[1], n).lefty


def named_tuple_with_constructor(x, n):
    x[0] = Sorted(x[1], n).left


def two_named_tuples(x, n):
    pair = Pair(x[0], n)
    if n > 2:
        pair = Other(x[0], n)
    x[1] = pair.left


def results_of_two_named_tuples(x, n):
    x[0] = either(x[1]).left


def named_tuple_stored(x, n):
    x[0] = Pair(x[1], n)


def numba_signature(x, n):
    x[0] = with_signature(x[1])


def numba_fastmath(x, n):
    x[0] = with_fastmath(x[1])


@sarek.function(inline_depth=4)
def endless(value):
    return endless(value + 1) * 2


@sarek.function
def other_array(row, n):
    return row[0] if n == 0 else other_array(row[1:], n - 1)


@sarek.function
def other_kind(value, n):
    return value if n == 0 else other_kind(value * 0.5, n - 1)


@sarek.function
def tail_of_wrong_arity(value):
    return value if value > 3 else tail_of_wrong_arity()


def recursion_on_every_path(x, n):
    x[0] = endless(n)


def tail_call_with_another_array(x, n):
    x[0] = other_array(x, n)


def tail_call_with_another_type(x, n, ints):
    x[0] = other_kind(ints[0], n)


def tail_call_of_wrong_arity(x, n):
    x[0] = tail_of_wrong_arity(n)


def recursion_through_an_argument(x, n):
    x[0] = itself(itself, n)


@sarek.function
def itself(function, n):
    return function(function, n - 1) + 1 if n > 0 else 0
