"""Kernels that use what a later version will have. Each is refused by name."""
# ruff: noqa: F841, B018, B007, RUF100, SIM117, E731

import sarek_numba as sarek


@sarek.function
def twice(value):
    return value * 2


@sarek.function
def apply(function, value):
    return function(value)


def adder(amount):
    @sarek.function
    def add(value):
        return value + amount

    return add


@sarek.function
def ping(n):
    return pong(n - 1) if n > 0 else 0


@sarek.function
def pong(n):
    return ping(n - 1) if n > 0 else 1


def match_class(x, n):
    match n:
        case 0:
            x[0] = 1
        case int(other):
            x[0] = other


def function_as_argument(x, n):
    x[0] = apply(adder, 1.0)


def factory_inside(x, n):
    add = adder(2)
    x[0] = add(1.0)


def conditional_function(x, n):
    f = twice if n > 0 else apply
    x[0] = f(1.0)


def mutual_recursion(x, n):
    x[0] = ping(n)


def unknown_atomic(x, n, ints):
    sarek.atomic.multiply(ints, 0, 2)


def unknown_of_sarek(x, n):
    x[0] = sarek.thread_id.x
