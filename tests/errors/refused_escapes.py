"""Misuses of print and of the other ways out of the kernel language. Each is refused."""

import sarek_numba as sarek


def print_an_array(x, n):
    print("all of", x)


def print_a_tuple(x, n):
    print((n, 2))


def print_none(x, nothing):
    print(nothing)


def print_to_a_file(x, n):
    print(n, file=None)


def print_computed_separator(x, n):
    print(n, n, sep=n)


def print_an_f_string(x, n):
    print(f"n is {n}")


def print_a_function(x, n):
    print(sarek.barrier)


def print_a_complex(x, n):
    print(2j * n)
